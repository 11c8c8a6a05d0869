/* SPDX-License-Identifier: BSD-2-Clause */
/* The servers of ZooKeeper. */
#include "doctor.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/poll.h"
#include "link/dial.h"
#include "stores/zookeeper/wire.h"
#include "tool.h"

#define SESSION_MS 10000
#define VERSION_MOST ((size_t)64 * 1024) /* more than any server says of itself */

/* The connection to one server. */
struct talk {
    struct doctor *doctor;
    const struct dm_url_host *host;
    struct dm_zk_wire wire;
    int64_t end_ns; /* until when we wait for the answer */
    struct dm_jute answer;
    int error; /* of the answer */
    char version[32], mode[16];
    char reason[DM_REASON_ROOM];
};

/* ---- one request after the other ---------------------------------------------------------- */

static bool connect_to(struct talk *talk, struct dm_stream *ret_stream)
{
    const struct dm_url *url = talk->doctor->url;
    const struct dm_dial_options options = {
        .address = { .host = talk->host->host, .port = talk->host->port },
        .tls = { .is_on = url->has_tls,
                 .is_verified = url->is_verified,
                 .name = url->servername ? url->servername : talk->host->host,
                 .cacert = url->cacert,
                 .cert = url->cert,
                 .key = url->key },
        .connect_timeout_ms = url->connect_timeout_ms,
        .user_timeout_ms = url->command_timeout_ms,
    };
    struct dm_dial *dial = dm_dial_begin(&options);

    snprintf(talk->reason, sizeof talk->reason, "this process cannot start a thread or open a descriptor");
    while (dial && !dm_dial_take(dial, ret_stream, talk->reason)) {
        struct pollfd polled = { .fd = dm_dial_fd(dial), .events = POLLIN };

        dm_poll(&polled, 1, 100 * DM_NS_PER_MS);
    }
    return dial && ret_stream->fd >= 0;
}

static void be_patient(struct talk *talk)
{
    talk->end_ns = dm_clock_boot_ns() + talk->doctor->url->command_timeout_ms * DM_NS_PER_MS;
}

/*
 * Sends and receives until there is a frame; or, without one, until the server closes the connection, or has said too
 * much.  A server that never stops talking is not waited for any longer than a silent one.
 */
static bool await(struct talk *talk, bool has_frame)
{
    int64_t left_ns;

    while ((left_ns = talk->end_ns - dm_clock_boot_ns()) > 0) {
        struct pollfd polled = { .fd = talk->wire.stream.fd, .events = dm_zk_wire_events(&talk->wire) };

        if (has_frame && dm_zk_wire_next(&talk->wire, &talk->answer, talk->reason))
            return true;
        if (has_frame ? talk->reason[0] != '\0' : talk->wire.in.size > VERSION_MOST)
            return false;
        if (!dm_zk_wire_has_more(&talk->wire))
            dm_poll(&polled, 1, left_ns);
        if (!dm_zk_wire_turn(&talk->wire, talk->reason))
            return has_frame && dm_zk_wire_next(&talk->wire, &talk->answer, (char[DM_REASON_ROOM]){ 0 });
    }
    snprintf(talk->reason, sizeof talk->reason, "it has not answered for %u ms", talk->doctor->url->command_timeout_ms);
    return false;
}

static bool is_zookeeper(struct talk *talk)
{
    if (talk->answer.is_bad)
        snprintf(talk->reason, sizeof talk->reason, "what answers there is no ZooKeeper");
    return !talk->answer.is_bad;
}

static bool begin_session(struct talk *talk)
{
    const struct dm_url *url = talk->doctor->url;
    struct dm_stream stream;

    if (!connect_to(talk, &stream))
        return false;
    be_patient(talk);
    if (!dm_zk_wire_begin(&talk->wire, stream, SESSION_MS) || !await(talk, true))
        return false;
    dm_jute_long(&talk->answer); /* version of the protocol, and ms */
    dm_jute_long(&talk->answer); /* session */
    if (!is_zookeeper(talk))
        return false;
    if (url->user)
        dm_zk_log_in(&talk->wire, url->user, url->password ? url->password : "");
    return true;
}

static size_t begin(struct talk *talk, int32_t type)
{
    return dm_zk_begin(&talk->wire, 1, type);
}

/* True if there is an answer that is no error; else the reason is set, and the error, or 0 without an answer. */
static bool ask(struct talk *talk, size_t at)
{
    talk->error = 0;
    if (!dm_zk_end(&talk->wire, at)) {
        snprintf(talk->reason, sizeof talk->reason, "out of memory");
        return false;
    }
    be_patient(talk);
    while (await(talk, true)) {
        int32_t xid = dm_jute_int(&talk->answer);

        dm_jute_long(&talk->answer);
        talk->error = dm_jute_int(&talk->answer);
        if (!is_zookeeper(talk))
            return false;
        if (xid == 1 || talk->error) {
            snprintf(talk->reason, sizeof talk->reason, "ZooKeeper says: error %d", talk->error);
            return xid == 1 && talk->error == 0;
        }
    }
    return false;
}

static bool ask_about(struct talk *talk, int32_t type, const char *path)
{
    size_t at = begin(talk, type);

    dm_jute_add_text(&talk->wire.out, path);
    if (type != DM_ZK_GET_ACL)
        dm_jute_add_bool(&talk->wire.out, false);
    return ask(talk, at);
}

static void add_part(struct talk *talk, int32_t type, const char *path)
{
    struct dm_bytes *out = &talk->wire.out;

    dm_jute_add_int(out, type);
    dm_jute_add_bool(out, type == -1);
    dm_jute_add_int(out, -1);
    if (type == -1)
        return;
    dm_jute_add_text(out, path);
    if (type == DM_ZK_CREATE) {
        dm_jute_add_bytes(out, NULL, 0);
        dm_zk_add_acl(out, talk->doctor->url->user != NULL);
        dm_jute_add_int(out, 0);
    } else {
        dm_jute_add_int(out, -1);
    }
}

/* Makes a node and deletes it again, at once: nobody sees it. */
static bool may_make(struct talk *talk, const char *path)
{
    size_t at = begin(talk, DM_ZK_MULTI);

    add_part(talk, DM_ZK_CREATE, path);
    add_part(talk, DM_ZK_DELETE, path);
    add_part(talk, -1, "");
    if (!ask(talk, at))
        return false;
    if (dm_jute_int(&talk->answer) != -1)
        return true;
    dm_jute_bool(&talk->answer);
    dm_jute_int(&talk->answer);
    talk->error = dm_jute_int(&talk->answer);
    return false;
}

/* ---- checks -------------------------------------------------------------------------------- */

static void copy_value(const char *text, const char *name, const char *ends, char *ret_value, size_t room)
{
    const char *at = strstr(text, name);

    ret_value[0] = '\0';
    if (!at)
        return;
    at += strlen(name);
    snprintf(ret_value, room, "%.*s", (int)strcspn(at, ends), at);
    dm_text_clean(ret_value);
}

/* The word "srvr" is allowed by default; a server that refuses it says nothing of these. */
static void ask_for_version(struct talk *talk)
{
    struct dm_stream stream;

    talk->version[0] = talk->mode[0] = '\0';
    if (!connect_to(talk, &stream))
        return;
    talk->wire.stream = stream;
    dm_bytes_add(&talk->wire.out, "srvr", 4);
    be_patient(talk);
    await(talk, false);
    if (talk->wire.in.size) {
        copy_value(talk->wire.in.at, "Zookeeper version: ", "-,\n", talk->version, sizeof talk->version);
        copy_value(talk->wire.in.at, "Mode: ", "\n", talk->mode, sizeof talk->mode);
    }
    dm_zk_wire_close(&talk->wire);
}

/* Finds which server gives a session, and which do not.  False if none does. */
static bool find_server(struct talk *talk)
{
    struct doctor *doctor = talk->doctor;
    struct talk found = { NULL };
    struct dm_place_text place;

    for (int i = 0; i < doctor->url->host_count; i++) {
        talk->host = &doctor->url->hosts[i];
        place = dm_url_place(talk->host->host, talk->host->port);
        doctor->server = place.text;
        ask_for_version(talk);
        if (begin_session(talk)) {
            doctor_find(doctor, GRADE_OK, "server", "ZooKeeper %s answers%s%s%s", talk->version,
                        doctor->url->has_tls ? ", by TLS" : "", *talk->mode ? ": " : "", talk->mode);
            if (!found.host) {
                found = *talk;
                talk->wire = (struct dm_zk_wire){ .stream = dm_stream_of(-1) };
            }
        } else {
            doctor_find(doctor, GRADE_WARN, "server", "it gives no session: %s", talk->reason);
            doctor_advise(doctor, "look at this server, whether it has a majority, at its maxClientCnxns, and at the "
                                  "network between; correct the URL if it is gone");
        }
        dm_zk_wire_close(&talk->wire);
    }
    doctor->server = "";
    *talk = found;
    if (found.host)
        return true;
    doctor_find(doctor, GRADE_FAIL, "server", "no server of ZooKeeper can be used");
    doctor_advise(doctor, "look at DMUTEX_URL or dmutex.conf, at the servers, and at the network between");
    return false;
}

static int tell_rights(struct talk *talk)
{
    struct doctor *doctor = talk->doctor;

    doctor->facts.lacks_rights = true;
    doctor_find(doctor, GRADE_FAIL, "rights", "the ACLs do not let us make and delete nodes below /%s",
                doctor->url->prefix);
    doctor_advise(doctor,
                  "let the administrator make /%s with the ACL digest:USER:HASH:cdrwa, and write the login into "
                  "the URL",
                  doctor->url->prefix);
    return 0;
}

static bool lacks_right(const struct talk *talk)
{
    return talk->error == DM_ZK_NO_RIGHT;
}

/* Anybody who may write can give locks to anybody. */
static void look_at_acl(struct talk *talk, const char *path)
{
    struct doctor *doctor = talk->doctor;
    bool is_open = false;
    const char *scheme;
    size_t size;

    if (!ask_about(talk, DM_ZK_GET_ACL, path))
        return;
    for (int32_t count = dm_jute_int(&talk->answer); count > 0 && !talk->answer.is_bad; count--) {
        int32_t rights = dm_jute_int(&talk->answer);

        scheme = dm_jute_bytes(&talk->answer, &size);
        is_open |= size == 5 && memcmp(scheme, "world", 5) == 0 && rights != 1;
        dm_jute_bytes(&talk->answer, &size);
    }
    if (is_open) {
        doctor_find(doctor, GRADE_WARN, "acl", "anybody who reaches ZooKeeper may change the locks below /%s",
                    doctor->url->prefix);
        doctor_advise(doctor, "write zookeeper://USER:PASSWORD@HOST with a prefix that is not used yet: its nodes are "
                              "then for this login alone");
    } else {
        doctor_find(doctor, GRADE_OK, "acl", "the locks below /%s are for a login alone", doctor->url->prefix);
    }
}

/* Returns 0, or the exit status. */
static int look_at_nodes(struct talk *talk)
{
    struct doctor *doctor = talk->doctor;
    char top[80], path[120];

    snprintf(top, sizeof top, "/%s", doctor->url->prefix);
    snprintf(path, sizeof path, "%s/epoch", top);
    if (ask_about(talk, DM_ZK_EXISTS, path)) {
        snprintf(path, sizeof path, "%s/i/doctor", top);
        if (!may_make(talk, path) && lacks_right(talk))
            return tell_rights(talk);
        snprintf(path, sizeof path, "%s/r/doctor", top);
        if (!may_make(talk, path) && lacks_right(talk))
            return tell_rights(talk);
        doctor_find(doctor, GRADE_OK, "rights", "nodes below %s can be made and deleted", top);
        snprintf(path, sizeof path, "%s/r", top);
        look_at_acl(talk, path);
        return 0;
    }
    if (talk->error != DM_ZK_NO_NODE) {
        doctor_find(doctor, GRADE_FAIL, lacks_right(talk) || !talk->error ? "server" : "login", "%s", talk->reason);
        doctor_advise(doctor, "look at the log of this server, and at the login in the URL");
        return talk->error ? TOOL_DENIED : TOOL_UNREACHABLE;
    }
    snprintf(path, sizeof path, "%s/doctor", top);
    if (!may_make(talk, ask_about(talk, DM_ZK_EXISTS, top) ? path : top) && lacks_right(talk))
        return tell_rights(talk);
    doctor_find(doctor, GRADE_OK, "epoch", "there are no locks below %s yet: the first one begins them", top);
    if (!doctor->url->user) {
        doctor_find(doctor, GRADE_WARN, "acl", "without a login the locks will be open to anybody");
        doctor_advise(doctor, "write zookeeper://USER:PASSWORD@HOST");
    }
    return 0;
}

/* A server alone tells of no others. */
static void look_at_ensemble(struct talk *talk)
{
    const char *text;
    size_t size;
    int count = 0;

    if (!ask_about(talk, DM_ZK_GET, "/zookeeper/config"))
        return;
    text = dm_jute_bytes(&talk->answer, &size);
    for (size_t i = 0; i + 12 < size; i++)
        count += memcmp(text + i, ":participant", 12) == 0;
    if (count <= 1)
        doctor_find(talk->doctor, GRADE_OK, "servers", "one server: while it is down, locks wait");
    else
        doctor_find(talk->doctor, GRADE_OK, "servers", "%d servers: locks go on while %d of them %s down", count,
                    (count - 1) / 2, (count - 1) / 2 == 1 ? "is" : "are");
}

int doctor_examine_zookeeper(struct doctor *doctor)
{
    struct talk talk = { .doctor = doctor, .wire = { .stream = dm_stream_of(-1) } };
    int status;

    if (!find_server(&talk))
        return TOOL_UNREACHABLE;
    doctor_look_at_tls(doctor);
    status = look_at_nodes(&talk);
    if (status == 0) {
        doctor->facts.is_master = doctor->facts.keeps_locks = YES;
        doctor->facts.survives_power = doctor->facts.knows_birth = YES;
        look_at_ensemble(&talk);
    }
    dm_zk_wire_close(&talk.wire);
    return status;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The members of etcd. */
#include "doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/poll.h"
#include "link/dial.h"
#include "stores/etcd/http.h"
#include "stores/etcd/json.h"
#include "tool.h"

#define ANSWER_MOST ((size_t)1024 * 1024)
#define OLD_VERSIONS_MOST 1000000
#define QUOTA_DEFAULT (INT64_C(2) * 1024 * 1024 * 1024)

/* Codes of gRPC. */
enum { INVALID = 3, DENIED = 7, EXHAUSTED = 8, NO_AUTH = 9, OUT_OF_RANGE = 11, UNAUTHENTICATED = 16 };

/* The connection to one member. */
struct talk {
    struct doctor *doctor;
    const struct dm_url_host *host;
    struct dm_http http;
    char token[2048];
    struct dm_json answer;
    int64_t code; /* of an error */
    char reason[DM_REASON_ROOM];
};

/* ---- one request after the other ---------------------------------------------------------- */

static bool connect_to(struct talk *talk)
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
    struct dm_stream stream;

    snprintf(talk->reason, sizeof talk->reason, "this process cannot start a thread or open a descriptor");
    while (dial && !dm_dial_take(dial, &stream, talk->reason)) {
        struct pollfd polled = { .fd = dm_dial_fd(dial), .events = POLLIN };

        dm_poll(&polled, 1, 100 * DM_NS_PER_MS);
    }
    if (!dial || stream.fd < 0)
        return false;
    dm_http_begin(&talk->http, stream, ANSWER_MOST);
    return true;
}

static bool await(struct talk *talk)
{
    int64_t end_ns = dm_clock_boot_ns() + talk->doctor->url->command_timeout_ms * DM_NS_PER_MS;

    while (talk->http.state != DM_HTTP_ANSWERED) {
        struct pollfd polled = { .fd = talk->http.stream.fd, .events = dm_http_events(&talk->http) };
        int64_t left_ns = end_ns - dm_clock_boot_ns();

        if (left_ns <= 0) {
            snprintf(talk->reason, sizeof talk->reason, "it has not answered for %u ms",
                     talk->doctor->url->command_timeout_ms);
            return false;
        }
        if (!dm_http_has_more(&talk->http))
            dm_poll(&polled, 1, left_ns);
        if (!dm_http_turn(&talk->http, talk->reason))
            return false;
    }
    return true;
}

/* POST, or GET without a body.  True if the answer is no error; else the reason is set, and the code, or 0. */
static bool ask(struct talk *talk, const char *path, const struct dm_bytes *body)
{
    struct dm_json message;

    talk->code = 0;
    if (!dm_http_ask(&talk->http, dm_url_place(talk->host->host, talk->host->port).text, path, talk->token, body)) {
        snprintf(talk->reason, sizeof talk->reason, "out of memory");
        return false;
    }
    if (!await(talk))
        return false;
    talk->http.state = DM_HTTP_IDLE;
    talk->answer = dm_json_check(talk->http.body.size ? talk->http.body.at : "");
    if (talk->http.status == 200 && talk->answer.at)
        return true;
    snprintf(talk->reason, sizeof talk->reason, "what answers there is no etcd 3.4 or later with its JSON gateway");
    message = dm_json_get(talk->answer, "message");
    if (message.at)
        dm_json_text(message, talk->reason, sizeof talk->reason);
    talk->code = dm_json_int64(dm_json_get(talk->answer, "code"));
    return false;
}

static bool ask_text(struct talk *talk, const char *path, const char *text)
{
    struct dm_bytes body = { .at = (char *)text, .size = strlen(text) };

    return ask(talk, path, &body);
}

static struct dm_json get(struct talk *talk, const char *name)
{
    return dm_json_get(talk->answer, name);
}

static int64_t revision_of(struct talk *talk)
{
    return dm_json_int64(dm_json_get(get(talk, "header"), "revision"));
}

/* ---- login -------------------------------------------------------------------------------- */

static void add_text(struct dm_bytes *body, const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == '"' || *text == '\\')
            dm_bytes_print(body, "\\u%04x", (unsigned)*text);
        else
            dm_bytes_add(body, text, 1);
    }
}

/* A cluster without users takes any login. */
static bool log_in(struct talk *talk)
{
    const struct dm_url *url = talk->doctor->url;
    struct dm_bytes body = { 0 };
    bool is_in;

    if (!url->user)
        return true;
    dm_bytes_print(&body, "{\"name\":\"");
    add_text(&body, url->user);
    dm_bytes_print(&body, "\",\"password\":\"");
    add_text(&body, url->password ? url->password : "");
    dm_bytes_print(&body, "\"}");
    is_in = ask(talk, "/v3/auth/authenticate", &body);
    dm_bytes_free(&body);
    if (is_in)
        dm_json_text(get(talk, "token"), talk->token, sizeof talk->token);
    return is_in || talk->code == NO_AUTH;
}

/* ---- the keys ------------------------------------------------------------------------------ */

static void add_key(struct talk *talk, struct dm_bytes *body, const char *key)
{
    char whole[128];

    snprintf(whole, sizeof whole, "/%s/%s", talk->doctor->url->prefix, key);
    dm_bytes_print(body, "\"key\":\"");
    dm_bytes_add_base64(body, whole, strlen(whole));
    dm_bytes_print(body, "\"");
}

/* The epoch as it was at a revision; 0: as it is, if a majority says so. */
static bool read_epoch(struct talk *talk, int64_t revision)
{
    struct dm_bytes body = { 0 };
    bool is_read;

    dm_bytes_print(&body, "{");
    add_key(talk, &body, "epoch");
    dm_bytes_print(&body, ",\"revision\":\"%lld\"}", (long long)revision);
    is_read = ask(talk, "/v3/kv/range", &body);
    dm_bytes_free(&body);
    return is_read;
}

/*
 * A transaction that would write if a condition held that never does: etcd looks at the rights in any case.  But where
 * the quota is used up, it does not get so far.
 */
static bool may_write(struct talk *talk, const char *key)
{
    struct dm_bytes body = { 0 };
    bool may;

    dm_bytes_print(&body, "{\"compare\":[{");
    add_key(talk, &body, key);
    dm_bytes_print(&body, ",\"target\":\"VERSION\",\"result\":\"LESS\",\"version\":\"0\"}],\"success\":[{"
                          "\"request_put\":{");
    add_key(talk, &body, key);
    dm_bytes_print(&body, "}}]}");
    may = ask(talk, "/v3/kv/txn", &body) || talk->code == EXHAUSTED;
    dm_bytes_free(&body);
    return may;
}

/* ---- checks -------------------------------------------------------------------------------- */

/* Finds which member answers, and which do not.  False if none does. */
static bool find_member(struct talk *talk)
{
    struct doctor *doctor = talk->doctor;
    struct talk found = { NULL };
    struct dm_place_text place;
    char version[32];

    for (int i = 0; i < doctor->url->host_count; i++) {
        talk->host = &doctor->url->hosts[i];
        place = dm_url_place(talk->host->host, talk->host->port);
        doctor->server = place.text;
        if (connect_to(talk) && ask(talk, "/version", NULL) && get(talk, "etcdserver").at) {
            dm_json_text(get(talk, "etcdserver"), version, sizeof version);
            doctor_find(doctor, GRADE_OK, "server", "etcd %s answers%s", version,
                        doctor->url->has_tls ? ", by TLS" : "");
            if (!found.host) {
                found = *talk;
                talk->http = (struct dm_http){ .stream = dm_stream_of(-1) };
            }
        } else {
            doctor_find(doctor, GRADE_WARN, "server", "%s", talk->reason);
            doctor_advise(doctor, "look at this member, and at the network between; correct the URL if it is gone");
        }
        if (talk->http.stream.fd >= 0)
            dm_http_close(&talk->http);
    }
    doctor->server = "";
    *talk = found;
    if (found.host)
        return true;
    doctor_find(doctor, GRADE_FAIL, "server", "no member of etcd can be used");
    doctor_advise(doctor, "look at DMUTEX_URL or dmutex.conf, at the members, and at the network between");
    return false;
}

static int tell_login(struct talk *talk)
{
    doctor_find(talk->doctor, GRADE_FAIL, "login", "%s", talk->reason);
    doctor_advise(talk->doctor, talk->doctor->url->user ? "correct user and password in DMUTEX_URL or dmutex.conf"
                                                        : "write etcd://USER:PASSWORD@HOST, or name a password_file");
    return TOOL_DENIED;
}

static int tell_rights(struct talk *talk)
{
    doctor_find(talk->doctor, GRADE_FAIL, "rights", "the user may not read and write the keys below /%s/: %s",
                talk->doctor->url->prefix, talk->reason);
    doctor_advise(talk->doctor, "let root run: etcdctl role grant-permission ROLE readwrite --prefix=true /%s/",
                  talk->doctor->url->prefix);
    talk->doctor->facts.lacks_rights = true;
    return 0;
}

/* Returns 0, or the exit status. */
static int look_at_keys(struct talk *talk)
{
    if (!log_in(talk))
        return tell_login(talk);
    if (!read_epoch(talk, 0)) {
        if (talk->code == INVALID || talk->code == UNAUTHENTICATED)
            return tell_login(talk);
        if (talk->code == DENIED)
            return tell_rights(talk);
        doctor_find(talk->doctor, GRADE_FAIL, "majority", "a majority of the members does not answer: %s",
                    talk->reason);
        doctor_advise(talk->doctor, "start the members that are missing: locks wait until more than half are there");
        return TOOL_UNREACHABLE;
    }
    doctor_find(talk->doctor, GRADE_OK, "majority", "a majority of the members answers");
    if (!dm_json_first(get(talk, "kvs")).at)
        doctor_find(talk->doctor, GRADE_OK, "epoch", "there are no locks below /%s/ yet: the first one begins them",
                    talk->doctor->url->prefix);
    if (!may_write(talk, "epoch") || !may_write(talk, "r/n/doctor") || !may_write(talk, "i/doctor"))
        return tell_rights(talk);
    doctor_find(talk->doctor, GRADE_OK, "rights", "the keys below /%s/ can be read and written",
                talk->doctor->url->prefix);
    return 0;
}

static void look_at_members(struct talk *talk)
{
    int count = 0;

    if (!ask_text(talk, "/v3/cluster/member/list", "{}"))
        return;
    for (struct dm_json member = dm_json_first(get(talk, "members")); member.at; member = dm_json_next(member))
        count += !dm_json_is_true(dm_json_get(member, "isLearner"));
    if (count == 1)
        doctor_find(talk->doctor, GRADE_OK, "members", "one member: while it is down, locks wait");
    else
        doctor_find(talk->doctor, GRADE_OK, "members", "%d members: locks go on while %d of them %s down", count,
                    (count - 1) / 2, (count - 1) / 2 == 1 ? "is" : "are");
}

static void look_at_alarms(struct talk *talk)
{
    char name[16];
    int count = 0;

    if (!ask_text(talk, "/v3/maintenance/alarm", "{\"action\":\"GET\"}"))
        return;
    for (struct dm_json alarm = dm_json_first(get(talk, "alarms")); alarm.at; alarm = dm_json_next(alarm), count++) {
        dm_json_text(dm_json_get(alarm, "alarm"), name, sizeof name);
        if (strcmp(name, "NOSPACE") == 0) {
            doctor_find(talk->doctor, GRADE_WARN, "alarm", "the quota is used up: locks go on, and their data grow");
            doctor_advise(talk->doctor, "etcdctl compact REVISION, etcdctl defrag for each member, etcdctl alarm "
                                        "disarm; then set --auto-compaction-retention");
        } else {
            doctor_find(talk->doctor, GRADE_FAIL, "alarm", "etcd has raised the alarm %s", name);
            doctor_advise(talk->doctor, "replace the member that \"etcdctl alarm list\" names");
        }
    }
    if (!count)
        doctor_find(talk->doctor, GRADE_OK, "alarm", "none is raised");
}

/* etcd does not reveal its options, so what was a million revisions ago tells. */
static void look_at_history(struct talk *talk)
{
    int64_t revision = read_epoch(talk, 0) ? revision_of(talk) : 0;

    if (revision <= OLD_VERSIONS_MOST)
        doctor_find(talk->doctor, GRADE_OK, "compaction", "revision %lld: too early to tell whether old versions go",
                    (long long)revision);
    else if (read_epoch(talk, revision - OLD_VERSIONS_MOST)) {
        doctor_find(talk->doctor, GRADE_WARN, "compaction", "etcd keeps more than a million old versions");
        doctor_advise(talk->doctor, "start its members with --auto-compaction-retention, or its quota will be used up");
    } else if (talk->code == OUT_OF_RANGE)
        doctor_find(talk->doctor, GRADE_OK, "compaction", "old versions are removed");
}

/* From 3.5 on for root alone. */
static void look_at_size(struct talk *talk)
{
    int64_t size, quota;

    if (!ask_text(talk, "/v3/maintenance/status", "{}"))
        return;
    size = dm_json_int64(get(talk, "dbSize"));
    quota = dm_json_int64(get(talk, "dbSizeQuota"));
    if (size > (quota ? quota : QUOTA_DEFAULT) / 5 * 4) {
        doctor_find(talk->doctor, GRADE_WARN, "size", "the data have %lld MB, four fifths of %s",
                    (long long)size / 1000000, quota ? "the quota" : "etcd's default quota");
        doctor_advise(talk->doctor, "compact and defragment, or raise --quota-backend-bytes");
    } else {
        doctor_find(talk->doctor, GRADE_OK, "size", "the data have %lld MB", (long long)(size + 999999) / 1000000);
    }
}

int doctor_examine_etcd(struct doctor *doctor)
{
    struct talk talk = { .doctor = doctor, .http = { .stream = dm_stream_of(-1) } };
    int status;

    if (!find_member(&talk))
        return TOOL_UNREACHABLE;
    doctor_look_at_tls(doctor);
    status = look_at_keys(&talk);
    if (status == 0) {
        doctor->facts.is_master = doctor->facts.keeps_locks = YES;
        doctor->facts.survives_power = doctor->facts.knows_birth = YES;
        look_at_members(&talk);
        look_at_alarms(&talk);
        look_at_history(&talk);
        look_at_size(&talk);
    }
    dm_http_close(&talk.http);
    return status;
}

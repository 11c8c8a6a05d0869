/* SPDX-License-Identifier: BSD-2-Clause */
/* A server of memcached. */
#include "doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/poll.h"
#include "link/dial.h"
#include "stores/memcached/answer.h"
#include "tool.h"

#define ANSWERS_MOST ((size_t)256 * 1024)

/* The connection, and what the server says of itself. */
struct talk {
    struct doctor *doctor;
    struct dm_stream stream;
    struct dm_bytes in;
    char version[32], refusal[120];
    bool has_settings, evicts, has_cas, has_epoch, is_over;
    unsigned long item_most;
    unsigned long long evictions, bytes, limit;
    char reason[DM_REASON_ROOM];
};

/* ---- asking -------------------------------------------------------------------------------- */

static bool connect_to(struct talk *talk)
{
    const struct dm_url *url = talk->doctor->url;
    const struct dm_dial_options options = {
        .address = { .host = url->host, .port = url->port, .path = url->path },
        .connect_timeout_ms = url->connect_timeout_ms,
        .user_timeout_ms = url->command_timeout_ms,
    };
    struct dm_dial *dial = dm_dial_begin(&options);

    snprintf(talk->reason, sizeof talk->reason, "this process cannot start a thread or open a descriptor");
    while (dial && !dm_dial_take(dial, &talk->stream, talk->reason)) {
        struct pollfd polled = { .fd = dm_dial_fd(dial), .events = POLLIN };

        dm_poll(&polled, 1, 100 * DM_NS_PER_MS);
    }
    return dial && talk->stream.fd >= 0;
}

static void take_stat(struct talk *talk, const char *line)
{
    talk->has_settings |= strncmp(line, "STAT evictions o", 16) == 0;
    talk->evicts |= strcmp(line, "STAT evictions on") == 0;
    talk->has_cas |= strcmp(line, "STAT cas_enabled yes") == 0;
    sscanf(line, "STAT item_size_max %lu", &talk->item_most);
    sscanf(line, "STAT evictions %llu", &talk->evictions);
    sscanf(line, "STAT bytes %llu", &talk->bytes);
    sscanf(line, "STAT limit_maxbytes %llu", &talk->limit);
}

/* The epoch is asked for at the end. */
static void take(struct talk *talk, const struct dm_memcached_answer *answer)
{
    switch (answer->code) {
    case DM_MEMCACHED_TEXT:
        sscanf(answer->line, "VERSION %31s", talk->version);
        take_stat(talk, answer->line);
        break;
    case DM_MEMCACHED_VALUE:
    case DM_MEMCACHED_ABSENT:
        talk->has_epoch = answer->code == DM_MEMCACHED_VALUE;
        talk->is_over = true;
        break;
    default:
        snprintf(talk->refusal, sizeof talk->refusal, "%.110s", answer->line);
        talk->is_over = true;
        break;
    }
}

static void take_answers(struct talk *talk)
{
    struct dm_memcached_answer answer;

    while (!talk->is_over) {
        dm_memcached_answer_read(talk->in.at, talk->in.size, ANSWERS_MOST, &answer);
        if (answer.code == DM_MEMCACHED_MORE)
            return;
        take(talk, &answer);
        dm_bytes_take(&talk->in, answer.length);
    }
}

/* All questions at once.  False with the reason if there is no answer to the last of them. */
static bool ask(struct talk *talk)
{
    int64_t end_ns = dm_clock_boot_ns() + talk->doctor->url->command_timeout_ms * DM_NS_PER_MS;
    char words[160], room[4096];
    ssize_t got;

    snprintf(words, sizeof words, "version\r\nstats settings\r\nstats\r\nmg %s:epoch v\r\n", talk->doctor->url->prefix);
    if (dm_stream_send(&talk->stream, words, strlen(words)) != (ssize_t)strlen(words))
        return false;
    while (!talk->is_over) {
        struct pollfd polled = { .fd = talk->stream.fd, .events = POLLIN };
        int64_t left_ns = end_ns - dm_clock_boot_ns();

        snprintf(talk->reason, sizeof talk->reason, "it has not answered for %u ms",
                 talk->doctor->url->command_timeout_ms);
        if (left_ns <= 0 || talk->in.size > ANSWERS_MOST)
            return false;
        dm_poll(&polled, 1, left_ns);
        got = dm_stream_receive(&talk->stream, room, sizeof room);
        snprintf(talk->reason, sizeof talk->reason, "it has closed the connection");
        if (got < 0)
            return false;
        dm_bytes_add(&talk->in, room, (size_t)got);
        take_answers(talk);
    }
    return true;
}

/* ---- checks -------------------------------------------------------------------------------- */

static int tell_server(struct talk *talk)
{
    struct doctor *doctor = talk->doctor;
    int major = 0, minor = 0, patch = 0;

    if (strstr(talk->refusal, "unauthenticated")) {
        doctor_find(doctor, GRADE_FAIL, "login", "memcached wants a login, and memcached:// has none");
        doctor_advise(doctor, "start it without -Y and -S, and let nobody else reach it");
        return TOOL_DENIED;
    }
    if (talk->refusal[0] || sscanf(talk->version, "%d.%d.%d", &major, &minor, &patch) != 3) {
        doctor_find(doctor, GRADE_FAIL, "server", "what answers there is no memcached 1.6 or later: %s", talk->refusal);
        doctor_advise(doctor, "look at DMUTEX_URL or dmutex.conf");
        return TOOL_UNREACHABLE;
    }
    if (major * 1000000 + minor * 1000 + patch < 1006018) {
        doctor_find(doctor, GRADE_FAIL, "server", "memcached is %s, and locks need 1.6.18 or later", talk->version);
        doctor_advise(doctor, "upgrade it");
        return TOOL_UNREACHABLE;
    }
    doctor_find(doctor, GRADE_OK, "server", "memcached %s answers", talk->version);
    return 0;
}

static void look_at_cas(struct talk *talk)
{
    if (talk->has_cas)
        return;
    doctor_find(talk->doctor, GRADE_FAIL, "cas", "memcached has no CAS numbers, and the library refuses it");
    doctor_advise(talk->doctor, "start it without -C");
    talk->doctor->facts.is_master = NO;
}

static void look_at_evictions(struct talk *talk)
{
    struct doctor *doctor = talk->doctor;

    if (talk->has_settings && !talk->evicts) {
        doctor_find(doctor, GRADE_OK, "eviction", "memcached evicts nothing (-M)");
        doctor->facts.keeps_locks = YES;
        return;
    }
    doctor_find(
        doctor, GRADE_WARN, "eviction",
        "memcached drops keys when its memory is full, %llu so far: a lock that is dropped while it is held can "
        "get a second owner",
        talk->evictions);
    doctor_advise(doctor, "start it with -M");
    doctor->facts.keeps_locks = NO;
}

static void look_at_memory(struct talk *talk)
{
    struct doctor *doctor = talk->doctor;
    enum grade grade = talk->bytes > talk->limit / 5 * 4 ? GRADE_WARN : GRADE_OK;

    doctor_find(doctor, grade, "memory", "%llu of %llu MB are used%s", (talk->bytes + 999999) / 1000000,
                (talk->limit + 999999) / 1000000,
                grade == GRADE_OK ? "" : ": when it is full, nothing can be locked, and holders lose their locks");
    if (grade != GRADE_OK)
        doctor_advise(doctor, "give it more (-m), or keep other data elsewhere");
    if (talk->item_most >= 64 * 1024)
        return;
    doctor_find(doctor, talk->item_most < 8192 ? GRADE_FAIL : GRADE_WARN, "values",
                "a lock may take %lu bytes: too few for many waiters", talk->item_most);
    doctor_advise(doctor, "start it with -I 1m");
}

int doctor_examine_memcached(struct doctor *doctor)
{
    struct talk talk = { .doctor = doctor, .stream = dm_stream_of(-1) };
    int status;

    if (!connect_to(&talk) || !ask(&talk)) {
        doctor_find(doctor, GRADE_FAIL, "server", "memcached cannot be used: %s", talk.reason);
        doctor_advise(doctor, "look at DMUTEX_URL or dmutex.conf, at the server, and at the network between");
        status = TOOL_UNREACHABLE;
    } else if ((status = tell_server(&talk)) == 0) {
        doctor->facts.is_master = doctor->facts.knows_birth = YES;
        doctor->facts.keeps_locks = UNKNOWN;
        doctor->facts.survives_power = NO;
        look_at_cas(&talk);
        look_at_evictions(&talk);
        look_at_memory(&talk);
        if (!talk.has_epoch)
            doctor_find(doctor, GRADE_OK, "epoch", "there are no locks of the prefix %s yet: the first one begins them",
                        doctor->url->prefix);
    }
    dm_bytes_free(&talk.in);
    if (talk.stream.fd >= 0)
        dm_stream_close(&talk.stream);
    return status;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/ident.h"
#include "base/log.h"
#include "redis/conn_parts.h"
#include "redis/reply.h"

#define ADDRESS_ROOM 108
#define PIECES_AT_ONCE 4
/*
 * The pause before the next try is random, up to a limit that doubles with each failure: processes that lost one server
 * do not come back in step.  A restart or a failover is over within seconds: so long the limit stays at 250 ms.  Behind
 * some 8 s of failures the limit goes on to 2 s, the usual command_timeout, so that a call sees a try.  A hold whose
 * renewal is not answered has 0.8 - 1/3 of its lease left: while the process has a hold, the limit ends at a twentieth
 * of the shortest lease, for some ten tries.
 */
#define RETRY_MIN_MS 10
#define RETRY_USUAL_MS 250
#define RETRY_MAX_MS 2000
#define FAILURES_USUAL 64   /* with that limit */
#define FAILURES_STEP 8     /* with each limit behind it */
#define FAILURES_ANSWERED 1 /* at most, where a command was answered before the connection broke */
#define RETRIES_IN_LEASE 20

/* So long a connection must be of use before the connection counts as back. */
#define USE_NS DM_NS_PER_S

/* ---- breaking ---------------------------------------------------------------------------- */

static void drop_socket(struct dm_conn *conn)
{
    if (conn->fd >= 0) {
        shutdown(conn->fd, SHUT_RDWR); /* wakes a leader that sleeps on the socket; close() alone does not */
        close(conn->fd);
    }
    conn->fd = -1;
    if (conn->reader)
        redisReaderFree(conn->reader);
    conn->reader = NULL;
    free(conn->out);
    conn->out = NULL;
    conn->out_length = 0;
}

static int64_t sooner(int64_t limit_ms, int64_t other_ms)
{
    return limit_ms < other_ms ? limit_ms : other_ms;
}

static int64_t retry_limit_ms(const struct dm_conn *conn)
{
    unsigned failures = conn->failures;
    int64_t limit_ms = sooner(RETRY_MIN_MS << sooner(failures - 1, 5), RETRY_USUAL_MS);
    int64_t lease_ms = conn->lease_ms / RETRIES_IN_LEASE;

    if (failures > FAILURES_USUAL)
        limit_ms = sooner(RETRY_USUAL_MS << sooner(1 + (failures - FAILURES_USUAL) / FAILURES_STEP, 3), RETRY_MAX_MS);
    if (conn->lease_ms)
        limit_ms = sooner(limit_ms, lease_ms > RETRY_MIN_MS ? lease_ms : RETRY_MIN_MS);
    return limit_ms;
}

/* Behind a failure.  The random part stays the same, also if the limit has changed since. */
void dm_conn_plan_retry(struct dm_conn *conn)
{
    conn->retry_ns = conn->failed_ns + retry_limit_ms(conn) * (DM_NS_PER_MS / 1000) * conn->retry_part;
}

static void note_failure(struct dm_conn *conn)
{
    uint64_t random;

    dm_ident_random(&random, 1);
    conn->retry_part = (int64_t)(random % 1000);
    conn->failed_ns = dm_clock_boot_ns();
    conn->failures++;
    dm_conn_plan_retry(conn);
}

/* A connection that answers and breaks, again and again, gets work done: quick tries pay. */
static void note_answer(struct dm_conn *conn)
{
    if (conn->failures > FAILURES_ANSWERED)
        conn->failures = FAILURES_ANSWERED;
}

/* Until then a connection that breaks again counts as never back. */
static void note_use(struct dm_conn *conn)
{
    if (conn->failures == 0 || conn->state != DM_CONN_READY || dm_clock_boot_ns() - conn->ready_ns < USE_NS)
        return;
    conn->failures = 0;
    if (conn->is_told)
        dm_log_info("the connection is back");
    conn->is_told = false;
}

void dm_conn_shut(struct dm_conn *conn, enum dm_conn_state state)
{
    struct dm_slot *slot;

    drop_socket(conn);
    if (conn->state != DM_CONN_ENDED) /* for good: in a forked child the parent owns the socket */
        conn->state = state;
    conn->is_wanted = false;
    while ((slot = dm_conn_pop_slot(conn)) != NULL)
        dm_conn_finish(conn, slot, NULL);
    dm_conn_wake_all(conn);
    conn->is_change_news = true;
}

/* Behind the server's address, which leaves at least 200 bytes for the reason. */
static void DM_PRINTF(2, 0) note_reason(struct dm_conn *conn, const char *format, va_list args)
{
    size_t used;

    dm_url_describe(conn->url, conn->reason, ADDRESS_ROOM);
    used = strlen(conn->reason);
    memcpy(conn->reason + used, ": ", 2);
    vsnprintf(conn->reason + used + 2, sizeof conn->reason - used - 2, format, args);
}

void dm_conn_note_reason(struct dm_conn *conn, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    note_reason(conn, format, args);
    va_end(args);
}

void DM_PRINTF(2, 3) dm_conn_fail(struct dm_conn *conn, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    note_reason(conn, format, args);
    va_end(args);
    if (!conn->first) /* the broken connection had no request to answer: being open was use enough */
        note_use(conn);
    if (!conn->is_told)
        dm_log_warn("the connection to %s", conn->reason);
    conn->is_told = true;
    note_failure(conn);
    dm_conn_shut(conn, DM_CONN_CLOSED);
}

/* ---- sending ----------------------------------------------------------------------------- */

static bool keep_for_later(struct dm_conn *conn, const char *bytes, size_t length)
{
    char *out = realloc(conn->out, conn->out_length + length);

    if (!out)
        return false;
    memcpy(out + conn->out_length, bytes, length);
    conn->out = out;
    conn->out_length += length;
    conn->is_change_news = true;
    return true;
}

static ssize_t send_some(struct dm_conn *conn, const char *bytes, size_t length)
{
    ssize_t sent = send(conn->fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (sent >= 0)
        return sent;
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

/* Bytes that the kernel does not take belong to the connection; nothing overtakes the bytes. */
bool dm_conn_write(struct dm_conn *conn, const char *bytes, size_t length)
{
    ssize_t sent = conn->out_length ? 0 : send_some(conn, bytes, length);

    if (sent < 0)
        return false;
    if ((size_t)sent == length)
        return true;
    return keep_for_later(conn, bytes + sent, length - (size_t)sent);
}

void dm_conn_flush(struct dm_conn *conn)
{
    ssize_t sent;

    if (conn->out_length == 0)
        return;
    sent = send_some(conn, conn->out, conn->out_length);
    if (sent < 0) {
        dm_conn_fail(conn, "broke while sending (%s)", strerror(errno));
        return;
    }
    conn->out_length -= (size_t)sent;
    memmove(conn->out, conn->out + sent, conn->out_length);
}

/* Sends on an open connection and takes a slot for the reply; NULL if the connection broke. */
struct dm_slot *dm_conn_send(struct dm_conn *conn, const char *bytes, size_t length)
{
    struct dm_slot *slot;

    dm_conn_look_if_due(conn);
    if (conn->fd < 0)
        return NULL;
    slot = dm_conn_take_slot(conn);
    if (!slot) {
        dm_conn_fail(conn, "cannot be used (out of memory)");
        return NULL;
    }
    if (!dm_conn_write(conn, bytes, length)) {
        dm_conn_spare_slot(conn, slot);
        dm_conn_fail(conn, "broke while sending (%s)", strerror(errno));
        return NULL;
    }
    slot->sent_ns = dm_clock_boot_ns();
    dm_conn_push_slot(conn, slot);
    return slot;
}

/* ---- reading ----------------------------------------------------------------------------- */

/* Takes a message that an inbox gets unasked. */
static void take_message(struct dm_conn *conn, redisReply *reply)
{
    struct dm_slot *slot = dm_conn_take_slot(conn);

    if (!slot) {
        freeReplyObject(reply);
        dm_conn_fail(conn, "lost a message (out of memory)");
        return;
    }
    note_answer(conn);
    slot->is_message = true;
    slot->server = conn->server;
    dm_conn_finish_later(conn, slot, reply);
}

static void take_greeting(struct dm_conn *conn, struct dm_slot *slot, redisReply *reply)
{
    char reason[DM_REASON_ROOM];
    bool is_good = dm_greeting_take(&conn->greeting, reply, reason);

    freeReplyObject(reply);
    dm_conn_spare_slot(conn, slot);
    if (!is_good)
        dm_conn_fail(conn, "%s", reason);
    else if (dm_greeting_is_round_over(&conn->greeting))
        dm_conn_greet(conn);
}

static void take_reply(struct dm_conn *conn, redisReply *reply)
{
    struct dm_slot *slot;

    conn->activity++;
    note_use(conn);
    if (conn->greeting.inbox && conn->state == DM_CONN_READY) {
        take_message(conn, reply);
        return;
    }
    slot = dm_conn_pop_slot(conn);
    if (!slot) {
        freeReplyObject(reply);
        dm_conn_fail(conn, "sent a reply to nothing: is this a Redis server?");
    } else if (slot->is_greeting) {
        take_greeting(conn, slot, reply);
    } else if (slot->is_look) {
        dm_conn_spare_slot(conn, slot);
        dm_conn_take_look(conn, reply);
    } else {
        note_answer(conn);
        dm_conn_finish(conn, slot, reply);
    }
}

static void parse(struct dm_conn *conn)
{
    void *reply = NULL;

    while (conn->reader) {
        if (!dm_reply_reader_next(conn->reader, &reply)) {
            dm_conn_fail(conn, "sent nonsense: is this a Redis server?");
            return;
        }
        if (!reply)
            return;
        take_reply(conn, reply);
    }
}

static ssize_t read_some(struct dm_conn *conn)
{
    ssize_t got = recv(conn->fd, conn->in, sizeof conn->in, MSG_DONTWAIT);

    if (got == 0)
        dm_conn_fail(conn, "was closed by the server");
    else if (got < 0 && errno != EAGAIN && errno != EINTR)
        dm_conn_fail(conn, "broke (%s)", strerror(errno));
    else if (got > 0 && !dm_reply_reader_feed(conn->reader, conn->in, (size_t)got))
        dm_conn_fail(conn, "sent a reply without end: is this a Redis server?");
    else if (got > 0)
        parse(conn);
    return got;
}

/*
 * Reads the bytes that are there, but no more than some pieces: handlers, deadlines and the other connection have their
 * turn before the rest, also if the server never stops talking.
 */
void dm_conn_read(struct dm_conn *conn)
{
    for (int piece = 0; piece < PIECES_AT_ONCE && conn->fd >= 0; piece++) {
        if (read_some(conn) < (ssize_t)sizeof conn->in)
            return;
    }
}

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
#define RETRY_MIN_MS 10
#define RETRY_MAX_MS 250 /* a short lease leaves little time to come back */

/* ---- breaking ---------------------------------------------------------------------------- */

static void drop_socket(struct dm_conn *conn)
{
    if (conn->fd >= 0) {
        shutdown(conn->fd, SHUT_RDWR); /* wakes a leader that sleeps on it; close() alone does not */
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

/* Full jitter keeps processes that lost one server from coming back in step. */
static int64_t retry_after(unsigned failures)
{
    int64_t limit_ms = RETRY_MIN_MS << (failures < 7 ? failures : 7);
    uint64_t random;

    if (limit_ms > RETRY_MAX_MS)
        limit_ms = RETRY_MAX_MS;
    dm_ident_random(&random, 1);
    return limit_ms * DM_NS_PER_MS / 2 + (int64_t)(random % (uint64_t)(limit_ms * DM_NS_PER_MS / 2));
}

void dm_conn_shut(struct dm_conn *conn, enum dm_conn_state state)
{
    struct dm_slot *slot;

    drop_socket(conn);
    if (conn->state != DM_CONN_ENDED) /* for good: in a forked child it is the parent's */
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
    if (conn->failures == 0)
        dm_log_warn("the connection to %s", conn->reason);
    conn->retry_ns = dm_clock_boot_ns() + retry_after(conn->failures++);
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

/* What the kernel does not take belongs to the connection; nothing overtakes it. */
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
    struct dm_slot *slot = dm_conn_take_slot(conn);

    if (!slot) {
        dm_conn_fail(conn, "cannot be used (out of memory)");
        return NULL;
    }
    if (!dm_conn_write(conn, bytes, length)) {
        dm_conn_spare_slot(conn, slot);
        dm_conn_fail(conn, "broke while sending (%s)", strerror(errno));
        return NULL;
    }
    slot->bytes = length;
    slot->sent_ns = dm_clock_boot_ns();
    dm_conn_push_slot(conn, slot);
    return slot;
}

/* ---- reading ----------------------------------------------------------------------------- */

/* What comes unasked on an inbox. */
static void take_message(struct dm_conn *conn, redisReply *reply)
{
    struct dm_slot *slot = dm_conn_take_slot(conn);

    if (!slot) {
        freeReplyObject(reply);
        dm_conn_fail(conn, "lost a message (out of memory)");
        return;
    }
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
    } else {
        dm_conn_finish(conn, slot, reply);
    }
}

static void parse(struct dm_conn *conn)
{
    void *reply = NULL;

    while (conn->reader) {
        if (redisReaderGetReply(conn->reader, &reply) != REDIS_OK || !dm_reply_reader_is_sane(conn->reader)) {
            dm_conn_fail(conn, "sent nonsense: is this a Redis server?");
            return;
        }
        if (!reply)
            return;
        take_reply(conn, reply);
    }
}

void dm_conn_read(struct dm_conn *conn)
{
    ssize_t got;

    do {
        got = recv(conn->fd, conn->in, sizeof conn->in, MSG_DONTWAIT);
        if (got == 0) {
            dm_conn_fail(conn, "was closed by the server");
        } else if (got > 0) {
            redisReaderFeed(conn->reader, conn->in, (size_t)got);
            parse(conn);
        } else if (errno != EAGAIN && errno != EINTR) {
            dm_conn_fail(conn, "broke (%s)", strerror(errno));
        }
    } while (got == (ssize_t)sizeof conn->in && conn->fd >= 0);
}

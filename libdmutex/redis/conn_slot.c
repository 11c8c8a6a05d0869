/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/descriptor.h"
#include "redis/conn_parts.h"
#include "redis/reply.h"

struct dm_slot *dm_conn_take_slot(struct dm_conn *conn)
{
    struct dm_slot *slot = conn->spare;

    if (!slot)
        return calloc(1, sizeof *slot);
    conn->spare = slot->next;
    memset(slot, 0, sizeof *slot);
    return slot;
}

void dm_conn_spare_slot(struct dm_conn *conn, struct dm_slot *slot)
{
    slot->next = conn->spare;
    conn->spare = slot;
}

void dm_conn_push_slot(struct dm_conn *conn, struct dm_slot *slot)
{
    slot->next = NULL;
    if (conn->last)
        conn->last->next = slot;
    else
        conn->first = slot;
    conn->last = slot;
    conn->pushed++;
}

struct dm_slot *dm_conn_pop_slot(struct dm_conn *conn)
{
    struct dm_slot *slot = conn->first;

    if (!slot)
        return NULL;
    conn->first = slot->next;
    if (!conn->first)
        conn->last = NULL;
    conn->popped++;
    return slot;
}

void dm_conn_finish_later(struct dm_conn *conn, struct dm_slot *slot, redisReply *reply)
{
    slot->reply = reply;
    slot->next = NULL;
    *conn->finished_end = slot;
    conn->finished_end = &slot->next;
}

void dm_conn_note_sleep(struct dm_conn *conn, struct dm_call *call, bool is_asleep)
{
    conn->asleep = conn->asleep - call->is_asleep + is_asleep;
    call->is_asleep = is_asleep;
}

/* A follower sleeps on the thread's semaphore; the leader in ppoll(), if another thread has read the reply. */
void dm_conn_wake(struct dm_conn *conn, struct dm_call *call)
{
    if (call == conn->leader)
        dm_bell_ring(&conn->leader_bell);
    if (call->is_asleep) {
        dm_conn_note_sleep(conn, call, false);
        dm_self_wake(call->self);
    }
}

void dm_conn_wake_all(struct dm_conn *conn)
{
    for (struct dm_call *call = conn->calls; call; call = call->next)
        dm_conn_wake(conn, call);
}

static void wake_drained(struct dm_conn *conn)
{
    for (struct dm_call *call = conn->draining ? conn->calls : NULL; call; call = call->next) {
        if (call->drains && conn->popped >= call->drains)
            dm_conn_wake(conn, call);
    }
}

void dm_conn_finish(struct dm_conn *conn, struct dm_slot *slot, redisReply *reply)
{
    struct dm_call *call = slot->call;

    wake_drained(conn);
    if (slot->handler) {
        dm_conn_finish_later(conn, slot, reply);
        return;
    }
    if (call) {
        call->reply = reply;
        call->result = reply ? DM_CONN_OK : DM_CONN_BROKEN;
        call->is_done = true;
        dm_conn_wake(conn, call);
    } else if (reply) {
        freeReplyObject(reply);
    }
    dm_conn_spare_slot(conn, slot);
}

/* ---- lock -------------------------------------------------------------------------------- */

void dm_conn_enter(struct dm_conn *conn)
{
    dm_mutex_lock(&conn->lock);
}

bool dm_conn_has_news(const struct dm_conn *conn)
{
    return conn->finished || conn->is_ready_news || conn->is_change_news;
}

static void call_back(struct dm_conn *conn, const struct dm_slot *slot)
{
    const redisReply *reply = slot->reply;

    if (!slot->is_message)
        slot->handler(slot->user, reply);
    else if (reply->elements == 3 && dm_reply_is(reply, "message") && reply->element[2]->type == REDIS_REPLY_STRING)
        conn->hooks.on_message(conn->hooks.user, reply->element[2]->str, &slot->server);
}

/* Unlocks, then calls the handlers of slots that have finished meanwhile. */
void dm_conn_leave(struct dm_conn *conn)
{
    struct dm_slot *finished = conn->finished;
    bool is_ready_news = conn->is_ready_news, is_change_news = conn->is_change_news;

    conn->finished = NULL;
    conn->finished_end = &conn->finished;
    conn->is_ready_news = conn->is_change_news = false;
    dm_mutex_unlock(&conn->lock);
    while (finished) {
        struct dm_slot *slot = finished;

        finished = slot->next;
        call_back(conn, slot);
        if (slot->reply)
            freeReplyObject(slot->reply);
        free(slot);
    }
    if (is_ready_news && conn->hooks.on_ready)
        conn->hooks.on_ready(conn->hooks.user);
    if (is_change_news && conn->hooks.on_change)
        conn->hooks.on_change(conn->hooks.user);
}

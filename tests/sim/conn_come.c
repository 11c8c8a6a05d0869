/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn_parts.h"

#include <stdlib.h>
#include <string.h>

#define KEEPALIVE_NS (3000 * MS) /* then a silent peer is noticed; the real connection takes 11 s */

/* ---- questions to a greeter -------------------------------------------------------------- */

/* One for all links, because no greeter asks another. */
static struct dm_mutex asking = DM_MUTEX_INITIALIZER(DM_RANK_CONN);

void conn_begin_asking(void)
{
    dm_mutex_lock(&asking);
}

void conn_end_asking(void)
{
    dm_mutex_unlock(&asking);
}

/* ---- the beginning ----------------------------------------------------------------------- */

static void greet(struct dm_link *conn)
{
    struct dm_command round;

    if (conn->state != GREETING)
        dm_identify_begin(&conn->identify, dm_clock_boot_ns());
    conn->state = GREETING;
    conn_begin_asking();
    conn->greetings = conn->greeter.round(conn->greeter.user, &round);
    if (conn->greetings == 0)
        conn->peer = conn->greeter.ready(conn->greeter.user);
    conn_end_asking();
    if (conn->greetings == 0) {
        conn->state = READY;
        conn->traffic.reconnects += conn->was_ready;
        conn->was_ready = true;
        conn->back_off_ns = 0;
        conn->is_ready_news = conn->is_change_news = true;
        world_note("p%d %s ready", conn->process->number, conn->options.is_listening ? "inbox" : "commands");
        conn_wake_waiting(conn);
        return;
    }
    net_send(conn->link, TO_SERVER, round.bytes, round.length);
    dm_command_free(&round);
    for (int i = 0; i < conn->greetings; i++)
        conn_push(conn, 0)->is_greeting = true;
}

/* False: the server's address is not known now. */
static bool locate(struct dm_link *conn)
{
    enum dm_located located = DM_LOCATED;
    char reason[DM_REASON_ROOM];

    conn_begin_asking();
    if (conn->greeter.locate)
        located = conn->greeter.locate(conn->greeter.user, &conn->options, reason);
    conn_end_asking();
    if (located == DM_LOCATED)
        return true;
    conn_fail(conn, reason);
    conn->is_wanted = true; /* tries again */
    return false;
}

int conn_server(const struct dm_link *conn)
{
    return conn->options.address.port ? atoi(conn->options.address.port) - 1 : 0;
}

void conn_open_if_due(struct dm_link *conn)
{
    if (conn->state != CLOSED || !conn->is_wanted || dm_clock_boot_ns() < conn->retry_ns || !locate(conn))
        return;
    conn->state = CONNECTING;
    conn->deadline_ns = dm_clock_boot_ns() + conn->options.connect_timeout_ms * DM_NS_PER_MS;
    dm_reader_begin(&conn->reader);
    conn_begin_asking();
    conn->greeter.begin(conn->greeter.user);
    conn_end_asking();
    conn->link = net_connect(conn, conn_server(conn));
}

/* ---- time -------------------------------------------------------------------------------- */

int64_t conn_due_ns(const struct dm_link *conn)
{
    switch (conn->state) {
    case CLOSED:
        return conn->is_wanted ? conn->retry_ns : DM_NEVER;
    case CONNECTING:
    case GREETING:
        return conn->deadline_ns;
    case READY:
        break;
    }
    if (conn->options.is_listening)
        return conn->link->is_black ? conn->heard_ns + KEEPALIVE_NS : DM_NEVER;
    return conn->first ? conn->first->sent_ns + conn->options.command_timeout_ms * DM_NS_PER_MS : DM_NEVER;
}

void conn_check_time(struct dm_link *conn)
{
    if (conn->state == CLOSED || dm_clock_boot_ns() < conn_due_ns(conn))
        return;
    conn_fail(conn, conn->state == READY ? "gave no answer in time" : "could not be opened in time");
}

static void time_comes(void *object, uint64_t number)
{
    struct dm_link *conn = object;

    (void)number;
    conn->planned_ns = DM_NEVER;
    conn_look(conn);
}

void conn_plan(struct dm_link *conn)
{
    int64_t due = conn_due_ns(conn);

    if (due == DM_NEVER || (conn->planned_ns != DM_NEVER && conn->planned_ns <= due))
        return;
    conn->planned_ns = due;
    world_at(process_true_ns(conn->process, due), time_comes, conn, 0);
}

/* ---- arrivals ---------------------------------------------------------------------------- */

/* An arrival; waits in the kernel of the process while the process is stopped. */
struct lying {
    struct link *link;
    enum { BYTES, CONNECTED, BROKEN } what;
    size_t length;
    char bytes[];
};

static void take_greeting(struct dm_link *conn, redisReply *reply)
{
    char reason[DM_REASON_ROOM];
    bool is_good;

    conn_begin_asking();
    is_good = conn->greeter.take(conn->greeter.user, reply, reason);
    conn_end_asking();
    dm_reply_free(reply);
    if (!is_good)
        conn_fail(conn, reason);
    else if (--conn->greetings == 0)
        greet(conn);
}

/* False closes the link: the server may have been replaced. */
static bool is_believed(struct dm_link *conn)
{
    const struct dm_belief *belief = conn->greeter.belief;
    char reason[DM_REASON_ROOM];
    bool may_believe;

    if (conn->state != READY || !belief)
        return true;
    conn_begin_asking();
    may_believe = belief->may_believe(conn->greeter.user, conn->first && conn->first->is_for_any, reason);
    conn_end_asking();
    if (!may_believe)
        conn_fail(conn, reason);
    return conn->state == READY;
}

static void take_reply(struct dm_link *conn, redisReply *reply)
{
    struct slot *slot;

    if (!is_believed(conn)) {
        dm_reply_free(reply);
        return;
    }
    if (conn->options.is_listening && conn->state == READY) {
        slot = world_new(sizeof *slot);
        slot->is_message = true;
        conn->traffic.messages++;
        slot->peer = conn->peer;
        slot->reply = reply;
        conn_finish_later(conn, slot);
        return;
    }
    slot = conn_pop(conn);
    if (!slot) {
        dm_reply_free(reply);
        world_break("a reply to nothing");
    } else if (slot->is_greeting) {
        take_greeting(conn, reply);
    } else if (slot->is_confirm) {
        conn_take_confirm(conn, reply);
    } else if (slot->is_check) {
        conn_take_identity(conn, reply, slot->sent_ns);
    } else if (conn->greeter.belief && conn->greeter.belief->confirm) {
        conn_keep(conn, slot, reply);
    } else {
        conn_finish(conn, slot, reply);
    }
}

static void expect(struct dm_link *conn)
{
    dm_reader_expect(&conn->reader, conn->first ? conn->first->summary : NULL);
}

static void take_bytes(struct dm_link *conn, const char *bytes, size_t length)
{
    redisReply *reply;

    conn->heard_ns = dm_clock_boot_ns();
    expect(conn);
    dm_reader_feed(&conn->reader, bytes, length);
    while (dm_reader_next(&conn->reader, &reply) && reply) {
        take_reply(conn, reply);
        if (!conn->reader.hiredis)
            return;
        expect(conn);
    }
}

static void take(struct dm_link *conn, const struct lying *lying)
{
    if (conn->link != lying->link)
        return;
    if (lying->what == CONNECTED)
        greet(conn);
    else if (lying->what == BROKEN)
        conn_fail(conn, "was closed by the server");
    else
        take_bytes(conn, lying->bytes, lying->length);
}

static void look_locked(struct dm_link *conn)
{
    conn_open_if_due(conn);
    conn_check_time(conn);
    conn_leave(conn);
    conn_plan(conn);
}

static void arrive(struct dm_link *conn, const struct lying *lying)
{
    struct process *before = process_enter(conn->process);

    take(conn, lying);
    look_locked(conn);
    process_leave(before);
}

static void arrive_now(void *object, uint64_t number)
{
    struct lying *lying = object;

    (void)number;
    arrive(lying->link->conn, lying);
}

static void receive(struct dm_link *conn, struct link *link, int what, const char *bytes, size_t length)
{
    struct lying *lying;

    if (!conn->process->is_alive || conn->link != link)
        return;
    lying = world_new(sizeof *lying + length);
    lying->link = link;
    lying->what = what;
    lying->length = length;
    if (length)
        memcpy(lying->bytes, bytes, length);
    process_deliver(conn->process, arrive_now, lying);
}

void conn_connected(struct dm_link *conn, struct link *link)
{
    receive(conn, link, CONNECTED, NULL, 0);
}

void conn_bytes(struct dm_link *conn, struct link *link, const char *bytes, size_t length)
{
    receive(conn, link, BYTES, bytes, length);
}

void conn_closed(struct dm_link *conn, struct link *link)
{
    receive(conn, link, BROKEN, NULL, 0);
}

void conn_look(struct dm_link *conn)
{
    struct process *before;

    if (!conn->process->is_alive || conn->process->is_stopped)
        return;
    before = process_enter(conn->process);
    look_locked(conn);
    process_leave(before);
}

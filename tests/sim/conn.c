/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's redis/conn.h on the simulated network.  As the real one: slots in the order of the
 * bytes, the greeting (the real redis/greeting.c), timeouts and back-off, handlers called without
 * locks, real parsing of replies.  Left out: leaders and followers, for bytes are read here when they
 * come.
 */
#include "redis/conn.h"

#include <hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fiber.h"
#include "net.h"
#include "process.h"
#include "redis/reply.h"
#include "world.h"

#define RETRY_MIN_NS (10 * MS)
#define RETRY_MAX_NS (250 * MS)
#define KEEPALIVE_NS (3000 * MS) /* a silent peer is noticed; the real one takes 11 s */
#define UNANSWERED_MAX (16 * 1024)

enum state { CLOSED, CONNECTING, GREETING, READY };

/* A reply that is awaited: by a thread, a handler, or the greeting. */
struct slot {
    struct slot *next;
    struct thread *caller; /* NULL: it has left, or there is none */
    dm_reply_fn handler;
    void *user;
    bool is_greeting, is_message;
    bool is_done, is_broken;
    size_t bytes;
    int64_t sent_ns;
    redisReply *reply;
};

struct dm_conn {
    struct process *process;
    struct dm_url *url;
    struct dm_conn_hooks hooks;
    char channel[80];
    struct dm_greeting greeting;
    enum state state;
    struct link *link;
    redisReader *reader;
    struct slot *first, **last;       /* not answered */
    struct slot *finished, **finished_last; /* whose handlers are to be called */
    struct thread *waiting[64];       /* for it to become ready */
    int waiting_count;
    size_t unanswered;
    uint64_t pushed, popped;
    bool is_wanted, was_wanted, is_ready_news, is_change_news;
    int64_t deadline_ns, retry_ns, back_off_ns, heard_ns, planned_ns;
    uint64_t server, born_us; /* which server it is, as the real one counts them */
    char reason[DM_REASON_ROOM];
};

struct dm_conn *dm_conn_new(struct dm_url *url, const char *inbox, const struct dm_conn_hooks *hooks)
{
    struct dm_conn *conn = world_new(sizeof *conn);

    conn->process = process_current();
    conn->url = url;
    conn->hooks = *hooks;
    conn->greeting.url = url;
    conn->last = &conn->first;
    conn->finished_last = &conn->finished;
    conn->planned_ns = DM_NEVER;
    conn->server = 1;
    if (inbox) {
        snprintf(conn->channel, sizeof conn->channel, "%s", inbox);
        conn->greeting.inbox = conn->channel;
    }
    return conn;
}

struct link *conn_link(struct dm_conn *conn)
{
    return conn->link;
}

/* ---- slots ------------------------------------------------------------------------------- */

static struct slot *push_slot(struct dm_conn *conn, size_t bytes)
{
    struct slot *slot = world_new(sizeof *slot);

    slot->bytes = bytes;
    slot->sent_ns = dm_clock_boot_ns();
    *conn->last = slot;
    conn->last = &slot->next;
    conn->unanswered += bytes;
    conn->pushed++;
    return slot;
}

static struct slot *pop_slot(struct dm_conn *conn)
{
    struct slot *slot = conn->first;

    if (!slot)
        return NULL;
    conn->first = slot->next;
    if (!conn->first)
        conn->last = &conn->first;
    conn->unanswered -= slot->bytes;
    conn->popped++;
    slot->next = NULL;
    return slot;
}

static void finish_later(struct dm_conn *conn, struct slot *slot)
{
    *conn->finished_last = slot;
    conn->finished_last = &slot->next;
}

static void finish(struct dm_conn *conn, struct slot *slot, redisReply *reply)
{
    slot->reply = reply;
    slot->is_done = true;
    slot->is_broken = !reply;
    if (slot->handler)
        finish_later(conn, slot);
    else if (slot->caller)
        thread_wake(slot->caller);
    else if (reply)
        freeReplyObject(reply);
}

static void wake_waiting(struct dm_conn *conn)
{
    while (conn->waiting_count > 0)
        thread_wake(conn->waiting[--conn->waiting_count]);
}

static void call_handler(struct dm_conn *conn, struct slot *slot)
{
    if (slot->is_message) {
        if (slot->reply->elements == 3 && dm_reply_is(slot->reply, "message"))
            conn->hooks.on_message(conn->hooks.user, slot->reply->element[2]->str);
    } else if (slot->handler) {
        slot->handler(slot->user, slot->reply);
    }
    if (slot->reply)
        freeReplyObject(slot->reply);
    slot->reply = NULL;
}

/* Calls what there is to call; no lock is held. */
static void leave(struct dm_conn *conn)
{
    while (conn->finished || conn->is_ready_news || conn->is_change_news) {
        struct slot *slot = conn->finished;

        if (slot) {
            conn->finished = slot->next;
            if (!conn->finished)
                conn->finished_last = &conn->finished;
            call_handler(conn, slot);
        } else if (conn->is_ready_news) {
            conn->is_ready_news = false;
            conn->hooks.on_ready(conn->hooks.user);
        } else {
            conn->is_change_news = false;
            conn->hooks.on_change(conn->hooks.user);
        }
    }
}

/* ---- the end of a connection ------------------------------------------------------------- */

static void fail(struct dm_conn *conn, const char *reason)
{
    struct slot *slot;

    if (conn->link && !conn->link->is_shut_by_client)
        net_shut(conn->link);
    if (conn->reader)
        redisReaderFree(conn->reader);
    conn->reader = NULL;
    conn->link = NULL;
    conn->state = CLOSED;
    conn->is_wanted = false;
    conn->back_off_ns = conn->back_off_ns ? conn->back_off_ns * 2 : RETRY_MIN_NS;
    if (conn->back_off_ns > RETRY_MAX_NS)
        conn->back_off_ns = RETRY_MAX_NS;
    conn->retry_ns = dm_clock_boot_ns() + conn->back_off_ns / 2 +
                     chance_below(CHANCE_THREADS, (uint32_t)(conn->back_off_ns / 2 / 1000)) * DM_NS_PER_US;
    snprintf(conn->reason, sizeof conn->reason, "%s", reason);
    conn->is_change_news = true;
    world_note("p%d %s fails: %s", conn->process->number, conn->channel[0] ? "inbox" : "commands", reason);
    while ((slot = pop_slot(conn)) != NULL)
        finish(conn, slot, NULL);
    wake_waiting(conn);
}

void conn_forget(struct dm_conn *conn)
{
    if (conn->link && !conn->link->is_shut_by_client)
        net_shut(conn->link);
    if (conn->reader)
        redisReaderFree(conn->reader);
    for (struct slot *slot = conn->finished; slot; slot = slot->next) {
        if (slot->reply)
            freeReplyObject(slot->reply);
        free(slot->user); /* of the schedule: one block each */
    }
    for (struct slot *slot = conn->first; slot; slot = slot->next)
        free(slot->user);
    conn->first = conn->finished = NULL;
    conn->reader = NULL;
    conn->link = NULL;
    conn->state = CLOSED;
}

/* ---- the beginning ----------------------------------------------------------------------- */

static void note_server(struct dm_conn *conn)
{
    if (conn->server > 1 && conn->greeting.born_us == conn->born_us)
        return;
    conn->born_us = conn->greeting.born_us;
    conn->server++;
}

static void greet(struct dm_conn *conn)
{
    struct dm_command round = dm_greeting_round(&conn->greeting);

    conn->state = GREETING;
    if (conn->greeting.step_count == 0) {
        note_server(conn);
        conn->state = READY;
        conn->back_off_ns = 0;
        conn->is_ready_news = conn->is_change_news = true;
        world_note("p%d %s ready", conn->process->number, conn->channel[0] ? "inbox" : "commands");
        wake_waiting(conn);
        return;
    }
    net_send(conn->link, TO_SERVER, round.bytes, round.length);
    free(round.bytes);
    for (int i = 0; i < conn->greeting.step_count; i++)
        push_slot(conn, 0)->is_greeting = true;
}

static void open_if_due(struct dm_conn *conn)
{
    if (conn->state != CLOSED || !conn->is_wanted || dm_clock_boot_ns() < conn->retry_ns)
        return;
    conn->state = CONNECTING;
    conn->deadline_ns = dm_clock_boot_ns() + conn->url->connect_timeout_ms * DM_NS_PER_MS;
    conn->reader = dm_reply_reader_new();
    dm_greeting_begin(&conn->greeting);
    conn->link = net_connect(conn);
}

/* ---- time -------------------------------------------------------------------------------- */

static int64_t due_ns(const struct dm_conn *conn)
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
    if (conn->channel[0])
        return conn->link->is_black ? conn->heard_ns + KEEPALIVE_NS : DM_NEVER;
    return conn->first ? conn->first->sent_ns + conn->url->command_timeout_ms * DM_NS_PER_MS : DM_NEVER;
}

static void check_time(struct dm_conn *conn)
{
    if (conn->state == CLOSED || dm_clock_boot_ns() < due_ns(conn))
        return;
    fail(conn, conn->state == READY ? "gave no answer in time" : "could not be opened in time");
}

static void time_comes(void *object, uint64_t number)
{
    struct dm_conn *conn = object;

    (void)number;
    conn->planned_ns = DM_NEVER;
    conn_look(conn);
}

static void plan(struct dm_conn *conn)
{
    int64_t due = due_ns(conn);

    if (due == DM_NEVER || (conn->planned_ns != DM_NEVER && conn->planned_ns <= due))
        return;
    conn->planned_ns = due;
    world_at(process_true_ns(conn->process, due), time_comes, conn, 0);
}

/* ---- what comes -------------------------------------------------------------------------- */

/* Bytes that came while the process was stopped lie in its kernel. */
struct lying {
    struct link *link;
    enum { BYTES, CONNECTED, BROKEN } what;
    size_t length;
    char bytes[];
};

static void take_greeting(struct dm_conn *conn, redisReply *reply)
{
    char reason[DM_REASON_ROOM];
    bool is_good = dm_greeting_take(&conn->greeting, reply, reason);

    freeReplyObject(reply);
    if (!is_good)
        fail(conn, reason);
    else if (dm_greeting_is_round_over(&conn->greeting))
        greet(conn);
}

static void take_reply(struct dm_conn *conn, redisReply *reply)
{
    struct slot *slot;

    if (conn->channel[0] && conn->state == READY) {
        slot = world_new(sizeof *slot);
        slot->is_message = true;
        slot->reply = reply;
        finish_later(conn, slot);
        return;
    }
    slot = pop_slot(conn);
    if (!slot) {
        freeReplyObject(reply);
        world_break("a reply to nothing");
    } else if (slot->is_greeting) {
        take_greeting(conn, reply);
    } else {
        finish(conn, slot, reply);
    }
}

static void take_bytes(struct dm_conn *conn, const char *bytes, size_t length)
{
    void *reply = NULL;

    conn->heard_ns = dm_clock_boot_ns();
    redisReaderFeed(conn->reader, bytes, length);
    while (conn->reader && redisReaderGetReply(conn->reader, &reply) == REDIS_OK && reply)
        take_reply(conn, reply);
}

static void take(struct dm_conn *conn, const struct lying *lying)
{
    if (conn->link != lying->link)
        return;
    if (lying->what == CONNECTED)
        greet(conn);
    else if (lying->what == BROKEN)
        fail(conn, "was closed by the server");
    else
        take_bytes(conn, lying->bytes, lying->length);
}

static void look_locked(struct dm_conn *conn)
{
    open_if_due(conn);
    check_time(conn);
    leave(conn);
    plan(conn);
}

static void arrive(struct dm_conn *conn, const struct lying *lying)
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

static void receive(struct dm_conn *conn, struct link *link, int what, const char *bytes, size_t length)
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

void conn_connected(struct dm_conn *conn, struct link *link)
{
    receive(conn, link, CONNECTED, NULL, 0);
}

void conn_bytes(struct dm_conn *conn, struct link *link, const char *bytes, size_t length)
{
    receive(conn, link, BYTES, bytes, length);
}

void conn_closed(struct dm_conn *conn, struct link *link)
{
    receive(conn, link, BROKEN, NULL, 0);
}

void conn_look(struct dm_conn *conn)
{
    struct process *before;

    if (!conn->process->is_alive || conn->process->is_stopped)
        return;
    before = process_enter(conn->process);
    look_locked(conn);
    process_leave(before);
}

/* ---- the library's calls ----------------------------------------------------------------- */

static void await_ready(struct dm_conn *conn, int64_t until_ns)
{
    conn->is_wanted = conn->was_wanted = true;
    open_if_due(conn);
    leave(conn);
    plan(conn);
    if (conn->state == READY)
        return;
    if (conn->waiting_count == 64)
        abort();
    conn->waiting[conn->waiting_count++] = thread_current();
    if (due_ns(conn) < until_ns)
        until_ns = due_ns(conn);
    thread_wait(until_ns);
    for (int i = 0; i < conn->waiting_count; i++) {
        if (conn->waiting[i] == thread_current())
            conn->waiting[i--] = conn->waiting[--conn->waiting_count];
    }
    check_time(conn);
}

static int64_t deadline_ns(const struct dm_deadline *deadline)
{
    int64_t left = dm_deadline_left_ns(deadline);

    return left == DM_NEVER ? DM_NEVER : dm_clock_boot_ns() + left;
}

static bool is_for_server(const struct dm_conn *conn, const struct dm_command *command)
{
    return command->server == 0 || command->server == conn->server;
}

uint64_t dm_conn_server(struct dm_conn *conn, uint64_t *ret_born_us)
{
    *ret_born_us = conn->born_us;
    return conn->server;
}

static struct slot *send_command(struct dm_conn *conn, const struct dm_command *command)
{
    net_send(conn->link, TO_SERVER, command->bytes, command->length);
    return push_slot(conn, command->length);
}

enum dm_conn_result dm_conn_call(struct dm_conn *conn, const struct dm_command *command,
                                 const struct dm_deadline *deadline, redisReply **ret_reply)
{
    struct slot *slot = NULL;

    check_no_lock("dm_conn_call");
    thread_preempt();
    while (!slot || !slot->is_done) {
        if (!slot && conn->state == READY && !is_for_server(conn, command))
            return DM_CONN_OTHER;
        if (!slot && conn->state == READY) {
            slot = send_command(conn, command);
            slot->caller = thread_current();
            plan(conn);
        }
        if (dm_deadline_left_ns(deadline) == 0)
            break;
        if (slot)
            thread_wait(deadline_ns(deadline));
        else
            await_ready(conn, deadline_ns(deadline));
    }
    leave(conn);
    if (slot && !slot->is_done) {
        slot->caller = NULL;
        return DM_CONN_LATE;
    }
    if (!slot)
        return DM_CONN_LATE;
    *ret_reply = slot->reply;
    return slot->is_broken ? DM_CONN_BROKEN : DM_CONN_OK;
}

enum dm_conn_result dm_conn_post_quietly(struct dm_conn *conn, const struct dm_command *command, dm_reply_fn handler,
                                         void *user)
{
    size_t before = conn->unanswered;
    struct slot *slot;

    if (conn->state != READY)
        return DM_CONN_DOWN;
    if (!is_for_server(conn, command))
        return DM_CONN_OTHER;
    slot = send_command(conn, command);
    slot->handler = handler;
    slot->user = user;
    plan(conn);
    return before <= UNANSWERED_MAX ? DM_CONN_OK : DM_CONN_LATE;
}

enum dm_conn_result dm_conn_post(struct dm_conn *conn, const struct dm_command *command, dm_reply_fn handler,
                                 void *user)
{
    enum dm_conn_result result;

    check_no_lock("dm_conn_post");
    thread_preempt();
    result = dm_conn_post_quietly(conn, command, handler, user);
    leave(conn);
    return result;
}

void dm_conn_want(struct dm_conn *conn)
{
    conn->is_wanted = conn->was_wanted = true;
    open_if_due(conn);
    conn->is_change_news = true;
    leave(conn);
    plan(conn);
}

void dm_conn_distrust(struct dm_conn *conn, const char *reason)
{
    if (conn->state == READY)
        fail(conn, reason);
    leave(conn);
}

bool dm_conn_is_ready(struct dm_conn *conn)
{
    return conn->state == READY;
}

bool dm_conn_await_ready(struct dm_conn *conn, const struct dm_deadline *deadline)
{
    check_no_lock("dm_conn_await_ready");
    while (conn->state != READY && dm_deadline_left_ns(deadline) > 0)
        await_ready(conn, deadline_ns(deadline));
    return conn->state == READY;
}

/* What was sent before the call; looks now and then. */
bool dm_conn_drain(struct dm_conn *conn, const struct dm_deadline *deadline)
{
    uint64_t all = conn->pushed;

    check_no_lock("dm_conn_drain");
    while (conn->popped < all && dm_deadline_left_ns(deadline) > 0)
        thread_pass(MS);
    return conn->popped >= all && conn->state == READY;
}

void dm_conn_reason(struct dm_conn *conn, char ret_reason[DM_REASON_ROOM])
{
    memcpy(ret_reason, conn->reason, DM_REASON_ROOM);
}

void dm_conn_watch(struct dm_conn *conn, struct dm_conn_watch *ret_watch)
{
    *ret_watch = (struct dm_conn_watch){ .fd = -1, .due_ns = DM_NEVER };
    ret_watch->is_down = conn->state == CLOSED && !conn->is_wanted;
    ret_watch->was_wanted = conn->was_wanted;
}

void dm_conn_work(struct dm_conn *conn)
{
    leave(conn);
}

/* ---- never called here: for who takes this file for the library's ------------------------------ */

void dm_conn_end(struct dm_conn *conn)
{
    conn_forget(conn);
}

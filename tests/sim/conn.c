/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's link/link.h and link/turns.h on the simulated network.  As in the real link: slots in the order of
 * the bytes, the rounds of the greeting, timeouts and back-off, handlers called without locks, real parsing of replies
 * (link/reader.c).  Left out: leaders and followers, because bytes are read here on arrival.
 */
#include "conn_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "cluster.h"
#include "fiber.h"
#include "hooks.h"
#include "stores/redis/parts.h"

#define RETRY_MIN_NS (10 * MS)
#define RETRY_MAX_NS (250 * MS)
#define UNANSWERED_MAX (16 * 1024)

struct dm_link *dm_link_new(const struct dm_link_options *options, const struct dm_greeter *greeter,
                            const struct dm_link_hooks *hooks)
{
    struct dm_link *conn = world_new(sizeof *conn);

    conn->process = process_current();
    if (conn->process->link_count == LINKS_MAX)
        abort();
    conn->process->links[conn->process->link_count++] = conn;
    conn->options = *options;
    conn->greeter = *greeter;
    conn->hooks = *hooks;
    conn->last = &conn->first;
    conn->finished_last = &conn->finished;
    conn->kept_last = &conn->kept;
    conn->planned_ns = DM_NEVER;
    return conn;
}

bool conn_is_usable(const struct dm_link *conn)
{
    const struct dm_belief *belief = conn->greeter.belief;
    bool is_usable = conn->state == READY;

    if (!is_usable || !belief || !belief->may_send)
        return is_usable;
    conn_begin_asking();
    is_usable = belief->may_send(conn->greeter.user);
    conn_end_asking();
    return is_usable;
}

struct link *conn_link(struct dm_link *conn)
{
    return conn->link;
}

/* ---- slots ------------------------------------------------------------------------------- */

struct slot *conn_push(struct dm_link *conn, size_t bytes)
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

struct slot *conn_pop(struct dm_link *conn)
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

void conn_finish_later(struct dm_link *conn, struct slot *slot)
{
    *conn->finished_last = slot;
    conn->finished_last = &slot->next;
}

void conn_finish(struct dm_link *conn, struct slot *slot, redisReply *reply)
{
    slot->reply = reply;
    slot->is_done = true;
    slot->is_broken = !reply;
    if (slot->handler)
        conn_finish_later(conn, slot);
    else if (slot->caller)
        thread_wake(slot->caller);
    else if (reply)
        dm_reply_free(reply);
}

/* ---- replies that replicas must confirm --------------------------------------------------- */

void conn_keep(struct dm_link *conn, struct slot *slot, redisReply *reply)
{
    slot->reply = reply;
    *conn->kept_last = slot;
    conn->kept_last = &slot->next;
}

/* An error claims nothing, and needs no confirmation. */
static void give_kept(struct dm_link *conn, bool is_confirmed)
{
    struct slot *slot = conn->kept, *next;

    conn->kept = NULL;
    conn->kept_last = &conn->kept;
    for (; slot; slot = next) {
        redisReply *reply = slot->reply;

        next = slot->next;
        slot->next = NULL;
        if (!is_confirmed && reply->type != REDIS_REPLY_ERROR) {
            dm_reply_free(reply);
            reply = NULL;
        }
        conn_finish(conn, slot, reply);
    }
}

static void ask_to_confirm(struct dm_link *conn)
{
    struct dm_command command;

    if (!conn->greeter.belief || !conn->greeter.belief->confirm)
        return;
    conn->must_confirm = conn->is_confirming;
    if (conn->is_confirming)
        return;
    conn_begin_asking();
    command = conn->greeter.belief->confirm(conn->greeter.user);
    conn_end_asking();
    conn_send(conn, command.bytes, command.length, true);
    conn_push(conn, 0)->is_confirm = true;
    conn->is_confirming = true;
    dm_command_free(&command);
}

void conn_take_confirm(struct dm_link *conn, redisReply *reply)
{
    char reason[DM_REASON_ROOM];
    bool is_confirmed;

    conn_begin_asking();
    is_confirmed = conn->greeter.belief->take_confirm(conn->greeter.user, reply, reason);
    conn_end_asking();
    dm_reply_free(reply);
    counters.confirmed += is_confirmed;
    counters.unconfirmed += !is_confirmed;
    give_kept(conn, is_confirmed || hooks_has(LINK_AWAITS_NO_REPLICA));
    conn->is_confirming = false;
    if (conn->must_confirm)
        ask_to_confirm(conn);
}

/* ---- waiting threads --------------------------------------------------------------------- */

void conn_wake_waiting(struct dm_link *conn)
{
    while (conn->waiting_count > 0)
        thread_wake(conn->waiting[--conn->waiting_count]);
}

static void call_handler(struct dm_link *conn, struct slot *slot)
{
    if (slot->is_message)
        conn->hooks.on_message(conn->hooks.user, slot->reply, slot->peer);
    else if (slot->handler)
        slot->handler(slot->user, slot->reply);
    if (slot->reply)
        dm_reply_free(slot->reply);
    slot->reply = NULL;
}

void conn_leave(struct dm_link *conn)
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

void conn_fail(struct dm_link *conn, const char *reason)
{
    struct slot *slot;

    if (conn->link && !conn->link->is_shut_by_client)
        net_shut(conn->link);
    dm_reader_end(&conn->reader);
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
    world_note("p%d %s fails: %s", conn->process->number, conn->options.is_listening ? "inbox" : "commands", reason);
    give_kept(conn, false);
    conn->is_confirming = conn->must_confirm = conn->is_stopped = false;
    dm_identify_end(&conn->identify);
    while ((slot = conn_pop(conn)) != NULL)
        conn_finish(conn, slot, NULL);
    conn_wake_waiting(conn);
}

/*
 * A posted request is a block of the store's, which names one of the pump's.  A sentinel's questions are leaked, and in
 * a Cluster all requests, because some are parts of a batch.
 */
static void free_posting(const struct dm_link *conn, struct dm_posting *posting)
{
    if (!posting || cluster_is_there() || conn_server(conn) >= SERVERS_MAX)
        return;
    free(posting->user);
    free(posting);
}

void conn_forget(struct dm_link *conn)
{
    if (conn->link && !conn->link->is_shut_by_client)
        net_shut(conn->link);
    dm_reader_end(&conn->reader);
    for (struct slot *slot = conn->finished; slot; slot = slot->next) {
        if (slot->reply)
            dm_reply_free(slot->reply);
        free_posting(conn, slot->user);
    }
    for (struct slot *slot = conn->kept; slot; slot = slot->next) {
        dm_reply_free(slot->reply);
        free_posting(conn, slot->user);
    }
    for (struct slot *slot = conn->first; slot; slot = slot->next)
        free_posting(conn, slot->user);
    conn->first = conn->finished = conn->kept = NULL;
    conn->link = NULL;
    conn->state = CLOSED;
}

/* ---- the library's calls ----------------------------------------------------------------- */

/* Until a time, or until the connection fails or gets news. */
static void await_news(struct dm_link *conn, int64_t until_ns)
{
    if (conn->waiting_count == 64)
        abort();
    conn->waiting[conn->waiting_count++] = thread_current();
    if (conn_due_ns(conn) < until_ns)
        until_ns = conn_due_ns(conn);
    thread_wait(until_ns);
    for (int i = 0; i < conn->waiting_count; i++) {
        if (conn->waiting[i] == thread_current())
            conn->waiting[i--] = conn->waiting[--conn->waiting_count];
    }
    conn_check_time(conn);
}

static void await_ready(struct dm_link *conn, int64_t until_ns)
{
    conn->is_wanted = conn->was_wanted = true;
    conn_open_if_due(conn);
    conn_leave(conn);
    conn_plan(conn);
    if (conn_is_usable(conn))
        return;
    await_news(conn, until_ns);
}

static int64_t deadline_ns(const struct dm_deadline *deadline)
{
    int64_t left = dm_deadline_left_ns(deadline);

    return left == DM_NEVER ? DM_NEVER : dm_clock_boot_ns() + left;
}

static bool may_send(const struct dm_link *conn, const struct dm_command *command)
{
    return command->is_for_any ? conn->state == READY : conn_is_usable(conn);
}

static bool is_for_peer(const struct dm_link *conn, const struct dm_command *command)
{
    return command->peer == 0 || command->peer == conn->peer;
}

static struct slot *send_command(struct dm_link *conn, const struct dm_command *command)
{
    struct slot *slot;

    conn_identify_if_due(conn, DM_IDENTIFY_NS / 2);
    conn_send(conn, command->bytes, command->length, command->is_for_any);
    conn->traffic.commands++;
    for (int i = 0; i < command->ahead; i++)
        conn_push(conn, 0);
    slot = conn_push(conn, command->length);
    slot->is_for_any = command->is_for_any;
    slot->summary = command->summary;
    ask_to_confirm(conn);
    return slot;
}

enum dm_link_result dm_link_call(struct dm_link *conn, const struct dm_command *command,
                                 const struct dm_deadline *deadline, redisReply **ret_reply)
{
    struct slot *slot = NULL;

    check_no_lock("dm_link_call");
    thread_preempt();
    while (!slot || !slot->is_done) {
        if (!slot && dm_self_is_given_up() && !command->is_for_ending)
            return DM_LINK_LATE;
        if (!slot && may_send(conn, command) && !is_for_peer(conn, command))
            return DM_LINK_OTHER;
        if (!slot && may_send(conn, command)) {
            slot = send_command(conn, command);
            slot->caller = thread_current();
            conn_plan(conn);
        }
        if (dm_deadline_left_ns(deadline) == 0)
            break;
        if (slot)
            thread_wait(deadline_ns(deadline));
        else
            await_ready(conn, deadline_ns(deadline));
    }
    conn_leave(conn);
    if (slot && !slot->is_done) {
        slot->caller = NULL;
        return DM_LINK_LATE;
    }
    if (!slot)
        return DM_LINK_LATE;
    *ret_reply = slot->reply;
    return slot->is_broken ? DM_LINK_BROKEN : DM_LINK_OK;
}

enum dm_link_result dm_link_post_quietly(struct dm_link *conn, const struct dm_command *command, dm_reply_fn handler,
                                         void *user)
{
    size_t before = conn->unanswered;
    struct slot *slot;

    if (!may_send(conn, command))
        return DM_LINK_DOWN;
    if (!is_for_peer(conn, command))
        return DM_LINK_OTHER;
    slot = send_command(conn, command);
    slot->handler = handler;
    slot->user = user;
    conn_plan(conn);
    return before <= UNANSWERED_MAX ? DM_LINK_OK : DM_LINK_LATE;
}

enum dm_link_result dm_link_post(struct dm_link *conn, const struct dm_command *command, dm_reply_fn handler,
                                 void *user)
{
    enum dm_link_result result;

    check_no_lock("dm_link_post");
    thread_preempt();
    result = dm_link_post_quietly(conn, command, handler, user);
    conn_leave(conn);
    return result;
}

void dm_link_want(struct dm_link *conn)
{
    bool is_known = conn->is_wanted;

    conn->is_wanted = conn->was_wanted = true;
    conn_open_if_due(conn);
    if (!is_known || conn->state != CLOSED)
        conn->is_change_news = true;
    conn_leave(conn);
    conn_plan(conn);
}

void dm_link_distrust(struct dm_link *conn, uint64_t peer, const char *reason)
{
    if (conn->state == READY && (peer == 0 || peer == conn->peer))
        conn_fail(conn, reason);
    conn_leave(conn);
}

void dm_link_rest(struct dm_link *conn, const char *reason)
{
    if (conn->state != CLOSED)
        conn_fail(conn, reason);
    conn_leave(conn);
}

void dm_link_close(struct dm_link *conn, const char *reason)
{
    if (conn->state != CLOSED && !hooks_has(WORDS_COUNT_FOR_EVER))
        conn_fail(conn, reason);
    conn_leave(conn);
}

void dm_link_refuse_answer(struct dm_link *conn, const char *reason)
{
    dm_link_distrust(conn, 0, reason);
}

void dm_link_accept_answer(struct dm_link *conn)
{
    (void)conn;
}

int64_t dm_link_identify(struct dm_link *conn)
{
    if (conn->state != READY)
        return DM_NEVER;
    conn_identify_if_due(conn, DM_IDENTIFY_NS);
    conn_plan(conn);
    return conn->identify.asked_ns + DM_IDENTIFY_NS;
}

void dm_link_count(struct dm_link *conn, struct dm_link_traffic *ret_traffic)
{
    *ret_traffic = conn->traffic;
}

bool dm_link_is_open(struct dm_link *conn)
{
    return conn->state != CLOSED;
}

bool dm_link_is_ready(struct dm_link *conn)
{
    return conn_is_usable(conn);
}

bool dm_link_await_ready(struct dm_link *conn, const struct dm_deadline *deadline)
{
    check_no_lock("dm_link_await_ready");
    while (!conn_is_usable(conn) && dm_deadline_left_ns(deadline) > 0)
        await_ready(conn, deadline_ns(deadline));
    return conn_is_usable(conn);
}

bool dm_link_await(struct dm_link *conn, bool (*is_met)(void *user), void *user, const struct dm_deadline *deadline)
{
    check_no_lock("dm_link_await");
    while (!(conn->state == READY && is_met(user)) && dm_deadline_left_ns(deadline) > 0) {
        if (conn->state == READY)
            await_news(conn, deadline_ns(deadline));
        else
            await_ready(conn, deadline_ns(deadline));
    }
    return conn->state == READY && is_met(user);
}

/* The server's reply comes as a message. */
void dm_link_say(struct dm_link *conn, const struct dm_command *command)
{
    if (conn->state == READY)
        net_send(conn->link, TO_SERVER, command->bytes, command->length);
}

void dm_link_tell_news(struct dm_link *conn)
{
    conn_wake_waiting(conn);
}

/* Messages are handed out when the bytes come, so the thread only sleeps. */
bool dm_link_listen(struct dm_link *conn, const struct dm_deadline *deadline, int cancel_state)
{
    (void)conn;
    return dm_self_sleep_cancellably(dm_self_get(), deadline, cancel_state);
}

bool dm_link_leave_to_leader(struct dm_link *conn, uint64_t activity)
{
    (void)conn;
    (void)activity;
    return false;
}

/* Waits for the answers to all commands sent before the call; checks from time to time. */
void dm_link_drain(struct dm_link *conn, const struct dm_deadline *deadline)
{
    uint64_t all = conn->pushed;

    check_no_lock("dm_link_drain");
    while ((conn->popped < all || conn->kept) && dm_deadline_left_ns(deadline) > 0)
        thread_pass(MS);
}

void dm_link_reason(struct dm_link *conn, char ret_reason[DM_REASON_ROOM])
{
    memcpy(ret_reason, conn->reason, DM_REASON_ROOM);
}

void dm_link_watch(struct dm_link *conn, struct dm_link_watch *ret_watch)
{
    *ret_watch = (struct dm_link_watch){ .fd = -1, .due_ns = DM_NEVER };
    ret_watch->is_closed = conn->state == CLOSED;
    ret_watch->was_wanted = conn->was_wanted;
}

void dm_link_work(struct dm_link *conn)
{
    conn_leave(conn);
}

/* ---- of link/link.h, without effect here ------------------------------------------------------- */

/* Commands that go out in one write: each write goes out at once here. */
void dm_link_hold(struct dm_link *conn)
{
    (void)conn;
}

void dm_link_let_go(struct dm_link *conn)
{
    (void)conn;
}

void dm_link_end(struct dm_link *conn, const char *reason)
{
    (void)reason;
    conn_forget(conn);
}

void dm_link_free_unused(struct dm_link *conn)
{
    (void)conn; /* the world's memory */
}

void dm_link_retry_soon(struct dm_link *conn)
{
    if (conn->state != CLOSED || !conn->is_wanted)
        return;
    conn->retry_ns = dm_clock_boot_ns();
    conn_plan(conn);
}

void dm_link_limit_pauses(struct dm_link *conn, unsigned most_ms)
{
    (void)conn;
    (void)most_ms;
}

void dm_link_note_turn(struct dm_link *conn, int64_t turn_ns)
{
    (void)conn;
    (void)turn_ns;
}

void dm_link_fork_prepare(struct dm_link *conn)
{
    (void)conn;
}

void dm_link_fork_parent(struct dm_link *conn)
{
    (void)conn;
}

void dm_link_fork_child(struct dm_link *conn)
{
    (void)conn;
}

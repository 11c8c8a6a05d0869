/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/thread.h"
#include "link/link_parts.h"

/* ---- replies to their threads ------------------------------------------------------------ */

void dm_link_note_sleep(struct dm_link *link, struct dm_caller *call, bool is_asleep)
{
    dm_assert_held(DM_RANK_CONN);
    link->asleep = link->asleep - call->is_asleep + is_asleep;
    call->is_asleep = is_asleep;
}

/* A follower sleeps on its semaphore.  The leader sleeps in ppoll(), or spins and checks is_called. */
void dm_link_wake(struct dm_link *link, struct dm_caller *call)
{
    dm_assert_held(DM_RANK_CONN);
    if (call == link->leader && link->is_glancing)
        call->is_called = true;
    else if (call == link->leader)
        dm_bell_ring(&link->leader_bell);
    if (call->is_asleep) {
        dm_link_note_sleep(link, call, false);
        dm_self_wake(call->self);
    }
}

/* After a change of state: a caller may now send, or must give up. */
static void wake_all(struct dm_link *link)
{
    for (struct dm_caller *call = link->calls; call; call = call->next)
        dm_link_wake(link, call);
}

/* Wakes only calls that drain; if there are none, the list is not searched. */
static void wake_drained(struct dm_link *link)
{
    for (struct dm_caller *call = link->draining ? link->calls : NULL; call; call = call->next) {
        if (call->drains && link->session.pipe.popped >= call->drains)
            dm_link_wake(link, call);
    }
}

/* To the thread that waits; if it has left, nobody wants the reply. */
static void give_to_call(struct dm_link *link, struct dm_slot *slot)
{
    struct dm_caller *call = slot->call;

    if (call) {
        call->reply = slot->reply;
        call->result = slot->reply ? DM_LINK_OK : DM_LINK_BROKEN;
        call->is_done = true;
        dm_link_wake(link, call);
    } else if (slot->reply) {
        dm_reply_free(slot->reply);
    }
    dm_pipe_spare_slot(&link->session.pipe, slot);
}

/* Handlers run without the lock, in the order of the replies. */
static void keep_for_leave(struct dm_link *link, struct dm_slot *slot)
{
    slot->next = NULL;
    *link->finished_end = slot;
    link->finished_end = &slot->next;
}

void dm_link_hand_out(struct dm_link *link)
{
    struct dm_slot *slot;

    dm_assert_held(DM_RANK_CONN);
    while ((slot = dm_session_take_finished(&link->session)) != NULL) {
        if (slot->handler || slot->kind == DM_SLOT_MESSAGE)
            keep_for_leave(link, slot);
        else
            give_to_call(link, slot);
    }
    wake_drained(link);
    if (link->session.is_state_news)
        wake_all(link);
    link->session.is_state_news = false;
}

/* ---- the lock ---------------------------------------------------------------------------- */

static void enter(struct dm_link *link)
{
    dm_mutex_lock(&link->lock);
}

/* For a caller that holds a lock which handlers would take.  The handlers stay in `finished` until the next leave. */
static void leave_quietly(struct dm_link *link)
{
    dm_link_hand_out(link);
    dm_mutex_unlock(&link->lock);
}

bool dm_link_has_news(const struct dm_link *link)
{
    const struct dm_session *session = &link->session;

    dm_assert_held(DM_RANK_CONN);
    return link->finished || session->is_ready_news || session->is_change_news || session->must_prepare;
}

/* Keeps the slots for later commands and messages, so that those need no malloc(). */
static void spare_slots(struct dm_link *link, struct dm_slot *slot)
{
    struct dm_slot *next;

    enter(link);
    for (; slot; slot = next) {
        next = slot->next;
        dm_pipe_spare_slot(&link->session.pipe, slot);
    }
    dm_mutex_unlock(&link->lock);
}

/* The list now belongs to this thread alone; a handler may use the link, and take any lock. */
static void call_handlers(struct dm_link *link, struct dm_slot *finished)
{
    for (struct dm_slot *slot = finished; slot; slot = slot->next) {
        if (slot->kind == DM_SLOT_MESSAGE)
            link->hooks.on_message(link->hooks.user, slot->reply, slot->peer);
        else
            slot->handler(slot->user, slot->reply);
        if (slot->reply)
            dm_reply_free(slot->reply);
    }
    if (finished)
        spare_slots(link, finished);
}

/* The greeter's own work, such as reading a password file, is done before the session continues. */
static void prepare_greeter(struct dm_link *link, const struct dm_prepared *prepared)
{
    const struct dm_greeter *greeter = &link->session.greeter;

    if (prepared->task == DM_PREPARING_HANDSHAKE || !greeter->prepare)
        return;
    greeter->prepare(greeter->user);
    enter(link);
    dm_session_note_greeter_prepared(&link->session);
    dm_link_leave(link);
}

/* The helper thread: looks up a name, starts a server or does the TLS handshake, which may block for long. */
static void *prepare(void *user)
{
    struct dm_link *link = user;
    struct dm_prepared prepared;

    enter(link);
    dm_session_begin_preparing(&link->session, &prepared);
    dm_mutex_unlock(&link->lock);
    if (prepared.task == DM_PREPARING_NOTHING)
        return NULL;
    prepare_greeter(link, &prepared);
    dm_prepare(&prepared, &link->session.options);
    enter(link);
    dm_session_go_on(&link->session, &prepared);
    dm_link_leave(link);
    return NULL;
}

/* If no thread can be started, the session fails like any other opening, and is retried after a pause. */
static void start_preparing(struct dm_link *link)
{
    if (dm_thread_start(prepare, link) == 0)
        return;
    enter(link);
    dm_session_stop_preparing(&link->session);
    dm_link_leave(link);
}

void dm_link_leave(struct dm_link *link)
{
    struct dm_session *session = &link->session;
    struct dm_slot *finished;
    bool is_ready_news, is_change_news, must_prepare;

    dm_assert_held(DM_RANK_CONN);
    dm_link_hand_out(link);
    finished = link->finished;
    is_ready_news = session->is_ready_news;
    is_change_news = session->is_change_news;
    must_prepare = session->must_prepare;
    link->finished = NULL;
    link->finished_end = &link->finished;
    session->is_ready_news = session->is_change_news = session->must_prepare = false;
    dm_mutex_unlock(&link->lock);
    call_handlers(link, finished);
    if (is_ready_news && link->hooks.on_ready)
        link->hooks.on_ready(link->hooks.user);
    if (is_change_news && link->hooks.on_change)
        link->hooks.on_change(link->hooks.user);
    if (must_prepare)
        start_preparing(link);
}

/* ---- beginning and end ------------------------------------------------------------------- */

/* The bell is opened here, because a leader must be reachable from its first sleep on. */
struct dm_link *dm_link_new(const struct dm_link_options *options, const struct dm_greeter *greeter,
                            const struct dm_link_hooks *hooks)
{
    struct dm_link *link = calloc(1, sizeof *link);

    if (!link)
        return NULL;
    link->lock = (struct dm_mutex)DM_MUTEX_INITIALIZER(DM_RANK_CONN);
    link->hooks = *hooks;
    link->finished_end = &link->finished;
    link->leader_bell = dm_bell_open();
    if (link->leader_bell < 0) {
        free(link);
        return NULL;
    }
    dm_session_init(&link->session, options, greeter);
    return link;
}

/* The bell is the only resource so far: the session has opened nothing. */
void dm_link_free_unused(struct dm_link *link)
{
    if (link)
        dm_bell_close(link->leader_bell);
    free(link);
}

void dm_link_free_bell(struct dm_link *link)
{
    dm_assert_held(DM_RANK_CONN);
    if (!link->session.is_ended || link->calls || link->leader_bell == DM_BELL_GONE)
        return;
    dm_bell_close(link->leader_bell);
    link->leader_bell = DM_BELL_GONE;
}

void dm_link_end(struct dm_link *link, const char *reason)
{
    enter(link);
    dm_session_end(&link->session, reason);
    dm_link_hand_out(link); /* before the bell is closed: it rings for the leader */
    dm_link_free_bell(link);
    dm_link_leave(link);
}

/* ---- posts ------------------------------------------------------------------------------- */

bool dm_link_may_send(const struct dm_link *link, const struct dm_command *command)
{
    dm_assert_held(DM_RANK_CONN);
    return command->is_for_any ? dm_session_is_ready(&link->session) : dm_session_is_usable(&link->session);
}

bool dm_link_is_for_peer(const struct dm_link *link, const struct dm_command *command)
{
    dm_assert_held(DM_RANK_CONN);
    return command->peer == 0 || command->peer == link->session.peer;
}

/* Nobody waits for a posted command: it is the loop that notices if no answer comes. */
static void want_turn(struct dm_link *link, const struct dm_slot *slot)
{
    int64_t due_ns = slot->sent_ns + link->session.options.command_timeout_ms * DM_NS_PER_MS;

    if (link->turn_ns <= due_ns)
        return;
    link->turn_ns = due_ns;
    link->session.is_change_news = true;
}

/*
 * A posted command does not wait for a connection, because the loop thread posts, too: its sender schedules another
 * try.
 */
static enum dm_link_result send_post(struct dm_link *link, const struct dm_command *command, dm_reply_fn handler,
                                     void *user)
{
    struct dm_slot *slot;

    dm_assert_held(DM_RANK_CONN);
    if (!dm_link_may_send(link, command))
        return DM_LINK_DOWN;
    if (!dm_link_is_for_peer(link, command))
        return DM_LINK_OTHER;
    slot = dm_session_send(&link->session, command);
    if (!slot)
        return DM_LINK_DOWN;
    slot->handler = handler;
    slot->user = user;
    want_turn(link, slot);
    return DM_LINK_OK;
}

static enum dm_link_result post(struct dm_link *link, const struct dm_command *command, dm_reply_fn handler, void *user,
                                void (*leave)(struct dm_link *))
{
    enum dm_link_result result;

    if (!command->bytes)
        return DM_LINK_DOWN;
    enter(link);
    result = send_post(link, command, handler, user);
    leave(link);
    return result;
}

enum dm_link_result dm_link_post(struct dm_link *link, const struct dm_command *command, dm_reply_fn handler,
                                 void *user)
{
    return post(link, command, handler, user, dm_link_leave);
}

enum dm_link_result dm_link_post_quietly(struct dm_link *link, const struct dm_command *command, dm_reply_fn handler,
                                         void *user)
{
    return post(link, command, handler, user, leave_quietly);
}

void dm_link_hold(struct dm_link *link)
{
    enter(link);
    link->session.pipe.is_held = true;
    leave_quietly(link);
}

/* Bytes that the kernel has not taken need POLLOUT, so the loop thread is told. */
void dm_link_let_go(struct dm_link *link)
{
    struct dm_session *session = &link->session;

    enter(link);
    session->pipe.is_held = false;
    dm_session_work(session);
    session->is_change_news |= dm_pipe_pending(&session->pipe) > 0;
    leave_quietly(link);
}

void dm_link_say(struct dm_link *link, const struct dm_command *command)
{
    enter(link);
    dm_session_say(&link->session, command);
    leave_quietly(link);
}

/* ---- wishes ------------------------------------------------------------------------------ */

void dm_link_want(struct dm_link *link)
{
    struct dm_session *session = &link->session;
    bool is_known;

    enter(link);
    is_known = session->is_wanted;
    session->is_wanted = session->was_wanted = true;
    dm_session_open_if_due(session);
    session->is_wanted = true; /* even if opening fails at once: the next try is scheduled */
    if (!is_known ||
        session->state != DM_SESSION_CLOSED) /* otherwise a caller that wants the link in each turn would wake itself */
        session->is_change_news = true;
    dm_link_leave(link);
}

/* Any thread may call this; a limit that is slightly out of date only makes a try a little early or late. */
void dm_link_limit_pauses(struct dm_link *link, unsigned most_ms)
{
    enter(link);
    dm_retry_limit(&link->session.retry, most_ms);
    dm_link_leave(link);
}

void dm_link_tell_news(struct dm_link *link)
{
    enter(link);
    wake_all(link);
    dm_link_leave(link);
}

/* Only a link that is wanted, and waits for its next try. */
void dm_link_retry_soon(struct dm_link *link)
{
    enter(link);
    if (link->session.state == DM_SESSION_CLOSED && link->session.is_wanted) {
        link->session.retry.due_ns = dm_clock_boot_ns();
        link->session.is_change_news = true;
    }
    dm_link_leave(link);
}

void dm_link_close(struct dm_link *link, const char *reason)
{
    enter(link);
    dm_session_leave(&link->session, reason);
    dm_link_leave(link);
}

void dm_link_rest(struct dm_link *link, const char *reason)
{
    const struct dm_session *session = &link->session;

    enter(link);
    if (session->state != DM_SESSION_CLOSED && session->state != DM_SESSION_PREPARING && !session->is_ended)
        dm_session_rest(&link->session, reason);
    dm_link_leave(link);
}

/* The number prevents late news about an earlier server from closing the connection to the present one. */
void dm_link_distrust(struct dm_link *link, uint64_t peer, const char *reason)
{
    enter(link);
    if (dm_session_is_ready(&link->session) && (peer == 0 || peer == link->session.peer))
        dm_session_fail(&link->session, "%s", reason);
    dm_link_leave(link);
}

void dm_link_refuse_answer(struct dm_link *link, const char *reason)
{
    enter(link);
    if (dm_session_is_ready(&link->session)) {
        link->session.is_answer_refused = true;
        dm_session_fail(&link->session, "%s", reason);
    }
    dm_link_leave(link);
}

void dm_link_accept_answer(struct dm_link *link)
{
    enter(link);
    link->session.is_answer_refused = false;
    if (dm_session_is_ready(&link->session))
        dm_session_note_reason(&link->session, DM_SESSION_NO_ANSWER);
    dm_mutex_unlock(&link->lock); /* quietly */
}

/* May find the connection broken; the handlers of the lost slots are called by the next dm_link_work(). */
int64_t dm_link_identify(struct dm_link *link)
{
    int64_t next_ns;

    enter(link);
    if (dm_session_is_ready(&link->session))
        dm_session_identify_if_due(&link->session, DM_IDENTIFY_NS);
    next_ns = dm_session_is_ready(&link->session) ? link->session.identify.asked_ns + DM_IDENTIFY_NS : DM_NEVER;
    leave_quietly(link);
    return next_ns;
}

/* ---- questions --------------------------------------------------------------------------- */

bool dm_link_is_open(struct dm_link *link)
{
    bool is_open;

    enter(link);
    is_open = link->session.state != DM_SESSION_CLOSED;
    dm_mutex_unlock(&link->lock); /* quietly */
    return is_open;
}

bool dm_link_is_ready(struct dm_link *link)
{
    bool is_ready;

    enter(link);
    is_ready = dm_session_is_usable(&link->session);
    dm_mutex_unlock(&link->lock); /* quietly: callers may hold a lock that handlers take */
    return is_ready;
}

/*
 * A server without TLS waits for the end of a line, and sends nothing: so a caller may give up before the handshake
 * ends.
 */
static bool is_in_first_handshake(const struct dm_session *session)
{
    size_t length = strlen(session->reason), tail = sizeof DM_SESSION_NO_ANSWER - 1;

    return session->state == DM_SESSION_PREPARING && session->lent.fd >= 0 && length >= tail &&
           strcmp(session->reason + length - tail, DM_SESSION_NO_ANSWER) == 0;
}

/* Copied under the lock, because the session overwrites the sentence with each failure. */
void dm_link_reason(struct dm_link *link, char ret_reason[DM_REASON_ROOM])
{
    const struct dm_session *session = &link->session;
    char doubt[DM_REASON_ROOM];

    enter(link);
    if (dm_session_is_ready(session) && !dm_session_is_believed(session, false, doubt))
        snprintf(ret_reason, DM_REASON_ROOM, "%s: %.200s", session->options.name, doubt);
    else if (is_in_first_handshake(session))
        snprintf(ret_reason, DM_REASON_ROOM,
                 "%s: has not finished the TLS handshake: does it speak TLS at this address?", session->options.name);
    else
        memcpy(ret_reason, session->reason, DM_REASON_ROOM);
    dm_mutex_unlock(&link->lock);
}

void dm_link_count(struct dm_link *link, struct dm_link_traffic *ret_traffic)
{
    const struct dm_session *session = &link->session;

    enter(link);
    *ret_traffic = (struct dm_link_traffic){
        .commands = session->sent,
        .messages = session->heard,
        .reconnects = session->openings ? session->openings - 1 : 0,
    };
    dm_mutex_unlock(&link->lock); /* quietly */
}

/* A snapshot: the loop thread sleeps by it, and on_change wakes the loop when it is out of date. */
void dm_link_watch(struct dm_link *link, struct dm_link_watch *ret_watch)
{
    const struct dm_session *session = &link->session;

    enter(link);
    ret_watch->fd = dm_session_fd(session);
    ret_watch->events = ret_watch->fd >= 0 ? dm_session_events(session) : 0;
    ret_watch->due_ns = dm_session_due_ns(session);
    ret_watch->is_attended = link->leader != NULL;
    ret_watch->activity = session->activity;
    ret_watch->is_closed = session->state == DM_SESSION_CLOSED && !session->is_ended;
    ret_watch->was_wanted = session->was_wanted;
    dm_link_leave(link);
}

bool dm_link_leave_to_leader(struct dm_link *link, uint64_t activity)
{
    bool is_left;

    enter(link);
    is_left = link->is_left_to_leader = link->leader && link->session.activity == activity;
    dm_link_leave(link);
    return is_left;
}

void dm_link_take_back(struct dm_link *link)
{
    dm_assert_held(DM_RANK_CONN);
    link->is_left_to_leader = false;
    link->session.is_change_news = true;
}

void dm_link_note_turn(struct dm_link *link, int64_t turn_ns)
{
    enter(link);
    link->turn_ns = turn_ns;
    dm_link_leave(link);
}

/* Called by the loop thread, and after quiet posts: dm_link_leave() calls the handlers that are due. */
void dm_link_work(struct dm_link *link)
{
    enter(link);
    dm_session_work(&link->session);
    dm_link_leave(link);
}

/* ---- fork -------------------------------------------------------------------------------- */

/* The two links of a node have the same rank: fork() takes both, always the one for commands first. */
void dm_link_fork_prepare(struct dm_link *link)
{
    dm_mutex_lock(&link->lock);
}

void dm_link_fork_parent(struct dm_link *link)
{
    dm_mutex_unlock(&link->lock);
}

/*
 * The child has only the forking thread, which a handler may have interrupted in a call; the memory of other threads'
 * calls will soon be the stacks of new threads.  Needs no lock: a half-changed list can still be followed to its end.
 */
static void forget_other_threads(struct dm_link *link)
{
    const struct dm_self *self = dm_self_get();
    struct dm_caller **at = &link->calls;

    link->leader = NULL;
    link->is_glancing = false;
    link->asleep = link->draining = 0;
    while (*at) {
        struct dm_caller *call = *at;

        if (call->self != self) {
            *at = call->next;
            continue;
        }
        call->link = at;
        link->asleep += call->is_asleep;
        link->draining += call->drains != 0;
        at = &call->next;
    }
}

void dm_link_fork_child(struct dm_link *link)
{
    forget_other_threads(link);
    dm_session_forget(&link->session);
    dm_bell_close(link->leader_bell);
    link->leader_bell = DM_BELL_GONE;
    dm_mutex_reset(&link->lock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/session.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/minmax.h"
#include "base/rank.h"
#include "link/session_parts.h"

#define PIECES_AT_ONCE 2

/* For how long a socket's number that was ours is assumed to be ours still. */
#define OWN_NS DM_NS_PER_MS

/* Opens nothing: a process that never locks has no socket. */
void dm_session_init(struct dm_session *session, const struct dm_link_options *options,
                     const struct dm_greeter *greeter)
{
    session->options = *options;
    session->greeter = *greeter;
    session->finished_end = &session->finished;
    session->kept.end = &session->kept.first;
    session->lent.fd = -1;
    dm_race_init(&session->race);
    dm_pipe_init(&session->pipe);
    dm_session_note_reason(session, DM_SESSION_NO_ANSWER);
}

/* ---- sending ----------------------------------------------------------------------------- */

/*
 * A program that closes descriptors which it did not open may get our number for a file of its own, once the lower
 * numbers are in use; bytes that we sent would then be in that file.  Checked before sending and reading, but not each
 * time: a thousand calls of fstat() per second cost nothing, and a program needs longer to use up the numbers.
 */
static bool is_socket_ours(struct dm_session *session)
{
    int64_t now_ns = dm_clock_boot_ns();

    if (now_ns - session->owned_ns < OWN_NS)
        return true;
    session->owned_ns = now_ns;
    if (dm_stream_is_ours(&session->pipe.stream))
        return true;
    dm_session_fail(session, "lost its descriptor: the program has closed it");
    return false;
}

static bool may_send(const struct dm_session *session)
{
    const struct dm_belief *belief = session->greeter.belief;

    return !belief || !belief->may_send || belief->may_send(session->greeter.user);
}

static bool awaits_confirmation(const struct dm_session *session)
{
    return session->greeter.belief && session->greeter.belief->confirm;
}

bool dm_session_is_usable(const struct dm_session *session)
{
    return dm_session_is_ready(session) && may_send(session);
}

/* Bytes that the kernel has not taken need POLLOUT, so the loop thread is told. */
static bool write_bytes(struct dm_session *session, const char *bytes, size_t length)
{
    if (!dm_pipe_write(&session->pipe, bytes, length)) {
        dm_session_fail_by_stream(session, "broke while sending");
        return false;
    }
    session->is_change_news |= dm_pipe_pending(&session->pipe) > 0;
    return true;
}

/* No check is sent while commands may not be sent: its reply would close the session. */
void dm_session_identify_if_due(struct dm_session *session, int64_t pause_ns)
{
    bool is_due = session->greeter.identify && !session->pipe.is_stopped &&
                  dm_identify_is_due(&session->identify, pause_ns, dm_clock_boot_ns()) && may_send(session) &&
                  is_socket_ours(session);
    struct dm_slot *slot = is_due ? dm_pipe_take_slot(&session->pipe) : NULL;
    struct dm_command command;

    if (!slot)
        return;
    command = session->greeter.identify(session->greeter.user);
    if (command.bytes && write_bytes(session, command.bytes, command.length)) {
        slot->kind = DM_SLOT_CHECK;
        dm_pipe_push(&session->pipe, slot);
        dm_identify_note_sent(&session->identify, slot->sent_ns);
    } else {
        dm_pipe_spare_slot(&session->pipe, slot);
    }
    dm_command_free(&command);
}

/* Stops the pipe if the request must wait for a check.  False: no check is under way, for lack of memory. */
static bool stop_unless_known(struct dm_session *session)
{
    enum dm_identify_verdict verdict = DM_IDENTIFY_SENDS;

    if (session->greeter.identify && !session->pipe.is_stopped)
        verdict = dm_identify_at_request(&session->identify, dm_clock_boot_ns());
    if (verdict == DM_IDENTIFY_WAITS)
        dm_pipe_stop(&session->pipe);
    return verdict != DM_IDENTIFY_FAILS;
}

/* Called before reading, so that the rest of a command goes out when the socket has room again. */
static void flush(struct dm_session *session)
{
    if (!dm_pipe_flush(&session->pipe))
        dm_session_fail_by_stream(session, "broke while sending");
}

static void go_on(struct dm_session *session)
{
    dm_pipe_go_on(&session->pipe);
    flush(session);
    session->is_change_news |= dm_pipe_pending(&session->pipe) > 0;
}

static void take_identity(struct dm_session *session, redisReply *reply, int64_t sent_ns)
{
    char reason[DM_REASON_ROOM] = "said too late that it is the same server";
    enum dm_identified identified = session->greeter.take_identity(session->greeter.user, reply, reason);
    enum dm_identify_verdict verdict =
        dm_identify_take(&session->identify, identified, sent_ns, session->pipe.is_stopped,
                         session->options.command_timeout_ms * DM_NS_PER_MS, dm_clock_boot_ns());

    dm_reply_free(reply);
    if (verdict == DM_IDENTIFY_FAILS)
        dm_session_fail(session, "%s", reason);
    else if (verdict == DM_IDENTIFY_SENDS && session->pipe.is_stopped)
        go_on(session);
}

/* Asks after all commands sent; if another confirmation is under way, not before its answer. */
static void ask_to_confirm(struct dm_session *session)
{
    struct dm_command command;
    struct dm_slot *slot;

    if (!awaits_confirmation(session))
        return;
    session->kept.is_behind = session->kept.is_under_way;
    if (session->kept.is_under_way)
        return;
    slot = dm_pipe_take_slot(&session->pipe);
    command = session->greeter.belief->confirm(session->greeter.user);
    if (!slot || !command.bytes) {
        if (slot)
            dm_pipe_spare_slot(&session->pipe, slot);
        dm_session_fail(session, "cannot be used (out of memory)");
    } else if (write_bytes(session, command.bytes, command.length)) {
        slot->kind = DM_SLOT_CONFIRM;
        dm_pipe_push(&session->pipe, slot);
        session->kept.is_under_way = true;
    } else {
        dm_pipe_spare_slot(&session->pipe, slot);
    }
    dm_command_free(&command);
}

static void keep(struct dm_session *session, struct dm_slot *slot, redisReply *reply)
{
    slot->reply = reply;
    slot->next = NULL;
    *session->kept.end = slot;
    session->kept.end = &slot->next;
}

static void take_confirm(struct dm_session *session, redisReply *reply)
{
    char reason[DM_REASON_ROOM];
    bool is_confirmed = session->greeter.belief->take_confirm(session->greeter.user, reply, reason);

    dm_reply_free(reply);
    dm_session_note_reason(session, "%s", is_confirmed ? DM_SESSION_NO_ANSWER : reason);
    dm_session_give_kept(session, is_confirmed);
    session->kept.is_under_way = false;
    if (session->kept.is_behind)
        ask_to_confirm(session);
}

/* Pushes slots for the replies that are dropped, before the command's own slot. */
static bool push_ahead(struct dm_session *session, int count)
{
    for (int i = 0; i < count; i++) {
        struct dm_slot *slot = dm_pipe_take_slot(&session->pipe);

        if (!slot)
            return false;
        slot->kind = DM_SLOT_AHEAD;
        dm_pipe_push(&session->pipe, slot);
    }
    return true;
}

/* The slot is taken first: the reply to a command without a slot would be given to the next command. */
struct dm_slot *dm_session_send(struct dm_session *session, const struct dm_command *command)
{
    struct dm_slot *slot = NULL;

    if (dm_session_is_ready(session) && !is_socket_ours(session))
        return NULL;
    dm_session_identify_if_due(session, DM_IDENTIFY_NS / 2);
    if (!dm_session_is_ready(session) || !(command->is_for_any || may_send(session)))
        return NULL;
    if (command->is_for_any || stop_unless_known(session))
        slot = dm_pipe_take_slot(&session->pipe);
    if (!slot || !push_ahead(session, command->ahead)) {
        if (slot)
            dm_pipe_spare_slot(&session->pipe, slot);
        dm_session_fail(session, "cannot be used (out of memory)");
        return NULL;
    }
    if (!write_bytes(session, command->bytes, command->length)) {
        dm_pipe_spare_slot(&session->pipe, slot);
        return NULL;
    }
    dm_pipe_push(&session->pipe, slot);
    slot->is_for_any = command->is_for_any;
    slot->summary = command->summary;
    session->sent++;
    ask_to_confirm(session); /* if this fails the slot has ended without a reply, but the command may be executed */
    return slot;
}

void dm_session_say(struct dm_session *session, const struct dm_command *command)
{
    if (dm_session_is_ready(session) && is_socket_ours(session))
        write_bytes(session, command->bytes, command->length);
}

/* ---- reading ----------------------------------------------------------------------------- */

/* Takes a message that the server sent unasked. */
static void take_message(struct dm_session *session, redisReply *reply)
{
    struct dm_slot *slot = dm_pipe_take_slot(&session->pipe);

    if (!slot) {
        dm_reply_free(reply);
        dm_session_fail(session, "lost a message (out of memory)");
        return;
    }
    dm_retry_note_answer(&session->retry);
    slot->kind = DM_SLOT_MESSAGE;
    slot->peer = session->peer;
    session->heard++;
    dm_session_finish(session, slot, reply);
}

/* A reply without a slot cannot be to us: the peer speaks another protocol, or sends unasked. */
static void take_answer(struct dm_session *session, redisReply *reply)
{
    struct dm_slot *slot = dm_pipe_pop(&session->pipe);
    enum dm_slot_kind kind;
    int64_t sent_ns;

    if (!slot) {
        dm_reply_free(reply);
        dm_session_fail(session, "sent a reply to nothing: is this a Redis server?");
        return;
    }
    kind = slot->kind;
    sent_ns = slot->sent_ns;
    if (kind == DM_SLOT_COMMAND) {
        if (reply->type != REDIS_REPLY_ERROR) /* a server that refuses everything is useless */
            dm_retry_note_answer(&session->retry);
        if (awaits_confirmation(session))
            keep(session, slot, reply);
        else
            dm_session_finish(session, slot, reply);
        return;
    }
    dm_pipe_spare_slot(&session->pipe, slot);
    if (kind == DM_SLOT_AHEAD)
        dm_reply_free(reply);
    else if (kind == DM_SLOT_GREETING)
        dm_session_take_greeting(session, reply);
    else if (kind == DM_SLOT_CONFIRM)
        take_confirm(session, reply);
    else
        take_identity(session, reply, sent_ns);
}

/* The first slot is that of the next reply; a listener has none. */
static bool is_for_any(const struct dm_session *session)
{
    return session->pipe.first && session->pipe.first->is_for_any;
}

/* False: the server may have been replaced, and the session is closed. */
static bool is_believed(struct dm_session *session)
{
    char reason[DM_REASON_ROOM];

    if (session->state != DM_SESSION_READY || dm_session_is_believed(session, is_for_any(session), reason))
        return true;
    dm_session_fail(session, "%s", reason);
    return false;
}

/* A reply may close the session: the descriptor is checked before the next reply is parsed. */
static void take_replies(struct dm_session *session)
{
    redisReply *reply;

    while (session->pipe.stream.fd >= 0) {
        if (!dm_pipe_next(&session->pipe, &reply)) {
            dm_session_fail(session, "sent nonsense: is this a Redis server?%s", dm_session_hint(session));
            return;
        }
        if (!reply)
            return;
        session->activity++;
        session->has_answered = true;
        dm_session_note_use(session);
        if (!is_believed(session)) {
            dm_reply_free(reply);
            return;
        }
        if (session->options.is_listening && session->state == DM_SESSION_READY)
            take_message(session, reply);
        else
            take_answer(session, reply);
    }
}

/* True if nobody waits for an answer, and the connection has been in use. */
static bool is_idle(const struct dm_session *session)
{
    return session->state == DM_SESSION_READY && !session->pipe.first &&
           dm_retry_is_of_use(&session->retry, dm_clock_boot_ns());
}

/* True if there may be more bytes. */
static bool read_piece(struct dm_session *session)
{
    enum dm_pipe_read found = dm_pipe_read(&session->pipe);

    switch (found) {
    case DM_PIPE_CLOSED:
        if (is_idle(session))
            dm_session_end_idle(session);
        else
            dm_session_fail(session, "was closed by the server%s", dm_session_hint(session));
        return false;
    case DM_PIPE_BROKEN:
        if (errno == ECONNRESET && is_idle(session)) /* stunnel closes idle connections like this */
            dm_session_end_idle(session);
        else
            dm_session_fail_by_stream(session, "broke");
        return false;
    case DM_PIPE_ENDLESS:
        dm_session_fail(session, "sent a reply without end: is this a Redis server?");
        return false;
    case DM_PIPE_SOME:
    case DM_PIPE_FULL:
        take_replies(session);
        return found == DM_PIPE_FULL && session->pipe.stream.fd >= 0;
    case DM_PIPE_NOTHING:
        break;
    }
    return false;
}

/*
 * Reads the bytes that are there, but only a few pieces: handlers, deadlines and other links have their turn before the
 * rest, even if the server never stops sending.
 */
static void read_all(struct dm_session *session)
{
    int piece = 0;

    while (piece < PIECES_AT_ONCE && read_piece(session))
        piece++;
    if (piece == PIECES_AT_ONCE || dm_stream_is_cut(&session->pipe.stream))
        dm_mutex_owe_pause();
}

/* ---- work -------------------------------------------------------------------------------- */

static int64_t deadline_of(const struct dm_session *session)
{
    const struct dm_slot *first = session->pipe.first;

    switch (session->state) {
    case DM_SESSION_CLOSED:
        return session->is_wanted && !session->is_ended ? session->retry.due_ns : DM_NEVER;
    case DM_SESSION_CONNECTING:
    case DM_SESSION_GREETING:
        return session->deadline_ns;
    case DM_SESSION_READY:
        return first ? first->sent_ns + session->options.command_timeout_ms * DM_NS_PER_MS : DM_NEVER;
    case DM_SESSION_PREPARING:
        if (dm_session_awaits_look_up(session))
            return session->deadline_ns;
        break;
    }
    return DM_NEVER;
}

/* Bytes that the stream already holds are due at once: the socket does not report them. */
int64_t dm_session_due_ns(const struct dm_session *session)
{
    int64_t due_ns = dm_stream_holds(&session->pipe.stream) ? 0 : deadline_of(session);

    if (session->state == DM_SESSION_CONNECTING)
        due_ns = dm_min64(due_ns, dm_race_due_ns(&session->race, session->addresses));
    return due_ns;
}

int dm_session_fd(const struct dm_session *session)
{
    return session->state == DM_SESSION_CONNECTING ? dm_race_fd(&session->race) : session->pipe.stream.fd;
}

bool dm_session_is_for_thread(const struct dm_session *session)
{
    if (session->state == DM_SESSION_CONNECTING)
        return dm_race_fd(&session->race) >= 0;
    return dm_stream_is_for_thread(&session->pipe.stream);
}

/* Asks for POLLOUT only while bytes are left, or poll() would return at once. */
short dm_session_events(const struct dm_session *session)
{
    if (session->state == DM_SESSION_CONNECTING)
        return dm_race_events(&session->race);
    return dm_stream_events(&session->pipe.stream, dm_pipe_pending(&session->pipe) > 0);
}

/* One deadline for all slots: answers come in order, so the first slot is the oldest. */
static void check_time(struct dm_session *session)
{
    if (session->state == DM_SESSION_CLOSED || dm_clock_boot_ns() < deadline_of(session))
        return;
    if (session->state == DM_SESSION_READY)
        dm_session_fail(session, "gave no answer within command_timeout");
    else if (session->state == DM_SESSION_PREPARING)
        dm_session_go_on_without_look_up(session);
    else if (session->state == DM_SESSION_GREETING)
        dm_session_fail(session, session->options.is_listening
                                     ? "was opened for messages, but the server gave no answer within connect_timeout"
                                     : "was opened, but the server gave no answer within connect_timeout");
    else
        dm_session_fail(session, "could not be opened within connect_timeout");
}

/*
 * The order lets one call do all steps that are possible now.  Each step checks the state, because the previous one may
 * have closed the session.
 */
void dm_session_work(struct dm_session *session)
{
    if (session->is_ended)
        return;
    dm_session_open_if_due(session);
    if (session->pipe.stream.fd >= 0 && !is_socket_ours(session))
        return;
    if (session->state == DM_SESSION_CONNECTING)
        dm_session_check_connect(session);
    if (session->state == DM_SESSION_GREETING || session->state == DM_SESSION_READY)
        flush(session);
    if (session->state == DM_SESSION_GREETING || session->state == DM_SESSION_READY)
        read_all(session);
    check_time(session);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* How a session is opened: by an address or a hook, at once or with the help of a thread, and with TLS or without. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "link/session_parts.h"

/* The time of the connect and of the greeting is one: connect_timeout bounds both. */
static void begin_connecting(struct dm_session *session)
{
    if (!dm_pipe_begin(&session->pipe)) {
        dm_session_fail(session, "cannot be opened (out of memory)");
        return;
    }
    session->greeter.begin(session->greeter.user);
    session->state = DM_SESSION_CONNECTING;
    session->has_answered = false;
    session->owned_ns = 0;
    session->deadline_ns = dm_clock_boot_ns() + session->options.connect_timeout_ms * DM_NS_PER_MS;
    session->is_state_news = session->is_change_news = true;
}

/* command_timeout is the time after which unanswered bytes in the kernel end the connection, as they would here. */
static void connect_next(struct dm_session *session)
{
    if (dm_stream_connect(&session->pipe.stream, session->addresses, session->options.command_timeout_ms))
        begin_connecting(session);
    else
        dm_session_fail_address(session, errno);
}

/* Looking a name up, starting a server, or a handshake may block: the link does so in a thread, without its lock. */
static void start_preparing(struct dm_session *session)
{
    session->state = DM_SESSION_PREPARING;
    session->must_prepare = true;
}

/* A socket that can be opened at once needs no preparing; the preparing finds out why not. */
static void open_by_hook(struct dm_session *session)
{
    char reason[DM_REASON_ROOM];

    session->has_reached = session->had_reached = false;
    if (!session->greeter.prepare)
        session->pipe.stream = dm_stream_of(session->options.open(session->options.open_user, false, reason));
    if (session->pipe.stream.fd >= 0)
        begin_connecting(session);
    else
        start_preparing(session);
}

/*
 * All addresses of a name are tried, one after the other; then the addresses are looked up again, because the server
 * may have moved.
 */
static void open_by_address(struct dm_session *session)
{
    char reason[DM_REASON_ROOM] = "";
    bool had_reached;

    if (dm_addresses_has_more(session->addresses)) {
        connect_next(session);
        return;
    }
    had_reached = session->has_reached;
    dm_session_forget_addresses(session);
    session->had_reached = had_reached;
    if (!session->greeter.prepare)
        session->addresses = dm_addresses_find(&session->options.address, false, reason);
    if (session->addresses)
        connect_next(session);
    else if (reason[0])
        dm_session_fail(session, "%s", reason);
    else
        start_preparing(session);
}

/* A server whose place is not known leaves the wish a wish, until somebody knows. */
static bool locate(struct dm_session *session)
{
    char reason[DM_REASON_ROOM];
    enum dm_located located = DM_LOCATED;

    if (session->greeter.locate && !dm_addresses_has_more(session->addresses))
        located = session->greeter.locate(session->greeter.user, &session->options, reason);
    if (located == DM_LOCATED)
        return true;
    session->retry.due_ns = DM_NEVER;
    session->is_change_news = true;
    dm_session_note_reason(session, "%s", reason);
    if (located == DM_LOCATED_NEVER) {
        session->permanent_failures++;
        dm_session_fail(session, "%s", reason);
    }
    return false;
}

/* Before the time a wish stays a wish; the loop thread, or the next caller, comes back at the time. */
void dm_session_open_if_due(struct dm_session *session)
{
    if (session->is_ended || session->state != DM_SESSION_CLOSED || !session->is_wanted ||
        dm_clock_boot_ns() < session->retry.due_ns)
        return;
    if (session->options.open)
        open_by_hook(session);
    else if (locate(session))
        open_by_address(session);
}

/* An empty stream is lent for a look-up. */
void dm_session_begin_preparing(const struct dm_session *session, struct dm_prepared *ret_prepared)
{
    *ret_prepared = (struct dm_prepared){
        .stream = session->lent,
        .deadline_ns = session->deadline_ns,
        .is_handshake = session->lent.fd >= 0,
    };
}

/* ---- handshake --------------------------------------------------------------------------- */

/*
 * A thread of its own shakes hands: that takes milliseconds, reads files, and needs more stack than a caller may have.
 */
static void start_handshake(struct dm_session *session)
{
    session->lent = session->pipe.stream;
    session->pipe.stream = (struct dm_stream){ .fd = -1 };
    session->is_state_news = session->is_change_news = true;
    start_preparing(session);
}

void dm_session_check_connect(struct dm_session *session)
{
    int error = dm_stream_error(&session->pipe.stream);

    session->has_reached = session->has_reached || error == 0;
    if (error == 0 && session->options.tls.is_on)
        start_handshake(session);
    else if (error == 0)
        dm_session_greet(session);
    else if (error != EINPROGRESS)
        dm_session_fail_address(session, error);
}

/* Without TLS the handshake has failed, and the stream is useless. */
static void go_on_secured(struct dm_session *session, struct dm_prepared *prepared)
{
    session->pipe.stream = prepared->stream;
    session->is_state_news = session->is_change_news = true;
    if (session->pipe.stream.tls)
        dm_session_greet(session);
    else
        dm_session_fail(session, "%s", prepared->reason);
}

/* False: the session has ended meanwhile, or the address is not the server's any more. */
static bool is_of_use(struct dm_session *session)
{
    char reason[DM_REASON_ROOM];

    if (session->state != DM_SESSION_PREPARING)
        return false;
    if (!session->greeter.is_current || session->greeter.is_current(session->greeter.user, reason))
        return true;
    dm_session_fail(session, "%s", reason);
    return false;
}

/*
 * A hook that fails after it was allowed to block will not do better soon: callers that wait give up instead of trying
 * on.
 */
void dm_session_go_on(struct dm_session *session, struct dm_prepared *prepared)
{
    session->lent = (struct dm_stream){ .fd = -1 };
    if (session->options.open)
        session->permanent_failures += prepared->stream.fd < 0;
    if (!is_of_use(session)) {
        dm_stream_close(&prepared->stream);
        dm_addresses_free(prepared->addresses);
        return;
    }
    if (prepared->is_handshake) {
        go_on_secured(session, prepared);
        return;
    }
    dm_addresses_free(session->addresses);
    session->addresses = prepared->addresses;
    session->pipe.stream = prepared->stream;
    if (session->pipe.stream.fd >= 0)
        begin_connecting(session);
    else if (session->addresses)
        connect_next(session);
    else
        dm_session_fail(session, "%s", prepared->reason);
}

void dm_session_stop_preparing(struct dm_session *session)
{
    dm_stream_close(&session->lent);
    if (session->state == DM_SESSION_PREPARING)
        dm_session_fail(session, "cannot be opened (no thread for the look-up or the handshake)");
}

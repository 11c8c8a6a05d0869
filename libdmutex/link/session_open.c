/* SPDX-License-Identifier: BSD-2-Clause */
/* How a session is opened: by an address or a hook, at once or with the help of a thread, with or without TLS. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "link/session_parts.h"

/* How long a look-up may take if the earlier addresses can be used. */
#define LOOK_UP_NS (500 * DM_NS_PER_MS)

/* ---- connect ----------------------------------------------------------------------------- */

/* connect_timeout covers the connect and the greeting together. */
static bool begin_connecting(struct dm_session *session)
{
    if (!dm_pipe_begin(&session->pipe)) {
        dm_session_fail(session, "cannot be opened (out of memory)");
        return false;
    }
    session->greeter.begin(session->greeter.user);
    session->state = DM_SESSION_CONNECTING;
    session->has_answered = false;
    session->owned_ns = 0;
    session->deadline_ns = dm_clock_boot_ns() + session->options.connect_timeout_ms * DM_NS_PER_MS;
    session->is_state_news = session->is_change_news = true;
    return true;
}

static void connect_to_addresses(struct dm_session *session)
{
    dm_race_begin(&session->race, session->addresses, session->options.connect_timeout_ms);
    if (begin_connecting(session))
        dm_session_check_connect(session);
}

static void connect_with(struct dm_session *session, int fd)
{
    dm_race_begin_with(&session->race, fd);
    if (begin_connecting(session))
        dm_session_check_connect(session);
}

/*
 * The TLS handshake has a thread of its own: it takes milliseconds, reads files, and needs more stack than a caller may
 * have.
 */
static void start_handshake(struct dm_session *session)
{
    session->lent = session->pipe.stream;
    session->pipe.stream = (struct dm_stream){ .fd = -1 };
    session->state = DM_SESSION_PREPARING;
    session->is_left = false;
    session->is_handshake_due = session->must_prepare = true;
}

/*
 * After command_timeout, unacknowledged bytes in the kernel end the connection, as unanswered commands do here.  From
 * now on the winner's socket is polled instead of the race's.
 */
void dm_session_check_connect(struct dm_session *session)
{
    int fd, error = dm_race_step(&session->race, session->addresses, session->options.command_timeout_ms, &fd);

    if (error == EINPROGRESS)
        return;
    if (error) {
        dm_session_fail_address(session, error);
        return;
    }
    session->pipe.stream = dm_stream_of(fd);
    session->has_reached = session->is_state_news = session->is_change_news = true;
    if (session->options.tls.is_on)
        start_handshake(session);
    else
        dm_session_greet(session);
}

/* ---- the way ----------------------------------------------------------------------------- */

static void give_time(struct dm_session *session, int64_t now_ns)
{
    session->deadline_ns = dm_addresses_have_good(session->addresses)
                               ? session->looked_ns + LOOK_UP_NS
                               : now_ns + session->options.connect_timeout_ms * DM_NS_PER_MS;
    session->is_change_news = true;
}

/*
 * Looking up a name, or starting a server, may block: the link does it in a thread, without its lock.  A look-up that
 * is under way serves the next opening, too.
 */
static void find_way(struct dm_session *session)
{
    int64_t now_ns = dm_clock_boot_ns();

    session->state = DM_SESSION_PREPARING;
    if (!session->is_finding_way && !session->is_way_due) {
        session->is_way_due = session->must_prepare = true;
        session->is_greeter_prepared = !session->greeter.prepare;
        session->looked_ns = now_ns;
    }
    give_time(session, now_ns);
}

/* A slow file must not shorten the look-up: its time begins now. */
void dm_session_note_greeter_prepared(struct dm_session *session)
{
    session->is_greeter_prepared = true;
    session->looked_ns = dm_clock_boot_ns();
    if (dm_session_awaits_look_up(session))
        give_time(session, session->looked_ns);
}

/* A socket that can be opened at once needs no preparation; if it cannot, the preparation finds out why. */
static void open_by_hook(struct dm_session *session)
{
    char reason[DM_REASON_ROOM];
    int fd = -1;

    session->has_reached = false;
    if (!session->greeter.prepare)
        fd = session->options.open(session->options.open_user, false, reason);
    if (fd >= 0)
        connect_with(session, fd);
    else
        find_way(session);
}

/* Begins a new round with the address that was good before. */
static void take_addresses(struct dm_session *session, struct dm_addresses *addresses)
{
    if (session->addresses)
        dm_addresses_prefer(addresses, session->addresses);
    dm_addresses_free(session->addresses);
    session->addresses = addresses;
    session->has_reached = false;
}

/*
 * An address without a name is found at once, unless the greeter has something to do first.  If the server was left
 * during the look-up, the greeter's work is not repeated for the next one.
 */
static void find_addresses(struct dm_session *session)
{
    char reason[DM_REASON_ROOM];
    struct dm_addresses *addresses;
    enum dm_found found = DM_FOUND_LATER;

    if (!session->greeter.prepare || (session->is_finding_way && session->is_greeter_prepared))
        found = dm_addresses_find(&session->options.address, false, &addresses, reason);
    if (found == DM_FOUND_LATER) {
        find_way(session);
    } else if (found == DM_FOUND) {
        take_addresses(session, addresses);
        connect_to_addresses(session);
    } else {
        dm_session_fail(session, "%s", reason);
    }
}

/* The greeter may have named another server since they were looked up. */
static void forget_unless_of(struct dm_addresses **addresses, const struct dm_address *address)
{
    if (dm_addresses_are_of(*addresses, address))
        return;
    dm_addresses_free(*addresses);
    *addresses = NULL;
}

/*
 * All addresses of a name are tried; then the name is looked up again, because the server may have moved.  The greeter
 * prepares each time: a password may have been changed since the last address was tried.
 */
static void open_by_address(struct dm_session *session)
{
    forget_unless_of(&session->addresses, &session->options.address);
    forget_unless_of(&session->found, &session->options.address);
    if (session->found)
        take_addresses(session, session->found);
    session->found = NULL;
    if (dm_addresses_left(session->addresses) && !session->greeter.prepare)
        connect_to_addresses(session);
    else
        find_addresses(session);
}

/*
 * If nobody knows where the server is, the session stays closed and wanted until somebody does.  Untried addresses are
 * useless once the server is elsewhere.
 */
static bool locate(struct dm_session *session)
{
    char reason[DM_REASON_ROOM];
    enum dm_located located = DM_LOCATED;

    if (session->greeter.locate &&
        (dm_addresses_left(session->addresses) == 0 || !dm_session_is_believed(session, true, reason)))
        located = session->greeter.locate(session->greeter.user, &session->options, reason);
    if (located == DM_LOCATED) {
        if (session->is_nowhere)
            dm_session_note_reason(session, DM_SESSION_NO_ANSWER);
        session->is_nowhere = false;
        return true;
    }
    session->retry.due_ns = DM_NEVER;
    session->is_change_news = session->is_nowhere = true;
    dm_session_note_reason(session, "%s", reason);
    if (located == DM_LOCATED_NEVER) {
        session->permanent_failures++;
        dm_session_fail(session, "%s", reason);
    }
    return false;
}

/* Before the retry is due nothing happens; the loop thread, or the next caller, comes back then. */
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

/* ---- in a thread ------------------------------------------------------------------------- */

/* True if the session waits only for its greeter. */
static bool has_addresses(const struct dm_session *session)
{
    return session->greeter.prepare && !session->options.open && dm_addresses_left(session->addresses) > 0;
}

/* More than one task may be due: a handshake may begin while a look-up outlasts the connect. */
void dm_session_begin_preparing(struct dm_session *session, struct dm_prepared *ret_prepared)
{
    const struct dm_address *address = &session->options.address;

    *ret_prepared = (struct dm_prepared){ .stream = { .fd = -1 } };
    if (session->is_handshake_due) {
        ret_prepared->task = DM_PREPARING_HANDSHAKE;
        ret_prepared->stream = session->lent;
        ret_prepared->deadline_ns = session->deadline_ns;
        session->is_handshake_due = false;
    } else if (session->is_way_due) {
        ret_prepared->task = has_addresses(session) ? DM_PREPARING_LOGIN : DM_PREPARING_WAY;
        session->is_way_due = false;
        session->is_finding_way = true;
        snprintf(ret_prepared->host, sizeof ret_prepared->host, "%s", address->host ? address->host : "");
        snprintf(ret_prepared->port, sizeof ret_prepared->port, "%s", address->port ? address->port : "");
    }
}

/* If the stream has no TLS, the handshake has failed, and the stream is useless. */
static void go_on_secured(struct dm_session *session, struct dm_prepared *prepared)
{
    session->pipe.stream = prepared->stream;
    session->is_state_news = session->is_change_news = true;
    if (session->pipe.stream.tls)
        dm_session_greet(session);
    else
        dm_session_fail(session, "%s", prepared->reason);
}

/* False if the session has ended, perhaps only in a forked child, or the address is no longer the server's. */
static bool is_of_use(struct dm_session *session)
{
    char reason[DM_REASON_ROOM];

    if (session->state != DM_SESSION_PREPARING || session->is_ended)
        return false;
    if (dm_session_is_believed(session, true, reason))
        return true;
    dm_session_fail(session, "%s", reason);
    return false;
}

static void go_on_with_handshake(struct dm_session *session, struct dm_prepared *prepared)
{
    bool is_awaited = session->state == DM_SESSION_PREPARING && !session->is_ended;

    session->lent = (struct dm_stream){ .fd = -1 };
    if (is_awaited && session->is_left)
        dm_session_fail_as_noted(session);
    if (is_of_use(session))
        go_on_secured(session, prepared);
    else
        dm_stream_close(&prepared->stream);
}

/* A hook that fails although it may block will not do better soon, unless it says so: callers that wait give up. */
static void go_on_with_hook(struct dm_session *session, struct dm_prepared *prepared)
{
    session->permanent_failures += prepared->stream.fd < 0 && !prepared->may_open_later;
    if (!is_of_use(session))
        dm_stream_close(&prepared->stream);
    else if (prepared->stream.fd >= 0)
        connect_with(session, prepared->stream.fd);
    else
        dm_session_fail(session, "%s", prepared->reason);
}

/* An unreachable name server says nothing about a server that was reached at this address before. */
static void use_good_addresses(struct dm_session *session, const char *reason)
{
    if (!is_of_use(session))
        return;
    dm_log_warn("%s; using the last address of %s", reason, session->options.name);
    dm_addresses_begin(session->addresses);
    session->has_reached = false;
    connect_to_addresses(session);
}

bool dm_session_awaits_look_up(const struct dm_session *session)
{
    return session->state == DM_SESSION_PREPARING && !session->is_ended && session->lent.fd < 0 &&
           !session->options.open && session->is_greeter_prepared;
}

/* The thread that does the TLS handshake is using the options. */
void dm_session_leave(struct dm_session *session, const char *reason)
{
    if (session->state == DM_SESSION_CLOSED || session->is_ended)
        return;
    if (session->state != DM_SESSION_PREPARING || dm_session_awaits_look_up(session)) {
        dm_session_fail(session, "%s", reason);
    } else if (session->lent.fd >= 0) {
        dm_session_note_reason(session, "%s", reason);
        session->is_left = true;
        dm_stream_end(&session->lent);
    }
}

void dm_session_go_on_without_look_up(struct dm_session *session)
{
    char reason[DM_REASON_ROOM];

    snprintf(reason, sizeof reason, "the host name %.80s cannot be looked up: no name server answers",
             session->options.address.host ? session->options.address.host : "");
    if (dm_addresses_have_good(session->addresses))
        use_good_addresses(session, reason);
    else
        dm_session_fail(session, "%s", reason);
}

static bool is_of_address(const struct dm_prepared *prepared, const struct dm_address *address)
{
    return !address->host || (strcmp(prepared->host, address->host) == 0 && strcmp(prepared->port, address->port) == 0);
}

/* The session waits for the look-up. */
static void use_look_up(struct dm_session *session, struct dm_prepared *prepared)
{
    if (prepared->found == DM_FOUND_AWAY && dm_addresses_have_good(session->addresses)) {
        use_good_addresses(session, prepared->reason);
    } else if (prepared->found != DM_FOUND) {
        dm_session_fail(session, "%s", prepared->reason);
    } else {
        take_addresses(session, prepared->addresses);
        prepared->addresses = NULL;
        connect_to_addresses(session);
    }
}

/* A look-up for which nobody waits any more is kept for the next opening, unless a connection has been opened since. */
static void keep_look_up(struct dm_session *session, struct dm_prepared *prepared)
{
    if (prepared->found != DM_FOUND || session->state == DM_SESSION_READY || session->is_ended)
        return;
    dm_addresses_free(session->found);
    session->found = prepared->addresses;
    prepared->addresses = NULL;
}

static void go_on_with_look_up(struct dm_session *session, struct dm_prepared *prepared)
{
    bool is_awaited = dm_session_awaits_look_up(session);

    if (!is_of_address(prepared, &session->options.address)) {
        if (is_awaited)
            find_way(session);
    } else if (!is_awaited) {
        keep_look_up(session, prepared);
    } else if (is_of_use(session)) {
        use_look_up(session, prepared);
    }
    dm_addresses_free(prepared->addresses);
}

/* The greeter is prepared, and addresses were left; but the server may now be elsewhere, or all may have been tried. */
static void go_on_with_addresses(struct dm_session *session)
{
    if (!dm_session_awaits_look_up(session) || !is_of_use(session))
        return;
    forget_unless_of(&session->addresses, &session->options.address);
    if (dm_addresses_left(session->addresses))
        connect_to_addresses(session);
    else
        find_way(session);
}

void dm_session_go_on(struct dm_session *session, struct dm_prepared *prepared)
{
    if (prepared->task == DM_PREPARING_HANDSHAKE) {
        go_on_with_handshake(session, prepared);
        return;
    }
    session->is_finding_way = false;
    if (session->options.open)
        go_on_with_hook(session, prepared);
    else if (prepared->task == DM_PREPARING_LOGIN)
        go_on_with_addresses(session);
    else
        go_on_with_look_up(session, prepared);
}

void dm_session_stop_preparing(struct dm_session *session)
{
    if (session->is_handshake_due)
        dm_stream_close(&session->lent);
    session->is_handshake_due = session->is_way_due = false;
    if (session->state == DM_SESSION_PREPARING)
        dm_session_fail(session, "cannot be opened (no thread for the look-up or the handshake)");
}

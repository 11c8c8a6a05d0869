/* SPDX-License-Identifier: BSD-2-Clause */
/* How a session's connection ends, with its reason, and how its slots finish. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "link/session_parts.h"

/* Reasons may alternate as long as a server is away. */
#define TELLINGS_MOST 4

/* The reason comes after the server's name, which leaves at least 200 bytes for it. */
static void DM_PRINTF(2, 0) note_reason(struct dm_session *session, const char *format, va_list args)
{
    int used = snprintf(session->reason, sizeof session->reason, "%s: ", session->options.name);

    vsnprintf(session->reason + used, sizeof session->reason - (size_t)used, format, args);
}

void dm_session_note_reason(struct dm_session *session, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    note_reason(session, format, args);
    va_end(args);
}

/* Slots are handed out in the order in which they finish; threads and handlers may rely on it. */
void dm_session_finish(struct dm_session *session, struct dm_slot *slot, redisReply *reply)
{
    slot->reply = reply;
    slot->next = NULL;
    *session->finished_end = slot;
    session->finished_end = &slot->next;
}

/* The caller hands out slots only after the parsing, because a handler may send, and so change the session. */
struct dm_slot *dm_session_take_finished(struct dm_session *session)
{
    struct dm_slot *slot = session->finished;

    if (!slot)
        return NULL;
    session->finished = slot->next;
    if (!session->finished)
        session->finished_end = &session->finished;
    return slot;
}

/* An error grants nothing, so no replica need confirm it: "no such script" is answered by sending the script. */
static bool needs_confirming(const struct dm_slot *slot)
{
    return slot->reply->type != REDIS_REPLY_ERROR;
}

void dm_session_give_kept(struct dm_session *session, bool is_confirmed)
{
    struct dm_slot *slot = session->kept.first;

    session->kept.first = NULL;
    session->kept.end = &session->kept.first;
    while (slot) {
        struct dm_slot *next = slot->next;
        bool is_given = is_confirmed || !needs_confirming(slot);

        if (!is_given)
            dm_reply_free(slot->reply);
        dm_session_finish(session, slot, is_given ? slot->reply : NULL);
        slot = next;
    }
}

/* ---- closing ----------------------------------------------------------------------------- */

/* A thread that has been requested will find its task; a task for which none was requested yet would never be done. */
static void take_back_tasks(struct dm_session *session)
{
    if (!session->must_prepare)
        return;
    if (session->is_handshake_due)
        dm_stream_close(&session->lent);
    session->is_handshake_due = session->is_way_due = false;
}

/*
 * All slots finish without a reply, so that no caller waits for an answer that cannot come.  Nobody waits for the
 * session's own greetings and checks.  A lent stream is closed by its thread.
 */
static void shut(struct dm_session *session)
{
    struct dm_slot *slot;

    dm_pipe_close(&session->pipe);
    dm_race_end(&session->race);
    take_back_tasks(session);
    dm_stream_end(&session->lent);
    session->state = DM_SESSION_CLOSED;
    dm_identify_end(&session->identify);
    session->is_wanted = session->must_prepare = false;
    dm_session_give_kept(session, false);
    session->kept.is_under_way = session->kept.is_behind = false;
    while ((slot = dm_pipe_pop(&session->pipe)) != NULL) {
        if (slot->kind == DM_SLOT_COMMAND)
            dm_session_finish(session, slot, NULL);
        else
            dm_pipe_spare_slot(&session->pipe, slot);
    }
    session->is_state_news = session->is_change_news = true;
}

/* Logs once that the connection is restored, if its loss was logged. */
void dm_session_note_use(struct dm_session *session)
{
    if (session->retry.failures == 0 || session->state != DM_SESSION_READY ||
        !dm_retry_note_use(&session->retry, dm_clock_boot_ns()))
        return;
    if (session->tellings > 0)
        dm_log_info("the connection to %s is back", session->options.name);
    session->tellings = 0;
}

/* A new reason is logged as well: an expired certificate, for example, shows only after a restart of the server. */
static void tell(struct dm_session *session)
{
    if (session->tellings == TELLINGS_MOST || (session->tellings > 0 && strcmp(session->reason, session->told) == 0))
        return;
    dm_log_warn("the connection to %s", session->reason);
    snprintf(session->told, sizeof session->told, "%s", session->reason);
    session->tellings++;
}

void dm_session_fail_as_noted(struct dm_session *session)
{
    if (!session->pipe.first) /* there was no request to answer: having been open counts as use */
        dm_session_note_use(session);
    tell(session);
    dm_retry_note_failure(&session->retry, dm_clock_boot_ns());
    shut(session);
}

/* May be called in any state, and during the parsing: callers check the state or the descriptor before they go on. */
void dm_session_fail(struct dm_session *session, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    note_reason(session, format, args);
    va_end(args);
    dm_session_fail_as_noted(session);
}

/*
 * Proxies close idle connections.  That is no failure as long as the next one can be opened; if the server is gone,
 * that attempt reports it.
 */
void dm_session_end_idle(struct dm_session *session)
{
    dm_session_note_use(session);
    dm_session_note_reason(session, "was closed by the server, or by a proxy, while idle");
    dm_log_info("the connection to %s", session->reason);
    dm_retry_note_failure(&session->retry, dm_clock_boot_ns());
    shut(session);
}

void dm_session_fail_address(struct dm_session *session, int error)
{
    if (session->has_reached)
        dm_session_fail_as_noted(session);
    else
        dm_session_fail(session, "cannot be opened (%s)%s", dm_text_error(error),
                        error == EAFNOSUPPORT ? ": allow AF_UNIX, or AF_INET and AF_INET6, as in "
                                                "RestrictAddressFamilies= of the program's unit"
                                              : "");
}

/*
 * A server that requires TLS closes the connection silently, or with a TLS alert; some proxies close it at a command
 * that they do not know.
 */
const char *dm_session_hint(const struct dm_session *session)
{
    bool may_want_tls = session->state == DM_SESSION_GREETING && !session->has_answered &&
                        !session->options.tls.is_on && !session->options.open;

    return may_want_tls
               ? "; if the server wants TLS, write rediss:// or tls=yes; if a proxy is between, name the server"
               : "";
}

/* The stream's own sentence says more than an errno value. */
void dm_session_fail_by_stream(struct dm_session *session, const char *what)
{
    const char *reason = dm_stream_reason(&session->pipe.stream);
    int error = errno;

    if (*reason)
        dm_session_fail(session, "%s", reason);
    else
        dm_session_fail(session, "%s (%s)%s", what, dm_text_error(error), dm_session_hint(session));
}

void dm_session_rest(struct dm_session *session, const char *reason)
{
    dm_session_note_reason(session, "%s", reason);
    shut(session);
}

/* Not logged: the process has asked for the end. */
void dm_session_end(struct dm_session *session, const char *reason)
{
    snprintf(session->reason, sizeof session->reason, "%s", reason);
    session->is_ended = true;
    shut(session);
}

void dm_session_forget(struct dm_session *session)
{
    dm_stream_forget(&session->pipe.stream);
    dm_stream_forget(&session->lent);
    dm_race_forget(&session->race);
    session->is_ended = true;
}

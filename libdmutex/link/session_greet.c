/* SPDX-License-Identifier: BSD-2-Clause */
/* The greeting of a session: rounds of commands from the greeter, until it has no more. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "link/session_parts.h"

/* The name is looked up again for the next connection, because the server may have moved. */
static void note_good_address(struct dm_session *session)
{
    if (session->addresses)
        dm_addresses_note_good(session->addresses, session->race.winner);
    dm_addresses_free(session->found);
    session->found = NULL;
    session->has_reached = false;
}

static void become_ready(struct dm_session *session)
{
    session->peer = session->greeter.ready(session->greeter.user);
    note_good_address(session);
    session->state = DM_SESSION_READY;
    session->openings++;
    session->retry.ready_ns = dm_clock_boot_ns();
    if (!session->is_answer_refused)
        dm_session_note_reason(session, DM_SESSION_NO_ANSWER);
    session->is_ready_news = session->is_change_news = session->is_state_news = true;
}

/* Pushes one slot for each reply of the round. */
static bool push_greetings(struct dm_session *session)
{
    for (int i = 0; i < session->greetings; i++) {
        struct dm_slot *slot = dm_pipe_take_slot(&session->pipe);

        if (!slot)
            return false;
        slot->kind = DM_SLOT_GREETING;
        dm_pipe_push(&session->pipe, slot);
    }
    return true;
}

/*
 * A server that has already closed may have said why, as one with too many clients does: reading finds that before the
 * end of the stream.
 */
static bool is_sent(struct dm_session *session, const struct dm_command *round)
{
    return dm_pipe_write(&session->pipe, round->bytes, round->length) ||
           (!session->pipe.stream.tls && (errno == EPIPE || errno == ECONNRESET));
}

void dm_session_greet(struct dm_session *session)
{
    struct dm_command round = { 0 };
    bool is_written;

    if (session->state != DM_SESSION_GREETING) /* the first round; its answers may be read late */
        dm_identify_begin(&session->identify, dm_clock_boot_ns());
    session->state = DM_SESSION_GREETING;
    session->is_near = dm_stream_is_near(&session->pipe.stream);
    session->greetings = session->greeter.round(session->greeter.user, &round);
    if (session->greetings == 0) {
        dm_command_free(&round);
        become_ready(session);
        return;
    }
    is_written = round.bytes && is_sent(session, &round);
    session->is_change_news |= dm_pipe_pending(&session->pipe) > 0;
    dm_command_free(&round);
    if (!is_written)
        dm_session_fail_by_stream(session, "broke in the greeting");
    else if (!push_greetings(session))
        dm_session_fail(session, "cannot be opened (out of memory)");
}

void dm_session_take_greeting(struct dm_session *session, redisReply *reply)
{
    char reason[DM_REASON_ROOM];
    bool is_good = session->greeter.take(session->greeter.user, reply, reason);

    dm_reply_free(reply);
    if (!is_good)
        dm_session_fail(session, "%s", reason);
    else if (--session->greetings == 0)
        dm_session_greet(session);
}

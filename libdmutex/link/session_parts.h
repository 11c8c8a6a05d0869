/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a session, for its files alone.  Each calls only functions of the files before it: session_close.c,
 * session_greet.c, session_open.c, session.c.
 */
#ifndef DM_LINK_SESSION_PARTS_H
#define DM_LINK_SESSION_PARTS_H

#include "link/session.h"

/* The slot's reply has come; NULL: none will.  The order of finishing is the order of handing out. */
void dm_session_finish(struct dm_session *session, struct dm_slot *slot, struct redisReply *reply);

/* Finishes the slots that were kept for a confirmation: with their replies, or with none. */
void dm_session_give_kept(struct dm_session *session, bool is_confirmed);

/* The connection was of use: once it counts as back, the log is told so. */
void dm_session_note_use(struct dm_session *session);

/* What to do about a connection that the server ends in the greeting; "": nothing is known. */
const char *dm_session_hint(const struct dm_session *session);

/* Connected: the next round of the greeting, or ready. */
void dm_session_greet(struct dm_session *session);

/* A reply to the greeting; `greetings` counts the replies left of the round. */
void dm_session_take_greeting(struct dm_session *session, struct redisReply *reply);

/* Fails with the reason that has been noted. */
void dm_session_fail_as_noted(struct dm_session *session);

/* Fails with the reason of the stream; what: "broke while sending". */
void dm_session_fail_by_stream(struct dm_session *session, const char *what);

/* Ready, and without a request under way for a second or longer: the other end has closed. */
void dm_session_end_idle(struct dm_session *session);

/* DM_SESSION_PREPARING: true if the session waits for a look-up, which has a deadline. */
bool dm_session_awaits_look_up(const struct dm_session *session);

/* The look-up has not come in time: goes on with the addresses that were good before, if there are any. */
void dm_session_go_on_without_look_up(struct dm_session *session);

/* DM_SESSION_CONNECTING: goes on if a connect has succeeded, or all have failed. */
void dm_session_check_connect(struct dm_session *session);

/*
 * No address can be connected to.  The reason of another address of the same name whose server was reached in this
 * round stays.
 */
void dm_session_fail_address(struct dm_session *session, int error);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a session, only for its own files.  Each calls only functions of the files before it: session_close.c,
 * session_greet.c, session_open.c, session.c.
 */
#ifndef DM_LINK_SESSION_PARTS_H
#define DM_LINK_SESSION_PARTS_H

#include "link/session.h"

/* The slot's reply has come; NULL: none will.  Replies are handed out in the order of these calls. */
void dm_session_finish(struct dm_session *session, struct dm_slot *slot, struct redisReply *reply);

/* Finishes the slots that waited for a confirmation: with their replies, or with none. */
void dm_session_give_kept(struct dm_session *session, bool is_confirmed);

/* The connection is in use: when it counts as restored, that is logged. */
void dm_session_note_use(struct dm_session *session);

/* What to do about a connection that the server ends during the greeting; "": not known. */
const char *dm_session_hint(const struct dm_session *session);

/* Connected: begins the next round of the greeting, or becomes ready. */
void dm_session_greet(struct dm_session *session);

/* Takes a reply of the greeting; `greetings` counts those that the round still lacks. */
void dm_session_take_greeting(struct dm_session *session, struct redisReply *reply);

/* Fails with the reason that has been noted. */
void dm_session_fail_as_noted(struct dm_session *session);

/* Fails with the stream's reason; what: such as "broke while sending". */
void dm_session_fail_by_stream(struct dm_session *session, const char *what);

/* The other end has closed a connection that was ready and had no request under way for at least a second. */
void dm_session_end_idle(struct dm_session *session);

/* DM_SESSION_PREPARING: true if the session waits for a look-up, which has a deadline. */
bool dm_session_awaits_look_up(const struct dm_session *session);

/* The look-up takes too long: continues with the addresses that were good before, if there are any. */
void dm_session_go_on_without_look_up(struct dm_session *session);

/* DM_SESSION_CONNECTING: continues if a connect has succeeded, or all have failed. */
void dm_session_check_connect(struct dm_session *session);

/*
 * No address can be connected to.  If a server was reached at another address of the name in this round, its reason
 * stays.
 */
void dm_session_fail_address(struct dm_session *session, int error);

#endif

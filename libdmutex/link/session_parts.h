/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of a session, for session.c, session_greet.c and session_open.c alone. */
#ifndef DM_LINK_SESSION_PARTS_H
#define DM_LINK_SESSION_PARTS_H

#include "link/session.h"

/* Connected: the next round of the greeting, or ready. */
void dm_session_greet(struct dm_session *session);

/* A reply to the greeting; `greetings` counts the replies left of the round. */
void dm_session_take_greeting(struct dm_session *session, struct redisReply *reply);

/* Fails with the reason of the stream; what: "broke while sending". */
void dm_session_fail_by_stream(struct dm_session *session, const char *what);

/* DM_SESSION_CONNECTING: goes on if the connect has ended. */
void dm_session_check_connect(struct dm_session *session);

/* The addresses are looked up anew for the next connection. */
void dm_session_forget_addresses(struct dm_session *session);

/*
 * An address cannot be opened.  The reason of another address of the same name whose server was reached stays, also one
 * of the round before, until this round has tried all addresses.
 */
void dm_session_fail_address(struct dm_session *session, int error);

#endif

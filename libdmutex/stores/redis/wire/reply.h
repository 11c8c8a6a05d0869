/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replies of the server: what errors mean to us, and safe readers of scripts' results.  Nothing that a server sends is
 * trusted: a reply of another shape is an error, never a grant.
 */
#ifndef DM_REDIS_WIRE_REPLY_H
#define DM_REDIS_WIRE_REPLY_H

#include <hiredis.h>
#include <stdbool.h>
#include <stdint.h>

#include "link/reader.h" /* dm_reply_free() */

/* What to do after an error reply. */
enum dm_error_row {
    DM_ROW_NONE,       /* not an error */
    DM_ROW_SCRIPT,     /* NOSCRIPT: send the text */
    DM_ROW_RETRY,      /* the server is not ready: ask again a little later */
    DM_ROW_REDISCOVER, /* the wrong server, or one that no longer knows us: reconnect */
    DM_ROW_NO_MEMORY,
    DM_ROW_REFUSED /* somebody must fix something; any error that we do not know */
};

enum dm_error_row dm_reply_row(const redisReply *reply);

/* True for an error that a person mends by another login or more rights: NOAUTH, NOPERM, WRONGPASS. */
bool dm_reply_is_denial(const redisReply *reply);

/* The code of an error, such as "ERR", if it is one of `codes`; else NULL. */
const char *dm_reply_code(const redisReply *reply, const char *const *codes, size_t count);

/*
 * The code of an error reply to AUTH, or else "an unknown answer".  The rest of such a reply is shown nowhere, because
 * it may contain the password: servers quote the arguments of an unknown command.
 */
const char *dm_reply_refusal(const redisReply *reply);

/* True for digits and nothing else, of a number that fits. */
bool dm_reply_digits(const char *text, size_t length, uint64_t *ret_number);

/*
 * True for a host that may be looked up and shown: printable ASCII without blanks, and so without NUL, that is not too
 * long for DNS.
 */
bool dm_reply_is_host(const char *text, size_t length);

/*
 * A script answers with words: an array of words and numbers, or, which costs the server less, one text with a space
 * between the words.
 */

/* Word `index` of an answer as a number; false if there is no such number. */
bool dm_reply_number(const redisReply *reply, size_t index, uint64_t *ret_number);

/* True if `word` is the first word of an answer. */
bool dm_reply_is(const redisReply *reply, const char *word);

#endif

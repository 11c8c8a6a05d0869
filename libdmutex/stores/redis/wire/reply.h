/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replies of the server: the meaning of errors to us, and safe readers of scripts' results.
 * Nothing a server sends is trusted: a reply of another shape is an error, never a grant.
 */
#ifndef DM_REDIS_WIRE_REPLY_H
#define DM_REDIS_WIRE_REPLY_H

#include <hiredis.h>
#include <stdbool.h>
#include <stdint.h>

#include "link/reader.h" /* dm_reply_free() */

/* Actions after an error reply. */
enum dm_error_row {
    DM_ROW_NONE,       /* not an error */
    DM_ROW_SCRIPT,     /* NOSCRIPT: send the text */
    DM_ROW_RETRY,      /* the server is not ready: again, a little later */
    DM_ROW_REDISCOVER, /* the wrong server, or a server that does not know us any more: connect anew */
    DM_ROW_NO_MEMORY,
    DM_ROW_REFUSED /* a person must mend something; anything we do not know */
};

enum dm_error_row dm_reply_row(const redisReply *reply);

/* The code of an error, such as "ERR", if it is one of these; or NULL. */
const char *dm_reply_code(const redisReply *reply, const char *const *codes, size_t count);

/*
 * The code of an error that answers AUTH, or else "an unknown answer".  The rest of such an answer stands in no
 * sentence, because it may quote the password: servers quote the arguments of an unknown command.
 */
const char *dm_reply_refusal(const redisReply *reply);

/* True for digits and nothing else, as a number that fits. */
bool dm_reply_digits(const char *text, size_t length, uint64_t *ret_number);

/*
 * True for a host that may be looked up and stand in sentences: printable ASCII without blanks, and so without NUL,
 * that fits a name of DNS.
 */
bool dm_reply_is_host(const char *text, size_t length);

/*
 * A script answers with words: an array of words and numbers, or one text with a space between the words, which costs
 * the server less.
 */

/* Word `index` of an answer as a number; false if there is no such number. */
bool dm_reply_number(const redisReply *reply, size_t index, uint64_t *ret_number);

/* True if `word` is the first word of an answer. */
bool dm_reply_is(const redisReply *reply, const char *word);

#endif

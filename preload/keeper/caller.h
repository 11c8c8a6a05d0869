/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes that ask: a connection, one question, one answer.  Main loop only. */
#ifndef DM_PRELOAD_KEEPER_CALLER_H
#define DM_PRELOAD_KEEPER_CALLER_H

#include <glib.h>
#include <stddef.h>
#include <sys/types.h>

struct caller;

/* Of `length` bytes, with a NUL at the end. */
typedef void (*caller_question_fn)(struct caller *caller, const char *question, size_t length);

/* From now on each question that comes is given to the function, which has it answered some day. */
void callers_begin(caller_question_fn on_question);

/* What to do when it goes away without waiting for its answer; it must not be used after that. */
void caller_on_gone(struct caller *caller, void (*on_gone)(void *user), void *user);

pid_t caller_pid(const struct caller *caller);

/* One of these, once. */
void caller_answer(struct caller *caller, const char *word);
void caller_answer_text(struct caller *caller, const GString *text); /* without its NUL; may be long */
void caller_fail(struct caller *caller, int error, const char *sentence);
void caller_dismiss(struct caller *caller); /* without an answer: it may ask anew */

#endif

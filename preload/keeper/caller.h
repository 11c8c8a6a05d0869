/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes that ask: a connection, one question, one answer. Main loop only. */
#ifndef DM_PRELOAD_KEEPER_CALLER_H
#define DM_PRELOAD_KEEPER_CALLER_H

#include <glib.h>
#include <stddef.h>
#include <sys/types.h>

struct caller;

/* Of `length` bytes, with a NUL at the end. */
typedef void (*caller_question_fn)(struct caller *caller, const char *question, size_t length);

/* From now on each question is given to the function, which has the question answered some day. */
void callers_begin(caller_question_fn on_question);

/*
 * Sets the action for a caller that goes away without waiting for the answer; the caller must not be used afterwards.
 */
void caller_on_gone(struct caller *caller, void (*on_gone)(void *user), void *user);

pid_t caller_pid(const struct caller *caller);

/* A descriptor that came with the question, and stays the caller's. -1: none. */
int caller_gift(const struct caller *caller, int which);

/* A descriptor that came with the question (keeper_talk.h); belongs to the taker. -1: none came, or it is taken. */
int caller_take_gift(struct caller *caller, int which);

/* One of these functions, once. */
void caller_answer(struct caller *caller, const char *word);
void caller_answer_text(struct caller *caller, const GString *text); /* without the final NUL; may be long */
void caller_fail(struct caller *caller, int error, const char *sentence);
void caller_dismiss(struct caller *caller); /* without an answer: the caller may ask anew */

#endif

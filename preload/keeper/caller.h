/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes that ask the keeper: one connection, one question, one answer. Main loop only. */
#ifndef DM_PRELOAD_KEEPER_CALLER_H
#define DM_PRELOAD_KEEPER_CALLER_H

#include <glib.h>
#include <stddef.h>
#include <sys/types.h>

struct caller;

/* The question has `length` bytes, and a NUL after them. */
typedef void (*caller_question_fn)(struct caller *caller, const char *question, size_t length);

/* From now on each question goes to the function, which must see to it that the question is answered some time. */
void callers_begin(caller_question_fn on_question);

/*
 * Sets what is called if the caller goes away without waiting for the answer. After that, the caller must not be used.
 */
void caller_on_gone(struct caller *caller, void (*on_gone)(void *user), void *user);

pid_t caller_pid(const struct caller *caller);

/* A descriptor that came with the question; it stays the caller's. -1: none. */
int caller_gift(const struct caller *caller, int which);

/* A descriptor that came with the question (keeper_talk.h); whoever takes it owns it. -1: none came, or it is taken. */
int caller_take_gift(struct caller *caller, int which);

/* Call one of these functions, once. */
void caller_answer(struct caller *caller, const char *word);
void caller_answer_text(struct caller *caller, const GString *text); /* without the final NUL; may be long */
void caller_fail(struct caller *caller, int error, const char *sentence);
void caller_dismiss(struct caller *caller); /* without an answer; the caller may ask again */

#endif

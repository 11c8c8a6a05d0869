/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between fork() and whatever a child must not find half done: each waits for the other.
 *
 * Nothing is held meanwhile, and nobody waits for ever: a thread that changes something may hold what a later
 * handler of fork() wants.  After a second it goes on, and so does that fork().
 */
#ifndef DM_PRELOAD_GATE_H
#define DM_PRELOAD_GATE_H

/* Around a change; nests. */
void gate_enter(void);
void gate_leave(void);

/* Waits for the end of each fork() of another thread. */
void gate_await_forks(void);

/* Called at fork(). */
void gate_before_fork(void);
void gate_after_fork(void);
void gate_in_child(void);

#endif

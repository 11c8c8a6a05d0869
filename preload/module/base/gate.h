/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps fork() apart from changes that a child must not find half done: each waits for the other.
 *
 * No lock is held meanwhile, and no thread waits for ever: a thread that changes something may hold a lock that a later
 * handler of fork() wants. After three seconds the change goes on, and the fork() goes on too.
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

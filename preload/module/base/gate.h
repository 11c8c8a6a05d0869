/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps fork() apart from changes that a child must not find half done: each waits for the other.
 *
 * Nobody holds a lock while waiting, and nobody waits forever: a thread in a change may hold a lock that a later fork
 * handler wants. After three seconds the change goes on, and so does the fork().
 */
#ifndef DM_PRELOAD_GATE_H
#define DM_PRELOAD_GATE_H

/* Around a change; nests. */
void gate_enter(void);
void gate_leave(void);

/* Waits until every fork() of another thread has ended. */
void gate_await_forks(void);

/* Called at fork(). */
void gate_before_fork(void);
void gate_after_fork(void);
void gate_in_child(void);

#endif

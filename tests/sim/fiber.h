/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of simulated processes: each fiber has its own stack, and runs until it yields.  So the library's own
 * blocking code runs unchanged, and the simulator decides the order of the threads.
 */
#ifndef SIM_FIBER_H
#define SIM_FIBER_H

#include <stdbool.h>

struct fiber;

/* ended: called by an unwound fiber, on the fiber's stack. */
struct fiber *fiber_new(void (*run)(void *user), void (*ended)(void *user), void *user);

/* Runs the fiber until it yields or ends.  True if it has ended; the object is then gone. */
bool fiber_resume(struct fiber *fiber);

/* Lets the running fiber give way; returns when the fiber is resumed. */
void fiber_give_way(void);

/* Returns the running fiber, or NULL. */
struct fiber *fiber_current(void);

/* Forgets a fiber that does not run, at any point of its code: nothing done by the fiber is undone. */
void fiber_forget(struct fiber *fiber);

/* Cancels the running fiber: unwinds the stack, runs cleanup handlers, and ends the fiber. */
_Noreturn void fiber_unwind(void);

#endif

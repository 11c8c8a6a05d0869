/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of simulated processes: each has a stack of its own, and runs until it gives way.  So the
 * library's own blocking code runs unchanged, and who runs when is ours to say.
 */
#ifndef SIM_FIBER_H
#define SIM_FIBER_H

#include <stdbool.h>

struct fiber;

/* ended: called by the fiber itself when it was unwound. */
struct fiber *fiber_new(void (*run)(void *user), void (*ended)(void *user), void *user);

/* Runs it until it gives way or ends.  True if it has ended: it is gone then. */
bool fiber_resume(struct fiber *fiber);

/* The one that runs gives way; returns when it is resumed. */
void fiber_give_way(void);

/* The one that runs, or NULL. */
struct fiber *fiber_current(void);

/* One that does not run is gone, wherever it was: nothing of it is undone. */
void fiber_forget(struct fiber *fiber);

/* The one that runs is cancelled: its stack is unwound, cleanup handlers run, and it ends. */
_Noreturn void fiber_unwind(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's one thread: a glib main loop of its own, all signals blocked.  The thread reads the inbox, runs the
 * pump (renewals, polls, deadlines), tells losses, and reads the command connection when no caller does.  The
 * thread serves one runtime; after that runtime retires the thread waits for the next runtime.
 *
 * The gate: the thread holds a lock while running glib code and leaves the gate only in poll() and in the application's
 * callbacks.  fork() takes the gate, so this thread holds no lock of glib then.
 */
#ifndef DM_PROCESS_KEEP_LOOP_H
#define DM_PROCESS_KEEP_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct dm_loop;
struct dm_runtime;

/*
 * Sets runtime->loop, and serves that runtime from now on; the first runtime of a process starts the thread.  False if
 * that is not possible.  Rank START held: one call at a time.
 */
bool dm_loop_serve(struct dm_runtime *runtime);

/* The pump is to run at due_ns at the latest (DM_NEVER: no matter).  State lock held. */
void dm_loop_wake_at(struct dm_loop *loop, int64_t due_ns);

/* The next run of the pump was planned for due_ns; the loop thread.  State lock held. */
void dm_loop_rearm(struct dm_loop *loop, int64_t due_ns);

/* The connections have something new to say.  Any thread. */
void dm_loop_nudge(struct dm_loop *loop);

/* Around a callback of the application; the loop thread, no lock but the gate held. */
void dm_loop_leave_gate(void);
void dm_loop_enter_gate(void);

void dm_loop_fork_prepare(void);
void dm_loop_fork_parent(void);
void dm_loop_fork_child(void);

#endif

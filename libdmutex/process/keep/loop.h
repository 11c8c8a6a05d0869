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

struct dm_runtime;

/*
 * Sets runtime->alarm, and serves that runtime from now on; the first runtime of a process starts the thread.  False if
 * that is not possible.  Rank START held: one call at a time.
 */
bool dm_loop_serve(struct dm_runtime *runtime);

void dm_loop_fork_prepare(void);
void dm_loop_fork_parent(void);
void dm_loop_fork_child(void);

#endif

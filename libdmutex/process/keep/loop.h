/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's loop thread: a GLib main loop of its own, with all signals blocked.  It reads the inbox, runs the pump
 * (renewals, polls, deadlines), reports losses, and reads the command connection when no caller does.  It serves one
 * runtime; after that retires, it waits for the next.
 */
#ifndef DM_PROCESS_KEEP_LOOP_H
#define DM_PROCESS_KEEP_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct dm_runtime;

/*
 * Sets runtime->alarm, and serves the runtime from now on; the first runtime of a process starts the thread.  False if
 * that is not possible.  Rank START held, so there is one call at a time.
 */
bool dm_loop_serve(struct dm_runtime *runtime);

void dm_loop_fork_prepare(void);
void dm_loop_fork_parent(void);
void dm_loop_fork_child(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes that have a file locked, found by /proc/PID/fdinfo.  Processes that this user may not
 * look into are not seen.  Any thread.
 */
#ifndef DM_PRELOAD_KEEPER_HOLDERS_H
#define DM_PRELOAD_KEEPER_HOLDERS_H

#include <stdbool.h>

#include "../kernel_lock.h"

/* One who has it, so that the next look is one read: begins empty. */
struct holder {
    int folder; /* of its /proc/PID; 0: none */
    char fd[12];
};

/* Is there one?  Looks at *known first, and remembers whom it found. */
bool holders_is_any(const struct kernel_lock *lock, struct holder *known);
void holder_forget(struct holder *known);

/* Sends all of them a signal; returns how many. */
#define HOLDER_PROGRAM_ROOM 64

/* The first process that has it locked, and its program; false: none that can be seen. */
bool holders_find(const struct kernel_lock *lock, pid_t *ret_pid, char ret_program[HOLDER_PROGRAM_ROOM]);

/*
 * Writes the line to the standard error of each process that has it locked: once, if several share that.  What is a
 * socket cannot be written to.  Never blocks.
 */
void holders_tell(const struct kernel_lock *lock, const char *line);

int holders_signal(const struct kernel_lock *lock, int number);

#endif

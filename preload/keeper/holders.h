/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes that have a file locked, found by /proc/PID/fdinfo. Processes that this user may not look into are not
 * seen. Any thread.
 */
#ifndef DM_PRELOAD_KEEPER_HOLDERS_H
#define DM_PRELOAD_KEEPER_HOLDERS_H

#include <stdbool.h>

#include "shared/kernel_lock.h"

/* A process that has the lock, so that the next look is one read: begins empty. */
struct holder {
    int folder; /* of the process's /proc/PID; 0: none */
    char fd[12];
};

/* True if a process has the lock. Looks at *known first, and remembers the process found. */
bool holders_is_any(const struct kernel_lock *lock, struct holder *known);

/* The same, of *known and the process that took the lock. */
bool holders_is_owner(const struct kernel_lock *lock, struct holder *known);
void holder_forget(struct holder *known);

#define HOLDER_PROGRAM_ROOM 64

/* The first process that has the file locked, and the program; false: none can be seen. */
bool holders_find(const struct kernel_lock *lock, pid_t *ret_pid, char ret_program[HOLDER_PROGRAM_ROOM]);

/*
 * Writes the line to the standard error of each process that has the file locked: once, if several processes share the
 * standard error. A socket cannot be written to. Never blocks.
 */
void holders_tell(const struct kernel_lock *lock, const char *line);

/* Sends all holders a signal; returns the number of holders that were sent the signal. */
int holders_signal(const struct kernel_lock *lock, int number);

#endif

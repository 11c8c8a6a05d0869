/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes that have a file locked, found by /proc/PID/fdinfo. A process that this user may not look into may have
 * the lock or not: it is neither told nor signalled, and what /proc does not show is never taken for free. Any thread.
 */
#ifndef DM_PRELOAD_KEEPER_HOLDERS_H
#define DM_PRELOAD_KEEPER_HOLDERS_H

#include <stdbool.h>

#include "shared/kernel_lock.h"

/* A process that has the lock, so that the next look is one read: begins empty. */
struct holder {
    int folder;      /* of the process's /proc/PID; 0: none */
    char thread[12]; /* whose descriptor it is, where the first thread has ended; "": the process's */
    char fd[12];
};

enum sight {
    SIGHT_NONE,   /* every process was looked into, and none has the lock */
    SIGHT_HOLDER, /* a process has the lock */
    SIGHT_UNSURE  /* none of the others has it, but a process could not be looked into, or gets files by a socket */
};

/*
 * Costs one read. A process that has the lock no more, or cannot be looked into any more, is forgotten.
 */
bool holder_has_still(struct holder *known, const struct kernel_lock *lock);

/* Looks at *known first, then at all processes, and remembers the process that has the lock. */
enum sight holders_look_at_all(const struct kernel_lock *lock, struct holder *known);

/* The same, of *known and the process that took the lock. */
enum sight holders_look_at_owner(const struct kernel_lock *lock, struct holder *known);
void holder_forget(struct holder *known);

/* A process maps the file, which keeps the file open, and so locked, when no descriptor does. Reads much. */
bool holders_map_file(const struct kernel_lock *lock);

#define HOLDER_PROGRAM_ROOM 64

/*
 * A process that has the file locked, and its program; false: none can be seen. All processes are looked into only if
 * neither *known nor the process that took the lock has it.
 */
bool holders_find(const struct kernel_lock *lock, struct holder *known, pid_t *ret_pid,
                  char ret_program[HOLDER_PROGRAM_ROOM]);

/*
 * Sends all holders a signal; returns the number of holders that were sent the signal. *ret_is_spared: process 1 of
 * this container is a holder, and the signal has no effect there.
 */
int holders_signal(const struct kernel_lock *lock, int number, bool *ret_is_spared);

#endif

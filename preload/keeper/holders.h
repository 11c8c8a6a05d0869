/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes that have a file locked, found in /proc/PID/fdinfo. A process that this user may not inspect may have
 * the lock or not: it gets neither a message nor a signal, and what /proc does not show never counts as free. Any
 * thread.
 */
#ifndef DM_PRELOAD_KEEPER_HOLDERS_H
#define DM_PRELOAD_KEEPER_HOLDERS_H

#include <stdbool.h>

#include "shared/kernel_lock.h"

/* A process that has the lock, remembered so that the next check is one read. Starts empty. */
struct holder {
    int folder;      /* the process's /proc/PID; 0: none */
    char thread[12]; /* the thread whose descriptor it is, if the first thread has ended; "": the process's */
    char fd[12];
};

enum sight {
    SIGHT_NONE,   /* every process was inspected, and none has the lock */
    SIGHT_HOLDER, /* a process has the lock */
    SIGHT_UNSURE  /* no other process has it, but one could not be inspected, or is receiving files over a socket */
};

/* Costs one read. Forgets a process that no longer has the lock, or can no longer be inspected. */
bool holder_has_still(struct holder *known, const struct kernel_lock *lock);

/* Checks *known first, then all processes, and remembers the one that has the lock. */
enum sight holders_look_at_all(const struct kernel_lock *lock, struct holder *known);

/* The same for only *known and the process that took the lock. */
enum sight holders_look_at_owner(const struct kernel_lock *lock, struct holder *known);
void holder_forget(struct holder *known);

/* True if a process maps the file, which keeps it open, and so locked, even without a descriptor. Reads a lot. */
bool holders_map_file(const struct kernel_lock *lock);

#define HOLDER_PROGRAM_ROOM 64

/*
 * Finds a process that has the file locked, and its program; false if none can be seen. Searches all processes only if
 * neither *known nor the process that took the lock has it.
 */
bool holders_find(const struct kernel_lock *lock, struct holder *known, pid_t *ret_pid,
                  char ret_program[HOLDER_PROGRAM_ROOM]);

/*
 * For locks that are lost; one thread at a time. One search of all processes serves all locks that are lost at once.
 *
 * The first sends a signal to all holders. Returns how many got it. *ret_is_spared: one of the holders is process 1 of
 * this container, on which the signal has no effect. The second finds one holder and its program; false if none can be
 * seen.
 */
int holders_signal(const struct kernel_lock *lock, int number, bool *ret_is_spared);
bool holders_name(const struct kernel_lock *lock, pid_t *ret_pid, char ret_program[HOLDER_PROGRAM_ROOM]);

#endif

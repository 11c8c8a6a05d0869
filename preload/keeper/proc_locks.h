/* SPDX-License-Identifier: BSD-2-Clause */
/* The locks that the kernel lists in /proc/locks. */
#ifndef DM_PRELOAD_KEEPER_PROC_LOCKS_H
#define DM_PRELOAD_KEEPER_PROC_LOCKS_H

#include <glib.h>
#include <stdbool.h>

struct kernel_lock;

struct proc_locks {
    bool is_readable; /* false: some containers and services do not have the list; or it was cut */
    bool is_cut;
    bool is_whole;      /* a longer list comes in pieces, and may miss locks that follow one that ends in between */
    GHashTable *listed; /* exclusive locks, as kernel_lock_write() writes them */
    GHashTable *taken;  /* the same without pids, of locks that have one */
};

/*
 * The kernel walks the list from its start for each page. So the time grows with the square of the length, and any user
 * can make the list as long as they like. Therefore a list of more than a few thousand locks is cut, unless all of it
 * is needed.
 */
void proc_locks_read(struct proc_locks *ret_locks, bool is_needed_whole);
void proc_locks_clear(struct proc_locks *locks);

bool proc_locks_has(const struct proc_locks *locks, const struct kernel_lock *lock);

/* A lock that is not listed is over if another process has locked the file in the same way. */
bool proc_locks_has_next(const struct proc_locks *locks, const struct kernel_lock *lock);

/* Outside the first pid namespace, a flock() lock is not listed once the process that took it has ended. */
bool proc_locks_is_complete(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Views of the store for the programs of tools/, which are linked with the library's parts.  Not exported, and no part
 * of the public interface.  Nothing here changes the store.
 *
 * As public functions these return 0 or an errno value, and dmutex_strerror_np() has the sentence.  Each blocks for
 * command_timeout at most.
 */
#ifndef DM_API_VIEW_H
#define DM_API_VIEW_H

#include "store/store.h"

/*
 * The store's data about a mutex that a thread of this process waits for, with the thread's place in the queue.
 * ESRCH: no thread of this process is in the queue of that name.
 */
int dm_view_wait(const char *name, struct dm_info *ret_info);

/*
 * Tells one mutex or condition; `key` is the name's key in the process (store/store.h).  waiters: how many of the queue
 * to tell, DM_SEEN_WAITERS at most.
 */
int dm_view_one(const char *key, int waiters, dm_seen_fn handler, void *user);

/*
 * Tells all names that the store has, or all names of one group: `group` is the key of any mutex of the group, or NULL.
 * A name may be told twice.  Needs the right to SCAN.
 */
int dm_view_all(const char *group, int waiters, dm_seen_fn handler, void *user);

/* True if the server answered last time.  A hint: blocks for nothing and asks nothing. */
bool dm_view_is_reachable(void);

/*
 * Gives all holds and places of the process back, as at the end of a process; the threads that wait for a mutex do not
 * return any more.  For a process that is about to end.
 */
void dm_view_leave(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Views of the store for the programs of tools/, which are linked to the library's parts.  Not exported, and not part
 * of the public interface.  Nothing here changes the store, except dm_view_leave().
 *
 * Like public functions these return 0 or an errno value, and dmutex_strerror_np() has the sentence.  Each blocks for
 * at most command_timeout.
 */
#ifndef DM_API_VIEW_H
#define DM_API_VIEW_H

#include "store/store.h"

/*
 * The store's data about a mutex for which a thread of this process waits, with its place in the queue.  ESRCH: no
 * thread of this process is in the queue of that name.
 */
int dm_view_wait(const char *name, struct dm_info *ret_info);

/*
 * Reports one mutex or condition; `key` is the name's key in the process (store/store.h). waiters: how many of the
 * queue to report, at most DM_SEEN_WAITERS.
 */
int dm_view_one(const char *key, int waiters, dm_seen_fn handler, void *user);

/*
 * Reports all names that the store has, or those of one group: `group` is the key of any mutex of the group, or NULL.
 * A name may be reported twice.  Needs the right to SCAN.
 */
int dm_view_all(const char *group, int waiters, dm_seen_fn handler, void *user);

/* True if the server answered the last time.  Only a hint: neither blocks nor asks. */
bool dm_view_is_reachable(void);

/* True if the server refuses the login, or a right is missing (store/calls.h).  Only a hint, as above. */
bool dm_view_is_denied(void);

/*
 * Gives back all holds and places of the process, as at its end; threads that wait for a mutex never return.  For a
 * process that is about to end.
 */
void dm_view_leave(void);

#endif

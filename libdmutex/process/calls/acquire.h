/* SPDX-License-Identifier: BSD-2-Clause */
/* How a thread comes to own a mutex: it asks, waits and, at the deadline, settles. */
#ifndef DM_PROCESS_CALLS_ACQUIRE_H
#define DM_PROCESS_CALLS_ACQUIRE_H

#include "process/calls/wait.h"

/*
 * The `settle` of a struct dm_wait for a queued attempt: the deadline has passed, and the server says whether the call
 * leaves or owns.
 */
int dm_wait_settle_queued(struct dm_wait *wait);

/*
 * Goes on from the claim's phase to the end of the call: 0 or an errno value, noted.  State lock held, and given up
 * while the call waits.
 */
int dm_wait_run(struct dm_wait *wait);

/*
 * Locks for the calling thread, like dmutex_lock() and similar functions: 0 or an errno value, noted.
 * may_wait false: dmutex_trylock(); the deadline is then ignored.
 */
int dm_acquire(struct dm_runtime *runtime, const struct dm_target *target, bool may_wait,
               const struct dm_deadline *deadline);

#endif

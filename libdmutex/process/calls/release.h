/* SPDX-License-Identifier: BSD-2-Clause */
/* How a thread gives a mutex back, and the other operations of a thread on its hold. */
#ifndef DM_PROCESS_CALLS_RELEASE_H
#define DM_PROCESS_CALLS_RELEASE_H

#include "process/calls/acquire.h"

/* As the public functions of these names: 0 or an errno value, noted. */
int dm_release(struct dm_runtime *runtime, const char *key);
int dm_release_consistent(struct dm_runtime *runtime, const struct dm_target *target);
int dm_release_renew(struct dm_runtime *runtime, const char *key);

/*
 * To be called after "not the owner" to the first request about a hold that goes on.  Renews the hold while it is
 * certain, which restores it on a server that came without the data of the previous one.  OWNED: ask again.  UNKNOWN:
 * the hold was broken, or is no longer certain.  NOTHING, REFUSED: the attempt may own.
 */
enum dm_verdict dm_release_reclaim(struct dm_runtime *runtime, uint64_t attempt);

/* Ends the calling thread's hold without a message to anybody, like the hold of a killed process.  0, EPERM. */
int dm_release_abandon(struct dm_runtime *runtime, const char *key);

/* The same for all holds of the calling thread. */
void dm_release_abandon_all(struct dm_runtime *runtime);

#endif

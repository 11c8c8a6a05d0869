/* SPDX-License-Identifier: BSD-2-Clause */
/* How a thread comes to own a mutex: the thread asks, waits and, at the deadline, settles. */
#ifndef DM_PROCESS_CALLS_ACQUIRE_H
#define DM_PROCESS_CALLS_ACQUIRE_H

#include "process/life/runtime.h"

/* A mutex object, read and checked: the object itself is not touched any more. */
struct dm_target {
    char key[DMUTEX_NAME_MAX_NP + 2]; /* as in struct dm_name */
    int type;
    bool is_robust;
    bool is_anonymous;
    bool is_fair;
    uint32_t lease_ms;     /* 0: the default */
    uint32_t own_lease_ms; /* as the object spells the lease */
    uint32_t maxhold_ms;
    uint32_t linger_ms;
};

/*
 * Locks for the calling thread, like dmutex_lock() and similar functions: 0 or an errno value, noted.
 * may_wait false: dmutex_trylock(); the deadline is then ignored.
 */
int dm_acquire(struct dm_runtime *runtime, const struct dm_target *target, bool may_wait,
               const struct dm_deadline *deadline);

#endif

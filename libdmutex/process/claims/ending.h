/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a thread, and of a process as a thread in a call about a mutex meets it. */
#ifndef DM_PROCESS_CLAIMS_ENDING_H
#define DM_PROCESS_CLAIMS_ENDING_H

#include "process/claims/process.h"

/* The state lock, for a call about a mutex.  Never returns if the process ends by another thread. */
void dm_ending_lock(struct dm_runtime *runtime);

/* The same for a thread that has the state lock. */
void dm_ending_check(struct dm_runtime *runtime);

/* The calling thread ends: its claims are given back.  No lock held. */
void dm_ending_thread(struct dm_runtime *runtime, struct dm_self *self);

#endif

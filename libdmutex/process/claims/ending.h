/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a thread, and the end of the process as seen by a thread in a call about a mutex. */
#ifndef DM_PROCESS_CLAIMS_ENDING_H
#define DM_PROCESS_CLAIMS_ENDING_H

#include "process/claims/process.h"

/* Takes the state lock, for a call about a mutex.  Does not return if another thread is ending the process. */
void dm_ending_lock(struct dm_runtime *runtime);

/* The same for a thread that has the state lock. */
void dm_ending_check(struct dm_runtime *runtime);

/* The calling thread ends: gives its claims back.  No lock held. */
void dm_ending_thread(struct dm_runtime *runtime, struct dm_self *self);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns the wants of all holds of the process (dm_hold_due_ns(), in the orders of due.h) into batches and posts, in the
 * loop thread: it lets time pass, sends renewals and polls in batches, reports losses, then sends pending releases.
 */
#ifndef DM_PROCESS_KEEP_PUMP_H
#define DM_PROCESS_KEEP_PUMP_H

#include "process/claims/process.h"

/* Does the work that is due and plans the next run.  The loop thread, gate held. */
void dm_pump_run(struct dm_runtime *runtime);

/* The store can be asked again: sends pending releases first, then polls for waiting claims. */
void dm_pump_reconnected(struct dm_runtime *runtime);

/* The store sends messages (again).  Some may have been missed, so all waiters are polled. */
void dm_pump_resubscribed(struct dm_runtime *runtime);

#endif

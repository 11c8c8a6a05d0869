/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the wants of all holds of the process (dm_hold_due_ns(), in the orders of due.h) to batches and posts, by the
 * loop thread: time passes, renewals and polls go out in batches, losses are told, then pending releases are sent.
 */
#ifndef DM_PROCESS_KEEP_PUMP_H
#define DM_PROCESS_KEEP_PUMP_H

#include "process/claims/process.h"

/* Does the work that is due and plans the next run.  The loop thread, gate held. */
void dm_pump_run(struct dm_runtime *runtime);

/* The store can be asked again: pending releases go first, then waiting claims are polled. */
void dm_pump_reconnected(struct dm_runtime *runtime);

/* The store tells (again): messages may have been missed, so all waiters are polled. */
void dm_pump_resubscribed(struct dm_runtime *runtime);

#endif

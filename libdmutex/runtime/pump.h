/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The work that is due by time, for all claims of the process, by the loop thread: losses are told, then pending
 * releases sent, renewals and polls in batches.
 */
#ifndef DM_RUNTIME_SCHEDULE_H
#define DM_RUNTIME_SCHEDULE_H

#include "runtime/runtime.h"

/* Does the work that is due and plans the next run.  The loop thread, gate held. */
void dm_schedule_run(struct dm_runtime *runtime);

/* The store can be asked again: pending releases go first, then waiting claims are polled. */
void dm_schedule_reconnected(struct dm_runtime *runtime);

/* The store tells (again): messages may have been missed, so all waiters are polled. */
void dm_schedule_resubscribed(struct dm_runtime *runtime);

/* Sends the releases that are due.  Any thread, no lock held. */
void dm_schedule_send_releases(struct dm_runtime *runtime);

#endif

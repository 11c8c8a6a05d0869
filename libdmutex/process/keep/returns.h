/* SPDX-License-Identifier: BSD-2-Clause */
/* Releases that the store has not confirmed yet. */
#ifndef DM_PROCESS_KEEP_RETURNS_H
#define DM_PROCESS_KEEP_RETURNS_H

#include "process/claims/process.h"

/* Sends the releases that are due.  Any thread, no lock held. */
void dm_returns_send(struct dm_runtime *runtime);

/*
 * Sends the releases that are due, and waits until every release of this process, or of one name, is confirmed, or the
 * deadline has passed.  name NULL: all.
 */
void dm_returns_await(struct dm_runtime *runtime, const struct dm_name *name, const struct dm_deadline *deadline);

#endif

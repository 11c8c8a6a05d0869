/* SPDX-License-Identifier: BSD-2-Clause */
/* Says why a wait for a mutex takes so long: in the log after a second, and in the text of a timeout. */
#ifndef DM_PROCESS_CALLS_EXPLAIN_H
#define DM_PROCESS_CALLS_EXPLAIN_H

#include "process/calls/wait.h"

/* The call begins to wait. */
void dm_explain_begin(struct dm_wait *wait);

/* Nanoseconds until dm_explain_if_due() is due; DM_NEVER: nobody reads the log. */
int64_t dm_explain_left_ns(const struct dm_wait *wait);

/*
 * If due, logs the holder of the mutex and the start of the hold, the place in the queue, or how long the server will
 * grant nothing new.  Asks the server, for command_timeout at most; no lock held.
 */
void dm_explain_if_due(struct dm_wait *wait);

/*
 * The server cannot be asked: waits until it can, until the wait's patience ends, or until waiting is useless, and logs
 * why, if due.  No lock held.
 */
void dm_explain_until_able(struct dm_wait *wait);

/*
 * The deadline of the call has passed: puts the same explanation into its reason, if it has waited for a second or
 * longer and the server answers soon.  No lock held.
 */
void dm_explain_timeout(struct dm_wait *wait);

#endif

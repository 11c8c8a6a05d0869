/* SPDX-License-Identifier: BSD-2-Clause */
/* Says why a wait for a mutex lasts: to the log after a second, and in the sentence of a timeout. */
#ifndef DM_PROCESS_CALLS_EXPLAIN_H
#define DM_PROCESS_CALLS_EXPLAIN_H

#include "process/calls/wait.h"

/* The call begins to wait. */
void dm_explain_begin(struct dm_wait *wait);

/* Nanoseconds until the log is to be told; DM_NEVER: the log has no reader. */
int64_t dm_explain_left_ns(const struct dm_wait *wait);

/*
 * Tells the log, if the time has come: the holder of the mutex and the start of the hold, the place in the queue, or
 * how long the server grants nothing new.  Asks the server, for command_timeout at most; no lock held.
 */
void dm_explain_if_due(struct dm_wait *wait);

/*
 * The server cannot be asked: waits until it can, or until the wait's patience ends or waiting is useless, and tells
 * the log why, if the time has come.  No lock held.
 */
void dm_explain_until_able(struct dm_wait *wait);

/*
 * The deadline of the call has passed: puts the same words into the call's reason, if the call has
 * waited for a second or longer and the server answers soon.  No lock held.
 */
void dm_explain_timeout(struct dm_wait *wait);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Judges that each attempt has what keeps it going planned or on its way: the poll of a waiter, unless its thread asks;
 * the renewal of a hold; the release of what was given back.  No message need come to a waiter that the server has
 * forgotten, and so nothing else would end its wait.
 */
#ifndef SIM_PLANS_H
#define SIM_PLANS_H

#include "core/hold.h"

/* Forgets all attempts: a new run. */
void plans_begin(void);

/* A request of the attempt is on its way. */
void plans_sent(const struct dm_hold *hold, enum dm_want want);

/* The event may be the answer to a request of the attempt, or report the end of the connection. */
void plans_answered(const struct dm_hold *hold, enum dm_event_kind kind);

/* After each step of the attempt. */
void plans_check(const struct dm_hold *hold);

#endif

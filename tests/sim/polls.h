/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An attempt that waits has a poll planned or on its way, unless its thread asks: no message need come to a waiter that
 * the server has forgotten, and so nothing else would end its wait.
 */
#ifndef SIM_POLLS_H
#define SIM_POLLS_H

#include "core/hold.h"

/* Forgets all attempts: a new run. */
void polls_begin(void);

/* A poll of the attempt is on its way. */
void polls_sent(const struct dm_hold *hold);

/* A poll of the attempt is answered, or its connection has ended. */
void polls_answered(const struct dm_hold *hold);

/* After each step of the attempt. */
void polls_check(const struct dm_hold *hold);

#endif

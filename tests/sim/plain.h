/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A second lock store behind store/store.h: names in memory, without scripts, replies and hiredis.  This store proves
 * that the runtime knows a store by the wall alone.
 *
 * One server grants as soon as a lease ends, by the true time.  Requests and messages of a process arrive late and in
 * order; a connection that breaks loses the requests and answers on the way.  The store has no conditions.
 */
#ifndef SIM_PLAIN_H
#define SIM_PLAIN_H

#include "process.h"

void plain_begin(void);
void plain_end(void);

/* True between plain_begin() and plain_end(). */
bool plain_is_there(void);

/* The calling process's store. */
struct dm_store *plain_open(struct process *process, const struct dm_host *host);

/* ---- faults ------------------------------------------------------------------------------- */

/* Breaks the connection of the number-th process. */
void plain_break(uint32_t number);

/* The server does nothing for a while. */
void plain_stall(int64_t for_ns);

/* The server ends, and is there again after `down_ns`; without its data nothing is granted for the longest lease. */
void plain_restart(bool keeps_data, int64_t down_ns);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chains of waits: a thread waits for a lock whose holder may wait for another lock, whose holder may wait, and so on.
 *
 * The names were read one after the other, so the waits of a chain may be of different moments.
 */
#ifndef DM_TOOLS_CHAIN_H
#define DM_TOOLS_CHAIN_H

#include "gather.h"

#define CHAIN_MOST 16

/* The waiter waits for names[0], the holder of names[i] for names[i + 1]; the last holder waits for nothing. */
struct chain {
    const struct dm_seen_waiter *waiter;
    const struct seen *names[CHAIN_MOST];
    int count;
    bool is_circle; /* the last holder waits for one of the names: a deadlock */
};

/* The name that the holder of `held` waits for, or NULL.  A thread waits for one name at a time. */
const struct seen *chain_next(const struct gathered *gathered, const struct seen *held);

/* Finds the threads that have waited longest, sorted by the length of the wait.  Returns how many, at most `room`. */
int chain_find(const struct gathered *gathered, struct chain *ret_chains, int room);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that wait, and the holders in their way: the holder of a lock may wait for another lock, whose holder may
 * wait, and so on.
 *
 * The names were read one after the other, so a chain may be of waits of different moments.
 */
#ifndef DM_TOOLS_CHAIN_H
#define DM_TOOLS_CHAIN_H

#include "gather.h"

#define CHAIN_MOST 16

/* The waiter waits for names[0], the holder of names[i] for names[i + 1], and the last holder for nothing. */
struct chain {
    const struct dm_seen_waiter *waiter;
    const struct seen *names[CHAIN_MOST];
    int count;
    bool is_circle; /* the last holder waits for one of the names again: a deadlock */
};

/* The name that the holder of `held` waits for, or NULL; a thread waits for one name at a time. */
const struct seen *chain_next(const struct gathered *gathered, const struct seen *held);

/* Finds the threads that have waited longest, the longest first; returns how many, at most `room`. */
int chain_find(const struct gathered *gathered, struct chain *ret_chains, int room);

#endif

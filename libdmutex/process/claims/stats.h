/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of one runtime, for dmutex_stats_np().  The state lock guards them all, and every counter is written in a
 * section that has the lock anyway.  The fast path (fast.h) counts nothing: the numbers of the tenures show how many
 * holds there were.
 */
#ifndef DM_PROCESS_CLAIMS_STATS_H
#define DM_PROCESS_CLAIMS_STATS_H

#include <stdint.h>

#include "dmutex/stats.h"

struct dm_claim;
struct dm_runtime;

/* A histogram: bucket i counts the times above the limit of bucket i - 1, up to dm_stats_limit_us(i). */
struct dm_times {
    uint64_t ns; /* the sum */
    uint64_t counts[DMUTEX_STATS_BUCKETS_NP];
};

struct dm_stats {
    uint64_t from_server; /* holds that the store has granted, and a thread has entered */
    uint64_t waits, timeouts, losses, owner_deaths, handoffs;
    struct dm_times locks, holds;
};

/* The bucket of a time, and the longest time of a bucket; the last bucket has no limit. */
unsigned dm_stats_bucket(int64_t ns);
uint64_t dm_stats_limit_us(unsigned bucket);

/* Adds a time; less than 0 counts as 0.  State lock held. */
void dm_stats_note(struct dm_times *times, int64_t ns);

/*
 * The thread inside has entered, or leaves, under the state lock.  The time between is noted, unless another hold of
 * the claim's tenure has come and gone without the lock.  State lock held.
 */
void dm_stats_begin_hold(struct dm_claim *claim, int64_t now_ns);
void dm_stats_end_hold(struct dm_stats *stats, struct dm_claim *claim, int64_t now_ns);

/* Adds the counters of a runtime and of its store.  State lock not held. */
void dm_stats_add(struct dm_runtime *runtime, dmutex_stats_t *sum);

#endif

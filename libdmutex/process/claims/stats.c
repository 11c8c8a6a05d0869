/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/claims/stats.h"

#include "base/rank.h"
#include "process/claims/process.h"

/* The first bucket ends at 4 us: shorter times belong to the fast path, or to a mutex that was not waited for. */
#define FIRST_SHIFT 2

uint64_t dm_stats_limit_us(unsigned bucket)
{
    return UINT64_C(1) << (bucket + FIRST_SHIFT);
}

/* Rounds up, so that a time at the limit of a bucket is in it, and a nanosecond more is not. */
unsigned dm_stats_bucket(int64_t ns)
{
    uint64_t us = ns > 0 ? ((uint64_t)ns + DM_NS_PER_US - 1) / DM_NS_PER_US : 0;
    unsigned bucket = 0;

    while (bucket < DMUTEX_STATS_BUCKETS_NP - 1 && us > dm_stats_limit_us(bucket))
        bucket++;
    return bucket;
}

void dm_stats_note(struct dm_times *times, int64_t ns)
{
    dm_assert_held(DM_RANK_STATE);
    times->counts[dm_stats_bucket(ns)]++;
    times->ns += ns > 0 ? (uint64_t)ns : 0;
}

/* Each hold of a tenure has a number of its own. */
static uint32_t number_of(const struct dm_claim *claim)
{
    return claim->tenure ? dm_tenure_number(claim->tenure) : 0;
}

void dm_stats_begin_hold(struct dm_claim *claim, int64_t now_ns)
{
    dm_assert_held(DM_RANK_STATE);
    claim->since_ns = now_ns;
    claim->since_number = number_of(claim);
}

void dm_stats_end_hold(struct dm_stats *stats, struct dm_claim *claim, int64_t now_ns)
{
    dm_assert_held(DM_RANK_STATE);
    if (claim->since_ns && claim->since_number == number_of(claim))
        dm_stats_note(&stats->holds, now_ns - claim->since_ns);
    claim->since_ns = 0;
}

static void add_times(const struct dm_times *times, uint64_t *sum_ns, uint64_t sums[DMUTEX_STATS_BUCKETS_NP])
{
    *sum_ns += times->ns;
    for (unsigned i = 0; i < DMUTEX_STATS_BUCKETS_NP; i++)
        sums[i] += times->counts[i];
}

/* The numbers of live tenures are read while threads may be inside: the sum may be off by a few holds. */
static void add_counters(const struct dm_runtime *runtime, dmutex_stats_t *sum)
{
    const struct dm_stats *stats = &runtime->stats;

    dm_state_lock();
    sum->acquired_from_server += stats->from_server;
    sum->acquired_in_process += runtime->registry.holds_inside;
    for (const struct dm_claim *claim = runtime->registry.claims; claim; claim = claim->next)
        sum->acquired_in_process += number_of(claim);
    sum->waits += stats->waits;
    sum->timeouts += stats->timeouts;
    sum->losses += stats->losses;
    sum->owner_deaths += stats->owner_deaths;
    sum->handoffs += stats->handoffs;
    add_times(&stats->locks, &sum->lock_ns, sum->lock_times);
    add_times(&stats->holds, &sum->hold_ns, sum->hold_times);
    dm_state_unlock();
}

void dm_stats_add(struct dm_runtime *runtime, dmutex_stats_t *sum)
{
    struct dm_traffic traffic;

    add_counters(runtime, sum);
    dm_store_count(runtime->store, &traffic);
    sum->commands += traffic.commands;
    sum->messages += traffic.messages;
    sum->reconnects += traffic.reconnects;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of this process.  See dmutex_stats_np(3). */
#ifndef DMUTEX_STATS_H
#define DMUTEX_STATS_H

#include <dmutex/types.h>

DMUTEX_BEGIN_DECLS

/* The buckets of a histogram. */
#define DMUTEX_STATS_BUCKETS_NP 24

/*
 * The answer of dmutex_stats_np().  All numbers are sums since the start of the process, and about mutexes of the
 * server alone; local mutexes count nothing.  The caller sets struct_size to sizeof(dmutex_stats_t) before the call, so
 * that a later library knows how many bytes to write at most.
 *
 * The mutex that a thread gets back at the end of dcond_wait() counts as acquired from the server, and neither as a
 * wait nor in lock_times.  Another level of a recursive mutex counts nothing.
 *
 * The two histograms tell of calls that needed the library's lock or the server.  A thread that locks or unlocks a
 * mutex whose lease the process has, without waiting, mostly needs neither: such a hold counts in acquired_in_process
 * alone.  Bucket i counts the times of at most 2^(i + 2) microseconds, and of more than bucket i - 1 has; the last
 * bucket counts all longer times.  So the buckets end at 4 us, 8 us, and so on up to 16.8 s.
 */
typedef struct dmutex_stats {
    uint32_t struct_size;          /* set by the caller */
    uint32_t reserved;             /* 0 */
    uint64_t acquired_from_server; /* holds that the server has granted to a thread of this process */
    uint64_t acquired_in_process;  /* holds that followed under the same lease, without the server */
    uint64_t waits;                /* lock calls that got the mutex, and found the mutex not free at first */
    uint64_t timeouts;             /* lock calls that ended with ETIMEDOUT */
    uint64_t losses;               /* holds that were lost, while a thread was inside */
    uint64_t owner_deaths;         /* results EOWNERDEAD */
    uint64_t handoffs;             /* holds that went to a waiting thread of this process, without the server */
    uint64_t commands;             /* requests sent to the server; greetings of a connection are left out */
    uint64_t messages;             /* messages heard from the server */
    uint64_t reconnects;           /* connections opened again; a process that waits has two connections */
    uint64_t lock_ns;              /* the sum of lock_times, in nanoseconds */
    uint64_t hold_ns;              /* the sum of hold_times, in nanoseconds */
    uint64_t lock_times[DMUTEX_STATS_BUCKETS_NP]; /* from the call of lock to 0, EOWNERDEAD or ETIMEDOUT */
    uint64_t hold_times[DMUTEX_STATS_BUCKETS_NP]; /* from lock's return to the call of unlock or dcond_wait() */
} dmutex_stats_t;

/*
 * Copies the counters of this process.  stats->struct_size must be sizeof(*stats).  A child of fork() begins with
 * zeros; a process that has not used a mutex of the server has zeros, and the call starts nothing.
 *
 * Numbers of holds that go on at this moment in other threads may be missing.  The counters cost a lock and an unlock
 * nothing but additions.
 *
 * Returns 0; EINVAL for NULL or a wrong struct_size; *stats is untouched on failure.
 *
 * Any thread may call, also in the callback of dmutex_setlost_np().  No I/O, no cancellation point.  Not to be called
 * in a signal handler.  A lost lease changes nothing here but `losses`.
 *
 * Source: doc/design/lines.md for the fast path.
 */
DMUTEX_API int dmutex_stats_np(dmutex_stats_t *stats);

DMUTEX_END_DECLS

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of this process.  See dmutex_stats_np(3). */
#ifndef DMUTEX_STATS_H
#define DMUTEX_STATS_H

#include <dmutex/types.h>

DMUTEX_BEGIN_DECLS

/* The buckets of a histogram. */
#define DMUTEX_STATS_BUCKETS_NP 24

/*
 * The result of dmutex_stats_np().  All numbers are sums since the start of the process, and count only mutexes of the
 * server, not local ones.  The caller sets struct_size to sizeof(dmutex_stats_t) before the call, so that a later
 * library knows how many bytes it may write.
 *
 * A mutex that dcond_wait() gets back counts as acquired from the server, but neither as a wait nor in lock_times.  A
 * further level of a recursive mutex is not counted.
 *
 * The two histograms cover calls that needed the library's lock or the server.  A thread that locks or unlocks, without
 * waiting, a mutex whose lease the process has mostly needs neither: such a hold counts only in acquired_in_process.
 * Bucket i counts the times above the limit of bucket i - 1 and up to 2^(i + 2) microseconds; the last bucket counts
 * all longer times.  The limits are thus 4 us, 8 us, and so on up to 16.8 s.
 */
typedef struct dmutex_stats {
    uint32_t struct_size;          /* set by the caller */
    uint32_t reserved;             /* 0 */
    uint64_t acquired_from_server; /* holds that the server granted to a thread of this process */
    uint64_t acquired_in_process;  /* holds that followed under the same lease, without the server */
    uint64_t waits;                /* lock calls that got the mutex, but did not find it free at first */
    uint64_t timeouts;             /* lock calls that ended with ETIMEDOUT */
    uint64_t losses;               /* holds that were lost while a thread was inside */
    uint64_t owner_deaths;         /* results of EOWNERDEAD */
    uint64_t handoffs;             /* holds handed to a waiting thread of this process, without the server */
    uint64_t commands;             /* requests sent to the server, without the handshakes of connections */
    uint64_t messages;             /* messages received from the server */
    uint64_t reconnects;           /* connections opened again; a process that waits has two connections */
    uint64_t lock_ns;              /* the sum of lock_times, in nanoseconds */
    uint64_t hold_ns;              /* the sum of hold_times, in nanoseconds */
    uint64_t lock_times[DMUTEX_STATS_BUCKETS_NP]; /* from the call of lock to 0, EOWNERDEAD or ETIMEDOUT */
    uint64_t hold_times[DMUTEX_STATS_BUCKETS_NP]; /* from lock's return to the call of unlock or dcond_wait() */
} dmutex_stats_t;

/*
 * Copies the counters of this process.  stats->struct_size must be sizeof(*stats).  In a process that has not used a
 * mutex of the server they are all 0, and the call starts nothing.  Holds that other threads have at this moment may
 * not be counted yet.  Counting costs a lock and an unlock a few additions.
 *
 * Returns 0; EINVAL for NULL or a wrong struct_size; *stats is unchanged on failure.  errno itself stays unchanged.
 *
 * Blocking: none, no I/O.  Threads: any, at any time, also in the callback of dmutex_setlost_np().  Signals: not
 * async-signal-safe.  Cancel: not a cancellation point.  Fork: a child of fork() begins with zeros.  Since 0.1.
 *
 * Source: doc/man/dmutex_stats_np.3; doc/design/lines.md for the fast path.
 */
DMUTEX_API int dmutex_stats_np(dmutex_stats_t *stats);

DMUTEX_END_DECLS

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Many names, all held by this process. */
#ifndef DM_BENCH_HELD_H
#define DM_BENCH_HELD_H

#include <dmutex/dmutex.h>

struct held {
    int count;
    dmutex_t *mutexes;
    double bytes, seconds; /* per lock: memory, and the time to acquire it */
};

/* Locks the names "bench/held-0" and so on. The process has locked before, so no first-use cost is counted. */
struct held held_take(int count, unsigned lease_ms);

/* Unlocks all. */
void held_leave(struct held *held);

#endif

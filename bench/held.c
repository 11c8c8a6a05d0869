/* SPDX-License-Identifier: BSD-2-Clause */
#include "held.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench.h"

static dmutex_t *make_all(int count, unsigned lease_ms)
{
    dmutex_t *mutexes = calloc((size_t)count, sizeof *mutexes);
    dmutexattr_t attr;
    char name[64];

    if (!mutexes)
        bench_die("no memory");
    bench_must(dmutexattr_init(&attr));
    bench_must(dmutexattr_setlease_np(&attr, lease_ms));
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "bench/held-%d", i);
        bench_must(dmutex_init_np(&mutexes[i], name, &attr));
    }
    return mutexes;
}

struct held held_take(int count, unsigned lease_ms)
{
    struct held held = { count, make_all(count, lease_ms), 0, 0 };
    double before, start;

    bench_must(dmutex_lock(&held.mutexes[0]));
    bench_must(dmutex_unlock(&held.mutexes[0]));
    before = bench_memory(getpid(), "VmRSS");
    start = bench_now();
    for (int i = 0; i < count; i++)
        bench_must(dmutex_lock(&held.mutexes[i]));
    held.seconds = (bench_now() - start) / count;
    held.bytes = (bench_memory(getpid(), "VmRSS") - before) / count;
    return held;
}

void held_leave(struct held *held)
{
    for (int i = 0; i < held->count; i++)
        bench_must(dmutex_unlock(&held->mutexes[i]));
    free(held->mutexes);
}

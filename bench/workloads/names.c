/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 10 000 names: a lock and unlock of each in turn, compared with the same of one name, and with the library's scripts
 * called for as many names; and the cost of holding them all.
 */
#include <dmutex/dmutex.h>
#include <stdio.h>

#include "bench/contest.h"
#include "bench/held.h"
#include "bench/own.h"
#include "bench/server.h"
#include "bench/workload.h"

enum { NAMES = 10000 };

static dmutex_t mutexes[NAMES];
static struct own owns[NAMES];
static redisContext *context;

static void lock_and_unlock(dmutex_t *mutex)
{
    bench_must(dmutex_lock(mutex));
    bench_must(dmutex_unlock(mutex));
}

static void pair_of_many(void *unused)
{
    static int next;

    (void)unused;
    lock_and_unlock(&mutexes[next++ % NAMES]);
}

static void pair_of_one(void *unused)
{
    (void)unused;
    lock_and_unlock(&mutexes[0]);
}

static void own_pair_of_many(void *unused)
{
    static int next;
    struct own *own = &owns[next++ % NAMES];

    (void)unused;
    own_lock(own, context);
    own_unlock(own, context);
}

static void measure_pairs(const struct bench_scene *scene)
{
    static const struct contender contenders[] = {
        { "library", pair_of_many, NULL },
        { "one name", pair_of_one, NULL },
        { "own scripts", own_pair_of_many, NULL },
        { NULL, NULL, NULL },
    };
    char name[64];

    context = bench_connect(scene->server);
    own_load(context);
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "own-%d", i);
        own_init(&owns[i], name, 1);
        snprintf(name, sizeof name, "bench/name-%d", i);
        bench_must(dmutex_init_np(&mutexes[i], name, NULL));
    }
    contest_hold(&(struct contest){ scene, "10000 names", "lock + unlock, in turn", "us", contenders, NULL, NAMES, 0 });
}

static void measure_holding(const struct bench_scene *scene)
{
    struct held held = held_take(NAMES, 60000);

    (void)scene;
    report(&(struct figure){ "10000 held", "lock, the first time", "us", NAMES, held.seconds * 1e6, { { 0 } }, NULL });
    report(&(struct figure){ "10000 held", "memory, a lock", "KiB", NAMES, held.bytes / 1024, { { 0 } }, "<= 2" });
    held_leave(&held);
}

static void run(const struct bench_scene *scene)
{
    bench_apart(scene, measure_pairs);
    bench_apart(scene, measure_holding);
}

const struct workload workload_names = { "names", "10 000 names in turn, and all held", run, false };

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 10 000 names: a lock and unlock of each in turn, compared with the same of one name, and with bare locks of as many
 * names; and the cost of holding them all.
 */
#include <dmutex/dmutex.h>
#include <stdio.h>

#include "bench/contest.h"
#include "bench/held.h"
#include "bench/server.h"
#include "bench/store.h"
#include "bench/workload.h"

enum { NAMES = 10000 };

static dmutex_t mutexes[NAMES];
static void *bare_locks[NAMES];
static const struct bare *bare;

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

static void bare_pair_of_many(void *unused)
{
    static int next;
    void *lock = bare_locks[next++ % NAMES];

    (void)unused;
    bare->lock(lock);
    bare->unlock(lock);
}

static void measure_pairs(const struct bench_scene *scene)
{
    const struct contender contenders[] = {
        { "library", pair_of_many, NULL },
        { "one name", pair_of_one, NULL },
        { scene->server->store->bare[BARE_PAIR].name, bare_pair_of_many, NULL },
        { NULL, NULL, NULL },
    };
    char name[64];

    bare = &scene->server->store->bare[BARE_PAIR];
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "own-%d", i);
        bare_locks[i] = bare->open(scene->server, name, 1, bare_locks[0]);
        snprintf(name, sizeof name, "bench/name-%d", i);
        bench_must(dmutex_init_np(&mutexes[i], name, NULL));
    }
    contest_hold(&(struct contest){ scene, "10000 names", "lock + unlock, in turn", "us", contenders, NULL, NAMES, 0 });
}

static struct held *shared;

static void hold(const struct bench_scene *scene)
{
    struct held held = held_take(NAMES, 60000);

    (void)scene;
    *shared = held;
    held_leave(&held);
}

static struct held measured_on(const struct bench_scene *scene)
{
    shared = bench_share(sizeof *shared);
    bench_apart(scene, hold);
    return *shared;
}

/* On another store, memory is compared with that on Redis. */
static void measure_holding(const struct bench_scene *scene)
{
    struct held held = measured_on(scene);
    struct figure memory = { "10000 held", "memory, a lock", "KiB", NAMES, held.bytes / 1024, { { 0 } }, "<= 2" };

    if (scene->server->store != &bench_redis) {
        struct bench_server redis = bench_server_start(&bench_redis, scene->place->server_core);
        struct bench_scene of_redis = *scene;

        of_redis.server = &redis;
        memory.limits[0].name = "on Redis";
        memory.limits[0].value = measured_on(&of_redis).bytes / 1024;
        memory.budget = "<= 1.00";
        bench_server_stop(&redis);
    }
    report(&(struct figure){ "10000 held", "lock, the first time", "us", NAMES, held.seconds * 1e6, { { 0 } }, NULL });
    report(&memory);
}

static void run(const struct bench_scene *scene)
{
    bench_apart(scene, measure_pairs);
    measure_holding(scene);
}

const struct workload workload_names = { "names", "10 000 names in turn, and all held", run, false, ON_ALL };

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock and unlock of a name that no other thread wants, compared with bare locks: over a unix socket; on Redis over
 * TCP, too, and on etcd only so; and while a program computes on each core.
 */
#include <dmutex/dmutex.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/contest.h"
#include "bench/server.h"
#include "bench/store.h"
#include "bench/workload.h"

enum { CORES_MAX = 64 };

struct bare_lock {
    const struct bare *bare;
    void *lock;
};

static void library_pair(void *mutex)
{
    bench_must(dmutex_lock(mutex));
    bench_must(dmutex_unlock(mutex));
}

static void bare_pair(void *user)
{
    const struct bare_lock *lock = user;

    lock->bare->lock(lock->lock);
    lock->bare->unlock(lock->lock);
}

static void measure_as(const struct bench_scene *scene, const char *when, const char *limits)
{
    static const enum bare_kind kinds[] = { BARE_PAIR, BARE_CLASSIC, BARE_POLL };
    static dmutex_t mutex = DMUTEX_INITIALIZER("bench/pair");
    struct bare_lock locks[BENCH_COUNT(kinds)];
    struct contender contenders[1 + BENCH_COUNT(kinds) + 1] = { { "library", library_pair, &mutex } };
    int count = 0;

    for (size_t i = 0; i < BENCH_COUNT(kinds); i++) {
        const struct bare *bare = &scene->server->store->bare[kinds[i]];

        if (!bare->name)
            continue;
        locks[count] = (struct bare_lock){ bare, bare->open(scene->server, bare->name, 1, NULL) };
        contenders[1 + count] = (struct contender){ bare->name, bare_pair, &locks[count] };
        count++;
    }
    contest_hold(&(struct contest){ scene, when, "lock + unlock", "us", contenders, limits, 0, 0 });
    contest_count(&contenders[0], scene, when, "2");
}

static void measure(const struct bench_scene *scene)
{
    measure_as(
        scene, bench_way_names[scene->server->way],
        bench_budget(scene, "<= 0.95 of classic apart, <= 1.10 anywhere", "<= 1.20 of two updates, 1.25 of swaps"));
}

static void compute(void *core)
{
    bench_pin(0, *(int *)core);
    for (;;)
        __asm__ volatile("");
}

static void measure_busy(const struct bench_scene *scene)
{
    pid_t pids[CORES_MAX];
    int online = (int)sysconf(_SC_NPROCESSORS_ONLN), cores = online < CORES_MAX ? online : CORES_MAX;

    for (int i = 0; i < cores; i++)
        pids[i] = bench_begin(scene, compute, &i);
    measure_as(scene, "busy cores", bench_budget(scene, "<= 1.40 of classic, but all on one core", NULL));
    for (int i = 0; i < cores; i++)
        bench_kill(pids[i]);
}

static bool is_reached_by(const struct bench_store *store, enum bench_way way)
{
    return store == &bench_redis || (store == &bench_etcd) == (way == BENCH_TCP);
}

static void run(const struct bench_scene *scene)
{
    for (enum bench_way way = 0; way < BENCH_WAYS; way++) {
        if (!is_reached_by(scene->server->store, way))
            continue;
        bench_server_use(scene->server, way);
        bench_apart(scene, measure);
    }
    bench_server_use(scene->server, BENCH_UNIX);
    bench_apart(scene, measure_busy);
}

const struct workload workload_uncontended = { "uncontended", "a lock and unlock of a name that no other thread wants",
                                               run, true, ON_ALL };

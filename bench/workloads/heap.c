/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The size of the table after many swaps of one name: 200 000 for each round, a million if not told otherwise.
 */
#include <dmutex/dmutex.h>

#include "bench/server.h"
#include "bench/store.h"
#include "bench/workload.h"

enum { SWAPS_A_ROUND = 200000, PAIRS_A_LOOK = 1000 };

static void lock_and_unlock(int times)
{
    static dmutex_t mutex = DMUTEX_INITIALIZER("bench/heap");

    for (int i = 0; i < times; i++) {
        bench_must(dmutex_lock(&mutex));
        bench_must(dmutex_unlock(&mutex));
    }
}

static double writes_so_far(const struct bench_scene *scene)
{
    struct bench_counts counts;

    scene->server->store->count(scene->server, &counts);
    return counts.commands;
}

static void measure(const struct bench_scene *scene)
{
    double (*bytes)(const struct bench_server *) = scene->server->store->table_bytes;
    double first, least, swaps, most = 0;

    lock_and_unlock(PAIRS_A_LOOK);
    first = writes_so_far(scene);
    least = bytes(scene->server);
    do {
        double now;

        lock_and_unlock(PAIRS_A_LOOK);
        now = bytes(scene->server);
        most = now > most ? now : most;
        swaps = writes_so_far(scene) - first;
    } while (swaps < (double)SWAPS_A_ROUND * scene->rounds);
    report(&(struct figure){ "one name", "swaps", "", 0, swaps, { { 0 } }, NULL });
    report(&(struct figure){
        "one name", "table and index, at most", "KiB", 0, most / 1024, { { "after 2000", least / 1024 } }, NULL });
}

static void run(const struct bench_scene *scene)
{
    bench_apart(scene, measure);
}

const struct workload workload_heap = { "heap", "the size of the table after a million swaps", run, false,
                                        ON_POSTGRES };

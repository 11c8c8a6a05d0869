/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of one process.
 *
 * Each with its own name, which no other thread wants. The threads share the library's one connection; without the
 * library they would use a connection each, or one connection with a pthread mutex around each call.
 *
 * All with one name: handed on inside the process, compared with going through the server each time (DMUTEX_FAIR_NP).
 */
#include <dmutex/dmutex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "bench/crowd.h"
#include "bench/server.h"
#include "bench/workload.h"

#define THREADS_MAX 8

/* ---- a name each ----------------------------------------------------------------- */

enum way { LIBRARY, A_CONNECTION_EACH, ONE_CONNECTION, WAYS };

struct worker {
    pthread_t thread;
    enum way way;
    dmutex_t mutex;
    void *own, *shared; /* bare locks: with a connection of its own, and with one for all */
    long pairs;
};

static struct worker workers[THREADS_MAX];
static const struct bare *bare;
static atomic_bool is_over;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void library_pair(struct worker *worker)
{
    bench_must(dmutex_lock(&worker->mutex));
    bench_must(dmutex_unlock(&worker->mutex));
}

static void own_pair(struct worker *worker)
{
    bare->lock(worker->own);
    bare->unlock(worker->own);
}

static void shared_pair(struct worker *worker)
{
    pthread_mutex_lock(&turn);
    bare->lock(worker->shared);
    pthread_mutex_unlock(&turn);
    pthread_mutex_lock(&turn);
    bare->unlock(worker->shared);
    pthread_mutex_unlock(&turn);
}

static void *work(void *user)
{
    static void (*const pair_of[WAYS])(struct worker *) = { library_pair, own_pair, shared_pair };
    struct worker *worker = user;

    while (!is_over) {
        pair_of[worker->way](worker);
        worker->pairs++;
    }
    return NULL;
}

/* Pairs per second. */
static double run_threads(enum way way, int threads, double seconds)
{
    double start = bench_now();
    long sum = 0;

    is_over = false;
    for (int i = 0; i < threads; i++) {
        workers[i].pairs = 0;
        workers[i].way = way;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            bench_die("no thread");
    }
    bench_pause(seconds);
    is_over = true;
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        sum += workers[i].pairs;
    }
    return (double)sum / (bench_now() - start);
}

static void prepare(const struct bench_scene *scene)
{
    char name[32];

    bare = &scene->server->store->bare[BARE_PAIR];
    for (int i = 0; i < THREADS_MAX; i++) {
        snprintf(name, sizeof name, "thread-%d", i);
        workers[i].own = bare->open(scene->server, name, i, NULL);
        workers[i].shared = bare->open(scene->server, name, i, workers[0].own);
        snprintf(name, sizeof name, "bench/thread-%d", i);
        bench_must(dmutex_init_np(&workers[i].mutex, name, NULL));
    }
    run_threads(LIBRARY, THREADS_MAX, scene->seconds);
}

static void compare(const struct bench_scene *scene, int threads)
{
    double per_second[WAYS][100];
    char when[32];
    struct figure figure = { .when = when, .name = "pairs, a name each", .unit = "/s", .size = threads };

    for (int round = 0; round < scene->rounds; round++) {
        for (enum way way = 0; way < WAYS; way++)
            per_second[way][round] = run_threads(way, threads, scene->seconds);
    }
    snprintf(when, sizeof when, "%d thread%s", threads, threads > 1 ? "s" : "");
    figure.value = bench_median(per_second[LIBRARY], scene->rounds);
    figure.limits[0].name = "a connection each";
    figure.limits[0].value = bench_median(per_second[A_CONNECTION_EACH], scene->rounds);
    figure.limits[1].name = "one connection";
    figure.limits[1].value = bench_median(per_second[ONE_CONNECTION], scene->rounds);
    figure.budget = threads == THREADS_MAX ? bench_budget(scene, ">= 0.90 of a connection each", ">= 0.80") : NULL;
    report(&figure);
}

static void measure_names(const struct bench_scene *scene)
{
    prepare(scene);
    for (int threads = 1; threads <= THREADS_MAX; threads *= 2)
        compare(scene, threads);
}

/* ---- one name -------------------------------------------------------------------- */

static void measure_one_name(const struct bench_scene *scene, int threads)
{
    const struct crowd crowds[] = {
        { .name = "library", .processes = 1, .threads = threads },
        { .name = "always the server", .processes = 1, .threads = threads, .fairness = DMUTEX_FAIR_NP },
        { .name = "bare grant", .lock = BARE_GRANT, .processes = 1, .threads = threads },
    };
    struct crowd_figures medians[BENCH_COUNT(crowds)];
    char when[32];

    snprintf(when, sizeof when, "%d, one name", threads);
    crowd_compare(scene, crowds, BENCH_COUNT(crowds), medians);
    crowd_report(crowds, 3, medians, CROWD_PER_SECOND, when, threads, ">= 30 x the server");
    crowd_report(crowds, 3, medians, CROWD_HANDOFFS, when, threads, NULL);
    crowd_report(crowds, 3, medians, CROWD_COMMANDS, when, threads, bench_budget(scene, "<= 3 in 4095", NULL));
    crowd_report(crowds, 3, medians, CROWD_SPREAD, when, threads, NULL);
}

/* Compared with two processes of one thread each. */
static void measure_two_processes(const struct bench_scene *scene)
{
    static const struct crowd crowds[] = {
        { .name = "library", .processes = 2, .threads = THREADS_MAX },
        { .name = "2 x 1 threads", .processes = 2, .threads = 1 },
    };
    struct crowd_figures medians[BENCH_COUNT(crowds)];

    crowd_compare(scene, crowds, BENCH_COUNT(crowds), medians);
    crowd_report(crowds, 2, medians, CROWD_PER_SECOND, "2 x 8, one name", 2 * THREADS_MAX, ">= 10 x");
    crowd_report(crowds, 2, medians, CROWD_SHARES, "2 x 8, one name", 2 * THREADS_MAX, "<= 1.50 : 1");
    crowd_report(crowds, 2, medians, CROWD_SPREAD, "2 x 8, one name", 2 * THREADS_MAX, NULL);
}

/* Compared with the same in the order of all threads. */
static void measure_waits(const struct bench_scene *scene)
{
    static const struct crowd crowds[] = {
        { .name = "library", .processes = 2, .threads = THREADS_MAX, .is_timed = true },
        { .name = "fair", .processes = 2, .threads = THREADS_MAX, .is_timed = true, .fairness = DMUTEX_FAIR_NP },
    };
    struct crowd_figures medians[BENCH_COUNT(crowds)];

    crowd_compare(scene, crowds, BENCH_COUNT(crowds), medians);
    crowd_report(crowds, 2, medians, CROWD_WAIT_MS, "2 x 8, one name", 2 * THREADS_MAX, "<= 1.00");
}

static void run(const struct bench_scene *scene)
{
    bench_apart(scene, measure_names);
    measure_one_name(scene, 2);
    measure_one_name(scene, THREADS_MAX);
    measure_two_processes(scene);
    measure_waits(scene);
}

const struct workload workload_threads = { "threads", "threads of a process, with a name each, and all with one name",
                                           run, true, ON_ALL };

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of one process, each with a separate mutex that no other thread wants. The threads share the library's one
 * connection; without the library the threads would use:
 *
 *   a connection each    blocking hiredis, the library's own two scripts
 *   one connection       the same, one pthread mutex around each call
 */
#include <dmutex/dmutex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "own.h"

#define ROUNDS 5
#define SECONDS 0.1
#define THREADS_MAX 8

struct worker {
    pthread_t thread;
    dmutex_t mutex;
    struct own own;
    redisContext *context;
    long pairs;
};

static struct worker workers[THREADS_MAX];
static atomic_bool is_over;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* ---- the work of the threads ----------------------------------------------------- */

static void library_pair(struct worker *worker)
{
    bench_must(dmutex_lock(&worker->mutex));
    bench_must(dmutex_unlock(&worker->mutex));
}

static void own_pair(struct worker *worker)
{
    own_lock(&worker->own, worker->context);
    own_unlock(&worker->own, worker->context);
}

static void shared_pair(struct worker *worker)
{
    pthread_mutex_lock(&turn);
    own_lock(&worker->own, workers[0].context);
    pthread_mutex_unlock(&turn);
    pthread_mutex_lock(&turn);
    own_unlock(&worker->own, workers[0].context);
    pthread_mutex_unlock(&turn);
}

static void (*const pair_of[])(struct worker *) = { library_pair, own_pair, shared_pair };
enum way { LIBRARY, A_CONNECTION_EACH, ONE_CONNECTION, WAYS };

static enum way way;

/* ---- running --------------------------------------------------------------------- */

static void *work(void *user)
{
    struct worker *worker = user;

    while (!is_over) {
        pair_of[way](worker);
        worker->pairs++;
    }
    return NULL;
}

static double run(enum way new_way, int threads)
{
    double start = bench_now();
    long sum = 0;

    way = new_way;
    is_over = false;
    for (int i = 0; i < threads; i++) {
        workers[i].pairs = 0;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            bench_die("no thread");
    }
    bench_pause(SECONDS);
    is_over = true;
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        sum += workers[i].pairs;
    }
    return (double)sum / (bench_now() - start);
}

static void prepare(const struct bench_server *server)
{
    char name[32];

    for (int i = 0; i < THREADS_MAX; i++) {
        snprintf(name, sizeof name, "thread-%d", i);
        own_init(&workers[i].own, name, i);
        workers[i].context = bench_connect(server);
        snprintf(name, sizeof name, "bench/thread-%d", i);
        bench_must(dmutex_init_np(&workers[i].mutex, name, NULL));
    }
    own_load(workers[0].context);
    run(LIBRARY, THREADS_MAX);
}

static void measure(void *server)
{
    double per_second[WAYS][ROUNDS], median[WAYS];

    prepare(server);
    for (int threads = 1; threads <= THREADS_MAX; threads *= 2) {
        for (int round = 0; round < ROUNDS; round++) {
            for (int i = 0; i < WAYS; i++)
                per_second[i][round] = run(i, threads);
        }
        for (int i = 0; i < WAYS; i++)
            median[i] = bench_median(per_second[i], ROUNDS);
        printf("  %7d   %8.0f   %8.0f  %5.2f x      %8.0f  %5.2f x\n", threads, median[LIBRARY],
               median[A_CONNECTION_EACH], median[LIBRARY] / median[A_CONNECTION_EACH], median[ONE_CONNECTION],
               median[LIBRARY] / median[ONE_CONNECTION]);
    }
}

int main(void)
{
    struct bench_server server = bench_server_start();

    printf("pairs/s of threads, each with its own mutex; 1 thread: see pair\n"
           "budget: 8 threads >= 0.90 of a connection each\n"
           "  threads    library   a connection each   one connection for all\n");
    for (const struct bench_place *place = bench_places(); place->name; place++) {
        bench_pin(server.pid, place->server_core);
        printf("%s\n", place->name);
        bench_apart(&server, place->client_core, measure, &server);
    }
    bench_server_stop(&server);
    return 0;
}

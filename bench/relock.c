/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decisions without waiting: locking a held mutex again, which asks no server, and trying another owner's mutex, which
 * asks once.
 */
#include <dmutex/dmutex.h>
#include <pthread.h>
#include <stdio.h>

#include "bench.h"
#include "own.h"

#define ROUNDS 9
#define RELOCKS 200000
#define TRIES 1000

/* ---- again ----------------------------------------------------------------------- */

static double library_relocks(dmutex_t *mutex)
{
    double start = bench_now();

    for (int i = 0; i < RELOCKS; i++) {
        bench_must(dmutex_lock(mutex));
        bench_must(dmutex_unlock(mutex));
    }
    return (bench_now() - start) / RELOCKS;
}

static double plain_relocks(pthread_mutex_t *mutex)
{
    double start = bench_now();

    for (int i = 0; i < RELOCKS; i++) {
        bench_must(pthread_mutex_lock(mutex));
        bench_must(pthread_mutex_unlock(mutex));
    }
    return (bench_now() - start) / RELOCKS;
}

static void measure_relock(void *server)
{
    static dmutex_t mutex = DMUTEX_RECURSIVE_INITIALIZER("bench/relock");
    pthread_mutex_t plain = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    double library[ROUNDS], bare[ROUNDS], sent;
    redisContext *context = bench_connect(server);

    bench_must(dmutex_lock(&mutex));
    pthread_mutex_lock(&plain);
    sent = bench_scripts_sent(context);
    for (int round = 0; round < ROUNDS; round++) {
        library[round] = library_relocks(&mutex);
        bare[round] = plain_relocks(&plain);
    }
    sent = bench_scripts_sent(context) - sent;
    printf("  lock + unlock again    %7.0f ns   pthread mutex %5.1f ns   scripts called %.0f (0)\n",
           bench_median(library, ROUNDS) * 1e9, bench_median(bare, ROUNDS) * 1e9, sent);
    bench_must(dmutex_unlock(&mutex));
    redisFree(context);
}

/* ---- a try ----------------------------------------------------------------------- */

static double library_tries(dmutex_t *mutex)
{
    double start = bench_now();

    for (int i = 0; i < TRIES; i++) {
        if (dmutex_trylock(mutex) == 0)
            bench_die("a lock that is held was given away");
    }
    return (bench_now() - start) / TRIES;
}

static double own_tries(struct own *own, redisContext *context)
{
    double start = bench_now();

    for (int i = 0; i < TRIES; i++)
        own_try_busy(own, context);
    return (bench_now() - start) / TRIES;
}

static void measure_try(void *server)
{
    static dmutex_t mutex = DMUTEX_INITIALIZER("bench/busy");
    double library[ROUNDS], bare[ROUNDS], sent;
    redisContext *context = bench_connect(server);
    struct own holder, other;

    own_load(context);
    own_init(&holder, "busy", 1);
    own_init(&other, "busy", 2);
    own_lock(&holder, context); /* for the library as for the bare loop: the library's mutex has these keys */
    library_tries(&mutex);
    own_unlock(&holder, context);
    sent = bench_scripts_sent(context);
    for (int round = 0; round < ROUNDS; round++) {
        own_lock(&holder, context);
        library[round] = library_tries(&mutex);
        bare[round] = own_tries(&other, context);
        own_unlock(&holder, context);
    }
    sent = (bench_scripts_sent(context) - sent - 2 * ROUNDS) / ROUNDS / TRIES - 1;
    printf("  trylock of a held one  %7.1f us   own script, bare %5.1f us   ratio %.2f   scripts called %.2f (1)\n",
           bench_median(library, ROUNDS) * 1e6, bench_median(bare, ROUNDS) * 1e6,
           bench_median(library, ROUNDS) / bench_median(bare, ROUNDS), sent);
    redisFree(context);
}

int main(void)
{
    struct bench_server server = bench_server_start();

    printf("without waiting\n");
    for (const struct bench_place *place = bench_places(); place->name; place++) {
        bench_pin(server.pid, place->server_core);
        printf("%s\n", place->name);
        bench_apart(&server, place->client_core, measure_relock, &server);
        bench_apart(&server, place->client_core, measure_try, &server);
    }
    bench_server_stop(&server);
    return 0;
}

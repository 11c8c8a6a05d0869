/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What dead waiters cost the living. A process that holds a name, and has many threads waiting for it, is killed. Three
 * other processes want the name. The workload counts how often they lock in the second after the dead owner's lease has
 * ended, as a ratio to the same with an owner that is killed alone.
 */
#include <dmutex/dmutex.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/server.h"
#include "bench/workload.h"

#define LIVING 3
#define SECONDS 1.0
#define LEASE_MS 2000 /* for all; the owner renews its lease until the kill */

static const int sizes[] = { 0, 64, 300, 1500 };

enum { SIZES = BENCH_COUNT(sizes), ROUNDS_MAX = 100 };

struct board {
    char leaf[32]; /* of the mutex's name */
    int size;
    atomic_int held, started;
    atomic_long locked[LIVING * 16]; /* each in separate cache lines */
};

/* Fair: each waiting thread is in the server's queue, and dies there. */
static void make_mutex(dmutex_t *mutex, const char *leaf)
{
    char name[64];
    dmutexattr_t attr;

    snprintf(name, sizeof name, "bench/%s", leaf);
    bench_must(dmutexattr_init(&attr));
    bench_must(dmutexattr_setlease_np(&attr, LEASE_MS));
    bench_must(dmutexattr_setfairness_np(&attr, DMUTEX_FAIR_NP));
    bench_must(dmutex_init_np(mutex, name, &attr));
}

/* ---- the dying process ----------------------------------------------------------- */

static void *wait_for(void *mutex)
{
    dmutex_lock(mutex);
    return NULL;
}

static void hold_and_wait(void *user)
{
    struct board *board = user;
    dmutex_t mutex;
    pthread_attr_t attr;
    pthread_t thread;

    make_mutex(&mutex, board->leaf);
    bench_must(dmutex_lock(&mutex));
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN + 65536);
    for (int i = 0; i < board->size; i++)
        bench_must(pthread_create(&thread, &attr, wait_for, &mutex));
    board->held = 1;
    for (;;)
        pause();
}

static void await_queue(redisContext *context, const struct board *board)
{
    char key[64];

    snprintf(key, sizeof key, "dmutex:{bench}:queue:%s", board->leaf);
    while (bench_ask(context, "ZCARD", key) < board->size)
        bench_pause(0.002);
}

/* ---- the living processes -------------------------------------------------------- */

static void lock_again_and_again(void *user)
{
    struct board *board = user;
    atomic_long *locked = &board->locked[board->started++ * 16];
    dmutex_t mutex;

    make_mutex(&mutex, board->leaf);
    for (;;) {
        bench_must(dmutex_lock(&mutex));
        bench_must(dmutex_unlock(&mutex));
        ++*locked;
    }
}

static long sum_of(struct board *board)
{
    long sum = 0;

    for (int i = 0; i < LIVING; i++)
        sum += board->locked[i * 16];
    return sum;
}

/* Acquisitions per second of the living, from their first one on. */
static double rate_of_living(const struct bench_scene *scene, struct board *board)
{
    pid_t living[LIVING];
    double start, rate;

    for (int i = 0; i < LIVING; i++)
        living[i] = bench_begin(scene, lock_again_and_again, board);
    while (sum_of(board) == 0)
        bench_pause(0.0005);
    start = bench_now();
    bench_pause(SECONDS);
    rate = (double)sum_of(board) / (bench_now() - start);
    for (int i = 0; i < LIVING; i++)
        bench_kill(living[i]);
    return rate;
}

static double rate_beside(const struct bench_scene *scene, redisContext *context, int size)
{
    static int number;
    struct board *board = bench_share(sizeof *board);
    pid_t dead;
    double rate;

    board->size = size;
    snprintf(board->leaf, sizeof board->leaf, "dead-%d", number++);
    dead = bench_begin(scene, hold_and_wait, board);
    while (!board->held)
        bench_pause(0.002);
    await_queue(context, board);
    bench_kill(dead);
    rate = rate_of_living(scene, board);
    munmap(board, sizeof *board);
    return rate;
}

static void run(const struct bench_scene *scene)
{
    redisContext *context = bench_connect(scene->server);
    double rates[SIZES][ROUNDS_MAX], none = 0;
    char when[32];

    for (int round = 0; round < scene->rounds; round++) {
        for (size_t i = 0; i < SIZES; i++)
            rates[i][round] = rate_beside(scene, context, sizes[i]);
    }
    for (size_t i = 0; i < SIZES; i++) {
        double rate = bench_median(rates[i], scene->rounds);

        none = i == 0 ? rate : none;
        snprintf(when, sizeof when, "%d dead", sizes[i]);
        report(
            &(struct figure){ when, "acquisitions of 3", "/s", sizes[i], rate, { { "none dead", none } }, ">= 0.50" });
    }
    redisFree(context);
}

const struct workload workload_dead = { "dead", "the second after the lease of a killed owner whose threads waited",
                                        run, false, ON_REDIS };

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cost of dead waiters for the living: a process that holds a name, and has many threads waiting for the name, is
 * killed. Three other processes want the name. The benchmark counts how often the three lock in the second after the
 * lease of the dead owner has ended, as a ratio to an owner that is killed alone.
 */
#include <dmutex/dmutex.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define ROUNDS 3
#define LIVING 3
#define SECONDS 1.0
#define LEASE_MS 2000 /* the same for all; the owner renews the lease until the kill */

static const int sizes[] = { 0, 64, 300, 1500 };

struct board {
    atomic_int held;
    atomic_long locked[LIVING * 16]; /* each in separate cache lines */
};

static void make_mutex(dmutex_t *mutex, const char *leaf)
{
    char name[64];
    dmutexattr_t attr;

    snprintf(name, sizeof name, "bench/%s", leaf);
    bench_must(dmutexattr_init(&attr));
    bench_must(dmutexattr_setlease_np(&attr, LEASE_MS));
    bench_must(dmutex_init_np(mutex, name, &attr));
}

/* A process of the benchmark's own, ends with the benchmark. */
static pid_t begin_process(const struct bench_server *server, int core)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bench_pin(0, core);
    setenv("DMUTEX_URL", server->url, 1);
    return 0;
}

static void end_process(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* ---- the dying process ----------------------------------------------------------- */

static void *wait_for(void *mutex)
{
    dmutex_lock(mutex);
    return NULL;
}

static void hold_and_wait(const char *leaf, int size, struct board *board)
{
    dmutex_t mutex;
    pthread_attr_t attr;
    pthread_t thread;

    make_mutex(&mutex, leaf);
    bench_must(dmutex_lock(&mutex));
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN + 65536);
    for (int i = 0; i < size; i++)
        bench_must(pthread_create(&thread, &attr, wait_for, &mutex));
    board->held = 1;
    for (;;)
        pause();
}

static void await_queue(redisContext *context, const char *leaf, int size)
{
    char key[64];
    int waiting;

    snprintf(key, sizeof key, "dmutex:{bench}:queue:%s", leaf);
    do {
        redisReply *reply = bench_command(context, 2, (const char *[]){ "ZCARD", key });

        waiting = (int)reply->integer;
        freeReplyObject(reply);
        bench_pause(0.002);
    } while (waiting < size);
}

/* ---- the living processes -------------------------------------------------------- */

static void lock_again_and_again(const char *leaf, atomic_long *locked)
{
    dmutex_t mutex;

    make_mutex(&mutex, leaf);
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

/*
 * Acquisitions per second of the living, from the first acquisition on, after `size` waiters and the owner have died.
 */
static double rate_beside(const struct bench_server *server, redisContext *context, int core, int size, int number)
{
    struct board *board = bench_share(sizeof *board);
    pid_t dead, living[LIVING];
    char leaf[32];
    double start, rate;

    snprintf(leaf, sizeof leaf, "dead-%d", number);
    fflush(stdout);
    dead = begin_process(server, core);
    if (dead == 0)
        hold_and_wait(leaf, size, board);
    while (!board->held)
        bench_pause(0.002);
    await_queue(context, leaf, size);
    end_process(dead);
    for (int i = 0; i < LIVING; i++) {
        living[i] = begin_process(server, core);
        if (living[i] == 0)
            lock_again_and_again(leaf, &board->locked[i * 16]);
    }
    while (sum_of(board) == 0)
        bench_pause(0.0005);
    start = bench_now();
    bench_pause(SECONDS);
    rate = (double)sum_of(board) / (bench_now() - start);
    for (int i = 0; i < LIVING; i++)
        end_process(living[i]);
    munmap(board, sizeof *board);
    return rate;
}

int main(void)
{
    struct bench_server server = bench_server_start();
    const struct bench_place *place = bench_places();
    redisContext *context = bench_connect(&server);
    double rates[BENCH_COUNT(sizes)][ROUNDS], none = 0;
    int number = 0;

    bench_pin(server.pid, place->server_core);
    printf("the second after the lease of a killed owner, whose threads waited; 3 other processes lock and unlock\n"
           "budget: within 2.00 of the rate beside no dead waiter\n%s\n  dead waiters  acq./s   none's / this\n",
           place->name);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < BENCH_COUNT(sizes); i++)
            rates[i][round] = rate_beside(&server, context, place->client_core, sizes[i], number++);
    }
    for (size_t i = 0; i < BENCH_COUNT(sizes); i++) {
        double rate = bench_median(rates[i], ROUNDS);

        none = i == 0 ? rate : none;
        printf("  %12d  %6.0f   %13.2f\n", sizes[i], rate, none / rate);
    }
    redisFree(context);
    bench_server_stop(&server);
    return 0;
}

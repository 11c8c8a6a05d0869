/* SPDX-License-Identifier: BSD-2-Clause */
#include "crowd.h"

#include <dmutex/dmutex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "grant.h"

enum stage { GATHER, RUN, END };

/* One process's own part; alone in the cache lines. */
struct seat {
    atomic_long acquisitions;
    long sleeps;
    char padding[112];
};

struct board {
    atomic_int stage;
    atomic_int ready;
    struct seat seats[CROWD_MAX];
};

static dmutex_t mutex = DMUTEX_INITIALIZER("bench/handoff");

/* ---- one process ----------------------------------------------------------------- */

static void lock_and_unlock(struct grant *grant)
{
    if (grant) {
        grant_lock(grant);
        grant_unlock(grant);
    } else {
        bench_must(dmutex_lock(&mutex));
        bench_must(dmutex_unlock(&mutex));
    }
}

static long sleeps_so_far(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
}

static void take_part(struct board *board, struct seat *seat, struct grant *grant)
{
    long before;

    lock_and_unlock(grant); /* all is connected and loaded */
    board->ready++;
    while (board->stage == GATHER)
        bench_pause(0.001);
    before = sleeps_so_far();
    while (board->stage == RUN) {
        lock_and_unlock(grant);
        seat->acquisitions++;
    }
    seat->sleeps = sleeps_so_far() - before;
}

static void join_in(const struct bench_server *server, const struct crowd *crowd, struct board *board, int number)
{
    struct grant *grant = NULL;

    if (fork() != 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bench_pin(0, crowd->core);
    setenv("DMUTEX_URL", server->url, 1);
    if (crowd->lock == CROWD_BARE)
        grant = grant_open(server, number);
    take_part(board, &board->seats[number], grant);
    exit(0);
}

/* ---- all processes --------------------------------------------------------------- */

static long acquisitions_of_all(struct board *board, int size)
{
    long sum = 0;

    for (int i = 0; i < size; i++)
        sum += board->seats[i].acquisitions;
    return sum;
}

/*
 * Watches the running processes. The server's counters are the server's own; the counters of the clients are read
 * beside them.
 */
static void watch(struct board *board, int size, redisContext *context, double seconds, struct crowd_figures *figures)
{
    long before;
    double start, sum;

    bench_pause(seconds / 4);
    bench_stats_reset(context);
    before = acquisitions_of_all(board, size);
    start = bench_now();
    bench_pause(seconds);
    sum = (double)(acquisitions_of_all(board, size) - before);
    figures->per_second = sum / (bench_now() - start);
    figures->scripts = bench_scripts_sent(context) / sum;
    figures->server_us = bench_stat(context, "evalsha", "usec") / sum;
    figures->messages = bench_stat(context, "publish", "calls") / sum;
}

/* Adds up after the processes have ended. */
static void add_up(struct board *board, int size, struct crowd_figures *figures)
{
    long least = board->seats[0].acquisitions, most = least, sleeps = 0;

    for (int i = 0; i < size; i++) {
        long own = board->seats[i].acquisitions;

        least = own < least ? own : least;
        most = own > most ? own : most;
        sleeps += board->seats[i].sleeps;
    }
    figures->sleeps = (double)sleeps / (double)acquisitions_of_all(board, size);
    figures->spread = least ? (double)most / (double)least : 0;
}

static void await_all(int size)
{
    int status;

    for (int i = 0; i < size; i++) {
        if (wait(&status) < 0 || status != 0)
            bench_die("a process of the benchmark failed");
    }
}

struct crowd_figures crowd_run(const struct bench_server *server, const struct crowd *crowd, double seconds)
{
    struct board *board = bench_share(sizeof *board);
    struct crowd_figures figures = { 0 };
    redisContext *context = bench_connect(server);

    fflush(stdout);
    for (int i = 0; i < crowd->size; i++)
        join_in(server, crowd, board, i);
    while (board->ready < crowd->size)
        bench_pause(0.001);
    board->stage = RUN;
    watch(board, crowd->size, context, seconds, &figures);
    board->stage = END;
    await_all(crowd->size);
    add_up(board, crowd->size, &figures);
    redisFree(context);
    munmap(board, sizeof *board);
    return figures;
}

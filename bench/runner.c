/* SPDX-License-Identifier: BSD-2-Clause */
#include "runner.h"

#include <dmutex/dmutex.h>
#include <stdio.h>
#include <unistd.h>

#include "server.h"

enum { TURNS_MAX = 1000, TURNS_A_ROUND = 10 };

/* A process that reads a number, runs that many pairs, and writes the time they took. */
struct runner {
    struct bench_server server; /* only the address */
    struct bench_scene scene;
    int orders[2], answers[2];
    pid_t pid;
    long pairs; /* per turn */
    double times[TURNS_MAX];
};

static void run_pairs(void *user)
{
    static dmutex_t mutex = DMUTEX_INITIALIZER("bench/pair");
    struct runner *runner = user;
    long pairs;

    while (read(runner->orders[0], &pairs, sizeof pairs) == sizeof pairs) {
        double start = bench_now();

        for (long i = 0; i < pairs; i++) {
            bench_must(dmutex_lock(&mutex));
            bench_must(dmutex_unlock(&mutex));
        }
        start = bench_now() - start;
        if (write(runner->answers[1], &start, sizeof start) != sizeof start)
            bench_die("a pipe is closed");
    }
}

static void begin_runner(struct runner *runner, const struct bench_scene *scene)
{
    runner->scene = *scene;
    runner->scene.server = &runner->server;
    if (pipe(runner->orders) < 0 || pipe(runner->answers) < 0)
        bench_die("no pipe");
    runner->pid = bench_begin(&runner->scene, run_pairs, runner);
}

static double turn(struct runner *runner, long pairs)
{
    double seconds;

    if (write(runner->orders[1], &pairs, sizeof pairs) != sizeof pairs ||
        read(runner->answers[0], &seconds, sizeof seconds) != sizeof seconds)
        bench_die("a process that locks has ended");
    return seconds;
}

/* Finds by doubling how many pairs fill a turn.  The first pairs also open the connection. */
static void warm_up(struct runner *runner, double seconds)
{
    runner->pairs = 1;
    while (turn(runner, runner->pairs) < seconds)
        runner->pairs *= 2;
}

void runner_compare(const struct bench_scene *scene, const char *url, const char *limit_url, struct figure *figure)
{
    static struct runner runners[2];
    int turns = scene->rounds * TURNS_A_ROUND < TURNS_MAX ? scene->rounds * TURNS_A_ROUND : TURNS_MAX;

    snprintf(runners[0].server.url, sizeof runners[0].server.url, "%s", url);
    snprintf(runners[1].server.url, sizeof runners[1].server.url, "%s", limit_url);
    for (int i = 0; i < 2; i++) {
        begin_runner(&runners[i], scene);
        warm_up(&runners[i], scene->seconds / TURNS_A_ROUND);
    }
    for (int at = 0; at < turns; at++) {
        for (int i = 0; i < 2; i++)
            runners[i].times[at] = turn(&runners[i], runners[i].pairs) / (double)runners[i].pairs;
    }
    figure->value = bench_median(runners[0].times, turns) * 1e6;
    figure->limits[0].value = bench_median(runners[1].times, turns) * 1e6;
    report(figure);
    for (int i = 0; i < 2; i++)
        bench_kill(runners[i].pid);
}

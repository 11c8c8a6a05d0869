/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A broadcast to many processes, until all have had the mutex and returned: the time and the scripts per waiter, and
 * how many own the mutex at once as the server sees it. That is one, because the others wait for the mutex and sleep
 * on. Compared with one PUBLISH that all receive, after which each process acquires and releases a bare grant
 * (grant.h).
 */
#include <dmutex/dmutex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/grant.h"
#include "bench/server.h"
#include "bench/workload.h"
#include "stores/redis/wire/scripts.h"

#define OVER (-1)
#define KEY_OF_WAITERS "dmutex:{bench}:cond:broadcast"

enum { WAITERS_MAX = 200, ROUNDS_MAX = 100 };

static dmutex_t mutex; /* the lease is long, so that few polls are counted */
static dcond_t cond = DCOND_INITIALIZER("bench/broadcast");

/* Shared by the processes. */
struct board {
    atomic_int generation; /* what waiters wait to change: a new number, or OVER */
    atomic_int back;       /* how many have returned and unlocked */
    atomic_int ready;      /* how many of the bare waiters have subscribed */
    atomic_int bare_back;  /* how many of them have had the grant */
};

static struct board *board;
static const struct bench_scene *scene; /* for the processes that fork */

struct figures {
    double library[ROUNDS_MAX], bare[ROUNDS_MAX], scripts, messages;
};

static void set_up(const struct bench_scene *new_scene)
{
    dmutexattr_t attr;

    scene = new_scene;
    board = bench_share(sizeof *board);
    bench_must(dmutexattr_init(&attr));
    bench_must(dmutexattr_setlease_np(&attr, 60000));
    bench_must(dmutex_init_np(&mutex, "bench/broadcast", &attr));
}

static void await_all(atomic_int *back, int count)
{
    while (*back < count)
        bench_pause(0.0005);
}

/* ---- the waiters ----------------------------------------------------------------- */

static void wait_for_broadcasts(void *unused)
{
    (void)unused;
    for (int seen = board->generation; seen != OVER; seen = board->generation) {
        bench_must(dmutex_lock(&mutex));
        while (board->generation == seen)
            bench_must(dcond_wait(&cond, &mutex));
        bench_must(dmutex_unlock(&mutex));
        board->back++;
        while (board->back != 0) /* nobody waits again before all are back */
            bench_pause(0.001);
    }
}

static void wait_for_messages(void *number)
{
    redisContext *inbox = bench_connect(scene->server);
    struct grant *grant = grant_open(scene->server, *(int *)number);
    redisReply *reply;

    bench_run(inbox, 2, (const char *[]){ "SUBSCRIBE", "bare:broadcast" });
    board->ready++;
    while (redisGetReply(inbox, (void **)&reply) == REDIS_OK) {
        freeReplyObject(reply);
        grant_lock(grant);
        grant_unlock(grant);
        board->bare_back++;
    }
    bench_die("the inbox has broken");
}

/* ---- one broadcast --------------------------------------------------------------- */

static void await_waiters(redisContext *context, int count)
{
    while (bench_ask(context, "ZCARD", KEY_OF_WAITERS) < count)
        bench_pause(0.0005);
}

static void change(int generation)
{
    bench_must(dmutex_lock(&mutex));
    board->generation = generation;
    bench_must(dmutex_unlock(&mutex));
}

/* The mutex is free before anything is counted, and all are waiting again at the end. */
static double time_broadcast(redisContext *context, int count, struct figures *figures)
{
    double start, seconds;

    await_waiters(context, count);
    change(board->generation + 1);
    bench_stats_reset(context);
    start = bench_now();
    bench_must(dcond_broadcast(&cond));
    await_all(&board->back, count);
    seconds = bench_now() - start;
    figures->scripts = bench_scripts_sent(context) / count;
    figures->messages = bench_stat(context, "publish", "calls") / count;
    board->back = 0;
    await_waiters(context, count);
    return seconds / count;
}

static double time_publish(redisContext *context, int count)
{
    double start = bench_now();

    board->bare_back = 0;
    bench_run(context, 3, (const char *[]){ "PUBLISH", "bare:broadcast", "all" });
    await_all(&board->bare_back, count);
    return (bench_now() - start) / count;
}

/* ---- how many own the mutex at once ---------------------------------------------- */

/* A line of MONITOR: +1 if it grants the mutex by a message, -1 if it gives it back by a script. */
static int change_of_grants(const char *line)
{
    if (strstr(line, "\"EVALSHA\"") && strstr(line, dm_sha_release))
        return -1;
    return strstr(line, " lua] \"PUBLISH\"") && strstr(line, "\"granted ") ? 1 : 0;
}

/* The most grants in progress at once, until there were as many releases as waiters. */
static int most_grants(redisContext *monitor, int count)
{
    int now = 0, most = 0;
    redisReply *reply;

    for (int returned = 0; returned < count;) {
        int change;

        if (redisGetReply(monitor, (void **)&reply) != REDIS_OK)
            bench_die("the server has gone");
        change = change_of_grants(reply->str);
        freeReplyObject(reply);
        now += change;
        most = now > most ? now : most;
        returned += change < 0;
    }
    return most;
}

/* One more broadcast, watched instead of timed, because watching takes time. Then the waiters end. */
static int watch_last_broadcast(int count)
{
    redisContext *monitor = bench_connect(scene->server);
    int most;

    change(OVER);
    bench_run(monitor, 1, (const char *[]){ "MONITOR" });
    bench_must(dcond_broadcast(&cond));
    await_all(&board->back, count);
    most = most_grants(monitor, count);
    redisFree(monitor);
    board->back = 0;
    return most;
}

/* ---- all ------------------------------------------------------------------------- */

static void report_all(int count, struct figures *figures, int most)
{
    char when[32];
    struct figure figure = { .when = when, .name = "broadcast, a waiter", .unit = "us", .size = count };

    snprintf(when, sizeof when, "%d waiters", count);
    figure.value = bench_median(figures->library, scene->rounds) * 1e6;
    figure.limits[0].name = "publish, a bare grant each";
    figure.limits[0].value = bench_median(figures->bare, scene->rounds) * 1e6;
    report(&figure);
    report(&(struct figure){ when, "script calls, a waiter", "", count, figures->scripts, { { 0 } }, NULL });
    report(&(struct figure){ when, "messages, a waiter", "", count, figures->messages, { { 0 } }, NULL });
    report(&(struct figure){ when, "most grants at once", "", count, most, { { 0 } }, "1" });
}

static void broadcast_to(redisContext *context, int count)
{
    pid_t waiters[WAITERS_MAX], bare_waiters[WAITERS_MAX];
    static struct figures figures;
    int most;

    board->back = board->generation = board->ready = 0;
    for (int i = 0; i < count; i++)
        waiters[i] = bench_begin(scene, wait_for_broadcasts, NULL);
    for (int i = 0; i < count; i++)
        bare_waiters[i] = bench_begin(scene, wait_for_messages, &i);
    while (board->ready < count)
        bench_pause(0.001);
    for (int round = 0; round < scene->rounds; round++) {
        figures.library[round] = time_broadcast(context, count, &figures);
        figures.bare[round] = time_publish(context, count);
    }
    most = watch_last_broadcast(count);
    report_all(count, &figures, most);
    for (int i = 0; i < count; i++) {
        bench_await(waiters[i]);
        bench_kill(bare_waiters[i]);
    }
}

static void measure(const struct bench_scene *new_scene)
{
    static const int sizes[] = { 10, 50, WAITERS_MAX };
    redisContext *context = bench_connect(new_scene->server);

    set_up(new_scene);
    for (size_t i = 0; i < BENCH_COUNT(sizes); i++)
        broadcast_to(context, sizes[i]);
    redisFree(context);
}

static void run(const struct bench_scene *new_scene)
{
    bench_apart(new_scene, measure);
}

const struct workload workload_broadcast = { "broadcast", "a broadcast to 10, 50 and 200 processes", run, true,
                                             ON_REDIS };

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Condition variables between two processes.
 *
 *   signal    until the waiter has returned, compared with a bare PUBLISH, its receipt, and one script round trip of
 *             the receiver, which would then have to acquire the lock
 *   turns     the two wake each other in turn, compared with the same by bare means: receive, lock, unlock, publish
 */
#include <dmutex/dmutex.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "bench/own.h"
#include "bench/server.h"
#include "bench/workload.h"

#define OVER (-1) /* waiters are not killed: the server would still count a dead one */
#define KEY_OF_WAITERS "dmutex:{bench}:cond:cond"

enum { CYCLES = 100, TURNS = 1000, ROUNDS_MAX = 100 };

static dmutex_t mutex; /* the lease is long, so that few polls are counted */
static dcond_t cond = DCOND_INITIALIZER("bench/cond");

/* Shared by the processes. */
struct board {
    sem_t returned;        /* posted by a waiter that has recorded the time */
    double returned_at;    /* of the last waiter */
    atomic_int generation; /* what waiters wait to change: a new number, or OVER */
    int turn;              /* guarded by the mutex */
};

static struct board *board;
static const struct bench_scene *scene; /* for the processes that fork */

/* Before the processes are forked. */
static void set_up(const struct bench_scene *new_scene)
{
    dmutexattr_t attr;

    scene = new_scene;
    board = bench_share(sizeof *board);
    sem_init(&board->returned, 1, 0);
    bench_must(dmutexattr_init(&attr));
    bench_must(dmutexattr_setlease_np(&attr, 60000));
    bench_must(dmutex_init_np(&mutex, "bench/cond", &attr));
}

/* ---- a signal, until the waiter has returned ------------------------------------- */

static void note_return(void)
{
    board->returned_at = bench_now();
    sem_post(&board->returned);
}

static void wait_again_and_again(void *unused)
{
    (void)unused;
    bench_must(dmutex_lock(&mutex));
    for (int seen = board->generation; seen != OVER; seen = board->generation) {
        while (board->generation == seen)
            bench_must(dcond_wait(&cond, &mutex));
        note_return();
    }
    bench_must(dmutex_unlock(&mutex));
}

/* The same by bare means: a message, and then a script that takes a lock. */
static void receive_again_and_again(void *unused)
{
    redisContext *inbox = bench_connect(scene->server), *commands = bench_connect(scene->server);
    redisReply *reply;
    struct own own;

    (void)unused;
    own_load(commands);
    own_init(&own, "bare", 1);
    bench_run(inbox, 2, (const char *[]){ "SUBSCRIBE", "bare:inbox" });
    sem_post(&board->returned);
    while (redisGetReply(inbox, (void **)&reply) == REDIS_OK) {
        freeReplyObject(reply);
        own_lock(&own, commands);
        note_return();
        own_unlock(&own, commands);
    }
    bench_die("the inbox has broken");
}

/* Waits until the other process has recorded its return. Returns the seconds since `start`. */
static double await_return(double start)
{
    while (sem_wait(&board->returned) != 0)
        continue;
    return board->returned_at - start;
}

/* Changes the awaited number. If we own the mutex, all are waiting: the waiters give it up nowhere else. */
static void change(int generation)
{
    bench_must(dmutex_lock(&mutex));
    board->generation = generation;
    bench_must(dmutex_unlock(&mutex));
}

static double signal_many(redisContext *context)
{
    double sum = 0, start;

    for (int i = 0; i < CYCLES; i++) {
        while (bench_ask(context, "ZCARD", KEY_OF_WAITERS) < 1)
            bench_pause(0.0005);
        change(board->generation + 1);
        bench_pause(0.0002); /* by now, here and below, the waiter sleeps */
        start = bench_now();
        bench_must(dcond_signal(&cond));
        sum += await_return(start);
    }
    return sum / CYCLES;
}

static double publish_many(redisContext *context)
{
    double sum = 0, start;

    for (int i = 0; i < CYCLES; i++) {
        bench_pause(0.0002);
        start = bench_now();
        bench_run(context, 3, (const char *[]){ "PUBLISH", "bare:inbox", "granted" });
        sum += await_return(start);
    }
    return sum / CYCLES;
}

static void report_signal(double *library, double *bare)
{
    struct figure figure = { .when = "2 processes", .name = "signal to return", .unit = "us", .budget = "<= 1.50" };

    figure.value = bench_median(library, scene->rounds) * 1e6;
    figure.limits[0].name = "publish, receive, a script";
    figure.limits[0].value = bench_median(bare, scene->rounds) * 1e6;
    report(&figure);
}

static void measure_signal(const struct bench_scene *new_scene)
{
    redisContext *context = bench_connect(new_scene->server);
    double library[ROUNDS_MAX], bare[ROUNDS_MAX];
    pid_t waiter, receiver;

    set_up(new_scene);
    waiter = bench_begin(scene, wait_again_and_again, NULL);
    receiver = bench_begin(scene, receive_again_and_again, NULL);
    await_return(0); /* the receiver has subscribed */
    signal_many(context);
    for (int round = 0; round < scene->rounds; round++) {
        bare[round] = publish_many(context);
        library[round] = signal_many(context);
    }
    report_signal(library, bare);
    change(OVER);
    bench_must(dcond_signal(&cond));
    bench_await(waiter);
    bench_kill(receiver);
    redisFree(context);
}

/* ---- turns ----------------------------------------------------------------------- */

/* A turn is one wait and one signal. */
static void take_turns(void *number)
{
    int own = *(int *)number;

    bench_must(dmutex_lock(&mutex));
    for (int i = 0; i < TURNS / 2; i++) {
        while (board->turn != own)
            bench_must(dcond_wait(&cond, &mutex));
        board->turn = !own;
        bench_must(dcond_signal(&cond));
    }
    bench_must(dmutex_unlock(&mutex));
}

/* The same by bare means: receive, lock, unlock, publish. */
static void receive_and_publish(void *number)
{
    static const char *const inboxes[] = { "bare:turn-0", "bare:turn-1" };
    redisContext *inbox = bench_connect(scene->server), *commands = bench_connect(scene->server);
    int number_here = *(int *)number;
    redisReply *reply;
    struct own own;

    own_load(commands);
    own_init(&own, "bare-turns", number_here);
    bench_run(inbox, 2, (const char *[]){ "SUBSCRIBE", inboxes[number_here] });
    sem_post(&board->returned);
    for (int i = 0; i < TURNS / 2; i++) {
        if (redisGetReply(inbox, (void **)&reply) != REDIS_OK)
            bench_die("the inbox has broken");
        freeReplyObject(reply);
        own_lock(&own, commands);
        own_unlock(&own, commands);
        bench_run(commands, 3, (const char *[]){ "PUBLISH", inboxes[!number_here], "turn" });
    }
    redisFree(inbox);
    redisFree(commands);
}

/* Two processes work in turns. Returns the seconds per turn, from the start of the first to the end of both. */
static double time_turns(void (*work)(void *))
{
    static int numbers[] = { 0, 1 };
    double start = bench_now();
    pid_t pids[2];

    for (int i = 0; i < 2; i++)
        pids[i] = bench_begin(scene, work, &numbers[i]);
    if (work == receive_and_publish) {
        redisContext *context = bench_connect(scene->server);

        await_return(0);
        await_return(0);
        start = bench_now();
        bench_run(context, 3, (const char *[]){ "PUBLISH", "bare:turn-0", "turn" });
        redisFree(context);
    }
    for (int i = 0; i < 2; i++)
        bench_await(pids[i]);
    return (bench_now() - start) / TURNS;
}

static void report_turns(double *library, double *bare, redisContext *context, double scripts, double messages)
{
    struct figure figure = { .when = "2 processes", .name = "wait and signal in turns", .unit = "us" };

    figure.value = bench_median(library, scene->rounds) * 1e6;
    figure.limits[0].name = "receive, 2 scripts, publish";
    figure.limits[0].value = bench_median(bare, scene->rounds) * 1e6;
    report(&figure);
    report(&(struct figure){ .when = "a turn", .name = "script calls", .value = scripts, .budget = "<= 3" });
    report(&(struct figure){ .when = "a turn", .name = "messages", .value = messages });
    redisFree(context);
}

static void measure_turns(const struct bench_scene *new_scene)
{
    redisContext *context = bench_connect(new_scene->server);
    double library[ROUNDS_MAX], bare[ROUNDS_MAX], scripts = 0, messages = 0;

    set_up(new_scene);
    for (int round = 0; round < scene->rounds; round++) {
        bare[round] = time_turns(receive_and_publish);
        board->turn = 0;
        bench_stats_reset(context);
        library[round] = time_turns(take_turns);
        scripts = bench_scripts_sent(context) / TURNS;
        messages = bench_stat(context, "publish", "calls") / TURNS;
    }
    report_turns(library, bare, context, scripts, messages);
}

static void run(const struct bench_scene *new_scene)
{
    bench_apart(new_scene, measure_signal);
    bench_apart(new_scene, measure_turns);
}

const struct workload workload_conditions = { "conditions", "a signal; two processes that wake each other in turn", run,
                                              true, ON_REDIS };

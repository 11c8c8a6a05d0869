/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Condition variables between processes.
 *
 *   signal      until the waiter has returned, against a bare PUBLISH, the receipt, and one script
 *               round trip of the receiver, which would have to take the lock then
 *   turns       two processes wake each other in turn: the scripts of a wait and a signal
 *   broadcast   to many: the scripts of each waiter, and how many own the mutex at once by the server's
 *               reckoning: one, because the others wait for the mutex and sleep on
 */
#include <dmutex/dmutex.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "own.h"
#include "redis/scripts.h"

#define ROUNDS 9
#define CYCLES 100
#define TURNS 2000
#define WAITERS_MAX 200
#define OVER (-1) /* no waiting process is killed: the server would count a dead process on */
#define KEY_OF_WAITERS "dmutex:{bench}:cond:cond"

static dmutex_t mutex; /* with a long lease, so that few polls are counted */
static dcond_t cond = DCOND_INITIALIZER("bench/cond");

/* Shared by the processes. */
struct board {
    sem_t returned;        /* posted by a waiter that has noted the time */
    double returned_at;    /* of the last waiter */
    atomic_int generation; /* the change that waiters wait for: a new number, or OVER */
    atomic_int back;       /* how many have returned and unlocked */
    int turn;              /* guarded by the mutex */
};

static struct board *board;

static const struct bench_server *server; /* for the processes that fork */

/* ---- other processes ------------------------------------------------------------- */

/* Runs work(user) in a process of its own, which has not used the library before. */
static pid_t begin(void (*work)(int), int user)
{
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid < 0)
        bench_die("no process");
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    work(user);
    exit(0);
}

static void await(pid_t pid)
{
    int status;

    if (waitpid(pid, &status, 0) < 0 || status != 0)
        bench_die("a process of the benchmark failed");
}

static long long ask(redisContext *context, const char *command, const char *key)
{
    redisReply *reply = bench_command(context, 2, (const char *[]){ command, key });
    long long number = reply->integer;

    freeReplyObject(reply);
    return number;
}

static void await_waiters(redisContext *context, int count)
{
    while (ask(context, "ZCARD", KEY_OF_WAITERS) < count)
        bench_pause(0.0005);
}

/* ---- a signal, until the waiter has returned ------------------------------------- */

static void note_return(void)
{
    board->returned_at = bench_now();
    sem_post(&board->returned);
}

static void wait_again_and_again(int unused)
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
static void receive_again_and_again(int unused)
{
    redisContext *inbox = bench_connect(server), *commands = bench_connect(server);
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

/* Until the other process has noted the return; the seconds since `start`. */
static double await_return(double start)
{
    while (sem_wait(&board->returned) != 0)
        continue;
    return board->returned_at - start;
}

/* Changes the awaited number. Owning the mutex means that all wait: the waiters give the mutex up in no other place. */
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
        await_waiters(context, 1);
        change(board->generation + 1);
        bench_pause(0.0002); /* the waiter sleeps by now, and so below */
        start = bench_now();
        bench_must(dcond_signal(&cond));
        sum += await_return(start);
    }
    return sum / CYCLES;
}

static double publish_many(redisContext *context)
{
    static const char *const words[] = { "PUBLISH", "bare:inbox", "granted" };
    double sum = 0, start;

    for (int i = 0; i < CYCLES; i++) {
        bench_pause(0.0002);
        start = bench_now();
        bench_run(context, 3, (const char **)words);
        sum += await_return(start);
    }
    return sum / CYCLES;
}

static void measure_signal(void *unused)
{
    redisContext *context = bench_connect(server);
    double library[ROUNDS], bare[ROUNDS];
    pid_t waiter, receiver;

    (void)unused;
    board->generation = 0;
    sem_init(&board->returned, 1, 0);
    waiter = begin(wait_again_and_again, 0);
    receiver = begin(receive_again_and_again, 0);
    await_return(0); /* the receiver has subscribed */
    signal_many(context);
    for (int round = 0; round < ROUNDS; round++) {
        bare[round] = publish_many(context);
        library[round] = signal_many(context);
    }
    printf("  signal to return      %6.1f us   publish, receive, one script %6.1f us   ratio %.2f "
           "(<= 1.50)\n",
           bench_median(library, ROUNDS) * 1e6, bench_median(bare, ROUNDS) * 1e6,
           bench_median(library, ROUNDS) / bench_median(bare, ROUNDS));
    change(OVER);
    bench_must(dcond_signal(&cond));
    await(waiter);
    kill(receiver, SIGKILL);
    waitpid(receiver, NULL, 0);
    redisFree(context);
}

/* ---- turns ----------------------------------------------------------------------- */

/* A turn is one wait and one signal. */
static void take_turns(int who)
{
    bench_must(dmutex_lock(&mutex));
    for (int i = 0; i < TURNS / 2; i++) {
        while (board->turn != who)
            bench_must(dcond_wait(&cond, &mutex));
        board->turn = !who;
        bench_must(dcond_signal(&cond));
    }
    bench_must(dmutex_unlock(&mutex));
}

static void measure_turns(void *unused)
{
    redisContext *context = bench_connect(server);
    double start = bench_now(), seconds;
    pid_t other;

    (void)unused;
    board->turn = 0;
    bench_stats_reset(context);
    other = begin(take_turns, 1);
    take_turns(0);
    await(other);
    seconds = bench_now() - start;
    printf("  wait and signal       %6.1f us a turn   server %5.1f us   script calls %.2f (<= 3)   "
           "messages %.2f\n",
           seconds / TURNS * 1e6, bench_stat(context, "evalsha", "usec") / TURNS, bench_scripts_sent(context) / TURNS,
           bench_stat(context, "publish", "calls") / TURNS);
    redisFree(context);
}

/* ---- broadcast ------------------------------------------------------------------- */

static void wait_for_broadcasts(int unused)
{
    (void)unused;
    for (int seen = board->generation; seen != OVER; seen = board->generation) {
        bench_must(dmutex_lock(&mutex));
        while (board->generation == seen)
            bench_must(dcond_wait(&cond, &mutex));
        bench_must(dmutex_unlock(&mutex));
        board->back++;
        while (board->back != 0) /* until all are back: nobody waits again before */
            bench_pause(0.001);
    }
}

/* Wakes all waiters, and returns when all are back. */
static void broadcast(int count)
{
    bench_must(dcond_broadcast(&cond));
    while (board->back < count)
        bench_pause(0.0005);
}

/* A line of MONITOR: the mutex is granted by a message, and given back by a script. */
static int change_of_grants(const char *line)
{
    if (strstr(line, "\"EVALSHA\"") && strstr(line, dm_sha_release))
        return -1;
    return strstr(line, " lua] \"PUBLISH\"") && strstr(line, "\"granted ") ? 1 : 0;
}

/* The most grants that were under way at once, until as many were given back as there are waiters. */
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

/* While all wait.  The mutex is free before anything is counted. */
static void count_broadcast(redisContext *context, int count)
{
    double start, seconds;

    await_waiters(context, count);
    change(1);
    bench_stats_reset(context);
    start = bench_now();
    broadcast(count);
    seconds = bench_now() - start;
    printf("  %9d   %8.1f us   %19.2f   %8.2f", count, seconds / count * 1e6, bench_scripts_sent(context) / count,
           bench_stat(context, "publish", "calls") / count);
}

/* The same once more, watched: watching takes time. */
static void watch_broadcast(redisContext *context, int count)
{
    redisContext *monitor = bench_connect(server);

    board->back = 0;
    await_waiters(context, count);
    change(OVER);
    bench_run(monitor, 1, (const char *[]){ "MONITOR" });
    broadcast(count);
    printf("   %18d\n", most_grants(monitor, count));
    redisFree(monitor);
}

static void broadcast_to(redisContext *context, int count)
{
    pid_t pids[WAITERS_MAX];

    board->back = 0;
    board->generation = 0;
    for (int i = 0; i < count; i++)
        pids[i] = begin(wait_for_broadcasts, 0);
    count_broadcast(context, count);
    watch_broadcast(context, count);
    board->back = 0;
    for (int i = 0; i < count; i++)
        await(pids[i]);
}

static void measure_broadcast(void *unused)
{
    static const int sizes[] = { 10, 50, WAITERS_MAX };
    redisContext *context = bench_connect(server);

    (void)unused;
    printf("    waiters   time of each   script calls of each   messages   most grants at once\n");
    for (size_t i = 0; i < BENCH_COUNT(sizes); i++)
        broadcast_to(context, sizes[i]);
    redisFree(context);
}

/* ---- all ------------------------------------------------------------------------- */

static void set_up(void)
{
    dmutexattr_t attr;

    board = bench_share(sizeof *board);
    bench_must(dmutexattr_init(&attr));
    bench_must(dmutexattr_setlease_np(&attr, 60000));
    bench_must(dmutex_init_np(&mutex, "bench/cond", &attr));
}

int main(void)
{
    struct bench_server own_server = bench_server_start();

    server = &own_server;
    set_up();
    printf("waiting for a condition, from process to process\n"
           "budget: signal <= 1.50 of the bare means; <= 3 script calls a turn; a broadcast: 1 "
           "grant at a time\n");
    for (const struct bench_place *place = bench_places(); place->name; place++) {
        bench_pin(own_server.pid, place->server_core);
        printf("%s\n", place->name);
        bench_apart(server, place->client_core, measure_signal, NULL);
        bench_apart(server, place->client_core, measure_turns, NULL);
        bench_apart(server, place->client_core, measure_broadcast, NULL);
    }
    bench_server_stop(&own_server);
    return 0;
}

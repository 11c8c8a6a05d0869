/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter of bench/peers for locks in C: the library, and bare loops on a blocking connection.
 *
 *   library   dmutex_lock()          linger    the same, with leases kept after the unlock
 *   set       SET NX PX, tried each millisecond, and a script that compares and deletes
 *   classic   two classic scripts of a reentrant lock; it does not wait, so only for names that nobody else wants
 *   grant     a release that grants, of one name; no lease is renewed and no death noticed, so only pair and contend
 *
 * bench/peers/README.md describes the commands and answers.
 */
#include <dmutex/dmutex.h>
#include <fcntl.h>
#include <hiredis.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/grant.h"
#include "bench/home.h"
#include "bench/server.h"
#include "bench/store.h"

#define EXIT_UNSUPPORTED 77

/* One lock as one owner. */
struct lock {
    dmutex_t mutex;
    struct home home;
    struct grant *grant;
};

struct kind {
    const char *name;
    void (*open)(struct lock *lock, const char *name, unsigned lease_ms);
    void (*lock)(struct lock *lock);
    void (*unlock)(struct lock *lock);
    const char *commands; /* all that make sense for this lock */
};

static struct bench_server server;

/* ---- the locks ------------------------------------------------------------------- */

static void open_library(struct lock *lock, const char *name, unsigned lease_ms)
{
    dmutexattr_t attr;
    char full[128];

    snprintf(full, sizeof full, "peers/%s", name);
    bench_must(dmutexattr_init(&attr));
    bench_must(dmutexattr_setlease_np(&attr, lease_ms));
    bench_must(dmutex_init_np(&lock->mutex, full, &attr));
}

static void open_linger(struct lock *lock, const char *name, unsigned lease_ms)
{
    setenv("DMUTEX_LINGER", "1000", 1);
    open_library(lock, name, lease_ms);
}

static void lock_library(struct lock *lock)
{
    bench_must(dmutex_lock(&lock->mutex));
}

static void unlock_library(struct lock *lock)
{
    bench_must(dmutex_unlock(&lock->mutex));
}

static void open_home(struct lock *lock, const char *name, unsigned lease_ms)
{
    home_open(&lock->home, bench_connect(&server), name, (int)getpid());
    snprintf(lock->home.lease_ms, sizeof lock->home.lease_ms, "%u", lease_ms);
}

static void lock_set(struct lock *lock)
{
    while (!home_set(&lock->home))
        bench_pause(0.001);
}

static void unlock_set(struct lock *lock)
{
    home_delete(&lock->home);
}

static void lock_classic(struct lock *lock)
{
    home_classic_lock(&lock->home);
}

static void unlock_classic(struct lock *lock)
{
    home_classic_unlock(&lock->home);
}

static void open_grant(struct lock *lock, const char *name, unsigned lease_ms)
{
    (void)name, (void)lease_ms;
    lock->grant = grant_open(&server, (int)getpid());
}

static void lock_grant(struct lock *lock)
{
    grant_lock(lock->grant);
}

static void unlock_grant(struct lock *lock)
{
    grant_unlock(lock->grant);
}

static const struct kind kinds[] = {
    { "library", open_library, lock_library, unlock_library, "pair pairs contend hold wait idle" },
    { "linger", open_linger, lock_library, unlock_library, "pair pairs contend hold wait idle" },
    { "set", open_home, lock_set, unlock_set, "pair pairs contend hold wait idle" },
    { "classic", open_home, lock_classic, unlock_classic, "pair pairs" },
    { "grant", open_grant, lock_grant, unlock_grant, "pair contend" },
};

/* ---- the commands ---------------------------------------------------------------- */

enum { LEASE_MS = 10000 };

static bool await_go(void)
{
    char line[16];

    fflush(stdout);
    return fgets(line, sizeof line, stdin) != NULL;
}

static void say_ready_and_await_go(void)
{
    printf("ready\n");
    if (!await_go())
        exit(1);
}

static void lock_and_unlock(const struct kind *kind, struct lock *lock)
{
    kind->lock(lock);
    kind->unlock(lock);
}

static void time_pairs(const struct kind *kind, struct lock *lock, double seconds)
{
    double start = bench_now();
    long pairs = 0;

    for (; bench_now() - start < seconds; pairs++)
        lock_and_unlock(kind, lock);
    printf("%ld %.6f\n", pairs, bench_now() - start);
}

static void pair(const struct kind *kind, char **arguments)
{
    struct lock lock;

    kind->open(&lock, "pair", LEASE_MS);
    lock_and_unlock(kind, &lock);
    say_ready_and_await_go();
    do
        time_pairs(kind, &lock, atof(arguments[0]));
    while (await_go());
}

struct worker {
    const struct kind *kind;
    struct lock lock;
    pthread_t thread;
    double end;
    long pairs;
};

static void *work(void *user)
{
    struct worker *worker = user;
    long pairs = 0;

    for (; bench_now() < worker->end; pairs++)
        lock_and_unlock(worker->kind, &worker->lock);
    worker->pairs = pairs;
    return NULL;
}

static void time_workers(struct worker *workers, int count, double seconds)
{
    double start = bench_now();
    long pairs = 0;

    for (int i = 0; i < count; i++) {
        workers[i].end = start + seconds;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            bench_die("no thread");
    }
    for (int i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        pairs += workers[i].pairs;
    }
    printf("%ld %.6f\n", pairs, bench_now() - start);
}

static void pairs(const struct kind *kind, char **arguments)
{
    int count = atoi(arguments[1]);
    struct worker *workers = calloc((size_t)count, sizeof *workers);
    char name[32];

    if (!workers)
        bench_die("no memory");
    for (int i = 0; i < count; i++) {
        workers[i].kind = kind;
        snprintf(name, sizeof name, "pairs-%d", i);
        kind->open(&workers[i].lock, name, LEASE_MS);
        lock_and_unlock(kind, &workers[i].lock);
    }
    say_ready_and_await_go();
    do
        time_workers(workers, count, atof(arguments[0]));
    while (await_go());
}

static void contend(const struct kind *kind, char **arguments)
{
    double seconds = atof(arguments[0]), end;
    int file = open(arguments[2], O_RDWR);
    unsigned char own = (unsigned char)atoi(arguments[3]), last;
    long acquired = 0, handovers = 0;
    struct lock lock;

    kind->open(&lock, arguments[1], LEASE_MS);
    lock_and_unlock(kind, &lock);
    say_ready_and_await_go();
    for (end = bench_now() + seconds;; acquired++) {
        kind->lock(&lock);
        if (bench_now() >= end)
            break;
        if (pread(file, &last, 1, 0) != 1)
            bench_die("the file of the last holder cannot be read");
        if (last != own && pwrite(file, &own, 1, 0) == 1)
            handovers++;
        kind->unlock(&lock);
    }
    kind->unlock(&lock);
    printf("%ld %ld\n", acquired, handovers);
}

static void hold(const struct kind *kind, char **arguments)
{
    struct lock lock;

    kind->open(&lock, arguments[0], (unsigned)atoi(arguments[1]));
    kind->lock(&lock);
    printf("held\n");
    fflush(stdout);
    for (;;)
        pause();
}

static void wait_for(const struct kind *kind, char **arguments)
{
    struct lock lock;

    kind->open(&lock, arguments[0], (unsigned)atoi(arguments[1]));
    say_ready_and_await_go();
    kind->lock(&lock);
    printf("got\n");
}

struct waiter {
    const struct kind *kind;
    const char *name;
    unsigned lease_ms;
};

static void *wait_idly(void *user)
{
    const struct waiter *waiter = user;
    struct lock lock;

    waiter->kind->open(&lock, waiter->name, waiter->lease_ms);
    waiter->kind->lock(&lock);
    return NULL;
}

static void idle(const struct kind *kind, char **arguments)
{
    struct waiter waiter = { kind, arguments[0], (unsigned)atoi(arguments[1]) };
    pthread_t thread;

    for (int i = 0; i < atoi(arguments[2]); i++) {
        if (pthread_create(&thread, NULL, wait_idly, &waiter) != 0)
            bench_die("no thread");
    }
    say_ready_and_await_go();
}

static void version(const struct kind *kind, char **arguments)
{
    (void)arguments;
    if (kind->lock == lock_library)
        printf("libdmutex %s\n", dmutex_version_np());
    else
        printf("hiredis %d.%d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
}

static const struct {
    const char *name;
    void (*run)(const struct kind *kind, char **arguments);
    int count;
} commands[] = {
    { "pair", pair, 1 },     { "pairs", pairs, 2 }, { "contend", contend, 4 }, { "hold", hold, 2 },
    { "wait", wait_for, 2 }, { "idle", idle, 3 },   { "version", version, 0 },
};

static void run(const struct kind *kind, int count, char **arguments)
{
    for (size_t i = 0; i < BENCH_COUNT(commands); i++) {
        if (strcmp(commands[i].name, arguments[0]) != 0 || count != 1 + commands[i].count)
            continue;
        if (commands[i].count > 0 && !strstr(kind->commands, arguments[0]))
            exit(EXIT_UNSUPPORTED);
        commands[i].run(kind, arguments + 1);
        exit(0);
    }
}

static void set_server(const char *port)
{
    server.store = &bench_redis;
    server.port = port ? atoi(port) : 0;
    bench_server_use(&server, BENCH_TCP);
    setenv("DMUTEX_URL", server.url, 1);
}

int main(int count, char **arguments)
{
    set_server(getenv("BENCH_PORT"));
    for (size_t i = 0; count > 2 && i < BENCH_COUNT(kinds); i++) {
        if (strcmp(kinds[i].name, arguments[1]) == 0)
            run(&kinds[i], count - 2, arguments + 2);
    }
    fprintf(stderr, "usage: adapter VARIANT COMMAND [ARGUMENT]..., see bench/peers/README.md\n");
    return 2;
}

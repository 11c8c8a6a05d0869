/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter of bench/peers for locks in C: the library, and bare loops on a blocking connection.
 *
 *   library   dmutex_lock()          linger    the same, with leases kept after the unlock
 *   polled    a home-made lock, tried each millisecond: SET NX PX and a script that compares and deletes, or a row
 *   classic   two classic scripts of a reentrant lock; it does not wait, so only for names that nobody else wants
 *   grant     a release that grants; no lease is renewed and no death noticed, so only pair and contend
 *   advisory  pg_advisory_lock(): no lease, no token, and it ends with the connection
 *   session   the same as libraries of session locks call it, with the timeouts set first
 *
 * bench/peers/README.md describes the commands and answers.
 */
#include <dmutex/dmutex.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/server.h"
#include "bench/store.h"

#define EXIT_UNSUPPORTED 77

struct kind {
    const char *name;
    enum bare_kind bare;
    const char *linger;   /* in ms, of the library's */
    const char *commands; /* all that make sense for this lock */
};

/* One lock as one owner. */
struct lock {
    const struct bare *bare; /* NULL: the library's */
    void *bare_lock;
    dmutex_t mutex;
};

static struct bench_server server;

static const struct kind kinds[] = {
    { "library", BARE_NONE, NULL, "pair pairs contend hold wait idle" },
    { "linger", BARE_NONE, "1000", "pair pairs contend hold wait idle" },
    { "polled", BARE_POLL, NULL, "pair pairs contend hold wait idle" },
    { "classic", BARE_CLASSIC, NULL, "pair pairs" },
    { "grant", BARE_GRANT, NULL, "pair contend" },
    { "advisory", BARE_ADVISORY, NULL, "pair pairs contend hold wait idle" },
    { "session", BARE_SESSION, NULL, "pair pairs contend hold wait idle" },
};

static void open_library(struct lock *lock, const char *name, unsigned lease_ms)
{
    dmutexattr_t attr;
    char full[128];

    snprintf(full, sizeof full, "peers/%s", name);
    bench_must(dmutexattr_init(&attr));
    bench_must(dmutexattr_setlease_np(&attr, lease_ms));
    bench_must(dmutex_init_np(&lock->mutex, full, &attr));
}

static void open_lock(const struct kind *kind, struct lock *lock, const char *name, unsigned lease_ms)
{
    static atomic_int owners;

    *lock = (struct lock){ .bare = kind->bare == BARE_NONE ? NULL : &server.store->bare[kind->bare] };
    if (!lock->bare) {
        if (kind->linger)
            setenv("DMUTEX_LINGER", kind->linger, 1);
        open_library(lock, name, lease_ms);
        return;
    }
    server.lease_ms = lease_ms;
    lock->bare_lock = lock->bare->open(&server, name, (int)getpid() * 100 + owners++, NULL);
}

static void take(struct lock *lock)
{
    if (lock->bare)
        lock->bare->lock(lock->bare_lock);
    else
        bench_must(dmutex_lock(&lock->mutex));
}

static void leave(struct lock *lock)
{
    if (lock->bare)
        lock->bare->unlock(lock->bare_lock);
    else
        bench_must(dmutex_unlock(&lock->mutex));
}

/* ---- the commands
 * ---------------------------------------------------------------- */

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

static void take_and_leave(struct lock *lock)
{
    take(lock);
    leave(lock);
}

static void time_pairs(struct lock *lock, double seconds)
{
    double start = bench_now();
    long pairs = 0;

    for (; bench_now() - start < seconds; pairs++)
        take_and_leave(lock);
    printf("%ld %.6f\n", pairs, bench_now() - start);
}

static void pair(const struct kind *kind, char **arguments)
{
    struct lock lock;

    open_lock(kind, &lock, "pair", LEASE_MS);
    take_and_leave(&lock);
    say_ready_and_await_go();
    do
        time_pairs(&lock, atof(arguments[0]));
    while (await_go());
}

struct worker {
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
        take_and_leave(&worker->lock);
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
        snprintf(name, sizeof name, "pairs-%d", i);
        open_lock(kind, &workers[i].lock, name, LEASE_MS);
        take_and_leave(&workers[i].lock);
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

    open_lock(kind, &lock, arguments[1], LEASE_MS);
    take_and_leave(&lock);
    say_ready_and_await_go();
    for (end = bench_now() + seconds;; acquired++) {
        take(&lock);
        if (bench_now() >= end)
            break;
        if (pread(file, &last, 1, 0) != 1)
            bench_die("the file of the last holder cannot be read");
        if (last != own && pwrite(file, &own, 1, 0) == 1)
            handovers++;
        leave(&lock);
    }
    leave(&lock);
    printf("%ld %ld\n", acquired, handovers);
}

static void hold(const struct kind *kind, char **arguments)
{
    struct lock lock;

    open_lock(kind, &lock, arguments[0], (unsigned)atoi(arguments[1]));
    take(&lock);
    printf("held\n");
    fflush(stdout);
    for (;;)
        pause();
}

static void wait_for(const struct kind *kind, char **arguments)
{
    struct lock lock;

    open_lock(kind, &lock, arguments[0], (unsigned)atoi(arguments[1]));
    say_ready_and_await_go();
    take(&lock);
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

    open_lock(waiter->kind, &lock, waiter->name, waiter->lease_ms);
    take(&lock);
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
    if (kind->bare == BARE_NONE)
        printf("libdmutex %s\n", dmutex_version_np());
    else if (server.store == &bench_redis)
        printf("hiredis %d.%d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
    else
        printf("libpq's prepared statements\n");
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

/* Redis by its port, PostgreSQL by the folder of its socket. */
static void set_server(void)
{
    const char *store = getenv("BENCH_STORE"), *port = getenv("BENCH_PORT"), *folder = getenv("BENCH_FOLDER");

    server.store = bench_stores[0];
    for (int i = 0; store && bench_stores[i]; i++) {
        if (strcmp(bench_stores[i]->name, store) == 0)
            server.store = bench_stores[i];
    }
    server.port = port ? atoi(port) : 0;
    snprintf(server.directory, sizeof server.directory, "%s", folder ? folder : "");
    bench_server_use(&server, BENCH_TCP);
    setenv("DMUTEX_URL", server.url, 1);
}

static bool has(const struct kind *kind)
{
    return kind->bare == BARE_NONE || server.store->bare[kind->bare].name;
}

int main(int count, char **arguments)
{
    set_server();
    for (size_t i = 0; count > 2 && i < BENCH_COUNT(kinds); i++) {
        if (strcmp(kinds[i].name, arguments[1]) == 0 && has(&kinds[i]))
            run(&kinds[i], count - 2, arguments + 2);
    }
    fprintf(stderr, "usage: adapter VARIANT COMMAND [ARGUMENT]..., see "
                    "bench/peers/README.md\n");
    return 2;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decisions without waiting: locking a held mutex again, which asks no server, and trying a mutex that another owns,
 * which asks once.
 */
#include <dmutex/dmutex.h>
#include <pthread.h>
#include <time.h>

#include "bench/contest.h"
#include "bench/own.h"
#include "bench/server.h"
#include "bench/workload.h"

/* ---- again ----------------------------------------------------------------------- */

static void library_pair(void *mutex)
{
    bench_must(dmutex_lock(mutex));
    bench_must(dmutex_unlock(mutex));
}

static void plain_pair(void *mutex)
{
    bench_must(pthread_mutex_lock(mutex));
    bench_must(pthread_mutex_unlock(mutex));
}

static void read_clock_twice(void *unused)
{
    struct timespec now;

    (void)unused;
    clock_gettime(CLOCK_BOOTTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &now);
}

static void measure_relock(const struct bench_scene *scene)
{
    static dmutex_t mutex = DMUTEX_RECURSIVE_INITIALIZER("bench/relock");
    static pthread_mutex_t plain = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    static const struct contender contenders[] = {
        { "library", library_pair, &mutex },
        { "2 clock reads", read_clock_twice, NULL },
        { "pthread", plain_pair, &plain },
        { NULL, NULL, NULL },
    };

    bench_must(dmutex_lock(&mutex));
    pthread_mutex_lock(&plain);
    contest_hold(&(struct contest){ scene, "held", "lock + unlock again", "ns", contenders,
                                    "<= the clock reads + 30 ns", 0, 0 });
    contest_count(&contenders[0], scene, "held", "0");
    bench_must(dmutex_unlock(&mutex));
}

/* ---- a try ----------------------------------------------------------------------- */

static struct own holder, other;
static redisContext *context;

static void library_try(void *mutex)
{
    if (dmutex_trylock(mutex) == 0)
        bench_die("a lock that is held was given away");
}

static void own_try(void *unused)
{
    (void)unused;
    own_try_busy(&other, context);
}

/* The holder has the keys of the library's mutex. */
static void measure_try(const struct bench_scene *scene)
{
    static dmutex_t mutex = DMUTEX_INITIALIZER("bench/busy");
    static const struct contender contenders[] = {
        { "library", library_try, &mutex },
        { "own script", own_try, NULL },
        { NULL, NULL, NULL },
    };

    context = bench_connect(scene->server);
    own_load(context);
    own_init(&holder, "busy", 1);
    own_init(&other, "busy", 2);
    own_lock(&holder, context);
    contest_hold(&(struct contest){ scene, "held elsewhere", "trylock", "us", contenders, NULL, 0, 0 });
    contest_count(&contenders[0], scene, "held elsewhere", "1");
    own_unlock(&holder, context);
}

static void run(const struct bench_scene *scene)
{
    bench_apart(scene, measure_relock);
    bench_apart(scene, measure_try);
}

const struct workload workload_recursive = { "recursive", "a lock of a name that the thread holds; a try elsewhere",
                                             run, true, ON_REDIS };

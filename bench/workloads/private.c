/* SPDX-License-Identifier: BSD-2-Clause */
/* A private mutex without a name is libc's: how much dmutex_lock() and dmutex_unlock() add to libc's pair. */
#include <dmutex/dmutex.h>
#include <pthread.h>

#include "bench/contest.h"
#include "bench/workload.h"

static pthread_mutex_t libc_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t libc_recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t libc_cond = PTHREAD_COND_INITIALIZER;
static dmutex_t mutex = DMUTEX_ANONYMOUS_INITIALIZER;
static dmutex_t recursive;
static dcond_t cond = DCOND_ANONYMOUS_INITIALIZER;

static void libc_pair(void *libc)
{
    pthread_mutex_lock(libc);
    pthread_mutex_unlock(libc);
}

static void pair(void *library)
{
    dmutex_lock(library);
    dmutex_unlock(library);
}

static void libc_signal(void *libc)
{
    pthread_cond_signal(libc);
}

static void signal_one(void *library)
{
    dcond_signal(library);
}

static const struct contender pairs[] = {
    { "library", pair, &mutex },
    { "libc", libc_pair, &libc_mutex },
    { NULL, NULL, NULL },
};
static const struct contender recursive_pairs[] = {
    { "library", pair, &recursive },
    { "libc", libc_pair, &libc_recursive },
    { NULL, NULL, NULL },
};
static const struct contender signals[] = {
    { "library", signal_one, &cond },
    { "libc", libc_signal, &libc_cond },
    { NULL, NULL, NULL },
};

static void *sleep_for_ever(void *user)
{
    for (;;)
        bench_pause(1000);
    return user;
}

static void make_recursive(void)
{
    dmutexattr_t attr;

    bench_must(dmutexattr_init(&attr));
    bench_must(dmutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE));
    bench_must(dmutex_init(&recursive, &attr));
}

static void compare(const struct bench_scene *scene, const char *when, const char *name,
                    const struct contender *contenders)
{
    contest_hold(&(struct contest){ scene, when, name, "ns", contenders, "<= +3 ns", 0, 0 });
}

static void measure(const struct bench_scene *scene)
{
    pthread_t thread;

    make_recursive();
    compare(scene, "1 thread", "lock + unlock", pairs);
    if (pthread_create(&thread, NULL, sleep_for_ever, NULL) != 0)
        bench_die("no second thread");
    compare(scene, "2 threads", "lock + unlock", pairs);
    compare(scene, "2 threads", "of a recursive mutex", recursive_pairs);
    compare(scene, "2 threads", "signal without a waiter", signals);
}

static void run(const struct bench_scene *scene)
{
    bench_apart(scene, measure);
}

const struct workload workload_private = { "private", "a private mutex without a name, which is libc's", run, false,
                                           ON_REDIS };

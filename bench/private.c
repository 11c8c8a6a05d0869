/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A private mutex without a name is libc's: measures how much dmutex_lock() and dmutex_unlock() add to libc's pair. The
 * promise is at most 3 ns.
 */
#include <dmutex/dmutex.h>
#include <pthread.h>
#include <stdio.h>

#include "bench.h"

#define CHUNKS 400  /* the best chunk counts: other work of the machine can only add time */
#define PAIRS 20000 /* in each */

static pthread_mutex_t libc_mutex = PTHREAD_MUTEX_INITIALIZER;
static dmutex_t mutex = DMUTEX_ANONYMOUS_INITIALIZER;
static pthread_mutex_t libc_recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static dmutex_t recursive;
static pthread_cond_t libc_cond = PTHREAD_COND_INITIALIZER;
static dcond_t cond = DCOND_ANONYMOUS_INITIALIZER;

static void libc_pair(void)
{
    pthread_mutex_lock(&libc_mutex);
    pthread_mutex_unlock(&libc_mutex);
}

static void pair(void)
{
    dmutex_lock(&mutex);
    dmutex_unlock(&mutex);
}

static void libc_recursive_pair(void)
{
    pthread_mutex_lock(&libc_recursive);
    pthread_mutex_unlock(&libc_recursive);
}

static void recursive_pair(void)
{
    dmutex_lock(&recursive);
    dmutex_unlock(&recursive);
}

static void make_recursive(void)
{
    dmutexattr_t attr;

    bench_must(dmutexattr_init(&attr));
    bench_must(dmutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE));
    bench_must(dmutex_init(&recursive, &attr));
}

static void libc_signal(void)
{
    pthread_cond_signal(&libc_cond);
}

static void signal_one(void)
{
    dcond_signal(&cond);
}

static double ns_of(void (*call)(void))
{
    double start = bench_now();

    for (int i = 0; i < PAIRS; i++)
        call();
    return (bench_now() - start) * 1e9 / PAIRS;
}

static void keep_least(double *least, double ns)
{
    if (*least == 0 || ns < *least)
        *least = ns;
}

static void compare(const char *what, void (*ours)(void), void (*libcs)(void))
{
    double library = 0, libc = 0;

    for (int chunk = 0; chunk < CHUNKS; chunk++) {
        keep_least(&library, ns_of(ours));
        keep_least(&libc, ns_of(libcs));
    }
    printf("  %-36s %6.2f ns   libc's %6.2f ns   more by %5.2f ns\n", what, library, libc, library - libc);
}

static void *sleep_for_ever(void *user)
{
    for (;;)
        bench_pause(1000);
    return user;
}

int main(void)
{
    pthread_t thread;

    printf("private mutexes without a name, at most 3 ns more than libc's\n");
    bench_must(dmutex_lock(&mutex));
    bench_must(dmutex_unlock(&mutex));
    make_recursive();
    compare("lock and unlock, one thread", pair, libc_pair);
    if (pthread_create(&thread, NULL, sleep_for_ever, NULL) != 0)
        bench_die("no second thread");
    compare("lock and unlock, beside another thread", pair, libc_pair);
    compare("of a recursive mutex", recursive_pair, libc_recursive_pair);
    compare("signal without a waiter", signal_one, libc_signal);
    return 0;
}

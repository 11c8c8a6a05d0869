/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Run by the workload `preload`: a plain pthread program prints the time in ns of a lock and unlock of a mutex that no
 * rule names and no other thread wants.
 *
 *   preload_pairs beside|between [threaded]    the mutex lies beside or between the named mutexes
 *   preload_pairs                              nothing: starts and ends
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHUNKS 100  /* the best chunk counts: other work on the machine can only add time */
#define PAIRS 20000 /* in each */
#define NAMED 100   /* at most: all except the one in the middle */

pthread_mutex_t named[NAMED + 1];
static pthread_mutex_t beside[2 * NAMED]; /* far from both ends of the array */

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Starts a second thread: libc then uses another code path. */
static void *sleep_for_ever(void *user)
{
    for (;;)
        pause();
    return user;
}

static double measure(pthread_mutex_t *mutex)
{
    double start = now();

    for (int i = 0; i < PAIRS; i++) {
        pthread_mutex_lock(mutex);
        pthread_mutex_unlock(mutex);
    }
    return (now() - start) / PAIRS;
}

int main(int count, char **arguments)
{
    pthread_mutex_t *mutex;
    pthread_t thread;
    double best;

    if (count < 2)
        return 0;
    mutex = strcmp(arguments[1], "between") == 0 ? &named[NAMED / 2] : &beside[NAMED];
    if (count > 2 && pthread_create(&thread, NULL, sleep_for_ever, NULL) != 0)
        return 1;
    best = measure(mutex);
    for (int i = 1; i < CHUNKS; i++) {
        double ns = measure(mutex);

        best = ns < best ? ns : best;
    }
    printf("%.3f\n", best);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting, but not forever: trylock, timedlock and clocklock while another thread holds the mutex. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <dmutex/dmutex.h>

static dmutex_t printer = DMUTEX_INITIALIZER("office/printer");

/* Where the two threads meet. */
static pthread_barrier_t held, may_release;

static void *hold(void *unused)
{
    (void)unused;
    if (dmutex_lock(&printer) != 0) {
        fprintf(stderr, "timed: %s\n", dmutex_strerror_np());
        exit(1);
    }
    pthread_barrier_wait(&held);
    pthread_barrier_wait(&may_release);
    dmutex_unlock(&printer);
    return NULL;
}

/* As with pthread_mutex_timedlock(), a deadline is a point in time, not a duration. */
static struct timespec in_ms(clockid_t clock, long ms)
{
    struct timespec at;

    clock_gettime(clock, &at);
    at.tv_nsec += ms * 1000000;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

static int is_past(clockid_t clock, const struct timespec *deadline)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec > deadline->tv_sec || (now.tv_sec == deadline->tv_sec && now.tv_nsec >= deadline->tv_nsec);
}

static int failures;

static void expect(int is_true, const char *sentence)
{
    printf("%s %s\n", is_true ? "yes:" : "NO: ", sentence);
    failures += !is_true;
}

static void try_while_held(void)
{
    struct timespec deadline;
    int result;

    expect(dmutex_trylock(&printer) == EBUSY, "trylock on a held mutex returns EBUSY at once");

    deadline = in_ms(CLOCK_REALTIME, 100);
    result = dmutex_timedlock(&printer, &deadline);
    expect(result == ETIMEDOUT && is_past(CLOCK_REALTIME, &deadline),
           "timedlock says ETIMEDOUT, and not before the deadline");

    /* A monotonic deadline does not move when someone sets the time of day. */
    deadline = in_ms(CLOCK_MONOTONIC, 100);
    result = dmutex_clocklock(&printer, CLOCK_MONOTONIC, &deadline);
    expect(result == ETIMEDOUT && is_past(CLOCK_MONOTONIC, &deadline), "clocklock does the same by CLOCK_MONOTONIC");
}

int main(void)
{
    struct timespec deadline;
    pthread_t holder;

    pthread_barrier_init(&held, NULL, 2);
    pthread_barrier_init(&may_release, NULL, 2);
    if (pthread_create(&holder, NULL, hold, NULL) != 0)
        return 1;
    pthread_barrier_wait(&held);
    try_while_held();

    pthread_barrier_wait(&may_release);
    deadline = in_ms(CLOCK_REALTIME, 10000);
    expect(dmutex_timedlock(&printer, &deadline) == 0, "a mutex that is released in time is acquired");
    dmutex_unlock(&printer);

    deadline = in_ms(CLOCK_REALTIME, -1000);
    expect(dmutex_timedlock(&printer, &deadline) == 0, "a free one is acquired, whatever the deadline");
    dmutex_unlock(&printer);
    pthread_join(holder, NULL);
    return failures ? 1 : 0;
}

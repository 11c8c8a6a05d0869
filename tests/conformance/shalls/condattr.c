/* SPDX-License-Identifier: BSD-2-Clause */
/* pthread_condattr_*(). */
#include "shalls.h"

static void init_after_destroy(void)
{
    pthread_condattr_t attr;
    clockid_t clock = 4711;

    say("init", pthread_condattr_init(&attr));
    say("set", pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
    say("destroy", pthread_condattr_destroy(&attr));
    say("init", pthread_condattr_init(&attr));
    say("get", pthread_condattr_getclock(&attr, &clock));
    say_whether("realtime", clock == CLOCK_REALTIME);
    say("destroy", pthread_condattr_destroy(&attr));
}

static void clock_default(void)
{
    pthread_condattr_t attr;
    clockid_t clock = 4711;

    say("init", pthread_condattr_init(&attr));
    say("get", pthread_condattr_getclock(&attr, &clock));
    say_whether("realtime", clock == CLOCK_REALTIME);
}

static void clock_values(void)
{
    static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_REALTIME };
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    for (int i = 0; i < 2; i++) {
        clockid_t clock = 4711;

        say("set", pthread_condattr_setclock(&attr, clocks[i]));
        say("get", pthread_condattr_getclock(&attr, &clock));
        say_whether("told", clock == clocks[i]);
    }
}

static void clock_bad(void)
{
    static const clockid_t clocks[] = { CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, 9999, -1 };
    pthread_condattr_t attr;
    clockid_t clock = 4711;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    for (int i = 0; i < 4; i++)
        say("set", pthread_condattr_setclock(&attr, clocks[i]));
    pthread_condattr_getclock(&attr, &clock);
    say_whether("unchanged", clock == CLOCK_MONOTONIC);
}

/* The CPU clocks of a process and a thread, as the system returns their ids, not the fixed numbers. */
static void clock_of_cpu(void)
{
    pthread_condattr_t attr;
    clockid_t process, thread;

    clock_getcpuclockid(0, &process);
    pthread_getcpuclockid(pthread_self(), &thread);
    pthread_condattr_init(&attr);
    say("process", pthread_condattr_setclock(&attr, process));
    say("thread", pthread_condattr_setclock(&attr, thread));
}

static void pshared_default(void)
{
    pthread_condattr_t attr;
    int pshared = 4711;

    say("init", pthread_condattr_init(&attr));
    say("get", pthread_condattr_getpshared(&attr, &pshared));
    say_whether("private", pshared == PTHREAD_PROCESS_PRIVATE);
}

static void pshared_values(void)
{
    static const int values[] = { PTHREAD_PROCESS_SHARED, PTHREAD_PROCESS_PRIVATE };
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    for (int i = 0; i < 2; i++) {
        int pshared = 4711;

        say("set", pthread_condattr_setpshared(&attr, values[i]));
        say("get", pthread_condattr_getpshared(&attr, &pshared));
        say_whether("told", pshared == values[i]);
    }
}

static void pshared_bad(void)
{
    pthread_condattr_t attr;
    int pshared = 4711;

    pthread_condattr_init(&attr);
    pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    say("set-77", pthread_condattr_setpshared(&attr, 77));
    say("set-minus-1", pthread_condattr_setpshared(&attr, -1));
    pthread_condattr_getpshared(&attr, &pshared);
    say_whether("unchanged", pshared == PTHREAD_PROCESS_SHARED);
}

static void independent(void)
{
    pthread_condattr_t attr;
    clockid_t clock = 4711;
    int pshared = 4711;

    pthread_condattr_init(&attr);
    pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_condattr_getpshared(&attr, &pshared);
    pthread_condattr_getclock(&attr, &clock);
    say_whether("pshared", pshared == PTHREAD_PROCESS_SHARED);
    say_whether("clock", clock == CLOCK_MONOTONIC);
}

/* The condition variable's clock does not change when the attributes change. */
static void copied(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_condattr_t attr;
    struct timespec time;
    pthread_cond_t cond;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    say("init", pthread_cond_init(&cond, &attr));
    pthread_condattr_setclock(&attr, CLOCK_REALTIME);
    say("attr-destroy", pthread_condattr_destroy(&attr));
    pthread_mutex_lock(&mutex);
    time = in_ms(CLOCK_MONOTONIC, 50);
    say("timedwait", pthread_cond_timedwait(&cond, &mutex, &time));
    say_whether("early", !is_reached(CLOCK_MONOTONIC, &time));
}

const struct clause condattr_clauses[] = {
    { "2.3-attr-init-destroy", "a destroyed object can be set up anew", init_after_destroy },
    { "2.3-attr-clock-default", "of a new object", clock_default },
    { "2.3-attr-clock-values", "each is told", clock_values },
    { "2.3-attr-clock-bad", "is refused", clock_bad },
    { "2.3-attr-clock-cpu", "is refused", clock_of_cpu },
    { "2.3-attr-pshared-default", "of a new object", pshared_default },
    { "2.3-attr-pshared-values", "each is told", pshared_values },
    { "2.3-attr-pshared-bad", "is refused", pshared_bad },
    { "2.3-attr-independent", "attributes do not touch each other", independent },
    { "2.3-attr-copied", "later changes of them mean nothing", copied },
    { NULL, NULL, NULL },
};

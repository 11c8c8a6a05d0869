/* SPDX-License-Identifier: BSD-2-Clause */
/* pthread_mutex_timedlock() and clocklock(): deadlines and clocks. */
#include "shalls.h"

/* A lock until some time, by timedlock() or clocklock(). */
struct until {
    const char *name;
    clockid_t clock;
    bool is_timedlock;
};
static const struct until untils[] = {
    { "timedlock", CLOCK_REALTIME, true },
    { "clocklock-realtime", CLOCK_REALTIME, false },
    { "clocklock-monotonic", CLOCK_MONOTONIC, false },
};
#define UNTILS 3

static int lock_until(const struct until *until, pthread_mutex_t *mutex, struct timespec time)
{
    if (until->is_timedlock)
        return pthread_mutex_timedlock(mutex, &time);
    return pthread_mutex_clocklock(mutex, until->clock, &time);
}

/* The same for a time that is over. */
static int lock_until_past(const struct until *until, pthread_mutex_t *mutex, struct timespec time)
{
    struct timespec began;
    int result;

    do {
        began = in_ms(CLOCK_MONOTONIC, 0);
        result = lock_until(until, mutex, time);
    } while (has_no_answer(result, &began));
    return result;
}

/* Tries a time that is over, or invalid, on a new mutex that is free or held, in each of the three ways. */
static void try_time(bool is_held, struct timespec time)
{
    for (int i = 0; i < UNTILS; i++) {
        struct holder holder;
        pthread_mutex_t mutex;

        make(&mutex, PTHREAD_MUTEX_ERRORCHECK);
        if (is_held)
            holder_begin(&holder, &mutex);
        say(untils[i].name, lock_until_past(&untils[i], &mutex, time));
        if (is_held)
            holder_let_go(&holder);
        say("unlock", pthread_mutex_unlock(&mutex));
    }
}

static void free_past(void)
{
    try_time(false, (struct timespec){ 1, 0 });
}

static void free_negative(void)
{
    try_time(false, (struct timespec){ -1, 0 });
}

static void free_invalid(void)
{
    try_time(false, (struct timespec){ 1, 1000000000 });
    try_time(false, (struct timespec){ 1, -1 });
}

static void held_past(void)
{
    try_time(true, (struct timespec){ 1, 0 });
}

static void held_negative(void)
{
    try_time(true, (struct timespec){ -1, 0 });
}

static void held_too_many_nanoseconds(void)
{
    try_time(true, (struct timespec){ in_ms(CLOCK_REALTIME, 3600000).tv_sec, 1000000000 });
}

static void held_negative_nanoseconds(void)
{
    try_time(true, (struct timespec){ in_ms(CLOCK_REALTIME, 3600000).tv_sec, -1 });
}

static void held_invalid_past(void)
{
    try_time(true, (struct timespec){ 1, 1000000000 });
}

/* Times out, and not before the time. */
static void never_early(void)
{
    for (int i = 0; i < UNTILS; i++) {
        struct holder holder;
        pthread_mutex_t mutex;
        int early = 0;

        make(&mutex, PTHREAD_MUTEX_NORMAL);
        holder_begin(&holder, &mutex);
        for (int ms = 1; ms < 20; ms++) {
            struct timespec time = in_ms(untils[i].clock, ms);

            early += lock_until(&untils[i], &mutex, time) != ETIMEDOUT;
            early += !is_reached(untils[i].clock, &time);
        }
        say_number(untils[i].name, early);
        holder_let_go(&holder);
        say("elsewhere", try_elsewhere(&mutex));
    }
}

/* Signal handlers neither end the wait nor prolong it forever. */
static int time_out(void *with)
{
    struct timespec time = in_ms(CLOCK_REALTIME, 200);
    int result = pthread_mutex_timedlock(with, &time);

    return is_reached(CLOCK_REALTIME, &time) ? result : EINTR;
}

static void timeout_under_signals(void)
{
    struct holder holder;
    pthread_mutex_t mutex;
    struct task task;

    signals_begin();
    make(&mutex, PTHREAD_MUTEX_NORMAL);
    holder_begin(&holder, &mutex);
    task_begin(&task, time_out, &mutex);
    while (!task_is_over(&task)) {
        pthread_kill(task.thread, SIGUSR1);
        nap();
    }
    say("result", task_join(&task));
}

/* A time of the boot clock, read as wall clock time, is long over. */
static void timedlock_counts_wall_time(void)
{
    struct timespec time = in_ms(CLOCK_MONOTONIC, 60000);
    struct holder holder;
    pthread_mutex_t mutex;

    make(&mutex, PTHREAD_MUTEX_NORMAL);
    holder_begin(&holder, &mutex);
    say("timedlock", pthread_mutex_timedlock(&mutex, &time));
    say("clocklock", pthread_mutex_clocklock(&mutex, CLOCK_REALTIME, &time));
}

/* A wall clock time, read by the other clock, is far away. */
static int until_wall_time(void *mutex)
{
    struct timespec time = in_ms(CLOCK_REALTIME, 0);

    return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &time);
}

static int until_the_end_of_time(void *mutex)
{
    struct timespec time = { INT64_MAX, 999999999 };

    return pthread_mutex_timedlock(mutex, &time);
}

static int until_the_end_of_monotonic_time(void *mutex)
{
    struct timespec time = { INT64_MAX, 999999999 };

    return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &time);
}

/* Waits with a far time until the owner's unlock. */
static void wait_far(work_fn lock)
{
    struct blocked blocked;
    pthread_mutex_t mutex;

    make(&mutex, PTHREAD_MUTEX_NORMAL);
    pthread_mutex_lock(&mutex);
    blocked_begin(&blocked, lock, &mutex);
    blocked.is_released = true;
    pthread_mutex_unlock(&mutex);
    say("result", blocked_end(&blocked));
    say_text("unlock", blocked_when(&blocked));
}

static void clocklock_counts_by_its_clock(void)
{
    wait_far(until_wall_time);
}

static void very_far(void)
{
    wait_far(until_the_end_of_time);
    wait_far(until_the_end_of_monotonic_time);
}

/* Clocks by which nobody can wait. */
static void bad_clocks(bool is_held)
{
    static const clockid_t clocks[] = { CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, 9999, -1 };

    for (size_t i = 0; i < sizeof clocks / sizeof clocks[0]; i++) {
        struct timespec time = in_ms(CLOCK_MONOTONIC, 3600000);
        struct holder holder;
        pthread_mutex_t mutex;

        make(&mutex, PTHREAD_MUTEX_ERRORCHECK);
        if (is_held)
            holder_begin(&holder, &mutex);
        say("clocklock", pthread_mutex_clocklock(&mutex, clocks[i], &time));
        if (is_held)
            holder_let_go(&holder);
        say("unlock", pthread_mutex_unlock(&mutex));
    }
}

static void bad_clocks_free(void)
{
    bad_clocks(false);
}

static void bad_clocks_held(void)
{
    bad_clocks(true);
}

/* The result for an owner that locks again until a time that is over. */
static void own_past(void)
{
    for (int i = 0; i < KINDS; i++) {
        pthread_mutex_t mutex;

        if (kinds[i].type == PTHREAD_MUTEX_DEFAULT && i % 4 == 3)
            continue;
        make_kind(&mutex, &kinds[i]);
        pthread_mutex_lock(&mutex);
        say(kinds[i].name, timedlock_it_past(&mutex));
        say("clocklock", clocklock_it_past(&mutex));
        say("elsewhere", try_elsewhere(&mutex));
    }
}

/* The same until a time to come: a normal mutex is waited for. */
static void own_soon(void)
{
    for (int i = 0; i < UNTILS; i++) {
        struct timespec time = in_ms(untils[i].clock, 50);
        pthread_mutex_t mutex;

        make(&mutex, PTHREAD_MUTEX_NORMAL);
        pthread_mutex_lock(&mutex);
        say(untils[i].name, lock_until(&untils[i], &mutex, time));
        say_whether("early", !is_reached(untils[i].clock, &time));
        say("unlock", pthread_mutex_unlock(&mutex));
    }
}

const struct clause mutex_time_clauses[] = {
    { "2.1-timedlock-free-past", "a free mutex, the time is over", free_past },
    { "2.1-timedlock-free-negative", "a free mutex, seconds below 0", free_negative },
    { "2.1-timedlock-free-invalid", "a free mutex, nanoseconds out of range", free_invalid },
    { "2.1-timedlock-past", "a held mutex, the time is over", held_past },
    { "2.1-timedlock-negative", "a held mutex, seconds below 0", held_negative },
    { "2.1-timedlock-nsec-1e9", "a held mutex, too many nanoseconds", held_too_many_nanoseconds },
    { "2.1-timedlock-nsec-negative", "a held mutex, nanoseconds below 0", held_negative_nanoseconds },
    { "2.1-timedlock-nsec-past", "a held mutex, invalid and over", held_invalid_past },
    { "2.1-timedlock-never-early", "failures and early returns", never_early },
    { "2.1-timedlock-under-signals", "times out, and not early", timeout_under_signals },
    { "2.1-timedlock-clock", "is the wall clock", timedlock_counts_wall_time },
    { "2.1-clocklock-clock", "is the given one", clocklock_counts_by_its_clock },
    { "2.1-timedlock-very-far", "waits", very_far },
    { "2.1-clocklock-bad-clock-free", "a free mutex", bad_clocks_free },
    { "2.1-clocklock-bad-clock", "a held mutex", bad_clocks_held },
    { "2.1-timedlock-own-past", "the owner again, the time is over", own_past },
    { "2.1-timedlock-own-normal", "the owner again waits", own_soon },
    { NULL, NULL, NULL },
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* pthread_cond_timedwait() and clockwait(): deadlines and clocks. */
#include "shalls.h"

#include <stdlib.h>

/* A wait until some time. */
struct until {
    const char *name;
    clockid_t clock;
    bool is_clockwait;
    clockid_t attribute; /* the clock of the condition variable */
};
static const struct until untils[] = {
    { "timedwait", CLOCK_REALTIME, false, CLOCK_REALTIME },
    { "timedwait-monotonic", CLOCK_MONOTONIC, false, CLOCK_MONOTONIC },
    { "clockwait", CLOCK_REALTIME, true, CLOCK_REALTIME },
    { "clockwait-monotonic", CLOCK_MONOTONIC, true, CLOCK_REALTIME },
    { "clockwait-other", CLOCK_REALTIME, true, CLOCK_MONOTONIC },
};
#define UNTILS 5

/* A place to wait until some time. */
struct room {
    const struct until *until;
    struct timespec time;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool has_begun; /* guarded by the mutex */
    bool may_leave;
};

static void make_cond(pthread_cond_t *cond, clockid_t clock)
{
    pthread_condattr_t attr;

    if (pthread_condattr_init(&attr) != 0 || pthread_condattr_setclock(&attr, clock) != 0 ||
        pthread_cond_init(cond, &attr) != 0 || pthread_condattr_destroy(&attr) != 0)
        abort();
}

static void make_room(struct room *room, const struct until *until, struct timespec time)
{
    *room = (struct room){ .until = until, .time = time };
    make(&room->mutex, PTHREAD_MUTEX_ERRORCHECK);
    make_cond(&room->cond, until->attribute);
}

static int wait_until(struct room *room)
{
    if (room->until->is_clockwait)
        return pthread_cond_clockwait(&room->cond, &room->mutex, room->until->clock, &room->time);
    return pthread_cond_timedwait(&room->cond, &room->mutex, &room->time);
}

/* Waits until allowed to leave, or until an error. */
static int wait_in_room(void *with)
{
    struct room *room = with;
    int result = 0;

    pthread_mutex_lock(&room->mutex);
    room->has_begun = true;
    while (!room->may_leave && result == 0)
        result = wait_until(room);
    pthread_mutex_unlock(&room->mutex);
    return result;
}

static bool has_begun(struct room *room)
{
    bool seen;

    pthread_mutex_lock(&room->mutex);
    seen = room->has_begun;
    pthread_mutex_unlock(&room->mutex);
    return seen;
}

/* A waiter with a distant deadline is woken by a signal. */
static void say_signalled(struct room *room)
{
    struct task task;

    task_begin(&task, wait_in_room, room);
    await(has_begun(room));
    say_whether("waits", task_await_sleep(&task));
    pthread_mutex_lock(&room->mutex);
    room->may_leave = true;
    pthread_cond_signal(&room->cond);
    pthread_mutex_unlock(&room->mutex);
    say(room->until->name, task_join(&task));
}

static void signalled_in_time(void)
{
    for (int i = 0; i < UNTILS; i++) {
        struct room room;

        make_room(&room, &untils[i], in_ms(untils[i].clock, 3600000));
        say_signalled(&room);
    }
}

static void very_far(void)
{
    for (int i = 0; i < UNTILS; i++) {
        struct room room;

        make_room(&room, &untils[i], (struct timespec){ INT64_MAX, 999999999 });
        say_signalled(&room);
    }
}

/* A wall clock time is far away by the other clock. */
static void far_by_its_clock(void)
{
    for (int i = 0; i < UNTILS; i++) {
        struct room room;

        if (untils[i].clock != CLOCK_MONOTONIC)
            continue;
        make_room(&room, &untils[i], in_ms(CLOCK_REALTIME, 0));
        say_signalled(&room);
    }
}

/* Waits with nobody to signal: the mutex is held again after ETIMEDOUT or another error. */
static void try_time(struct timespec time)
{
    for (int i = 0; i < UNTILS; i++) {
        struct room room;

        make_room(&room, &untils[i], time);
        pthread_mutex_lock(&room.mutex);
        say(untils[i].name, wait_until(&room));
        say("elsewhere", try_elsewhere(&room.mutex));
        say("unlock", pthread_mutex_unlock(&room.mutex));
        say("unlock", pthread_mutex_unlock(&room.mutex));
    }
}

static void past(void)
{
    try_time((struct timespec){ 1, 0 });
}

static void negative(void)
{
    try_time((struct timespec){ -1, 0 });
}

static void too_many_nanoseconds(void)
{
    try_time((struct timespec){ in_ms(CLOCK_REALTIME, 3600000).tv_sec, 1000000000 });
}

static void negative_nanoseconds(void)
{
    try_time((struct timespec){ in_ms(CLOCK_REALTIME, 3600000).tv_sec, -1 });
}

static void invalid_past(void)
{
    try_time((struct timespec){ 1, 1000000000 });
}

/* A boot clock time, read as wall clock time, is over. */
static void over_by_its_clock(void)
{
    for (int i = 0; i < UNTILS; i++) {
        struct room room;

        if (untils[i].clock != CLOCK_REALTIME)
            continue;
        make_room(&room, &untils[i], in_ms(CLOCK_MONOTONIC, 60000));
        pthread_mutex_lock(&room.mutex);
        say(untils[i].name, wait_until(&room));
    }
}

static void never_early(void)
{
    for (int i = 0; i < UNTILS; i++) {
        int early = 0, others = 0;

        for (int ms = 1; ms < 20; ms++) {
            struct room room;
            int result;

            make_room(&room, &untils[i], in_ms(untils[i].clock, ms));
            pthread_mutex_lock(&room.mutex);
            result = wait_until(&room);
            others += result != ETIMEDOUT;
            early += result == ETIMEDOUT && !is_reached(untils[i].clock, &room.time);
        }
        say_number(untils[i].name, early);
        say_number("others", others);
    }
}

/* ---- The mutex during and after the wait ----------------------------------------------------- */

/* Wants the mutex, and lets the mutex go again. */
static int take_turn(void *with)
{
    struct room *room = with;

    pthread_mutex_lock(&room->mutex);
    room->has_begun = true;
    return pthread_mutex_unlock(&room->mutex);
}

/* Another thread wants the mutex while the caller waits again and again until a time that is over. */
static void past_releases(void)
{
    for (int i = 0; i < UNTILS; i++) {
        struct task task;
        struct room room;
        int others = 0;

        make_room(&room, &untils[i], in_ms(untils[i].clock, -1000));
        pthread_mutex_lock(&room.mutex);
        task_begin(&task, take_turn, &room);
        task_await_sleep(&task);
        while (!room.has_begun)
            others += wait_until(&room) != ETIMEDOUT;
        say_number(untils[i].name, others);
        say("unlock", pthread_mutex_unlock(&room.mutex));
        task_join(&task);
    }
}

/* With an invalid time the mutex is never released. */
static void invalid_keeps(void)
{
    for (int i = 0; i < UNTILS; i++) {
        struct task task;
        struct room room;

        make_room(&room, &untils[i], in_ms(untils[i].clock, 3600000));
        room.time.tv_nsec = 1000000000;
        pthread_mutex_lock(&room.mutex);
        task_begin(&task, take_turn, &room);
        task_await_sleep(&task);
        for (int j = 0; j < 5; j++) {
            say(untils[i].name, wait_until(&room));
            say_whether("kept", task_await_sleep(&task) && !room.has_begun);
        }
        say("unlock", pthread_mutex_unlock(&room.mutex));
        task_join(&task);
    }
}

/* An invalid time leaves no waiter that would take a real waiter's signal. */
static void invalid_takes_no_signal(void)
{
    struct timespec invalid = { 1, -1 };
    struct meeting meeting;
    struct task task;

    meeting_make(&meeting);
    task_begin(&task, wait_for_ticket, &meeting);
    meeting_await(&meeting, 1);
    pthread_mutex_lock(&meeting.mutex);
    for (int i = 0; i < 5; i++)
        say("timedwait", pthread_cond_timedwait(&meeting.cond, &meeting.mutex, &invalid));
    meeting.tickets = 1;
    say("signal", pthread_cond_signal(&meeting.cond));
    pthread_mutex_unlock(&meeting.mutex);
    say("wait", task_join(&task));
}

/* A waiter that times out while another thread holds the mutex, and the facts at the return. */
struct overtime {
    struct room room;
    _Atomic bool is_released;
    bool was_released;
};

static int time_out(void *with)
{
    struct overtime *overtime = with;
    struct room *room = &overtime->room;
    int result;

    pthread_mutex_lock(&room->mutex);
    room->has_begun = true;
    do
        result = wait_until(room);
    while (result == 0);
    overtime->was_released = overtime->is_released;
    if (pthread_mutex_unlock(&room->mutex) != 0)
        return EPERM;
    return result;
}

/* Locks during the wait and unlocks after the deadline; false if the unlock came too late to prove anything. */
static bool outlast(const struct until *until, int ms)
{
    struct overtime overtime = { .is_released = false };
    struct task task;
    bool is_too_late;
    int result;

    make_room(&overtime.room, until, in_ms(until->clock, ms));
    task_begin(&task, time_out, &overtime);
    await(has_begun(&overtime.room));
    pthread_mutex_lock(&overtime.room.mutex);
    is_too_late = is_reached(until->clock, &overtime.room.time);
    await(is_reached(until->clock, &overtime.room.time));
    task_await_sleep(&task);
    overtime.is_released = true;
    pthread_mutex_unlock(&overtime.room.mutex);
    result = task_join(&task);
    if (is_too_late)
        return false;
    say(until->name, result);
    say_whether("after-unlock", overtime.was_released);
    return true;
}

static void outlasted(void)
{
    for (int i = 0; i < UNTILS; i++) {
        int ms = 100;

        while (!outlast(&untils[i], ms))
            ms *= 2;
    }
}

/* A recursive mutex locked once is so again. */
static void recursive(void)
{
    struct timespec time = in_ms(CLOCK_REALTIME, 10);
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    pthread_mutex_t mutex;

    make(&mutex, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_lock(&mutex);
    say("timedwait", pthread_cond_timedwait(&cond, &mutex, &time));
    say_number("unlocks", unlock_all(&mutex));
}

static void recursive_past(void)
{
    struct timespec time = { 1, 0 };
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    pthread_mutex_t mutex;

    make(&mutex, PTHREAD_MUTEX_RECURSIVE);
    for (int i = 0; i < 3; i++)
        pthread_mutex_lock(&mutex);
    say("timedwait", pthread_cond_timedwait(&cond, &mutex, &time));
    say_number("unlocks", unlock_all(&mutex));
}

/* ---- Clocks and signals ---------------------------------------------------------------------- */

static void bad_clocks(void)
{
    static const clockid_t clocks[] = { CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, 9999, -1 };

    for (size_t i = 0; i < sizeof clocks / sizeof clocks[0]; i++) {
        struct until until = { "clockwait", clocks[i], true, CLOCK_REALTIME };
        struct task task;
        struct room room;

        make_room(&room, &until, in_ms(CLOCK_REALTIME, 3600000));
        pthread_mutex_lock(&room.mutex);
        task_begin(&task, take_turn, &room);
        task_await_sleep(&task);
        say("clockwait", wait_until(&room));
        say_whether("kept", task_await_sleep(&task) && !room.has_begun);
        say("unlock", pthread_mutex_unlock(&room.mutex));
        task_join(&task);
    }
}

/* Signal handlers do not prolong the wait. */
static int time_out_exactly(void *with)
{
    struct room *room = with;
    int result = wait_in_room(room);

    return is_reached(room->until->clock, &room->time) ? result : EINTR;
}

static void under_signals(void)
{
    signals_begin();
    for (int i = 0; i < UNTILS; i++) {
        struct task task;
        struct room room;

        make_room(&room, &untils[i], in_ms(untils[i].clock, 200));
        task_begin(&task, time_out_exactly, &room);
        while (!task_is_over(&task)) {
            pthread_kill(task.thread, SIGUSR1);
            nap();
        }
        say(untils[i].name, task_join(&task));
    }
}

const struct clause cond_time_clauses[] = {
    { "2.3-timedwait-signalled", "before its time", signalled_in_time },
    { "2.3-timedwait-past", "the time is over", past },
    { "2.3-timedwait-past-releases", "the mutex all the same", past_releases },
    { "2.3-timedwait-negative", "seconds below 0", negative },
    { "2.3-timedwait-nsec-1e9", "too many nanoseconds", too_many_nanoseconds },
    { "2.3-timedwait-nsec-negative", "nanoseconds below 0", negative_nanoseconds },
    { "2.3-timedwait-nsec-past", "invalid and over", invalid_past },
    { "2.3-timedwait-nsec-keeps", "the mutex", invalid_keeps },
    { "2.3-timedwait-nsec-no-signal", "is taken", invalid_takes_no_signal },
    { "2.3-timedwait-never-early", "early returns, and other results", never_early },
    { "2.3-timedwait-outlasted", "another holds the mutex beyond the time", outlasted },
    { "2.3-timedwait-recursive", "a recursive mutex locked once", recursive },
    { "2.3-timedwait-recursive-past", "locked three times, the time is over", recursive_past },
    { "2.3-timedwait-clock-over", "the wall clock", over_by_its_clock },
    { "2.3-timedwait-clock-far", "the monotonic clock", far_by_its_clock },
    { "2.3-timedwait-very-far", "waits", very_far },
    { "2.3-timedwait-under-signals", "times out, and not early", under_signals },
    { "2.3-clockwait-bad-clock", "is refused, the mutex kept", bad_clocks },
    { NULL, NULL, NULL },
};

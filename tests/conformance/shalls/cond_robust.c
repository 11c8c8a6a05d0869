/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting with a robust mutex of an owner that dies. */
#include "shalls.h"

#include <unistd.h>

/* A waiter, and the state on return. */
struct place {
    struct meeting meeting;
    struct timespec time; /* for a timed wait */
    bool is_timed;
    int elsewhere;
    int consistent;
    int unlock;
    int next;
    _Atomic bool has_begun;
    _Atomic bool may_die;
};

static int wait_in(struct place *place)
{
    struct meeting *meeting = &place->meeting;

    if (place->is_timed)
        return pthread_cond_timedwait(&meeting->cond, &meeting->mutex, &place->time);
    return pthread_cond_wait(&meeting->cond, &meeting->mutex);
}

/* Waits for a ticket, or an error. */
static int wait_and_look(void *with)
{
    struct place *place = with;
    int result = 0;

    pthread_mutex_lock(&place->meeting.mutex);
    place->meeting.waiting++;
    while (result == 0 && place->meeting.tickets == 0)
        result = wait_in(place);
    place->elsewhere = try_elsewhere(&place->meeting.mutex);
    place->consistent = pthread_mutex_consistent(&place->meeting.mutex);
    place->unlock = pthread_mutex_unlock(&place->meeting.mutex);
    place->next = try_elsewhere(&place->meeting.mutex);
    return result;
}

static void say_found(const struct place *place)
{
    say("elsewhere", place->elsewhere);
    say("consistent", place->consistent);
    say("unlock", place->unlock);
    say("next", place->next);
}

/* Signals, and dies with the mutex. */
static int signal_and_die(void *with)
{
    struct place *place = with;

    pthread_mutex_lock(&place->meeting.mutex);
    place->meeting.tickets++;
    return pthread_cond_signal(&place->meeting.cond);
}

static void signaller_dies(void)
{
    for (int i = 4; i < KINDS; i++) {
        struct place place = { .meeting = { .cond = PTHREAD_COND_INITIALIZER } };
        struct task task;

        make_kind(&place.meeting.mutex, &kinds[i]);
        task_begin(&task, wait_and_look, &place);
        meeting_await(&place.meeting, 1);
        say("signal", elsewhere(signal_and_die, &place));
        say(kinds[i].name, task_join(&task));
        say_found(&place);
    }
}

/* Locks while the other waits, and dies on request. */
static int die_when_told(void *with)
{
    struct place *place = with;

    pthread_mutex_lock(&place->meeting.mutex);
    place->meeting.tickets = -1;
    await(place->may_die);
    return 0;
}

/* The wait is over by the deadline, and the mutex by a death; false if the death came too late. */
static bool die_after_timeout(int ms)
{
    struct place place = { .meeting = { .cond = PTHREAD_COND_INITIALIZER }, .is_timed = true };
    struct task waiter, dier;
    bool is_too_late;
    int result;

    make_robust(&place.meeting.mutex, PTHREAD_MUTEX_NORMAL);
    place.time = in_ms(CLOCK_REALTIME, ms);
    task_begin(&waiter, wait_and_look, &place);
    meeting_await(&place.meeting, 1);
    task_begin(&dier, die_when_told, &place);
    await(try_elsewhere(&place.meeting.mutex) == EBUSY);
    is_too_late = is_reached(CLOCK_REALTIME, &place.time);
    await(is_reached(CLOCK_REALTIME, &place.time));
    task_await_sleep(&waiter);
    place.may_die = true;
    task_join(&dier);
    result = task_join(&waiter);
    if (is_too_late)
        return false;
    say("timedwait", result);
    say_found(&place);
    return true;
}

static void dies_after_timeout(void)
{
    int ms = 100;

    while (!die_after_timeout(ms))
        ms *= 2;
}

/* ---- Not recoverable ------------------------------------------------------------------------- */

/* Gets EOWNERDEAD, wakes all, and unlocks without a word when `tasks` have gone to sleep again. */
static void spoil(struct place *place, struct task *tasks, int count)
{
    die_holding(&place->meeting.mutex);
    say("lock", pthread_mutex_lock(&place->meeting.mutex));
    place->meeting.tickets = count;
    say("broadcast", pthread_cond_broadcast(&place->meeting.cond));
    for (int i = 0; i < count; i++)
        task_await_sleep(&tasks[i]);
    say("unlock", pthread_mutex_unlock(&place->meeting.mutex));
}

/* With a robust mutex: no use is left after ENOTRECOVERABLE. */
static int wait_once(void *with)
{
    struct place *place = with;
    int result;

    pthread_mutex_lock(&place->meeting.mutex);
    place->meeting.waiting++;
    do
        result = wait_in(place);
    while (result == 0);
    return result;
}

static int wait_and_unlock(void *with)
{
    struct place *place = with;
    int result = wait_once(place);

    place->unlock = pthread_mutex_unlock(&place->meeting.mutex);
    return result;
}

static void spoiled_waiter(void)
{
    for (int i = 4; i < KINDS; i++) {
        struct place place = { .meeting = { .cond = PTHREAD_COND_INITIALIZER } };
        struct task task;

        make_kind(&place.meeting.mutex, &kinds[i]);
        task_begin(&task, wait_and_unlock, &place);
        meeting_await(&place.meeting, 1);
        spoil(&place, &task, 1);
        say(kinds[i].name, task_join(&task));
        say("unlock", place.unlock);
        say("elsewhere", try_elsewhere(&place.meeting.mutex));
    }
}

static void spoiled_waiters(void)
{
    struct place place = { .meeting = { .cond = PTHREAD_COND_INITIALIZER } };
    struct task tasks[4];
    int told = 0;

    make_robust(&place.meeting.mutex, PTHREAD_MUTEX_NORMAL);
    for (int i = 0; i < 4; i++)
        task_begin(&tasks[i], wait_once, &place);
    meeting_await(&place.meeting, 4);
    spoil(&place, tasks, 4);
    for (int i = 0; i < 4; i++)
        told += task_ends_soon(&tasks[i]) && task_join(&tasks[i]) == ENOTRECOVERABLE;
    say_number("told", told);
}

/* A wait releases the mutex: the state was not made consistent, and no longer can be. */
static int wait_inconsistent(void *with)
{
    struct place *place = with;

    if (pthread_mutex_lock(&place->meeting.mutex) != EOWNERDEAD)
        return EIO;
    place->has_begun = true;
    return wait_in(place);
}

static void wait_spoils(void)
{
    struct place place = { .meeting = { .cond = PTHREAD_COND_INITIALIZER } };
    struct task task;

    make_robust(&place.meeting.mutex, PTHREAD_MUTEX_NORMAL);
    die_holding(&place.meeting.mutex);
    task_begin(&task, wait_inconsistent, &place);
    await(place.has_begun || task_is_over(&task));
    say("lock", pthread_mutex_lock(&place.meeting.mutex));
    while (!task_is_over(&task)) {
        pthread_cond_broadcast(&place.meeting.cond);
        nap();
    }
    say("wait", task_join(&task));
}

/* With consistent state all is well. */
static int wait_consistent(void *with)
{
    struct place *place = with;
    int result;

    if (pthread_mutex_lock(&place->meeting.mutex) != EOWNERDEAD || pthread_mutex_consistent(&place->meeting.mutex) != 0)
        return EIO;
    place->has_begun = true;
    do
        result = wait_in(place);
    while (result == 0 && place->meeting.tickets == 0);
    place->unlock = pthread_mutex_unlock(&place->meeting.mutex);
    return result;
}

static void consistent_then_wait(void)
{
    struct place place = { .meeting = { .cond = PTHREAD_COND_INITIALIZER } };
    struct task task;

    make_robust(&place.meeting.mutex, PTHREAD_MUTEX_NORMAL);
    die_holding(&place.meeting.mutex);
    task_begin(&task, wait_consistent, &place);
    await(place.has_begun || task_is_over(&task));
    say("lock", pthread_mutex_lock(&place.meeting.mutex));
    place.meeting.tickets = 1;
    pthread_cond_signal(&place.meeting.cond);
    say("unlock", pthread_mutex_unlock(&place.meeting.mutex));
    say("wait", task_join(&task));
    say("unlock", place.unlock);
}

/* ---- Processes ------------------------------------------------------------------------------- */

static int signal_and_be_killed(void *place)
{
    signal_and_die(place);
    return raise(SIGKILL);
}

static void signalling_process_dies(void)
{
    struct place *place = shared_memory(sizeof *place);
    pthread_condattr_t attr;
    struct task task;

    make_shared(&place->meeting.mutex, &kinds[4]);
    pthread_condattr_init(&attr);
    pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&place->meeting.cond, &attr);
    task_begin(&task, wait_and_look, place);
    meeting_await(&place->meeting, 1);
    say("signaller", in_process(signal_and_be_killed, place));
    say("wait", task_join(&task));
    say_found(place);
}

const struct clause cond_robust_clauses[] = {
    { "2.3-robust-signaller", "dies with the mutex", signaller_dies },
    { "2.3-robust-timeout", "and the owner dies: the death is told", dies_after_timeout },
    { "2.3-robust-process", "of the signaller is killed", signalling_process_dies },
    { "2.3-robust-consistent", "by the waiter before it waits", consistent_then_wait },
    { "2.3-notrecoverable-wait", "is told, and the mutex not owned", spoiled_waiter },
    { "2.3-notrecoverable-all", "waiters are told", spoiled_waiters },
    { "2.3-notrecoverable-by-wait", "of an inconsistent owner", wait_spoils },
    { NULL, NULL, NULL },
};

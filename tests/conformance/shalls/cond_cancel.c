/* SPDX-License-Identifier: BSD-2-Clause */
/* The waits are cancellation points: the mutex is held again, and no signal is lost. */
#include "shalls.h"

/* ---- State in the cleanup handler ------------------------------------------------------------ */

/* The ways to wait. */
static int plain(struct meeting *meeting)
{
    return pthread_cond_wait(&meeting->cond, &meeting->mutex);
}

static int timed(struct meeting *meeting)
{
    struct timespec far = in_ms(CLOCK_REALTIME, 3600000);

    return pthread_cond_timedwait(&meeting->cond, &meeting->mutex, &far);
}

static int timed_past(struct meeting *meeting)
{
    struct timespec past = in_ms(CLOCK_REALTIME, -1000);

    return pthread_cond_timedwait(&meeting->cond, &meeting->mutex, &past);
}

static int clocked(struct meeting *meeting)
{
    struct timespec far = in_ms(CLOCK_MONOTONIC, 3600000);

    return pthread_cond_clockwait(&meeting->cond, &meeting->mutex, CLOCK_MONOTONIC, &far);
}

static const struct wait {
    const char *name;
    int (*wait)(struct meeting *meeting);
} waits[] = {
    { "wait", plain },
    { "timedwait", timed },
    { "clockwait", clocked },
    { "past", timed_past },
};
#define BLOCKING_WAITS 3
#define WAITS 4

/* A thread that will be cancelled in a wait. */
struct victim {
    struct meeting meeting;
    int (*wait)(struct meeting *meeting);
    bool is_disabled; /* cancelability, during the wait */
    int result;       /* of the wait */
    int cleanups;     /* runs of the handler */
    int elsewhere;    /* as the handler found the mutex */
    int unlocks;
    bool was_released; /* the test had unlocked when the handler ran */
    bool returned;     /* the wait did */
    _Atomic bool is_released;
};

static void clean_up(void *with)
{
    struct victim *victim = with;

    victim->was_released = victim->is_released;
    victim->cleanups++;
    victim->elsewhere = try_elsewhere(&victim->meeting.mutex);
    victim->unlocks = pthread_mutex_unlock(&victim->meeting.mutex);
}

/* Waits until cancelled, or given a ticket; then comes to a cancellation point. */
static int suffer(void *with)
{
    struct victim *victim = with;

    pthread_mutex_lock(&victim->meeting.mutex);
    pthread_cleanup_push(clean_up, victim);
    if (victim->is_disabled)
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    victim->meeting.waiting++;
    while (victim->meeting.tickets == 0 && victim->result == 0)
        victim->result = victim->wait(&victim->meeting);
    victim->returned = true;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    pthread_testcancel();
    pthread_cleanup_pop(1);
    return victim->result;
}

static int suffer_at_once(void *victim)
{
    pthread_cancel(pthread_self());
    return suffer(victim);
}

static void make_victim(struct victim *victim, const struct kind *kind, const struct wait *wait)
{
    *victim = (struct victim){ .wait = wait->wait };
    meeting_make(&victim->meeting);
    make_kind(&victim->meeting.mutex, kind);
}

static void say_victim(struct victim *victim, struct task *task)
{
    say("end", task_join(task));
    say_number("cleanups", victim->cleanups);
    say("elsewhere", victim->elsewhere);
    say("unlock", victim->unlocks);
    say_whether("returned", victim->returned);
    say("then", try_elsewhere(&victim->meeting.mutex));
}

/* The request is there before the wait. */
static void pending(void)
{
    for (int i = 0; i < WAITS; i++) {
        struct victim victim;
        struct task task;

        make_victim(&victim, &kinds[0], &waits[i]);
        task_begin(&task, suffer_at_once, &victim);
        say_text("by", waits[i].name);
        say_victim(&victim, &task);
    }
}

/* The cancellation comes during the wait. */
static void cancel_blocked(const struct kind *kind, const struct wait *wait)
{
    struct victim victim;
    struct task task;

    make_victim(&victim, kind, wait);
    task_begin(&task, suffer, &victim);
    meeting_await(&victim.meeting, 1);
    pthread_cancel(task.thread);
    say_victim(&victim, &task);
}

static void blocked(void)
{
    for (int i = 0; i < BLOCKING_WAITS; i++) {
        say_text("by", waits[i].name);
        cancel_blocked(&kinds[0], &waits[i]);
    }
}

static void blocked_of_each_kind(void)
{
    for (int i = 0; i < KINDS; i++) {
        say_text("kind", kinds[i].name);
        cancel_blocked(&kinds[i], &waits[0]);
    }
}

/* Another thread holds the mutex: the handler runs after the other's unlock. */
static void waits_for_the_mutex(void)
{
    for (int i = 0; i < BLOCKING_WAITS; i++) {
        struct victim victim;
        struct task task;

        make_victim(&victim, &kinds[0], &waits[i]);
        task_begin(&task, suffer, &victim);
        meeting_await(&victim.meeting, 1);
        pthread_mutex_lock(&victim.meeting.mutex);
        pthread_cancel(task.thread);
        say_whether(waits[i].name, task_await_sleep(&task));
        victim.is_released = true;
        pthread_mutex_unlock(&victim.meeting.mutex);
        say_victim(&victim, &task);
        say_whether("after-unlock", victim.was_released);
    }
}

/* The waiter has the signal and waits for the mutex: the waiter holds the mutex when the request is acted on. */
static void signalled_then_cancelled(void)
{
    for (int i = 0; i < BLOCKING_WAITS; i++) {
        struct victim victim;
        struct task task;

        make_victim(&victim, &kinds[0], &waits[i]);
        task_begin(&task, suffer, &victim);
        meeting_await(&victim.meeting, 1);
        pthread_mutex_lock(&victim.meeting.mutex);
        victim.meeting.tickets = 1;
        pthread_cond_signal(&victim.meeting.cond);
        task_await_sleep(&task);
        pthread_cancel(task.thread);
        say_whether(waits[i].name, task_await_sleep(&task));
        victim.is_released = true;
        pthread_mutex_unlock(&victim.meeting.mutex);
        say("end", task_join(&task));
        say_number("cleanups", victim.cleanups);
        say("elsewhere", victim.elsewhere);
        say("unlock", victim.unlocks);
        say_whether("after-unlock", victim.was_released);
    }
}

static void disabled(void)
{
    for (int i = 0; i < BLOCKING_WAITS; i++) {
        struct victim victim;
        struct task task;

        make_victim(&victim, &kinds[0], &waits[i]);
        victim.is_disabled = true;
        task_begin(&task, suffer, &victim);
        meeting_await(&victim.meeting, 1);
        pthread_cancel(task.thread);
        say_whether(waits[i].name, task_await_sleep(&task));
        meeting_add(&victim.meeting, 1);
        pthread_cond_signal(&victim.meeting.cond);
        say_victim(&victim, &task);
    }
}

/* ---- Signals of others ----------------------------------------------------------------------- */

static void give_back(void *mutex)
{
    pthread_mutex_unlock(mutex);
}

/* Waits once, with any result. */
static int wait_once(void *with)
{
    struct meeting *meeting = with;

    pthread_mutex_lock(&meeting->mutex);
    pthread_cleanup_push(give_back, &meeting->mutex);
    meeting->waiting++;
    pthread_cond_wait(&meeting->cond, &meeting->mutex);
    pthread_cleanup_pop(1);
    return 0;
}

/*
 * One of two waiters is cancelled at about the time of a signal. If the waiter is cancelled, the other waiter must get
 * the signal; else the other hangs.
 */
static void race(bool is_signal_first, bool is_locked)
{
    int errors = 0;

    for (int i = 0; i < 200; i++) {
        struct meeting meeting;
        struct task tasks[2];

        meeting_make(&meeting);
        for (int j = 0; j < 2; j++) {
            task_begin(&tasks[j], wait_once, &meeting);
            meeting_await(&meeting, j + 1);
        }
        if (is_locked)
            pthread_mutex_lock(&meeting.mutex);
        if (is_signal_first)
            errors += pthread_cond_signal(&meeting.cond) != 0;
        pthread_cancel(tasks[i % 2].thread);
        if (!is_signal_first)
            errors += pthread_cond_signal(&meeting.cond) != 0;
        if (is_locked)
            pthread_mutex_unlock(&meeting.mutex);
        if (task_join(&tasks[i % 2]) != CANCELLED)
            errors += pthread_cond_broadcast(&meeting.cond) != 0;
        errors += task_join(&tasks[!(i % 2)]) != 0;
    }
    say_number("errors", errors);
}

static void cancel_then_signal(void)
{
    race(false, false);
}

static void cancel_then_signal_locked(void)
{
    race(false, true);
}

static void signal_then_cancel(void)
{
    race(true, false);
}

static void signal_then_cancel_locked(void)
{
    race(true, true);
}

/* A later wait or destroy has nothing to do with a cancelled waiter. */
static void destroy_after_cancel(void)
{
    struct meeting meeting;
    struct task task;

    meeting_make(&meeting);
    for (int i = 0; i < 3; i++) {
        meeting.waiting = 0;
        task_begin(&task, wait_once, &meeting);
        meeting_await(&meeting, 1);
        pthread_cancel(task.thread);
        say("end", task_join(&task));
    }
    meeting.waiting = 0;
    task_begin(&task, wait_for_ticket, &meeting);
    meeting_await(&meeting, 1);
    meeting_add(&meeting, 1);
    say("signal", pthread_cond_signal(&meeting.cond));
    say("wait", task_join(&task));
    say("destroy", pthread_cond_destroy(&meeting.cond));
    say("destroy-mutex", pthread_mutex_destroy(&meeting.mutex));
}

const struct clause cond_cancel_clauses[] = {
    { "2.3-cancel-pending", "before the wait", pending },
    { "2.3-cancel-blocked", "during the wait", blocked },
    { "2.3-cancel-kinds", "by each kind of mutex", blocked_of_each_kind },
    { "2.3-cancel-mutex", "the handler runs when another has unlocked", waits_for_the_mutex },
    { "2.3-cancel-signalled", "while it waits for the mutex", signalled_then_cancelled },
    { "2.3-cancel-disabled", "is not acted on", disabled },
    { "2.3-cancel-then-signal", "is another's", cancel_then_signal },
    { "2.3-cancel-then-signal-locked", "is another's, the mutex held", cancel_then_signal_locked },
    { "2.3-signal-then-cancel", "is not lost", signal_then_cancel },
    { "2.3-signal-then-cancel-locked", "is not lost, the mutex held", signal_then_cancel_locked },
    { "2.3-cancel-destroy", "no waiter is left", destroy_after_cancel },
    { NULL, NULL, NULL },
};

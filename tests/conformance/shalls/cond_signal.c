/* SPDX-License-Identifier: BSD-2-Clause */
/* pthread_cond_init(), destroy(), signal() and broadcast(). */
#include "shalls.h"

#include <stdlib.h>
#include <string.h>

/* ---- init, destroy --------------------------------------------------------------------------- */

/* One waiter, one signal. */
static void use_once(struct meeting *meeting)
{
    struct task task;

    meeting->waiting = 0;
    task_begin(&task, wait_for_ticket, meeting);
    meeting_await(meeting, 1);
    meeting_add(meeting, 1);
    say("signal", pthread_cond_signal(&meeting->cond));
    say("wait", task_join(&task));
}

static void init_null(void)
{
    struct meeting meeting = { .mutex = PTHREAD_MUTEX_INITIALIZER };

    memset(&meeting.cond, 0xa5, sizeof meeting.cond);
    say("init", pthread_cond_init(&meeting.cond, NULL));
    use_once(&meeting);
    say("destroy", pthread_cond_destroy(&meeting.cond));
}

static void init_attributes(void)
{
    struct meeting meeting = { .mutex = PTHREAD_MUTEX_INITIALIZER };
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    say("init", pthread_cond_init(&meeting.cond, &attr));
    say("attr-destroy", pthread_condattr_destroy(&attr));
    use_once(&meeting);
    say("destroy", pthread_cond_destroy(&meeting.cond));
}

static void static_cond(void)
{
    static struct meeting meeting = { .mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };

    use_once(&meeting);
    say("destroy", pthread_cond_destroy(&meeting.cond));
}

static void destroy_then_init(void)
{
    struct meeting meeting;

    meeting_make(&meeting);
    for (int i = 0; i < 3; i++) {
        use_once(&meeting);
        say("destroy", pthread_cond_destroy(&meeting.cond));
        say("init", pthread_cond_init(&meeting.cond, NULL));
    }
}

static void destroy_unused(void)
{
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    pthread_cond_t other;

    say("destroy", pthread_cond_destroy(&cond));
    say("init", pthread_cond_init(&other, NULL));
    say("destroy", pthread_cond_destroy(&other));
}

/* Destroys straight after the broadcast, under the mutex: the waiters are still on the way out. */
static void destroy_after_broadcast(void)
{
    int errors = 0;

    for (int i = 0; i < 50; i++) {
        struct meeting meeting;
        struct task tasks[4];

        meeting_make(&meeting);
        for (int j = 0; j < 4; j++)
            task_begin(&tasks[j], wait_for_ticket, &meeting);
        meeting_await(&meeting, 4);
        pthread_mutex_lock(&meeting.mutex);
        meeting.tickets = 4;
        errors += pthread_cond_broadcast(&meeting.cond) != 0;
        pthread_mutex_unlock(&meeting.mutex);
        errors += pthread_cond_destroy(&meeting.cond) != 0;
        memset(&meeting.cond, 0x5a, sizeof meeting.cond);
        for (int j = 0; j < 4; j++)
            errors += task_join(&tasks[j]) != 0;
    }
    say_number("errors", errors);
}

/* Destroyed by the last waiter, which also frees the memory. */
struct counted {
    struct meeting meeting;
    int users;
};

static int wait_and_put(void *with)
{
    struct counted *counted = with;
    struct meeting *meeting = &counted->meeting;
    int result = 0;
    bool is_last;

    pthread_mutex_lock(&meeting->mutex);
    meeting->waiting++;
    while (meeting->tickets == 0 && result == 0)
        result = pthread_cond_wait(&meeting->cond, &meeting->mutex);
    is_last = --counted->users == 0;
    pthread_mutex_unlock(&meeting->mutex);
    if (is_last && result == 0) {
        result = pthread_cond_destroy(&meeting->cond);
        pthread_mutex_destroy(&meeting->mutex);
        free(counted);
    }
    return result;
}

static void destroy_by_the_last(void)
{
    int errors = 0;

    for (int i = 0; i < 50; i++) {
        struct counted *counted = malloc(sizeof *counted);
        struct task tasks[3];

        meeting_make(&counted->meeting);
        counted->users = 3;
        for (int j = 0; j < 3; j++)
            task_begin(&tasks[j], wait_and_put, counted);
        meeting_await(&counted->meeting, 3);
        pthread_mutex_lock(&counted->meeting.mutex);
        counted->meeting.tickets = 1;
        errors += pthread_cond_broadcast(&counted->meeting.cond) != 0;
        pthread_mutex_unlock(&counted->meeting.mutex);
        for (int j = 0; j < 3; j++)
            errors += task_join(&tasks[j]) != 0;
    }
    say_number("errors", errors);
}

/* ---- Nobody waits ---------------------------------------------------------------------------- */

/* An earlier signal is nothing to a later waiter. */
static void wake_then_wait(int (*wake)(pthread_cond_t *cond))
{
    struct meeting meeting;
    struct timespec time;

    meeting_make(&meeting);
    for (int i = 0; i < 3; i++)
        say("wake", wake(&meeting.cond));
    pthread_mutex_lock(&meeting.mutex);
    say("wake", wake(&meeting.cond));
    time = in_ms(CLOCK_REALTIME, 50);
    say("wait", pthread_cond_timedwait(&meeting.cond, &meeting.mutex, &time));
    say("unlock", pthread_mutex_unlock(&meeting.mutex));
}

static int signal_it(pthread_cond_t *cond)
{
    return pthread_cond_signal(cond);
}

static int broadcast_it(pthread_cond_t *cond)
{
    return pthread_cond_broadcast(cond);
}

static void signal_without_waiters(void)
{
    wake_then_wait(signal_it);
}

static void broadcast_without_waiters(void)
{
    wake_then_wait(broadcast_it);
}

/* More signals than waiters: the rest is not kept for the next waiter. */
static void signals_in_excess(void)
{
    struct meeting meeting;
    struct timespec time;
    struct task task;

    meeting_make(&meeting);
    task_begin(&task, wait_for_ticket, &meeting);
    meeting_await(&meeting, 1);
    meeting_add(&meeting, 1);
    for (int i = 0; i < 5; i++)
        pthread_cond_signal(&meeting.cond);
    say("waiter", task_join(&task));
    pthread_mutex_lock(&meeting.mutex);
    time = in_ms(CLOCK_REALTIME, 50);
    say("wait", pthread_cond_timedwait(&meeting.cond, &meeting.mutex, &time));
}

/* ---- Some wait ------------------------------------------------------------------------------- */

/* One signal for each of four tickets. */
static void signal_wakes_one(void)
{
    struct meeting meeting;
    struct task tasks[4];

    meeting_make(&meeting);
    for (int i = 0; i < 4; i++)
        task_begin(&tasks[i], wait_for_ticket, &meeting);
    meeting_await(&meeting, 4);
    for (int i = 1; i <= 4; i++) {
        meeting_add(&meeting, 1);
        say("signal", pthread_cond_signal(&meeting.cond));
        await(meeting_returned(&meeting) >= i);
        say_number("returned", meeting_returned(&meeting));
    }
    for (int i = 0; i < 4; i++)
        say("wait", task_join(&tasks[i]));
}

/* As many signals at once as there are waiters. */
static void signals_wake_each(void)
{
    struct meeting meeting;
    struct task tasks[8];

    meeting_make(&meeting);
    for (int i = 0; i < 8; i++)
        task_begin(&tasks[i], wait_for_ticket, &meeting);
    meeting_await(&meeting, 8);
    pthread_mutex_lock(&meeting.mutex);
    meeting.tickets = 8;
    for (int i = 0; i < 8; i++)
        pthread_cond_signal(&meeting.cond);
    pthread_mutex_unlock(&meeting.mutex);
    for (int i = 0; i < 8; i++)
        say("wait", task_join(&tasks[i]));
    say_number("returned", meeting.returned);
}

static void broadcast_with(int waiters, bool is_locked)
{
    struct meeting meeting;
    struct task tasks[32];
    int errors = 0;

    meeting_make(&meeting);
    for (int i = 0; i < waiters; i++)
        task_begin(&tasks[i], wait_for_ticket, &meeting);
    meeting_await(&meeting, waiters);
    meeting_add(&meeting, waiters);
    if (is_locked)
        pthread_mutex_lock(&meeting.mutex);
    say("broadcast", pthread_cond_broadcast(&meeting.cond));
    if (is_locked)
        pthread_mutex_unlock(&meeting.mutex);
    for (int i = 0; i < waiters; i++)
        errors += task_join(&tasks[i]) != 0;
    say_number("errors", errors);
    say_number("returned", meeting.returned);
}

static void broadcast_wakes_all(void)
{
    broadcast_with(32, true);
}

static void broadcast_unlocked(void)
{
    broadcast_with(32, false);
}

/* Waiters that begin after the broadcast are not meant. */
static void broadcast_and_later(void)
{
    struct meeting meeting;
    struct task tasks[4];
    struct timespec time;

    meeting_make(&meeting);
    for (int i = 0; i < 4; i++)
        task_begin(&tasks[i], wait_for_ticket, &meeting);
    meeting_await(&meeting, 4);
    pthread_mutex_lock(&meeting.mutex);
    meeting.tickets = 4;
    say("broadcast", pthread_cond_broadcast(&meeting.cond));
    time = in_ms(CLOCK_REALTIME, 200);
    say("later", pthread_cond_timedwait(&meeting.cond, &meeting.mutex, &time));
    say("unlock", pthread_mutex_unlock(&meeting.mutex));
    for (int i = 0; i < 4; i++)
        say("wait", task_join(&tasks[i]));
}

/* A waiter that any wakeup wakes. */
static int wait_once(void *with)
{
    struct meeting *meeting = with;
    int result;

    pthread_mutex_lock(&meeting->mutex);
    meeting->waiting++;
    result = pthread_cond_wait(&meeting->cond, &meeting->mutex);
    meeting->returned++;
    pthread_mutex_unlock(&meeting->mutex);
    return result;
}

/* The signal is the first waiter's, though another begins to wait at once. */
static void no_stealing(void)
{
    int errors = 0;

    for (int i = 0; i < 200; i++) {
        struct task first, second;
        struct meeting meeting;

        meeting_make(&meeting);
        task_begin(&first, wait_once, &meeting);
        meeting_await(&meeting, 1);
        errors += pthread_cond_signal(&meeting.cond) != 0;
        task_begin(&second, wait_for_ticket, &meeting);
        errors += task_join(&first) != 0;
        meeting_await(&meeting, 2);
        meeting_dismiss(&meeting, &second, 1);
    }
    say_number("errors", errors);
}

/* The same, and the signaller also waits. */
static void no_stealing_by_the_signaller(void)
{
    struct timespec far = in_ms(CLOCK_REALTIME, 3600000);
    int errors = 0;

    for (int i = 0; i < 200; i++) {
        struct meeting meeting;
        struct task task;

        meeting_make(&meeting);
        task_begin(&task, wait_once, &meeting);
        meeting_await(&meeting, 1);
        pthread_mutex_lock(&meeting.mutex);
        errors += pthread_cond_signal(&meeting.cond) != 0;
        while (meeting.returned == 0) {
            far = in_ms(CLOCK_REALTIME, 5);
            errors += pthread_cond_timedwait(&meeting.cond, &meeting.mutex, &far) == EINVAL;
        }
        pthread_mutex_unlock(&meeting.mutex);
        errors += task_join(&task) != 0;
    }
    say_number("errors", errors);
}

/* Without the mutex, after the unlock, and by a thread that never waited or locked. */
static int signal_meeting(void *with)
{
    return pthread_cond_signal(&((struct meeting *)with)->cond);
}

static void signal_without_mutex(void)
{
    struct meeting meeting;
    struct task task;

    meeting_make(&meeting);
    task_begin(&task, wait_for_ticket, &meeting);
    meeting_await(&meeting, 1);
    meeting_add(&meeting, 1);
    say("signal", elsewhere(signal_meeting, &meeting));
    say("wait", task_join(&task));
}

/* By a thread while another thread holds the mutex. */
static void signal_while_held(void)
{
    struct holder holder;
    struct meeting meeting;
    struct task task;

    meeting_make(&meeting);
    task_begin(&task, wait_for_ticket, &meeting);
    meeting_await(&meeting, 1);
    meeting_add(&meeting, 1);
    holder_begin(&holder, &meeting.mutex);
    say("signal", pthread_cond_signal(&meeting.cond));
    say_whether("waits-on", task_await_sleep(&task));
    holder_let_go(&holder);
    say("wait", task_join(&task));
}

/* ---- Many at once ---------------------------------------------------------------------------- */

/* A queue of few places, with the threads that fill and empty the queue. */
struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t is_not_full, is_not_empty;
    int filled, to_make, to_take, made, taken;
    int patience_ms; /* 0: waits without a limit */
};

/* Waits for one of the queue's conditions; a timeout counts as a signal. */
static int wait_in_queue(struct queue *queue, pthread_cond_t *cond)
{
    struct timespec time = in_ms(CLOCK_REALTIME, queue->patience_ms);
    int result;

    if (queue->patience_ms == 0)
        return pthread_cond_wait(cond, &queue->mutex);
    result = pthread_cond_timedwait(cond, &queue->mutex, &time);
    return result == ETIMEDOUT ? 0 : result;
}

static int produce(void *with)
{
    struct queue *queue = with;
    int result = 0;

    pthread_mutex_lock(&queue->mutex);
    while (queue->to_make > 0 && result == 0) {
        if (queue->filled == 3) {
            result = wait_in_queue(queue, &queue->is_not_full);
            continue;
        }
        queue->filled++;
        queue->made++;
        if (--queue->to_make == 0)
            pthread_cond_broadcast(&queue->is_not_full);
        pthread_cond_signal(&queue->is_not_empty);
        pthread_mutex_unlock(&queue->mutex);
        pthread_mutex_lock(&queue->mutex);
    }
    pthread_mutex_unlock(&queue->mutex);
    return result;
}

static int consume(void *with)
{
    struct queue *queue = with;
    int result = 0;

    pthread_mutex_lock(&queue->mutex);
    while (queue->to_take > 0 && result == 0) {
        if (queue->filled == 0) {
            result = wait_in_queue(queue, &queue->is_not_empty);
            continue;
        }
        queue->filled--;
        queue->taken++;
        if (--queue->to_take == 0)
            pthread_cond_broadcast(&queue->is_not_empty);
        pthread_cond_signal(&queue->is_not_full);
        pthread_mutex_unlock(&queue->mutex);
        pthread_mutex_lock(&queue->mutex);
    }
    pthread_mutex_unlock(&queue->mutex);
    return result;
}

static void run_queue(int patience_ms)
{
    struct queue queue = { .mutex = PTHREAD_MUTEX_INITIALIZER,
                           .is_not_full = PTHREAD_COND_INITIALIZER,
                           .is_not_empty = PTHREAD_COND_INITIALIZER,
                           .to_make = 1000,
                           .to_take = 1000,
                           .patience_ms = patience_ms };
    struct task tasks[8];
    int errors = 0;

    for (int i = 0; i < 8; i++)
        task_begin(&tasks[i], i % 2 ? produce : consume, &queue);
    for (int i = 0; i < 8; i++)
        errors += task_join(&tasks[i]) != 0;
    say_number("errors", errors);
    say_number("made", queue.made);
    say_number("taken", queue.taken);
    say_number("filled", queue.filled);
}

static void bounded_queue(void)
{
    run_queue(0);
}

static void bounded_queue_with_timeouts(void)
{
    run_queue(1);
}

/* Waiters that time out at about the time of the signals, and a waiter that does not time out. */
static int wait_shortly(void *with)
{
    struct meeting *meeting = with;
    struct timespec time = in_ms(CLOCK_REALTIME, 2);

    pthread_mutex_lock(&meeting->mutex);
    meeting->waiting++;
    pthread_cond_timedwait(&meeting->cond, &meeting->mutex, &time);
    if (meeting->tickets > 0) {
        meeting->tickets--;
        meeting->returned++;
    }
    return pthread_mutex_unlock(&meeting->mutex);
}

/* A ticket is always taken, by a waiter that timed out or by the endless waiter: no signal is lost. */
static void timeout_races_signal(void)
{
    int errors = 0;

    for (int i = 0; i < 100; i++) {
        struct meeting meeting;
        struct task patient, hasty[3];

        meeting_make(&meeting);
        task_begin(&patient, wait_for_ticket, &meeting);
        meeting_await(&meeting, 1);
        for (int j = 0; j < 3; j++)
            task_begin(&hasty[j], wait_shortly, &meeting);
        nap();
        meeting_add(&meeting, 4);
        for (int j = 0; j < 4; j++)
            errors += pthread_cond_signal(&meeting.cond) != 0;
        for (int j = 0; j < 3; j++)
            errors += task_join(&hasty[j]) != 0;
        errors += task_join(&patient) != 0;
    }
    say_number("errors", errors);
}

const struct clause cond_signal_clauses[] = {
    { "2.3-init-null", "without attributes", init_null },
    { "2.3-init-default", "with default attributes", init_attributes },
    { "2.3-static", "PTHREAD_COND_INITIALIZER", static_cond },
    { "2.3-destroy-unused", "at once", destroy_unused },
    { "2.3-destroy-init", "can be set up anew", destroy_then_init },
    { "2.3-destroy-after-broadcast", "while the waiters return", destroy_after_broadcast },
    { "2.3-destroy-by-the-last", "of the waiters", destroy_by_the_last },
    { "2.3-signal-nobody", "is not stored", signal_without_waiters },
    { "2.3-broadcast-nobody", "is not stored", broadcast_without_waiters },
    { "2.3-signal-excess", "is not stored", signals_in_excess },
    { "2.3-signal-one", "for each signal one returns", signal_wakes_one },
    { "2.3-signal-each", "as many as wait, at once", signals_wake_each },
    { "2.3-broadcast-all", "with the mutex held", broadcast_wakes_all },
    { "2.3-broadcast-unlocked", "without the mutex", broadcast_unlocked },
    { "2.3-broadcast-later", "does not wake who comes later", broadcast_and_later },
    { "2.3-signal-no-stealing", "by a later waiter", no_stealing },
    { "2.3-signal-no-stealing-own", "by the signaller", no_stealing_by_the_signaller },
    { "2.3-signal-without-mutex", "by a thread that never had it", signal_without_mutex },
    { "2.3-signal-while-held", "by another", signal_while_held },
    { "2.3-queue", "of 3 places, 4 producers, 4 consumers", bounded_queue },
    { "2.3-queue-timeouts", "the same with short waits", bounded_queue_with_timeouts },
    { "2.3-signal-timeout-race", "no signal is lost", timeout_races_signal },
    { NULL, NULL, NULL },
};

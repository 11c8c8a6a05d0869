/* SPDX-License-Identifier: BSD-2-Clause */
/* pthread_cond_wait(): the mutex is released and held again; which callers may wait. */
#include "shalls.h"

/* ---- Released, and held again ---------------------------------------------------------------- */

static void releases(void)
{
    struct meeting meeting;
    struct task task;

    meeting_make(&meeting);
    task_begin(&task, wait_for_ticket, &meeting);
    meeting_await(&meeting, 1);
    say("lock", pthread_mutex_lock(&meeting.mutex));
    say_whether("waits-on", task_await_sleep(&task));
    meeting.tickets = 1;
    say("signal", pthread_cond_signal(&meeting.cond));
    say("unlock", pthread_mutex_unlock(&meeting.mutex));
    say("wait", task_join(&task));
}

/* A waiter of any kind of mutex, and the state on return. */
struct returner {
    struct meeting meeting;
    int elsewhere; /* a trylock by another thread */
    int unlocks;
};

static int wait_and_look(void *with)
{
    struct returner *returner = with;
    struct meeting *meeting = &returner->meeting;
    int result;

    pthread_mutex_lock(&meeting->mutex);
    meeting->waiting++;
    do
        result = pthread_cond_wait(&meeting->cond, &meeting->mutex);
    while (result == 0 && meeting->tickets == 0);
    returner->elsewhere = try_elsewhere(&meeting->mutex);
    returner->unlocks = pthread_mutex_unlock(&meeting->mutex);
    return result;
}

static void holds_on_return(void)
{
    for (int i = 0; i < KINDS; i++) {
        struct returner returner = { .meeting = { .cond = PTHREAD_COND_INITIALIZER } };
        struct task task;

        make_kind(&returner.meeting.mutex, &kinds[i]);
        task_begin(&task, wait_and_look, &returner);
        meeting_await(&returner.meeting, 1);
        meeting_add(&returner.meeting, 1);
        pthread_cond_signal(&returner.meeting.cond);
        say(kinds[i].name, task_join(&task));
        say("elsewhere", returner.elsewhere);
        say("unlock", returner.unlocks);
    }
}

/* A waiter, and if the signaller had unlocked at the waiter's return. */
struct late {
    struct meeting meeting;
    _Atomic bool is_released;
    bool was_released;
};

static int wait_and_tell(void *with)
{
    struct late *late = with;
    int result;

    pthread_mutex_lock(&late->meeting.mutex);
    late->meeting.waiting++;
    do
        result = pthread_cond_wait(&late->meeting.cond, &late->meeting.mutex);
    while (result == 0 && late->meeting.tickets == 0);
    late->was_released = late->is_released;
    pthread_mutex_unlock(&late->meeting.mutex);
    return result;
}

static void returns_after_unlock(void)
{
    struct late late = { .is_released = false };
    struct task task;

    meeting_make(&late.meeting);
    task_begin(&task, wait_and_tell, &late);
    meeting_await(&late.meeting, 1);
    pthread_mutex_lock(&late.meeting.mutex);
    late.meeting.tickets = 1;
    say("signal", pthread_cond_signal(&late.meeting.cond));
    task_await_sleep(&task);
    late.is_released = true;
    pthread_mutex_unlock(&late.meeting.mutex);
    say("wait", task_join(&task));
    say_whether("after-unlock", late.was_released);
}

/* ---- Nothing is lost between release and wait ------------------------------------------------ */

/* Two threads that pass a ball, one word for both ways. */
struct pingpong {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int turn;
};
#define PASSES 2000

static int play(struct pingpong *game, int me)
{
    int errors = 0;

    for (int i = 0; i < PASSES; i++) {
        pthread_mutex_lock(&game->mutex);
        while (game->turn != me)
            errors += pthread_cond_wait(&game->cond, &game->mutex) != 0;
        game->turn = !me;
        errors += pthread_cond_signal(&game->cond) != 0;
        pthread_mutex_unlock(&game->mutex);
    }
    return errors;
}

static int play_second(void *game)
{
    return play(game, 1);
}

static void pingpong(void)
{
    struct pingpong game = { .mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };
    struct task task;

    task_begin(&task, play_second, &game);
    say_number("errors", play(&game, 0));
    say_number("others", task_join(&task));
}

/* Waits once, with any result. */
static int wait_once(void *with)
{
    struct meeting *meeting = with;
    int result;

    pthread_mutex_lock(&meeting->mutex);
    meeting->waiting++;
    result = pthread_cond_wait(&meeting->cond, &meeting->mutex);
    meeting->waiting--;
    pthread_mutex_unlock(&meeting->mutex);
    return result;
}

/* A thread that has got the mutex after the release wakes the waiter by one signal. */
static void signal_after_release(void)
{
    struct meeting meeting;
    int errors = 0;

    meeting_make(&meeting);
    for (int i = 0; i < 200; i++) {
        struct task task;

        task_begin(&task, wait_once, &meeting);
        meeting_await(&meeting, 1);
        errors += pthread_cond_signal(&meeting.cond) != 0;
        errors += task_join(&task) != 0;
    }
    say_number("errors", errors);
}

/* ---- Which thread may wait ------------------------------------------------------------------- */

static int wait_now(void *with)
{
    struct meeting *meeting = with;

    return pthread_cond_wait(&meeting->cond, &meeting->mutex);
}

static int timedwait_now(void *with)
{
    struct meeting *meeting = with;
    struct timespec far = in_ms(CLOCK_REALTIME, 3600000);

    return pthread_cond_timedwait(&meeting->cond, &meeting->mutex, &far);
}

static int clockwait_now(void *with)
{
    struct meeting *meeting = with;
    struct timespec far = in_ms(CLOCK_MONOTONIC, 3600000);

    return pthread_cond_clockwait(&meeting->cond, &meeting->mutex, CLOCK_MONOTONIC, &far);
}

/* The mutex is free, then another thread's: refused, and the other thread holds on. */
static void refuse(work_fn wait)
{
    for (int i = 0; i < KINDS; i++) {
        struct meeting meeting = { .cond = PTHREAD_COND_INITIALIZER };

        if (!is_owner_checked(&kinds[i]))
            continue;
        make_kind(&meeting.mutex, &kinds[i]);
        say(kinds[i].name, wait(&meeting));
        say("lock", pthread_mutex_lock(&meeting.mutex));
        say("another", elsewhere(wait, &meeting));
        say("elsewhere", try_elsewhere(&meeting.mutex));
        say("unlock", pthread_mutex_unlock(&meeting.mutex));
    }
}

static void wait_refuses(void)
{
    refuse(wait_now);
}

static void timedwait_refuses(void)
{
    refuse(timedwait_now);
}

static void clockwait_refuses(void)
{
    refuse(clockwait_now);
}

/* A refused wait leaves no waiter that would take a real waiter's signal. */
static void refused_takes_no_signal(void)
{
    struct meeting meeting = { .cond = PTHREAD_COND_INITIALIZER };
    struct task task;

    make(&meeting.mutex, PTHREAD_MUTEX_ERRORCHECK);
    for (int i = 0; i < 5; i++)
        say("refused", wait_now(&meeting));
    task_begin(&task, wait_for_ticket, &meeting);
    meeting_await(&meeting, 1);
    for (int i = 0; i < 5; i++)
        say("refused", wait_now(&meeting));
    meeting_add(&meeting, 1);
    say("signal", pthread_cond_signal(&meeting.cond));
    say("wait", task_join(&task));
    say("destroy", pthread_cond_destroy(&meeting.cond));
}

/* ---- Recursive mutexes ----------------------------------------------------------------------- */

/* A waiter that has locked a recursive mutex some times, and can unlock as often afterwards. */
struct deep {
    struct meeting meeting;
    int depth;
    int unlocks;
    _Atomic bool has_begun;
};

static int wait_deep(void *with)
{
    struct deep *deep = with;
    int result;

    for (int i = 0; i < deep->depth; i++)
        pthread_mutex_lock(&deep->meeting.mutex);
    deep->has_begun = true;
    result = pthread_cond_wait(&deep->meeting.cond, &deep->meeting.mutex);
    deep->unlocks = unlock_all(&deep->meeting.mutex);
    return result;
}

/* Signals until the wait is over: a sleeping waiter may not have begun to wait. */
static void wait_at_depth(int depth)
{
    struct deep deep = { .meeting = { .cond = PTHREAD_COND_INITIALIZER }, .depth = depth };
    struct task task;

    make(&deep.meeting.mutex, PTHREAD_MUTEX_RECURSIVE);
    task_begin(&task, wait_deep, &deep);
    await(deep.has_begun);
    task_await_sleep(&task);
    say("elsewhere", try_elsewhere(&deep.meeting.mutex));
    while (!task_is_over(&task)) {
        pthread_cond_signal(&deep.meeting.cond);
        nap();
    }
    say("wait", task_join(&task));
    say_number("unlocks", deep.unlocks);
}

static void recursive_once(void)
{
    wait_at_depth(1);
}

static void recursive_thrice(void)
{
    wait_at_depth(3);
}

/* ---- Signal handlers ------------------------------------------------------------------------- */

static void signal_handlers(void)
{
    struct meeting meeting;
    struct task task;

    signals_begin();
    meeting_make(&meeting);
    task_begin(&task, wait_for_ticket, &meeting);
    meeting_await(&meeting, 1);
    signals_send(&task, 20);
    say_whether("waits-on", task_await_sleep(&task));
    meeting_add(&meeting, 1);
    say("signal", pthread_cond_signal(&meeting.cond));
    say("wait", task_join(&task));
}

/* ---- Which mutex ----------------------------------------------------------------------------- */

/* One waiter, with a mutex of the caller's. */
struct bound {
    pthread_cond_t *cond;
    pthread_mutex_t *mutex;
    bool has_begun; /* guarded by the mutex */
    bool may_leave;
};

static int wait_bound(void *with)
{
    struct bound *bound = with;
    int result = 0;

    pthread_mutex_lock(bound->mutex);
    bound->has_begun = true;
    while (!bound->may_leave && result == 0)
        result = pthread_cond_wait(bound->cond, bound->mutex);
    pthread_mutex_unlock(bound->mutex);
    return result;
}

static bool has_begun(struct bound *bound)
{
    bool seen;

    pthread_mutex_lock(bound->mutex);
    seen = bound->has_begun;
    pthread_mutex_unlock(bound->mutex);
    return seen;
}

/* One mutex after the other, each once no thread waits. */
static void another_mutex_later(void)
{
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    pthread_mutex_t mutexes[3] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };

    for (int i = 0; i < 3; i++) {
        struct bound bound = { .cond = &cond, .mutex = &mutexes[i] };
        struct task task;

        task_begin(&task, wait_bound, &bound);
        await(has_begun(&bound));
        pthread_mutex_lock(&mutexes[i]);
        bound.may_leave = true;
        pthread_mutex_unlock(&mutexes[i]);
        say("broadcast", pthread_cond_broadcast(&cond));
        say("wait", task_join(&task));
    }
}

/* The second mutex when the first waiter is unblocked, and still wants the first mutex. */
static void another_mutex_at_once(void)
{
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
    struct bound one = { .cond = &cond, .mutex = &first };
    struct bound other = { .cond = &cond, .mutex = &second };
    struct task first_task, second_task;

    task_begin(&first_task, wait_bound, &one);
    await(has_begun(&one));
    pthread_mutex_lock(&first);
    one.may_leave = true;
    say("broadcast", pthread_cond_broadcast(&cond));
    task_begin(&second_task, wait_bound, &other);
    await(has_begun(&other));
    say_whether("second-waits", task_await_sleep(&second_task));
    pthread_mutex_lock(&second);
    other.may_leave = true;
    pthread_mutex_unlock(&second);
    say("broadcast", pthread_cond_broadcast(&cond));
    say("second", task_join(&second_task));
    pthread_mutex_unlock(&first);
    say("first", task_join(&first_task));
}

/* Two condition variables of one mutex: a signal reaches only the signalled variable. */
static void two_conds(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t conds[2] = { PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER };
    struct bound bounds[2] = { { .cond = &conds[0], .mutex = &mutex }, { .cond = &conds[1], .mutex = &mutex } };
    struct task tasks[2];

    for (int i = 0; i < 2; i++) {
        task_begin(&tasks[i], wait_bound, &bounds[i]);
        await(has_begun(&bounds[i]));
    }
    for (int i = 1; i >= 0; i--) {
        pthread_mutex_lock(&mutex);
        bounds[i].may_leave = true;
        say("signal", pthread_cond_signal(&conds[i]));
        pthread_mutex_unlock(&mutex);
        say("wait", task_join(&tasks[i]));
    }
}

const struct clause cond_wait_clauses[] = {
    { "2.3-wait-releases", "another gets the mutex", releases },
    { "2.3-wait-holds", "the mutex on return", holds_on_return },
    { "2.3-wait-after-unlock", "of the signaller", returns_after_unlock },
    { "2.3-wait-pingpong", "no signal is lost", pingpong },
    { "2.3-wait-atomic", "one who has the mutex after the release wakes the waiter", signal_after_release },
    { "2.3-wait-foreign", "by another than the owner", wait_refuses },
    { "2.3-timedwait-foreign", "by another than the owner", timedwait_refuses },
    { "2.3-clockwait-foreign", "by another than the owner", clockwait_refuses },
    { "2.3-wait-refused", "leaves no waiter behind", refused_takes_no_signal },
    { "2.3-wait-recursive-once", "by a recursive mutex locked once", recursive_once },
    { "2.3-wait-recursive-thrice", "by a recursive mutex locked three times", recursive_thrice },
    { "2.3-wait-signal", "a handler does not end the wait", signal_handlers },
    { "2.3-wait-rebinds", "to one mutex after another", another_mutex_later },
    { "2.3-wait-rebinds-early", "when the first waiter is unblocked", another_mutex_at_once },
    { "2.3-wait-two-conds", "by one mutex", two_conds },
    { NULL, NULL, NULL },
};

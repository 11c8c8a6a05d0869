/* SPDX-License-Identifier: BSD-2-Clause */
/* Mutex calls are no cancellation points. */
#include "shalls.h"

/* A thread that will be cancelled, and how far it is. */
struct victim {
    pthread_mutex_t mutex;
    work_fn lock;
    int locked;   /* the lock's result */
    int unlocked; /* the unlock's */
    _Atomic bool went_on;
};

/* Locks and unlocks, then comes to a cancellation point. */
static int lock_unlock_test(void *with)
{
    struct victim *victim = with;

    victim->locked = victim->lock(&victim->mutex);
    victim->unlocked = pthread_mutex_unlock(&victim->mutex);
    victim->went_on = true;
    pthread_testcancel();
    return 0;
}

static int cancel_self_first(void *victim)
{
    pthread_cancel(pthread_self());
    return lock_unlock_test(victim);
}

static void say_victim(struct victim *victim, struct task *task)
{
    int end = task_join(task);

    say("lock", victim->locked);
    say("unlock", victim->unlocked);
    say_whether("went-on", victim->went_on);
    say("end", end);
    say("elsewhere", try_elsewhere(&victim->mutex));
}

/* The request is there before the calls. */
static void pending(work_fn lock)
{
    struct victim victim = { .lock = lock };
    struct task task;

    make(&victim.mutex, PTHREAD_MUTEX_NORMAL);
    task_begin(&task, cancel_self_first, &victim);
    say_victim(&victim, &task);
}

/* The request comes while the thread waits for the mutex. */
static void blocked_then_cancelled(work_fn lock)
{
    struct victim victim = { .lock = lock };
    struct task task;

    make(&victim.mutex, PTHREAD_MUTEX_NORMAL);
    pthread_mutex_lock(&victim.mutex);
    task_begin(&task, lock_unlock_test, &victim);
    task_await_sleep(&task);
    pthread_cancel(task.thread);
    say_whether("waits-on", task_await_sleep(&task));
    pthread_mutex_unlock(&victim.mutex);
    say_victim(&victim, &task);
}

static void pending_lock(void)
{
    pending(ways[0].lock);
}

static void pending_trylock(void)
{
    pending(ways[1].lock);
}

static void pending_timedlock(void)
{
    pending(ways[2].lock);
}

static void pending_clocklock(void)
{
    pending(ways[3].lock);
}

static void blocked_lock(void)
{
    blocked_then_cancelled(ways[0].lock);
}

static void blocked_timedlock(void)
{
    blocked_then_cancelled(ways[2].lock);
}

static void blocked_clocklock(void)
{
    blocked_then_cancelled(ways[3].lock);
}

/* A robust mutex of a cancelled owner is like the mutex of a dead owner. */
static int lock_and_be_cancelled(void *mutex)
{
    pthread_mutex_lock(mutex);
    pthread_cancel(pthread_self());
    pthread_testcancel();
    return 0;
}

static void cancelled_owner(void)
{
    pthread_mutex_t mutex;

    make_robust(&mutex, PTHREAD_MUTEX_NORMAL);
    say("owner", elsewhere(lock_and_be_cancelled, &mutex));
    say("lock", pthread_mutex_lock(&mutex));
    say("consistent", pthread_mutex_consistent(&mutex));
    say("unlock", pthread_mutex_unlock(&mutex));
}

static void unlock_at_the_end(void *mutex)
{
    pthread_mutex_unlock(mutex);
}

/* The thread's cleanup handler unlocks the mutex. */
static int lock_and_clean_up(void *mutex)
{
    pthread_mutex_lock(mutex);
    pthread_cleanup_push(unlock_at_the_end, mutex);
    pthread_cancel(pthread_self());
    pthread_testcancel();
    pthread_cleanup_pop(0);
    return 0;
}

static void cleanup_unlocks(void)
{
    for (int i = 0; i < KINDS; i++) {
        pthread_mutex_t mutex;

        make_kind(&mutex, &kinds[i]);
        say(kinds[i].name, elsewhere(lock_and_clean_up, &mutex));
        say("lock", pthread_mutex_lock(&mutex));
    }
}

const struct clause cancel_clauses[] = {
    { "2.1-cancel-pending-lock", "is not acted on", pending_lock },
    { "2.1-cancel-pending-trylock", "is not acted on", pending_trylock },
    { "2.1-cancel-pending-timedlock", "is not acted on", pending_timedlock },
    { "2.1-cancel-pending-clocklock", "is not acted on", pending_clocklock },
    { "2.1-cancel-blocked-lock", "is not acted on", blocked_lock },
    { "2.1-cancel-blocked-timedlock", "is not acted on", blocked_timedlock },
    { "2.1-cancel-blocked-clocklock", "is not acted on", blocked_clocklock },
    { "2.1-cancel-owner", "of a robust mutex", cancelled_owner },
    { "2.1-cancel-cleanup-unlocks", "the mutex of each kind", cleanup_unlocks },
    { NULL, NULL, NULL },
};

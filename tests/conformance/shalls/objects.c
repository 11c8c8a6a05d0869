/* SPDX-License-Identifier: BSD-2-Clause */
/* Mutexes of all kinds, their holders and waiters, and places to wait. */
#include "shalls.h"

#include <stdatomic.h>
#include <stdlib.h>

/* ---- Mutexes --------------------------------------------------------------------------------- */

const struct kind kinds[KINDS] = {
    { "normal", PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED },
    { "recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED },
    { "errorcheck", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_STALLED },
    { "default", PTHREAD_MUTEX_DEFAULT, PTHREAD_MUTEX_STALLED },
    { "robust-normal", PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST },
    { "robust-recursive", PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ROBUST },
    { "robust-errorcheck", PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ROBUST },
    { "robust-default", PTHREAD_MUTEX_DEFAULT, PTHREAD_MUTEX_ROBUST },
};

bool is_owner_checked(const struct kind *kind)
{
    return kind->robust == PTHREAD_MUTEX_ROBUST || kind->type == PTHREAD_MUTEX_RECURSIVE ||
           kind->type == PTHREAD_MUTEX_ERRORCHECK;
}

/* Sets up a mutex by attributes. */
static void make_by(pthread_mutex_t *mutex, int type, int robust, int pshared)
{
    pthread_mutexattr_t attr;

    if (pthread_mutexattr_init(&attr) != 0 || pthread_mutexattr_settype(&attr, type) != 0 ||
        pthread_mutexattr_setrobust(&attr, robust) != 0 || pthread_mutexattr_setpshared(&attr, pshared) != 0 ||
        pthread_mutex_init(mutex, &attr) != 0 || pthread_mutexattr_destroy(&attr) != 0)
        abort();
}

void make(pthread_mutex_t *mutex, int type)
{
    make_by(mutex, type, PTHREAD_MUTEX_STALLED, PTHREAD_PROCESS_PRIVATE);
}

void make_kind(pthread_mutex_t *mutex, const struct kind *kind)
{
    make_by(mutex, kind->type, kind->robust, PTHREAD_PROCESS_PRIVATE);
}

void make_robust(pthread_mutex_t *mutex, int type)
{
    make_by(mutex, type, PTHREAD_MUTEX_ROBUST, PTHREAD_PROCESS_PRIVATE);
}

void make_shared(pthread_mutex_t *mutex, const struct kind *kind)
{
    make_by(mutex, kind->type, kind->robust, PTHREAD_PROCESS_SHARED);
}

int lock_it(void *mutex)
{
    return pthread_mutex_lock(mutex);
}

int trylock_it(void *mutex)
{
    return pthread_mutex_trylock(mutex);
}

int unlock_it(void *mutex)
{
    return pthread_mutex_unlock(mutex);
}

/* Until a time so far away that the wait is endless. */
static int timedlock_it(void *mutex)
{
    struct timespec far = in_ms(CLOCK_REALTIME, 3600000);

    return pthread_mutex_timedlock(mutex, &far);
}

static int clocklock_it(void *mutex)
{
    struct timespec far = in_ms(CLOCK_MONOTONIC, 3600000);

    return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &far);
}

#define ANSWER_MS 50

bool has_no_answer(int result, const struct timespec *began)
{
    struct timespec then = in_ms(CLOCK_MONOTONIC, -ANSWER_MS);

    return result == ETIMEDOUT &&
           (began->tv_sec < then.tv_sec || (began->tv_sec == then.tv_sec && began->tv_nsec <= then.tv_nsec));
}

int timedlock_it_past(void *mutex)
{
    struct timespec past = in_ms(CLOCK_REALTIME, -1000), began;
    int result;

    do {
        began = in_ms(CLOCK_MONOTONIC, 0);
        result = pthread_mutex_timedlock(mutex, &past);
    } while (has_no_answer(result, &began));
    return result;
}

int clocklock_it_past(void *mutex)
{
    struct timespec past = in_ms(CLOCK_MONOTONIC, -1000), began;
    int result;

    do {
        began = in_ms(CLOCK_MONOTONIC, 0);
        result = pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &past);
    } while (has_no_answer(result, &began));
    return result;
}

int lock_and_unlock_it(void *mutex)
{
    int result = pthread_mutex_lock(mutex);

    return result == 0 ? pthread_mutex_unlock(mutex) : result;
}

const struct way ways[WAYS] = {
    { "lock", lock_it },
    { "trylock", trylock_it },
    { "timedlock", timedlock_it },
    { "clocklock", clocklock_it },
};

static int try_and_give_back(void *mutex)
{
    int result = pthread_mutex_trylock(mutex);

    if (result == 0)
        pthread_mutex_unlock(mutex);
    return result;
}

int try_elsewhere(pthread_mutex_t *mutex)
{
    return elsewhere(try_and_give_back, mutex);
}

void die_holding(pthread_mutex_t *mutex)
{
    if (elsewhere(lock_it, mutex) != 0)
        abort();
}

int unlock_all(pthread_mutex_t *mutex)
{
    int depth = 0;

    while (pthread_mutex_unlock(mutex) == 0)
        depth++;
    return depth;
}

/* ---- Somebody else --------------------------------------------------------------------------- */

static int hold(void *with)
{
    struct holder *holder = with;
    int result = pthread_mutex_lock(holder->mutex);

    holder->holds = true;
    await(holder->may_go);
    holder->lets_go = true;
    pthread_mutex_unlock(holder->mutex);
    return result;
}

void holder_begin(struct holder *holder, pthread_mutex_t *mutex)
{
    *holder = (struct holder){ .mutex = mutex };
    task_begin(&holder->task, hold, holder);
    await(holder->holds);
}

void holder_let_go(struct holder *holder)
{
    holder->may_go = true;
    task_join(&holder->task);
}

static int block(void *with)
{
    struct blocked *blocked = with;
    int result = blocked->lock(blocked->mutex);

    blocked->was_released = blocked->is_released;
    return result;
}

void blocked_begin(struct blocked *blocked, work_fn lock, pthread_mutex_t *mutex)
{
    *blocked = (struct blocked){ .mutex = mutex, .lock = lock };
    task_begin(&blocked->task, block, blocked);
    task_await_sleep(&blocked->task);
}

int blocked_end(struct blocked *blocked)
{
    return task_join(&blocked->task);
}

const char *blocked_when(const struct blocked *blocked)
{
    return blocked->was_released ? "after" : "early";
}

int torture_add(void *with)
{
    struct torture *torture = with;

    for (int i = 0; i < torture->rounds; i++) {
        pthread_mutex_lock(&torture->mutex);
        torture->meetings += torture->inside++ > 0;
        torture->number++;
        torture->inside--;
        pthread_mutex_unlock(&torture->mutex);
    }
    return 0;
}

/* ---- Places to wait -------------------------------------------------------------------------- */

int wait_for_ticket(void *with)
{
    struct meeting *meeting = with;
    int result;

    pthread_mutex_lock(&meeting->mutex);
    meeting->waiting++;
    do
        result = pthread_cond_wait(&meeting->cond, &meeting->mutex);
    while (result == 0 && meeting->tickets == 0);
    meeting->tickets--;
    meeting->returned++;
    pthread_mutex_unlock(&meeting->mutex);
    return result;
}

void meeting_make(struct meeting *meeting)
{
    *meeting = (struct meeting){ .mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };
}

/* A number of the meeting, read under the mutex. */
static int look_at(struct meeting *meeting, const int *number)
{
    int seen;

    pthread_mutex_lock(&meeting->mutex);
    seen = *number;
    pthread_mutex_unlock(&meeting->mutex);
    return seen;
}

void meeting_await(struct meeting *meeting, int count)
{
    await(look_at(meeting, &meeting->waiting) == count);
}

void meeting_add(struct meeting *meeting, int tickets)
{
    pthread_mutex_lock(&meeting->mutex);
    meeting->tickets += tickets;
    pthread_mutex_unlock(&meeting->mutex);
}

int meeting_returned(struct meeting *meeting)
{
    return look_at(meeting, &meeting->returned);
}

void meeting_dismiss(struct meeting *meeting, struct task *tasks, int count)
{
    meeting_add(meeting, count);
    pthread_cond_broadcast(&meeting->cond);
    for (int i = 0; i < count; i++)
        task_join(&tasks[i]);
}

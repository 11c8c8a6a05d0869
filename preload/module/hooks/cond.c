/* SPDX-License-Identifier: BSD-2-Clause */
#include "cond.h"

#include <errno.h>

#include "module/base/real.h"
#include "module/watch/matches.h"
#include "module/watch/observe.h"
#include "module/watch/report.h"
#include "mutex.h"
#include "ready.h"
#include "shared/text.h"

/* glibc's bit for a condition variable whose timeouts use CLOCK_MONOTONIC. */
#define CLOCK_BIT 2

/* How long a wait without a name sleeps before it wakes up spuriously. */
#define SLICE_NS 100000000

/* ---- from the program's condition to ours ------------------------------------------------ */

static clockid_t clock_of(const pthread_cond_t *condition)
{
    return condition->__data.__wrefs & CLOCK_BIT ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

static enum object_state make(struct object *object, const struct library *library, int clock_id)
{
    dcondattr_t attr;

    library->condattr_init(&attr);
    library->condattr_setclock(&attr, clock_id);
    matches_note(object->rule);
    if (library->cond_init(&object->condition, object->name, &attr) == 0)
        return OBJECT_READY;
    text_say(object->name, ": ", library->strerror(), "; the condition variable is left local", NULL);
    return OBJECT_REFUSED;
}

/* Like mutex_named(). */
static struct object *condition_named(pthread_cond_t *condition, enum look_use use)
{
    struct object *object;

    if (!objects_may_have_condition(condition))
        return NULL;
    object = lookup_condition(condition);
    if (use == USE_LOCK)
        observe_condition(condition);
    return ready_object(object, make, clock_of(condition));
}

/* ---- waits on the program's own condition ------------------------------------------------ */

static int wait_locally(pthread_cond_t *condition, pthread_mutex_t *mutex, struct cond_deadline deadline)
{
    switch (deadline.by) {
    case WAIT_BY_CONDITION:
        return real_get()->cond_timedwait(condition, mutex, deadline.at);
    case WAIT_BY_CLOCK:
        return real_get()->cond_clockwait(condition, mutex, deadline.clock, deadline.at);
    default:
        return real_get()->cond_wait(condition, mutex);
    }
}

/* ---- a condition without a name, a mutex with a name ------------------------------------- */

/* A mutex that is released for one slice. */
struct slice {
    struct object *mutex;
    unsigned depth;
    int result; /* of locking the mutex again */
};

static int give_up(struct slice *slice)
{
    const struct library *library = library_get();
    int result = library->mutex_holdcount(&slice->mutex->mutex, &slice->depth);

    if (result == 0 && slice->depth == 0)
        return EPERM;
    for (unsigned i = 0; result == 0 && i < slice->depth; i++)
        result = mutex_unlock(slice->mutex);
    return result;
}

/* Runs even if the thread is cancelled while it sleeps. */
static void take_again(void *user)
{
    struct slice *slice = user;

    real_get()->mutex_unlock(&slice->mutex->sleeping);
    slice->result = mutex_lock(slice->mutex);
    for (unsigned i = 1; i < slice->depth && (slice->result == 0 || slice->result == EOWNERDEAD); i++)
        mutex_lock(slice->mutex);
}

static bool is_before(const struct timespec *one, const struct timespec *other)
{
    return one->tv_sec != other->tv_sec ? one->tv_sec < other->tv_sec : one->tv_nsec < other->tv_nsec;
}

/* The end of a slice, or of the wait if that is sooner; returns true in that case. */
static bool end_slice(clockid_t clock_id, const struct timespec *deadline, struct timespec *ret_end)
{
    clock_gettime(clock_id, ret_end);
    ret_end->tv_nsec += SLICE_NS;
    if (ret_end->tv_nsec >= 1000000000) {
        ret_end->tv_nsec -= 1000000000;
        ret_end->tv_sec++;
    }
    if (!deadline || is_before(ret_end, deadline))
        return false;
    *ret_end = *deadline;
    return true;
}

static void explain(struct object *mutex)
{
    if (__atomic_exchange_n(&mutex->is_explained, true, __ATOMIC_RELAXED))
        return;
    text_say(mutex->name,
             ": a condition variable without a name is used with this mutex; its waits wake up "
             "ten times a second, and signals of other processes do not reach it. Name it by Cond=; "
             "dmutex-run --list shows it",
             NULL);
}

static int sleep_until(struct slice *slice, pthread_cond_t *condition, clockid_t clock_id, const struct timespec *end)
{
    int result;

    pthread_cleanup_push(take_again, slice);
    result = real_get()->cond_clockwait(condition, &slice->mutex->sleeping, clock_id, end);
    pthread_cleanup_pop(1);
    return result;
}

/* See doc/design/preload.md. */
static int wait_in_slices(pthread_cond_t *condition, struct object *mutex, struct cond_deadline deadline)
{
    struct slice slice = { .mutex = mutex };
    clockid_t clock_id = deadline.by == WAIT_BY_CLOCK ? deadline.clock : clock_of(condition);
    struct timespec end;
    bool is_last = end_slice(clock_id, deadline.by == WAIT_ENDLESS ? NULL : deadline.at, &end);
    int result;

    explain(mutex);
    real_get()->mutex_lock(&mutex->sleeping);
    result = give_up(&slice);
    if (result != 0) {
        real_get()->mutex_unlock(&mutex->sleeping);
        return result;
    }
    result = sleep_until(&slice, condition, clock_id, &end);
    if (slice.result != 0)
        return slice.result;
    return result == ETIMEDOUT && !is_last ? 0 : result;
}

/* ---- both with names --------------------------------------------------------------------- */

static void leave_library(void *user)
{
    (void)user;
    library_leave();
}

static int wait_inside(const struct library *library, dcond_t *condition, dmutex_t *mutex,
                       const struct cond_deadline *deadline)
{
    int result;

    library_enter();
    pthread_cleanup_push(leave_library, NULL);
    if (deadline->by == WAIT_ENDLESS)
        result = library->cond_wait(condition, mutex);
    else if (deadline->by == WAIT_BY_CONDITION)
        result = library->cond_timedwait(condition, mutex, deadline->at);
    else
        result = library->cond_clockwait(condition, mutex, deadline->clock, deadline->at);
    pthread_cleanup_pop(1);
    return result;
}

static int wait_for_all(struct object *condition, struct object *mutex, const struct cond_deadline *deadline)
{
    const struct library *library = library_get();
    int result;

    report_end_hold(mutex, library, true);
    result = wait_inside(library, &condition->condition, &mutex->mutex, deadline);
    if (result == 0 || result == ETIMEDOUT || result == EOWNERDEAD)
        report_begin_hold(mutex, library);
    if (result == EINVAL && !__atomic_exchange_n(&condition->is_explained, true, __ATOMIC_RELAXED))
        text_say(condition->name, ": cannot be waited on with ", mutex->name, ": ", library->strerror(), NULL);
    return result;
}

int cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, struct cond_deadline deadline)
{
    struct object *named_mutex = mutex_named(mutex, USE_OTHER);
    struct object *named = condition_named(condition, USE_LOCK);

    if (named && named_mutex)
        return wait_for_all(named, named_mutex, &deadline);
    if (named_mutex)
        return wait_in_slices(condition, named_mutex, deadline);
    if (named) {
        if (!__atomic_exchange_n(&named->has_local_waiters, true, __ATOMIC_RELAXED))
            text_say(named->name, ": this condition variable is waited on with a mutex that has no name: ",
                     "only signals of this process wake it", NULL);
    }
    return wait_locally(condition, mutex, deadline);
}

/* ---- signals ----------------------------------------------------------------------------- */

static int wake_locally(pthread_cond_t *condition, bool is_broadcast)
{
    return is_broadcast ? real_get()->cond_broadcast(condition) : real_get()->cond_signal(condition);
}

int cond_wake(pthread_cond_t *condition, bool is_broadcast)
{
    struct object *named = condition_named(condition, USE_OTHER);
    const struct library *library;
    int result;

    if (!named)
        return wake_locally(condition, is_broadcast);
    if (__atomic_load_n(&named->has_local_waiters, __ATOMIC_RELAXED))
        wake_locally(condition, is_broadcast);
    library = library_get();
    library_enter();
    result = is_broadcast ? library->cond_broadcast(&named->condition) : library->cond_signal(&named->condition);
    library_leave();
    return result;
}

/* ---- pthread's names --------------------------------------------------------------------- */

EXPORT int pthread_cond_wait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex)
{
    return cond_wait(condition, mutex, (struct cond_deadline){ .by = WAIT_ENDLESS });
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                                  const struct timespec *restrict until)
{
    return cond_wait(condition, mutex, (struct cond_deadline){ .by = WAIT_BY_CONDITION, .at = until });
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                                  clockid_t clock_id, const struct timespec *restrict until)
{
    return cond_wait(condition, mutex, (struct cond_deadline){ .by = WAIT_BY_CLOCK, .clock = clock_id, .at = until });
}

EXPORT int pthread_cond_signal(pthread_cond_t *condition)
{
    return cond_wake(condition, false);
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *condition)
{
    return cond_wake(condition, true);
}

EXPORT int pthread_cond_init(pthread_cond_t *restrict condition, const pthread_condattr_t *restrict attr)
{
    int result = real_get()->cond_init(condition, attr);
    struct object *object = result == 0 ? object_of_condition(condition) : NULL;

    if (object)
        __atomic_store_n(&object->state, OBJECT_NEW, __ATOMIC_RELEASE);
    return result;
}

EXPORT int pthread_cond_destroy(pthread_cond_t *condition)
{
    struct object *object = object_of_condition(condition);
    const struct library *library;
    int result = 0;

    if (object && object->state == OBJECT_READY && !library_is_inside()) {
        library = library_get();
        library_enter();
        result = library->cond_destroy(&object->condition);
        library_leave();
        if (result == 0)
            __atomic_store_n(&object->state, OBJECT_NEW, __ATOMIC_RELEASE);
    }
    return result ? result : real_get()->cond_destroy(condition);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * C11's mutexes and condition variables. In glibc they are pthread's under another name, but its functions call each
 * other inside libc, where we cannot intercept them.
 */
#include <errno.h>
#include <threads.h>

#include "cond.h"
#include "module/base/real.h"
#include "mutex.h"

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "a mtx_t is a pthread_mutex_t");
_Static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t), "a cnd_t is a pthread_cond_t");

static pthread_mutex_t *mutex_of(mtx_t *mutex)
{
    return (pthread_mutex_t *)(void *)mutex;
}

static pthread_cond_t *condition_of(cnd_t *condition)
{
    return (pthread_cond_t *)(void *)condition;
}

/* C11 does not know of an owner's death: a thread that gets EOWNERDEAD owns the mutex. */
static int to_c11(int result)
{
    switch (result) {
    case 0:
    case EOWNERDEAD:
        return thrd_success;
    case EBUSY:
        return thrd_busy;
    case ETIMEDOUT:
        return thrd_timedout;
    case ENOMEM:
        return thrd_nomem;
    default:
        return thrd_error;
    }
}

/* ---- mutexes ----------------------------------------------------------------------------- */

EXPORT int mtx_init(mtx_t *mutex, int type)
{
    int result = real_get()->mtx_init(mutex, type);
    struct object *object = object_of_mutex(mutex_of(mutex));

    if (object && result == thrd_success)
        mutex_renew(object);
    return result;
}

EXPORT void mtx_destroy(mtx_t *mutex)
{
    pthread_mutex_destroy(mutex_of(mutex));
}

EXPORT int mtx_lock(mtx_t *mutex)
{
    struct object *object = mutex_named(mutex_of(mutex), USE_LOCK);

    return object ? to_c11(mutex_lock(object)) : real_get()->mtx_lock(mutex);
}

EXPORT int mtx_trylock(mtx_t *mutex)
{
    struct object *object = mutex_named(mutex_of(mutex), USE_LOCK);

    return object ? to_c11(mutex_trylock(object)) : real_get()->mtx_trylock(mutex);
}

EXPORT int mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict until)
{
    struct object *object = mutex_named(mutex_of(mutex), USE_LOCK);

    return object ? to_c11(mutex_clocklock(object, CLOCK_REALTIME, until)) : real_get()->mtx_timedlock(mutex, until);
}

EXPORT int mtx_unlock(mtx_t *mutex)
{
    struct object *object = mutex_named(mutex_of(mutex), USE_OTHER);

    return object ? to_c11(mutex_unlock(object)) : real_get()->mtx_unlock(mutex);
}

/* ---- condition variables ----------------------------------------------------------------- */

EXPORT int cnd_init(cnd_t *condition)
{
    return to_c11(pthread_cond_init(condition_of(condition), NULL));
}

EXPORT void cnd_destroy(cnd_t *condition)
{
    pthread_cond_destroy(condition_of(condition));
}

EXPORT int cnd_wait(cnd_t *condition, mtx_t *mutex)
{
    return to_c11(cond_wait(condition_of(condition), mutex_of(mutex), (struct cond_deadline){ .by = WAIT_ENDLESS }));
}

EXPORT int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict until)
{
    return to_c11(cond_wait(condition_of(condition), mutex_of(mutex),
                            (struct cond_deadline){ .by = WAIT_BY_CLOCK, .clock = CLOCK_REALTIME, .at = until }));
}

EXPORT int cnd_signal(cnd_t *condition)
{
    return to_c11(cond_wake(condition_of(condition), false));
}

EXPORT int cnd_broadcast(cnd_t *condition)
{
    return to_c11(cond_wake(condition_of(condition), true));
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Lock and unlock.  Each function asks first whether the mutex is libc's, and is done then. */
#include "dmutex/mutex.h"

#include <errno.h>

#include "api/local.h"
#include "api/object.h"
#include "base/error.h"
#include "runtime/release.h"

static int acquire(dmutex_t *mutex, bool may_wait, const struct dm_deadline *deadline)
{
    struct dm_visit visit = dm_visit_begin();
    struct dm_runtime *runtime;
    struct dm_target target;
    int result = dm_object_open(mutex, &runtime, &target);

    if (!result)
        result = dm_acquire(runtime, &target, may_wait, deadline);
    return dm_visit_end(visit, result);
}

/* Not inlined, nor is unlock_other(): dmutex_lock() and dmutex_unlock() need no stack frame for a plain mutex. */
static __attribute__((__noinline__)) int lock_other(dmutex_t *mutex)
{
    if (dm_local_is(mutex))
        return dm_local_result(dm_real.mutex_lock(dm_local_mutex(mutex)));
    return acquire(mutex, true, &dm_deadline_endless);
}

int dmutex_lock(dmutex_t *mutex)
{
    return dm_local_is_plain(mutex) ? dm_real.mutex_lock(dm_local_mutex(mutex)) : lock_other(mutex);
}

int dmutex_trylock(dmutex_t *mutex)
{
    if (dm_local_is(mutex))
        return dm_local_result(dm_real.mutex_trylock(dm_local_mutex(mutex)));
    return acquire(mutex, false, &dm_deadline_endless);
}

/*
 * A free mutex is locked at any time, also with an invalid time: an invalid time is found out only when there is a
 * reason to wait.
 */
static int acquire_untimed(dmutex_t *mutex)
{
    unsigned depth = 0;
    int result = dmutex_trylock(mutex);

    if (result != EBUSY)
        return result;
    dmutex_holdcount_np(mutex, &depth);
    if (depth && mutex->dm_type == PTHREAD_MUTEX_ERRORCHECK)
        return dm_fail(DM_FAIL_RELOCK, NULL);
    return dm_fail(DM_FAIL_BAD_TIME, NULL);
}

static int acquire_timed(dmutex_t *mutex, clockid_t clock_id, const struct timespec *abstime)
{
    struct dm_deadline deadline = { .clock = clock_id };

    if (clock_id != CLOCK_REALTIME && clock_id != CLOCK_MONOTONIC)
        return dm_fail(DM_FAIL_BAD_CLOCK, NULL);
    if (abstime->tv_nsec < 0 || abstime->tv_nsec >= DM_NS_PER_S)
        return acquire_untimed(mutex);
    deadline.at = *abstime;
    return acquire(mutex, true, &deadline);
}

int dmutex_clocklock(dmutex_t *mutex, clockid_t clock_id, const struct timespec *abstime)
{
    if (!abstime)
        return dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);
    if (dm_local_is(mutex))
        return dm_local_result(dm_real.mutex_clocklock(dm_local_mutex(mutex), clock_id, abstime));
    return acquire_timed(mutex, clock_id, abstime);
}

int dmutex_timedlock(dmutex_t *mutex, const struct timespec *abstime)
{
    if (!abstime)
        return dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);
    if (dm_local_is(mutex))
        return dm_local_result(dm_real.mutex_timedlock(dm_local_mutex(mutex), abstime));
    return acquire_timed(mutex, CLOCK_REALTIME, abstime);
}

static int release(dmutex_t *mutex)
{
    struct dm_visit visit = dm_visit_begin();
    struct dm_runtime *runtime = dm_runtime_peek();
    struct dm_target target;
    int result = dm_object_read(mutex, runtime, &target);

    if (!result)
        result = runtime ? dm_release(runtime, target.key) : dm_fail(DM_FAIL_NOT_OWNER, NULL);
    return dm_visit_end(visit, result);
}

static __attribute__((__noinline__)) int unlock_other(dmutex_t *mutex)
{
    if (dm_local_is(mutex))
        return dm_local_result(dm_real.mutex_unlock(dm_local_mutex(mutex)));
    return release(mutex);
}

int dmutex_unlock(dmutex_t *mutex)
{
    return dm_local_is_plain(mutex) ? dm_real.mutex_unlock(dm_local_mutex(mutex)) : unlock_other(mutex);
}

static int make_consistent(dmutex_t *mutex)
{
    struct dm_visit visit = dm_visit_begin();
    struct dm_runtime *runtime = dm_runtime_peek();
    struct dm_target target;
    int result = dm_object_read(mutex, runtime, &target);

    if (!result && !target.is_robust)
        result = dm_fail(DM_FAIL_NOT_INCONSISTENT, "the mutex is not robust");
    else if (!result)
        result = runtime ? dm_release_consistent(runtime, &target) : dm_fail(DM_FAIL_NOT_INCONSISTENT, NULL);
    return dm_visit_end(visit, result);
}

int dmutex_consistent(dmutex_t *mutex)
{
    if (dm_local_is(mutex))
        return dm_real.mutex_consistent(dm_local_mutex(mutex)) ? dm_fail(DM_FAIL_NOT_INCONSISTENT, NULL) : 0;
    return make_consistent(mutex);
}

/* libc's functions take the mutex as const or not const; a preload layer leaves these functions alone. */
int dmutex_getprioceiling(const dmutex_t *mutex, int *ret_ceiling)
{
    if (dm_local_is(mutex))
        return pthread_mutex_getprioceiling((const void *)mutex->dm_name, ret_ceiling) ? dm_fail(DM_FAIL_CEILING, NULL)
                                                                                       : 0;
    return dm_fail(DM_FAIL_CEILING, NULL);
}

int dmutex_setprioceiling(dmutex_t *mutex, int ceiling, int *ret_old_ceiling)
{
    if (dm_local_is(mutex))
        return dm_local_result(pthread_mutex_setprioceiling(dm_local_mutex(mutex), ceiling, ret_old_ceiling));
    return dm_fail(DM_FAIL_CEILING, NULL);
}

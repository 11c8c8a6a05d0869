/* SPDX-License-Identifier: BSD-2-Clause */
/* Lock and unlock.  Each function first checks whether the mutex is libc's; if so, libc's function does everything. */
#include "dmutex/mutex.h"

#include <errno.h>

#include "api/local.h"
#include "api/object.h"
#include "base/error.h"
#include "base/probe.h"
#include "process/calls/release.h"
#include "process/claims/fast.h"
#include "process/claims/steps.h"

/* Undoes a wrong turn of the fast path, into another mutex or past the end of a hold. */
static void put_back(void)
{
    dm_state_lock();
    dm_step_put_back(dm_runtime_peek());
    dm_state_unlock();
}

/* Stores the object's place in the table of the fast path, for the next lock. */
static void remember_hash(dmutex_t *mutex, const struct dm_target *target)
{
    if (!target->is_anonymous && __atomic_load_n(&mutex->dm_hash, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&mutex->dm_hash, dm_fast_hash(target->key), __ATOMIC_RELAXED);
}

/* For tracers: "" without a name. */
static const char *name_of(const struct dm_target *target)
{
    return target->is_anonymous ? "" : target->key + 1;
}

/*
 * The visit is outermost: cancellation is disabled before the object is first read, and errno restored at the very end.
 * dm_object_open() refuses a bad object before it starts a runtime.
 */
static int acquire(dmutex_t *mutex, bool may_wait, const struct dm_deadline *deadline)
{
    struct dm_visit visit = dm_visit_begin();
    struct dm_runtime *runtime;
    struct dm_target target;
    int result;

    if (dm_self_fast.misled)
        put_back();
    result = dm_object_open(mutex, may_wait ? deadline : NULL, &runtime, &target);
    if (!result) {
        remember_hash(mutex, &target);
        DM_PROBE_WAIT(name_of(&target));
        result = dm_acquire(runtime, &target, may_wait, deadline);
        if (result == 0 || result == EOWNERDEAD)
            DM_PROBE_ACQUIRED(name_of(&target), result);
    }
    return dm_visit_end(visit, result);
}

/* Not inlined, like unlock_other(), so that dmutex_lock() and dmutex_unlock() need no stack frame for a plain mutex. */
static __attribute__((__noinline__)) int lock_other(dmutex_t *mutex)
{
    if (dm_local_is(mutex))
        return dm_local_result(dm_real.mutex_lock(dm_local_mutex(mutex)));
    return acquire(mutex, true, &dm_deadline_endless);
}

/*
 * A plain mutex needs no visit: libc's lock is no cancellation point, keeps errno, and cannot fail for this kind.  NULL
 * goes the other way, and fails with EINVAL.
 */
int dmutex_lock(dmutex_t *mutex)
{
    if (dm_local_is_plain(mutex))
        return dm_real.mutex_lock(dm_local_mutex(mutex));
    return mutex && dm_fast_lock(mutex) ? 0 : lock_other(mutex);
}

/* Does not wait in the queue, but does wait for the network: the runtime limits the question to command_timeout. */
int dmutex_trylock(dmutex_t *mutex)
{
    if (dm_local_is(mutex))
        return dm_local_result(dm_real.mutex_trylock(dm_local_mutex(mutex)));
    if (mutex && dm_fast_lock(mutex))
        return 0;
    return acquire(mutex, false, &dm_deadline_endless);
}

/*
 * A free mutex is locked even with an invalid time, which is detected only when there is a reason to wait (POSIX,
 * pthread_mutex_timedlock(): "the validity of the abstime parameter need not be checked if the mutex can be locked
 * immediately").  EDEADLK wins over EINVAL, because no time would make that call succeed.
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

/*
 * The clock is checked first, because a time has a meaning only on its clock.  So a bad clock is reported before a bad
 * object: both are EINVAL, and only the sentence differs.
 */
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

/* libc checks clock and time of a local mutex itself, in its own order. */
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

/*
 * Never starts a runtime: a process without one holds nothing.  A bad object (EINVAL) wins over EPERM.  The object is
 * not touched after dm_object_read(), because another thread may destroy it as soon as the release is sent.
 */
static int release(dmutex_t *mutex)
{
    struct dm_visit visit = dm_visit_begin();
    struct dm_runtime *runtime = dm_runtime_peek();
    struct dm_target target;
    int result = dm_object_read(mutex, runtime, &target);

    if (!result)
        result = runtime ? dm_release(runtime, target.key) : dm_fail(DM_FAIL_NOT_OWNER, NULL);
    if (!result)
        DM_PROBE_RELEASED(name_of(&target));
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
    if (dm_local_is_plain(mutex))
        return dm_real.mutex_unlock(dm_local_mutex(mutex));
    return mutex && dm_fast_unlock(mutex) ? 0 : unlock_other(mutex);
}

/*
 * Whether the mutex is robust is known here, so the server is not asked about it.  Without a runtime the process holds
 * nothing, so nothing can be made consistent.
 */
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

/* libc can fail only with EINVAL here, for which this library has one sentence. */
int dmutex_consistent(dmutex_t *mutex)
{
    if (dm_local_is(mutex))
        return dm_real.mutex_consistent(dm_local_mutex(mutex)) ? dm_fail(DM_FAIL_NOT_INCONSISTENT, NULL) : 0;
    return make_consistent(mutex);
}

/*
 * Calls libc directly: a preload layer does not replace these functions, so the table of base/real.h does not have
 * them.  A mutex of the server is not read: none has a ceiling.
 */
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

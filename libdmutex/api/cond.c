/* SPDX-License-Identifier: BSD-2-Clause */
#include "dmutex/cond.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/binding.h"
#include "api/local.h"
#include "api/object.h"
#include "base/error.h"
#include "process/calls/condition.h"
#include "process/life/runtime.h"
#include "store/verdict.h"

/* ---- the object -------------------------------------------------------------------------- */

/*
 * As in init.c, the object is built separately and copied last. libc's variable is always initialised, because a local
 * mutex may be used to wait on a named condition; copying it is valid as long as no thread waits.
 */
static int set_up(dcond_t *cond, const char *name, const dcondattr_t *attr)
{
    dcond_t fresh = { .dm_state = 0 };
    int error;

    if (!cond)
        return dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);
    if (attr && attr->dm_state != DM_MARK_ATTR)
        return dm_fail(DM_FAIL_BAD_ATTR, NULL);
    if (attr) {
        fresh.dm_clock = (uint8_t)attr->dm_clock;
        fresh.dm_pshared = attr->dm_pshared;
    }
    dm_object_keep_name(&fresh.dm_named, fresh.dm_name, sizeof fresh.dm_name, name);
    error = dm_local_init_cond(&fresh, attr);
    if (!error)
        *cond = fresh;
    return error;
}

int dcond_init(dcond_t *cond, const dcondattr_t *attr)
{
    return set_up(cond, attr && attr->dm_named == 1 ? attr->dm_name : NULL, attr);
}

int dcond_init_np(dcond_t *cond, const char *name, const dcondattr_t *attr)
{
    int error;

    if (!name)
        return dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);
    error = dm_object_check_name(name, DMUTEX_PRIVATE_NAME_ROOM);
    return error ? error : set_up(cond, name, attr);
}

static int check(const dcond_t *cond)
{
    if (cond->dm_state == DM_MARK_DESTROYED)
        return dm_fail(DM_FAIL_DESTROYED, NULL);
    if ((cond->dm_state != 0 && cond->dm_state != DMUTEX_PRIVATE_STATIC_COND) || cond->dm_pshared > 1 ||
        cond->dm_named > 1 || (cond->dm_clock != CLOCK_REALTIME && cond->dm_clock != CLOCK_MONOTONIC))
        return dm_fail(DM_FAIL_BAD_OBJECT, NULL);
    return cond->dm_named ? dm_object_check_name(cond->dm_name, sizeof cond->dm_name) : 0;
}

/*
 * True if libc's condition variable in the object can be used.  Checks one word, for calls that need no more: the full
 * checks copy 256 bytes, and may write the object.
 */
static bool is_usable(const dcond_t *cond)
{
    return cond && (cond->dm_state == 0 || cond->dm_state == DMUTEX_PRIVATE_STATIC_COND);
}

/*
 * Copies the object and checks the copy. 0, or an errno value, recorded.  Checks for NULL, then the automatic name,
 * then the bytes, as dm_object_take() does.
 */
static int take(const dcond_t *cond, dcond_t *ret_copy)
{
    int error;

    if (!cond)
        return dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);
    error = dm_object_settle_cond(cond);
    if (error)
        return error;
    dm_object_copy(cond, ret_copy);
    return check(ret_copy);
}

int dcond_getname_np(const dcond_t *cond, char *buf, size_t size)
{
    dcond_t copy;
    int error = take(cond, &copy);

    return error ? error : dm_object_copy_name(copy.dm_named, copy.dm_name, buf, size);
}

/* ---- the key of a condition -------------------------------------------------------------- */

/*
 * A condition within one call: the object, and the checked copy.  Only the id and the binding are read from the object
 * again, atomically; all else comes from the copy.
 */
struct seen {
    dcond_t *object;
    dcond_t copy;
};

/*
 * The key contains the mutex's group, so that a script may use the keys of both: in a Cluster the group decides which
 * node has them.  A private condition's key contains the process: a forked child's copy is another condition.
 */
static void write_anonymous_key(const struct seen *cond, const struct dm_runtime *runtime, const char *mutex,
                                struct dm_condition *ret_condition)
{
    char process[DM_UUID_LENGTH + 2] = "";
    uint64_t id[2];

    dm_object_make_id(dm_binding_id(cond->object), id);
    if (cond->copy.dm_pshared == PTHREAD_PROCESS_PRIVATE)
        snprintf(process, sizeof process, "%s.", runtime->ident.uuid);
    snprintf(ret_condition->key, sizeof ret_condition->key, "d~%s%016" PRIx64 "%016" PRIx64 " %.*s", process, id[0],
             id[1], dm_binding_group_length(mutex), mutex);
    snprintf(ret_condition->mutex, sizeof ret_condition->mutex, "%s", mutex);
}

/* Never true for an anonymous mutex, which is a group of its own: a named condition needs a named mutex. */
static bool is_same_group(const char *condition_name, const char *mutex)
{
    size_t length = (size_t)dm_binding_group_length(mutex) - 1;

    return mutex[0] == 'n' && strcspn(condition_name, "/") == length && memcmp(condition_name, mutex + 1, length) == 0;
}

/* For a named condition. */
static void write_key(const struct seen *cond, struct dm_condition *ret_condition)
{
    ret_condition->key[0] = 'c';
    memcpy(ret_condition->key + 1, cond->copy.dm_name, strlen(cond->copy.dm_name) + 1);
    ret_condition->mutex[0] = '\0';
}

/*
 * Finds the condition for a signaller.  False: nobody has ever waited on it, because an anonymous condition is on no
 * server before the first wait.
 */
static bool find(const struct seen *cond, const struct dm_runtime *runtime, struct dm_condition *ret_condition)
{
    char mutex[DM_MUTEX_KEY_ROOM];

    ret_condition->is_anonymous = !cond->copy.dm_named;
    if (cond->copy.dm_named) {
        write_key(cond, ret_condition);
        return true;
    }
    if (!dm_binding_read(cond->object, mutex))
        return false;
    write_anonymous_key(cond, runtime, mutex, ret_condition);
    return true;
}

/*
 * No waiter may be left under the current key of an anonymous condition.  The server decides, because waiters may be in
 * other processes.  BUSY is POSIX's undefined case of two mutexes at once, and returned as EINVAL.  Without an answer
 * the binding stays, and the wait fails with ENOLCK before the mutex is given up.
 */
static int unbind(struct dm_runtime *runtime, const struct dm_condition *condition)
{
    char reason[DM_REASON_ROOM];
    enum dm_verdict verdict = dm_condition_drop(runtime, condition, reason);

    if (verdict == DM_SAYS_DONE)
        return 0;
    return dm_verdict_fail(runtime->store, verdict == DM_SAYS_BUSY ? DM_SAYS_BOUND : verdict, reason);
}

/*
 * Finds the condition for a waiter with this mutex, and binds an anonymous one to it.  The old key must have no waiters
 * on the server before the new one is written, so that no signaller can miss a waiter.  The caller holds the mutex, so
 * only one correct waiter is here at a time.
 */
static int find_for(const struct seen *cond, struct dm_runtime *runtime, const char *mutex,
                    struct dm_condition *ret_condition)
{
    struct dm_condition before;
    bool was_bound = find(cond, runtime, &before);
    int result = 0;

    if (cond->copy.dm_named) {
        *ret_condition = before;
        return is_same_group(cond->copy.dm_name, mutex) ? 0 : dm_fail(DM_FAIL_GROUP, NULL);
    }
    ret_condition->is_anonymous = true;
    write_anonymous_key(cond, runtime, mutex, ret_condition);
    if (was_bound && strcmp(before.key, ret_condition->key) != 0)
        result = unbind(runtime, &before);
    if (!result && !dm_binding_write(cond->object, mutex))
        result = dm_fail(DM_FAIL_GROUP_LONG, NULL);
    return result;
}

/* ---- waiting ----------------------------------------------------------------------------- */

/*
 * For a mutex of the server.  The order decides which error wins: bad condition, bad mutex (EINVAL), not the holder
 * (EPERM), then the group and the binding.  The holder is checked before the binding, because a wrong caller must not
 * bind the condition for others; dm_condition_wait() checks again, under the lock.
 */
static DM_OWN_FRAME int look_at(dcond_t *cond, dmutex_t *mutex, struct dm_runtime *runtime,
                                struct dm_condition *ret_condition, struct dm_target *ret_target)
{
    struct seen seen = { .object = cond };
    int result = take(cond, &seen.copy);

    if (!result)
        result = dm_object_read(mutex, runtime, ret_target);
    if (!result && !(runtime && dm_condition_is_owned(runtime, ret_target->key)))
        result = dm_fail(DM_FAIL_NOT_OWNER, NULL);
    return result ? result : find_for(&seen, runtime, ret_target->key, ret_condition);
}

/* A cancellation may end only the sleep, so the caller's own state is passed down to it. */
static int wait_shared(dcond_t *cond, dmutex_t *mutex, const struct dm_deadline *deadline)
{
    struct dm_visit visit = dm_visit_begin();
    struct dm_runtime *runtime = dm_runtime_peek();
    struct dm_condition condition;
    struct dm_target target;
    int result = look_at(cond, mutex, runtime, &condition, &target);

    if (!result)
        result = dm_condition_wait(runtime, &condition, &target, deadline, visit.cancel_state);
    return dm_visit_end(visit, result);
}

/*
 * An invalid time is EINVAL at once, unlike for lock, where it matters only if there is a reason to wait: a wait on a
 * condition always waits.  A time in the past is not an error here: the wait gives the mutex up, takes it again and
 * returns ETIMEDOUT.
 */
static int timedwait_shared(dcond_t *cond, dmutex_t *mutex, clockid_t clock_id, const struct timespec *abstime)
{
    struct dm_deadline deadline = { .clock = clock_id };

    if (clock_id != CLOCK_REALTIME && clock_id != CLOCK_MONOTONIC)
        return dm_fail(DM_FAIL_BAD_CLOCK, NULL);
    if (abstime->tv_nsec < 0 || abstime->tv_nsec >= DM_NS_PER_S)
        return dm_fail(DM_FAIL_BAD_TIME, NULL);
    deadline.at = *abstime;
    return wait_shared(cond, mutex, &deadline);
}

/*
 * True if the mutex is libc's; then the wait is libc's, too, whatever name the condition has. libc's wait is a
 * cancellation point itself, so there is no visit.  A condition that is not usable goes the other way, where take()
 * reports why.
 */
static bool is_local_wait(const dcond_t *cond, const dmutex_t *mutex)
{
    return is_usable(cond) && dm_local_is(mutex);
}

static int finish_local(int error)
{
    return error ? dm_local_fail_wait(error) : 0;
}

int dcond_wait(dcond_t *cond, dmutex_t *mutex)
{
    if (is_local_wait(cond, mutex))
        return finish_local(dm_real.cond_wait(dm_local_cond(cond), dm_local_mutex(mutex)));
    return wait_shared(cond, mutex, &dm_deadline_endless);
}

int dcond_clockwait(dcond_t *cond, dmutex_t *mutex, clockid_t clock_id, const struct timespec *abstime)
{
    if (!abstime)
        return dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);
    if (is_local_wait(cond, mutex))
        return finish_local(dm_real.cond_clockwait(dm_local_cond(cond), dm_local_mutex(mutex), clock_id, abstime));
    return timedwait_shared(cond, mutex, clock_id, abstime);
}

/* The condition is checked before the mutex, because its clock is needed. */
int dcond_timedwait(dcond_t *cond, dmutex_t *mutex, const struct timespec *abstime)
{
    if (!cond || !abstime)
        return dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);
    if (is_local_wait(cond, mutex))
        return finish_local(dm_real.cond_timedwait(dm_local_cond(cond), dm_local_mutex(mutex), abstime));
    return timedwait_shared(cond, mutex, (clockid_t)cond->dm_clock, abstime);
}

/* ---- signalling -------------------------------------------------------------------------- */

/*
 * Starts a runtime if needed: threads of other processes may wait on a named or shared condition.  The mutex need not
 * be held (POSIX), so it is not checked.
 */
static int signal_shared(dcond_t *cond, bool is_broadcast)
{
    struct dm_visit visit = dm_visit_begin();
    struct seen seen = { .object = cond };
    struct dm_condition condition;
    struct dm_runtime *runtime;
    int result = take(cond, &seen.copy);

    if (!result)
        result = dm_runtime_get(NULL, &runtime);
    if (!result && find(&seen, runtime, &condition))
        result = dm_condition_signal(runtime, &condition, is_broadcast);
    return dm_visit_end(visit, result);
}

/*
 * True if only threads of this process can wait, with local mutexes.  The server is always asked about a named
 * condition, and about an anonymous one after the first wait with a mutex of the server.  A private condition that is
 * used only with local mutexes needs no network.
 */
static bool is_local(const dcond_t *cond)
{
    return is_usable(cond) && !cond->dm_named && !dm_binding_exists(cond);
}

/*
 * Wakes waiters with a local mutex and waiters with a mutex of the server; a program uses one of the two kinds at a
 * time. libc comes first, because its call cannot block; a failure of the server does not undo it.
 */
int dcond_signal(dcond_t *cond)
{
    int error = is_usable(cond) ? dm_real.cond_signal(dm_local_cond(cond)) : 0;

    if (error)
        return dm_local_fail(error);
    return is_local(cond) ? 0 : signal_shared(cond, false);
}

int dcond_broadcast(dcond_t *cond)
{
    int error = is_usable(cond) ? dm_real.cond_broadcast(dm_local_cond(cond)) : 0;

    if (error)
        return dm_local_fail(error);
    return is_local(cond) ? 0 : signal_shared(cond, true);
}

/* ---- ending ------------------------------------------------------------------------------ */

/* Starts a runtime only if another process may have waiters: if the condition is shared, and was bound at some time. */
static int end_shared(struct seen *seen)
{
    struct dm_runtime *runtime = dm_runtime_peek();
    struct dm_condition condition;
    int error = 0;

    if (!runtime && seen->copy.dm_pshared == PTHREAD_PROCESS_SHARED && dm_binding_exists(seen->object))
        error = dm_runtime_get(NULL, &runtime); /* other processes may wait on the condition */
    if (!error && runtime && find(seen, runtime, &condition))
        error = dm_condition_end(runtime, &condition);
    return error;
}

/*
 * libc's destroy waits for waiters that were woken and have not left yet.  It cannot be undone, so the server is asked
 * first: it can report that the condition is in use (EBUSY).  The mark comes last.
 */
int dcond_destroy(dcond_t *cond)
{
    struct dm_visit visit = dm_visit_begin();
    struct seen seen = { .object = cond };
    int error = take(cond, &seen.copy);

    if (!error && !is_local(cond))
        error = end_shared(&seen);
    if (!error)
        error = dm_local_result(dm_real.cond_destroy(dm_local_cond(cond)));
    if (!error)
        cond->dm_state = DM_MARK_DESTROYED;
    return dm_visit_end(visit, error);
}

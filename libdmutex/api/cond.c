/* SPDX-License-Identifier: BSD-2-Clause */
#include "dmutex/cond.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/binding.h"
#include "api/object.h"
#include "base/error.h"
#include "runtime/condition.h"

/* ---- the object -------------------------------------------------------------------------- */

static int set_up(dcond_t *cond, const char *name, const dcondattr_t *attr)
{
    if (!cond)
        return dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);
    if (attr && attr->dm_state != DM_MARK_ATTR)
        return dm_fail(DM_FAIL_BAD_ATTR, NULL);
    memset(cond, 0, sizeof *cond);
    if (attr) {
        cond->dm_clock = attr->dm_clock;
        cond->dm_pshared = attr->dm_pshared;
    }
    dm_object_keep_name(&cond->dm_named, cond->dm_name, name);
    return 0;
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
    if (!cond)
        return dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);
    if (cond->dm_state == DM_MARK_DESTROYED)
        return dm_fail(DM_FAIL_DESTROYED, NULL);
    if (cond->dm_state != 0 || cond->dm_pshared > 1 || cond->dm_named > 1 ||
        (cond->dm_clock != CLOCK_REALTIME && cond->dm_clock != CLOCK_MONOTONIC))
        return dm_fail(DM_FAIL_BAD_OBJECT, NULL);
    return cond->dm_named ? dm_object_check_name(cond->dm_name, sizeof cond->dm_name) : 0;
}

int dcond_getname_np(const dcond_t *cond, char *buf, size_t size)
{
    int error = check(cond);

    return error ? error : dm_object_copy_name(cond->dm_named, cond->dm_name, buf, size);
}

/* ---- its key ----------------------------------------------------------------------------- */

/* The group of a mutex's key: the letter and the group's name, or all of an anonymous mutex. */
static int group_length(const char *mutex)
{
    return (int)(mutex[0] == 'n' ? strcspn(mutex, "/") : strlen(mutex));
}

static void write_anonymous_key(dcond_t *cond, const struct dm_runtime *runtime, const char *mutex,
                                struct dm_condition *ret_condition)
{
    char process[DM_UUID_LENGTH + 2] = "";
    uint64_t id[2];

    dm_object_make_id(cond->dm_id, id);
    if (cond->dm_pshared == PTHREAD_PROCESS_PRIVATE)
        snprintf(process, sizeof process, "%s.", runtime->ident.uuid);
    snprintf(ret_condition->key, sizeof ret_condition->key, "d~%s%016" PRIx64 "%016" PRIx64 " %.*s",
             process, id[0], id[1], group_length(mutex), mutex);
    snprintf(ret_condition->mutex, sizeof ret_condition->mutex, "%s", mutex);
}

static bool is_same_group(const char *condition_name, const char *mutex)
{
    size_t length = (size_t)group_length(mutex) - 1;

    return mutex[0] == 'n' && strcspn(condition_name, "/") == length &&
           memcmp(condition_name, mutex + 1, length) == 0;
}

/* Of a named condition. */
static void write_key(const dcond_t *cond, struct dm_condition *ret_condition)
{
    ret_condition->key[0] = 'c';
    memcpy(ret_condition->key + 1, cond->dm_name, strlen(cond->dm_name) + 1);
    ret_condition->mutex[0] = '\0';
}

/*
 * The condition as a signaller finds it.  False: nobody ever waited on it, for an anonymous one is
 * nowhere before.
 */
static bool find(dcond_t *cond, const struct dm_runtime *runtime,
                 struct dm_condition *ret_condition)
{
    char mutex[DM_MUTEX_KEY_ROOM];

    ret_condition->is_anonymous = !cond->dm_named;
    if (cond->dm_named) {
        write_key(cond, ret_condition);
        return true;
    }
    if (!dm_binding_read(cond, mutex))
        return false;
    write_anonymous_key(cond, runtime, mutex, ret_condition);
    return true;
}

/* Nobody may be left who waits under the key that an anonymous condition has now. */
static int unbind(struct dm_runtime *runtime, const struct dm_condition *condition)
{
    char reason[DM_REASON_ROOM];

    switch (dm_condition_drop(runtime, condition, reason)) {
    case DM_SAYS_DONE:
        return 0;
    case DM_SAYS_BUSY:
        return dm_fail(DM_FAIL_BOUND, NULL);
    case DM_SAYS_REFUSED:
        return dm_fail(DM_FAIL_REFUSED, "%s", reason);
    default:
        return dm_fail(DM_FAIL_NO_ANSWER, "%s", reason);
    }
}

/* The condition as a waiter with this mutex finds it: an anonymous one is bound to it. */
static int find_for(dcond_t *cond, struct dm_runtime *runtime, const char *mutex,
                    struct dm_condition *ret_condition)
{
    struct dm_condition before;
    bool was_bound = find(cond, runtime, &before);
    int result = 0;

    if (cond->dm_named) {
        *ret_condition = before;
        return is_same_group(cond->dm_name, mutex) ? 0 : dm_fail(DM_FAIL_GROUP, NULL);
    }
    ret_condition->is_anonymous = true;
    write_anonymous_key(cond, runtime, mutex, ret_condition);
    if (was_bound && strcmp(before.mutex, mutex) == 0)
        return 0;
    if (was_bound && strcmp(before.key, ret_condition->key) != 0)
        result = unbind(runtime, &before);
    if (!result)
        dm_binding_write(cond, mutex);
    return result;
}

/* ---- waiting ----------------------------------------------------------------------------- */

static int wait(dcond_t *cond, dmutex_t *mutex, const struct dm_deadline *deadline)
{
    struct dm_visit visit = dm_visit_begin();
    struct dm_runtime *runtime = dm_runtime_peek();
    struct dm_condition condition;
    struct dm_target target;
    int result = check(cond);

    if (!result)
        result = dm_object_read(mutex, runtime, &target);
    if (!result && !(runtime && dm_condition_is_owned(runtime, target.key)))
        result = dm_fail(DM_FAIL_NOT_OWNER, NULL);
    if (!result)
        result = find_for(cond, runtime, target.key, &condition);
    if (!result)
        result = dm_condition_wait(runtime, &condition, &target, deadline, visit.cancel_state);
    return dm_visit_end(visit, result);
}

int dcond_wait(dcond_t *cond, dmutex_t *mutex)
{
    return wait(cond, mutex, &dm_deadline_endless);
}

int dcond_clockwait(dcond_t *cond, dmutex_t *mutex, clockid_t clock_id,
                    const struct timespec *abstime)
{
    struct dm_deadline deadline = { .clock = clock_id };

    if (clock_id != CLOCK_REALTIME && clock_id != CLOCK_MONOTONIC)
        return dm_fail(DM_FAIL_BAD_CLOCK, NULL);
    if (!abstime)
        return dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);
    if (abstime->tv_nsec < 0 || abstime->tv_nsec >= DM_NS_PER_S)
        return dm_fail(DM_FAIL_BAD_TIME, NULL);
    deadline.at = *abstime;
    return wait(cond, mutex, &deadline);
}

int dcond_timedwait(dcond_t *cond, dmutex_t *mutex, const struct timespec *abstime)
{
    int error = check(cond);

    return error ? error : dcond_clockwait(cond, mutex, (clockid_t)cond->dm_clock, abstime);
}

/* ---- signalling -------------------------------------------------------------------------- */

static int signal_some(dcond_t *cond, bool is_broadcast)
{
    struct dm_visit visit = dm_visit_begin();
    struct dm_condition condition;
    struct dm_runtime *runtime;
    int result = check(cond);

    if (!result)
        result = dm_runtime_get(&runtime);
    if (!result && find(cond, runtime, &condition))
        result = dm_condition_signal(runtime, &condition, is_broadcast);
    return dm_visit_end(visit, result);
}

int dcond_signal(dcond_t *cond)
{
    return signal_some(cond, false);
}

int dcond_broadcast(dcond_t *cond)
{
    return signal_some(cond, true);
}

/* ---- ending ------------------------------------------------------------------------------ */

int dcond_destroy(dcond_t *cond)
{
    struct dm_visit visit = dm_visit_begin();
    struct dm_runtime *runtime = dm_runtime_peek();
    struct dm_condition condition;
    int error = check(cond);

    if (!error && !runtime && cond->dm_pshared == PTHREAD_PROCESS_SHARED && cond->dm_binding)
        error = dm_runtime_get(&runtime); /* others may wait on it */
    if (!error && runtime && find(cond, runtime, &condition))
        error = dm_condition_end(runtime, &condition);
    if (!error)
        cond->dm_state = DM_MARK_DESTROYED;
    return dm_visit_end(visit, error);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Initialising, destroying and naming objects. */
#include <errno.h>
#include <string.h>

#include "api/local.h"
#include "base/error.h"
#include "base/rank.h"
#include "dmutex/mutex.h"
#include "process/calls/release.h"
#include "process/claims/steps.h"
#include "process/keep/returns.h"
#include "process/life/runtime.h"

#include "api/object.h"

/*
 * There are no priorities across hosts; the drop-in header treats inheritance as a hint. Called only for mutexes of the
 * server: for a local mutex libc decides, and its error is returned.
 */
static int check_protocol(const dmutexattr_t *attr)
{
    if (attr->dm_protocol == PTHREAD_PRIO_NONE || (attr->dm_protocol == PTHREAD_PRIO_INHERIT && attr->dm_hint))
        return 0;
    return dm_fail(DM_FAIL_PROTOCOL, NULL);
}

static void copy_attributes(dmutex_t *mutex, const dmutexattr_t *attr)
{
    mutex->dm_lease_ms = attr->dm_lease_ms;
    mutex->dm_maxhold_ms = attr->dm_maxhold_ms;
    mutex->dm_linger_ms = attr->dm_linger_ms;
    mutex->dm_type = attr->dm_type;
    mutex->dm_robust = attr->dm_robust;
    mutex->dm_pshared = attr->dm_pshared;
    mutex->dm_fairness = attr->dm_fairness;
    mutex->dm_protocol = attr->dm_protocol;
}

/*
 * Builds the mutex separately and copies it last, so that a failure leaves the object as it was. libc's mutex is
 * initialised in `fresh` and copied with it: a glibc mutex that no thread has locked does not contain its own address.
 * The caller has checked the name. An object in use is not detected (POSIX: undefined), because a caller may reuse
 * memory without destroying the object.
 */
static int set_up(dmutex_t *mutex, const char *name, const dmutexattr_t *attr)
{
    dmutex_t fresh = { .dm_state = 0 };
    int error = 0;

    if (!mutex)
        return dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);
    if (attr && attr->dm_state != DM_MARK_ATTR)
        return dm_fail(DM_FAIL_BAD_ATTR, NULL);
    if (attr)
        copy_attributes(&fresh, attr);
    dm_object_keep_name(&fresh.dm_named, fresh.dm_name, sizeof fresh.dm_name, name);
    if (dm_local_is(&fresh))
        error = dm_local_init_mutex(&fresh, attr);
    else if (attr)
        error = check_protocol(attr);
    if (!error)
        *mutex = fresh;
    return error;
}

/* set_up() checks the mark of the attributes before the name is read through the pointer. */
int dmutex_init(dmutex_t *mutex, const dmutexattr_t *attr)
{
    return set_up(mutex, attr && attr->dm_named == 1 ? attr->dm_name : NULL, attr);
}

int dmutex_init_np(dmutex_t *mutex, const char *name, const dmutexattr_t *attr)
{
    int error;

    if (!name)
        return dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);
    error = dm_object_check_name(name, DMUTEX_PRIVATE_NAME_ROOM);
    return error ? error : set_up(mutex, name, attr);
}

int dmutex_getname_np(const dmutex_t *mutex, char *buf, size_t size)
{
    dmutex_t copy;
    int error = dm_object_take(mutex, &copy);

    return error ? error : dm_object_copy_name(copy.dm_named, copy.dm_name, buf, size);
}

/* True if a thread of this process holds the name or waits for it. State lock held. */
static bool is_used_here(const struct dm_name *name)
{
    const struct dm_claim *claim = name->claims;

    dm_assert_held(DM_RANK_STATE);
    while (claim && !dm_hold_is_in_use(&claim->hold))
        claim = claim->next_of_name;
    return claim != NULL || name->line.first != NULL;
}

/*
 * Closes a lost hold of the caller, which has no more use for the claim. Another thread's lost hold stays, because its
 * unlock must still report the loss. State lock held.
 */
static void close_lost(struct dm_runtime *runtime, struct dm_name *name)
{
    struct dm_claim *claim = dm_name_hold(name, dm_self_get()->serial);

    dm_assert_held(DM_RANK_STATE);
    if (claim && claim->hold.phase == DM_LOST)
        dm_step_kind(runtime, claim, DM_EV_CLOSED);
}

/*
 * Pins the record, if there may be something to clean up here or on the server: an anonymous mutex that was used leaves
 * keys, and a robust mutex may be not recoverable. Any other mutex without a record in this process needs no command.
 * State lock held.
 */
static int take_record(struct dm_runtime *runtime, const struct dm_target *target, bool is_used,
                       struct dm_name **ret_name)
{
    struct dm_name *name = dm_registry_find(&runtime->registry, target->key);

    dm_assert_held(DM_RANK_STATE);
    if (!name && (target->is_anonymous ? is_used : target->is_robust))
        name = dm_registry_name(&runtime->registry, target->key);
    if (name) {
        dm_step_end_keeping(runtime, name);
        dm_registry_pin(name); /* pinned first, because closing a lost hold may free a record that is to be forgotten */
        close_lost(runtime, name);
        if (is_used_here(name)) {
            dm_registry_unpin(&runtime->registry, name);
            return dm_fail(DM_FAIL_IN_USE, NULL);
        }
    }
    *ret_name = name;
    return 0;
}

/*
 * On the server, deletes an anonymous mutex, and resets one that is not recoverable. Pending releases come first: a
 * hold that the server still knows would make an anonymous mutex busy. Only "busy" is a failure: without the server the
 * remaining keys expire, and destroy returns 0 (errors.md).
 */
static int end_on_store(struct dm_runtime *runtime, const struct dm_target *target, const struct dm_name *name)
{
    const struct dm_question question = { .op = DM_OP_DROP,
                                          .place = name->place,
                                          .is_anonymous = target->is_anonymous };
    struct dm_deadline deadline = dm_runtime_call_deadline(runtime);
    char reason[DM_REASON_ROOM] = "";
    enum dm_verdict verdict;

    dm_returns_await(runtime, name, &deadline);
    if (!target->is_anonymous && !target->is_robust && !name->is_not_recoverable)
        return 0;
    deadline = dm_runtime_call_deadline(runtime);
    verdict = dm_store_ask(runtime->store, &question, &deadline, reason).verdict;
    return verdict == DM_SAYS_BUSY && target->is_anonymous ? dm_fail(DM_FAIL_IN_USE, "by another process") : 0;
}

/*
 * STATE is released during the question; the pin keeps the record. A thread that locks in the meantime breaks POSIX's
 * rule for destroy, but does not harm the record.
 */
static int end(struct dm_runtime *runtime, const struct dm_target *target, bool is_used)
{
    struct dm_name *name = NULL;
    int error;

    dm_state_lock();
    error = take_record(runtime, target, is_used, &name);
    dm_state_unlock();
    if (error || !name)
        return error;
    error = end_on_store(runtime, target, name);
    dm_state_lock();
    if (!error)
        dm_registry_forget(&runtime->registry, name);
    dm_registry_unpin(&runtime->registry, name);
    dm_state_unlock();
    return error;
}

/*
 * libc comes first: if the mutex is locked, it returns EBUSY, and the object stays as it was. dm_named is changed, too,
 * because dm_local_is() reads only that byte and dm_pshared: the next call then goes the other way, and finds the mark.
 */
static int destroy_local(dmutex_t *mutex)
{
    int error = dm_real.mutex_destroy(dm_local_mutex(mutex));

    if (error)
        return error == EBUSY ? dm_fail(DM_FAIL_IN_USE, NULL) : dm_local_fail(error);
    mutex->dm_state = DM_MARK_DESTROYED;
    mutex->dm_named = DM_NAMED_DESTROYED;
    return 0;
}

/*
 * The mark is written last, so that a mutex that is in use (EBUSY) stays usable. A runtime is started only for an
 * anonymous mutex that other processes may have used; without a runtime, this process has used none.
 */
static int destroy_shared(dmutex_t *mutex)
{
    struct dm_runtime *runtime = dm_runtime_peek();
    struct dm_target target;
    dmutex_t copy;
    int error = dm_object_take_shared(mutex, &copy);
    bool is_used = !error && copy.dm_id[0] != 0; /* some process has locked the anonymous mutex */

    if (is_used && !runtime && copy.dm_pshared == PTHREAD_PROCESS_SHARED)
        error = dm_runtime_get(NULL, &runtime); /* it may be another process, which may hold the mutex */
    if (!error)
        error = dm_object_read(mutex, runtime, &target);
    if (!error && runtime)
        error = end(runtime, &target, is_used);
    if (!error) {
        mutex->dm_state = DM_MARK_DESTROYED;
        mutex->dm_hash = 0;
    }
    return error;
}

int dmutex_destroy(dmutex_t *mutex)
{
    struct dm_visit visit;

    if (dm_local_is(mutex))
        return destroy_local(mutex);
    visit = dm_visit_begin();
    return dm_visit_end(visit, destroy_shared(mutex));
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/object.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "api/local.h"
#include "base/error.h"
#include "base/log.h"
#include "names/automatic.h"
#include "process/life/runtime.h"

/* The public header spells these numbers out, because it must compile without feature macros. */
_Static_assert(sizeof(dmutex_t) == 256 && _Alignof(dmutex_t) == 8, "the size of dmutex_t is part of the ABI");
_Static_assert(sizeof(dcond_t) == 256 && _Alignof(dcond_t) == 8, "the size of dcond_t is part of the ABI");
_Static_assert(sizeof(dmutexattr_t) == 256 && sizeof(dcondattr_t) == 256, "the sizes are part of the ABI");
_Static_assert(PTHREAD_MUTEX_NORMAL == 0 && PTHREAD_MUTEX_DEFAULT == 0, "DMUTEX_INITIALIZER");
_Static_assert(PTHREAD_MUTEX_RECURSIVE == 1, "DMUTEX_RECURSIVE_INITIALIZER");
_Static_assert(PTHREAD_MUTEX_ERRORCHECK == 2, "DMUTEX_ERRORCHECK_INITIALIZER");
_Static_assert(PTHREAD_MUTEX_STALLED == 0 && PTHREAD_MUTEX_ROBUST == 1, "DMUTEX_ROBUST_INITIALIZER");
_Static_assert(PTHREAD_PROCESS_PRIVATE == 0 && PTHREAD_PROCESS_SHARED == 1, "all-zero is private");

struct dm_visit dm_visit_begin(void)
{
    struct dm_visit visit = { .kept_errno = errno };

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &visit.cancel_state);
    return visit;
}

int dm_visit_end(struct dm_visit visit, int result)
{
    dm_log_deliver();
    pthread_setcancelstate(visit.cancel_state, NULL);
    errno = visit.kept_errno;
    return result;
}

/*
 * The order decides the sentence; all three are EINVAL. A literal that is too long has no NUL within the room, so
 * nothing may read beyond it.
 */
int dm_object_check_name(const char *name, size_t room)
{
    size_t length = strnlen(name, room);
    const char *slash;

    if (length == 0)
        return dm_fail(DM_FAIL_NAME_EMPTY, NULL);
    if (length > DMUTEX_NAME_MAX_NP)
        return dm_fail(DM_FAIL_NAME_LONG, NULL);
    slash = strchr(name, '/');
    if (slash && (slash == name || !slash[1]))
        return dm_fail(DM_FAIL_NAME_PART, NULL);
    return 0;
}

/*
 * Clears all of the room, so that no byte of an old name is left: an anonymous condition has its binding there, whose
 * version begins as 0.
 */
void dm_object_keep_name(uint8_t *ret_named, char *ret_room, size_t room, const char *name)
{
    memset(ret_room, 0, room);
    *ret_named = name != NULL;
    if (name)
        memcpy(ret_room, name, strnlen(name, DMUTEX_NAME_MAX_NP));
}

/* EINVAL, ENOENT, ERANGE, in this order; a failure leaves the buffer untouched. */
int dm_object_copy_name(bool is_named, const char *name, char *buf, size_t size)
{
    if (!buf)
        return dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);
    if (!is_named)
        return dm_fail(DM_FAIL_NO_NAME, NULL);
    if (strlen(name) >= size)
        return dm_fail(DM_FAIL_NAME_ROOM, NULL);
    memcpy(buf, name, strlen(name) + 1);
    return 0;
}

/*
 * Copies words and not bytes, because each lock comes here; atomically, because another process may write. The words
 * may be from different moments, so the copy is checked and not the object.
 */
void dm_object_copy(const void *object, void *ret_copy)
{
    const uint64_t *from = object;
    uint64_t *to = ret_copy;

    for (size_t i = 0; i < sizeof(dmutex_t) / sizeof *from; i++)
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

/*
 * The state comes first: a destroyed local mutex also has a dm_named out of range, and must be reported as destroyed.
 * Each field that is later used as an index or a choice is checked here, because shared memory may contain anything.
 * dm_named has been settled (it is not DM_NAMED_AUTOMATICALLY), or was refused before.
 */
static int check(const dmutex_t *mutex)
{
    if (mutex->dm_state == DM_MARK_DESTROYED)
        return dm_fail(DM_FAIL_DESTROYED, NULL);
    if ((mutex->dm_state != 0 && mutex->dm_state != DMUTEX_PRIVATE_STATIC_MUTEX) ||
        mutex->dm_type > PTHREAD_MUTEX_ADAPTIVE_NP || mutex->dm_robust > 1 || mutex->dm_pshared > 1 ||
        mutex->dm_fairness > 1 || mutex->dm_named > 1)
        return dm_fail(DM_FAIL_BAD_OBJECT, NULL);
    return mutex->dm_named ? dm_object_check_name(mutex->dm_name, sizeof mutex->dm_name) : 0;
}

/* The list of named objects has no const variables, so nothing is written to one. */
int dm_object_settle_mutex(const dmutex_t *mutex)
{
    if (__atomic_load_n(&mutex->dm_named, __ATOMIC_ACQUIRE) != DM_NAMED_AUTOMATICALLY)
        return 0;
    return dm_automatic_settle((dmutex_t *)mutex, DM_LITERAL_MUTEX);
}

int dm_object_settle_cond(const dcond_t *cond)
{
    if (__atomic_load_n(&cond->dm_named, __ATOMIC_ACQUIRE) != DM_NAMED_AUTOMATICALLY)
        return 0;
    return dm_automatic_settle((dcond_t *)cond, DM_LITERAL_COND);
}

/*
 * Checks for NULL, then the automatic name, then the bytes: settling the name writes the object, so it comes before the
 * copy.
 */
int dm_object_take(const dmutex_t *mutex, dmutex_t *ret_copy)
{
    int error;

    if (!mutex)
        return dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);
    error = dm_object_settle_mutex(mutex);
    if (error)
        return error;
    dm_object_copy(mutex, ret_copy);
    return check(ret_copy);
}

/* The mutex may be local now although it was the server's when the call began, if another thread is changing it. */
int dm_object_take_shared(const dmutex_t *mutex, dmutex_t *ret_copy)
{
    int error = dm_object_take(mutex, ret_copy);

    return error || !dm_local_is(ret_copy) ? error : dm_fail(DM_FAIL_BAD_OBJECT, NULL);
}

/*
 * Each half is written once, by the first writer in any process, so all read the same id, and a process that dies
 * leaves nothing half done.
 */
void dm_object_make_id(uint64_t id[2], uint64_t ret_id[2])
{
    uint64_t fresh[2];

    for (int i = 0; i < 2; i++)
        ret_id[i] = __atomic_load_n(&id[i], __ATOMIC_ACQUIRE);
    if (ret_id[0] && ret_id[1])
        return;
    dm_ident_random(fresh, 2);
    for (int i = 0; i < 2; i++) {
        uint64_t none = 0;

        if (__atomic_compare_exchange_n(&id[i], &none, fresh[i], false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            ret_id[i] = fresh[i];
        else
            ret_id[i] = none;
    }
}

/*
 * A private mutex's key contains the process: a forked child's copy is another mutex. Without a runtime there is no
 * uuid, and nobody uses the mutex: no id is drawn, and the key is "", which no record has.
 */
static void write_anonymous_key(dmutex_t *mutex, bool is_private, const struct dm_runtime *runtime, char *key,
                                size_t size)
{
    uint64_t id[2];

    if (!runtime) {
        key[0] = '\0';
        return;
    }
    dm_object_make_id(mutex->dm_id, id);
    if (is_private)
        snprintf(key, size, "a~%s.%016" PRIx64 "%016" PRIx64, runtime->ident.uuid, id[0], id[1]);
    else
        snprintf(key, size, "a~%016" PRIx64 "%016" PRIx64, id[0], id[1]);
}

/*
 * A private mutex comes here only with DMUTEX_PRIVATE=server. Without a runtime the lease stays 0, because nothing is
 * asked then. PTHREAD_MUTEX_ADAPTIVE_NP is a normal mutex on the server; only libc's mutexes spin adaptively.
 */
static void make_target(dmutex_t *mutex, const dmutex_t *copy, const struct dm_runtime *runtime,
                        struct dm_target *ret_target)
{
    ret_target->type = copy->dm_type == PTHREAD_MUTEX_ADAPTIVE_NP ? PTHREAD_MUTEX_NORMAL : copy->dm_type;
    ret_target->is_robust = copy->dm_robust == PTHREAD_MUTEX_ROBUST;
    ret_target->is_anonymous = !copy->dm_named;
    ret_target->lease_ms = copy->dm_lease_ms || !runtime ? copy->dm_lease_ms : runtime->settings.lease_ms;
    ret_target->own_lease_ms = copy->dm_lease_ms;
    ret_target->maxhold_ms = copy->dm_maxhold_ms;
    ret_target->linger_ms = copy->dm_linger_ms || !runtime ? copy->dm_linger_ms : runtime->settings.linger_ms;
    ret_target->is_fair = copy->dm_fairness == DMUTEX_FAIR_NP;
    if (copy->dm_named) {
        ret_target->key[0] = 'n';
        memcpy(ret_target->key + 1, copy->dm_name, strlen(copy->dm_name) + 1);
    } else {
        write_anonymous_key(mutex, copy->dm_pshared == PTHREAD_PROCESS_PRIVATE, runtime, ret_target->key,
                            sizeof ret_target->key);
    }
}

int dm_object_read(dmutex_t *mutex, const struct dm_runtime *runtime, struct dm_target *ret_target)
{
    dmutex_t copy;
    int error = dm_object_take_shared(mutex, &copy);

    if (!error)
        make_target(mutex, &copy, runtime, ret_target);
    return error;
}

/* A bad object is refused before dm_runtime_get() starts a thread and, for local:, perhaps a server. */
int dm_object_open(dmutex_t *mutex, const struct dm_deadline *deadline, struct dm_runtime **ret_runtime,
                   struct dm_target *ret_target)
{
    dmutex_t copy;
    int error = dm_object_take_shared(mutex, &copy);

    if (!error)
        error = dm_runtime_get(deadline, ret_runtime);
    if (!error)
        make_target(mutex, &copy, *ret_runtime, ret_target);
    return error;
}

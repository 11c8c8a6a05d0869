/* SPDX-License-Identifier: BSD-2-Clause */
#include "mutex.h"

#include <errno.h>

#include "module/base/real.h"
#include "module/watch/matches.h"
#include "module/watch/observe.h"
#include "module/watch/report.h"
#include "ready.h"
#include "shared/text.h"

/* glibc's bits of a mutex; they are fixed, because <pthread.h> has them in its public initialisers. */
#define KIND_TYPE 0x03
#define KIND_ROBUST 0x10
#define KIND_PRIORITY 0x60

/* ---- from the program's mutex to ours ---------------------------------------------------- */

static int type_of(int kind)
{
    switch (kind & KIND_TYPE) {
    case PTHREAD_MUTEX_RECURSIVE_NP:
        return PTHREAD_MUTEX_RECURSIVE;
    case PTHREAD_MUTEX_ERRORCHECK_NP:
        return PTHREAD_MUTEX_ERRORCHECK;
    default:
        return PTHREAD_MUTEX_NORMAL;
    }
}

static bool is_robust(const struct rule *rule, int kind)
{
    return rule->robust == ROBUST_YES || (rule->robust == ROBUST_AS_MADE && (kind & KIND_ROBUST));
}

static int set_up(struct object *object, const struct library *library, int kind)
{
    const struct rule *rule = object->rule;
    dmutexattr_t attr;

    library->attr_init(&attr);
    library->attr_settype(&attr, type_of(kind));
    library->attr_setrobust(&attr, is_robust(rule, kind) ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED);
    if (rule->lease_ms)
        library->attr_setlease(&attr, rule->lease_ms);
    if (rule->linger_ms)
        library->attr_setlinger(&attr, rule->linger_ms);
    matches_note(rule);
    return library->mutex_init(&object->mutex, object->name, &attr);
}

/* `objects_making` is held. If the object cannot be made, it stays the program's own, and the failure is reported. */
static enum object_state make(struct object *object, const struct library *library, int kind)
{
    if (kind & KIND_PRIORITY) {
        text_say(object->name, ": a mutex with a priority protocol cannot be distributed; it is left local", NULL);
        return OBJECT_REFUSED;
    }
    if (set_up(object, library, kind) != 0) {
        text_say(object->name, ": ", library->strerror(), "; it is left local", NULL);
        return OBJECT_REFUSED;
    }
    return OBJECT_READY;
}

struct object *mutex_look_for(pthread_mutex_t *mutex, enum look_use use)
{
    struct object *object = lookup_mutex(mutex);

    if (use == USE_LOCK)
        observe_mutex(mutex);
    return ready_object(object, make, mutex->__data.__kind);
}

void mutex_renew(struct object *object)
{
    __atomic_store_n(&object->state, OBJECT_NEW, __ATOMIC_RELEASE);
}

/* ---- calls ------------------------------------------------------------------------------- */

static bool is_owned(int result)
{
    return result == 0 || result == EOWNERDEAD;
}

/* With OnDown=fail a try comes first, because a try does not wait for a server that is away. */
static int lock(struct object *object, const struct library *library)
{
    int result;

    if (report_is_wanted())
        return report_lock(object, library);
    if (object->rule->on_down == DOWN_BLOCK)
        return library->mutex_lock(&object->mutex);
    result = library->mutex_trylock(&object->mutex);
    return result == EBUSY ? library->mutex_lock(&object->mutex) : result;
}

/* Ends a call that may have locked the mutex. */
static int leave(struct object *object, const struct library *library, int result)
{
    if (is_owned(result))
        report_begin_hold(object, library);
    library_leave();
    return result;
}

int mutex_lock(struct object *object)
{
    const struct library *library = library_get();

    library_enter();
    return leave(object, library, lock(object, library));
}

int mutex_trylock(struct object *object)
{
    const struct library *library = library_get();

    library_enter();
    return leave(object, library, library->mutex_trylock(&object->mutex));
}

int mutex_clocklock(struct object *object, clockid_t clock_id, const struct timespec *until)
{
    const struct library *library = library_get();

    library_enter();
    return leave(object, library, library->mutex_clocklock(&object->mutex, clock_id, until));
}

int mutex_unlock(struct object *object)
{
    const struct library *library = library_get();
    int result;

    library_enter();
    report_end_hold(object, library, false);
    result = library->mutex_unlock(&object->mutex);
    library_leave();
    return result;
}

int mutex_destroy(struct object *object)
{
    const struct library *library = library_get();
    int result;

    library_enter();
    result = library->mutex_destroy(&object->mutex);
    library_leave();
    if (result == 0)
        mutex_renew(object);
    return result;
}

/* ---- pthread's names --------------------------------------------------------------------- */

/* A separate function, so that those below need no stack frame. */
static __attribute__((noinline)) int lock_if_named(pthread_mutex_t *mutex)
{
    struct object *object = mutex_look_for(mutex, USE_LOCK);

    return object ? mutex_lock(object) : real_functions.mutex_lock(mutex);
}

static __attribute__((noinline)) int unlock_if_named(pthread_mutex_t *mutex)
{
    struct object *object = mutex_look_for(mutex, USE_OTHER);

    return object ? mutex_unlock(object) : real_functions.mutex_unlock(mutex);
}

EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    return objects_may_have_mutex(mutex) ? lock_if_named(mutex) : real_functions.mutex_lock(mutex);
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    return objects_may_have_mutex(mutex) ? unlock_if_named(mutex) : real_functions.mutex_unlock(mutex);
}

EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    struct object *object = mutex_named(mutex, USE_LOCK);

    return object ? mutex_trylock(object) : real_functions.mutex_trylock(mutex);
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict until)
{
    struct object *object = mutex_named(mutex, USE_LOCK);

    return object ? mutex_clocklock(object, CLOCK_REALTIME, until) : real_get()->mutex_timedlock(mutex, until);
}

EXPORT int pthread_mutex_clocklock(pthread_mutex_t *restrict mutex, clockid_t clock_id,
                                   const struct timespec *restrict until)
{
    struct object *object = mutex_named(mutex, USE_LOCK);

    return object ? mutex_clocklock(object, clock_id, until) : real_get()->mutex_clocklock(mutex, clock_id, until);
}

EXPORT int pthread_mutex_consistent(pthread_mutex_t *mutex)
{
    struct object *object = mutex_named(mutex, USE_OTHER);
    const struct library *library;
    int result;

    if (!object)
        return real_get()->mutex_consistent(mutex);
    library = library_get();
    library_enter();
    result = library->mutex_consistent(&object->mutex);
    library_leave();
    return result;
}

/* Also sets up the program's own mutex, whose bits say what ours must be like. */
EXPORT int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
    int result = real_get()->mutex_init(mutex, attr);
    struct object *object = result == 0 ? object_of_mutex(mutex) : NULL;

    if (object)
        mutex_renew(object);
    return result;
}

EXPORT int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    struct object *object = object_of_mutex(mutex);
    int result = 0;

    if (object && object->state == OBJECT_READY && !library_is_inside())
        result = mutex_destroy(object);
    return result ? result : real_get()->mutex_destroy(mutex);
}

/* ---- names of older glibc, which programs linked with it still use ---------------------- */

EXPORT __typeof__(pthread_mutex_lock) __pthread_mutex_lock;
EXPORT __typeof__(pthread_mutex_trylock) __pthread_mutex_trylock;
EXPORT __typeof__(pthread_mutex_unlock) __pthread_mutex_unlock;
EXPORT __typeof__(pthread_mutex_init) __pthread_mutex_init;
EXPORT __typeof__(pthread_mutex_destroy) __pthread_mutex_destroy;

int __pthread_mutex_lock(pthread_mutex_t *mutex)
{
    return pthread_mutex_lock(mutex);
}

int __pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    return pthread_mutex_trylock(mutex);
}

int __pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    return pthread_mutex_unlock(mutex);
}

int __pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
    return pthread_mutex_init(mutex, attr);
}

int __pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    return pthread_mutex_destroy(mutex);
}

/* <pthread.h> gives this function the name of the other. */
EXPORT int consistent_np(pthread_mutex_t *mutex) __asm__("pthread_mutex_consistent_np");
int consistent_np(pthread_mutex_t *mutex)
{
    return pthread_mutex_consistent(mutex);
}

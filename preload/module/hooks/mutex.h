/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls on a named mutex, in the form that the functions of pthread and of C11 need. */
#ifndef DM_PRELOAD_MUTEX_H
#define DM_PRELOAD_MUTEX_H

#include <pthread.h>

#include "module/names/library.h"
#include "module/names/lookup.h"

/* What the caller will do: --list counts locks and waits. */
enum look_use { USE_LOCK, USE_OTHER };

/*
 * The record of a mutex that is to be used as a named mutex, set up. NULL: use the program's own mutex, because no rule
 * names it, or because the thread is inside libdmutex.
 */
struct object *mutex_look_for(pthread_mutex_t *mutex, enum look_use use);

/* The same, but fast for a mutex without a name. */
static inline struct object *mutex_named(pthread_mutex_t *mutex, enum look_use use)
{
    return objects_may_have_mutex(mutex) ? mutex_look_for(mutex, use) : NULL;
}

/* As pthread_mutex_lock() and so on. */
int mutex_lock(struct object *object);
int mutex_trylock(struct object *object);
int mutex_clocklock(struct object *object, clockid_t clock_id, const struct timespec *until);
int mutex_unlock(struct object *object);

/* Called by pthread_mutex_init() and _destroy(): the kind of the mutex must be checked again. */
void mutex_renew(struct object *object);
int mutex_destroy(struct object *object);

#endif

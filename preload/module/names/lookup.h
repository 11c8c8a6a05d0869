/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the record of a named mutex or condition variable. When an object is seen for the first time, its rule may have
 * to be found: in a module that is being loaded, or in a mapping.
 */
#ifndef DM_PRELOAD_LOOKUP_H
#define DM_PRELOAD_LOOKUP_H

#include <pthread.h>

#include "objects.h"

/* Starts the search; called by the module's constructor, or by the first of the module's calls. */
void lookup_begin(void);

/* The record of a named object, or NULL. */
struct object *lookup_mutex(const pthread_mutex_t *mutex);
struct object *lookup_condition(const pthread_cond_t *condition);

/* The same, but fast for an object without a name. */
static inline struct object *object_of_mutex(const pthread_mutex_t *mutex)
{
    return objects_may_have_mutex(mutex) ? lookup_mutex(mutex) : NULL;
}

static inline struct object *object_of_condition(const pthread_cond_t *condition)
{
    return objects_may_have_condition(condition) ? lookup_condition(condition) : NULL;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The binding of an anonymous condition: the first waiter writes the mutex's key into the object, where a
 * signaller of another process finds the mutex.  A key without room in the object is written without its
 * leaf; then the server names the mutex at the first signal.
 *
 * Lies in the place of the name, with the condition's id before it.
 */
#ifndef DM_API_BINDING_H
#define DM_API_BINDING_H

#include "dmutex/types.h"
#include "store/calls.h"

/* The length of the group in a mutex's key, with the letter before the group: all of an anonymous mutex. */
int dm_binding_group_length(const char *mutex);

/* The condition's id, for dm_object_make_id(). */
uint64_t *dm_binding_id(dcond_t *cond);

/* True if any binding was ever written.  One load. */
bool dm_binding_exists(const dcond_t *cond);

/* The key of the mutex, or of the mutex's group.  False if no binding was ever written, or nonsense. */
bool dm_binding_read(const dcond_t *cond, char ret_mutex[DM_MUTEX_KEY_ROOM]);

/* Binds the condition, unless bound so already.  False if the group's name has no room in the object. */
bool dm_binding_write(dcond_t *cond, const char *mutex);

#endif

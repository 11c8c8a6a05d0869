/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The binding of an anonymous condition: the first waiter writes the mutex's key into the object, where a signaller in
 * another process finds it.  A key that is too long for the object is written without its leaf; the server then names
 * the mutex at the first signal.
 *
 * It takes the place of the name, after the condition's id.
 */
#ifndef DM_API_BINDING_H
#define DM_API_BINDING_H

#include "dmutex/types.h"
#include "store/calls.h"

/*
 * The length of the group in a mutex's key, including the letter before it; for an anonymous mutex, of the whole key.
 */
int dm_binding_group_length(const char *mutex);

/* The condition's id, for dm_object_make_id(). */
uint64_t *dm_binding_id(dcond_t *cond);

/* True if a binding was ever written.  Costs one load. */
bool dm_binding_exists(const dcond_t *cond);

/* Reads the key of the mutex, or of its group.  False if no binding was ever written, or it is invalid. */
bool dm_binding_read(const dcond_t *cond, char ret_mutex[DM_MUTEX_KEY_ROOM]);

/* Binds the condition to the mutex, unless it is already.  False if the group's name does not fit into the object. */
bool dm_binding_write(dcond_t *cond, const char *mutex);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an anonymous condition is bound to: its first waiter writes the mutex's key into the object,
 * for signallers who know no more than the object, in whatever process.
 */
#ifndef DM_API_BINDING_H
#define DM_API_BINDING_H

#include "dmutex/types.h"
#include "redis/store.h"

/* False if nothing was ever written. */
bool dm_binding_read(const dcond_t *cond, char ret_mutex[DM_MUTEX_KEY_ROOM]);

void dm_binding_write(dcond_t *cond, const char *mutex);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The module's own locks. A thread that was cancelled while it held one would leave it locked forever, and messages,
 * files and calls of libdmutex are cancellation points. So cancellation is disabled while a thread has such a lock.
 */
#ifndef DM_PRELOAD_OWN_LOCK_H
#define DM_PRELOAD_OWN_LOCK_H

#include <pthread.h>

#include "real.h"

/* Returns the previous cancellation state, for own_unlock(). */
static inline int own_lock(pthread_mutex_t *lock)
{
    int state;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    real_get()->mutex_lock(lock);
    return state;
}

static inline void own_unlock(pthread_mutex_t *lock, int state)
{
    real_get()->mutex_unlock(lock);
    pthread_setcancelstate(state, NULL);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The module's own locks. A thread that is cancelled under one would leave it locked for ever, and messages, files and
 * what libdmutex does are cancellation points: so cancellation is off while a thread has such a lock.
 */
#ifndef DM_PRELOAD_OWN_LOCK_H
#define DM_PRELOAD_OWN_LOCK_H

#include <pthread.h>

#include "real.h"

/* Returns the cancellation state of before, for own_unlock(). */
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

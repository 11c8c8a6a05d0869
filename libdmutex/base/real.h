/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libc's own pthread functions, even if a preloaded library has replaced them.
 *
 * The library's locks, and libc's mutexes inside local objects, must not come back to this library through a preload
 * layer that remaps mutexes.  The table is valid from the first instruction on: it starts with the functions that the
 * linker bound, and a constructor replaces them by libc's own.
 */
#ifndef DM_BASE_REAL_H
#define DM_BASE_REAL_H

#include <pthread.h>

struct dm_real {
    int (*mutex_lock)(pthread_mutex_t *);
    int (*mutex_trylock)(pthread_mutex_t *);
    int (*mutex_unlock)(pthread_mutex_t *);
    int (*mutex_init)(pthread_mutex_t *, const pthread_mutexattr_t *);
    int (*mutex_destroy)(pthread_mutex_t *);
    int (*mutex_timedlock)(pthread_mutex_t *, const struct timespec *);
    int (*mutex_clocklock)(pthread_mutex_t *, clockid_t, const struct timespec *);
    int (*mutex_consistent)(pthread_mutex_t *);
    int (*cond_init)(pthread_cond_t *, const pthread_condattr_t *);
    int (*cond_destroy)(pthread_cond_t *);
    int (*cond_wait)(pthread_cond_t *, pthread_mutex_t *);
    int (*cond_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    int (*cond_clockwait)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
    int (*cond_signal)(pthread_cond_t *);
    int (*cond_broadcast)(pthread_cond_t *);
};

extern struct dm_real dm_real;

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libc's own pthread functions, whatever has been preloaded in front of them.
 *
 * Our own locks must not come back to us through a preload layer that remaps mutexes.  The table
 * is valid from the first instruction on: it starts with what the linker bound, and a constructor
 * replaces that by libc's own.
 */
#ifndef DM_BASE_REAL_H
#define DM_BASE_REAL_H

#include <pthread.h>

struct dm_real {
    int (*mutex_lock)(pthread_mutex_t *);
    int (*mutex_trylock)(pthread_mutex_t *);
    int (*mutex_unlock)(pthread_mutex_t *);
};

extern struct dm_real dm_real;

#endif

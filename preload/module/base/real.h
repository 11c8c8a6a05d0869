/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libc's own functions, which the module's functions replace.
 *
 * The module's constructor finds them all at once, or the first call of any of them does, if another library's
 * constructor comes first. Later calls never search, because dlsym() may allocate.
 */
#ifndef DM_PRELOAD_REAL_H
#define DM_PRELOAD_REAL_H

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <threads.h>
#include <unistd.h>

#include "shared/export.h"

/* X(field, name in libc, version of the name) */
#define REAL_FUNCTIONS(X)                                   \
    X(mutex_lock, pthread_mutex_lock, NULL)                 \
    X(mutex_trylock, pthread_mutex_trylock, NULL)           \
    X(mutex_unlock, pthread_mutex_unlock, NULL)             \
    X(mutex_init, pthread_mutex_init, NULL)                 \
    X(mutex_destroy, pthread_mutex_destroy, NULL)           \
    X(mutex_timedlock, pthread_mutex_timedlock, NULL)       \
    X(mutex_clocklock, pthread_mutex_clocklock, NULL)       \
    X(mutex_consistent, pthread_mutex_consistent, NULL)     \
    X(cond_init, pthread_cond_init, COND_VERSION)           \
    X(cond_destroy, pthread_cond_destroy, COND_VERSION)     \
    X(cond_wait, pthread_cond_wait, COND_VERSION)           \
    X(cond_timedwait, pthread_cond_timedwait, COND_VERSION) \
    X(cond_clockwait, pthread_cond_clockwait, NULL)         \
    X(cond_signal, pthread_cond_signal, COND_VERSION)       \
    X(cond_broadcast, pthread_cond_broadcast, COND_VERSION) \
    X(mtx_init, mtx_init, NULL)                             \
    X(mtx_destroy, mtx_destroy, NULL)                       \
    X(mtx_lock, mtx_lock, NULL)                             \
    X(mtx_trylock, mtx_trylock, NULL)                       \
    X(mtx_timedlock, mtx_timedlock, NULL)                   \
    X(mtx_unlock, mtx_unlock, NULL)                         \
    X(cnd_init, cnd_init, NULL)                             \
    X(cnd_destroy, cnd_destroy, NULL)                       \
    X(cnd_wait, cnd_wait, NULL)                             \
    X(cnd_timedwait, cnd_timedwait, NULL)                   \
    X(cnd_signal, cnd_signal, NULL)                         \
    X(cnd_broadcast, cnd_broadcast, NULL)                   \
    X(rwlock_rdlock, pthread_rwlock_rdlock, NULL)           \
    X(rwlock_wrlock, pthread_rwlock_wrlock, NULL)           \
    X(rwlock_tryrdlock, pthread_rwlock_tryrdlock, NULL)     \
    X(rwlock_trywrlock, pthread_rwlock_trywrlock, NULL)     \
    X(rwlock_timedrdlock, pthread_rwlock_timedrdlock, NULL) \
    X(rwlock_timedwrlock, pthread_rwlock_timedwrlock, NULL) \
    X(rwlock_clockrdlock, pthread_rwlock_clockrdlock, NULL) \
    X(rwlock_clockwrlock, pthread_rwlock_clockwrlock, NULL) \
    X(flock, flock, NULL)                                   \
    X(fcntl, fcntl, NULL)                                   \
    X(fcntl64, fcntl64, NULL)                               \
    X(lockf, lockf64, NULL)                                 \
    X(dlopen, dlopen, NULL)                                 \
    X(dlclose, dlclose, NULL)                               \
    X(munmap, munmap, NULL)                                 \
    X(fork, fork, NULL)                                     \
    X(chroot, chroot, NULL)

#define REAL_FIELD(field, function, version) __typeof__(function) *field;
struct real {
    bool is_complete;
    REAL_FUNCTIONS(REAL_FIELD)
};

/* Read without a check, where an earlier call has found them (objects.h). */
extern struct real real_functions;
void real_find(void);

static inline const struct real *real_get(void)
{
    if (__builtin_expect(!real_functions.is_complete, 0))
        real_find();
    return &real_functions;
}

#endif

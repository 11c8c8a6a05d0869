/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libc's own functions, behind the functions that the module puts in front.
 *
 * The module's constructor finds all at once, or the first call of any function if another library's constructor is
 * earlier; a later call never searches, because dlsym() may allocate.
 */
#ifndef DM_PRELOAD_REAL_H
#define DM_PRELOAD_REAL_H

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>
#include <threads.h>
#include <time.h>

struct real {
    bool is_complete;

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

    int (*mtx_init)(mtx_t *, int);
    void (*mtx_destroy)(mtx_t *);
    int (*mtx_lock)(mtx_t *);
    int (*mtx_trylock)(mtx_t *);
    int (*mtx_timedlock)(mtx_t *, const struct timespec *);
    int (*mtx_unlock)(mtx_t *);
    int (*cnd_init)(cnd_t *);
    void (*cnd_destroy)(cnd_t *);
    int (*cnd_wait)(cnd_t *, mtx_t *);
    int (*cnd_timedwait)(cnd_t *, mtx_t *, const struct timespec *);
    int (*cnd_signal)(cnd_t *);
    int (*cnd_broadcast)(cnd_t *);

    int (*rwlock_rdlock)(pthread_rwlock_t *);
    int (*rwlock_wrlock)(pthread_rwlock_t *);
    int (*rwlock_tryrdlock)(pthread_rwlock_t *);
    int (*rwlock_trywrlock)(pthread_rwlock_t *);
    int (*rwlock_timedrdlock)(pthread_rwlock_t *, const struct timespec *);
    int (*rwlock_timedwrlock)(pthread_rwlock_t *, const struct timespec *);
    int (*rwlock_clockrdlock)(pthread_rwlock_t *, clockid_t, const struct timespec *);
    int (*rwlock_clockwrlock)(pthread_rwlock_t *, clockid_t, const struct timespec *);

    int (*flock)(int, int);
    int (*fcntl)(int, int, ...);
    int (*fcntl64)(int, int, ...);
    int (*lockf)(int, int, off_t);

    void *(*dlopen)(const char *, int);
    int (*dlclose)(void *);
    int (*munmap)(void *, size_t);
};

/* Exports a name that libc has too. */
#define EXPORT __attribute__((visibility("default")))

/* Read without a check, where an earlier call has asked (objects.h). */
extern struct real real_functions;
void real_find(void);

static inline const struct real *real_get(void)
{
    if (__builtin_expect(!real_functions.is_complete, 0))
        real_find();
    return &real_functions;
}

#endif

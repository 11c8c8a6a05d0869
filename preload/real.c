/* SPDX-License-Identifier: BSD-2-Clause */
#include "real.h"

#include <dlfcn.h>
#include <stddef.h>

struct real real_functions;

/*
 * Used before the functions are found, hence before there is a second thread: dlsym() may allocate, and an allocator
 * may lock.
 */
static int early(pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

/* Since 2.3.2 condition variables have another layout; programs linked before 2.3.2 are not served. */
#define COND_VERSION "GLIBC_2.3.2"

static const struct {
    size_t slot;
    const char *name, *version;
} wanted[] = {
    { offsetof(struct real, mutex_lock), "pthread_mutex_lock", NULL },
    { offsetof(struct real, mutex_trylock), "pthread_mutex_trylock", NULL },
    { offsetof(struct real, mutex_unlock), "pthread_mutex_unlock", NULL },
    { offsetof(struct real, mutex_init), "pthread_mutex_init", NULL },
    { offsetof(struct real, mutex_destroy), "pthread_mutex_destroy", NULL },
    { offsetof(struct real, mutex_timedlock), "pthread_mutex_timedlock", NULL },
    { offsetof(struct real, mutex_clocklock), "pthread_mutex_clocklock", NULL },
    { offsetof(struct real, mutex_consistent), "pthread_mutex_consistent", NULL },
    { offsetof(struct real, cond_init), "pthread_cond_init", COND_VERSION },
    { offsetof(struct real, cond_destroy), "pthread_cond_destroy", COND_VERSION },
    { offsetof(struct real, cond_wait), "pthread_cond_wait", COND_VERSION },
    { offsetof(struct real, cond_timedwait), "pthread_cond_timedwait", COND_VERSION },
    { offsetof(struct real, cond_clockwait), "pthread_cond_clockwait", NULL },
    { offsetof(struct real, cond_signal), "pthread_cond_signal", COND_VERSION },
    { offsetof(struct real, cond_broadcast), "pthread_cond_broadcast", COND_VERSION },
    { offsetof(struct real, mtx_init), "mtx_init", NULL },
    { offsetof(struct real, mtx_destroy), "mtx_destroy", NULL },
    { offsetof(struct real, mtx_lock), "mtx_lock", NULL },
    { offsetof(struct real, mtx_trylock), "mtx_trylock", NULL },
    { offsetof(struct real, mtx_timedlock), "mtx_timedlock", NULL },
    { offsetof(struct real, mtx_unlock), "mtx_unlock", NULL },
    { offsetof(struct real, cnd_init), "cnd_init", NULL },
    { offsetof(struct real, cnd_destroy), "cnd_destroy", NULL },
    { offsetof(struct real, cnd_wait), "cnd_wait", NULL },
    { offsetof(struct real, cnd_timedwait), "cnd_timedwait", NULL },
    { offsetof(struct real, cnd_signal), "cnd_signal", NULL },
    { offsetof(struct real, cnd_broadcast), "cnd_broadcast", NULL },
    { offsetof(struct real, rwlock_rdlock), "pthread_rwlock_rdlock", NULL },
    { offsetof(struct real, rwlock_wrlock), "pthread_rwlock_wrlock", NULL },
    { offsetof(struct real, rwlock_tryrdlock), "pthread_rwlock_tryrdlock", NULL },
    { offsetof(struct real, rwlock_trywrlock), "pthread_rwlock_trywrlock", NULL },
    { offsetof(struct real, rwlock_timedrdlock), "pthread_rwlock_timedrdlock", NULL },
    { offsetof(struct real, rwlock_timedwrlock), "pthread_rwlock_timedwrlock", NULL },
    { offsetof(struct real, rwlock_clockrdlock), "pthread_rwlock_clockrdlock", NULL },
    { offsetof(struct real, rwlock_clockwrlock), "pthread_rwlock_clockwrlock", NULL },
    { offsetof(struct real, flock), "flock", NULL },
    { offsetof(struct real, fcntl), "fcntl", NULL },
    { offsetof(struct real, fcntl64), "fcntl64", NULL },
    { offsetof(struct real, lockf), "lockf64", NULL },
    { offsetof(struct real, dlopen), "dlopen", NULL },
    { offsetof(struct real, dlclose), "dlclose", NULL },
    { offsetof(struct real, munmap), "munmap", NULL },
};

/*
 * The next function behind the module. The caller stores the result, so the call is no jump to dlsym(), which takes the
 * caller's place for the "next" that is meant.
 */
static void *find(const char *name, const char *version)
{
    void *volatile found = version ? dlvsym(RTLD_NEXT, name, version) : NULL;

    if (!found)
        found = dlsym(RTLD_NEXT, name);
    return found;
}

void real_find(void)
{
    static bool is_finding;

    if (is_finding)
        return; /* dlsym() allocates, and the allocator locks: by the early functions */
    is_finding = true;
    real_functions.mutex_lock = real_functions.mutex_trylock = real_functions.mutex_unlock = early;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        void *found = find(wanted[i].name, wanted[i].version);

        if (found)
            *(void **)((char *)&real_functions + wanted[i].slot) = found;
    }
    __atomic_store_n(&real_functions.is_complete, true, __ATOMIC_RELEASE);
}

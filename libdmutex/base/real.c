/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/real.h"

#include <dlfcn.h>
#include <stddef.h>

#include "base/attrs.h"

/* clang-format off */
#define FUNCTIONS(X)                                                                            \
    X(mutex_lock) X(mutex_trylock) X(mutex_unlock) X(mutex_init) X(mutex_destroy)               \
    X(mutex_timedlock) X(mutex_clocklock) X(mutex_consistent)                                   \
    X(cond_init) X(cond_destroy) X(cond_wait) X(cond_timedwait) X(cond_clockwait)               \
    X(cond_signal) X(cond_broadcast)
/* clang-format on */

#define BOUND(name) .name = pthread_##name,
struct dm_real dm_real = { FUNCTIONS(BOUND) };

/* ThreadSanitizer must see our locks, and sees only calls of its own functions. */
#if !DM_UNDER_TSAN
#define SLOT(name) { offsetof(struct dm_real, name), "pthread_" #name },
static const struct {
    size_t slot;
    const char *name;
} wanted[] = { FUNCTIONS(SLOT) };

/*
 * dlsym() finds the newest version of a name, which is the one that <pthread.h> declares. It searches libc.so.6 itself:
 * RTLD_NEXT would find the next module in load order, which may be another wrapper.
 */
__attribute__((constructor)) static void resolve(void)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

    if (!libc)
        return;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        void *found = dlsym(libc, wanted[i].name);

        if (found)
            *(void **)((char *)&dm_real + wanted[i].slot) = found;
    }
    dlclose(libc);
}
#endif

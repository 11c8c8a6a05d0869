/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/real.h"

#include <dlfcn.h>

#include "base/attrs.h"

struct dm_real dm_real = {
    .mutex_lock = pthread_mutex_lock,
    .mutex_trylock = pthread_mutex_trylock,
    .mutex_unlock = pthread_mutex_unlock,
};

/* ThreadSanitizer must see our locks, and it sees only what passes through its own functions. */
#if !DM_UNDER_TSAN
static void replace(void *libc, const char *name, void *slot)
{
    void *found = dlsym(libc, name);
    if (found)
        *(void **)slot = found;
}

__attribute__((constructor)) static void resolve(void)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (!libc)
        return;
    replace(libc, "pthread_mutex_lock", &dm_real.mutex_lock);
    replace(libc, "pthread_mutex_trylock", &dm_real.mutex_trylock);
    replace(libc, "pthread_mutex_unlock", &dm_real.mutex_unlock);
    dlclose(libc);
}
#endif

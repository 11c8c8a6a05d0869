/* SPDX-License-Identifier: BSD-2-Clause */
#include "real.h"

#include <dlfcn.h>
#include <stddef.h>

struct real real_functions;

/*
 * Used until the functions are found, when there is only one thread: dlsym() may allocate, and an allocator may lock.
 */
static int early(pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

/* Condition variables have had another layout since 2.3.2; programs linked before that are not supported. */
#define COND_VERSION "GLIBC_2.3.2"

#define WANTED(field, function, version) { offsetof(struct real, field), #function, version },
static const struct {
    size_t slot;
    const char *name, *version;
} wanted[] = { REAL_FUNCTIONS(WANTED) };

/*
 * Finds the function that comes after the module's. The caller must store the result, so that the call of dlsym() is no
 * tail call: dlsym() takes its caller as the reference for "next".
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
        return; /* dlsym() allocates, and the allocator locks through the early functions */
    is_finding = true;
    real_functions.mutex_lock = real_functions.mutex_trylock = real_functions.mutex_unlock = early;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        void *found = find(wanted[i].name, wanted[i].version);

        if (found)
            *(void **)((char *)&real_functions + wanted[i].slot) = found;
    }
    __atomic_store_n(&real_functions.is_complete, true, __ATOMIC_RELEASE);
}

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

#define WANTED(field, function, version) { offsetof(struct real, field), #function, version },
static const struct {
    size_t slot;
    const char *name, *version;
} wanted[] = { REAL_FUNCTIONS(WANTED) };

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

/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/binding.h"

#include <sched.h>
#include <string.h>

/*
 * A version before and behind each change, odd while there is one: a reader takes a text only if
 * the version was even and the same before and after.  A writer that dies leaves an odd version;
 * after so many looks at the same one the next writer, or reader, takes it for dead.  Both would
 * write the same text but for a misuse, two mutexes at once, which the server finds out.
 *
 * Each byte is read with acquire and written with release, which keeps it between the versions;
 * fences would do as well, but ThreadSanitizer does not know them.
 */
#define LOOKS 10000

_Static_assert(DM_MUTEX_KEY_ROOM <= DMUTEX_PRIVATE_NAME_ROOM, "a mutex's key fits into the object");

/* The version, once it is even, or has been odd for long. */
static uint32_t settled(const dcond_t *cond)
{
    uint32_t version = __atomic_load_n(&cond->dm_binding, __ATOMIC_ACQUIRE);

    for (int look = 0; version % 2 && look < LOOKS; look++) {
        sched_yield();
        version = __atomic_load_n(&cond->dm_binding, __ATOMIC_ACQUIRE);
    }
    return version;
}

bool dm_binding_read(const dcond_t *cond, char ret_mutex[DM_MUTEX_KEY_ROOM])
{
    uint32_t version;

    do {
        version = settled(cond);
        if (version == 0 || version % 2)
            return false;
        for (size_t i = 0; i < DM_MUTEX_KEY_ROOM; i++)
            ret_mutex[i] = __atomic_load_n(&cond->dm_name[i], __ATOMIC_ACQUIRE);
    } while (__atomic_load_n(&cond->dm_binding, __ATOMIC_RELAXED) != version);
    return memchr(ret_mutex, '\0', DM_MUTEX_KEY_ROOM) && ret_mutex[0];
}

void dm_binding_write(dcond_t *cond, const char *mutex)
{
    uint32_t version, writing;

    do {
        version = settled(cond);
        writing = version + (version % 2 ? 2 : 1);
    } while (!__atomic_compare_exchange_n(&cond->dm_binding, &version, writing, false,
                                          __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    for (size_t i = 0, end = 0; i < DM_MUTEX_KEY_ROOM; i++) {
        end = end || !mutex[i];
        __atomic_store_n(&cond->dm_name[i], end ? '\0' : mutex[i], __ATOMIC_RELEASE);
    }
    __atomic_store_n(&cond->dm_binding, writing + 1, __ATOMIC_RELEASE);
}

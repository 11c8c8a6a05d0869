/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/binding.h"

#include <sched.h>
#include <string.h>

/*
 * A sequence lock: the version is odd during a change, and a reader accepts a text only if the version was even and the
 * same before and after.  A writer that dies leaves an odd version; after reading the same odd version this many times,
 * the next writer or reader takes that writer for dead.  Two writers write the same text, except for a misuse, two
 * mutexes at once, which the server detects.
 *
 * Each byte is read with acquire and written with release, which keeps it between the versions.  Fences would do, but
 * ThreadSanitizer does not understand them.
 */
#define LOOKS 10000

/* The id, the version and the text take the place of the name. */
#define VERSION_AT 16
#define TEXT_AT 20
#define TEXT_ROOM (DMUTEX_PRIVATE_COND_NAME_ROOM - TEXT_AT)

_Static_assert(offsetof(dcond_t, dm_name) % 8 == 0, "the id is aligned");
_Static_assert(TEXT_ROOM <= DM_MUTEX_KEY_ROOM, "all that is in the object can be read");

static uint32_t *version_of(const dcond_t *cond)
{
    return (void *)(cond->dm_name + VERSION_AT);
}

uint64_t *dm_binding_id(dcond_t *cond)
{
    return (void *)cond->dm_name;
}

/*
 * A version never returns to 0.  A signaller that reads 0 came before the first binding, and so before the first wait
 * gave its mutex up: there was nobody to wake.
 */
bool dm_binding_exists(const dcond_t *cond)
{
    return __atomic_load_n(version_of(cond), __ATOMIC_ACQUIRE) != 0;
}

/* ---- the text ---------------------------------------------------------------------------- */

int dm_binding_group_length(const char *mutex)
{
    return (int)(mutex[0] == 'n' ? strcspn(mutex, "/") : strlen(mutex));
}

/*
 * Copies the part of a mutex's key that is stored: all of it or, if that does not fit, the group.  False: the group
 * does not fit either.
 */
static bool shorten(const char *mutex, char ret_text[TEXT_ROOM])
{
    size_t length = strlen(mutex);

    if (length >= TEXT_ROOM)
        length = (size_t)dm_binding_group_length(mutex);
    if (length >= TEXT_ROOM)
        return false;
    memset(ret_text, 0, TEXT_ROOM);
    memcpy(ret_text, mutex, length);
    return true;
}

/* Others can write anything into the memory.  A key is "n" and a name, or "a~" and hexadecimal digits. */
static bool is_key(const char *text)
{
    if (text[0] == 'n')
        return text[1] && text[1] != '/';
    return strncmp(text, "a~", 2) == 0 && text[2] && text[2 + strspn(text + 2, "0123456789abcdef.")] == '\0';
}

/* ---- versions ---------------------------------------------------------------------------- */

/* Waits until the version is even, or has been odd for long, and returns it. */
static uint32_t settled(const dcond_t *cond)
{
    uint32_t version = __atomic_load_n(version_of(cond), __ATOMIC_ACQUIRE);

    for (int look = 0; version % 2 && look < LOOKS; look++) {
        sched_yield();
        version = __atomic_load_n(version_of(cond), __ATOMIC_ACQUIRE);
    }
    return version;
}

/* False if the text was changed while it was read. */
static bool read_text(const dcond_t *cond, uint32_t version, char ret_text[TEXT_ROOM])
{
    for (size_t i = 0; i < TEXT_ROOM; i++)
        ret_text[i] = __atomic_load_n(&cond->dm_name[TEXT_AT + i], __ATOMIC_ACQUIRE);
    return __atomic_load_n(version_of(cond), __ATOMIC_RELAXED) == version;
}

bool dm_binding_read(const dcond_t *cond, char ret_mutex[DM_MUTEX_KEY_ROOM])
{
    for (int look = 0; look < LOOKS; look++) {
        uint32_t version = settled(cond);

        if (version == 0 || version % 2)
            return false;
        if (read_text(cond, version, ret_mutex))
            return memchr(ret_mutex, '\0', TEXT_ROOM) && is_key(ret_mutex);
    }
    return false;
}

/*
 * The exchange decides between writers: one makes the version odd, the others check again.  If a writer died, the
 * version goes from its odd number to the next odd one, so that a reader never takes two halves for one text.
 */
static void write_text(dcond_t *cond, const char text[TEXT_ROOM])
{
    uint32_t version, writing;

    do {
        version = settled(cond);
        writing = version + (version % 2 ? 2 : 1);
    } while (
        !__atomic_compare_exchange_n(version_of(cond), &version, writing, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    for (size_t i = 0; i < TEXT_ROOM; i++)
        __atomic_store_n(&cond->dm_name[TEXT_AT + i], text[i], __ATOMIC_RELEASE);
    __atomic_store_n(version_of(cond), writing + 1, __ATOMIC_RELEASE);
}

bool dm_binding_write(dcond_t *cond, const char *mutex)
{
    char text[TEXT_ROOM], before[DM_MUTEX_KEY_ROOM];

    if (!shorten(mutex, text))
        return false;
    if (!dm_binding_read(cond, before) || strcmp(before, text) != 0)
        write_text(cond, text);
    return true;
}

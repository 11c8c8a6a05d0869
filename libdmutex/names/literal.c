/* SPDX-License-Identifier: BSD-2-Clause */
#include "names/literal.h"

#include <string.h>

#include "dmutex/types.h"

_Static_assert(sizeof(dmutex_t) == DM_LITERAL_SIZE && sizeof(dcond_t) == DM_LITERAL_SIZE, "one size for both");

static int is_name(unsigned named, const char *name, size_t room)
{
    size_t length = strnlen(name, room);

    return (named == DM_NAMED || named == DM_NAMED_AUTOMATICALLY) && length > 0 && length < room;
}

/*
 * Compares everything that an initialiser fixes, because the bytes may be any variable of the program, and the caller
 * writes dm_named and the name of what is found.
 */
static int is_mutex(const dmutex_t *mutex)
{
    return mutex->dm_state == DMUTEX_PRIVATE_STATIC_MUTEX && mutex->dm_type <= 3 && mutex->dm_robust <= 1 &&
           mutex->dm_pshared == 0 && is_name(mutex->dm_named, mutex->dm_name, sizeof mutex->dm_name);
}

static int is_cond(const dcond_t *cond)
{
    return cond->dm_state == DMUTEX_PRIVATE_STATIC_COND && cond->dm_clock == 0 && cond->dm_pshared == 0 &&
           is_name(cond->dm_named, cond->dm_name, sizeof cond->dm_name);
}

/* Reads all bytes at an address, including red zones between variables, so sanitizers are turned off. */
__attribute__((__no_sanitize__("address", "thread"))) static int has_mark(const void *bytes)
{
    return ((const dmutex_t *)bytes)->dm_state == DMUTEX_PRIVATE_STATIC_MUTEX ||
           ((const dcond_t *)bytes)->dm_state == DMUTEX_PRIVATE_STATIC_COND;
}

enum dm_literal_kind dm_literal_at(const void *bytes)
{
    if (!has_mark(bytes))
        return DM_LITERAL_NONE;
    if (is_mutex(bytes))
        return DM_LITERAL_MUTEX;
    return is_cond(bytes) ? DM_LITERAL_COND : DM_LITERAL_NONE;
}

unsigned char *dm_literal_named(void *object, enum dm_literal_kind kind)
{
    return kind == DM_LITERAL_COND ? &((dcond_t *)object)->dm_named : &((dmutex_t *)object)->dm_named;
}

char *dm_literal_name(void *object, enum dm_literal_kind kind)
{
    return kind == DM_LITERAL_COND ? ((dcond_t *)object)->dm_name : ((dmutex_t *)object)->dm_name;
}

/* The length of the path component that begins here, including the slash after it. */
static size_t part_length(const char *part)
{
    size_t length = strcspn(part, "/");

    return length + (part[length] == '/');
}

static int is_part(const char *part, size_t length, const char *wanted)
{
    return length == strlen(wanted) && memcmp(part, wanted, length) == 0;
}

static int depends_on_folder(const char *unit)
{
    if (*unit == '/')
        return 1;
    for (size_t length; *unit; unit += length) {
        length = part_length(unit);
        if (is_part(unit, length, "../"))
            return 1;
    }
    return 0;
}

/*
 * Works in place, because the name never grows. A component that is only "/" is the second slash of "//". The check for
 * ".." comes before the first change, so that a refused name is unchanged.
 */
int dm_literal_normalise(char *name)
{
    char *from = name + strcspn(name, "/"), *to;

    if (!*from)
        return 1;
    to = ++from;
    if (depends_on_folder(from))
        return 0;
    for (size_t length; *from; from += length) {
        length = part_length(from);
        if (is_part(from, length, "./") || is_part(from, length, "/"))
            continue;
        memmove(to, from, length);
        to += length;
    }
    *to = '\0';
    return 1;
}

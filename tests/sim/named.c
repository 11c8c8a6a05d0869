/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * I3: a request names its attempt as the server knows the attempt, by uuid, thread and number.  The thread has asked
 * for the hold; another thread of the process may be inside.  A process gives each attempt another number, so a request
 * with the number and another thread means the same attempt, and the server refuses the request.
 */
#include "check_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "scripting.h"
#include "world.h"

/* An attempt named "<uuid>:<thread>:<attempt>". */
struct named {
    const char *uuid;
    size_t length; /* of the uuid */
    uint64_t thread, attempt;
};

/* Reads "<thread>:<attempt>". */
static bool read_numbers(const char *text, struct named *named)
{
    return sscanf(text, "%" SCNu64 ":%" SCNu64, &named->thread, &named->attempt) == 2;
}

static bool read_id(const char *text, struct named *named)
{
    named->uuid = text;
    named->length = strcspn(text, ":");
    return text[named->length] == ':' && read_numbers(text + named->length + 1, named);
}

static void compare(const char *script, const struct named *named, const char *known)
{
    struct named other;

    if (!read_id(known, &other) || other.length != named->length || other.attempt != named->attempt ||
        other.thread == named->thread || memcmp(other.uuid, named->uuid, named->length) != 0)
        return;
    world_break("I3: %s names %s by thread %" PRIu64, script, known, named->thread);
}

static void compare_with_items(const char *script, const struct named *named, const struct key *key)
{
    for (int i = 0; key && i < key->count; i++)
        compare(script, named, key->items[i].name);
}

/* Compares with the attempts that the server knows: holders, waiters of mutexes and conditions. */
static void compare_with_all(const char *script, const struct named *named)
{
    for (int i = 0; i < check.count; i++) {
        const struct known *known = &check.names[i];
        char hold[80], waiter[80];

        look_copy_id(hold, look_hold(known));
        compare(script, named, hold);
        for (int j = 0; j < look_count_waiters(known); j++) {
            look_waiter(known, j, waiter);
            compare(script, named, waiter);
        }
        compare_with_items(script, named, look_key(known->condition, DM_KEY_COND));
    }
}

/* Arguments end with a zero byte; ids begin their arguments, and an acquire's owed releases are without the uuid. */
void named_check(int script, const struct text *arguments, int count)
{
    const char *name = scripting_name(script);
    bool is_acquire = strcmp(name, "acquire") == 0;
    struct named named;

    for (int i = 0; i < count; i++) {
        if (is_acquire && i >= LOOK_OWED && read_id(arguments[0].bytes, &named) &&
            read_numbers(arguments[i].bytes, &named))
            compare_with_all(name, &named);
        else if (read_id(arguments[i].bytes, &named))
            compare_with_all(name, &named);
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "deadlock.h"

#include <string.h>

static bool is_thread(const struct dm_seen_waiter *waiter, const dmutex_info_t *holder)
{
    return waiter->thread == holder->thread && strcmp(waiter->owner, holder->owner) == 0;
}

/* The name that the holder of a name waits for, or NULL; a thread waits for one name at a time. */
static const struct seen *next_of(const struct gathered *gathered, const struct seen *held)
{
    for (size_t i = 0; i < gathered->count; i++) {
        const struct seen *seen = &gathered->seen[i];

        for (int j = 0; j < seen->data.waiter_count && !seen_is_condition(seen); j++)
            if (seen->data.info.shown.locked && is_thread(&seen->waiters[j], &held->data.info.shown))
                return seen;
    }
    return NULL;
}

/* Follows the waits from a name on.  True if they come back to it, and it is the first of the circle by address. */
static bool follow(const struct gathered *gathered, const struct seen *first, struct deadlock *ret_deadlock)
{
    const struct seen *at = first;

    ret_deadlock->count = 0;
    do {
        if (ret_deadlock->count == DEADLOCK_MOST || at < first)
            return false;
        ret_deadlock->names[ret_deadlock->count++] = at;
        at = next_of(gathered, at);
    } while (at && at != first);
    return at == first;
}

int deadlock_find(const struct gathered *gathered, struct deadlock *ret_deadlocks, int room)
{
    int found = 0;

    for (size_t i = 0; i < gathered->count && found < room; i++) {
        const struct seen *seen = &gathered->seen[i];

        if (!seen_is_condition(seen) && seen->data.info.shown.locked && seen->data.info.shown.waiters &&
            follow(gathered, seen, &ret_deadlocks[found]))
            found++;
    }
    return found;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "deadlock.h"

#include "chain.h"

/* Follows the waits from a name.  True if they lead back to it and it has the lowest address in the circle. */
static bool follow(const struct gathered *gathered, const struct seen *first, struct deadlock *ret_deadlock)
{
    const struct seen *at = first;

    ret_deadlock->count = 0;
    do {
        if (ret_deadlock->count == DEADLOCK_MOST || at < first)
            return false;
        ret_deadlock->names[ret_deadlock->count++] = at;
        at = chain_next(gathered, at);
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

/* SPDX-License-Identifier: BSD-2-Clause */
#include "gather.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "api/view.h"

/*
 * A name that somebody may want to see: held, waited for, not recoverable, or faulty.  The health "dead" alone does not
 * count: each process that ends as the holder leaves it, and the next holder deals with it.
 */
static bool is_busy(const struct seen *seen)
{
    const dmutex_info_t *shown = &seen->data.info.shown;

    return shown->locked || shown->waiters || shown->health > 1 || seen->fault;
}

static bool is_wanted(const struct gathered *gathered, const struct seen *seen)
{
    return (gathered->has_idle || is_busy(seen)) &&
           (!gathered->pattern || fnmatch(gathered->pattern, seen->name, 0) == 0);
}

/* Doubles the room, because a server may have a million names. */
static bool has_room(struct gathered *gathered)
{
    size_t room = gathered->room ? 2 * gathered->room : 64;
    struct seen *more;

    if (gathered->count < gathered->room)
        return true;
    more = reallocarray(gathered->seen, room, sizeof *more);
    if (!more)
        return false;
    gathered->seen = more;
    gathered->room = room;
    return true;
}

static void keep(void *user, const struct dm_seen *data)
{
    struct gathered *gathered = user;
    struct seen seen = seen_copy(data);

    if (is_wanted(gathered, &seen) && has_room(gathered))
        gathered->seen[gathered->count++] = seen;
    else
        seen_clear(&seen);
}

/* By name; a mutex comes before a condition of the same name. */
static int compare(const void *one, const void *other)
{
    const struct seen *a = one, *b = other;
    int order = strcmp(a->name, b->name);

    return order ? order : seen_is_condition(a) - seen_is_condition(b);
}

/* SCAN may return a name twice; sorted, the second follows the first. */
static void sort(struct gathered *gathered)
{
    size_t kept = 0;

    if (gathered->count)
        qsort(gathered->seen, gathered->count, sizeof *gathered->seen, compare);
    for (size_t i = 0; i < gathered->count; i++) {
        if (kept && strcmp(gathered->seen[kept - 1].key, gathered->seen[i].key) == 0)
            seen_clear(&gathered->seen[i]);
        else
            gathered->seen[kept++] = gathered->seen[i];
    }
    gathered->count = kept;
}

int gather(struct gathered *gathered)
{
    int error = dm_view_all(NULL, gathered->waiters, keep, gathered);

    sort(gathered);
    return error;
}

void gather_clear(struct gathered *gathered)
{
    for (size_t i = 0; i < gathered->count; i++)
        seen_clear(&gathered->seen[i]);
    free(gathered->seen);
    gathered->seen = NULL;
    gathered->count = gathered->room = 0;
}

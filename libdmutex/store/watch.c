/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/watch.h"

#include <stdlib.h>

#include "base/clock.h"

#define ROOM_AT_FIRST 8

/* How often a descriptor is read for which there is no room. */
#define TICK_NS (10 * DM_NS_PER_MS)

bool dm_watch_init(struct dm_watch *watch)
{
    *watch = (struct dm_watch){ .polled = malloc(ROOM_AT_FIRST * sizeof *watch->polled), .room = ROOM_AT_FIRST };
    dm_watch_clear(watch);
    return watch->polled != NULL;
}

void dm_watch_free(struct dm_watch *watch)
{
    free(watch->polled);
}

void dm_watch_clear(struct dm_watch *watch)
{
    watch->count = 0;
    watch->due_ns = DM_NEVER;
}

static bool grow(struct dm_watch *watch)
{
    struct pollfd *more = realloc(watch->polled, 2 * (size_t)watch->room * sizeof *more);

    if (!more)
        return false;
    watch->polled = more;
    watch->room *= 2;
    return true;
}

void dm_watch_poll(struct dm_watch *watch, int fd, short events)
{
    if (watch->count == watch->room && !grow(watch))
        dm_watch_until(watch, dm_clock_boot_ns() + TICK_NS);
    else
        watch->polled[watch->count++] = (struct pollfd){ .fd = fd, .events = events };
}

void dm_watch_until(struct dm_watch *watch, int64_t due_ns)
{
    if (due_ns < watch->due_ns)
        watch->due_ns = due_ns;
}

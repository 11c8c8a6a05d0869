/* SPDX-License-Identifier: BSD-2-Clause */
/* What the loop thread waits for: descriptors, and a moment. */
#ifndef DM_STORE_WATCH_H
#define DM_STORE_WATCH_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

struct dm_watch {
    struct pollfd *polled;
    int count, room;
    int64_t due_ns; /* CLOCK_BOOTTIME: when a turn is due in any case; DM_NEVER: none */
};

/* False without memory. */
bool dm_watch_init(struct dm_watch *watch);
void dm_watch_free(struct dm_watch *watch);

/* Removes all descriptors and the moment. */
void dm_watch_clear(struct dm_watch *watch);

/* Adds a descriptor; poll() ignores -1.  Without memory, a turn comes soon instead. */
void dm_watch_poll(struct dm_watch *watch, int fd, short events);

/* Makes a turn due at this moment at the latest. */
void dm_watch_until(struct dm_watch *watch, int64_t due_ns);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Events for the loop thread to wait for: descriptors, and a moment. */
#ifndef DM_STORE_WATCH_H
#define DM_STORE_WATCH_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

struct dm_watch {
    struct pollfd *polled;
    int count, room;
    int64_t due_ns; /* CLOCK_BOOTTIME: a turn is due, whatever happens; DM_NEVER */
};

/* False without memory. */
bool dm_watch_init(struct dm_watch *watch);
void dm_watch_free(struct dm_watch *watch);

/* No events, and no moment. */
void dm_watch_clear(struct dm_watch *watch);

/* A descriptor more; -1 is polled by nobody.  Without memory the turn comes soon. */
void dm_watch_poll(struct dm_watch *watch, int fd, short events);

/* The turn is due then at the latest. */
void dm_watch_until(struct dm_watch *watch, int64_t due_ns);

#endif

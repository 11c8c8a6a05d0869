/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects to several addresses of one server in parallel (the idea of RFC 8305): each connect begins a moment after
 * the previous one, or as soon as that has failed.  The first that succeeds wins, and the others are closed.  So an
 * address that drops packets costs a quarter of a second, and not all of the time.
 *
 * Never blocks and knows no threads: the caller's lock guards a race.
 */
#ifndef DM_LINK_RACE_H
#define DM_LINK_RACE_H

#include <stdint.h>

#include "base/fileid.h"
#include "link/address.h"

struct dm_race {
    struct dm_runner {
        int fd;
        struct dm_fileid file;
        unsigned address;
    } runners[DM_ADDRESSES_MOST]; /* connects under way: the first `count` */
    unsigned count;
    int crowd;       /* an epoll of all sockets, if there may be several; else -1 */
    int64_t next_ns; /* when the next connect begins */
    int64_t pace_ns;
    int error;       /* of the last connect that failed */
    unsigned winner; /* the address, once dm_race_step() has returned 0 */
};

void dm_race_init(struct dm_race *race);

/*
 * Begins a race between the addresses that are left in this round.  All their connects begin within half of the time.
 */
void dm_race_begin(struct dm_race *race, const struct dm_addresses *addresses, unsigned time_ms);

/* Begins a race that is already won, by a socket that somebody else has connected. */
void dm_race_begin_with(struct dm_race *race, int fd);

/*
 * Does what can be done now. 0: *ret_fd is connected, and the others are closed.  EINPROGRESS: not yet.  Otherwise the
 * errno value of the last failure: all addresses of the round have been tried.
 */
int dm_race_step(struct dm_race *race, struct dm_addresses *addresses, unsigned user_timeout_ms, int *ret_fd);

/* What to poll before calling dm_race_step(), and when to call it without an event; DM_NEVER: only then. */
int dm_race_fd(const struct dm_race *race);
short dm_race_events(const struct dm_race *race);
int64_t dm_race_due_ns(const struct dm_race *race, const struct dm_addresses *addresses);

/* Closes all sockets. */
void dm_race_end(struct dm_race *race);

/* In a forked child: the same for the copies, while the parent's race goes on. */
void dm_race_forget(struct dm_race *race);

#endif

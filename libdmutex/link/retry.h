/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a broken connection is opened again.
 *
 * The pause before the next try is random, up to a limit that doubles with each failure: processes that lost one server
 * do not come back in step.  A restart or a failover is over within seconds: so long the limit stays at 250 ms.  Behind
 * some 8 s of failures the limit goes on to 2 s, the usual command_timeout, so that a call sees a try.  A user who
 * must not wait so long sets a lower limit: dm_retry_limit().
 */
#ifndef DM_LINK_RETRY_H
#define DM_LINK_RETRY_H

#include <stdbool.h>
#include <stdint.h>

/* All times are CLOCK_BOOTTIME.  The caller's lock guards the struct. */
struct dm_retry {
    int64_t due_ns;    /* the next try */
    unsigned failures; /* since the connection was last of use, for a second */
    int64_t failed_ns; /* the last failure */
    int64_t part;      /* thousandths of the limit, drawn at the failure */
    int64_t ready_ns;  /* when the connection last became ready */
    unsigned most_ms;  /* see dm_retry_limit() */
};

/* A failure at `now_ns`: plans the next try. */
void dm_retry_note_failure(struct dm_retry *retry, int64_t now_ns);

/* The server has answered a command: a connection that answers and breaks gets work done, and quick tries pay. */
void dm_retry_note_answer(struct dm_retry *retry);

/* The connection has been ready for a second. */
bool dm_retry_is_of_use(const struct dm_retry *retry, int64_t now_ns);

/*
 * The connection is of use at `now_ns`.  True if it counts as back from now on: until it has been ready for a second a
 * connection that breaks again counts as never back.
 */
bool dm_retry_note_use(struct dm_retry *retry, int64_t now_ns);

/* The longest pause from now on, but for the shortest limit; 0: the usual one.  Plans the next try anew. */
void dm_retry_limit(struct dm_retry *retry, unsigned most_ms);

#endif

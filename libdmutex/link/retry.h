/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides when to open a broken connection again.
 *
 * The pause before the next try is random, so that processes which lost the same server do not come back in step.  Its
 * limit doubles with each failure, up to 250 ms, where it stays while a restart or a failover may last.  After some 8 s
 * of failures it grows to 2 s, the usual command_timeout, so that a call sees a try.  A user who cannot wait that
 * long sets a lower limit with dm_retry_limit().
 */
#ifndef DM_LINK_RETRY_H
#define DM_LINK_RETRY_H

#include <stdbool.h>
#include <stdint.h>

/* All times are CLOCK_BOOTTIME.  The caller's lock guards the struct. */
struct dm_retry {
    int64_t due_ns;    /* the next try */
    unsigned failures; /* since the connection was last ready for a second */
    int64_t failed_ns; /* the last failure */
    int64_t part;      /* thousandths of the limit, drawn at the failure */
    int64_t ready_ns;  /* when the connection last became ready */
    unsigned most_ms;  /* see dm_retry_limit() */
};

/* A failure at `now_ns`: plans the next try. */
void dm_retry_note_failure(struct dm_retry *retry, int64_t now_ns);

/*
 * The server has answered a command: a connection that answers before it breaks gets work done, so quick tries are
 * worthwhile.
 */
void dm_retry_note_answer(struct dm_retry *retry);

/* True if the connection has been ready for a second. */
bool dm_retry_is_of_use(const struct dm_retry *retry, int64_t now_ns);

/*
 * The connection is in use at `now_ns`.  True if it counts as restored from now on: one that breaks within a second of
 * being ready never counted.
 */
bool dm_retry_note_use(struct dm_retry *retry, int64_t now_ns);

/*
 * Sets the longest pause from now on, but no less than the shortest limit; 0: the usual one.  Reschedules the next try.
 */
void dm_retry_limit(struct dm_retry *retry, unsigned most_ms);

#endif

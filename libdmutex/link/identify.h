/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A check asks the server whether it is still the one of the greeting.  This decides when a connection sends checks,
 * and when requests wait for the answer.  Pure: the caller passes the time.
 *
 * A server that was a master may have become a replica, and a master again with the data of another server, while the
 * connection stayed open.  A request would then go by the old data's grace.  So unless the server is known to have been
 * the same within the last DM_IDENTIFY_NS, a request waits until it has said so.  A busy link never waits, because it
 * checks twice as often.
 */
#ifndef DM_LINK_IDENTIFY_H
#define DM_LINK_IDENTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* No command is sent to a server that has not confirmed its identity for this long. */
#define DM_IDENTIFY_NS DM_NS_PER_S

/* What a server has answered to a check. */
enum dm_identified {
    DM_IDENTIFIED_SAME,
    DM_IDENTIFIED_OTHER, /* the link closes, and commands sent after the check have no answer */
    DM_IDENTIFIED_BUSY   /* the server cannot say so now */
};

/* All times are CLOCK_BOOTTIME.  The caller's lock guards the struct. */
struct dm_identify {
    int64_t asked_ns;   /* when the last check was sent, or the greeting begun */
    int64_t known_ns;   /* the same for the last check that was answered: the server was the same then */
    unsigned under_way; /* checks without an answer yet */
};

/* What happens to the requests that wait for a check, or to a new one. */
enum dm_identify_verdict {
    DM_IDENTIFY_SENDS,
    DM_IDENTIFY_WAITS,
    DM_IDENTIFY_FAILS /* the connection must be reopened: no answer can release the requests */
};

/* The greeting begins: its answers may be read late, so they count from here. */
void dm_identify_begin(struct dm_identify *identify, int64_t now_ns);

/* The connection is closed. */
void dm_identify_end(struct dm_identify *identify);

/* True if the last check was sent that long ago. */
bool dm_identify_is_due(const struct dm_identify *identify, int64_t pause_ns, int64_t now_ns);
void dm_identify_note_sent(struct dm_identify *identify, int64_t sent_ns);

/* A request is about to be sent, and none waits.  FAILS: no check is under way, for lack of memory. */
enum dm_identify_verdict dm_identify_at_request(const struct dm_identify *identify, int64_t now_ns);

/*
 * The check sent at `sent_ns` is answered.  Waiting requests go out if the answer is "the same", unless the answer has
 * been in a stopped process's socket for `most_ns`.  No check is sent while requests wait, so without such an answer
 * the connection fails; if no requests wait, it fails only if the answer is "another".  After a busy server's answer,
 * the next request checks again.
 */
enum dm_identify_verdict dm_identify_take(struct dm_identify *identify, enum dm_identified identified, int64_t sent_ns,
                                          bool has_waiting, int64_t most_ns, int64_t now_ns);

#endif

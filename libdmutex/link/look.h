/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks: when a connection asks its server whether the server is still the one that greeted, and when requests wait
 * for the answer.  Pure: the times come in.
 *
 * A server that was a master may have become a replica, and a master again with the data of another server, while the
 * connection stayed open.  A request would have the grace of before, so it waits until the server has said that it is
 * the same, if that is not known for the last DM_LOOK_NS.  A busy link never waits: it looks twice as often.
 */
#ifndef DM_LINK_LOOK_H
#define DM_LINK_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* No command is sent to a server that has not said for so long that it is the server of the greeting. */
#define DM_LOOK_NS DM_NS_PER_S

/* What a server has said to a look. */
enum dm_looked {
    DM_LOOKED_SAME,
    DM_LOOKED_OTHER, /* the link closes, and commands sent behind the look have no answer */
    DM_LOOKED_BUSY   /* the server cannot say so now */
};

/* All times are CLOCK_BOOTTIME.  The caller's lock guards the struct. */
struct dm_look {
    int64_t asked_ns;   /* the last look was sent; or the greeting was begun */
    int64_t known_ns;   /* the same of the last look that was answered: the server was the same then */
    unsigned under_way; /* looks without an answer yet */
};

/* What becomes of the requests that wait for a look, or of one that is to be sent. */
enum dm_look_verdict {
    DM_LOOK_SENDS,
    DM_LOOK_WAITS,
    DM_LOOK_FAILS /* the connection must be opened anew: no answer can let the requests go */
};

/* The greeting begins: its answers may be read late, so they count from here. */
void dm_look_begin(struct dm_look *look, int64_t now_ns);

/* The connection is closed. */
void dm_look_end(struct dm_look *look);

/* True if the last look was sent so long ago. */
bool dm_look_is_due(const struct dm_look *look, int64_t pause_ns, int64_t now_ns);
void dm_look_note_sent(struct dm_look *look, int64_t sent_ns);

/* A request is to be sent, and none waits.  FAILS: no look is under way, for want of memory. */
enum dm_look_verdict dm_look_at_request(const struct dm_look *look, int64_t now_ns);

/*
 * The look sent at `sent_ns` is answered.  Requests that wait go out with an answer "the same", unless the answer has
 * lain in a stopped process's socket for `most_ns`.  No look is sent while requests wait, so without such an answer
 * the connection fails; without requests that wait, it fails by the answer "another" alone.  A busy server is looked at
 * again by the next request.
 */
enum dm_look_verdict dm_look_take(struct dm_look *look, enum dm_looked looked, int64_t sent_ns, bool has_waiting,
                                  int64_t most_ns, int64_t now_ns);

#endif

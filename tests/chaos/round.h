/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A round: processes begin, faults strike, calm comes; all that is on the table is taken, all go
 * home, and the history is judged.
 */
#ifndef CHAOS_ROUND_H
#define CHAOS_ROUND_H

#include "check.h"
#include "nemesis.h"

/* What all rounds together have been. */
struct tally {
    struct verdict verdict;
    struct nemesis nemesis;
    long rounds;
    long alone;                             /* rounds that ended without a wake-up by the test */
    long stuck;                             /* rounds that did not end */
    int64_t made, taken, refused, overlaps; /* as the resource saw it */
};

/* Nothing has happened for so long, with no fault there: nothing will. */
#define STILL_LEASES 60

/* So many faults and calls at least, of the groups `allowed`.  Prints what the checker found. */
void round_run(struct stage *stage, struct tally *tally, unsigned allowed, int faults, int calls);

/* Counters, as lines of a TAP comment. */
void tally_print(const struct tally *tally, const struct stage *stage);

/* No keys, connections, inboxes of anybody are left on the server. */
void round_check_end(struct stage *stage);

#endif

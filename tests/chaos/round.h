/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A round: processes begin, faults strike, calm comes; all things on the table are taken, all processes end, and the
 * history is judged.
 */
#ifndef CHAOS_ROUND_H
#define CHAOS_ROUND_H

#include "check.h"
#include "nemesis.h"

/* Sums over all rounds. */
struct tally {
    struct verdict verdict;
    struct nemesis nemesis;
    long rounds;
    long alone;                             /* rounds that ended without a wake-up by the test */
    long stuck;                             /* rounds that did not end */
    long handed;                            /* rounds with kept leases */
    int64_t made, taken, refused, overlaps; /* as counted by the resource */
};

/* A round without a fault and without a new call for this many leases is stuck. */
#define STILL_LEASES 60

/*
 * Runs a round of at least `faults` faults, of the groups `allowed`, and `calls` calls.  Prints the findings.
 * hands_on: the processes hand mutexes on from thread to thread, and keep leases; else each mutex is fair.
 */
void round_run(struct stage *stage, struct tally *tally, bool hands_on, unsigned allowed, int faults, int calls);

/* Fails if a round with kept leases has tried nothing: no hold without the server. */
void round_check_handed(const struct tally *tally);

/* Prints the counters, as lines of a TAP comment. */
void tally_print(const struct tally *tally, const struct stage *stage);

/* Checks that no process has left keys, connections or inboxes on the server. */
void round_check_end(struct stage *stage);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A claim that the threads of a process share: the line (core/line.h) decides, and this carries it out.
 *
 * All functions: state lock held.  Each section that may change what the line decides about begins with
 * dm_claim_sync() and ends with dm_claim_settle(), mostly in dm_step() or dm_step_settle().
 */
#ifndef DM_PROCESS_CLAIMS_CLAIM_H
#define DM_PROCESS_CLAIMS_CLAIM_H

#include "process/claims/process.h"
#include "process/claims/target.h"

struct dm_crowd;

/* True if a thread with such an object takes part in lines at all. */
bool dm_claim_may_share(const struct dm_target *target);

/* Makes the claim the line's, if the line has none and a thread with such an object may join. */
void dm_claim_share(struct dm_claim *claim, const struct dm_target *target);

/* Stops threads from entering and leaving without the state lock, and tells the core which have. */
void dm_claim_sync(struct dm_claim *claim);

/* Lets them in and out again as far as they may.  True if the hold is to be given back. */
bool dm_claim_settle(struct dm_claim *claim, int64_t now_ns);

/* Notes which thread is inside; 0: none.  The word is closed. */
void dm_claim_set_inside(struct dm_claim *claim, uint64_t thread, int64_t now_ns);

/* Makes the idle hold the thread's, with a new token.  The word is closed. */
void dm_claim_enter(struct dm_claim *claim, uint64_t thread);

/* Sets how often the thread inside must unlock. */
void dm_claim_set_depth(struct dm_claim *claim, unsigned depth);

/* Gives the first seat the claim; its thread is woken.  The word is closed. */
void dm_claim_pass(struct dm_claim *claim);

/* The process ends: a hold that was passed to a seat has no holder if the thread has not come back from the seat. */
void dm_claim_take_back(struct dm_claim *claim);

/* The threads that sit in the line of the claim; none if the claim is not the line's. */
void dm_claim_count_seats(const struct dm_claim *claim, int64_t now_ns, struct dm_crowd *ret_crowd);

/* Takes the claim, or all claims, out of the line and of the registry, and frees them. */
void dm_claim_drop(struct dm_registry *registry, struct dm_claim *claim);
void dm_claim_drop_all(struct dm_registry *registry);

#endif

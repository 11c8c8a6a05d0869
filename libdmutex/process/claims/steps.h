/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events into the core, and the core's actions into the world: every step of every attempt goes through dm_step().  A
 * want that needs the network is left to the loop thread's next turn (pump.h), or to the claim's own thread (call.h).
 */
#ifndef DM_PROCESS_CLAIMS_STEPS_H
#define DM_PROCESS_CLAIMS_STEPS_H

#include "process/claims/process.h"

/*
 * One step.  State lock held.  Frees the claim if the record may go: not while the thread is in a call about it, holds
 * by it, or has a release or a loss that is not dealt with.
 */
void dm_step(struct dm_runtime *runtime, struct dm_claim *claim, const struct dm_event *event);

/* The same for an event that is a kind alone. */
void dm_step_kind(struct dm_runtime *runtime, struct dm_claim *claim, enum dm_event_kind kind);

/* The thread needs the claim no more: the loop thread sends the release. */
void dm_step_give_back(struct dm_runtime *runtime, struct dm_claim *claim, enum dm_end end);

/* The same, and the caller sends the release, at once. */
void dm_step_give_back_now(struct dm_runtime *runtime, struct dm_claim *claim, enum dm_end end);

/*
 * Ends a section that dm_claim_sync() has begun: plans what the hold wants now, and lets threads in again, or gives
 * back a hold that nobody is going to use.  May free the claim.
 */
void dm_step_settle(struct dm_runtime *runtime, struct dm_claim *claim);

/*
 * The thread inside unlocks its last level.  True if the hold stays with the process; false if it is to be given back.
 */
bool dm_step_leave(struct dm_runtime *runtime, struct dm_claim *claim);

/* The claim's hold may have been idle for its linger time: gives it back, or checks later.  May free the claim. */
void dm_step_check(struct dm_runtime *runtime, struct dm_claim *claim);

/* Gives back what the process keeps of a name, or of all names, while no thread is inside. */
void dm_step_end_keeping(struct dm_runtime *runtime, struct dm_name *name);
void dm_step_end_all_keeping(struct dm_runtime *runtime);

/* Takes the calling thread out of a tenure that it has entered by mistake. */
void dm_step_put_back(struct dm_runtime *runtime);

/*
 * A release of the attempt was answered: DONE, NOT_OWNER, or anything else, which makes another release necessary.
 * True if the hold turns out to have been lost before.
 */
bool dm_step_released(struct dm_runtime *runtime, uint64_t attempt, const struct dm_answer *answer);

/* Other processes' waiters are left on a free lock: the next run of the pump serves them; is_soon: it runs at once. */
void dm_step_must_serve(struct dm_runtime *runtime, struct dm_name *name, bool is_soon);

/* Logs once why the server refuses posted requests; NULL: it does not refuse.  State lock held. */
void dm_step_log_refusal(struct dm_runtime *runtime, const char *refusal);

/*
 * The clock of the place's server was `store_us` at some time between sent_ns and now_ns of ours.  Logs a step of that
 * clock.
 */
void dm_step_clock(struct dm_runtime *runtime, const struct dm_place *place, int64_t store_us, int64_t sent_ns,
                   int64_t now_ns);

/*
 * A question of a claim to the store, which lacks the operation's own part, except for a release's.  The places are
 * valid while the names are pinned.
 */
struct dm_question dm_step_question(struct dm_claim *claim, enum dm_op op, struct dm_request request);

/* The poll of a claim that is due: the answer plans the next poll. */
struct dm_question dm_step_poll(struct dm_runtime *runtime, struct dm_claim *claim, int64_t now_ns,
                                struct dm_crowd *crowd);

/* A claim's renewal, which goes out now. */
struct dm_question dm_step_renewal(struct dm_runtime *runtime, struct dm_claim *claim, int64_t now_ns,
                                   struct dm_crowd *crowd);

#endif

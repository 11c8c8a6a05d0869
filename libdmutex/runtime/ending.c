/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtime/ending.h"

#include "runtime/release.h"
#include "runtime/schedule.h"
#include "runtime/steps.h"

/*
 * Gives a claim back.  An entered hold counts as a death for the next owner; a place in the queue or on a condition,
 * and a grant not yet returned by a call, do not.
 */
static void give_back(struct dm_runtime *runtime, struct dm_claim *claim)
{
    enum dm_phase phase = claim->attempt.phase;

    claim->is_asking = false;
    if (phase == DM_OVER)
        return;
    if (phase == DM_LOST && claim->attempt.is_entered)
        dm_step_close(runtime, claim);
    else
        dm_step_give_back(runtime, claim, claim->attempt.is_entered ? DM_END_DIED : DM_END_UNLOCKED);
}

static void give_back_all_of(struct dm_runtime *runtime, struct dm_self *self)
{
    struct dm_claim *claim, *next;

    for (claim = self->claims; claim; claim = next) {
        next = claim->next_of_thread;
        give_back(runtime, claim);
    }
}

void dm_ending_thread(struct dm_runtime *runtime, struct dm_self *self)
{
    dm_state_lock();
    give_back_all_of(runtime, self);
    dm_registry_part(self);
    dm_state_unlock();
}

/* ---- the process ------------------------------------------------------------------------- */

void dm_ending_lock(struct dm_runtime *runtime)
{
    dm_state_lock();
    if (!dm_self_must_park())
        return;
    give_back_all_of(runtime, dm_self_get());
    dm_state_unlock();
    dm_self_park();
}

/*
 * True while the claim's thread has a question under way: a release before the question would be in vain.  The thread
 * gives the claim back when the answer has come.
 */
static bool is_in_question(const struct dm_claim *claim)
{
    return (claim->is_asking || claim->attempt.phase == DM_LEAVING) && claim->self != dm_self_get();
}

/* Wakes resting threads, so that each parks instead of asking again.  State lock held. */
static void give_back_some(struct dm_runtime *runtime, bool are_holds, bool are_in_question)
{
    struct dm_claim *claim, *next;

    for (claim = runtime->registry.claims; claim; claim = next) {
        next = claim->next;
        if (claim->attempt.is_entered != are_holds || (is_in_question(claim) && !are_in_question))
            continue;
        if (claim->is_waiting)
            dm_self_wake(claim->self);
        give_back(runtime, claim);
    }
}

static bool is_all_given_back(struct dm_runtime *runtime)
{
    const struct dm_claim *claim;

    dm_state_lock();
    claim = runtime->registry.claims;
    while (claim && claim->attempt.phase == DM_OVER && !claim->is_owed)
        claim = claim->next;
    dm_state_unlock();
    return !claim;
}

/* Until all is given back and confirmed, or the deadline has passed. */
static void await_all(struct dm_runtime *runtime, const struct dm_deadline *deadline)
{
    while (!is_all_given_back(runtime) && dm_deadline_left_ns(deadline) > 0) {
        dm_release_await_owed(runtime, NULL, deadline);
        if (!is_all_given_back(runtime))
            dm_runtime_pause(deadline);
    }
}

/* Waiting places first, so that the server grants no released hold to a place of the same process. */
static void give_back_everything(struct dm_runtime *runtime, bool are_in_question)
{
    dm_state_lock();
    give_back_some(runtime, false, are_in_question);
    dm_state_unlock();
    dm_schedule_send_owed(runtime);
    dm_state_lock();
    give_back_some(runtime, true, are_in_question);
    dm_state_unlock();
}

void dm_ending_process(struct dm_runtime *runtime)
{
    struct dm_deadline deadline, sooner;

    dm_self_end_process();
    if (!runtime)
        return;
    deadline = dm_runtime_call_deadline(runtime);
    sooner = dm_deadline_sooner(&deadline, dm_deadline_left_ns(&deadline) / 2);
    give_back_everything(runtime, false);
    await_all(runtime, &sooner);
    give_back_everything(runtime, true); /* a signal handler may keep a thread in its question */
    await_all(runtime, &deadline);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/life/ending.h"

#include "base/rank.h"
#include "process/calls/release.h"
#include "process/claims/line.h"
#include "process/claims/steps.h"
#include "process/keep/pump.h"

/* A hold of a line may have gone to another thread, or to none, since the claim was this thread's. */
static void end_if_of(struct dm_runtime *runtime, struct dm_claim *claim, const struct dm_self *self,
                      enum dm_event_kind kind)
{
    dm_line_sync(claim);
    if (claim->holder != self->serial) {
        dm_step_follow(runtime, claim);
        return;
    }
    dm_line_take_back(claim);
    dm_step_kind(runtime, claim, kind);
}

/* The core gives each claim back: a hold as a death, a place in a queue or on a condition without a word. */
static void end_all_of(struct dm_runtime *runtime, struct dm_self *self, enum dm_event_kind kind)
{
    struct dm_claim *claim, *next;

    for (claim = self->claims; claim; claim = next) {
        next = claim->next_of_thread;
        end_if_of(runtime, claim, self, kind);
    }
    for (claim = dm_self_fast.has_entered ? runtime->registry.claims : NULL; claim; claim = next) {
        next = claim->next;
        if (claim->tenure)
            end_if_of(runtime, claim, self, kind);
    }
}

/*
 * In the last pass of the thread's destructors; the claims outlive the thread until their releases are confirmed, and
 * point to no dm_self any more.
 */
void dm_ending_thread(struct dm_runtime *runtime, struct dm_self *self)
{
    dm_state_lock();
    end_all_of(runtime, self, DM_EV_THREAD_ENDS);
    dm_registry_part(self);
    dm_state_unlock();
}

/* ---- the process ------------------------------------------------------------------------- */

void dm_ending_lock(struct dm_runtime *runtime)
{
    dm_state_lock();
    dm_ending_check(runtime);
}

/*
 * Each step of a waiting call comes by here with the state lock, so that a thread of an ending process gives back what
 * it has and goes no further: a call that returned would return without the mutex.
 */
void dm_ending_check(struct dm_runtime *runtime)
{
    dm_assert_held(DM_RANK_STATE);
    if (!dm_self_must_park())
        return;
    end_all_of(runtime, dm_self_get(), DM_EV_PROCESS_ENDS);
    dm_state_unlock();
    dm_self_park();
}

/*
 * True while the claim's thread has a question under way: a release before the question would be in vain.  The thread
 * gives the claim back when the answer has come.
 */
static bool is_in_question(const struct dm_claim *claim)
{
    return dm_hold_is_in_question(&claim->hold) && claim->self != dm_self_get();
}

/* Wakes resting threads, so that each parks instead of asking again.  State lock held. */
static void give_back_some(struct dm_runtime *runtime, bool are_holds, bool are_in_question)
{
    struct dm_claim *claim, *next;

    dm_assert_held(DM_RANK_STATE);
    for (claim = runtime->registry.claims; claim; claim = next) {
        next = claim->next;
        dm_line_sync(claim); /* for good: no thread enters any more without the state lock */
        if (claim->hold.is_entered != are_holds || (is_in_question(claim) && !are_in_question))
            continue;
        if (claim->hold.is_attended)
            dm_self_wake(claim->self);
        dm_line_take_back(claim);
        dm_step_kind(runtime, claim, DM_EV_PROCESS_ENDS);
    }
}

/* A refused attempt stays for its thread, which is parked and will never read the refusal: OVER is enough. */
static bool is_all_given_back(struct dm_runtime *runtime)
{
    const struct dm_claim *claim;

    dm_state_lock();
    claim = runtime->registry.claims;
    while (claim && claim->hold.phase == DM_OVER)
        claim = claim->next;
    dm_state_unlock();
    return !claim;
}

/* A process that has never reached a server has nothing there. */
static bool has_asked(struct dm_runtime *runtime)
{
    struct dm_traffic traffic;

    dm_store_count(runtime->store, &traffic);
    return traffic.commands > 0;
}

/* Until all is given back and confirmed, or the deadline has passed. */
static void await_all(struct dm_runtime *runtime, const struct dm_deadline *deadline)
{
    while (has_asked(runtime) && !is_all_given_back(runtime) && dm_deadline_left_ns(deadline) > 0) {
        dm_release_await_pending(runtime, NULL, deadline);
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
    dm_pump_send_releases(runtime);
    dm_state_lock();
    give_back_some(runtime, true, are_in_question);
    dm_state_unlock();
}

/*
 * exit() waits for command_timeout at most: half of it for threads that have a question under way, and the rest with
 * their questions given up: no question that waits for a connection follows the release of its claim.
 */
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
    dm_self_end_questions();
    give_back_everything(runtime, true); /* a signal handler may keep a thread in its question */
    await_all(runtime, &deadline);
    dm_metrics_end(runtime);
}

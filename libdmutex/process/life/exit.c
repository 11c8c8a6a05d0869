/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/life/exit.h"

#include "base/log.h"
#include "base/rank.h"
#include "process/claims/claim.h"
#include "process/claims/steps.h"
#include "process/keep/metrics.h"
#include "process/keep/returns.h"

/*
 * True while another thread's request about its claim is under way: a release that arrives before the request would be
 * in vain.  That thread gives the claim back when it has the answer.
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
        dm_claim_sync(claim); /* permanently: no thread enters without the state lock any more */
        if (claim->hold.is_entered != are_holds || (is_in_question(claim) && !are_in_question))
            continue;
        if (claim->hold.is_attended)
            dm_self_wake(claim->self);
        dm_claim_take_back(claim);
        dm_step_kind(runtime, claim, DM_EV_PROCESS_ENDS);
    }
}

/* A refused attempt stays for its thread, which is parked and will never read the refusal, so OVER is enough. */
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

/* A process that has never sent a command has nothing on a server. */
static bool has_asked(struct dm_runtime *runtime)
{
    struct dm_traffic traffic;

    dm_store_count(runtime->store, &traffic);
    return traffic.commands > 0;
}

/* Waits until all is given back and confirmed, or the deadline has passed. */
static void await_all(struct dm_runtime *runtime, const struct dm_deadline *deadline)
{
    while (has_asked(runtime) && !is_all_given_back(runtime) && dm_deadline_left_ns(deadline) > 0) {
        dm_returns_await(runtime, NULL, deadline);
        if (!is_all_given_back(runtime))
            dm_runtime_pause(deadline);
    }
}

/* Gives back places in queues first, so that the server does not grant a released hold to this process again. */
static void give_back_everything(struct dm_runtime *runtime, bool are_in_question)
{
    dm_state_lock();
    give_back_some(runtime, false, are_in_question);
    dm_state_unlock();
    dm_returns_send(runtime);
    dm_state_lock();
    give_back_some(runtime, true, are_in_question);
    dm_state_unlock();
}

/*
 * exit() waits for command_timeout at most: half of it for threads whose requests are under way, and the rest after
 * those requests are given up, so that none that still waits for a connection follows the release of its claim.
 */
void dm_exit_process(struct dm_runtime *runtime)
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
    give_back_everything(runtime, true); /* a signal handler may keep a thread in its request */
    await_all(runtime, &deadline);
    if (has_asked(runtime))
        dm_store_leave(runtime->store, &deadline);
    dm_metrics_end(runtime);
    dm_log_deliver();
}

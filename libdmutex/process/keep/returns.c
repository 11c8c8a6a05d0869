/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/keep/returns.h"

#include <stdlib.h>

#include "base/rank.h"
#include "process/calls/call.h"
#include "process/claims/steps.h"

/* A release under way.  The claim may be freed before the answer, so we keep the attempt's number. */
struct posted {
    struct dm_runtime *runtime;
    uint64_t attempt;
};

/* answer NULL: not sent, or no answer. */
static void take_release(struct dm_runtime *runtime, uint64_t attempt, const struct dm_answer *answer)
{
    static const struct dm_answer nothing = { .verdict = DM_SAYS_NOTHING };

    dm_step_released(runtime, attempt, answer ? answer : &nothing);
}

/* a dm_answers_fn */
static void release_answered(void *user, const struct dm_answer *answers, int count, const char *refusal)
{
    struct posted *posted = user;

    (void)count; /* 1 */
    dm_state_lock();
    dm_step_log_refusal(posted->runtime, refusal);
    take_release(posted->runtime, posted->attempt, answers);
    dm_state_unlock();
    free(posted);
}

/*
 * Without the state lock.  If the release cannot be sent, opens the way, so that even a process that makes no other
 * call releases.
 */
static void post_release(struct dm_runtime *runtime, const struct dm_question *release)
{
    struct posted *posted = malloc(sizeof *posted);

    if (posted) {
        *posted = (struct posted){ runtime, release->attempt };
        if (dm_store_submit(runtime->store, release, 1, release_answered, posted))
            return;
    }
    free(posted);
    dm_store_want(runtime->store, release->place, DM_ASKS);
    dm_state_lock();
    take_release(runtime, release->attempt, NULL);
    dm_state_unlock();
}

/*
 * The claim whose release is due first, if due now.  A claim whose lease has ended its hold wants no release any more.
 */
static struct dm_claim *next_to_release(struct dm_runtime *runtime, int64_t now_ns)
{
    struct dm_claim *claim;

    while ((claim = dm_due_first(&runtime->registry, DM_WANTS_RELEASE, now_ns)) != NULL) {
        if (now_ns < claim->hold.back.until_ns)
            return claim;
        dm_step_kind(runtime, claim, DM_EV_TIME);
    }
    return NULL;
}

/*
 * Several threads may do this at once: dm_hold_send() takes the want away under the lock, so no release is sent twice.
 * The lock is given up for each post, and the search for the next claim starts again.
 */
void dm_returns_send(struct dm_runtime *runtime)
{
    struct dm_claim *claim;
    int64_t now_ns;

    dm_state_lock();
    while ((claim = next_to_release(runtime, now_ns = dm_clock_boot_ns())) != NULL) {
        struct dm_request request = dm_hold_send(&claim->hold, DM_WANTS_RELEASE, now_ns);
        struct dm_call call;

        dm_due_plan(&runtime->registry, claim);
        dm_call_begin(&call, runtime, claim, DM_OP_RELEASE, request);
        post_release(runtime, &call.question);
        dm_call_return(&call);
    }
    dm_state_unlock();
}

static bool is_any_pending(struct dm_runtime *runtime, const struct dm_name *name)
{
    const struct dm_claim *claim;
    bool is_any;

    dm_state_lock();
    claim = runtime->registry.claims;
    while (claim && !(dm_hold_is_returning(&claim->hold) && (!name || claim->name == name)))
        claim = claim->next;
    is_any = claim != NULL;
    dm_state_unlock();
    return is_any;
}

/*
 * A release that the store refuses, or that waits for a loss to be reported, is sent later.  Nothing is on the way
 * then, so dm_store_drain() returns at once: hence the pause.
 */
void dm_returns_await(struct dm_runtime *runtime, const struct dm_name *name, const struct dm_deadline *deadline)
{
    while (is_any_pending(runtime, name) && dm_deadline_left_ns(deadline) > 0) {
        dm_returns_send(runtime);
        dm_store_drain(runtime->store, deadline);
        if (is_any_pending(runtime, name))
            dm_runtime_pause(deadline);
    }
}

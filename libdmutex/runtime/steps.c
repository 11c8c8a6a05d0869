/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtime/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/rank.h"
#include "runtime/loop.h"

/* A step of the server's clock below this is indistinguishable from a slow answer. */
#define CLOCK_STEP_NS (200 * DM_NS_PER_MS)

#define RETRY_MIN_NS (50 * DM_NS_PER_MS)

/* Waiting threads send nothing: so soon the schedule looks at the server for them, by dm_store_look(). */
#define LOOK_NS DM_NS_PER_S

static int64_t lease_ns(const struct dm_claim *claim)
{
    return claim->attempt.lease_ms * DM_NS_PER_MS;
}

/* The claim is owed from here on; the loop or this thread, the first of both, tells the store. */
static void owe(struct dm_claim *claim, enum dm_end end, int64_t now_ns)
{
    claim->is_owed = true;
    claim->end = end;
    claim->sends = 0;
    claim->owed_due_ns = now_ns;
    claim->owed_until_ns = now_ns + 2 * lease_ns(claim); /* the last request may have been executed just now */
    if (claim->attempt.is_entered)
        claim->owed_until_ns = claim->attempt.certain_until_ns + lease_ns(claim) / 5;
}

static void owe_soon(struct dm_runtime *runtime, struct dm_claim *claim, enum dm_end end)
{
    int64_t now_ns = dm_clock_boot_ns();

    if (claim->is_owed)
        return;
    owe(claim, end, now_ns);
    dm_due_plan(&runtime->registry, claim);
    dm_loop_wake_at(runtime->loop, now_ns);
}

/* A hold that the thread never entered ended without harm; any other hold looks like a death. */
static enum dm_end end_of_lost(const struct dm_claim *claim)
{
    return claim->attempt.is_entered ? DM_END_DIED : DM_END_UNLOCKED;
}

static uint64_t server_now(const struct dm_runtime *runtime)
{
    return dm_store_origin(runtime->store).number;
}

unsigned dm_step(struct dm_runtime *runtime, struct dm_claim *claim, const struct dm_event *event)
{
    int64_t now_ns = dm_clock_boot_ns();
    unsigned actions = dm_attempt_step(&claim->attempt, event, now_ns);

    dm_assert_held(DM_RANK_STATE);
    if (event->answer && event->answer->verdict == DM_SAYS_OWNED)
        claim->server = server_now(runtime);
    if (event->answer && event->answer->is_wanted && event->answer->verdict != DM_SAYS_OWNED)
        dm_step_must_serve(runtime, claim->name, true);
    if (claim->attempt.token > claim->name->seen)
        claim->name->seen = claim->attempt.token;
    if (actions & DM_DO_NEW_SERIAL) {
        dm_registry_rename(&runtime->registry, claim);
        dm_registry_set_condition(&runtime->registry, claim, NULL); /* the claim comes back as a waiter of the mutex */
    }
    if (actions & DM_DO_TELL_LOST)
        claim->is_loss_untold = true;
    if (actions & DM_DO_GIVE_BACK && event->kind != DM_EV_GIVEN_BACK && !claim->is_asking)
        owe_soon(runtime, claim, end_of_lost(claim));
    if (actions & DM_DO_WAKE && claim->is_waiting)
        dm_self_wake(claim->self);
    dm_due_plan(&runtime->registry, claim);
    if (dm_attempt_is_waiting(&claim->attempt))
        dm_loop_wake_at(runtime->loop, now_ns + LOOK_NS);
    dm_loop_wake_at(runtime->loop, dm_attempt_next_ns(&claim->attempt));
    return actions;
}

unsigned dm_step_time(struct dm_runtime *runtime, struct dm_claim *claim)
{
    return dm_step(runtime, claim, &(struct dm_event){ .kind = DM_EV_TIME });
}

void dm_step_give_back(struct dm_runtime *runtime, struct dm_claim *claim, enum dm_end end)
{
    dm_assert_held(DM_RANK_STATE);
    dm_step(runtime, claim, &(struct dm_event){ .kind = DM_EV_GIVEN_BACK });
    owe_soon(runtime, claim, end);
}

void dm_step_give_back_now(struct dm_runtime *runtime, struct dm_claim *claim, enum dm_end end)
{
    dm_assert_held(DM_RANK_STATE);
    dm_step(runtime, claim, &(struct dm_event){ .kind = DM_EV_GIVEN_BACK });
    owe(claim, end, dm_clock_boot_ns());
    claim->owed_due_ns = DM_NEVER;
    claim->sends = 1;
    dm_due_plan(&runtime->registry, claim);
}

/*
 * A claim goes once the thread has seen the end of the claim, the store has confirmed the release, and the loss is
 * told.
 */
static void drop_if_over(struct dm_runtime *runtime, struct dm_claim *claim)
{
    if (claim->attempt.phase == DM_OVER && !claim->is_waiting && !claim->is_owed && !claim->is_loss_untold)
        dm_registry_drop(&runtime->registry, claim);
    else
        dm_due_plan(&runtime->registry, claim);
}

void dm_step_close(struct dm_runtime *runtime, struct dm_claim *claim)
{
    dm_assert_held(DM_RANK_STATE);
    claim->attempt.phase = DM_OVER;
    claim->is_waiting = false;
    drop_if_over(runtime, claim);
}

static void settle(struct dm_runtime *runtime, struct dm_claim *claim)
{
    claim->is_owed = false;
    drop_if_over(runtime, claim);
}

/*
 * "Not the owner" to the only release of a hold that was certain, so nobody else can have released the hold: the hold
 * was broken by force, and nobody has noticed yet.  Not so after a change to another server, which may not know the
 * hold, and has granted the mutex to nobody.
 */
static bool is_silent_loss(const struct dm_runtime *runtime, const struct dm_claim *claim)
{
    return claim->sends == 1 && !claim->is_named && claim->end != DM_END_DIED && claim->attempt.is_entered &&
           claim->server == server_now(runtime);
}

void dm_step_must_serve(struct dm_runtime *runtime, struct dm_name *name, bool is_soon)
{
    dm_assert_held(DM_RANK_STATE);
    name->must_serve = true;
    runtime->registry.names_to_serve++;
    if (is_soon)
        dm_loop_wake_at(runtime->loop, dm_clock_boot_ns());
}

void dm_step_told(struct dm_runtime *runtime, struct dm_claim *claim)
{
    dm_assert_held(DM_RANK_STATE);
    claim->is_loss_untold = false;
    drop_if_over(runtime, claim);
}

/* The release is to be sent again: at once if the server did not execute the release, else a little later. */
static void plan_release(struct dm_runtime *runtime, struct dm_claim *claim, bool is_soon)
{
    int64_t pause_ns = is_soon ? 0 : MAX(lease_ns(claim) / 20, RETRY_MIN_NS);

    claim->owed_due_ns = dm_clock_boot_ns() + pause_ns;
    dm_due_plan(&runtime->registry, claim);
    dm_loop_wake_at(runtime->loop, claim->owed_due_ns);
}

bool dm_step_released(struct dm_runtime *runtime, struct dm_claim *claim, const struct dm_answer *answer)
{
    bool was_lost = answer->verdict == DM_SAYS_NOT_OWNER && is_silent_loss(runtime, claim);

    dm_assert_held(DM_RANK_STATE);
    if (answer->verdict != DM_SAYS_DONE && answer->verdict != DM_SAYS_NOT_OWNER) {
        plan_release(runtime, claim, answer->verdict == DM_SAYS_AGAIN);
        return false;
    }
    if (answer->is_wanted)
        dm_step_must_serve(runtime, claim->name, true);
    if (was_lost) {
        claim->is_loss_untold = true;
        dm_loop_wake_at(runtime->loop, dm_clock_boot_ns());
    }
    settle(runtime, claim);
    return was_lost;
}

void dm_step_log_refusal(struct dm_runtime *runtime, const char *refusal)
{
    dm_assert_held(DM_RANK_STATE);
    if (!refusal || strncmp(runtime->refusal, refusal, sizeof runtime->refusal - 1) == 0)
        return;
    snprintf(runtime->refusal, sizeof runtime->refusal, "%s", refusal);
    dm_log_error("the server refuses a renewal, poll or release: %.200s", refusal);
}

/*
 * Each answer proves an interval for the store's clock, as wide as the answer took.  Intervals that lie far apart mean
 * a step; a slow drift moves the interval along.
 */
void dm_step_clock(struct dm_runtime *runtime, int64_t store_us, int64_t sent_ns, int64_t now_ns)
{
    int64_t least = store_us * DM_NS_PER_US - now_ns, most = store_us * DM_NS_PER_US - sent_ns;
    int64_t step = MAX(least - runtime->ahead_most_ns, runtime->ahead_least_ns - most);
    bool is_known = runtime->ahead_least_ns || runtime->ahead_most_ns;

    dm_assert_held(DM_RANK_STATE);
    if (store_us == 0)
        return;
    if (is_known && step > CLOCK_STEP_NS)
        dm_log_warn("the server's clock was stepped by about %lld ms: leases may have ended early or last longer",
                    (long long)(step / DM_NS_PER_MS));
    if (is_known && step <= 0) {
        least = MAX(least, runtime->ahead_least_ns);
        most = MIN(most, runtime->ahead_most_ns);
    }
    runtime->ahead_least_ns = least;
    runtime->ahead_most_ns = most;
    runtime->registry.store_us = store_us;
}

struct dm_ask dm_step_ask(struct dm_claim *claim, struct dm_request request)
{
    dm_assert_held(DM_RANK_STATE);
    return (struct dm_ask){
        .place = claim->name->place,
        .condition = claim->condition ? claim->condition->place : NULL,
        .thread = claim->attempt.thread,
        .attempt = claim->attempt.serial,
        .request = request,
        .lease_ms = claim->attempt.lease_ms,
        .is_robust = claim->attempt.is_robust,
        .seen = claim->name->seen,
        .arrival = claim->attempt.arrival,
    };
}

struct dm_ask dm_step_poll(struct dm_runtime *runtime, struct dm_claim *claim, int64_t now_ns)
{
    struct dm_request request = dm_attempt_send_due(&claim->attempt, now_ns);

    dm_due_plan(&runtime->registry, claim);
    return dm_step_ask(claim, request);
}

struct dm_renewal dm_step_renewal(struct dm_runtime *runtime, struct dm_claim *claim, int64_t now_ns)
{
    struct dm_request request = dm_attempt_send_due(&claim->attempt, now_ns);

    dm_due_plan(&runtime->registry, claim);
    return (struct dm_renewal){
        .place = claim->name->place,
        .thread = claim->attempt.thread,
        .attempt = claim->attempt.serial,
        .request = request,
        .lease_ms = claim->attempt.lease_ms,
        .depth = claim->attempt.depth,
        .token = claim->attempt.token,
    };
}

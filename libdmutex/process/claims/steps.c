/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/claims/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/minmax.h"
#include "base/rank.h"
#include "process/claims/alarm.h"
#include "process/claims/claim.h"

/* A step of the server's clock below this is indistinguishable from a slow answer. */
#define CLOCK_STEP_NS (200 * DM_NS_PER_MS)

/* Waiting threads send nothing.  After this time the pump checks the server for them, with dm_store_look(). */
#define LOOK_NS DM_NS_PER_S

/* After this many holds in a row for which nobody waited, a name is no longer contested. */
#define CONTESTED_HOLDS 4

static uint64_t server_now(const struct dm_runtime *runtime, const struct dm_claim *claim)
{
    return dm_store_origin(runtime->store, claim->name->place).number;
}

/*
 * The core tells servers apart by the numbers of struct dm_origin.  A caller that knows the number from before the
 * request gives it, because another server may have taken over before the thread reads the answer.
 */
static struct dm_event with_server(const struct dm_runtime *runtime, const struct dm_claim *claim,
                                   const struct dm_event *event)
{
    struct dm_event numbered = *event;

    if (!event->server && event->answer &&
        (event->answer->verdict == DM_SAYS_OWNED || event->answer->verdict == DM_SAYS_NOT_OWNER))
        numbered.server = server_now(runtime, claim);
    return numbered;
}

/*
 * Ends a section about the claim: plans what it wants, and lets threads in again.  True if the hold must be given back.
 */
static bool settle(struct dm_runtime *runtime, struct dm_claim *claim, int64_t now_ns)
{
    dm_alarm_set(runtime->alarm, dm_due_plan(&runtime->registry, claim));
    if (dm_hold_is_waiting(&claim->hold))
        dm_alarm_set(runtime->alarm, now_ns + LOOK_NS);
    return dm_claim_settle(claim, now_ns);
}

/*
 * A hold granted by a message is one that was waited for.  Processes that want a name at the same time mostly do so for
 * a while, so one such hold among several is enough to expect a waiter at the next release.
 */
static void note_hold(struct dm_claim *claim, enum dm_event_kind how)
{
    struct dm_name *name = claim->name;

    name->seen = claim->hold.token;
    if (how == DM_EV_GRANTED)
        name->contested = CONTESTED_HOLDS;
    else if (name->contested > 0)
        name->contested--;
}

/* True if the claim is still there, and its hold is to be given back. */
static bool step_once(struct dm_runtime *runtime, struct dm_claim *claim, const struct dm_event *event)
{
    int64_t now_ns = dm_clock_boot_ns();
    struct dm_event numbered = with_server(runtime, claim, event);
    bool was_untold = claim->hold.is_untold;
    unsigned actions;

    dm_claim_sync(claim);
    actions = dm_hold_step(&claim->hold, &numbered, now_ns);
    runtime->stats.losses += claim->hold.is_untold && !was_untold;
    if (event->answer && event->answer->is_wanted)
        dm_step_must_serve(runtime, claim->name, true);
    if (claim->hold.token > claim->name->seen)
        note_hold(claim, event->kind);
    if (dm_hold_is_done(&claim->hold)) {
        dm_claim_drop(&runtime->registry, claim);
        return false;
    }
    if (actions & DM_DO_NEW_SERIAL) {
        dm_registry_rename(&runtime->registry, claim);
        dm_registry_set_condition(&runtime->registry, claim, NULL); /* the claim comes back as a waiter of the mutex */
    }
    if (actions & DM_DO_WAKE)
        dm_self_wake(claim->self);
    return settle(runtime, claim, now_ns);
}

void dm_step(struct dm_runtime *runtime, struct dm_claim *claim, const struct dm_event *event)
{
    const struct dm_event given_back = { .kind = DM_EV_GIVEN_BACK, .end = DM_END_UNLOCKED };

    dm_assert_held(DM_RANK_STATE);
    while (step_once(runtime, claim, event))
        event = &given_back;
}

void dm_step_kind(struct dm_runtime *runtime, struct dm_claim *claim, enum dm_event_kind kind)
{
    dm_step(runtime, claim, &(struct dm_event){ .kind = kind });
}

void dm_step_give_back(struct dm_runtime *runtime, struct dm_claim *claim, enum dm_end end)
{
    dm_step(runtime, claim, &(struct dm_event){ .kind = DM_EV_GIVEN_BACK, .end = end });
}

void dm_step_settle(struct dm_runtime *runtime, struct dm_claim *claim)
{
    dm_assert_held(DM_RANK_STATE);
    if (settle(runtime, claim, dm_clock_boot_ns()))
        dm_step_give_back(runtime, claim, DM_END_UNLOCKED);
}

void dm_step_give_back_now(struct dm_runtime *runtime, struct dm_claim *claim, enum dm_end end)
{
    struct dm_event event = { .kind = DM_EV_GIVEN_BACK, .end = end };
    int64_t now_ns = dm_clock_boot_ns();

    dm_assert_held(DM_RANK_STATE);
    dm_claim_sync(claim);
    dm_hold_step(&claim->hold, &event, now_ns); /* not by dm_step(), which would wake the loop for the release */
    dm_hold_send(&claim->hold, DM_WANTS_RELEASE, now_ns);
    settle(runtime, claim, now_ns);
}

/* ---- unlocking, and keeping -------------------------------------------------------------- */

bool dm_step_leave(struct dm_runtime *runtime, struct dm_claim *claim)
{
    struct dm_name *name = claim->name;
    int64_t now_ns = dm_clock_boot_ns();
    bool is_told;

    dm_assert_held(DM_RANK_STATE);
    if (!dm_claim_is_shared(claim) || dm_self_is_ending())
        return false;
    dm_claim_sync(claim);
    is_told = dm_store_is_able(runtime->store, name->place, DM_TELLS);
    if (!is_told && (name->line.first || claim->tenure->linger_ms)) {
        runtime->registry.inboxes_wanted += !name->wants_inbox;
        name->wants_inbox = true;
        dm_alarm_set(runtime->alarm, now_ns);
    }
    switch (dm_line_leave(&name->line, is_told, now_ns)) {
    case DM_NEXT_PASS:
        dm_claim_pass(claim);
        runtime->stats.handoffs++;
        break;
    case DM_NEXT_STAY:
        dm_claim_set_inside(claim, 0, now_ns);
        break;
    default: /* DM_NEXT_GIVE_BACK */
        return false;
    }
    dm_step_settle(runtime, claim);
    return true;
}

void dm_step_check(struct dm_runtime *runtime, struct dm_claim *claim)
{
    dm_assert_held(DM_RANK_STATE);
    dm_claim_sync(claim);
    if (dm_line_check(&claim->name->line, claim->tenure, dm_clock_boot_ns()) == DM_NEXT_GIVE_BACK)
        dm_step_give_back(runtime, claim, DM_END_UNLOCKED);
    else
        dm_step_settle(runtime, claim);
}

void dm_step_end_keeping(struct dm_runtime *runtime, struct dm_name *name)
{
    struct dm_claim *claim = dm_claim_of(name->line.tenure);

    dm_assert_held(DM_RANK_STATE);
    if (!claim)
        return;
    dm_claim_sync(claim);
    if (dm_line_is_unused(&name->line, claim->tenure))
        dm_step_give_back(runtime, claim, DM_END_UNLOCKED);
    else
        dm_step_settle(runtime, claim);
}

void dm_step_end_all_keeping(struct dm_runtime *runtime)
{
    struct dm_claim *claim, *next;

    dm_assert_held(DM_RANK_STATE);
    for (claim = runtime->registry.claims; claim; claim = next) {
        next = claim->next;
        if (dm_claim_is_shared(claim))
            dm_step_end_keeping(runtime, claim->name);
    }
}

void dm_step_put_back(struct dm_runtime *runtime)
{
    struct dm_tenure *tenure = dm_self_fast.misled;
    struct dm_claim *claim = dm_claim_of(tenure);
    int64_t now_ns = dm_clock_boot_ns();

    dm_assert_held(DM_RANK_STATE);
    dm_self_fast.misled = NULL;
    if (!claim || dm_tenure_inside(tenure) != dm_self_get()->serial)
        return;
    dm_claim_sync(claim);
    if (claim->hold.phase == DM_HELD) {
        dm_claim_set_inside(claim, 0, now_ns);
        if (tenure->linger_ms) /* the seats may be gone by now */
            dm_hold_look_at(&claim->hold, now_ns + tenure->linger_ms * DM_NS_PER_MS);
        dm_step_settle(runtime, claim);
    } else if (claim->hold.phase == DM_LOST) {
        dm_step_kind(runtime, claim, DM_EV_CLOSED);
    }
}

/* ---- what the store says ----------------------------------------------------------------- */

void dm_step_must_serve(struct dm_runtime *runtime, struct dm_name *name, bool is_soon)
{
    dm_assert_held(DM_RANK_STATE);
    name->must_serve = true;
    runtime->registry.names_to_serve++;
    if (is_soon)
        dm_alarm_set(runtime->alarm, dm_clock_boot_ns());
}

bool dm_step_released(struct dm_runtime *runtime, uint64_t attempt, const struct dm_answer *answer)
{
    struct dm_claim *claim = dm_registry_attempt(&runtime->registry, attempt);

    if (!claim)
        return false;
    dm_step(runtime, claim, &(struct dm_event){ .kind = DM_EV_RELEASED, .answer = answer });
    if (answer->verdict != DM_SAYS_NOT_OWNER)
        return false;
    claim = dm_registry_attempt(&runtime->registry, attempt); /* stays until the application is told of the loss */
    return claim && dm_hold_wants(&claim->hold, dm_clock_boot_ns()) == DM_WANTS_TELL;
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
 * Each answer gives an interval for the offset of the server's clock, as wide as the answer took.  Intervals that are
 * far apart mean a step; a slow drift moves the interval along.
 */
void dm_step_clock(struct dm_runtime *runtime, const struct dm_place *place, int64_t store_us, int64_t sent_ns,
                   int64_t now_ns)
{
    struct dm_lane *lane = &runtime->lanes[dm_store_lane(runtime->store, place)];
    int64_t least = store_us * DM_NS_PER_US - now_ns, most = store_us * DM_NS_PER_US - sent_ns;
    int64_t step = dm_max64(least - lane->ahead_most_ns, lane->ahead_least_ns - most);
    bool is_known = lane->ahead_least_ns || lane->ahead_most_ns;

    dm_assert_held(DM_RANK_STATE);
    if (store_us == 0)
        return;
    if (is_known && step > CLOCK_STEP_NS)
        dm_log_warn("the server's clock was stepped by about %lld ms: leases may have ended early or last longer",
                    (long long)(step / DM_NS_PER_MS));
    if (is_known && step <= 0) {
        least = dm_max64(least, lane->ahead_least_ns);
        most = dm_min64(most, lane->ahead_most_ns);
    }
    lane->ahead_least_ns = least;
    lane->ahead_most_ns = most;
    runtime->registry.store_us = store_us;
}

struct dm_question dm_step_question(struct dm_claim *claim, enum dm_op op, struct dm_request request)
{
    struct dm_question question = {
        .op = op,
        .place = claim->name->place,
        .condition = claim->condition ? claim->condition->place : NULL,
        .thread = claim->hold.thread,
        .attempt = claim->hold.serial,
        .request = request,
        .lease_ms = claim->hold.lease_ms,
        .is_robust = claim->hold.is_robust,
        .is_contested = claim->name->contested > 0 || claim->hold.is_wanted,
        .seen = claim->name->seen,
        .arrival = claim->hold.arrival,
    };

    dm_assert_held(DM_RANK_STATE);
    if (op == DM_OP_RELEASE) {
        question.release.end = claim->hold.back.end;
        question.release.held_ms = claim->hold.back.held_ms;
    }
    return question;
}

struct dm_question dm_step_poll(struct dm_runtime *runtime, struct dm_claim *claim, int64_t now_ns,
                                struct dm_crowd *crowd)
{
    struct dm_question poll = dm_step_question(claim, DM_OP_POLL, dm_hold_send(&claim->hold, DM_WANTS_POLL, now_ns));

    dm_claim_count_seats(claim, now_ns, crowd);
    poll.crowd = crowd;
    dm_due_plan(&runtime->registry, claim);
    if (claim->has_left)
        poll.condition = NULL;
    return poll;
}

/*
 * Without a mark, no message reports waiters.  A robust mutex is handed on without a gap; between two holds of any
 * other mutex nobody is inside, so a process killed then is not an owner that died.
 */
static enum dm_mark mark_of(const struct dm_hold *hold)
{
    if (!hold->is_marked)
        return DM_MARK_NONE;
    return hold->is_robust ? DM_MARK_TELL : DM_MARK_TELL_NO_DEATH;
}

struct dm_question dm_step_renewal(struct dm_runtime *runtime, struct dm_claim *claim, int64_t now_ns,
                                   struct dm_crowd *crowd)
{
    struct dm_question renewal;

    dm_claim_sync(claim);
    renewal = dm_step_question(claim, DM_OP_RENEW, dm_hold_send(&claim->hold, DM_WANTS_RENEW, now_ns));
    renewal.crowd = crowd;
    renewal.renew.depth = dm_hold_is_idle(&claim->hold) ? 0 : claim->hold.depth;
    renewal.renew.token = claim->hold.token;
    renewal.renew.mark = mark_of(&claim->hold);
    dm_claim_count_seats(claim, now_ns, crowd);
    dm_step_settle(runtime, claim);
    return renewal;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/claims/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/minmax.h"
#include "base/rank.h"
#include "process/claims/alarm.h"
#include "process/claims/line_parts.h"

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

static void follow(struct dm_runtime *runtime, struct dm_claim *claim, unsigned actions, int64_t now_ns)
{
    if (actions & DM_DO_NEW_SERIAL) {
        dm_registry_rename(&runtime->registry, claim);
        dm_registry_set_condition(&runtime->registry, claim, NULL); /* the claim comes back as a waiter of the mutex */
    }
    if (actions & DM_DO_WAKE)
        dm_self_wake(claim->self);
    dm_due_plan(&runtime->registry, claim);
    if (dm_hold_is_waiting(&claim->hold))
        dm_alarm_set(runtime->alarm, now_ns + LOOK_NS);
    dm_alarm_set(runtime->alarm, dm_hold_next_ns(&claim->hold));
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

/* The caller does what the line decides after the step.  DM_LINE_KEEPS also if the claim was freed. */
static enum dm_line_next step_once(struct dm_runtime *runtime, struct dm_claim *claim, const struct dm_event *event)
{
    int64_t now_ns = dm_clock_boot_ns();
    struct dm_event numbered = with_server(runtime, claim, event);
    bool was_untold = claim->hold.is_untold;
    unsigned actions;

    dm_line_sync(claim);
    actions = dm_hold_step(&claim->hold, &numbered, now_ns);
    runtime->stats.losses += claim->hold.is_untold && !was_untold;
    if (event->answer && event->answer->is_wanted)
        dm_step_must_serve(runtime, claim->name, true);
    if (claim->hold.token > claim->name->seen)
        note_hold(claim, event->kind);
    if (dm_hold_is_done(&claim->hold)) {
        dm_line_drop(&runtime->registry, claim);
        return DM_LINE_KEEPS;
    }
    follow(runtime, claim, actions, now_ns);
    return dm_line_follow(claim);
}

void dm_step(struct dm_runtime *runtime, struct dm_claim *claim, const struct dm_event *event)
{
    const struct dm_event given_back = { .kind = DM_EV_GIVEN_BACK, .end = DM_END_UNLOCKED };

    dm_assert_held(DM_RANK_STATE);
    while (step_once(runtime, claim, event) == DM_LINE_GIVES_BACK)
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

static void give_back_if(struct dm_runtime *runtime, struct dm_claim *claim, enum dm_line_next next)
{
    if (next == DM_LINE_GIVES_BACK)
        dm_step_give_back(runtime, claim, DM_END_UNLOCKED);
}

void dm_step_follow(struct dm_runtime *runtime, struct dm_claim *claim)
{
    give_back_if(runtime, claim, dm_line_follow(claim));
}

void dm_step_reopen(struct dm_runtime *runtime, struct dm_claim *claim)
{
    give_back_if(runtime, claim, dm_line_reopen(claim));
}

void dm_step_settle(struct dm_runtime *runtime, struct dm_claim *claim)
{
    dm_due_plan(&runtime->registry, claim);
    dm_alarm_set(runtime->alarm, dm_hold_next_ns(&claim->hold));
    dm_step_reopen(runtime, claim);
}

void dm_step_give_back_now(struct dm_runtime *runtime, struct dm_claim *claim, enum dm_end end)
{
    struct dm_event event = { .kind = DM_EV_GIVEN_BACK, .end = end };
    int64_t now_ns = dm_clock_boot_ns();

    dm_assert_held(DM_RANK_STATE);
    dm_line_sync(claim);
    dm_hold_step(&claim->hold, &event, now_ns); /* not by dm_step(), which would wake the loop for the release */
    dm_hold_send(&claim->hold, DM_WANTS_RELEASE, now_ns);
    dm_due_plan(&runtime->registry, claim);
    dm_step_follow(runtime, claim);
}

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

    dm_line_count_seats(claim, now_ns, crowd);
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

    dm_line_sync(claim);
    renewal = dm_step_question(claim, DM_OP_RENEW, dm_hold_send(&claim->hold, DM_WANTS_RENEW, now_ns));
    renewal.crowd = crowd;
    renewal.renew.depth = dm_hold_is_idle(&claim->hold) ? 0 : claim->hold.depth;
    renewal.renew.token = claim->hold.token;
    renewal.renew.mark = mark_of(&claim->hold);
    dm_line_count_seats(claim, now_ns, crowd);
    dm_due_plan(&runtime->registry, claim);
    dm_step_follow(runtime, claim);
    return renewal;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* How a thread joins a line: it does what the line decides, and sleeps while it sits there (core/line.h). */
#include "base/error.h"
#include "base/rank.h"
#include "process/calls/explain.h"
#include "process/calls/wait.h"
#include "process/claims/claim.h"
#include "process/claims/ending.h"
#include "process/claims/steps.h"
#include "store/verdict.h"

/* The thread asks with a new claim: for the line or, if the line has a claim, for itself alone. */
static int make_claim(struct dm_wait *wait)
{
    if (!dm_wait_make_claim(wait))
        return dm_fail(DM_FAIL_NO_MEMORY, NULL);
    dm_claim_share(wait->claim, wait->target);
    return DM_GO_ON;
}

/* The line's claim, brought up to date, and with a closed word; NULL: none. */
static struct dm_claim *line_claim(struct dm_wait *wait)
{
    struct dm_line *line = &wait->name->line;

    if (line->tenure)
        dm_step_kind(wait->runtime, dm_claim_of(line->tenure), DM_EV_TIME);
    if (line->tenure)
        dm_claim_sync(dm_claim_of(line->tenure));
    return dm_claim_of(line->tenure);
}

/*
 * DM_SIT, or what the thread did instead; seat NULL: it does not sit yet.  For a thread that must sit, the word stays
 * closed until its seat is in the line and sleeps: otherwise the thread inside could leave by the fast path and wake
 * nobody.
 */
static int look(struct dm_wait *wait, struct dm_seat *seat)
{
    const struct dm_target *target = wait->target;
    struct dm_line *line = &wait->name->line;
    struct dm_claim *claim = line_claim(wait);
    bool is_equal = claim && dm_claim_may_share(target) &&
                    dm_hold_is_like(&claim->hold, target->lease_ms, target->maxhold_ms, target->is_robust);
    enum dm_next next = dm_line_look(line, seat, is_equal, wait->may_wait, dm_clock_boot_ns());

    if (is_equal)
        dm_line_linger(line, target->linger_ms);
    if (next == DM_NEXT_SIT)
        return DM_SIT;
    if (next == DM_NEXT_GIVE_BACK) {
        dm_step_give_back(wait->runtime, claim, DM_END_UNLOCKED);
        return make_claim(wait);
    }
    if (next == DM_NEXT_ENTER) {
        wait->runtime->stats.handoffs += seat != NULL;
        dm_claim_enter(claim, dm_self_get()->serial);
    }
    if (claim)
        dm_step_settle(wait->runtime, claim);
    if (next == DM_NEXT_ASK)
        return make_claim(wait);
    return next == DM_NEXT_ENTER ? 0 : dm_fail(DM_FAIL_BUSY, "one of this process");
}

static bool sleep_seated(struct dm_wait *wait, struct dm_seat *seat)
{
    struct dm_deadline until = dm_wait_limit(wait);
    struct dm_deadline wake = dm_deadline_sooner(&until, dm_explain_left_ns(wait));
    bool is_woken;

    dm_state_unlock();
    is_woken = dm_self_sleep(seat->self, &wake);
    if (!is_woken)
        dm_explain_if_due(wait);
    dm_ending_lock(wait->runtime);
    return is_woken || dm_deadline_left_ns(&until) > 0;
}

static int time_out(struct dm_wait *wait)
{
    dm_state_unlock();
    dm_explain_timeout(wait);
    dm_ending_lock(wait->runtime);
    return dm_fail(DM_FAIL_TIMED_OUT, "%s", wait->reason);
}

/* The thread was passed the claim: a hold, unless it was lost on the way, or a place in the queue. */
static int go_on_with(struct dm_wait *wait, struct dm_claim *claim)
{
    uint64_t me = dm_self_get()->serial;

    wait->claim = claim;
    claim->is_passed = false;
    if (dm_claim_is_inside(claim, me))
        dm_step_kind(wait->runtime, claim, DM_EV_TIME);
    if (!dm_claim_is_inside(claim, me))
        return DM_GO_ON;
    if (claim->hold.phase == DM_HELD)
        return 0;
    dm_step_kind(wait->runtime, claim, DM_EV_CLOSED);
    return make_claim(wait);
}

/*
 * The thread was woken, or its time is over: DM_GO_ON, DM_SIT, or the result of the call.  The thread looks first, so
 * that a free mutex is locked even after the deadline.
 */
static int wake_up(struct dm_wait *wait, struct dm_seat *seat, bool is_over)
{
    struct dm_line *line = &wait->name->line;
    bool is_late, is_gone;
    int result;

    if (wait->runtime->is_retired) /* in the child of a fork() by a signal handler that interrupted the sleep */
        return dm_fail(DM_FAIL_SWITCHED, NULL);
    if (seat->claim)
        return go_on_with(wait, seat->claim);
    result = look(wait, seat);
    if (result != DM_SIT)
        return result;
    is_late = is_over && dm_deadline_left_ns(&wait->deadline) == 0;
    is_gone = is_over && !is_late && dm_wait_is_server_gone(wait);
    if (is_late || is_gone)
        dm_line_stand_up(line, seat);
    else
        dm_line_sit_on(line, seat, dm_clock_boot_ns());
    dm_step_settle(wait->runtime, dm_claim_of(line->tenure));
    if (is_late)
        return time_out(wait);
    return is_gone ? dm_verdict_fail(wait->runtime->store, DM_SAYS_NOTHING, wait->reason) : DM_SIT;
}

/* Sits until the thread is inside, is the asker, or has no more patience. */
static int sit(struct dm_wait *wait)
{
    struct dm_line *line = &wait->name->line;
    struct dm_seat seat = { .self = dm_self_get(), .since_ns = dm_clock_boot_ns() };
    int result = DM_SIT;

    wait->has_waited = true;
    dm_line_sit_down(line, &seat);
    dm_step_settle(wait->runtime, dm_claim_of(line->tenure)); /* the next unlock must take the state lock */
    while (result == DM_SIT)
        result = wake_up(wait, &seat, !sleep_seated(wait, &seat));
    return result;
}

int dm_wait_join(struct dm_wait *wait)
{
    int result;

    dm_assert_held(DM_RANK_STATE);
    result = look(wait, NULL);
    if (result == DM_SIT)
        result = sit(wait);
    dm_self_fast.has_entered = true; /* from now on the thread may be inside the line's tenure */
    return result;
}

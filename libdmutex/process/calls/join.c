/* SPDX-License-Identifier: BSD-2-Clause */
/* How a thread joins a line: it enters an idle hold, becomes the asker, sits down, or goes alone. */
#include "base/error.h"
#include "base/rank.h"
#include "process/calls/explain.h"
#include "process/calls/wait.h"
#include "process/claims/leave.h"
#include "process/claims/line_parts.h"
#include "process/claims/steps.h"
#include "store/verdict.h"

/* A seat that has waited this long and was woken in vain is passed the next hold. */
#define STARVING_NS DM_NS_PER_MS

static bool is_equal(const struct dm_claim *claim, const struct dm_target *target)
{
    return dm_hold_is_like(&claim->hold, target->lease_ms, target->maxhold_ms, target->is_robust);
}

/* The thread asks with the new claim: for the line or, if the line has a claim, for itself alone. */
static int make_claim(struct dm_wait *wait)
{
    if (!dm_wait_make_claim(wait))
        return dm_fail(DM_FAIL_NO_MEMORY, NULL);
    dm_line_adopt(wait->claim, wait->target);
    return DM_GO_ON;
}

/*
 * The process's hold is idle: the thread enters or, beyond the bound, gives it back, so that its own acquire names the
 * release.  True if the thread is inside.
 */
static bool is_entered(struct dm_wait *wait, struct dm_claim *claim)
{
    if (dm_tenure_is_over(claim->tenure, dm_clock_boot_ns())) {
        dm_step_give_back(wait->runtime, claim, DM_END_UNLOCKED);
        return false;
    }
    dm_line_note_linger(claim, wait->target);
    dm_line_enter(claim, dm_self_get()->serial);
    dm_step_settle(wait->runtime, claim);
    return true;
}

static void rise(struct dm_line *line, struct dm_seat *seat)
{
    if (seat)
        dm_line_stand_up(line, seat);
}

/*
 * The hold is another thread's, or on its way: a try fails, or makes a request of its own.  For a thread that must sit,
 * the word stays closed until the seat is in the line: otherwise the thread inside could leave by the fast path and
 * wake nobody.
 */
static int look_in_vain(struct dm_wait *wait, struct dm_claim *claim)
{
    dm_line_note_linger(claim, wait->target);
    if (wait->may_wait)
        return DM_SIT;
    dm_step_reopen(wait->runtime, claim);
    return claim->hold.is_entered ? dm_fail(DM_FAIL_BUSY, "one of this process") : make_claim(wait);
}

/*
 * What the thread can do now; seat NULL: it does not sit yet.  First match wins:
 * 1. the line has no claim: ask
 * 2. the line's claim is of unequal objects: make a claim of its own
 * 3. the hold is idle, and no seat before this one starves: enter
 * 4. a try: fail with "busy" or, while nobody of the line is inside, make a request of its own
 * 5. sit
 */
static int look(struct dm_wait *wait, struct dm_seat *seat)
{
    struct dm_line *line = &wait->name->line;
    struct dm_claim *claim = line->claim;

    if (claim)
        dm_step_kind(wait->runtime, claim, DM_EV_TIME);
    claim = line->claim;
    if (claim)
        dm_line_sync(claim);
    if (claim && is_equal(claim, wait->target)) {
        if (!dm_hold_is_idle(&claim->hold) || (line->is_starving && line->first != seat))
            return look_in_vain(wait, claim);
        rise(line, seat);
        if (!is_entered(wait, claim))
            return make_claim(wait);
        wait->runtime->stats.handoffs += seat != NULL;
        return 0;
    }
    rise(line, seat);
    dm_line_end_keeping(wait->runtime, wait->name);
    return make_claim(wait);
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
    dm_wait_lock(wait);
    return is_woken || dm_deadline_left_ns(&until) > 0;
}

/* The thread has looked in vain, which has closed the word; the next unlock must wake the thread again. */
static void note_starving(struct dm_wait *wait, struct dm_seat *seat)
{
    struct dm_line *line = &wait->name->line;

    if (seat->is_awake && line->first == seat && dm_clock_boot_ns() - seat->since_ns >= STARVING_NS)
        line->is_starving = true;
    seat->is_awake = false;
    dm_line_publish(line->claim);
}

/* The seat's thread leaves the line.  A wake-up that it has not used goes to the next seat. */
static void leave_seat(struct dm_wait *wait, struct dm_seat *seat)
{
    struct dm_line *line = &wait->name->line;

    dm_line_stand_up(line, seat);
    if (!line->claim) {
        dm_line_wake_first(line);
        return;
    }
    dm_line_sync(line->claim);
    dm_step_reopen(wait->runtime, line->claim);
}

static int time_out(struct dm_wait *wait)
{
    dm_state_unlock();
    dm_explain_timeout(wait);
    dm_wait_lock(wait);
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
    int result;

    if (wait->runtime->is_retired) /* in the child of a fork() by a signal handler that interrupted the sleep */
        return dm_fail(DM_FAIL_SWITCHED, NULL);
    if (seat->claim)
        return go_on_with(wait, seat->claim);
    result = look(wait, seat);
    if (result != DM_SIT)
        return result;
    note_starving(wait, seat);
    if (is_over && dm_deadline_left_ns(&wait->deadline) == 0) {
        leave_seat(wait, seat);
        return time_out(wait);
    }
    if (is_over && dm_wait_is_server_gone(wait)) {
        leave_seat(wait, seat);
        return dm_verdict_fail(wait->runtime->store, DM_SAYS_NOTHING, wait->reason);
    }
    return DM_SIT;
}

/* Sits until the thread is inside, is the asker, or has no more patience. */
static int sit(struct dm_wait *wait)
{
    struct dm_line *line = &wait->name->line;
    struct dm_seat seat = { .self = dm_self_get() };
    int result = DM_SIT;

    wait->has_waited = true;
    dm_line_sit_down(line, &seat);
    dm_line_publish(line->claim); /* look() has closed it; the next unlock must take the state lock */
    while (result == DM_SIT)
        result = wake_up(wait, &seat, !sleep_seated(wait, &seat));
    return result;
}

int dm_line_join(struct dm_wait *wait)
{
    int result;

    dm_assert_held(DM_RANK_STATE);
    if (!dm_line_may_join(wait->target)) {
        dm_line_end_keeping(wait->runtime, wait->name);
        return make_claim(wait);
    }
    result = look(wait, NULL);
    if (result == DM_SIT)
        result = sit(wait);
    dm_self_fast.has_entered = true; /* from now on the thread may be inside the line's tenure */
    return result;
}

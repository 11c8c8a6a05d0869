/* SPDX-License-Identifier: BSD-2-Clause */
/* How a thread leaves a line's hold: passes it on, keeps it, or gives it back. */
#include "process/claims/leave.h"

#include "base/rank.h"
#include "process/claims/alarm.h"
#include "process/claims/fast.h"
#include "process/claims/line_parts.h"
#include "process/claims/steps.h"

static void pass(struct dm_claim *claim)
{
    struct dm_line *line = &claim->name->line;
    struct dm_seat *seat = line->first;

    dm_line_stand_up(line, seat);
    seat->claim = claim;
    dm_line_enter(claim, seat->self->serial);
    claim->is_passed = true;
    dm_self_wake(seat->self);
}

static void keep(struct dm_claim *claim, int64_t now_ns)
{
    struct dm_tenure *tenure = claim->tenure;

    dm_line_set_inside(claim, 0, now_ns);
    __atomic_store_n(&tenure->left_ns, now_ns, __ATOMIC_RELAXED);
    if (!tenure->is_kept)
        tenure->kept_number = dm_tenure_number(tenure);
    tenure->is_kept = true;
    dm_hold_look_at(&claim->hold, now_ns + tenure->linger_ms * DM_NS_PER_MS);
}

static enum dm_next decide(struct dm_runtime *runtime, struct dm_claim *claim, int64_t now_ns)
{
    struct dm_line *line = &claim->name->line;
    bool is_told = dm_store_is_able(runtime->store, claim->name->place, DM_TELLS);
    const struct dm_leave leave = {
        .is_robust = claim->hold.is_robust,
        .has_seat = line->first != NULL,
        .is_starving = line->is_starving,
        .is_wanted = claim->hold.is_wanted,
        .may_keep = is_told && line->skip == 0,
        .now_ns = now_ns,
    };

    if (!is_told && line->first)
        dm_tenure_bound(claim->tenure, now_ns); /* no message could report a waiter */
    if (!is_told && (line->first || claim->tenure->linger_ms)) {
        runtime->registry.inboxes_wanted += !claim->name->wants_inbox;
        claim->name->wants_inbox = true;
        dm_alarm_set(runtime->alarm, now_ns);
    }
    return dm_tenure_next(claim->tenure, &leave);
}

bool dm_line_leave(struct dm_runtime *runtime, struct dm_claim *claim)
{
    struct dm_line *line = &claim->name->line;
    int64_t now_ns = dm_clock_boot_ns();

    dm_assert_held(DM_RANK_STATE);
    if (!dm_line_has(claim) || dm_self_is_ending())
        return false;
    dm_line_sync(claim);
    switch (decide(runtime, claim, now_ns)) {
    case DM_NEXT_PASS:
        pass(claim);
        runtime->stats.handoffs++;
        break;
    case DM_NEXT_WAKE:
        dm_line_set_inside(claim, 0, now_ns);
        break;
    case DM_NEXT_KEEP:
        keep(claim, now_ns);
        break;
    case DM_NEXT_GIVE_BACK:
        if (claim->hold.is_wanted)
            dm_line_note_asked_back(claim);
        else if (line->skip > 0)
            line->skip--;
        return false;
    }
    dm_hold_mark(&claim->hold, now_ns);
    dm_step_settle(runtime, claim);
    return true;
}

void dm_line_look(struct dm_runtime *runtime, struct dm_claim *claim)
{
    int64_t linger_ns = claim->tenure->linger_ms * DM_NS_PER_MS, now_ns = dm_clock_boot_ns(), until_ns;

    dm_assert_held(DM_RANK_STATE);
    dm_line_sync(claim);
    until_ns = __atomic_load_n(&claim->tenure->left_ns, __ATOMIC_RELAXED) + linger_ns;
    if (dm_line_has(claim) && dm_hold_is_idle(&claim->hold) && !claim->name->line.first && until_ns <= now_ns) {
        dm_step_give_back(runtime, claim, DM_END_UNLOCKED);
        return;
    }
    dm_hold_look_at(&claim->hold, until_ns > now_ns ? until_ns : now_ns + linger_ns);
    dm_step_settle(runtime, claim);
}

void dm_line_end_keeping(struct dm_runtime *runtime, struct dm_name *name)
{
    struct dm_claim *claim = name->line.claim;

    dm_assert_held(DM_RANK_STATE);
    if (!claim)
        return;
    dm_line_sync(claim);
    if (dm_hold_is_idle(&claim->hold) && !name->line.first)
        dm_step_give_back(runtime, claim, DM_END_UNLOCKED);
    else
        dm_line_publish(claim);
}

void dm_line_end_all_keeping(struct dm_runtime *runtime)
{
    struct dm_claim *claim, *next;

    dm_assert_held(DM_RANK_STATE);
    for (claim = runtime->registry.claims; claim; claim = next) {
        next = claim->next;
        if (dm_line_has(claim))
            dm_line_end_keeping(runtime, claim->name);
    }
}

void dm_line_put_back(struct dm_runtime *runtime)
{
    struct dm_tenure *tenure = dm_self_fast.misled;
    struct dm_claim *claim = tenure->claim;
    int64_t now_ns = dm_clock_boot_ns();

    dm_assert_held(DM_RANK_STATE);
    dm_self_fast.misled = NULL;
    if (!claim || dm_tenure_inside(tenure) != dm_self_get()->serial)
        return;
    dm_line_sync(claim);
    if (claim->hold.phase == DM_HELD) {
        dm_line_set_inside(claim, 0, now_ns);
        if (tenure->linger_ms) /* the seats may be gone by now */
            dm_hold_look_at(&claim->hold, now_ns + tenure->linger_ms * DM_NS_PER_MS);
        dm_step_settle(runtime, claim);
    } else if (claim->hold.phase == DM_LOST) {
        dm_step_kind(runtime, claim, DM_EV_CLOSED);
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/claims/claim.h"

#include "base/rank.h"
#include "process/claims/fast.h"

/* ---- seats ------------------------------------------------------------------------------- */

static void wake(struct dm_seat *seat)
{
    if (seat)
        dm_self_wake(seat->self);
}

void dm_claim_pass(struct dm_claim *claim)
{
    struct dm_line *line = &claim->name->line;
    struct dm_seat *seat = line->first;

    dm_assert_held(DM_RANK_STATE);
    dm_line_stand_up(line, seat);
    seat->claim = claim;
    if (claim->hold.phase == DM_HELD) {
        dm_claim_enter(claim, seat->self->serial);
        claim->is_passed = true;
    } else {
        claim->holder = seat->self->serial;
        dm_registry_set_self(claim, seat->self);
    }
    wake(seat);
}

void dm_claim_count_seats(const struct dm_claim *claim, int64_t now_ns, struct dm_crowd *ret_crowd)
{
    const struct dm_seat *seat = dm_claim_is_shared(claim) ? claim->name->line.first : NULL;
    struct dm_crowd crowd = { 0 };

    dm_assert_held(DM_RANK_STATE);
    for (; seat; seat = seat->next) {
        if (crowd.told < DM_CROWD_TOLD) {
            crowd.first[crowd.told].thread = seat->self->serial;
            crowd.first[crowd.told++].waited_ms = (now_ns - seat->since_ns) / DM_NS_PER_MS;
        }
        crowd.count++;
    }
    *ret_crowd = crowd;
}

/* ---- the word ---------------------------------------------------------------------------- */

void dm_claim_set_inside(struct dm_claim *claim, uint64_t thread, int64_t now_ns)
{
    dm_assert_held(DM_RANK_STATE);
    if (claim->hold.is_entered)
        dm_hold_step(&claim->hold, &(struct dm_event){ .kind = DM_EV_LEFT }, now_ns);
    if (thread)
        dm_hold_step(&claim->hold, &(struct dm_event){ .kind = DM_EV_ENTERED }, now_ns);
    claim->holder = thread;
    claim->is_passed = false;
    dm_registry_set_self(claim, NULL);
    dm_tenure_publish(claim->tenure, thread, 0);
}

void dm_claim_enter(struct dm_claim *claim, uint64_t thread)
{
    struct dm_tenure *tenure = claim->tenure;
    int64_t now_ns = dm_clock_boot_ns();

    dm_assert_held(DM_RANK_STATE);
    dm_claim_set_inside(claim, thread, now_ns);
    __atomic_store_n(&tenure->number, dm_tenure_number(tenure) + 1, __ATOMIC_RELAXED);
    dm_claim_set_depth(claim, 1);
    dm_stats_begin_hold(claim, now_ns);
}

void dm_claim_set_depth(struct dm_claim *claim, unsigned depth)
{
    dm_assert_held(DM_RANK_STATE);
    dm_hold_set_depth(&claim->hold, depth);
    if (claim->tenure)
        dm_tenure_set_depth(claim->tenure, depth);
}

void dm_claim_sync(struct dm_claim *claim)
{
    const struct dm_hold *hold = &claim->hold;
    uint64_t inside;

    dm_assert_held(DM_RANK_STATE);
    if (!claim->tenure)
        return;
    inside = dm_tenure_close(claim->tenure);
    if (hold->phase != DM_HELD || hold->is_attended)
        return; /* no thread could have entered or left */
    if (inside != (hold->is_entered ? claim->holder : 0))
        dm_claim_set_inside(claim, inside, dm_clock_boot_ns());
    if (inside)
        dm_hold_set_depth(&claim->hold, dm_tenure_depth(claim->tenure));
}

/*
 * The fast path is shut while a thread has a lost hold of the name, because its next lock or unlock must find the loss,
 * and when the process ends.
 */
static bool may_open(const struct dm_name *name)
{
    const struct dm_claim *claim = name->claims;

    while (claim && !(claim->hold.phase == DM_LOST && claim->hold.is_entered))
        claim = claim->next_of_name;
    return !claim && !dm_self_is_ending();
}

bool dm_claim_settle(struct dm_claim *claim, int64_t now_ns)
{
    struct dm_tenure *tenure = claim->tenure;
    struct dm_settling settling;

    dm_assert_held(DM_RANK_STATE);
    if (!tenure)
        return false;
    settling = dm_line_settle(&claim->name->line, tenure, may_open(claim->name), now_ns);
    if (settling.next == DM_NEXT_GIVE_BACK)
        return true;
    __atomic_store_n(&tenure->until_ns, settling.until_ns, __ATOMIC_RELAXED);
    if (settling.bits)
        dm_fast_show(tenure);
    else
        dm_fast_hide(tenure);
    dm_tenure_publish(tenure, claim->hold.is_entered ? claim->holder : 0, settling.bits);
    wake(settling.wake);
    return false;
}

void dm_claim_take_back(struct dm_claim *claim)
{
    dm_assert_held(DM_RANK_STATE);
    if (claim->is_passed && claim->hold.phase == DM_HELD)
        dm_claim_set_inside(claim, 0, dm_clock_boot_ns());
}

/* ---- the claim of a line ----------------------------------------------------------------- */

bool dm_claim_may_share(const struct dm_target *target)
{
    dm_assert_held(DM_RANK_STATE);
    return !target->is_fair && !dm_self_is_ending();
}

/* Without memory for a tenure, the claim does not become the line's. */
void dm_claim_share(struct dm_claim *claim, const struct dm_target *target)
{
    struct dm_line *line = &claim->name->line;
    const char *key = claim->name->key;

    dm_assert_held(DM_RANK_STATE);
    if (claim->tenure || line->tenure || !dm_claim_may_share(target))
        return;
    claim->tenure = line->tenure = dm_fast_take();
    if (!claim->tenure)
        return;
    dm_tenure_init(claim->tenure, &claim->hold, key, dm_fast_hash(key), target->own_lease_ms);
    dm_line_linger(line, target->linger_ms);
}

void dm_claim_drop(struct dm_registry *registry, struct dm_claim *claim)
{
    dm_assert_held(DM_RANK_STATE);
    if (claim->tenure) {
        registry->holds_inside += dm_tenure_number(claim->tenure);
        wake(dm_line_part(&claim->name->line, claim->tenure));
        dm_fast_return(claim->tenure);
    }
    dm_registry_drop(registry, claim);
}

void dm_claim_drop_all(struct dm_registry *registry)
{
    dm_assert_held(DM_RANK_STATE);
    while (registry->claims)
        dm_claim_drop(registry, registry->claims);
}

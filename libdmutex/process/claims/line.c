/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/claims/line_parts.h"

#include "base/minmax.h"
#include "base/rank.h"
#include "core/tenure.h"
#include "process/claims/fast.h"

/* The most unlocks that keep nothing after a lease was asked back. */
#define BACK_OFF_MOST 63u

/* A lease that was used this often again before it was asked back was worth keeping. */
#define RELOCKS_WORTH 2u

/* ---- seats ------------------------------------------------------------------------------- */

void dm_line_sit_down(struct dm_line *line, struct dm_seat *seat)
{
    dm_assert_held(DM_RANK_STATE);
    seat->since_ns = dm_clock_boot_ns();
    if (line->last)
        line->last->next = seat;
    else
        line->first = seat;
    line->last = seat;
}

void dm_line_stand_up(struct dm_line *line, struct dm_seat *seat)
{
    struct dm_seat *before = NULL;

    dm_assert_held(DM_RANK_STATE);
    for (struct dm_seat *at = line->first; at != seat; at = at->next)
        before = at;
    if (before)
        before->next = seat->next;
    else
        line->first = seat->next;
    if (line->last == seat)
        line->last = before;
    if (!before)
        line->is_starving = false;
}

void dm_line_count_seats(const struct dm_claim *claim, int64_t now_ns, struct dm_crowd *ret_crowd)
{
    struct dm_crowd crowd = { 0 };

    dm_assert_held(DM_RANK_STATE);
    for (const struct dm_seat *seat = dm_line_has(claim) ? claim->name->line.first : NULL; seat; seat = seat->next) {
        if (crowd.told < DM_CROWD_TOLD) {
            crowd.first[crowd.told].thread = seat->self->serial;
            crowd.first[crowd.told++].waited_ms = (now_ns - seat->since_ns) / DM_NS_PER_MS;
        }
        crowd.count++;
    }
    *ret_crowd = crowd;
}

void dm_line_wake_first(struct dm_line *line)
{
    dm_assert_held(DM_RANK_STATE);
    if (!line->first || line->first->is_awake)
        return;
    line->first->is_awake = true;
    dm_self_wake(line->first->self);
}

/* ---- the word ---------------------------------------------------------------------------- */

/*
 * True if threads may enter and leave without the state lock.  Not while a thread has a lost hold of the name: its next
 * lock or unlock must find the loss.
 */
static bool is_open(const struct dm_claim *claim)
{
    const struct dm_line *line = &claim->name->line;
    const struct dm_hold *hold = &claim->hold;

    return dm_line_has(claim) && hold->phase == DM_HELD && !hold->is_attended && !hold->is_robust &&
           !hold->maxhold_ms && !hold->is_owner_dead && !line->is_starving && !line->lost && !dm_self_is_ending() &&
           (hold->is_entered || (line->first && line->first->is_awake) || claim->tenure->linger_ms);
}

/*
 * True if the thread inside must leave under the state lock: the hold may not stay, a seat must be woken, or no check
 * at the end of the linger time is planned yet.
 */
static bool must_look(const struct dm_claim *claim)
{
    const struct dm_seat *first = claim->name->line.first;
    bool is_kept_without = claim->tenure->linger_ms && claim->hold.look_ns != DM_NEVER;

    return claim->hold.is_wanted || !claim->hold.is_marked || (first ? !first->is_awake : !is_kept_without);
}

/* While the hold is idle, a seat is awake (I6). */
void dm_line_publish(struct dm_claim *claim)
{
    struct dm_tenure *tenure = claim->tenure;
    uint64_t inside = claim->hold.is_entered ? claim->holder : 0;
    int64_t until_ns = 0;
    bool is_shown;

    dm_assert_held(DM_RANK_STATE);
    if (dm_line_has(claim) && dm_hold_is_idle(&claim->hold))
        dm_line_wake_first(&claim->name->line);
    is_shown = is_open(claim);
    if (is_shown)
        until_ns = dm_min64(dm_hold_end_ns(&claim->hold), tenure->bound_ns);
    __atomic_store_n(&tenure->until_ns, until_ns, __ATOMIC_RELAXED);
    if (is_shown)
        dm_fast_show(tenure);
    else
        dm_fast_hide(tenure);
    dm_tenure_publish(tenure, inside, is_shown ? DM_TENURE_OPEN | (must_look(claim) ? DM_TENURE_LOOK : 0) : 0);
}

void dm_line_set_inside(struct dm_claim *claim, uint64_t thread, int64_t now_ns)
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

void dm_line_enter(struct dm_claim *claim, uint64_t thread)
{
    struct dm_tenure *tenure = claim->tenure;
    int64_t now_ns = dm_clock_boot_ns();

    dm_assert_held(DM_RANK_STATE);
    dm_line_set_inside(claim, thread, now_ns);
    __atomic_store_n(&tenure->number, dm_tenure_number(tenure) + 1, __ATOMIC_RELAXED);
    dm_line_set_depth(claim, 1);
    dm_stats_begin_hold(claim, now_ns);
}

void dm_line_set_depth(struct dm_claim *claim, unsigned depth)
{
    dm_assert_held(DM_RANK_STATE);
    dm_hold_set_depth(&claim->hold, depth);
    if (claim->tenure)
        dm_tenure_set_depth(claim->tenure, depth);
}

void dm_line_sync(struct dm_claim *claim)
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
        dm_line_set_inside(claim, inside, dm_clock_boot_ns());
    if (inside)
        dm_hold_set_depth(&claim->hold, dm_tenure_depth(claim->tenure));
}

/* ---- the end of a section ------------------------------------------------------------------ */

void dm_line_note_asked_back(struct dm_claim *claim)
{
    struct dm_line *line = &claim->name->line;
    const struct dm_tenure *tenure = claim->tenure;

    dm_assert_held(DM_RANK_STATE);
    if (!tenure->is_kept)
        return;
    if (dm_tenure_number(tenure) - tenure->kept_number >= RELOCKS_WORTH)
        line->back_off = 0;
    else
        line->back_off = (unsigned)dm_min64(2 * line->back_off + 1, BACK_OFF_MOST);
    line->skip = line->back_off;
}

/* True if the hold is idle and no thread of the process is going to use it. */
static bool is_needless(const struct dm_claim *claim)
{
    return dm_line_has(claim) && !claim->name->line.first && dm_hold_is_idle(&claim->hold) &&
           (claim->hold.is_wanted || !claim->tenure->linger_ms);
}

enum dm_line_next dm_line_reopen(struct dm_claim *claim)
{
    dm_assert_held(DM_RANK_STATE);
    if (!is_needless(claim)) {
        dm_line_publish(claim);
        return DM_LINE_KEEPS;
    }
    if (claim->hold.is_wanted)
        dm_line_note_asked_back(claim);
    claim->name->line.claim = NULL;
    return DM_LINE_GIVES_BACK;
}

/* ---- the claim of a line ----------------------------------------------------------------- */

void dm_line_note_linger(struct dm_claim *claim, const struct dm_target *target)
{
    dm_assert_held(DM_RANK_STATE);
    if (!target->is_robust && target->linger_ms > claim->tenure->linger_ms)
        claim->tenure->linger_ms = target->linger_ms;
}

static void attach(struct dm_claim *claim, struct dm_tenure *tenure, const struct dm_target *target)
{
    const char *key = claim->name->key;

    dm_tenure_init(tenure, claim, key, dm_fast_hash(key), target->own_lease_ms);
    claim->tenure = tenure;
    claim->name->line.claim = claim;
    dm_line_note_linger(claim, target);
}

static void detach(struct dm_claim *claim)
{
    claim->name->line.claim = NULL;
    dm_line_wake_first(&claim->name->line);
}

static void part(struct dm_claim *claim)
{
    claim->name->line.lost -= claim->is_counted;
    if (!claim->tenure)
        return;
    if (dm_line_has(claim))
        detach(claim);
    dm_fast_return(claim->tenure);
    claim->tenure = NULL;
}

void dm_line_drop(struct dm_registry *registry, struct dm_claim *claim)
{
    dm_assert_held(DM_RANK_STATE);
    registry->holds_inside += claim->tenure ? dm_tenure_number(claim->tenure) : 0;
    part(claim);
    dm_registry_drop(registry, claim);
}

void dm_line_drop_all(struct dm_registry *registry)
{
    dm_assert_held(DM_RANK_STATE);
    while (registry->claims)
        dm_line_drop(registry, registry->claims);
}

bool dm_line_may_join(const struct dm_target *target)
{
    dm_assert_held(DM_RANK_STATE);
    return !target->is_fair && !dm_self_is_ending();
}

/* Without memory for a tenure, the claim does not become the line's. */
void dm_line_adopt(struct dm_claim *claim, const struct dm_target *target)
{
    struct dm_tenure *tenure;

    dm_assert_held(DM_RANK_STATE);
    if (claim->tenure || claim->name->line.claim || !dm_line_may_join(target))
        return;
    tenure = dm_fast_take();
    if (!tenure)
        return;
    attach(claim, tenure, target);
    if (claim->hold.is_entered)
        dm_tenure_set_depth(tenure, claim->hold.depth);
    dm_line_publish(claim);
}

bool dm_line_pass_claim(struct dm_claim *claim)
{
    struct dm_line *line = &claim->name->line;
    struct dm_seat *seat = line->first;

    dm_assert_held(DM_RANK_STATE);
    if (!seat || !dm_line_has(claim) || claim->hold.phase != DM_QUEUED || dm_self_is_ending())
        return false;
    dm_line_stand_up(line, seat);
    seat->claim = claim;
    claim->holder = seat->self->serial;
    dm_registry_set_self(claim, seat->self);
    dm_self_wake(seat->self);
    return true;
}

/* ---- after a step ------------------------------------------------------------------------- */

static void count_loss(struct dm_claim *claim)
{
    bool is_lost = claim->hold.phase == DM_LOST && claim->hold.is_entered;

    claim->name->line.lost += is_lost - claim->is_counted;
    claim->is_counted = is_lost;
}

enum dm_line_next dm_line_follow(struct dm_claim *claim)
{
    enum dm_phase phase = claim->hold.phase;

    dm_assert_held(DM_RANK_STATE);
    count_loss(claim);
    if (!claim->tenure)
        return DM_LINE_KEEPS;
    if (dm_line_has(claim) && phase != DM_ASKING && phase != DM_QUEUED && phase != DM_HELD)
        detach(claim);
    if (claim->hold.is_wanted)
        dm_tenure_bound(claim->tenure, dm_clock_boot_ns());
    return dm_line_reopen(claim);
}

void dm_line_take_back(struct dm_claim *claim)
{
    dm_assert_held(DM_RANK_STATE);
    if (claim->is_passed && claim->hold.phase == DM_HELD)
        dm_line_set_inside(claim, 0, dm_clock_boot_ns());
}

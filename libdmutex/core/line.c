/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/line.h"

#include "base/minmax.h"
#include "base/units.h"

/* A seat that has waited this long and was woken in vain is passed the next hold. */
#define STARVING_NS DM_NS_PER_MS

/* The most unlocks that keep nothing after a lease was asked back. */
#define BACK_OFF_MOST 63u

/* A lease that was used this often again before it was asked back was worth keeping. */
#define RELOCKS_WORTH 2u

/* ---- seats ------------------------------------------------------------------------------- */

void dm_line_sit_down(struct dm_line *line, struct dm_seat *seat)
{
    if (line->last)
        line->last->next = seat;
    else
        line->first = seat;
    line->last = seat;
}

void dm_line_stand_up(struct dm_line *line, struct dm_seat *seat)
{
    struct dm_seat *before = NULL;

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

void dm_line_sit_on(struct dm_line *line, struct dm_seat *seat, int64_t now_ns)
{
    if (seat->is_awake && line->first == seat && now_ns - seat->since_ns >= STARVING_NS)
        line->is_starving = true;
    seat->is_awake = false;
}

/* The first seat, which counts as awake until its thread has looked; NULL: none, or it is awake already. */
static struct dm_seat *wake_first(struct dm_line *line)
{
    struct dm_seat *first = line->first;

    if (!first || first->is_awake)
        return NULL;
    first->is_awake = true;
    return first;
}

/* ---- a thread looks ---------------------------------------------------------------------- */

/*
 * First match wins:
 * 1. the line has no claim: ask
 * 2. the line's claim is of unequal objects: ask alone, and give back the hold first if nobody uses it
 * 3. the hold is idle, and no seat before this one starves: enter or, beyond the bound, give back, so that the thread's
 *    own acquire names the release
 * 4. a try: fail or, while nobody of the line is inside, ask alone
 * 5. sit
 */
enum dm_next dm_line_look(struct dm_line *line, struct dm_seat *seat, bool is_equal, bool may_wait, int64_t now_ns)
{
    const struct dm_tenure *tenure = line->tenure;
    bool may_enter = is_equal && dm_hold_is_idle(tenure->hold) && (!line->is_starving || line->first == seat);

    if (is_equal && !may_enter && may_wait)
        return DM_NEXT_SIT;
    if (seat)
        dm_line_stand_up(line, seat);
    if (may_enter)
        return dm_tenure_is_over(tenure, now_ns) ? DM_NEXT_GIVE_BACK : DM_NEXT_ENTER;
    if (is_equal)
        return tenure->hold->is_entered ? DM_NEXT_FAIL : DM_NEXT_ASK;
    return dm_line_is_unused(line, tenure) ? DM_NEXT_GIVE_BACK : DM_NEXT_ASK;
}

/* ---- a thread leaves --------------------------------------------------------------------- */

/* A robust mutex keeps nothing: a process killed while nobody is inside would leave a death. */
void dm_line_linger(struct dm_line *line, uint32_t linger_ms)
{
    if (!line->tenure->hold->is_robust && linger_ms > line->tenure->linger_ms)
        line->tenure->linger_ms = linger_ms;
}

/* The kept lease was asked back.  If that was too soon, the next unlocks do not keep it. */
static void note_asked_back(struct dm_line *line)
{
    uint32_t kept = line->tenure->kept_number;

    if (kept == DM_TENURE_NEVER_KEPT)
        return;
    if (dm_tenure_number(line->tenure) - kept >= RELOCKS_WORTH)
        line->back_off = 0;
    else
        line->back_off = (unsigned)dm_min64(2 * line->back_off + 1, BACK_OFF_MOST);
    line->skip = line->back_off;
}

static void keep(struct dm_tenure *tenure, int64_t now_ns)
{
    __atomic_store_n(&tenure->left_ns, now_ns, __ATOMIC_RELAXED);
    if (tenure->kept_number == DM_TENURE_NEVER_KEPT)
        tenure->kept_number = dm_tenure_number(tenure);
    dm_hold_look_at(tenure->hold, now_ns + tenure->linger_ms * DM_NS_PER_MS);
}

/* The rules are those of doc/design/lines.md, from the third on; without messages the bound runs from now on. */
enum dm_next dm_line_leave(struct dm_line *line, bool is_told, int64_t now_ns)
{
    struct dm_tenure *tenure = line->tenure;
    struct dm_hold *hold = tenure->hold;
    bool is_kept = tenure->linger_ms && is_told && !line->skip && !hold->is_wanted;

    if (!is_told && line->first)
        dm_tenure_bound(tenure, now_ns);
    if (dm_tenure_is_over(tenure, now_ns) || !(line->first || is_kept)) {
        if (hold->is_wanted)
            note_asked_back(line);
        else if (line->skip > 0)
            line->skip--;
        return DM_NEXT_GIVE_BACK;
    }
    dm_hold_mark(hold, now_ns);
    if (!line->first)
        keep(tenure, now_ns);
    return line->first && (hold->is_robust || line->is_starving) ? DM_NEXT_PASS : DM_NEXT_STAY;
}

/* ---- the end of a section ---------------------------------------------------------------- */

bool dm_line_is_unused(const struct dm_line *line, const struct dm_tenure *tenure)
{
    return tenure && line->tenure == tenure && !line->first && dm_hold_is_idle(tenure->hold);
}

bool dm_line_has_heir(const struct dm_line *line, const struct dm_tenure *tenure)
{
    return tenure && line->tenure == tenure && line->first && tenure->hold->phase == DM_QUEUED;
}

enum dm_next dm_line_check(struct dm_line *line, struct dm_tenure *tenure, int64_t now_ns)
{
    int64_t linger_ns = tenure->linger_ms * DM_NS_PER_MS;
    int64_t until_ns = __atomic_load_n(&tenure->left_ns, __ATOMIC_RELAXED) + linger_ns;

    if (until_ns <= now_ns && dm_line_is_unused(line, tenure))
        return DM_NEXT_GIVE_BACK;
    dm_hold_look_at(tenure->hold, until_ns > now_ns ? until_ns : now_ns + linger_ns);
    return DM_NEXT_STAY;
}

struct dm_seat *dm_line_part(struct dm_line *line, const struct dm_tenure *tenure)
{
    if (line->tenure != tenure)
        return NULL;
    line->tenure = NULL;
    return wake_first(line);
}

/*
 * True if the thread inside must leave under the state lock: the hold may not stay, a seat must be woken, or no check
 * at the end of the linger time is planned yet.
 */
static bool must_look(const struct dm_line *line, const struct dm_hold *hold)
{
    return hold->is_wanted || !hold->is_marked || (line->first ? !line->first->is_awake : hold->look_ns == DM_NEVER);
}

/* True if threads may enter and leave without the state lock. */
static bool is_open(const struct dm_line *line, const struct dm_hold *hold)
{
    return hold->phase == DM_HELD && !hold->is_attended && !hold->is_robust && !hold->maxhold_ms &&
           !hold->is_owner_dead && !line->is_starving;
}

struct dm_settling dm_line_settle(struct dm_line *line, struct dm_tenure *tenure, bool may_open, int64_t now_ns)
{
    const struct dm_hold *hold = tenure->hold;
    struct dm_settling settling = { .next = DM_NEXT_STAY };

    if (hold->phase != DM_ASKING && hold->phase != DM_QUEUED && hold->phase != DM_HELD)
        settling.wake = dm_line_part(line, tenure);
    if (line->tenure != tenure)
        return settling;
    if (hold->is_wanted)
        dm_tenure_bound(tenure, now_ns);
    if (dm_line_is_unused(line, tenure) && (hold->is_wanted || !tenure->linger_ms)) {
        if (hold->is_wanted)
            note_asked_back(line);
        settling.next = DM_NEXT_GIVE_BACK;
    }
    if (dm_hold_is_idle(hold))
        settling.wake = wake_first(line);
    if (may_open && is_open(line, hold)) {
        settling.bits = DM_TENURE_OPEN | (must_look(line, hold) ? DM_TENURE_LOOK : 0);
        settling.until_ns = dm_min64(dm_hold_end_ns(hold), tenure->bound_ns);
    }
    return settling;
}

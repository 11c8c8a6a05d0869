/* SPDX-License-Identifier: BSD-2-Clause */
/* The making of a hold, certainty, wants, their sending, and questions about the hold; the events are in hold.c. */
#include <string.h>

#include "base/bug.h"
#include "base/minmax.h"
#include "base/units.h"
#include "core/hold.h"

/* A renewal goes out up to this part of the lease before its third: more would cost the store more calls. */
#define EARLY_PART 24

/* ---- making ------------------------------------------------------------------------------ */

/*
 * The lease of every request: the object's lease, or less with a max-hold, such that 0.8 of the lease is enough.
 * Always the same lease: a late request must not undercut a request that came later.  Never less than the shortest
 * lease, or an answer would come too late to be of use.
 */
static uint32_t lease_to_ask(uint32_t lease_ms, uint32_t maxhold_ms)
{
    int64_t least_ms = (int64_t)maxhold_ms * 5 / 4 + 1;

    if (lease_ms == 0)
        lease_ms = DM_LEASE_DEFAULT_MS;
    if (maxhold_ms == 0)
        return lease_ms;
    if (least_ms < DM_LEASE_MIN_MS)
        least_ms = DM_LEASE_MIN_MS;
    return (uint32_t)dm_min64(lease_ms, least_ms);
}

void dm_hold_init(struct dm_hold *hold, uint64_t serial, uint64_t thread, uint32_t lease_ms, uint32_t maxhold_ms,
                  bool is_robust)
{
    memset(hold, 0, sizeof *hold);
    hold->thread = thread;
    hold->lease_ms = lease_to_ask(lease_ms, maxhold_ms);
    hold->maxhold_ms = maxhold_ms;
    hold->is_robust = is_robust;
    hold->is_attended = true;
    hold->serial = serial;
    hold->poll_ns = hold->renew_ns = hold->hold_ends_ns = hold->look_ns = DM_NEVER;
}

bool dm_hold_is_like(const struct dm_hold *hold, uint32_t lease_ms, uint32_t maxhold_ms, bool is_robust)
{
    return hold->lease_ms == lease_to_ask(lease_ms, maxhold_ms) && hold->maxhold_ms == maxhold_ms &&
           hold->is_robust == is_robust;
}

void dm_hold_rename(struct dm_hold *hold, uint64_t serial)
{
    DM_BUG(hold->phase >= DM_HELD);
    hold->serial = serial;
    hold->phase = DM_ASKING;
    hold->last_request = 0;
    hold->poll_ns = DM_NEVER;
    memset(hold->requests, 0, sizeof hold->requests);
}

/* ---- certainty --------------------------------------------------------------------------- */

/*
 * The max-hold counts once the thread has entered, so that a thread which is slow to wake up does not lose its
 * grant.
 */
static int64_t maxhold_end_ns(const struct dm_hold *hold)
{
    return hold->is_entered ? hold->hold_ends_ns : DM_NEVER;
}

void dm_hold_restart_maxhold(struct dm_hold *hold, int64_t now_ns)
{
    if (hold->maxhold_ms)
        hold->hold_ends_ns = now_ns + hold->maxhold_ms * DM_NS_PER_MS;
}

int64_t dm_hold_end_ns(const struct dm_hold *hold)
{
    return dm_min64(hold->certain_until_ns, maxhold_end_ns(hold));
}

bool dm_hold_is_certain(const struct dm_hold *hold, int64_t now_ns)
{
    return hold->phase == DM_HELD && now_ns < dm_hold_end_ns(hold);
}

bool dm_hold_may_renew(const struct dm_hold *hold, int64_t now_ns)
{
    return (hold->phase == DM_HELD || hold->phase == DM_LEAVING) && now_ns < hold->certain_until_ns;
}

/* ---- sending ----------------------------------------------------------------------------- */

/* Numbers a request, and remembers the moment: an answer proves certainty from here on. */
static struct dm_request number(struct dm_hold *hold, int64_t now_ns)
{
    struct dm_request *slot = &hold->requests[++hold->last_request % DM_REQUESTS_REMEMBERED];

    slot->serial = hold->last_request;
    slot->sent_ns = now_ns;
    return *slot;
}

struct dm_request dm_hold_send(struct dm_hold *hold, enum dm_want want, int64_t now_ns)
{
    switch (want) {
    case DM_WANTS_RELEASE:
        DM_BUG(!dm_hold_is_returning(hold) || hold->is_untold);
        hold->back.due_ns = DM_NEVER;
        hold->back.sends++;
        return (struct dm_request){ 0 };
    case DM_WANTS_ACQUIRE:
        DM_BUG(hold->is_asked);
        hold->is_asked = true;
        break;
    case DM_WANTS_RENEW:
        DM_BUG(!dm_hold_may_renew(hold, now_ns));
        hold->renew_ns = DM_NEVER;
        break;
    case DM_WANTS_POLL:
        DM_BUG(!dm_hold_is_waiting(hold));
        hold->poll_ns = DM_NEVER;
        break;
    default:
        break;
    }
    return number(hold, now_ns);
}

void dm_hold_ask(struct dm_hold *hold)
{
    DM_BUG(hold->phase != DM_HELD && hold->phase != DM_LEAVING); /* as dm_hold_may_renew() */
    hold->is_asked = true;
}

void dm_hold_set_depth(struct dm_hold *hold, unsigned depth)
{
    DM_BUG(hold->phase != DM_HELD || depth == 0 || depth > DM_DEPTH_MAX);
    hold->depth = depth;
}

void dm_hold_mark(struct dm_hold *hold, int64_t now_ns)
{
    if (hold->is_marked)
        return;
    hold->is_marked = true;
    hold->renew_ns = now_ns;
}

void dm_hold_look_at(struct dm_hold *hold, int64_t look_ns)
{
    hold->look_ns = look_ns;
}

/* ---- questions --------------------------------------------------------------------------- */

bool dm_hold_is_waiting(const struct dm_hold *hold)
{
    return hold->phase == DM_QUEUED || hold->phase == DM_WAITING;
}

/* A moment in the past means "at once".  DM_NEVER while a request is on the way: the answer sets the next moment. */
int64_t dm_hold_due_ns(const struct dm_hold *hold, enum dm_want want)
{
    switch (want) {
    case DM_WANTS_TELL:
        return hold->is_untold ? 0 : DM_NEVER;
    case DM_WANTS_RELEASE:
        return dm_hold_is_nameable(hold) ? hold->back.due_ns : DM_NEVER;
    case DM_WANTS_TIME:
        return hold->phase == DM_HELD ? dm_hold_end_ns(hold) : DM_NEVER;
    case DM_WANTS_RENEW:
        return hold->phase == DM_HELD ? hold->renew_ns : DM_NEVER;
    case DM_WANTS_POLL:
        return dm_hold_is_waiting(hold) ? hold->poll_ns : DM_NEVER;
    case DM_WANTS_LOOK:
        return hold->phase == DM_HELD ? hold->look_ns : DM_NEVER;
    case DM_WANTS_ACQUIRE:
        return hold->phase == DM_ASKING && !hold->is_asked ? 0 : DM_NEVER;
    default:
        return DM_NEVER;
    }
}

/* The order of enum dm_want is the order of urgency; at most one want beside TIME concerns a phase. */
enum dm_want dm_hold_wants(const struct dm_hold *hold, int64_t now_ns)
{
    enum dm_want want = 0;

    while (want < DM_WANTS_NOTHING && dm_hold_due_ns(hold, want) > now_ns)
        want++;
    return want;
}

/*
 * The same share of the lease in every round: the rounds of two holds drift apart, and a burst of thousands dissolves
 * within some leases.  Not by chance, so that a run of the simulator can be repeated.  The product of a number with
 * 2^64 / 1.618… lies far from the products of the numbers beside it.
 */
int64_t dm_hold_renewal_ns(const struct dm_hold *hold, int64_t sent_ns)
{
    int64_t lease_ns = hold->lease_ms * DM_NS_PER_MS;
    int64_t share = (int64_t)((hold->serial * UINT64_C(0x9E3779B97F4A7C15)) >> 56); /* of 256 */

    return sent_ns + lease_ns / 3 - lease_ns / EARLY_PART * share / 256;
}

int64_t dm_hold_next_ns(const struct dm_hold *hold)
{
    int64_t next_ns = DM_NEVER;

    for (enum dm_want want = 0; want < DM_WANTS_ACQUIRE; want++)
        next_ns = dm_min64(next_ns, dm_hold_due_ns(hold, want));
    return next_ns;
}

bool dm_hold_is_owned(const struct dm_hold *hold)
{
    return (hold->phase == DM_HELD || hold->phase == DM_LOST) && hold->is_entered;
}

/* Before the answer to a question a release would be in vain: the question could queue the attempt once more (I4). */
bool dm_hold_is_returning(const struct dm_hold *hold)
{
    return hold->back.is_pending && !hold->is_asked;
}

/* The telling comes first: once released, the lock goes to other threads (P1 of reliability.md). */
bool dm_hold_is_nameable(const struct dm_hold *hold)
{
    return dm_hold_is_returning(hold) && !hold->is_untold;
}

bool dm_hold_is_in_question(const struct dm_hold *hold)
{
    return hold->is_asked || hold->phase == DM_LEAVING;
}

bool dm_hold_is_in_use(const struct dm_hold *hold)
{
    return hold->is_attended || (hold->phase == DM_HELD && hold->is_entered);
}

bool dm_hold_is_idle(const struct dm_hold *hold)
{
    return hold->phase == DM_HELD && !hold->is_entered && !hold->is_attended;
}

/* A refused attempt stays for its thread, which reads the refusal; a loss stays until the application is told. */
bool dm_hold_is_done(const struct dm_hold *hold)
{
    return hold->phase == DM_OVER && !hold->is_attended && !hold->is_untold;
}

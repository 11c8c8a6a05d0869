/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/attempt.h"

#include <string.h>

#include "base/units.h"

/* Shortest delay before a renewal without an answer is repeated; shortest time between polls. */
#define RETRY_MIN_MS 50
#define POLL_MIN_MS 10

static int64_t ms(int64_t value)
{
    return value * DM_NS_PER_MS;
}

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/*
 * The lease of every request: the object's lease, or less with a max-hold, such that 0.8 of the lease is enough.
 * Always the same lease: a late request must not undercut a request that came later.  Never less than the shortest
 * lease, or an answer would come too late to be of use.
 */
static uint32_t lease_to_ask(uint32_t lease_ms, uint32_t maxhold_ms)
{
    if (lease_ms == 0)
        lease_ms = DM_LEASE_DEFAULT_MS;
    if (maxhold_ms == 0)
        return lease_ms;
    return (uint32_t)min64(lease_ms, max64((int64_t)maxhold_ms * 5 / 4 + 1, DM_LEASE_MIN_MS));
}

void dm_attempt_init(struct dm_attempt *attempt, uint64_t serial, uint64_t thread, uint32_t lease_ms,
                     uint32_t maxhold_ms, bool is_robust)
{
    memset(attempt, 0, sizeof *attempt);
    attempt->thread = thread;
    attempt->lease_ms = lease_to_ask(lease_ms, maxhold_ms);
    attempt->maxhold_ms = maxhold_ms;
    attempt->is_robust = is_robust;
    attempt->serial = serial;
    attempt->poll_ns = attempt->renew_ns = attempt->hold_ends_ns = DM_NEVER;
}

void dm_attempt_rename(struct dm_attempt *attempt, uint64_t serial)
{
    attempt->serial = serial;
    attempt->phase = DM_ASKING;
    attempt->last_request = 0;
    attempt->is_owner_dead = false;
    attempt->poll_ns = attempt->renew_ns = attempt->hold_ends_ns = DM_NEVER;
    memset(attempt->requests, 0, sizeof attempt->requests);
}

struct dm_request dm_attempt_send(struct dm_attempt *attempt, int64_t now_ns)
{
    struct dm_request *slot = &attempt->requests[++attempt->last_request % DM_REQUESTS_REMEMBERED];

    slot->serial = attempt->last_request;
    slot->sent_ns = now_ns;
    return *slot;
}

struct dm_request dm_attempt_send_due(struct dm_attempt *attempt, int64_t now_ns)
{
    attempt->poll_ns = attempt->renew_ns = DM_NEVER;
    return dm_attempt_send(attempt, now_ns);
}

/* The end of certainty that an answer to this request proves; 0 if the request is not remembered. */
static int64_t certain_by(const struct dm_attempt *attempt, uint64_t serial)
{
    const struct dm_request *request = &attempt->requests[serial % DM_REQUESTS_REMEMBERED];

    if (serial == 0 || request->serial != serial)
        return 0;
    return request->sent_ns + ms(attempt->lease_ms) * 8 / 10;
}

static int64_t renewal_by(const struct dm_attempt *attempt, uint64_t serial)
{
    const struct dm_request *request = &attempt->requests[serial % DM_REQUESTS_REMEMBERED];

    return request->sent_ns + ms(attempt->lease_ms) / 3;
}

/*
 * The max-hold counts once the thread has entered, so that a thread which is slow to wake up does not lose its
 * grant.
 */
static int64_t maxhold_end_ns(const struct dm_attempt *attempt)
{
    return attempt->is_entered ? attempt->hold_ends_ns : DM_NEVER;
}

int64_t dm_attempt_end_ns(const struct dm_attempt *attempt)
{
    return min64(attempt->certain_until_ns, maxhold_end_ns(attempt));
}

bool dm_attempt_is_certain(const struct dm_attempt *attempt, int64_t now_ns)
{
    return attempt->phase == DM_HELD && now_ns < dm_attempt_end_ns(attempt);
}

bool dm_attempt_is_waiting(const struct dm_attempt *attempt)
{
    return attempt->phase == DM_QUEUED || attempt->phase == DM_WAITING;
}

void dm_attempt_restart_maxhold(struct dm_attempt *attempt, int64_t now_ns)
{
    if (attempt->maxhold_ms)
        attempt->hold_ends_ns = now_ns + ms(attempt->maxhold_ms);
}

static void extend(struct dm_attempt *attempt, uint64_t request)
{
    attempt->certain_until_ns = max64(attempt->certain_until_ns, certain_by(attempt, request));
    attempt->renew_ns = renewal_by(attempt, request);
}

static void enter(struct dm_attempt *attempt, uint64_t request, const struct dm_answer *answer, int64_t now_ns)
{
    attempt->phase = DM_HELD;
    attempt->depth = 1;
    attempt->token = answer->token;
    attempt->is_owner_dead = answer->is_owner_dead;
    attempt->certain_until_ns = 0;
    dm_attempt_restart_maxhold(attempt, now_ns);
    extend(attempt, request);
}

/* Ask the store.  Only the attempt's own thread sends requests; wake the thread so that the thread asks again. */
static unsigned ask_again(struct dm_attempt *attempt)
{
    attempt->phase = DM_ASKING;
    attempt->poll_ns = DM_NEVER;
    return DM_DO_WAKE;
}

/*
 * "You own the lock", from an answer or a message.  First match wins:
 * 1. given back or lost before: the phase stays so, the store is told (I4)
 * 2. about to be given back by a wait: nothing, because the wait gives the hold back
 * 3. held already: the same hold, at most confirmed once more
 * 4. the request is not remembered, or the certainty that the request proves is past: a hint, ask
 * 5. the lock is ours
 */
static unsigned on_owned(struct dm_attempt *attempt, uint64_t request, const struct dm_answer *answer, int64_t now_ns)
{
    if (attempt->phase == DM_OVER || attempt->phase == DM_LOST)
        return DM_DO_GIVE_BACK;
    if (attempt->phase == DM_LEAVING)
        return 0;
    if (attempt->phase == DM_HELD) {
        if (certain_by(attempt, request) > attempt->certain_until_ns)
            extend(attempt, request);
        return 0;
    }
    if (certain_by(attempt, request) <= now_ns)
        return ask_again(attempt);
    enter(attempt, request, answer, now_ns);
    return DM_DO_WAKE;
}

/*
 * The head polls just after the owner's lease can end, the waiters behind the head later, so that a dead owner costs
 * one poll and a dead head little more.
 */
static void plan_poll(struct dm_attempt *attempt, const struct dm_answer *answer, int64_t now_ns)
{
    int64_t behind_ms = answer->position <= 1 ? 1 : 20 * (answer->position < 4 ? (int64_t)answer->position : 4);
    int64_t wait_ms = min64(attempt->lease_ms / 3, answer->remaining_ms + behind_ms);

    if (attempt->poll_ns <= now_ns)
        return; /* told to ask, after the store gave this answer */

    attempt->poll_ns = now_ns + ms(max64(wait_ms, POLL_MIN_MS));
}

static unsigned on_queued(struct dm_attempt *attempt, const struct dm_answer *answer, int64_t now_ns)
{
    if (attempt->phase != DM_ASKING && !dm_attempt_is_waiting(attempt))
        return 0; /* a message overtook the answer */
    attempt->phase = DM_QUEUED;
    if (answer->arrival)
        attempt->arrival = answer->arrival;
    plan_poll(attempt, answer, now_ns);
    return 0;
}

/* On a condition: the heartbeat only.  A signal that overtook the answer stands. */
static unsigned on_waiting(struct dm_attempt *attempt, int64_t now_ns)
{
    if (attempt->phase == DM_ASKING)
        attempt->phase = DM_WAITING;
    if (dm_attempt_is_waiting(attempt) && attempt->poll_ns > now_ns)
        attempt->poll_ns = min64(attempt->poll_ns, now_ns + ms(attempt->lease_ms) / 3);
    return 0;
}

/*
 * The store has forgotten a waiter: the waiter comes again under another serial, to the old place.  Nothing to do if
 * the attempt has asked again meanwhile, because then this is the answer to an earlier request.
 */
static unsigned on_unknown(struct dm_attempt *attempt, uint64_t request)
{
    if (!dm_attempt_is_waiting(attempt) || request != attempt->last_request)
        return 0;
    return ask_again(attempt) | DM_DO_NEW_SERIAL;
}

static unsigned on_refused(struct dm_attempt *attempt, enum dm_verdict verdict)
{
    if (attempt->phase != DM_ASKING && !dm_attempt_is_waiting(attempt))
        return 0;
    attempt->phase = DM_OVER;
    attempt->refusal = verdict;
    return DM_DO_WAKE;
}

/* The message may have overtaken the answer that the attempt waits for: plan_poll() heeds the message then. */
static unsigned on_told_ask(struct dm_attempt *attempt, int64_t now_ns)
{
    if (attempt->phase == DM_ASKING || dm_attempt_is_waiting(attempt))
        attempt->poll_ns = now_ns;
    if (attempt->phase == DM_HELD)
        attempt->renew_ns = now_ns;
    return 0;
}

static unsigned on_answer(struct dm_attempt *attempt, uint64_t request, const struct dm_answer *answer, int64_t now_ns)
{
    switch (answer->verdict) {
    case DM_SAYS_OWNED:
        return on_owned(attempt, request, answer, now_ns);
    case DM_SAYS_QUEUED:
        return on_queued(attempt, answer, now_ns);
    case DM_SAYS_WAITING:
        return on_waiting(attempt, now_ns);
    case DM_SAYS_UNKNOWN:
        return on_unknown(attempt, request);
    case DM_SAYS_NOTHING:
        if (dm_attempt_is_waiting(attempt) && attempt->poll_ns > now_ns)
            attempt->poll_ns = now_ns + ms(max64(attempt->lease_ms / 20, RETRY_MIN_MS));
        return 0;
    case DM_SAYS_AGAIN:
        return on_told_ask(attempt, now_ns);
    default:
        return on_refused(attempt, answer->verdict);
    }
}

/* The store's hold belongs to another attempt or to nobody: our hold has ended, whatever our clock says. */
static unsigned lose(struct dm_attempt *attempt)
{
    attempt->phase = DM_LOST;
    attempt->renew_ns = DM_NEVER;
    return DM_DO_GIVE_BACK | (attempt->is_entered ? DM_DO_TELL_LOST : DM_DO_WAKE);
}

static unsigned on_renewed(struct dm_attempt *attempt, uint64_t request, const struct dm_answer *answer, int64_t now_ns)
{
    if (attempt->phase != DM_HELD)
        return 0; /* the release goes the same way, behind the renewal */
    if (answer->verdict == DM_SAYS_OWNED) {
        extend(attempt, request);
        return 0;
    }
    if (answer->verdict == DM_SAYS_UNKNOWN)
        return lose(attempt);
    if (answer->verdict == DM_SAYS_AGAIN)
        return on_told_ask(attempt, now_ns);
    attempt->renew_ns = now_ns + ms(max64(attempt->lease_ms / 20, RETRY_MIN_MS));
    return 0;
}

static unsigned on_time(struct dm_attempt *attempt, int64_t now_ns)
{
    if (attempt->phase == DM_HELD) {
        if (!dm_attempt_is_certain(attempt, now_ns))
            return lose(attempt);
        if (now_ns >= attempt->renew_ns)
            return DM_DO_RENEW;
    } else if (dm_attempt_is_waiting(attempt) && now_ns >= attempt->poll_ns) {
        return DM_DO_POLL;
    }
    return 0;
}

static unsigned on_given_back(struct dm_attempt *attempt)
{
    attempt->phase = DM_OVER;
    attempt->poll_ns = attempt->renew_ns = DM_NEVER;
    return DM_DO_GIVE_BACK;
}

/*
 * A request sent from here on may end the hold: a renewal behind the request must not bring the hold back, and the end
 * of certainty is no loss to tell, because the thread has left the critical section.
 */
static unsigned on_leave(struct dm_attempt *attempt)
{
    if (attempt->phase != DM_HELD)
        return 0;
    attempt->phase = DM_LEAVING;
    attempt->renew_ns = DM_NEVER;
    return 0;
}

/* The store refused the wait: the hold is unchanged, or has run out meanwhile. */
static unsigned on_stay(struct dm_attempt *attempt, int64_t now_ns)
{
    if (attempt->phase != DM_LEAVING)
        return 0;
    attempt->phase = DM_HELD;
    attempt->renew_ns = now_ns;
    return on_time(attempt, now_ns);
}

unsigned dm_attempt_step(struct dm_attempt *attempt, const struct dm_event *event, int64_t now_ns)
{
    switch (event->kind) {
    case DM_EV_ANSWER:
        return on_answer(attempt, event->request, event->answer, now_ns);
    case DM_EV_GRANTED:
        return on_owned(attempt, event->request, event->answer, now_ns);
    case DM_EV_SIGNALLED:
        return on_queued(attempt, event->answer, now_ns);
    case DM_EV_TOLD_LOST:
        return attempt->phase == DM_HELD ? lose(attempt) : 0;
    case DM_EV_TOLD_ASK:
        return on_told_ask(attempt, now_ns);
    case DM_EV_RENEWED:
        return on_renewed(attempt, event->request, event->answer, now_ns);
    case DM_EV_LEAVE:
        return on_leave(attempt);
    case DM_EV_STAY:
        return on_stay(attempt, now_ns);
    case DM_EV_TIME:
        return on_time(attempt, now_ns);
    case DM_EV_GIVEN_BACK:
        return on_given_back(attempt);
    }
    return 0;
}

int64_t dm_attempt_next_ns(const struct dm_attempt *attempt)
{
    if (attempt->phase == DM_HELD)
        return min64(attempt->renew_ns, dm_attempt_end_ns(attempt));
    if (dm_attempt_is_waiting(attempt))
        return attempt->poll_ns;
    return DM_NEVER;
}

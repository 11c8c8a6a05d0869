/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of an attempt; hold.h has the picture of the phases.  First come the wants and questions, then the events:
 * each answer, message or act of the thread has one function on_...().
 */
#include "core/hold.h"

#include <string.h>

#include "base/bug.h"
#include "base/minmax.h"
#include "base/units.h"

/* The shortest delay before a request without an answer is repeated, and the shortest time between polls. */
#define RETRY_MIN_MS 50
#define POLL_MIN_MS 10

/* The longest one while the process ends: exit() waits for the answer. */
#define LAST_RETRY_MS 250

/* A pause follows after this many answers AGAIN. */
#define AGAINS 6

/* A renewal goes out up to this part of the lease before its third; more would cost the store more calls. */
#define EARLY_PART 24

static int64_t ms(int64_t value)
{
    return value * DM_NS_PER_MS;
}

/* ---- making ------------------------------------------------------------------------------ */

/*
 * The lease of every request: the object's lease, or, with a max-hold, a shorter one of which 0.8 is enough.  All
 * requests have the same lease, so that one which arrives late cannot shorten the lease of a later one.  Never less
 * than the minimum, or answers would come too late to be of use.
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

/* ---- wants ------------------------------------------------------------------------------- */

/* A time in the past means "at once".  DM_NEVER while a request is on the way: its answer sets the next time. */
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

/* The order of enum dm_want is the order of urgency. */
enum dm_want dm_hold_wants(const struct dm_hold *hold, int64_t now_ns)
{
    enum dm_want want = 0;

    while (want < DM_WANTS_NOTHING && dm_hold_due_ns(hold, want) > now_ns)
        want++;
    return want;
}

/* ---- certainty --------------------------------------------------------------------------- */

/*
 * The max-hold counts only after the thread has entered, so that a thread which is slow to wake up does not lose its
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

static const struct dm_request *find_request(const struct dm_hold *hold, uint64_t serial)
{
    return &hold->requests[serial % DM_REQUESTS_REMEMBERED];
}

/* Until when an answer to this request proves certainty; 0 if the request is not remembered. */
static int64_t certain_by(const struct dm_hold *hold, uint64_t serial, const struct dm_answer *answer)
{
    const struct dm_request *request = find_request(hold, serial);
    int64_t lease_ns = ms(hold->lease_ms);

    if (answer->from_ns)
        return answer->from_ns + lease_ns * 8 / 10;
    return serial && request->serial == serial ? request->sent_ns + lease_ns * 8 / 10 : 0;
}

/* A request without an answer is repeated after a twentieth of the lease: often enough before certainty ends. */
static int64_t retry_ns(const struct dm_hold *hold, int64_t now_ns)
{
    int64_t retry_ms = dm_max64(hold->lease_ms / 20, RETRY_MIN_MS);

    return now_ns + ms(hold->is_last ? dm_min64(retry_ms, LAST_RETRY_MS) : retry_ms);
}

/* At once, but with pauses, because the nodes of a Cluster may redirect a request in a circle. */
static int64_t again_ns(struct dm_hold *hold, int64_t now_ns)
{
    hold->agains = (uint8_t)((hold->agains + 1) % AGAINS);
    return hold->agains ? now_ns : retry_ns(hold, now_ns);
}

/*
 * An answer counts from the sending of its request; an older one that is read late shortens nothing.  A store that sets
 * from_ns knows all its servers' answers; if some have not confirmed yet, the hold is renewed again soon.
 */
static void extend(struct dm_hold *hold, uint64_t request, const struct dm_answer *answer, int64_t now_ns)
{
    int64_t sent_ns = find_request(hold, request)->sent_ns, until_ns = certain_by(hold, request, answer);

    hold->certain_until_ns = answer->from_ns ? until_ns : dm_max64(hold->certain_until_ns, until_ns);
    hold->renew_ns = answer->is_partial || (answer->from_ns && answer->from_ns < sent_ns)
                         ? retry_ns(hold, now_ns)
                         : dm_hold_renewal_ns(hold, dm_max64(answer->from_ns, sent_ns));
}

/* ---- sending ----------------------------------------------------------------------------- */

/* Numbers a request and remembers when it was sent: its answer proves certainty from then on. */
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

/*
 * Each hold has the same share in every round, so the rounds of two holds drift apart, and a burst of thousands
 * dissolves within a few leases.  The share is not random, so that a run of the simulator can be repeated.
 * Multiplication by 2^64 / 1.618… puts neighbouring serials far apart.
 */
int64_t dm_hold_renewal_ns(const struct dm_hold *hold, int64_t sent_ns)
{
    int64_t lease_ns = hold->lease_ms * DM_NS_PER_MS;
    int64_t share = (int64_t)((hold->serial * UINT64_C(0x9E3779B97F4A7C15)) >> 56); /* of 256 */

    return sent_ns + lease_ns / 3 - lease_ns / EARLY_PART * share / 256;
}

bool dm_hold_is_owned(const struct dm_hold *hold)
{
    return (hold->phase == DM_HELD || hold->phase == DM_LOST) && hold->is_entered;
}

/* Before the answer to a question a release would be useless: the question could queue the attempt again (I4). */
bool dm_hold_is_returning(const struct dm_hold *hold)
{
    return hold->back.is_pending && !hold->is_asked;
}

/* The application is told of a loss first: once released, the lock goes to other threads (P1 of reliability.md). */
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

/* A refused attempt stays until its thread has read the refusal; a loss stays until the application has been told. */
bool dm_hold_is_done(const struct dm_hold *hold)
{
    return hold->phase == DM_OVER && !hold->is_attended && !hold->is_untold;
}

/* ---- giving back ------------------------------------------------------------------------- */

/*
 * When the store's lease has certainly ended.  An entered hold may have been granted or renewed just now: a grant by
 * message begins a lease long after the request was sent.  The last request of any other attempt may still have to be
 * executed.
 */
static int64_t lease_end_ns(const struct dm_hold *hold, int64_t now_ns)
{
    return now_ns + ms(hold->lease_ms) * (hold->is_entered ? 1 : 2);
}

/* Makes a release pending, unless one is. */
static void begin_giving_back(struct dm_hold *hold, enum dm_end end, int64_t now_ns)
{
    if (hold->back.is_pending)
        return;
    hold->back = (struct dm_giving_back){
        .is_pending = true,
        .end = end,
        .held_ms = hold->granted_ns ? (now_ns - hold->granted_ns) / DM_NS_PER_MS : 0,
        .due_ns = now_ns,
        .until_ns = lease_end_ns(hold, now_ns),
    };
}

/* The thread has no more use for the attempt; only the store must still be told. */
static void retire(struct dm_hold *hold)
{
    hold->phase = hold->back.is_pending ? DM_RETURNING : DM_OVER;
    hold->poll_ns = hold->renew_ns = DM_NEVER;
}

/* A hold that the thread never entered ended without harm; for the next owner, any other hold ended by a death. */
static enum dm_end end_of_lost(const struct dm_hold *hold)
{
    return hold->is_entered ? DM_END_DIED : DM_END_UNLOCKED;
}

/* The question under way is answered or given up: from here on a release overtakes nothing. */
static void close_question(struct dm_hold *hold, int64_t now_ns)
{
    if (!hold->is_asked)
        return;
    hold->is_asked = false;
    if (hold->back.is_pending) {
        hold->back.due_ns = now_ns;
        hold->back.until_ns = lease_end_ns(hold, now_ns);
    }
}

/* A lost hold whose release is confirmed has nothing left on the store. */
static unsigned on_given_back(struct dm_hold *hold, enum dm_end end, int64_t now_ns)
{
    if (hold->phase != DM_LOST)
        begin_giving_back(hold, end, now_ns);
    retire(hold);
    return 0;
}

/* The thread leaves its last call about the attempt: the record may be freed once the store has nothing of it. */
static unsigned on_closed(struct dm_hold *hold)
{
    DM_BUG(hold->phase == DM_HELD && hold->is_entered);
    hold->is_attended = false;
    retire(hold);
    return 0;
}

/*
 * An entered hold counts as a death for the next owner; a place in the queue or on a condition, or a grant that no call
 * has returned yet, does not.
 */
static unsigned on_end(struct dm_hold *hold, bool is_of_thread, int64_t now_ns)
{
    close_question(hold, now_ns);
    if (is_of_thread)
        hold->is_attended = false;
    else
        hold->is_last = true;
    if (hold->phase != DM_OVER)
        on_given_back(hold, end_of_lost(hold), now_ns);
    if (hold->is_last && hold->back.due_ns != DM_NEVER)
        hold->back.due_ns = now_ns; /* one that waits to be repeated goes out now */
    return 0;
}

/* LOST stays LOST, because the thread has not acknowledged the loss yet. */
static void confirm_release(struct dm_hold *hold)
{
    hold->back.is_pending = false;
    if (hold->phase == DM_RETURNING)
        hold->phase = DM_OVER;
}

/*
 * The only release of a certain hold was answered "not the owner".  Nobody else can have released the hold, so it was
 * broken by force, and nobody has noticed yet.  Another server than the one that confirmed the hold proves nothing: it
 * may not know the hold, and has granted the mutex to nobody.
 */
static bool is_silent_loss(const struct dm_hold *hold, uint64_t server)
{
    return hold->back.sends == 1 && !hold->back.is_named && hold->back.end != DM_END_DIED && hold->is_entered &&
           hold->server == server;
}

/*
 * After an answer other than "done" and "not the owner", the release may or may not have been executed: send it again.
 */
static unsigned on_released(struct dm_hold *hold, const struct dm_event *event, int64_t now_ns)
{
    if (!hold->back.is_pending)
        return 0; /* the lease has ended it already */
    switch (event->answer->verdict) {
    case DM_SAYS_NOT_OWNER:
        hold->is_untold = hold->is_untold || is_silent_loss(hold, event->server);
        confirm_release(hold);
        break;
    case DM_SAYS_DONE:
        confirm_release(hold);
        break;
    case DM_SAYS_AGAIN:
        hold->back.due_ns = again_ns(hold, now_ns);
        break;
    default:
        hold->back.due_ns = retry_ns(hold, now_ns);
    }
    return 0;
}

/* ---- loss -------------------------------------------------------------------------------- */

/* Only a thread in a call about the attempt may be woken: otherwise it may have ended. */
static unsigned wake(const struct dm_hold *hold)
{
    return hold->is_attended ? DM_DO_WAKE : 0;
}

/*
 * The hold is over: by our clock, or because the store says that another attempt or nobody holds the lock.  A release
 * goes out in any case, because a renewal that arrived late may have given the hold a new lease.
 */
static unsigned lose(struct dm_hold *hold, int64_t now_ns)
{
    hold->phase = DM_LOST;
    hold->renew_ns = DM_NEVER;
    hold->is_untold = hold->is_entered;
    begin_giving_back(hold, end_of_lost(hold), now_ns);
    if (!hold->is_entered && !hold->is_attended)
        retire(hold); /* there is no thread to acknowledge the loss */
    return wake(hold);
}

/* Two things end by time alone: certainty, and the lease of a hold whose release is pending. */
static unsigned on_time(struct dm_hold *hold, int64_t now_ns)
{
    if (hold->phase == DM_HELD && !dm_hold_is_certain(hold, now_ns))
        return lose(hold, now_ns);
    if (dm_hold_due_ns(hold, DM_WANTS_RELEASE) <= now_ns && hold->back.until_ns <= now_ns)
        confirm_release(hold);
    return 0;
}

/* ---- waiting ----------------------------------------------------------------------------- */

static bool is_asking_or_waiting(const struct dm_hold *hold)
{
    return hold->phase == DM_ASKING || dm_hold_is_waiting(hold);
}

/*
 * Only the attempt's own thread asks, so it is woken to ask again.  If its question is under way, the store may already
 * have answered it, so a poll follows the answer: see plan_poll().
 */
static unsigned ask_again(struct dm_hold *hold, int64_t now_ns)
{
    if (hold->is_asked) {
        hold->poll_ns = now_ns;
        return 0;
    }
    hold->phase = DM_ASKING;
    hold->poll_ns = DM_NEVER;
    return wake(hold);
}

/* A new hold.  The certainty of an earlier grant to the same attempt no longer counts. */
static unsigned enter(struct dm_hold *hold, uint64_t request, const struct dm_answer *answer, int64_t now_ns)
{
    hold->phase = DM_HELD;
    hold->depth = 1;
    hold->token = answer->token;
    hold->is_wanted = false;
    hold->is_owner_dead = answer->is_owner_dead;
    hold->is_token_soft = answer->is_token_soft;
    hold->granted_ns = now_ns;
    hold->certain_until_ns = 0;
    dm_hold_restart_maxhold(hold, now_ns);
    extend(hold, request, answer, now_ns);
    return wake(hold);
}

/*
 * Another token means that the store has granted the lock to this attempt again: the hold that we know has ended
 * unnoticed, and others may have held the lock since.  A grant without a token is a hint to attempts that wait, and
 * says nothing about a hold.
 */
static unsigned on_owned_again(struct dm_hold *hold, uint64_t request, const struct dm_answer *answer, int64_t now_ns)
{
    if (answer->token && answer->token != hold->token)
        return hold->is_entered ? lose(hold, now_ns) : enter(hold, request, answer, now_ns);
    if (answer->token && certain_by(hold, request, answer) > hold->certain_until_ns)
        extend(hold, request, answer, now_ns);
    return 0;
}

/*
 * "You own the lock", from an answer or a message.  First match wins:
 * 1. given back, refused or lost before: the hold stays so, the store is told (I4)
 * 2. about to be given back by a wait: nothing, because the wait gives the hold back
 * 3. held already: the same hold, at most confirmed once more; or, with another token, a later hold of the attempt
 * 4. the request is not remembered, or the certainty that the request proves is past: a hint, ask
 * 5. the lock is ours
 */
static unsigned on_owned(struct dm_hold *hold, uint64_t request, const struct dm_answer *answer, int64_t now_ns)
{
    switch (hold->phase) {
    case DM_OVER:
        begin_giving_back(hold, end_of_lost(hold), now_ns);
        retire(hold);
        return 0;
    case DM_LOST:
    case DM_RETURNING:
        begin_giving_back(hold, end_of_lost(hold), now_ns);
        return 0;
    case DM_LEAVING:
        return 0;
    case DM_HELD:
        return on_owned_again(hold, request, answer, now_ns);
    default:
        return certain_by(hold, request, answer) > now_ns ? enter(hold, request, answer, now_ns)
                                                          : ask_again(hold, now_ns);
    }
}

/*
 * The head of the queue polls just after the owner's lease can end, the others a little later, so that a dead owner
 * costs one poll, and a dead head little more.
 */
static void plan_poll(struct dm_hold *hold, const struct dm_answer *answer, int64_t now_ns)
{
    int64_t behind_ms = answer->position <= 1 ? 1 : 20 * (answer->position < 4 ? (int64_t)answer->position : 4);
    int64_t wait_ms = dm_min64(hold->lease_ms / 3, answer->remaining_ms + behind_ms);

    if (hold->poll_ns <= now_ns)
        return; /* a message that came after this answer was given says to ask */
    hold->poll_ns = now_ns + ms(dm_max64(wait_ms, POLL_MIN_MS));
}

/* The attempt is in the mutex's queue, by an answer or a signal; polls are its heartbeat. */
static unsigned on_queued(struct dm_hold *hold, const struct dm_answer *answer, int64_t now_ns)
{
    if (!is_asking_or_waiting(hold))
        return 0; /* a message overtook the answer */
    hold->phase = DM_QUEUED;
    if (answer->arrival)
        hold->arrival = answer->arrival;
    plan_poll(hold, answer, now_ns);
    return 0;
}

/* The attempt waits on a condition; polls are only its heartbeat.  A signal that overtook the answer counts. */
static unsigned on_waiting(struct dm_hold *hold, int64_t now_ns)
{
    if (hold->phase == DM_ASKING)
        hold->phase = DM_WAITING;
    if (dm_hold_is_waiting(hold) && hold->poll_ns > now_ns)
        hold->poll_ns = dm_min64(hold->poll_ns, now_ns + ms(hold->lease_ms) / 3);
    return 0;
}

/*
 * The store has forgotten a waiter, which queues again under another serial, at its old place.  An answer to an earlier
 * request may be out of date, and the last one need not be a poll; so the attempt then just polls again.  It does the
 * same while the thread's question is under way, because that names the serial.
 */
static unsigned on_unknown(struct dm_hold *hold, uint64_t request, int64_t now_ns)
{
    if (!dm_hold_is_waiting(hold))
        return 0;
    if (request == hold->last_request && !hold->is_asked)
        return ask_again(hold, now_ns) | DM_DO_NEW_SERIAL;
    hold->poll_ns = dm_min64(hold->poll_ns, retry_ns(hold, now_ns));
    return 0;
}

/* A refusal that crosses a grant comes too late. */
static unsigned on_refused(struct dm_hold *hold, enum dm_verdict verdict)
{
    if (!is_asking_or_waiting(hold))
        return 0;
    retire(hold);
    hold->refusal = verdict;
    return wake(hold);
}

/* The message may have overtaken the answer that the attempt waits for; plan_poll() takes that into account. */
static unsigned on_told_ask(struct dm_hold *hold, int64_t due_ns)
{
    if (is_asking_or_waiting(hold))
        hold->poll_ns = due_ns;
    if (hold->phase == DM_HELD)
        hold->renew_ns = due_ns;
    return 0;
}

/*
 * Two threads may deliver two messages in the wrong order.  If there is no hold yet, the loss is that of a grant that
 * is still to come: that grant, and the answer to the same request, are then only a hint.
 */
static unsigned on_told_lost(struct dm_hold *hold, int64_t now_ns)
{
    if (hold->phase == DM_HELD)
        return lose(hold, now_ns);
    if (is_asking_or_waiting(hold))
        memset(hold->requests, 0, sizeof hold->requests);
    return 0;
}

/* ---- events ------------------------------------------------------------------------------ */

static unsigned on_answer(struct dm_hold *hold, uint64_t request, const struct dm_answer *answer, int64_t now_ns)
{
    switch (answer->verdict) {
    case DM_SAYS_OWNED:
        return on_owned(hold, request, answer, now_ns);
    case DM_SAYS_QUEUED:
        return on_queued(hold, answer, now_ns);
    case DM_SAYS_WAITING:
        return on_waiting(hold, now_ns);
    case DM_SAYS_UNKNOWN:
        return on_unknown(hold, request, now_ns);
    case DM_SAYS_NOTHING:
        if (dm_hold_is_waiting(hold) && hold->poll_ns > now_ns)
            hold->poll_ns = retry_ns(hold, now_ns);
        return 0;
    case DM_SAYS_AGAIN:
        return on_told_ask(hold, again_ns(hold, now_ns));
    default:
        return on_refused(hold, answer->verdict);
    }
}

/*
 * An attempt that is asking was told to after it had sent the poll.  "You wait" may be older, and must not make it
 * sleep again.
 */
static unsigned on_polled(struct dm_hold *hold, uint64_t request, const struct dm_answer *answer, int64_t now_ns)
{
    bool waits = answer->verdict == DM_SAYS_QUEUED || answer->verdict == DM_SAYS_WAITING;

    return waits && hold->phase == DM_ASKING ? 0 : on_answer(hold, request, answer, now_ns);
}

/* UNKNOWN: the store has given the lock away.  Without an answer the hold continues until certainty ends. */
static unsigned on_renewed(struct dm_hold *hold, uint64_t request, const struct dm_answer *answer, int64_t now_ns)
{
    if (hold->phase != DM_HELD)
        return 0; /* the release follows the renewal on the same connection */
    switch (answer->verdict) {
    case DM_SAYS_OWNED:
        extend(hold, request, answer, now_ns);
        hold->is_wanted = hold->is_wanted || answer->has_waiter;
        if (hold->is_token_soft && !answer->is_token_soft) {
            hold->token = answer->token;
            hold->is_token_soft = false;
        }
        return 0;
    case DM_SAYS_UNKNOWN:
        return lose(hold, now_ns);
    case DM_SAYS_AGAIN:
        return on_told_ask(hold, again_ns(hold, now_ns));
    default:
        hold->renew_ns = retry_ns(hold, now_ns);
        return 0;
    }
}

/* A release that is on the way (DM_NEVER) will be answered, if only with "the connection broke". */
static unsigned on_connected(struct dm_hold *hold, int64_t now_ns)
{
    if (hold->back.is_pending && hold->back.due_ns != DM_NEVER)
        hold->back.due_ns = now_ns;
    return hold->phase == DM_ASKING ? 0 : on_told_ask(hold, now_ns);
}

/*
 * A grant can also be missed while the question is under way: the store may have queued the attempt, and the thread may
 * not have read the answer yet.
 */
static unsigned on_subscribed(struct dm_hold *hold, int64_t now_ns)
{
    if (dm_hold_is_waiting(hold) || (hold->phase == DM_ASKING && hold->is_asked))
        hold->poll_ns = now_ns;
    return 0;
}

/* The thread returns from lock: from here on a loss is reported to the application, and the max-hold counts. */
static unsigned on_entered(struct dm_hold *hold, int64_t now_ns)
{
    DM_BUG(hold->phase != DM_HELD || hold->is_entered);
    hold->is_entered = true;
    hold->is_attended = false;
    dm_hold_restart_maxhold(hold, now_ns);
    return 0;
}

/* The process keeps the hold for its next thread; the store does not notice. */
static unsigned on_left(struct dm_hold *hold)
{
    DM_BUG(hold->phase != DM_HELD || !hold->is_entered || hold->is_attended);
    hold->is_entered = false;
    hold->hold_ends_ns = DM_NEVER;
    return 0;
}

/*
 * The next request may end the hold: a renewal after it must not revive the hold.  The end of certainty is not reported
 * as a loss, because the thread has left the critical section.
 */
static unsigned on_leave(struct dm_hold *hold)
{
    DM_BUG(hold->phase != DM_HELD || !hold->is_entered);
    hold->phase = DM_LEAVING;
    hold->is_attended = true;
    hold->renew_ns = DM_NEVER;
    return 0;
}

/*
 * The store refused the wait: the hold is unchanged, or its certainty has ended in between, or exit() has given it
 * back.
 */
static unsigned on_stay(struct dm_hold *hold, int64_t now_ns)
{
    if (hold->phase != DM_LEAVING)
        return 0;
    hold->phase = DM_HELD;
    hold->is_attended = false;
    hold->renew_ns = now_ns;
    return on_time(hold, now_ns);
}

unsigned dm_hold_step(struct dm_hold *hold, const struct dm_event *event, int64_t now_ns)
{
    if (event->answer && event->answer->verdict == DM_SAYS_OWNED)
        hold->server = event->server;
    if (event->kind == DM_EV_ANSWER || event->kind == DM_EV_RENEWED_BY_THREAD)
        close_question(hold, now_ns);
    switch (event->kind) {
    case DM_EV_ANSWER:
        return on_answer(hold, event->request, event->answer, now_ns);
    case DM_EV_POLLED:
        return on_polled(hold, event->request, event->answer, now_ns);
    case DM_EV_RENEWED:
    case DM_EV_RENEWED_BY_THREAD:
        return on_renewed(hold, event->request, event->answer, now_ns);
    case DM_EV_RELEASED:
        return on_released(hold, event, now_ns);

    case DM_EV_GRANTED:
        return on_owned(hold, event->request, event->answer, now_ns);
    case DM_EV_SIGNALLED:
        return on_queued(hold, event->answer, now_ns);
    case DM_EV_TOLD_LOST:
        return on_told_lost(hold, now_ns);
    case DM_EV_TOLD_ASK:
        return on_told_ask(hold, now_ns);
    case DM_EV_WANTED:
        hold->is_wanted = hold->phase == DM_HELD;
        return 0;

    case DM_EV_CONNECTED:
        return on_connected(hold, now_ns);
    case DM_EV_SUBSCRIBED:
        return on_subscribed(hold, now_ns);
    case DM_EV_TIME:
        return on_time(hold, now_ns);
    case DM_EV_NAMED:
        DM_BUG(!dm_hold_is_nameable(hold));
        hold->back.is_named = true;
        return 0;
    case DM_EV_TOLD:
        hold->is_untold = false;
        return 0;

    case DM_EV_ENTERED:
        return on_entered(hold, now_ns);
    case DM_EV_LEFT:
        return on_left(hold);
    case DM_EV_MENDED:
        hold->is_owner_dead = false;
        return 0;
    case DM_EV_LEAVE:
        return on_leave(hold);
    case DM_EV_STAY:
        return on_stay(hold, now_ns);
    case DM_EV_GIVEN_BACK:
        return on_given_back(hold, event->end, now_ns);
    case DM_EV_CLOSED:
        return on_closed(hold);
    case DM_EV_THREAD_ENDS:
        return on_end(hold, true, now_ns);
    case DM_EV_PROCESS_ENDS:
        return on_end(hold, false, now_ns);
    }
    return 0;
}

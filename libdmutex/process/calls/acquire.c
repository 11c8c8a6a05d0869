/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/calls/acquire.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/bug.h"
#include "base/error.h"
#include "base/log.h"
#include "base/rank.h"
#include "process/calls/call.h"
#include "process/calls/explain.h"
#include "process/claims/claim.h"
#include "process/claims/ending.h"
#include "process/claims/steps.h"
#include "store/verdict.h"

/*
 * A deadline that is near or past still allows one real try.  A timeout waits this long for the server to settle it,
 * then leaves that to the loop thread.
 */
#define SETTLE_NS (50 * DM_NS_PER_MS)

/* A sleep in a section that holds the state lock, which is given up for it. */
static void rest(struct dm_wait *wait)
{
    dm_assert_held(DM_RANK_STATE);
    dm_state_unlock();
    dm_wait_rest(wait);
    dm_ending_lock(wait->runtime);
}

/* ---- the thread's own holds -------------------------------------------------------------- */

/*
 * What the thread's own hold decides.  First match wins:
 * 1. a lost hold of a recursive mutex: EPERM until an unlock has ended it, because an outer level is broken
 * 2. no hold, or a lost hold: a fresh acquire
 * 3. recursive: one level deeper
 * 4. error-checking: EDEADLK, or EBUSY for a try
 * 5. normal: EBUSY for a try, otherwise wait for the thread's own hold to end
 */
static int look_at_own(struct dm_wait *wait)
{
    struct dm_claim *hold = dm_name_hold(wait->name, dm_self_get()->serial);

    if (hold)
        dm_step_kind(wait->runtime, hold, DM_EV_TIME);
    if (hold && hold->hold.phase == DM_LOST && wait->target->type == PTHREAD_MUTEX_RECURSIVE)
        return dm_fail(DM_FAIL_LOST_DEPTH, NULL);
    if (!hold || hold->hold.phase == DM_LOST) {
        if (hold)
            dm_step_kind(wait->runtime, hold, DM_EV_CLOSED);
        return DM_GO_ON;
    }
    if (wait->target->type == PTHREAD_MUTEX_RECURSIVE) {
        if (hold->hold.depth == DM_DEPTH_MAX)
            return dm_fail(DM_FAIL_DEPTH, NULL);
        dm_claim_set_depth(hold, hold->hold.depth + 1);
        return 0;
    }
    if (!wait->may_wait)
        return dm_fail(DM_FAIL_OWN_BUSY, NULL);
    if (wait->target->type == PTHREAD_MUTEX_ERRORCHECK)
        return dm_fail(DM_FAIL_RELOCK, NULL);
    return DM_GO_ON;
}

/* ---- asking ------------------------------------------------------------------------------ */

static int count_pending(const struct dm_name *name)
{
    int count = 0;

    for (const struct dm_claim *claim = name->claims; claim && count < DM_BATCH; claim = claim->next_of_name)
        count += dm_hold_is_nameable(&claim->hold);
    return count;
}

/*
 * Lists the releases of this name that the store has not confirmed, which the acquire makes the store do first.  The
 * list is on the heap, because the caller's stack may be small.  Without memory it is empty: the loop thread sends the
 * releases in any case.  The caller frees *ret_owed.
 */
static int collect_owed(struct dm_wait *wait, struct dm_owed **ret_owed)
{
    int most = count_pending(wait->name), count = 0;
    struct dm_owed *owed = most ? calloc((size_t)most, sizeof *owed) : NULL;

    for (struct dm_claim *claim = wait->name->claims; owed && claim && count < most; claim = claim->next_of_name) {
        if (!dm_hold_is_nameable(&claim->hold))
            continue;
        owed[count++] = (struct dm_owed){ claim->hold.thread, claim->hold.serial, claim->hold.back.end };
        dm_step_kind(wait->runtime, claim, DM_EV_NAMED);
    }
    *ret_owed = owed;
    return count;
}

/*
 * True for "busy" to a thread that would wait: the request asked for no place in the queue, because no message could
 * have told us of a grant.  This is no news for the core: the attempt goes on asking.
 */
static bool is_for_queue_later(const struct dm_wait *wait, const struct dm_answer *answer)
{
    return wait->may_wait && answer->verdict == DM_SAYS_BUSY;
}

/*
 * If the connection breaks, the request is sent again; by then a message may have granted the attempt, and the hold may
 * be lost again.  The core keeps the release back until the answer, because a release that arrives before the request
 * would not prevent the attempt from being queued again (I4).  State lock held, and given up while waiting.
 */
static void ask(struct dm_wait *wait)
{
    static const struct dm_answer no_news = { .verdict = DM_SAYS_NOTHING };
    struct dm_runtime *runtime = wait->runtime;
    struct dm_request request;
    struct dm_origin origin;
    struct dm_answer answer;
    struct dm_owed *owed;
    struct dm_call call;
    int owed_count;
    bool may_queue;

    dm_assert_held(DM_RANK_STATE);
    if (wait->is_inbox_needed)
        dm_wait_for_inbox(wait, wait->name);
    if (wait->claim->hold.phase != DM_ASKING)
        return; /* a message was quicker */
    may_queue = wait->may_wait && dm_store_is_able(runtime->store, wait->name->place, DM_TELLS);
    origin = dm_store_origin(runtime->store, wait->name->place);
    request = dm_hold_send(&wait->claim->hold, DM_WANTS_ACQUIRE, dm_clock_boot_ns());
    owed_count = collect_owed(wait, &owed);
    dm_call_begin(&call, runtime, wait->claim, DM_OP_ACQUIRE, request);
    call.question.acquire.may_queue = may_queue;
    call.question.acquire.owed = owed;
    call.question.acquire.owed_count = owed_count;

    do /* dead waiters are queued for the free lock: each repetition goes on after those already checked */
        answer = dm_store_ask(runtime->store, &call.question, &wait->patience, wait->reason);
    while (answer.verdict == DM_SAYS_BUSY && answer.is_wanted && dm_deadline_left_ns(&wait->patience) > 0);
    free(owed);

    dm_call_return(&call);
    dm_ending_check(runtime);
    wait->asked = answer.verdict == DM_SAYS_NOTHING ? origin : (struct dm_origin){ 0 };
    dm_step_clock(runtime, call.question.place, answer.store_us, request.sent_ns, dm_clock_boot_ns());
    wait->is_inbox_needed = is_for_queue_later(wait, &answer);
    wait->has_waited = wait->has_waited || wait->is_inbox_needed;
    wait->grace_ms = answer.grace_ms;
    dm_step(runtime, wait->claim,
            &(struct dm_event){ .kind = DM_EV_ANSWER,
                                .request = request.serial,
                                .server = origin.number > 1 ? origin.number : 0, /* 1: there was none yet */
                                .answer = wait->is_inbox_needed ? &no_news : &answer });
    if (answer.verdict == DM_SAYS_NOTHING && dm_store_is_able(runtime->store, wait->name->place, DM_ASKS))
        rest(wait);
}

/* ---- ending ------------------------------------------------------------------------------ */

/* True if the first seat goes on with the claim, and the call has none any more. */
static bool pass_claim(struct dm_wait *wait)
{
    if (!dm_line_has_heir(&wait->name->line, wait->claim->tenure) || dm_self_is_ending())
        return false;
    dm_claim_pass(wait->claim);
    wait->claim = NULL;
    return true;
}

/*
 * Not owned: the next thread of the line goes on with the claim; if there is none, the claim ends, and a release undoes
 * whatever the store may still hold for it.
 */
static void abandon(struct dm_wait *wait)
{
    dm_assert_held(DM_RANK_STATE);
    if (pass_claim(wait))
        return;
    dm_step_give_back(wait->runtime, wait->claim, DM_END_UNLOCKED);
    dm_step_kind(wait->runtime, wait->claim, DM_EV_CLOSED);
}

static int fail_without_answer(struct dm_wait *wait)
{
    dm_assert_held(DM_RANK_STATE);
    abandon(wait);
    if (wait->may_wait && !wait->deadline.is_endless)
        return dm_fail(DM_FAIL_TIMED_OUT, "%s", wait->reason);
    return dm_verdict_fail(wait->runtime->store, DM_SAYS_NOTHING, wait->reason);
}

/* True for an answer of the script itself; any other answer says nothing about an earlier request. */
static bool is_final(enum dm_verdict refusal)
{
    return refusal == DM_SAYS_BUSY || refusal == DM_SAYS_FULL || refusal == DM_SAYS_NOT_RECOVERABLE;
}

/* Releases first if an earlier request may have been executed. */
static void close_refused(struct dm_wait *wait)
{
    const struct dm_hold *hold = &wait->claim->hold;

    dm_assert_held(DM_RANK_STATE);
    if (hold->phase == DM_OVER && !is_final(hold->refusal) && hold->last_request > 1)
        dm_step_give_back(wait->runtime, wait->claim, DM_END_UNLOCKED);
    dm_step_kind(wait->runtime, wait->claim, DM_EV_CLOSED);
}

/*
 * True if the server was promoted after the unanswered request was sent.  Requests that it executed before it knew of
 * its promotion got no grace: a lock granted by them may belong to another holder.
 */
static bool is_promoted_since_asked(struct dm_wait *wait)
{
    struct dm_store *store = wait->runtime->store;
    struct dm_origin now;
    bool is_able;

    dm_assert_held(DM_RANK_STATE);
    if (!wait->asked.run)
        return false;
    dm_state_unlock();
    is_able = dm_store_await_able(store, wait->name->place, DM_ASKS, &wait->patience);
    dm_ending_lock(wait->runtime);
    now = dm_store_origin(store, wait->name->place);
    return is_able && now.run == wait->asked.run && now.epoch != wait->asked.epoch;
}

/*
 * A hold was lost before the thread entered, or cannot be believed: starts again as if it had never been, under a new
 * claim, whose acquire names the release of the old one.  A thread that gave up a hold for a condition keeps trying
 * until there is memory for the new claim.
 */
static bool begin_anew(struct dm_wait *wait)
{
    dm_assert_held(DM_RANK_STATE);
    if (wait->claim->hold.phase != DM_OVER)
        dm_step_give_back(wait->runtime, wait->claim, DM_END_UNLOCKED);
    close_refused(wait);
    while (!dm_wait_make_claim(wait)) {
        if (!wait->is_pledged)
            return false;
        rest(wait);
    }
    if (!wait->is_pledged)
        dm_claim_share(wait->claim, wait->target);
    return true;
}

/* Refused, but the thread gave up its hold for a condition, so there is no way back. */
static int ask_anew(struct dm_wait *wait)
{
    dm_assert_held(DM_RANK_STATE);
    rest(wait);
    return begin_anew(wait) ? DM_GO_ON : dm_fail(DM_FAIL_NO_MEMORY, NULL);
}

static int fail_refused(struct dm_wait *wait)
{
    enum dm_verdict refusal = wait->claim->hold.refusal;

    dm_assert_held(DM_RANK_STATE);
    if (wait->is_pledged && refusal != DM_SAYS_NOT_RECOVERABLE)
        return ask_anew(wait);
    wait->name->is_not_recoverable = refusal == DM_SAYS_NOT_RECOVERABLE;
    close_refused(wait);
    if (refusal == DM_SAYS_BUSY && wait->grace_ms)
        return dm_fail(DM_FAIL_GRACE, "%.1f s are left", (double)wait->grace_ms / 1000);
    return dm_verdict_fail(wait->runtime->store, refusal, wait->reason);
}

/* Makes the hold this thread's.  False if it ended before the thread got here. */
static bool enter(struct dm_wait *wait)
{
    struct dm_runtime *runtime = wait->runtime;
    struct dm_claim *claim = wait->claim, *old;
    int64_t now_ns = dm_clock_boot_ns();
    bool is_entered;

    dm_assert_held(DM_RANK_STATE);
    is_entered = dm_hold_is_certain(&claim->hold, now_ns);
    if (is_entered) {
        old = dm_name_hold(wait->name, claim->holder);
        if (old) { /* the thread waited for its own hold, which was lost or broken */
            dm_step_kind(runtime, old, DM_EV_TOLD_LOST);
            dm_step_kind(runtime, old, DM_EV_CLOSED);
        }
        dm_claim_share(claim, wait->target);
        dm_step_kind(runtime, claim, DM_EV_ENTERED);
        dm_claim_set_depth(claim, wait->depth);
        wait->name->is_not_recoverable = false;
        runtime->stats.from_server++;
        dm_stats_begin_hold(claim, now_ns);
    } else {
        dm_step_kind(runtime, claim, DM_EV_TIME);
    }
    return is_entered;
}

static int succeed(struct dm_wait *wait)
{
    dm_assert_held(DM_RANK_STATE);
    if (wait->claim->hold.is_owner_dead) {
        wait->runtime->stats.owner_deaths++;
        return dm_fail(DM_FAIL_OWNER_DEAD, NULL);
    }
    return wait->is_timed_out ? dm_fail(DM_FAIL_COND_TIMED_OUT, NULL) : 0;
}

int dm_wait_settle_queued(struct dm_wait *wait)
{
    struct dm_deadline soon;
    struct dm_request request;
    struct dm_answer answer;
    struct dm_call call;

    dm_assert_held(DM_RANK_STATE);
    dm_state_unlock();
    dm_explain_timeout(wait);
    dm_ending_lock(wait->runtime);
    if (pass_claim(wait))
        return dm_fail(DM_FAIL_TIMED_OUT, "%s", wait->reason);
    request = dm_hold_send(&wait->claim->hold, DM_WANTS_NOTHING, dm_clock_boot_ns());
    dm_call_begin(&call, wait->runtime, wait->claim, DM_OP_CANCEL, request);
    soon = dm_deadline_in_ms(SETTLE_NS / DM_NS_PER_MS);
    answer = dm_store_ask(wait->runtime->store, &call.question, &soon, wait->reason);
    dm_call_return(&call);
    dm_ending_check(wait->runtime);
    if (answer.verdict == DM_SAYS_OWNED) {
        dm_step(wait->runtime, wait->claim,
                &(struct dm_event){ .kind = DM_EV_ANSWER, .request = request.serial, .answer = &answer });
        if (enter(wait))
            return succeed(wait);
    }
    if (answer.verdict != DM_SAYS_DONE)
        return fail_without_answer(wait);
    dm_step_kind(wait->runtime, wait->claim, DM_EV_CLOSED);
    return dm_fail(DM_FAIL_TIMED_OUT, "%s", wait->reason);
}

/* ---- the whole call --------------------------------------------------------------------- */

/*
 * How long the thread waits for the server's answers: a lock without a deadline for ever (or, with DMUTEX_ONDOWN=fail,
 * for command_timeout), a try for command_timeout, a timed lock until its deadline, but long enough for one real try: a
 * free mutex is locked even if the deadline has passed.
 */
static struct dm_deadline patience_of(const struct dm_wait *wait)
{
    int64_t left_ns = dm_deadline_left_ns(&wait->deadline);

    if (!wait->may_wait)
        return dm_runtime_call_deadline(wait->runtime);
    if (wait->is_pledged)
        return dm_deadline_endless;
    if (wait->deadline.is_endless)
        return wait->runtime->settings.fails_when_down ? dm_runtime_call_deadline(wait->runtime) : wait->deadline;
    return left_ns >= SETTLE_NS ? wait->deadline : dm_deadline_in_ms(SETTLE_NS / DM_NS_PER_MS);
}

/* Sleeps until there may be news.  DM_GO_ON, or the end of the call. */
static int sleep_queued(struct dm_wait *wait)
{
    struct dm_deadline until = dm_wait_limit(wait);
    struct dm_deadline wake = dm_deadline_sooner(&until, dm_explain_left_ns(wait));
    bool is_woken;

    dm_assert_held(DM_RANK_STATE);
    wait->has_waited = true;
    dm_state_unlock();
    is_woken = wait->sleep(wait, &wake);
    if (!is_woken)
        dm_explain_if_due(wait);
    dm_ending_lock(wait->runtime);
    if (is_woken || !dm_hold_is_waiting(&wait->claim->hold))
        return DM_GO_ON;
    if (dm_deadline_left_ns(&wait->deadline) == 0)
        return wait->settle(wait);
    return dm_deadline_left_ns(&until) == 0 && dm_wait_is_server_gone(wait) ? fail_without_answer(wait) : DM_GO_ON;
}

/* Logs why, while no server can be asked.  False: the attempt has gone on in the meantime. */
static bool is_told_of_server(struct dm_wait *wait)
{
    dm_assert_held(DM_RANK_STATE);
    if (!dm_log_is_heard(DMUTEX_LOG_INFO) || dm_store_is_able(wait->runtime->store, wait->name->place, DM_ASKS))
        return true;
    dm_state_unlock();
    dm_explain_until_able(wait);
    dm_ending_lock(wait->runtime);
    return wait->claim->hold.phase == DM_ASKING;
}

int dm_wait_run(struct dm_wait *wait)
{
    int result = DM_GO_ON;

    dm_assert_held(DM_RANK_STATE);
    while (result == DM_GO_ON) {
        if (wait->runtime->is_retired) /* in the child of a fork() by a signal handler that interrupted the wait */
            return dm_fail(DM_FAIL_SWITCHED, NULL);
        switch (wait->claim->hold.phase) {
        case DM_ASKING:
            if (!is_told_of_server(wait))
                break;
            if (is_promoted_since_asked(wait) && !begin_anew(wait))
                result = dm_fail(DM_FAIL_NO_MEMORY, NULL);
            else
                ask(wait);
            if (result == DM_GO_ON && wait->claim->hold.phase == DM_ASKING && dm_deadline_left_ns(&wait->patience) == 0)
                result = fail_without_answer(wait);
            break;
        case DM_WAITING:
        case DM_QUEUED:
            result = sleep_queued(wait);
            wait->patience = patience_of(wait); /* the next request has its own patience */
            break;
        case DM_HELD:
            if (enter(wait))
                result = succeed(wait);
            break;
        case DM_LOST:
            if (!begin_anew(wait))
                result = dm_fail(DM_FAIL_NO_MEMORY, NULL);
            break;
        case DM_RETURNING: /* a message granted the lock after the refusal */
        case DM_OVER:
            result = fail_refused(wait);
            break;
        case DM_LEAVING: /* the hold that a wait gives up has a claim of its own */
            DM_BUG(true);
            break;
        }
    }
    return result;
}

/* DM_GO_ON: the thread has a claim, and wait->name is pinned.  Otherwise the result of the call. */
static int begin(struct dm_wait *wait)
{
    int result;

    dm_assert_held(DM_RANK_STATE);
    if (wait->runtime->is_retired)
        return dm_fail(DM_FAIL_SWITCHED, NULL);
    wait->name = dm_registry_name(&wait->runtime->registry, wait->target->key);
    if (!wait->name)
        return dm_fail(DM_FAIL_NO_MEMORY, NULL);
    result = look_at_own(wait);
    if (result != DM_GO_ON)
        return result;
    dm_explain_begin(wait);
    dm_registry_pin(wait->name);
    result = dm_wait_join(wait);
    if (result != DM_GO_ON)
        dm_registry_unpin(&wait->runtime->registry, wait->name);
    return result;
}

/* Only calls that have begun are counted: not those that only took another level of the thread's own hold. */
static void count(const struct dm_wait *wait, int result)
{
    struct dm_stats *stats = &wait->runtime->stats;
    bool is_owned = result == 0 || result == EOWNERDEAD;

    dm_assert_held(DM_RANK_STATE);
    dm_metrics_arm(wait->runtime);
    if (!wait->began_ns || (!is_owned && result != ETIMEDOUT))
        return;
    stats->waits += is_owned && wait->has_waited;
    stats->timeouts += !is_owned;
    dm_stats_note(&stats->locks, dm_clock_boot_ns() - wait->began_ns);
}

/*
 * A call with a deadline loads nothing itself, because dlopen() waits for the constructors of other threads, however
 * long they take.
 */
static void load(struct dm_runtime *runtime)
{
    if (!runtime->settings.fails_when_down && dm_store_load(runtime->store))
        __atomic_store_n(&runtime->must_load, false, __ATOMIC_RELAXED);
}

int dm_acquire(struct dm_runtime *runtime, const struct dm_target *target, bool may_wait,
               const struct dm_deadline *deadline)
{
    struct dm_wait wait = { .runtime = runtime,
                            .target = target,
                            .may_wait = may_wait,
                            .deadline = *deadline,
                            .depth = 1,
                            .sleep = dm_wait_sleep,
                            .settle = dm_wait_settle_queued,
                            .pause_ns = DM_WAIT_PAUSE_MIN_NS };
    int result;

    if (__atomic_load_n(&runtime->must_load, __ATOMIC_RELAXED) && may_wait && deadline->is_endless)
        load(runtime);
    dm_ending_lock(runtime);
    result = begin(&wait);
    if (result == DM_GO_ON) {
        wait.patience = patience_of(&wait);
        result = dm_wait_run(&wait);
        dm_registry_unpin(&runtime->registry, wait.name);
    }
    count(&wait, result);
    dm_state_unlock();
    return result;
}

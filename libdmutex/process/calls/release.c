/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/calls/release.h"

#include "base/error.h"
#include "base/rank.h"
#include "process/calls/call.h"
#include "process/claims/claim.h"
#include "process/claims/ending.h"
#include "process/claims/steps.h"
#include "store/verdict.h"

/* ---- unlock ------------------------------------------------------------------------------ */

/* The calling thread's hold of a name, brought up to date; NULL: none. */
static struct dm_claim *own_hold(struct dm_runtime *runtime, const char *key)
{
    struct dm_name *name = dm_registry_find(&runtime->registry, key);
    struct dm_claim *claim = name ? dm_name_hold(name, dm_self_get()->serial) : NULL;

    if (claim)
        dm_step_kind(runtime, claim, DM_EV_TIME);
    return claim;
}

/* DM_GO_ON: the caller sends the release of *ret_claim, with *ret_end. */
static int begin(struct dm_runtime *runtime, const char *key, struct dm_claim **ret_claim, enum dm_end *ret_end)
{
    struct dm_claim *claim = own_hold(runtime, key);

    if (!claim)
        return dm_fail(DM_FAIL_NOT_OWNER, NULL);
    if (claim->hold.phase == DM_LOST) {
        dm_step_kind(runtime, claim, DM_EV_CLOSED);
        return dm_fail(DM_FAIL_LOST, NULL);
    }
    if (claim->hold.depth > 1) {
        dm_claim_set_depth(claim, claim->hold.depth - 1);
        return 0;
    }
    dm_stats_end_hold(&runtime->stats, claim, dm_clock_boot_ns());
    *ret_end = claim->hold.is_owner_dead ? DM_END_NOT_RECOVERABLE : DM_END_UNLOCKED;
    if (*ret_end == DM_END_UNLOCKED && dm_step_leave(runtime, claim))
        return 0;
    *ret_claim = claim;
    claim->name->is_not_recoverable = *ret_end == DM_END_NOT_RECOVERABLE;
    dm_step_give_back_now(runtime, claim, *ret_end);
    return DM_GO_ON;
}

/*
 * 0, or the failure that the server's answer reveals: the hold may have been broken before, unnoticed.  Also 0 without
 * an answer in time: then the release is pending, and the loop thread repeats it until the store confirms.
 */
int dm_release(struct dm_runtime *runtime, const char *key)
{
    struct dm_deadline deadline = dm_runtime_call_deadline(runtime);
    char reason[DM_REASON_ROOM] = "";
    struct dm_answer answer;
    struct dm_claim *claim = NULL;
    struct dm_call call;
    enum dm_end end = DM_END_UNLOCKED;
    bool was_lost;
    int result;

    dm_ending_lock(runtime);
    result = begin(runtime, key, &claim, &end);
    if (result != DM_GO_ON) {
        dm_state_unlock();
        return result;
    }
    dm_call_begin(&call, runtime, claim, DM_OP_RELEASE, (struct dm_request){ 0 });
    answer = dm_store_ask(runtime->store, &call.question, &deadline, reason);
    dm_call_return(&call);
    was_lost = dm_step_released(runtime, call.question.attempt, &answer);
    dm_state_unlock();
    return was_lost ? dm_fail(DM_FAIL_LOST, NULL) : 0;
}

/* ---- dying ------------------------------------------------------------------------------- */

/* A renewal on the way was posted before; its answer finds no claim. */
int dm_release_abandon(struct dm_runtime *runtime, const char *key)
{
    struct dm_claim *claim;
    int result = 0;

    dm_state_lock();
    claim = own_hold(runtime, key);
    if (!claim) {
        result = dm_fail(DM_FAIL_NOT_OWNER, NULL);
    } else if (claim->hold.phase == DM_LOST) {
        dm_step_kind(runtime, claim, DM_EV_CLOSED);
        result = dm_fail(DM_FAIL_LOST, NULL);
    } else {
        dm_claim_drop(&runtime->registry, claim);
    }
    dm_state_unlock();
    return result;
}

void dm_release_abandon_all(struct dm_runtime *runtime)
{
    uint64_t thread = dm_self_get()->serial;
    struct dm_claim *claim, *next;

    dm_state_lock();
    for (claim = runtime->registry.claims; claim; claim = next) {
        next = claim->next;
        dm_claim_sync(claim);
        if (claim->holder == thread && claim->hold.phase == DM_HELD)
            dm_claim_drop(&runtime->registry, claim);
    }
    dm_state_unlock();
}

/* ---- renew, consistent ------------------------------------------------------------------- */

static bool may_renew(struct dm_runtime *runtime, uint64_t attempt)
{
    const struct dm_claim *claim;
    bool may;

    dm_state_lock();
    claim = dm_registry_attempt(&runtime->registry, attempt);
    may = claim && dm_hold_may_renew(&claim->hold, dm_clock_boot_ns());
    dm_state_unlock();
    return may;
}

/*
 * Only while the hold is certain: a later renewal could bring back, on a new server, a hold that is over, and so could
 * one sent after the release of a process that exits.  State lock held, and given up while waiting.
 */
static struct dm_answer renew(struct dm_runtime *runtime, struct dm_claim *claim, int64_t now_ns,
                              char ret_reason[DM_REASON_ROOM])
{
    struct dm_deadline deadline = dm_runtime_call_deadline(runtime);
    struct dm_crowd crowd;
    struct dm_question renewal = dm_step_renewal(runtime, claim, now_ns, &crowd);
    struct dm_answer answer;
    struct dm_call call;

    dm_assert_held(DM_RANK_STATE);
    renewal.renew.is_awaited = true;
    deadline = dm_deadline_sooner(&deadline, claim->hold.certain_until_ns - now_ns);
    dm_hold_ask(&claim->hold);
    dm_call_begin(&call, runtime, claim, DM_OP_RENEW, renewal.request);

    do
        answer = dm_store_ask(runtime->store, &renewal, &deadline, ret_reason);
    while (answer.verdict == DM_SAYS_NOTHING && dm_runtime_pause(&deadline) && may_renew(runtime, renewal.attempt));

    dm_call_return(&call);
    dm_ending_check(runtime);
    claim = dm_registry_attempt(&runtime->registry, renewal.attempt);
    if (claim)
        dm_step(runtime, claim,
                &(struct dm_event){
                    .kind = DM_EV_RENEWED_BY_THREAD, .request = renewal.request.serial, .answer = &answer });
    return answer;
}

enum dm_verdict dm_release_reclaim(struct dm_runtime *runtime, uint64_t attempt)
{
    enum dm_verdict verdict = DM_SAYS_UNKNOWN;
    char reason[DM_REASON_ROOM] = "";
    struct dm_claim *claim;
    int64_t now_ns;

    dm_state_lock();
    now_ns = dm_clock_boot_ns();
    claim = dm_registry_attempt(&runtime->registry, attempt);
    if (claim && dm_hold_may_renew(&claim->hold, now_ns))
        verdict = renew(runtime, claim, now_ns, reason).verdict;
    dm_state_unlock();
    return verdict;
}

int dm_release_renew(struct dm_runtime *runtime, const char *key)
{
    char reason[DM_REASON_ROOM] = "";
    struct dm_answer answer;
    struct dm_claim *claim;
    uint64_t attempt;
    int64_t now_ns;
    bool is_held;

    dm_ending_lock(runtime);
    now_ns = dm_clock_boot_ns();
    claim = own_hold(runtime, key);
    if (!claim || !dm_hold_is_certain(&claim->hold, now_ns)) {
        dm_state_unlock();
        return dm_fail(claim ? DM_FAIL_LOST : DM_FAIL_NOT_OWNER, NULL);
    }
    attempt = claim->hold.serial;
    dm_hold_restart_maxhold(&claim->hold, now_ns);
    answer = renew(runtime, claim, now_ns, reason);
    claim = dm_registry_attempt(&runtime->registry, attempt);
    is_held = claim && dm_hold_is_certain(&claim->hold, dm_clock_boot_ns());
    dm_state_unlock();
    if (!is_held)
        return dm_fail(DM_FAIL_LOST, NULL);
    return answer.verdict == DM_SAYS_OWNED ? 0 : dm_verdict_fail(runtime->store, answer.verdict, reason);
}

static enum dm_verdict say_consistent(struct dm_runtime *runtime, const struct dm_question *question,
                                      char ret_reason[DM_REASON_ROOM])
{
    struct dm_deadline deadline = dm_runtime_call_deadline(runtime);
    enum dm_verdict verdict;

    do
        verdict = dm_store_ask(runtime->store, question, &deadline, ret_reason).verdict;
    while ((verdict == DM_SAYS_NOTHING && dm_runtime_pause(&deadline)) ||
           (verdict == DM_SAYS_UNKNOWN && dm_release_reclaim(runtime, question->attempt) == DM_SAYS_OWNED));
    return verdict;
}

int dm_release_consistent(struct dm_runtime *runtime, const struct dm_target *target)
{
    char reason[DM_REASON_ROOM] = "";
    struct dm_claim *claim;
    struct dm_call call;
    enum dm_verdict verdict;

    dm_ending_lock(runtime);
    claim = own_hold(runtime, target->key);
    if (!claim || claim->hold.phase == DM_LOST || !claim->hold.is_owner_dead) {
        dm_state_unlock();
        return dm_fail(DM_FAIL_NOT_INCONSISTENT, NULL);
    }
    dm_call_begin(&call, runtime, claim, DM_OP_CONSISTENT, (struct dm_request){ 0 });
    verdict = say_consistent(runtime, &call.question, reason);
    dm_call_return(&call);
    claim = dm_registry_attempt(&runtime->registry, call.question.attempt);
    if (claim && verdict == DM_SAYS_DONE)
        dm_step_kind(runtime, claim, DM_EV_MENDED);
    if (claim && verdict == DM_SAYS_UNKNOWN)
        dm_step_kind(runtime, claim, DM_EV_TOLD_LOST);
    dm_state_unlock();
    if (verdict == DM_SAYS_DONE)
        return 0;
    if (verdict == DM_SAYS_UNKNOWN)
        return dm_fail(DM_FAIL_NOT_INCONSISTENT, "the hold was lost");
    return dm_verdict_fail(runtime->store, verdict, reason);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What the calling thread may ask about its hold, and anybody about a mutex. */
#include <errno.h>
#include <string.h>

#include "api/local.h"
#include "api/object.h"
#include "base/error.h"
#include "base/minmax.h"
#include "base/rank.h"
#include "dmutex/mutex.h"
#include "process/calls/release.h"
#include "process/claims/claim.h"
#include "process/claims/steps.h"
#include "store/verdict.h"

/* The state of the calling thread's hold: a copy, read under the lock STATE.  The hold may be lost right after. */
struct hold {
    enum dm_phase phase; /* DM_OVER: there is none */
    unsigned depth;
    uint64_t token;
    int64_t left_ns;
    uint64_t attempt;
    bool is_token_soft; /* must not be handed out yet */
};

/* A thread may hold libc's mutex without a time limit. */
static struct hold look_inside(dmutex_t *mutex)
{
    unsigned depth = dm_local_depth(mutex);

    return (struct hold){ .phase = depth ? DM_HELD : DM_OVER, .depth = depth, .left_ns = INT64_MAX };
}

/*
 * Asks no server: the process knows its holds.  Lets time pass for the claim first, so that a hold whose certainty has
 * just ended is reported as lost and not as held.  No runtime means no hold, which is not a failure here: each caller
 * has its own answer for that.
 */
static int look_up(dmutex_t *mutex, struct hold *ret_hold)
{
    struct dm_visit visit = dm_visit_begin();
    struct dm_runtime *runtime = dm_runtime_peek();
    struct dm_target target;
    struct dm_name *name;
    struct dm_claim *claim = NULL;
    int error = dm_object_read(mutex, runtime, &target);

    *ret_hold = (struct hold){ .phase = DM_OVER };
    if (error || !runtime)
        return dm_visit_end(visit, error);
    dm_state_lock();
    name = dm_registry_find(&runtime->registry, target.key);
    if (name)
        claim = dm_name_hold(name, dm_self_get()->serial);
    if (claim) {
        const struct dm_hold *hold = &claim->hold;
        int64_t until_ns = dm_min64(hold->certain_until_ns, hold->hold_ends_ns);

        dm_step_kind(runtime, claim, DM_EV_TIME);
        *ret_hold = (struct hold){ .phase = hold->phase,
                                   .depth = hold->depth,
                                   .token = dm_claim_token(claim),
                                   .left_ns = until_ns - dm_clock_boot_ns(),
                                   .attempt = hold->serial,
                                   .is_token_soft = hold->is_token_soft };
    }
    dm_state_unlock();
    return dm_visit_end(visit, 0);
}

static int look(dmutex_t *mutex, struct hold *ret_hold)
{
    if (!dm_local_is(mutex))
        return look_up(mutex, ret_hold);
    *ret_hold = look_inside(mutex);
    return 0;
}

/*
 * If several servers grant, each by its own clock, a token is handed out only once a majority has it: otherwise a later
 * hold, granted by other servers, could get a lower one.  Asks the store until that is so, for at most command_timeout.
 */
static int firm(dmutex_t *mutex, struct hold *hold)
{
    struct dm_visit visit = dm_visit_begin();
    struct dm_runtime *runtime = dm_runtime_peek();
    int error = 0;

    if (hold->phase == DM_HELD && runtime) {
        dm_release_reclaim(runtime, hold->attempt);
        error = look(mutex, hold);
    }
    if (!error && hold->phase == DM_LOST)
        error = dm_fail(DM_FAIL_LOST, NULL);
    else if (!error && hold->phase != DM_OVER && hold->is_token_soft)
        error = dm_fail(DM_FAIL_NO_ANSWER, "no majority of the servers has the token yet");
    return dm_visit_end(visit, error);
}

/*
 * A lost hold still has its token, because the thread must be able to show it to the resource, which refuses it if a
 * later one has come (P2).  A local mutex has no token.
 */
int dmutex_token_np(dmutex_t *mutex, uint64_t *ret_token)
{
    struct hold hold;
    int error = ret_token ? look(mutex, &hold) : dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);

    if (error)
        return error;
    if (dm_local_is(mutex))
        return dm_fail(DM_FAIL_LOCAL, NULL);
    if (hold.is_token_soft)
        error = firm(mutex, &hold);
    if (error)
        return error;
    if (hold.phase == DM_OVER)
        return dm_fail(DM_FAIL_NOT_OWNER, NULL);
    *ret_token = hold.token;
    return 0;
}

/*
 * A lost hold has 0 ms left, and is not a failure: the thread has not unlocked yet.  The time is rounded down, because
 * the caller must not count on more.
 */
int dmutex_remaining_np(dmutex_t *mutex, int64_t *ret_ms)
{
    struct hold hold;
    int error = ret_ms ? look(mutex, &hold) : dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);

    if (error)
        return error;
    if (hold.phase == DM_OVER)
        return dm_fail(DM_FAIL_NOT_OWNER, NULL);
    if (hold.left_ns == INT64_MAX)
        *ret_ms = INT64_MAX;
    else
        *ret_ms = hold.phase == DM_HELD && hold.left_ns > 0 ? hold.left_ns / DM_NS_PER_MS : 0;
    return 0;
}

int dmutex_holdcount_np(dmutex_t *mutex, unsigned *ret_count)
{
    struct hold hold;
    int error = ret_count ? look(mutex, &hold) : dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);

    if (!error)
        *ret_count = hold.phase == DM_HELD ? hold.depth : 0;
    return error;
}

/* Asks the server: blocks for at most command_timeout, and never past the hold's certainty. */
static int renew(dmutex_t *mutex)
{
    struct dm_visit visit = dm_visit_begin();
    struct dm_runtime *runtime = dm_runtime_peek();
    struct dm_target target;
    int error = dm_object_read(mutex, runtime, &target);

    if (!error)
        error = runtime ? dm_release_renew(runtime, target.key) : dm_fail(DM_FAIL_NOT_OWNER, NULL);
    return dm_visit_end(visit, error);
}

int dmutex_renew_np(dmutex_t *mutex)
{
    if (dm_local_is(mutex))
        return dm_local_depth(mutex) ? 0 : dm_fail(DM_FAIL_NOT_OWNER, NULL);
    return renew(mutex);
}

/* ---- asking the server about a name ------------------------------------------------------ */

/* A question to the store about a name; the answer goes to `user`. */
typedef enum dm_verdict (*question)(struct dm_runtime *runtime, struct dm_name *name,
                                    const struct dm_deadline *deadline, void *user, char *ret_reason);

/*
 * The name is found or made under STATE, and pinned, because the record must outlive the question, during which no lock
 * is held (I11).  The object is checked before the runtime is started: a bad object never starts a server.
 *
 * Blocks for at most command_timeout.  NOTHING and REFUSED are both ENOLCK, with different sentences.
 */
static int ask(dmutex_t *mutex, question put, void *user)
{
    struct dm_runtime *runtime = NULL;
    struct dm_target target;
    struct dm_deadline deadline;
    char reason[DM_REASON_ROOM] = "";
    enum dm_verdict verdict;
    struct dm_name *name;
    bool is_new;
    int error = dm_object_open(mutex, NULL, &runtime, &target);

    if (error)
        return error;
    deadline = dm_runtime_call_deadline(runtime);
    dm_state_lock();
    is_new = !dm_registry_find(&runtime->registry, target.key);
    name = dm_registry_name(&runtime->registry, target.key);
    if (name)
        dm_registry_pin(name);
    dm_state_unlock();
    if (!name)
        return dm_fail(DM_FAIL_NO_MEMORY, NULL);
    verdict = put(runtime, name, &deadline, user, reason);
    dm_state_lock();
    if (is_new) /* a caller that only asks about many names need not keep their records */
        dm_registry_forget(&runtime->registry, name);
    dm_registry_unpin(&runtime->registry, name);
    dm_state_unlock();
    return verdict == DM_SAYS_DONE ? 0 : dm_verdict_fail(runtime->store, verdict, reason);
}

/*
 * The store knows how many threads waited in the owner's process at the last renewal; if it is this one, we know how
 * many wait now.
 */
static void count_own_waiters(struct dm_runtime *runtime, const struct dm_name *name, struct dm_info *info)
{
    struct dm_crowd crowd = { 0 };

    if (strcmp(info->shown.owner, runtime->ident.uuid) != 0)
        return;
    dm_state_lock();
    if (name->line.tenure)
        dm_claim_count_seats(dm_claim_of(name->line.tenure), dm_clock_boot_ns(), &crowd);
    dm_state_unlock();
    info->shown.waiters += crowd.count - info->crowd;
}

/* Repeated until the deadline, because the question changes nothing on the server. */
static enum dm_verdict put_info(struct dm_runtime *runtime, struct dm_name *name, const struct dm_deadline *deadline,
                                void *user, char *ret_reason)
{
    union dm_more more;
    const struct dm_question info = {
        .op = DM_OP_INFO, .place = name->place, .lease_ms = DM_LEASE_DEFAULT_MS, .ret_more = &more
    };
    enum dm_verdict verdict;

    do
        verdict = dm_store_ask(runtime->store, &info, deadline, ret_reason).verdict;
    while (verdict == DM_SAYS_NOTHING && dm_runtime_pause(deadline));
    if (verdict != DM_SAYS_DONE)
        return verdict;
    count_own_waiters(runtime, name, &more.info);
    *(dmutex_info_t *)user = more.info.shown;
    return verdict;
}

/*
 * The attempt by which a thread of this process holds the name; 0 if none does.  The first is enough, because at most
 * one attempt is certain (I1).  A grant that has not reached its thread does not count: that thread finds out by
 * itself, and asks again.  State lock held.
 */
static uint64_t holding_attempt(const struct dm_name *name)
{
    const struct dm_claim *claim = name->claims;

    dm_assert_held(DM_RANK_STATE);
    while (claim && !(claim->hold.phase == DM_HELD && !claim->hold.is_attended))
        claim = claim->next_of_name;
    return claim ? claim->hold.serial : 0;
}

/*
 * A hold of this process is told at once that it was broken; other processes find out by a message or a renewal.  The
 * attempt is read beforehand, because by the time of the answer the lock may already belong to another thread.  The
 * store is asked only once: it may have broken the hold although no answer came, and the next owner's hold must not be
 * broken.
 */
static enum dm_verdict put_force(struct dm_runtime *runtime, struct dm_name *name, const struct dm_deadline *deadline,
                                 void *user, char *ret_reason)
{
    const struct dm_question force = { .op = DM_OP_FORCE, .place = name->place };
    struct dm_answer answer;
    struct dm_claim *claim;
    uint64_t broken;

    (void)user;
    dm_state_lock();
    broken = holding_attempt(name);
    dm_state_unlock();
    answer = dm_store_ask(runtime->store, &force, deadline, ret_reason);
    if (answer.verdict != DM_SAYS_DONE)
        return answer.verdict;
    dm_state_lock();
    claim = dm_registry_attempt(&runtime->registry, broken);
    if (claim)
        dm_step_kind(runtime, claim, DM_EV_TOLD_LOST);
    if (answer.is_wanted)
        dm_step_must_serve(runtime, name, true);
    dm_state_unlock();
    return answer.verdict;
}

/*
 * The result is built in `found`, and copied only on success.  Any other struct_size is refused, because no other
 * version of the structure exists yet.
 */
int dmutex_getinfo_np(dmutex_t *mutex, dmutex_info_t *info)
{
    struct dm_visit visit = dm_visit_begin();
    dmutex_info_t found;
    int error;

    if (!info)
        return dm_visit_end(visit, dm_fail(DM_FAIL_NULL_ARGUMENT, NULL));
    if (info->struct_size != sizeof *info)
        return dm_visit_end(visit, dm_fail(DM_FAIL_BAD_VALUE, "struct_size must be sizeof(dmutex_info_t)"));
    if (dm_local_is(mutex)) {
        dm_local_tell(mutex, info);
        return dm_visit_end(visit, 0);
    }
    error = ask(mutex, put_info, &found);
    if (!error) {
        found.token <<= DM_TOKEN_SHIFT;
        *info = found;
    }
    return dm_visit_end(visit, error);
}

int dmutex_islocked_np(dmutex_t *mutex, int *ret_locked)
{
    dmutex_info_t info = { .struct_size = sizeof info };
    int error;

    if (ret_locked && dm_local_is(mutex)) {
        *ret_locked = dm_local_is_locked(mutex);
        return 0;
    }
    error = ret_locked ? dmutex_getinfo_np(mutex, &info) : dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);
    if (!error)
        *ret_locked = info.locked;
    return error;
}

/* libc's mutex cannot be taken from its holder: ENOTSUP, without asking. */
int dmutex_forceunlock_np(dmutex_t *mutex)
{
    struct dm_visit visit = dm_visit_begin();

    return dm_visit_end(visit, dm_local_is(mutex) ? dm_fail(DM_FAIL_LOCAL, NULL) : ask(mutex, put_force, NULL));
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/calls/condition.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "process/calls/call.h"
#include "process/calls/explain.h"
#include "process/calls/release.h"
#include "process/calls/wait.h"
#include "process/claims/ending.h"
#include "process/claims/steps.h"
#include "store/verdict.h"

/* One call of dm_condition_wait(), on the calling thread's stack. */
struct condition_wait {
    struct dm_wait wait; /* of the attempt that waits; the first member, because dm_wait_run() passes a pointer to it */
    struct dm_name *condition; /* pinned */
    struct dm_claim *hold;     /* to be given back; NULL once it is */
    struct dm_leaving leaving;
    const struct dm_condition *object;
    int cancel_state;
    bool has_unanswered; /* there is a request to wait that may still be executed */
    bool is_signalled;   /* a signal came before the deadline or the cancellation */
    bool has_left;       /* the store has said finally whether a signal came first */
};

static struct condition_wait *of(struct dm_wait *wait)
{
    return (struct condition_wait *)(void *)wait;
}

/* ---- giving the mutex up ----------------------------------------------------------------- */

/* The store has ended the hold. */
static void leave_locked(struct condition_wait *self)
{
    struct dm_runtime *runtime = self->wait.runtime;

    if (self->hold) {
        dm_stats_end_hold(&runtime->stats, self->hold, dm_clock_boot_ns());
        dm_step_kind(runtime, self->hold, DM_EV_CLOSED);
    }
    self->hold = NULL;
}

/* The hold is unchanged, unless the process is ending and has given it back. */
static void stay_locked(struct condition_wait *self)
{
    if (self->hold->hold.phase == DM_LEAVING)
        dm_step_kind(self->wait.runtime, self->hold, DM_EV_STAY);
    else
        leave_locked(self);
}

/* The hold belongs to another attempt by now, or may do so: no thread may believe in it any longer. */
static void lose_locked(struct condition_wait *self)
{
    stay_locked(self);
    if (self->hold)
        dm_step_kind(self->wait.runtime, self->hold, DM_EV_TOLD_LOST);
}

static int fail_lost(struct condition_wait *self)
{
    dm_ending_lock(self->wait.runtime);
    lose_locked(self);
    dm_step_kind(self->wait.runtime, self->wait.claim, DM_EV_CLOSED);
    dm_state_unlock();
    return dm_fail(DM_FAIL_LOST, NULL);
}

/*
 * The attempt ends without waiting.  A request without an answer may have been executed, or may still be: then the
 * attempt is taken back, and the hold may belong to another attempt (I1).  Or the hold has expired while the thread
 * waited out refusals.  In both cases the result is that the hold is lost, unless it is ENOLCK, which says the same.
 */
static int fail(struct condition_wait *self, int result)
{
    struct dm_wait *wait = &self->wait;
    bool is_lost;

    dm_ending_lock(wait->runtime);
    if (self->has_unanswered) {
        dm_step_give_back(wait->runtime, wait->claim, DM_END_UNLOCKED);
        lose_locked(self);
    } else {
        stay_locked(self);
    }
    is_lost = !self->hold || self->hold->hold.phase == DM_LOST;
    dm_step_kind(wait->runtime, wait->claim, DM_EV_CLOSED);
    dm_state_unlock();
    return is_lost && result != ENOLCK ? dm_fail(DM_FAIL_LOST, NULL) : result;
}

static int fail_not_recoverable(struct condition_wait *self)
{
    dm_ending_lock(self->wait.runtime);
    leave_locked(self);
    self->wait.name->is_not_recoverable = true;
    dm_step_kind(self->wait.runtime, self->wait.claim, DM_EV_CLOSED);
    dm_state_unlock();
    return dm_fail(DM_FAIL_NOT_RECOVERABLE, NULL);
}

/*
 * "Not the owner" to a repeated call: maybe the store executed the first call, and the attempt has since been
 * signalled, granted and forgotten.  Goes on as if that were so.  Either way it is true for the caller, who has left
 * the critical section and comes back with the mutex.  An attempt that was granted or lost in between is released by
 * its serial, and another one begins.
 */
static int come_back(struct condition_wait *self)
{
    dm_ending_lock(self->wait.runtime);
    leave_locked(self);
    dm_step_kind(self->wait.runtime, self->wait.claim, DM_EV_TOLD_LOST);
    if (self->wait.claim->hold.phase < DM_HELD) {
        dm_registry_rename(&self->wait.runtime->registry, self->wait.claim);
        dm_registry_set_condition(&self->wait.runtime->registry, self->wait.claim, NULL);
    }
    dm_state_unlock();
    return DM_GO_ON;
}

static int take_answer(struct condition_wait *self, const struct dm_question *question, const struct dm_answer *answer)
{
    struct dm_wait *wait = &self->wait;

    dm_ending_lock(wait->runtime);
    leave_locked(self);
    dm_step_clock(wait->runtime, question->place, answer->store_us, question->request.sent_ns, dm_clock_boot_ns());
    dm_step(wait->runtime, wait->claim,
            &(struct dm_event){ .kind = DM_EV_ANSWER, .request = question->request.serial, .answer = answer });
    dm_state_unlock();
    return DM_GO_ON;
}

static int look_at(struct condition_wait *self, const struct dm_question *question, const struct dm_answer *answer)
{
    struct dm_wait *wait = &self->wait;

    switch (answer->verdict) {
    case DM_SAYS_WAITING:
    case DM_SAYS_QUEUED:
    case DM_SAYS_OWNED:
        return take_answer(self, question, answer);
    case DM_SAYS_NOT_OWNER:
        return self->has_unanswered ? come_back(self) : fail_lost(self);
    case DM_SAYS_NOT_RECOVERABLE:
        return fail_not_recoverable(self);
    default:
        return fail(self, dm_verdict_fail(wait->runtime->store, answer->verdict, wait->reason));
    }
}

/* A message may show that the attempt waits, or even owns, before any answer does. */
static bool is_known_to_wait(struct condition_wait *self)
{
    if (dm_wait_phase(&self->wait) == DM_ASKING)
        return false;
    dm_ending_lock(self->wait.runtime);
    leave_locked(self);
    dm_state_unlock();
    return true;
}

/* A new server without the data of the previous one does not know the hold yet: renews it there. */
static bool is_reclaimed(struct condition_wait *self, const struct dm_answer *answer)
{
    return answer->verdict == DM_SAYS_NOT_OWNER && !self->has_unanswered &&
           dm_release_reclaim(self->wait.runtime, self->leaving.attempt) == DM_SAYS_OWNED;
}

/* The request is over; take_answer() delivers its news, once the hold has left.  State lock held. */
static void note_answered(struct dm_wait *wait, const struct dm_question *question)
{
    static const struct dm_answer no_news = { .verdict = DM_SAYS_NOTHING };

    dm_assert_held(DM_RANK_STATE);
    dm_step(wait->runtime, wait->claim,
            &(struct dm_event){ .kind = DM_EV_ANSWER, .request = question->request.serial, .answer = &no_news });
}

/* Asks until the store has said what became of the hold.  DM_GO_ON, or the result of the call. */
static DM_OWN_FRAME int give_up_hold(struct condition_wait *self)
{
    struct dm_wait *wait = &self->wait;
    struct dm_request request;
    struct dm_answer answer;
    struct dm_call call;

    for (;;) {
        dm_ending_lock(wait->runtime);
        request = dm_hold_send(&wait->claim->hold, DM_WANTS_ACQUIRE, dm_clock_boot_ns());
        dm_call_begin(&call, wait->runtime, wait->claim, DM_OP_COND_WAIT, request);
        call.question.leave = self->leaving;
        answer = dm_store_ask(wait->runtime->store, &call.question, &wait->patience, wait->reason);
        dm_call_return(&call);
        dm_ending_check(wait->runtime);
        note_answered(wait, &call.question);
        dm_state_unlock();
        if (is_reclaimed(self, &answer))
            continue;
        if (answer.verdict != DM_SAYS_NOTHING)
            return look_at(self, &call.question, &answer);
        self->has_unanswered = true;
        if (is_known_to_wait(self))
            return DM_GO_ON;
        if (dm_deadline_left_ns(&wait->patience) == 0)
            return fail(self, dm_verdict_fail(wait->runtime->store, DM_SAYS_NOTHING, wait->reason));
        if (dm_store_is_able(wait->runtime->store, wait->name->place, DM_ASKS))
            dm_wait_rest(wait);
    }
}

/* ---- coming back ------------------------------------------------------------------------- */

/*
 * Moves the attempt from the condition to the queue of the mutex, unless a signal has done so.  Once requested, the
 * move may have happened without an answer, so a grant does not prove a signal.  A thread that has the mutex asks once
 * more and, without an answer again, takes the grant for a signal: a spurious wake-up.
 */
static void leave_condition(struct condition_wait *self)
{
    struct dm_wait *wait = &self->wait;
    struct dm_deadline deadline;
    struct dm_request request;
    struct dm_answer answer;
    struct dm_call call;
    bool is_waiting, was_asked = false;

    if (self->has_left)
        return;
    for (;; was_asked = true) {
        dm_ending_lock(wait->runtime);
        is_waiting = dm_hold_is_waiting(&wait->claim->hold);
        if (!wait->claim->condition || !(is_waiting || was_asked) || wait->runtime->is_retired) {
            self->is_signalled = true; /* granted; or neither server nor new claim knows of a signal */
            dm_state_unlock();
            return;
        }
        request = dm_hold_send(&wait->claim->hold, DM_WANTS_NOTHING, dm_clock_boot_ns());
        dm_call_begin(&call, wait->runtime, wait->claim, DM_OP_COND_CANCEL, request);
        deadline = dm_runtime_call_deadline(wait->runtime);
        answer = dm_store_ask(wait->runtime->store, &call.question, &deadline, wait->reason);
        dm_call_return(&call);
        dm_ending_check(wait->runtime);
        if (answer.verdict == DM_SAYS_OWNED || answer.verdict == DM_SAYS_QUEUED || answer.verdict == DM_SAYS_UNKNOWN ||
            answer.verdict == DM_SAYS_NOT_RECOVERABLE)
            break;
        dm_state_unlock();
        if (!is_waiting) {
            self->is_signalled = true;
            return;
        }
        dm_wait_rest(wait);
    }
    self->has_left = true;
    self->is_signalled = answer.is_signalled;
    wait->claim->has_left = true;
    dm_step(wait->runtime, wait->claim,
            &(struct dm_event){ .kind = DM_EV_ANSWER, .request = request.serial, .answer = &answer });
    dm_state_unlock();
}

/* The deadline has passed: the thread waits for the mutex without a deadline.  State lock held. */
static int settle(struct dm_wait *wait)
{
    dm_assert_held(DM_RANK_STATE);
    dm_state_unlock();
    leave_condition(of(wait));
    dm_ending_lock(wait->runtime);
    wait->is_timed_out = !of(wait)->is_signalled;
    wait->deadline = dm_deadline_endless;
    return DM_GO_ON;
}

static void finish(struct condition_wait *self)
{
    struct dm_runtime *runtime = self->wait.runtime;

    dm_ending_lock(self->wait.runtime);
    dm_registry_unpin(&runtime->registry, self->condition);
    dm_registry_unpin(&runtime->registry, self->wait.name);
    dm_state_unlock();
}

/*
 * Runs while the thread, cancelled in its sleep, unwinds: it owns the mutex again before the caller's handlers run, and
 * a signal that came first goes to another waiter.
 */
static void cancelled(void *user)
{
    struct condition_wait *self = user;

    leave_condition(self);
    self->wait.sleep = dm_wait_sleep;
    self->wait.deadline = dm_deadline_endless;
    dm_ending_lock(self->wait.runtime);
    dm_wait_run(&self->wait);
    dm_state_unlock();
    while (self->is_signalled && !self->wait.runtime->is_retired &&
           dm_condition_signal(self->wait.runtime, self->object, false) == ENOLCK)
        dm_wait_rest(&self->wait);
    finish(self);
}

/* The only place where a wait can be cancelled. */
static bool sleep_cancellably(struct dm_wait *wait, const struct dm_deadline *until)
{
    bool is_woken;

    pthread_cleanup_push(cancelled, wait);
    is_woken = dm_store_sleep(wait->runtime->store, wait->name->place, DM_TELLS, until, of(wait)->cancel_state);
    pthread_cleanup_pop(0);
    return is_woken;
}

/* ---- a wait ------------------------------------------------------------------------------ */

/* The record of the condition, pinned, and bound to `mutex` unless that is NULL.  NULL without memory. */
static struct dm_name *take_condition(struct dm_runtime *runtime, const struct dm_condition *object,
                                      struct dm_name *mutex)
{
    struct dm_name *condition = dm_registry_name(&runtime->registry, object->key);

    if (!condition)
        return NULL;
    if (mutex && condition->mutex != mutex)
        dm_registry_bind(&runtime->registry, condition, mutex);
    dm_registry_pin(condition);
    return condition;
}

/* The calling thread's hold of the mutex, brought up to date; NULL, noted: none, or lost. */
static struct dm_claim *find_hold(struct dm_runtime *runtime, const char *key)
{
    struct dm_name *name = dm_registry_find(&runtime->registry, key);
    struct dm_claim *hold = name ? dm_name_hold(name, dm_self_get()->serial) : NULL;

    if (hold)
        dm_step_kind(runtime, hold, DM_EV_TIME);
    if (!hold || hold->hold.phase == DM_LOST) {
        dm_fail(hold ? DM_FAIL_LOST : DM_FAIL_NOT_OWNER, NULL);
        return NULL;
    }
    return hold;
}

bool dm_condition_is_owned(struct dm_runtime *runtime, const char *mutex)
{
    bool is_owned;

    dm_ending_lock(runtime);
    is_owned = find_hold(runtime, mutex) != NULL;
    dm_state_unlock();
    return is_owned;
}

/* State lock held.  DM_GO_ON, and the hold is being given back; or an errno value, noted. */
static DM_OWN_FRAME int begin(struct condition_wait *self)
{
    struct dm_wait *wait = &self->wait;

    dm_assert_held(DM_RANK_STATE);
    self->hold = find_hold(wait->runtime, wait->target->key);
    if (!self->hold)
        return EPERM;
    wait->name = self->hold->name;
    self->condition = take_condition(wait->runtime, self->object, wait->name);
    if (!self->condition)
        return dm_fail(DM_FAIL_NO_MEMORY, NULL);
    dm_registry_pin(wait->name);
    if (!dm_wait_make_claim(wait)) {
        dm_registry_unpin(&wait->runtime->registry, self->condition);
        dm_registry_unpin(&wait->runtime->registry, wait->name);
        return dm_fail(DM_FAIL_NO_MEMORY, NULL);
    }
    dm_registry_set_condition(&wait->runtime->registry, wait->claim, self->condition);
    wait->depth = self->hold->hold.depth;
    self->leaving = (struct dm_leaving){
        .thread = self->hold->hold.thread,
        .attempt = self->hold->hold.serial,
        .end = self->hold->hold.is_owner_dead ? DM_END_NOT_RECOVERABLE : DM_END_UNLOCKED,
        .mutex = wait->name->key,
    };
    dm_registry_set_self(self->hold, dm_self_get()); /* the thread may have entered without the state lock */
    dm_step_kind(wait->runtime, self->hold, DM_EV_LEAVE);
    return DM_GO_ON;
}

int dm_condition_wait(struct dm_runtime *runtime, const struct dm_condition *condition, const struct dm_target *target,
                      const struct dm_deadline *deadline, int cancel_state)
{
    struct condition_wait self = {
        .wait = { .runtime = runtime,
                  .target = target,
                  .may_wait = true,
                  .deadline = *deadline,
                  .patience = dm_deadline_endless,
                  .sleep = sleep_cancellably,
                  .settle = settle,
                  .pause_ns = DM_WAIT_PAUSE_MIN_NS },
        .object = condition,
        .cancel_state = cancel_state,
    };
    int result;

    if (runtime->settings.fails_when_down)
        self.wait.patience = dm_runtime_call_deadline(runtime);
    dm_ending_lock(self.wait.runtime);
    dm_wait_open_inbox(&self.wait); /* a signal must be able to reach us */
    result = begin(&self);
    dm_state_unlock();
    if (result != DM_GO_ON)
        return result;
    result = give_up_hold(&self);
    if (result == DM_GO_ON) {
        self.wait.is_pledged = true;
        self.wait.patience = dm_deadline_endless;
        dm_explain_begin(&self.wait);
        dm_ending_lock(self.wait.runtime);
        result = dm_wait_run(&self.wait);
        dm_state_unlock();
    }
    finish(&self);
    return result;
}

/* ---- signals ----------------------------------------------------------------------------- */

/* One call of dm_condition_signal(). */
struct signalling {
    struct dm_runtime *runtime;
    struct dm_name *condition; /* pinned */
    struct dm_name *mutex;     /* pinned; NULL: not known */
    struct dm_deadline deadline;
    union dm_more more; /* of the last answer */
    char reason[DM_REASON_ROOM];
};

/* Sets the mutex; NULL: not known. */
static void take_mutex(struct signalling *self, struct dm_name *mutex)
{
    struct dm_registry *registry = &self->runtime->registry;

    if (mutex)
        dm_registry_pin(mutex);
    if (self->mutex)
        dm_registry_unpin(registry, self->mutex);
    self->mutex = mutex;
    if (mutex && self->condition->mutex != mutex)
        dm_registry_bind(registry, self->condition, mutex);
}

static struct dm_name *find_mutex(struct dm_runtime *runtime, const char *key)
{
    return key[0] ? dm_registry_name(&runtime->registry, key) : NULL;
}

static struct dm_answer send_signal(struct signalling *self, int most, uint64_t upto)
{
    const struct dm_question question = {
        .op = DM_OP_COND_SIGNAL,
        .condition = self->condition->place,
        .place = self->mutex ? self->mutex->place : NULL,
        .signal = { .mutex = self->mutex ? self->mutex->key : "", .most = most, .upto = upto },
        .ret_more = &self->more,
    };

    return dm_store_ask(self->runtime->store, &question, &self->deadline, self->reason);
}

/*
 * Decides whether to ask again: because the answer named the mutex that the condition is bound to, or because there was
 * no answer.  DM_GO_ON, or an errno value, noted.
 */
static int heed(struct signalling *self, enum dm_verdict verdict)
{
    if (verdict != DM_SAYS_BOUND) {
        bool is_refused = verdict == DM_SAYS_REFUSED || verdict == DM_SAYS_UNSUPPORTED;

        if (!is_refused && dm_runtime_pause(&self->deadline))
            return DM_GO_ON;
        return dm_verdict_fail(self->runtime->store, is_refused ? verdict : DM_SAYS_NOTHING, self->reason);
    }
    if (dm_deadline_left_ns(&self->deadline) == 0)
        return dm_fail(DM_FAIL_NO_ANSWER, "the condition is bound to one mutex after another");
    dm_state_lock();
    take_mutex(self, find_mutex(self->runtime, self->more.mutex));
    dm_state_unlock();
    return self->mutex ? DM_GO_ON : dm_fail(DM_FAIL_NO_MEMORY, NULL);
}

static int run_signal(struct signalling *self, bool is_broadcast)
{
    struct dm_answer signalled;
    uint64_t upto = 0;
    int result;

    for (;;) {
        signalled = send_signal(self, is_broadcast ? DM_SIGNAL_MOST : 1, upto);
        if (signalled.verdict != DM_SAYS_DONE) {
            result = heed(self, signalled.verdict);
            if (result != DM_GO_ON)
                return result;
            continue;
        }
        if (signalled.is_wanted && self->mutex) { /* the answer is about the mutex that we named, if any */
            dm_state_lock();
            dm_step_must_serve(self->runtime, self->mutex, true);
            dm_state_unlock();
        }
        if (!signalled.has_left)
            return 0;
        upto = self->more.upto;
    }
}

int dm_condition_signal(struct dm_runtime *runtime, const struct dm_condition *object, bool is_broadcast)
{
    struct signalling self = { .runtime = runtime, .deadline = dm_runtime_call_deadline(runtime) };
    int result;

    dm_state_lock();
    self.condition = take_condition(runtime, object, NULL);
    if (self.condition)
        take_mutex(&self, self.condition->mutex ? self.condition->mutex : find_mutex(runtime, object->mutex));
    dm_state_unlock();
    if (!self.condition)
        return dm_fail(DM_FAIL_NO_MEMORY, NULL);
    result = run_signal(&self, is_broadcast);
    dm_state_lock();
    take_mutex(&self, NULL);
    dm_registry_unpin(&runtime->registry, self.condition);
    dm_state_unlock();
    return result;
}

/* ---- the end of a condition -------------------------------------------------------------- */

enum dm_verdict dm_condition_drop(struct dm_runtime *runtime, const struct dm_condition *object,
                                  char ret_reason[DM_REASON_ROOM])
{
    struct dm_question question = { .op = DM_OP_COND_DROP, .is_anonymous = object->is_anonymous };
    struct dm_deadline deadline = dm_runtime_call_deadline(runtime);
    struct dm_name *condition;
    enum dm_verdict verdict;

    ret_reason[0] = '\0';
    dm_state_lock();
    condition = take_condition(runtime, object, NULL);
    dm_state_unlock();
    if (!condition) {
        snprintf(ret_reason, DM_REASON_ROOM, "out of memory");
        return DM_SAYS_NOTHING;
    }
    question.condition = condition->place;
    verdict = dm_store_ask(runtime->store, &question, &deadline, ret_reason).verdict;
    dm_state_lock();
    if (verdict != DM_SAYS_BUSY)
        dm_registry_forget(&runtime->registry, condition);
    dm_registry_unpin(&runtime->registry, condition);
    dm_state_unlock();
    return verdict;
}

/* True if a thread of this process waits on the condition, as far as we know. */
static bool is_waited_for_here(struct dm_runtime *runtime, const char *key)
{
    const struct dm_claim *claim;
    struct dm_name *condition;

    dm_state_lock();
    condition = dm_registry_find(&runtime->registry, key);
    claim = condition ? runtime->registry.claims : NULL;
    while (claim && (claim->condition != condition || claim->has_left))
        claim = claim->next;
    dm_state_unlock();
    return claim != NULL;
}

/*
 * A named condition belongs to the server: only the waiters of this process keep it from destroying the object.
 * Waiters that a signal has just moved do not count, and the server knows best which these are.
 */
int dm_condition_end(struct dm_runtime *runtime, const struct dm_condition *object)
{
    bool is_asked = object->is_anonymous || is_waited_for_here(runtime, object->key);
    char reason[DM_REASON_ROOM];

    if (is_asked && dm_condition_drop(runtime, object, reason) == DM_SAYS_BUSY)
        return dm_fail(DM_FAIL_COND_IN_USE, NULL);
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions become tasks, and what becomes of tasks when the connection is lost, or the store has other data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "base/units.h"
#include "registers/store_parts.h"

/* ---- questions --------------------------------------------------------------------------- */

static void answer_at_once(struct dm_registers *registers, struct dm_reg_batch *batch, int index,
                           enum dm_verdict verdict)
{
    dm_registers_answer(registers, batch, index, &(struct dm_answer){ .verdict = verdict }, NULL);
}

/* Releases of other attempts that go along; one whose session is gone is done already. */
static void take_owed(struct dm_registers *registers, struct dm_reg_task *task, const struct dm_question *question)
{
    for (int i = 0; i < question->acquire.owed_count; i++) {
        const struct dm_owed *owed = &question->acquire.owed[i];
        struct dm_reg_attempt *attempt = dm_registers_attempt(registers, owed->attempt);

        if (!attempt || dm_reg_attempt_is_gone(attempt) || attempt->name != task->name)
            continue;
        dm_reg_attempt_note_no_hold(attempt);
        attempt->is_ending = true;
        task->owed[task->owed_count++] = (struct dm_reg_owed){ .ref = dm_reg_attempt_ref(attempt), .end = owed->end };
    }
}

/* The attempt that is asked for, new or again.  NULL without memory. */
static struct dm_reg_attempt *take_attempt(struct dm_registers *registers, struct dm_reg_name *name,
                                           const struct dm_question *question)
{
    struct dm_reg_attempt *attempt = dm_registers_attempt(registers, question->attempt);

    if (!attempt)
        return dm_reg_attempt_make(registers, name, question);
    dm_reg_attempt_supersede(registers, attempt);
    return attempt;
}

static bool take_acquire(struct dm_registers *registers, struct dm_reg_name *name, const struct dm_question *question,
                         struct dm_reg_batch *batch, int index)
{
    struct dm_reg_attempt *attempt = take_attempt(registers, name, question);
    struct dm_reg_task *task;

    if (!attempt)
        return false;
    task = dm_reg_task_add(registers, name, question->acquire.may_queue ? DM_REG_ACQUIRE : DM_REG_TRY, attempt,
                           question->acquire.owed_count);
    if (!task)
        return false;
    task->batch = batch;
    task->index = index;
    task->seen = question->seen;
    task->arrival = question->arrival;
    take_owed(registers, task, question);
    return true;
}

/*
 * A release that is owed already gets somebody who waits for it.  One that takes the place of a claim may find nothing
 * to release, and was no loss for that: the hold was certain (D4).
 */
static bool take_release(struct dm_registers *registers, struct dm_reg_attempt *attempt,
                         const struct dm_question *question, struct dm_reg_batch *batch, int index)
{
    struct dm_reg_task *task;

    if (!attempt) {
        answer_at_once(registers, batch, index, DM_SAYS_NOT_OWNER);
        return true;
    }
    task = dm_reg_attempt_find_release(attempt);
    if (task) {
        task->answer = (struct dm_answer){ .verdict = DM_SAYS_NOTHING };
        dm_reg_task_answer(registers, task, NULL);
    } else {
        bool was_certain = dm_reg_attempt_find_claim(attempt) && dm_reg_attempt_is_certain(attempt);

        dm_reg_attempt_supersede(registers, attempt);
        task = dm_reg_task_add(registers, attempt->name, DM_REG_RELEASE, attempt, 0);
        if (!task)
            return false;
        task->is_unanswered = was_certain;
        task->end = question->release.end;
        task->held_ms = question->release.held_ms;
    }
    dm_reg_attempt_note_no_hold(attempt);
    attempt->is_ending = true;
    attempt->is_waiting = false;
    task->batch = batch;
    task->index = index;
    return true;
}

/* The session beats at once, and so does the one that the hold is being claimed for. */
static void await_beat(const struct dm_reg_attempt *attempt, int64_t asked_ns)
{
    const struct dm_reg_task *claim = dm_reg_attempt_find_claim(attempt);
    int64_t now_ns = dm_clock_boot_ns();

    if (attempt->own)
        dm_reg_session_await_beat(&attempt->own->session, asked_ns, now_ns);
    if (claim && claim->claimer)
        dm_reg_session_await_beat(&claim->claimer->session, asked_ns, now_ns);
}

static bool take_renew(struct dm_registers *registers, struct dm_reg_attempt *attempt,
                       const struct dm_question *question, struct dm_reg_batch *batch, int index)
{
    struct dm_reg_task *task;

    if (attempt && question->renew.is_awaited)
        await_beat(attempt, question->request.sent_ns);
    if (!attempt || !attempt->is_hold || (question->renew.mark == DM_MARK_NONE && attempt->mark == DM_MARK_NONE)) {
        dm_registers_push_renewal(registers, &(struct dm_reg_renewal){ .attempt = question->attempt,
                                                                       .asked_ns = question->request.sent_ns,
                                                                       .is_awaited = question->renew.is_awaited,
                                                                       .batch = batch,
                                                                       .index = index });
        return true;
    }
    task = dm_reg_task_add(registers, attempt->name, DM_REG_MARK, attempt, 0);
    if (!task)
        return false;
    task->mark = question->renew.mark;
    task->asked_ns = question->request.sent_ns;
    task->is_awaited = question->renew.is_awaited;
    task->batch = batch;
    task->index = index;
    return true;
}

/* An operation that reads or changes the name, and may name an attempt. */
static bool take_other(struct dm_registers *registers, struct dm_reg_name *name, enum dm_reg_act act,
                       struct dm_reg_attempt *attempt, const struct dm_question *question, struct dm_reg_batch *batch,
                       int index)
{
    struct dm_reg_task *task;

    if ((act == DM_REG_CANCEL || act == DM_REG_COND_CANCEL) && attempt)
        dm_reg_attempt_supersede(registers, attempt);
    task = dm_reg_task_add(registers, name, act, attempt, 0);
    if (!task)
        return false;
    task->seen = question->seen;
    task->is_anonymous = question->op == DM_OP_DROP && question->is_anonymous;
    task->ret_more = question->ret_more;
    task->batch = batch;
    task->index = index;
    return true;
}

void dm_registers_owe(struct dm_registers *registers, const struct dm_question *question)
{
    struct dm_reg_attempt *attempt = dm_registers_attempt(registers, question->attempt);

    if (!attempt || dm_reg_attempt_find_release(attempt))
        return;
    dm_reg_attempt_supersede(registers, attempt);
    dm_reg_attempt_note_no_hold(attempt);
    dm_reg_attempt_owe(registers, attempt, question->release.end);
}

/* ---- conditions -------------------------------------------------------------------------- */

static void take_batch(struct dm_reg_task *task, const struct dm_question *question, struct dm_reg_batch *batch,
                       int index)
{
    task->seen = question->seen;
    task->ret_more = question->ret_more;
    task->batch = batch;
    task->index = index;
}

/* C5: the condition is bound to the mutex, if it is not yet. */
static struct dm_reg_task *add_bind(struct dm_registers *registers, struct dm_reg_name *condition,
                                    struct dm_reg_attempt *attempt, const struct dm_question *question)
{
    struct dm_reg_bind *bind = calloc(1, sizeof *bind);
    struct dm_reg_task *task = bind ? dm_reg_task_add(registers, condition, DM_REG_ACT_BIND, attempt, 0) : NULL;

    if (!task) {
        free(bind);
        return NULL;
    }
    snprintf(bind->mutex, sizeof bind->mutex, "%s", question->leave.mutex);
    task->bind = bind;
    attempt->finding = task;
    return task;
}

/* A wait that may have been executed goes on at the mutex, because any answer of another kind could be wrong. */
static bool take_wait(struct dm_registers *registers, struct dm_reg_name *name, struct dm_reg_name *condition,
                      const struct dm_question *question, struct dm_reg_batch *batch, int index)
{
    struct dm_reg_attempt *attempt = take_attempt(registers, name, question),
                          *leaving = dm_registers_attempt(registers, question->leave.attempt);
    struct dm_reg_task *task;

    if (!attempt)
        return false;
    if (leaving)
        leaving->heard_ns = dm_clock_boot_ns();
    if (attempt->is_sent && attempt->condition) {
        task = dm_reg_task_add(registers, name, DM_REG_WAIT, attempt, 0);
        if (task)
            dm_reg_task_set_condition(task, attempt->condition);
    } else {
        task = add_bind(registers, condition, attempt, question);
    }
    if (!task)
        return false;
    take_batch(task, question, batch, index);
    task->leaving = question->leave.attempt;
    task->end = question->leave.end;
    return true;
}

/* At the condition first, whose binding says where to go on. */
static bool take_find(struct dm_registers *registers, struct dm_reg_name *condition, enum dm_reg_act then,
                      struct dm_reg_attempt *attempt, const struct dm_question *question, struct dm_reg_batch *batch,
                      int index)
{
    struct dm_reg_task *task = dm_reg_task_add(registers, condition, DM_REG_ACT_FIND, attempt, 0);

    if (!task)
        return false;
    take_batch(task, question, batch, index);
    task->then = then;
    task->is_anonymous = question->op == DM_OP_COND_DROP && question->is_anonymous;
    if (question->op == DM_OP_COND_SIGNAL) {
        task->most = question->signal.most;
        task->upto = question->signal.upto;
    }
    if (attempt)
        attempt->finding = task;
    return true;
}

static bool take_poll(struct dm_registers *registers, struct dm_reg_name *name, struct dm_reg_attempt *attempt,
                      const struct dm_question *question, struct dm_reg_batch *batch, int index)
{
    if (question->attempt && !attempt) {
        answer_at_once(registers, batch, index, DM_SAYS_UNKNOWN);
        return true;
    }
    if (attempt && attempt->is_asleep && attempt->condition && !attempt->finding)
        return take_find(registers, attempt->condition, DM_REG_SERVE, attempt, question, batch, index);
    return take_other(registers, name, DM_REG_SERVE, attempt, question, batch, index);
}

/* ---- all questions ----------------------------------------------------------------------- */

static bool take_known(struct dm_registers *registers, struct dm_reg_name *name, enum dm_reg_act act,
                       enum dm_verdict unknown, struct dm_reg_attempt *attempt, const struct dm_question *question,
                       struct dm_reg_batch *batch, int index)
{
    if (question->attempt && !attempt) {
        answer_at_once(registers, batch, index, unknown);
        return true;
    }
    return take_other(registers, name, act, attempt, question, batch, index);
}

/* The record of a place; NULL: there is no place, or no memory. */
static struct dm_reg_name *name_of(struct dm_registers *registers, const struct dm_place *place)
{
    return place ? dm_registers_name(registers, place->key) : NULL;
}

static bool take_about_condition(struct dm_registers *registers, const struct dm_question *question,
                                 struct dm_reg_batch *batch, int index)
{
    struct dm_reg_name *condition = name_of(registers, question->condition);
    struct dm_reg_name *name = question->op == DM_OP_COND_WAIT ? name_of(registers, question->place) : NULL;

    if (!condition || (question->op == DM_OP_COND_WAIT && !name))
        return false;
    if (question->op == DM_OP_COND_WAIT)
        return take_wait(registers, name, condition, question, batch, index);
    return take_find(registers, condition, question->op == DM_OP_COND_SIGNAL ? DM_REG_SIGNAL : DM_REG_ACT_SLEEPERS,
                     NULL, question, batch, index);
}

static bool take_about_mutex(struct dm_registers *registers, const struct dm_question *question,
                             struct dm_reg_batch *batch, int index)
{
    struct dm_reg_attempt *attempt = question->attempt ? dm_registers_attempt(registers, question->attempt) : NULL;
    struct dm_reg_name *name = name_of(registers, question->place);

    if (!name)
        return false;
    if (attempt)
        attempt->heard_ns = dm_clock_boot_ns();
    switch (question->op) {
    case DM_OP_ACQUIRE:
        return take_acquire(registers, name, question, batch, index);
    case DM_OP_RELEASE:
        return take_release(registers, attempt, question, batch, index);
    case DM_OP_RENEW:
        return take_renew(registers, attempt, question, batch, index);
    case DM_OP_POLL:
        return take_poll(registers, name, attempt, question, batch, index);
    case DM_OP_CANCEL:
        return take_known(registers, name, DM_REG_CANCEL, DM_SAYS_DONE, attempt, question, batch, index);
    case DM_OP_CONSISTENT:
        return take_known(registers, name, DM_REG_CONSISTENT, DM_SAYS_UNKNOWN, attempt, question, batch, index);
    case DM_OP_COND_CANCEL:
        return take_known(registers, name, DM_REG_COND_CANCEL, DM_SAYS_UNKNOWN, attempt, question, batch, index);
    case DM_OP_FORCE:
        return take_other(registers, name, DM_REG_FORCE, NULL, question, batch, index);
    default: /* DROP */
        return take_other(registers, name, DM_REG_DROP, NULL, question, batch, index);
    }
}

bool dm_registers_take(struct dm_registers *registers, const struct dm_question *question, struct dm_reg_batch *batch,
                       int index)
{
    if (question->op == DM_OP_COND_WAIT || question->op == DM_OP_COND_SIGNAL || question->op == DM_OP_COND_DROP)
        return take_about_condition(registers, question, batch, index);
    return take_about_mutex(registers, question, batch, index);
}

/* ---- the connection ---------------------------------------------------------------------- */

void dm_registers_names_down(struct dm_registers *registers)
{
    dm_registers_leave_renewals(registers);
    for (struct dm_reg_name *name = registers->busy; name; name = name->in_row) {
        struct dm_reg_task *task = name->tasks;

        while (task) {
            struct dm_reg_task *next = task->next;

            if (task->batch)
                dm_registers_leave_unanswered(registers, task->batch);
            task->batch = NULL;
            dm_reg_task_note_perhaps_left(registers, task);
            if (task->act != DM_REG_RELEASE && task->act != DM_REG_CLAIM)
                dm_reg_task_finish(registers, task);
            task = next;
        }
    }
}

static void end_claims(struct dm_registers *registers, struct dm_reg_name *name)
{
    struct dm_reg_task *task = name->tasks;

    while (task) {
        struct dm_reg_task *next = task->next;

        if (task->act == DM_REG_CLAIM)
            dm_reg_task_finish(registers, task);
        task = next;
    }
}

/* D3, D4: the copies are of other data; what was owed there is forgotten, and holds that are certain are claimed. */
void dm_registers_names_moved(struct dm_registers *registers)
{
    for (unsigned i = 0; i < DM_REG_BUCKETS; i++) {
        for (struct dm_reg_name *name = registers->buckets[i]; name; name = name->next) {
            dm_reg_copy_forget(&name->copy);
            end_claims(registers, name);
            for (struct dm_reg_task *task = name->tasks; task; task = task->next)
                dm_reg_task_begin_again(task);
            for (struct dm_reg_attempt *attempt = name->attempts; attempt; attempt = attempt->next) {
                if (attempt->is_hold && !attempt->is_broken && !attempt->may_have_left &&
                    dm_reg_attempt_is_certain(attempt))
                    dm_reg_task_add(registers, name, DM_REG_CLAIM, attempt, 0);
                else if (attempt->is_waiting || attempt->is_asleep)
                    dm_registers_tell_about(registers, attempt, DM_MESSAGE_ASK);
            }
        }
    }
}

bool dm_registers_has_sessions(const struct dm_registers *registers)
{
    for (const struct dm_reg_own *own = registers->owns; own; own = own->next) {
        if (own->session.references == 0 && own->session.sent > 0 && own->session.phase != DM_REG_SESSION_OVER)
            return true;
    }
    return false;
}

bool dm_registers_is_owing(const struct dm_registers *registers)
{
    for (const struct dm_reg_name *name = registers->busy; name; name = name->in_row) {
        for (const struct dm_reg_task *task = name->tasks; task; task = task->next) {
            if (task->act == DM_REG_RELEASE || name->under_way)
                return true;
        }
    }
    return false;
}

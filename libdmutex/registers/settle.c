/* SPDX-License-Identifier: BSD-2-Clause */
/* What follows from a step once it is settled: the answer, and what becomes of the attempt. */
#include <stdlib.h>

#include "base/units.h"
#include "registers/store_parts.h"

/* Without notices the first of a queue looks so often, the p-th every p times that. */
#define POLL_NS (50 * DM_NS_PER_MS)

/*
 * N9: whom this waiter watches, those before it.  C6: before a sleeper are those who carry a signal of its condition,
 * and its older sleepers.
 */
static bool is_before(const struct dm_reg_name_value *value, int index, int me)
{
    const struct dm_reg_entry *entry = &value->entries[index];

    if (me < value->hold_count + value->queue_count)
        return true;
    if (index < value->hold_count + value->queue_count && !(entry->flags & DM_REG_CARRIES))
        return false;
    return entry->condition == value->entries[me].condition;
}

static void look_ahead(struct dm_registers *registers, struct dm_reg_attempt *attempt)
{
    struct dm_reg_name *name = attempt->name;
    struct dm_reg_ref me = dm_reg_attempt_ref(attempt);
    struct dm_reg_name_value value;
    struct dm_reg_session_id *before;
    const char *reason;
    unsigned count = 0, place = 1;
    int index;

    dm_reg_name_init(&value);
    if (dm_reg_name_decode(&value, name->value, name->size, &reason))
        return;
    if (dm_reg_find(&value, &me, &index) != DM_REG_NOWHERE) {
        before = malloc((size_t)(index + 1) * sizeof before[0]);
        for (int i = 0; before && i < index; i++) {
            const struct dm_reg_session_id *id = &value.sessions[value.entries[i].session].id;

            if (!is_before(&value, i, index))
                continue;
            place += i >= value.hold_count;
            if (!dm_registers_is_our_living(registers, id))
                before[count++] = *id;
        }
        if (before)
            dm_reg_watch_look(&registers->watch, &attempt->looks, before, count, dm_clock_boot_ns());
        free(before);
        attempt->poll_ns = dm_clock_boot_ns() + place * POLL_NS;
    }
    dm_reg_name_free(&value);
}

/*
 * A try that finds the lock held by sessions of others: from now on they are watched, so that a later try may take it.
 * If the store knows ages, this very try looks at them before it says that the lock is held.  True: it must wait for
 * that, or do its step again, because one is dead.
 */
static bool must_look(struct dm_registers *registers, struct dm_reg_task *task, bool *ret_is_dead)
{
    int64_t now_ns = dm_clock_boot_ns();
    struct dm_reg_name_value value;
    const char *reason;
    bool must = false;

    *ret_is_dead = false;
    dm_reg_name_init(&value);
    if (dm_reg_name_decode(&value, task->name->value, task->name->size, &reason))
        return false;
    if (!task->look_ns)
        task->look_ns = now_ns;
    for (int i = 0; i < value.hold_count; i++) {
        const struct dm_reg_session_id *id = &value.sessions[value.entries[i].session].id;
        struct dm_reg_watched *watched =
            dm_registers_is_our_living(registers, id) ? NULL : dm_reg_watch_add(&registers->watch, id, now_ns);

        if (!watched || !registers->driver->can.has_ages || dm_reg_watch_has_looked(watched, task->look_ns, now_ns))
            continue;
        must = true;
        *ret_is_dead = *ret_is_dead || watched->is_dead;
    }
    dm_reg_name_free(&value);
    return must;
}

static enum dm_reg_progress settle_busy(struct dm_registers *registers, struct dm_reg_task *task)
{
    bool is_dead;

    if (!must_look(registers, task, &is_dead))
        return dm_reg_task_finish_attempt(registers, task);
    if (!is_dead)
        return DM_REG_TASK_WAITS;
    dm_reg_errand_init(&task->errand, &task->name->copy, task->errand.may_pause, false);
    return DM_REG_TASK_MOVES;
}

/*
 * Somebody has said that this attempt's hold is broken, so it is, or will be at once: no thread enters with it.  The
 * attempt ends as a death, and the process asks with another.
 */
static enum dm_reg_progress settle_broken(struct dm_registers *registers, struct dm_reg_task *task)
{
    static const enum dm_verdict verdicts[DM_REG_ACT_COUNT] = {
        [DM_REG_ACQUIRE] = DM_SAYS_QUEUED, [DM_REG_TRY] = DM_SAYS_BUSY,      [DM_REG_CANCEL] = DM_SAYS_DONE,
        [DM_REG_WAIT] = DM_SAYS_WAITING,   [DM_REG_SERVE] = DM_SAYS_UNKNOWN, [DM_REG_COND_CANCEL] = DM_SAYS_UNKNOWN,
    };

    dm_reg_attempt_owe(registers, task->attempt, DM_END_DIED);
    return dm_reg_task_finish_with(registers, task, verdicts[task->act]);
}

/* N3: the thread may enter if the session is certain now; a beat comes first if it is not. */
static enum dm_reg_progress settle_owned(struct dm_registers *registers, struct dm_reg_task *task)
{
    struct dm_reg_attempt *attempt = task->attempt;

    if (attempt->is_broken)
        return settle_broken(registers, task);
    if (attempt->own->session.phase != DM_REG_SESSION_LIVE) {
        if (task->act == DM_REG_WAIT) /* it has slept, and is told by the next poll that it is lost */
            return dm_reg_task_finish_with(registers, task, DM_SAYS_WAITING);
        if (dm_reg_task_refers(task))
            return dm_reg_task_begin_again(task);
        return dm_reg_task_finish_attempt_with(registers, task,
                                               task->act == DM_REG_CANCEL ? DM_SAYS_DONE : DM_SAYS_UNKNOWN);
    }
    if (!dm_reg_attempt_is_certain(attempt)) {
        dm_registers_need(registers, attempt->own);
        return DM_REG_TASK_WAITS;
    }
    dm_reg_attempt_note_hold(attempt, task->answer.token);
    task->answer.from_ns = attempt->own->session.proved_ns;
    if (!task->batch)
        dm_registers_tell(
            registers,
            &(struct dm_message){ .kind = DM_MESSAGE_GRANTED, .attempt = attempt->number, .answer = task->answer });
    return dm_reg_task_finish(registers, task);
}

static enum dm_reg_progress settle_mark(struct dm_registers *registers, struct dm_reg_task *task)
{
    if (task->answer.verdict != DM_SAYS_OWNED)
        return dm_reg_task_finish(registers, task);
    task->attempt->mark = task->mark;
    if (task->batch)
        dm_registers_push_renewal(registers, &(struct dm_reg_renewal){ .attempt = task->attempt->number,
                                                                       .asked_ns = task->asked_ns,
                                                                       .is_awaited = task->is_awaited,
                                                                       .has_waiter = task->answer.has_waiter,
                                                                       .batch = task->batch,
                                                                       .index = task->index });
    task->batch = NULL;
    return dm_reg_task_finish(registers, task);
}

/* D4: the hold is in the new data now, or it is lost. */
static enum dm_reg_progress settle_claim(struct dm_registers *registers, struct dm_reg_task *task)
{
    registers->has_claimed = true;
    if (task->answer.verdict == DM_SAYS_OWNED)
        dm_reg_task_adopt_claimer(task);
    else
        dm_registers_tell(registers, &(struct dm_message){ .kind = DM_MESSAGE_LOST, .attempt = task->attempt->number });
    return dm_reg_task_finish(registers, task);
}

/* The releases that went along are done. */
static void end_owed(struct dm_registers *registers, const struct dm_reg_task *task)
{
    for (int i = 0; i < task->owed_count; i++) {
        struct dm_reg_attempt *attempt = dm_registers_attempt(registers, task->owed[i].ref.attempt);

        if (attempt && attempt != task->attempt)
            dm_reg_attempt_end(registers, attempt);
    }
}

/*
 * The hold is not there any more, after a swap without an answer: that swap was executed, unless the hold was lost.  It
 * must not be taken for a loss.  A waiter has slept, perhaps, and learns by its next poll that it is unknown.
 */
static void believe_unanswered(struct dm_reg_task *task)
{
    if (task->is_unanswered && task->answer.verdict == DM_SAYS_NOT_OWNER)
        task->answer.verdict = task->act == DM_REG_WAIT ? DM_SAYS_WAITING : DM_SAYS_DONE;
}

/* C1: the wait has ended the hold, also if the attempt is not asleep any more. */
static void end_left(struct dm_registers *registers, const struct dm_reg_task *task)
{
    struct dm_reg_attempt *leaving = dm_registers_attempt(registers, task->leaving);
    enum dm_verdict verdict = task->answer.verdict;

    if (leaving && verdict == DM_SAYS_FULL)
        leaving->may_have_left = false;
    if (task->act == DM_REG_WAIT && leaving &&
        (verdict == DM_SAYS_WAITING || verdict == DM_SAYS_QUEUED || verdict == DM_SAYS_OWNED ||
         verdict == DM_SAYS_NOT_RECOVERABLE))
        dm_reg_attempt_end(registers, leaving);
}

enum dm_reg_progress dm_reg_task_settle(struct dm_registers *registers, struct dm_reg_task *task)
{
    if (dm_conditions_is_task(task))
        return dm_conditions_settle(registers, task);
    end_owed(registers, task);
    task->owed_count = 0;
    believe_unanswered(task);
    end_left(registers, task);
    if (task->act == DM_REG_MARK)
        return settle_mark(registers, task);
    if (task->act == DM_REG_CLAIM)
        return settle_claim(registers, task);
    if (task->answer.verdict == DM_SAYS_AGAIN)
        return dm_reg_task_begin_again(task);
    if (task->attempt && task->answer.verdict == DM_SAYS_OWNED)
        return settle_owned(registers, task);
    if (task->attempt && (task->answer.verdict == DM_SAYS_QUEUED || task->answer.verdict == DM_SAYS_WAITING)) {
        task->attempt->is_waiting = task->answer.verdict == DM_SAYS_QUEUED;
        task->attempt->is_asleep = task->answer.verdict == DM_SAYS_WAITING;
        look_ahead(registers, task->attempt);
    }
    if (task->act == DM_REG_SIGNAL && task->batch && task->ret_more)
        task->ret_more->upto = task->told_upto;
    if (task->act == DM_REG_TRY && task->answer.verdict == DM_SAYS_BUSY)
        return settle_busy(registers, task);
    return task->is_over ? dm_reg_task_finish_attempt(registers, task) : dm_reg_task_finish(registers, task);
}

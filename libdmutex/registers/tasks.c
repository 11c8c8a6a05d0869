/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tasks go on: each reads its name, does its step, and swaps the value.  What a step does to the value is apply.h's
 * business, when it is settled errand.h's, and when a session is certain session.h's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "base/units.h"
#include "registers/store_parts.h"

/* ---- one task ---------------------------------------------------------------------------- */

/* True if a swap follows the read, unless the value is a surprise, and others swap the name, too. */
static bool is_contested(const struct dm_reg_task *task)
{
    return task->name->copy.is_old &&
           (task->act == DM_REG_ACQUIRE || task->act == DM_REG_RELEASE || task->act == DM_REG_WAIT);
}

/* One read serves all tasks that want one now. */
static enum dm_reg_progress send_read(struct dm_registers *registers, struct dm_reg_task *task)
{
    struct dm_reg_name *name = task->name;
    const struct dm_reg_request request = { .asked = DM_REG_ASKED_NAME, .name = name };
    struct dm_reg_item item = { .key = name->key, .reserves = is_contested(task) };
    int64_t now_ns = dm_clock_boot_ns();

    if (name->copy.is_known)
        item.version = name->version;
    if (dm_registers_send(registers, &request, &item)) {
        dm_reg_errand_send(&task->errand);
        name->under_way = task;
        for (struct dm_reg_task *other = name->tasks; other; other = other->next)
            other->is_riding = other != task && dm_reg_errand_wants(&other->errand, now_ns) == DM_REG_ERRAND_READ;
    }
    return DM_REG_TASK_WAITS;
}

/* A reference is sent only while its session is certain (S10).  False: wait. */
static bool has_session(struct dm_registers *registers, struct dm_reg_task *task)
{
    struct dm_reg_attempt *attempt = task->attempt;
    struct dm_reg_own *own = task->act == DM_REG_CLAIM ? task->claimer : attempt->own;
    int64_t now_ns = dm_clock_boot_ns();

    if (!own || own->session.phase > DM_REG_SESSION_LIVE || own->session.id.identity != registers->identity_number) {
        own = dm_registers_own(registers, attempt->lease_ms);
        if (!own)
            return false;
        if (task->act == DM_REG_CLAIM) {
            dm_reg_task_leave_claimer(task);
            task->claimer = own;
            own->attempts++;
        } else {
            dm_reg_attempt_join(attempt, own);
        }
    }
    if (dm_reg_session_may_refer(&own->session, now_ns))
        return true;
    dm_registers_need(registers, own);
    return false;
}

/* What is answered without a look at the value: the session says it all.  True if the task is finished. */
static bool is_answered_by_session(struct dm_registers *registers, struct dm_reg_task *task)
{
    struct dm_reg_attempt *attempt = task->attempt;

    if (!attempt || dm_reg_task_refers(task) || dm_conditions_is_task(task) || !dm_reg_attempt_is_gone(attempt))
        return false;
    if (task->act == DM_REG_RELEASE)
        dm_reg_task_finish_attempt_with(registers, task, attempt->is_sent ? DM_SAYS_DONE : DM_SAYS_NOT_OWNER);
    else if (task->act == DM_REG_CANCEL)
        dm_reg_task_finish_attempt_with(registers, task, DM_SAYS_DONE);
    else if (task->act == DM_REG_SERVE || task->act == DM_REG_COND_CANCEL)
        dm_reg_task_finish_attempt_with(registers, task, DM_SAYS_UNKNOWN);
    else if (task->act == DM_REG_MARK && dm_reg_attempt_is_certain(attempt))
        return false;
    else
        dm_reg_task_finish_with(registers, task, DM_SAYS_UNKNOWN);
    return true;
}

/*
 * D2: what is in doubt, an absent name for one, is believed only with a read of the mark that was sent after the name
 * was read.  All data may be gone, and the mark with them, although the store says that it has the same data.
 */
static bool has_mark(struct dm_registers *registers, const struct dm_reg_name *name,
                     const struct dm_reg_name_value *value)
{
    return dm_reg_is_settled(value, registers->identity_number) ||
           dm_reg_mark_has_read(&registers->mark, name->reads_wanted);
}

/* The value cannot be decoded. */
static enum dm_reg_progress refuse_value(struct dm_registers *registers, struct dm_reg_task *task, int error,
                                         const char *reason)
{
    char sentence[DM_REASON_ROOM];

    if (error == ENOMEM)
        return dm_reg_task_refuse(registers, task, DM_SAYS_NO_MEMORY, "out of memory");
    snprintf(sentence, sizeof sentence, "the value of %.200s is not ours: %.90s", task->name->key, reason);
    return dm_reg_task_refuse(registers, task, DM_SAYS_REFUSED, sentence);
}

static enum dm_reg_progress apply(struct dm_registers *registers, struct dm_reg_task *task)
{
    struct dm_reg_name *name = task->name;
    struct dm_reg_name_value value;
    enum dm_reg_progress progress;
    const char *reason = NULL;
    int result;

    if (dm_conditions_is_task(task))
        return dm_conditions_apply(registers, task);
    if (dm_reg_task_refers(task) && !has_session(registers, task))
        return DM_REG_TASK_WAITS;
    dm_reg_name_init(&value);
    result = dm_reg_name_decode(&value, name->value, name->size, &reason);
    if (result)
        return refuse_value(registers, task, result, reason);
    if (task->act < DM_REG_ACT_COUNT && !has_mark(registers, name, &value)) {
        dm_reg_name_free(&value);
        return DM_REG_TASK_WAITS;
    }
    if (task->act == DM_REG_FORCE && !dm_reg_task_begin_note(registers, task, &value)) {
        dm_reg_name_free(&value);
        return dm_reg_task_refuse(registers, task, DM_SAYS_NO_MEMORY, "out of memory");
    }
    if (task->note && !task->note->is_done) {
        dm_reg_name_free(&value);
        return dm_reg_task_send_note(registers, task);
    }
    progress = task->act == DM_REG_ACT_SLEEPERS ? dm_conditions_count(registers, task, &value)
                                                : dm_reg_task_step(registers, task, &value);
    dm_reg_name_free(&value);
    return progress;
}

/* ---- running ----------------------------------------------------------------------------- */

/* D4: before a hold is claimed, it proves nothing that the new data do not name it. */
static bool awaits_claim(struct dm_registers *registers, const struct dm_reg_task *task)
{
    const struct dm_reg_attempt *leaving = dm_registers_attempt(registers, task->leaving);

    if (task->act == DM_REG_CLAIM)
        return false;
    return (task->attempt && dm_reg_attempt_find_claim(task->attempt)) ||
           (leaving && task->act == DM_REG_WAIT && dm_reg_attempt_find_claim(leaving));
}

/* D4: a hold that is no longer certain is not claimed.  A claim that is late already is taken back by a release. */
static enum dm_reg_progress give_claim_up(struct dm_registers *registers, struct dm_reg_task *task)
{
    struct dm_reg_attempt *attempt = task->attempt;
    bool is_claiming = task->is_claiming;

    dm_reg_task_adopt_claimer(task);
    dm_registers_tell(registers, &(struct dm_message){ .kind = DM_MESSAGE_LOST, .attempt = attempt->number });
    dm_reg_task_finish(registers, task);
    if (is_claiming) {
        dm_reg_attempt_note_no_hold(attempt);
        dm_reg_attempt_owe(registers, attempt, DM_END_DIED);
    }
    return DM_REG_TASK_IS_GONE;
}

static enum dm_reg_progress go_on(struct dm_registers *registers, struct dm_reg_task *task, int64_t *due_ns)
{
    if (!registers->is_ready || task->name->under_way)
        return DM_REG_TASK_WAITS;
    if (awaits_claim(registers, task))
        return DM_REG_TASK_WAITS;
    if (is_answered_by_session(registers, task))
        return DM_REG_TASK_IS_GONE;
    if (task->act == DM_REG_CLAIM && !dm_reg_attempt_is_certain(task->attempt)) /* D4: only a certain hold is claimed */
        return give_claim_up(registers, task);
    switch (dm_reg_errand_wants(&task->errand, dm_clock_boot_ns())) {
    case DM_REG_ERRAND_READ:
        return send_read(registers, task);
    case DM_REG_ERRAND_APPLY:
    case DM_REG_ERRAND_SWAP: /* it could not be sent */
        return apply(registers, task);
    case DM_REG_ERRAND_SETTLED:
        return dm_reg_task_settle(registers, task);
    case DM_REG_ERRAND_WAIT:
        break;
    }
    *due_ns = dm_min64(*due_ns, dm_reg_errand_due_ns(&task->errand));
    return DM_REG_TASK_WAITS;
}

/* The first task that can goes on; one that pauses, or waits for its session, holds up nobody. */
static int64_t run_name(struct dm_registers *registers, struct dm_reg_name *name)
{
    struct dm_reg_task *task = name->tasks;
    int64_t due_ns = DM_NEVER;

    while (task && !name->under_way) {
        enum dm_reg_progress progress = go_on(registers, task, &due_ns);

        if (progress == DM_REG_TASK_WAITS) {
            task = task->next;
            continue;
        }
        task = name->tasks;
        due_ns = DM_NEVER;
    }
    return due_ns;
}

/* N8: without notices waiters look for themselves. */
static int64_t look_without_notices(struct dm_registers *registers)
{
    int64_t now_ns = dm_clock_boot_ns(), due_ns = DM_NEVER;

    if (registers->driver->can.has_tells || !registers->is_ready)
        return DM_NEVER;
    for (unsigned i = 0; i < DM_REG_BUCKETS; i++) {
        for (struct dm_reg_attempt *attempt = registers->attempts[i]; attempt; attempt = attempt->in_row) {
            if (!(attempt->is_waiting || attempt->is_asleep) || attempt->is_ending || attempt->name->tasks ||
                attempt->finding)
                continue;
            if (attempt->poll_ns <= now_ns)
                dm_reg_task_add(registers, attempt->name, DM_REG_SERVE, attempt, 0);
            else
                due_ns = dm_min64(due_ns, attempt->poll_ns);
        }
    }
    return due_ns;
}

/* True if a question of the process about it is still without an answer. */
static bool is_asked_about(const struct dm_reg_attempt *attempt)
{
    const struct dm_reg_task *task = attempt->name->tasks;

    while (task && ((task->attempt != attempt && task->leaving != attempt->number) || !task->batch))
        task = task->next;
    return task != NULL || attempt->finding;
}

/*
 * N7.  A process polls and renews every third of a lease, so an attempt that it has not asked about for two leases is
 * over for it: it gave up a release that had no answer.  A lease would have ended that; a session goes on.
 */
static int64_t release_forgotten(struct dm_registers *registers)
{
    int64_t now_ns = dm_clock_boot_ns(), next_ns = DM_NEVER;

    if (!registers->is_ready || now_ns < registers->sweep_ns)
        return registers->is_ready ? registers->sweep_ns : DM_NEVER;
    for (unsigned i = 0; i < DM_REG_BUCKETS; i++) {
        for (struct dm_reg_attempt *attempt = registers->attempts[i]; attempt; attempt = attempt->in_row) {
            int64_t over_ns = dm_max64(attempt->heard_ns, registers->ready_ns) + 2 * attempt->lease_ms * DM_NS_PER_MS;

            if (attempt->is_ending || is_asked_about(attempt))
                continue;
            next_ns = dm_min64(next_ns, dm_max64(over_ns, now_ns + 1));
            if (over_ns > now_ns)
                continue;
            dm_reg_attempt_supersede(registers, attempt);
            dm_reg_attempt_owe(registers, attempt, attempt->is_hold ? DM_END_DIED : DM_END_UNLOCKED);
            dm_reg_attempt_note_no_hold(attempt);
        }
    }
    registers->sweep_ns = next_ns == DM_NEVER ? now_ns + DM_LEASE_MAX_MS * DM_NS_PER_MS : next_ns;
    return registers->sweep_ns;
}

/* True if no swap of ours may come late. */
static bool is_all_settled(const struct dm_registers *registers)
{
    for (unsigned i = 0; i < DM_REG_BUCKETS; i++) {
        for (const struct dm_reg_name *name = registers->buckets[i]; name; name = name->next) {
            if (name->copy.is_unsettled || name->under_way)
                return false;
        }
    }
    return true;
}

static int64_t run_all(struct dm_registers *registers)
{
    struct dm_reg_name **at = &registers->busy;
    int64_t due_ns = DM_NEVER;

    registers->has_moved = false;
    while (*at) {
        struct dm_reg_name *name = *at;

        due_ns = dm_min64(due_ns, run_name(registers, name));
        while (*at != name) /* others have come to the front */
            at = &(*at)->in_row;
        if (name->tasks) {
            at = &name->in_row;
            continue;
        }
        *at = name->in_row;
        name->is_in_row = false;
        dm_reg_name_forget(registers, name);
    }
    return due_ns;
}

int64_t dm_registers_run_names(struct dm_registers *registers)
{
    int64_t due_ns = dm_min64(look_without_notices(registers), release_forgotten(registers)), names_ns;

    do
        names_ns = run_all(registers);
    while (registers->has_moved);
    registers->is_settled = (!registers->is_closing && !registers->is_idle) || is_all_settled(registers);
    return dm_min64(due_ns, names_ns);
}

/* ---- replies ----------------------------------------------------------------------------- */

static void step_errand(struct dm_registers *registers, struct dm_reg_task *task, enum dm_reg_errand_event event)
{
    registers->chance = registers->chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    dm_reg_errand_step(&task->errand, &task->name->copy, event, dm_clock_boot_ns(), registers->round_trip_ns,
                       registers->chance >> 16);
}

static void swap_is_done(struct dm_registers *registers, struct dm_reg_task *task, bool is_knocked)
{
    struct dm_reg_name *name = task->name;
    struct dm_reg_notice *notices = name->own_notices;
    int count = name->own_notice_count;

    name->own_notices = NULL;
    name->own_notice_count = 0;
    dm_reg_name_put_next(registers, name);
    step_errand(registers, task, is_knocked ? DM_REG_ERRAND_EV_KNOCKED : DM_REG_ERRAND_EV_DONE);
    for (int i = 0; i < count; i++)
        dm_registers_take_notice(registers, &notices[i]);
    free(notices);
}

void dm_reg_task_note_perhaps_left(struct dm_registers *registers, const struct dm_reg_task *task)
{
    struct dm_reg_attempt *leaving = dm_registers_attempt(registers, task->leaving);

    if (leaving && task->act == DM_REG_WAIT)
        leaving->may_have_left = true;
}

static void take_swap(struct dm_registers *registers, struct dm_reg_task *task, const struct dm_reg_reply *reply)
{
    switch (reply->outcome) {
    case DM_REG_DONE:
        swap_is_done(registers, task, reply->is_knocked);
        return;
    case DM_REG_CONFLICT:
        if (reply->has_value)
            dm_reg_name_put_copy(registers, task->name, reply);
        step_errand(registers, task,
                    reply->is_reserved ? DM_REG_ERRAND_EV_RESERVED
                    : reply->has_value ? DM_REG_ERRAND_EV_BROUGHT
                                       : DM_REG_ERRAND_EV_CONFLICT);
        return;
    case DM_REG_REFUSED:
        task->refusal = DM_SAYS_REFUSED;
        break;
    case DM_REG_TOO_LARGE:
        task->refusal = task->act == DM_REG_ACQUIRE ? DM_SAYS_FULL : DM_SAYS_NO_MEMORY;
        break;
    default:
        task->is_unanswered = true;
        dm_reg_task_note_perhaps_left(registers, task);
        step_errand(registers, task, DM_REG_ERRAND_EV_UNKNOWN);
        return;
    }
    dm_reg_errand_refused(&task->errand, dm_clock_boot_ns() + DM_REG_REFUSED_NS);
}

static void ride(struct dm_registers *registers, struct dm_reg_name *name)
{
    for (struct dm_reg_task *task = name->tasks; task; task = task->next) {
        if (task->is_riding)
            step_errand(registers, task, DM_REG_ERRAND_EV_READ);
        task->is_riding = false;
    }
}

static void take_read(struct dm_registers *registers, struct dm_reg_task *task, const struct dm_reg_reply *reply)
{
    switch (reply->outcome) {
    case DM_REG_DONE:
        dm_reg_name_put_copy(registers, task->name, reply);
        step_errand(registers, task, DM_REG_ERRAND_EV_READ);
        ride(registers, task->name);
        return;
    case DM_REG_SAME:
        step_errand(registers, task, DM_REG_ERRAND_EV_READ);
        ride(registers, task->name);
        return;
    case DM_REG_REFUSED:
        task->refusal = DM_SAYS_REFUSED;
        dm_reg_errand_refused(&task->errand, dm_clock_boot_ns() + DM_REG_REFUSED_NS);
        return;
    default:
        step_errand(registers, task, DM_REG_ERRAND_EV_UNKNOWN);
    }
}

void dm_registers_name_replied(struct dm_registers *registers, const struct dm_reg_request *request,
                               const struct dm_reg_reply *reply)
{
    struct dm_reg_task *task = request->name->under_way;

    if (!task)
        return;
    request->name->under_way = NULL;
    task->refusal = DM_SAYS_NOTHING;
    if (request->is_swap)
        take_swap(registers, task, reply);
    else
        take_read(registers, task, reply);
    if (task->is_dropped)
        dm_reg_task_finish_with(registers, task, DM_SAYS_NOTHING);
    else if (task->refusal != DM_SAYS_NOTHING)
        dm_reg_task_refuse(registers, task, task->refusal, reply->reason);
}

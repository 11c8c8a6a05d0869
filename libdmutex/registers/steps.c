/* SPDX-License-Identifier: BSD-2-Clause */
/* One step of a task: what the process knows beside the value, the new value, and the swap that writes it. */
#include <stdlib.h>
#include <string.h>

#include "registers/store_parts.h"

/* ---- applying ---------------------------------------------------------------------------- */

/* The step must not answer what only a swap can settle (N5). */
static bool is_over_by(const struct dm_reg_task *task, enum dm_verdict verdict)
{
    bool may_be = dm_reg_task_refers(task) || task->act == DM_REG_RELEASE || task->act == DM_REG_CANCEL ||
                  task->act == DM_REG_SERVE || task->act == DM_REG_COND_CANCEL;

    return task->attempt && may_be && verdict != DM_SAYS_OWNED && verdict != DM_SAYS_QUEUED &&
           verdict != DM_SAYS_WAITING;
}

static int compare_numbers(const void *one, const void *other)
{
    uint64_t first = *(const uint64_t *)one, second = *(const uint64_t *)other;

    return first < second ? -1 : first > second;
}

/* What a step knows beside the value: lists of its own, which the caller frees. */
struct knowledge {
    struct dm_reg_session_id *dead;
    const char **dead_labels;
    uint64_t *known;
};

static bool learn(const struct dm_registers *registers, const struct dm_reg_name *name,
                  const struct dm_reg_name_value *value, struct dm_reg_step *step, struct knowledge *knowledge)
{
    int count = 0;

    for (const struct dm_reg_attempt *attempt = name->attempts; attempt; attempt = attempt->next)
        count++;
    knowledge->dead = malloc((size_t)(value->session_count + 1) * sizeof knowledge->dead[0]);
    knowledge->dead_labels = malloc((size_t)(value->session_count + 1) * sizeof knowledge->dead_labels[0]);
    knowledge->known = malloc((size_t)(count + 1) * sizeof knowledge->known[0]);
    if (!knowledge->dead || !knowledge->dead_labels || !knowledge->known)
        return false;
    for (int i = 0; i < value->session_count; i++) {
        const struct dm_reg_watched *watched = dm_reg_watch_find(&registers->watch, &value->sessions[i].id);

        if (!watched || !watched->is_dead)
            continue;
        knowledge->dead_labels[step->dead_count] = watched->label;
        knowledge->dead[step->dead_count++] = value->sessions[i].id;
    }
    for (const struct dm_reg_attempt *attempt = name->attempts; attempt; attempt = attempt->next)
        knowledge->known[step->known_count++] = attempt->number;
    qsort(knowledge->known, (size_t)step->known_count, sizeof knowledge->known[0], compare_numbers);
    step->dead = knowledge->dead;
    step->dead_labels = knowledge->dead_labels;
    step->known = knowledge->known;
    return true;
}

static struct dm_reg_step step_of(const struct dm_registers *registers, const struct dm_reg_task *task)
{
    const struct dm_reg_attempt *attempt = task->attempt,
                                *leaving = task->leaving ? dm_registers_attempt(registers, task->leaving) : NULL;
    struct dm_reg_step step = { .act = task->act,
                                .kind = DM_REG_MUTEX,
                                .capacity = 1,
                                .weight = 1,
                                .mark = (enum dm_reg_mark)task->mark,
                                .end = task->end,
                                .arrival = task->arrival,
                                .is_anonymous = task->is_anonymous,
                                .identity = registers->identity_number,
                                .quiet_ms = dm_reg_mark_quiet_ms(&registers->mark),
                                .seen = task->seen,
                                .clock_us = dm_registers_wall_us(registers),
                                .label = registers->ident->label,
                                .held_ms = task->held_ms,
                                .owed = task->owed,
                                .owed_count = task->owed_count,
                                .condition = task->condition ? task->condition->key : NULL,
                                .most = task->most,
                                .upto = task->upto };

    if (task->note) {
        step.me = task->note->ref;
        if (memcmp(step.me.session.uuid, registers->uuid, sizeof registers->uuid) != 0)
            step.label = task->note->value.label;
        return step;
    }
    if (!attempt) {
        struct dm_reg_ref *me =
            &step.me; /* in nobody's name: without a serial it settles nothing that is in doubt (D1) */

        memcpy(me->session.uuid, registers->uuid, sizeof me->session.uuid);
        me->session.lease_ms = DM_LEASE_DEFAULT_MS;
        me->session.identity = registers->identity_number;
        return step;
    }
    step.me = dm_reg_attempt_ref(attempt);
    if (task->claimer)
        step.me.session = task->claimer->session.id;
    step.token = attempt->token;
    step.is_robust = attempt->is_robust;
    if (leaving && !dm_reg_attempt_is_gone(leaving))
        step.leaving = dm_reg_attempt_ref(leaving);
    return step;
}

/* D2: how long the mark must be quiet before somebody may settle this value. */
static void want_quiet(struct dm_registers *registers, const struct dm_reg_name_value *value,
                       const struct dm_reg_task *task)
{
    uint64_t most = task->attempt ? task->attempt->lease_ms : 0;

    if (dm_reg_is_settled(value, registers->identity_number))
        return;
    for (int i = 0; i < value->session_count; i++)
        most = value->sessions[i].id.lease_ms > most ? value->sessions[i].id.lease_ms : most;
    dm_reg_mark_doubt(&registers->mark, most);
}

/* ---- sending ----------------------------------------------------------------------------- */

static void keep_own_notice(struct dm_reg_name *name, const struct dm_reg_notice *notice)
{
    if (!name->own_notices)
        name->own_notices = malloc(DM_REG_OWN_NOTICES * sizeof name->own_notices[0]);
    if (name->own_notices && name->own_notice_count < DM_REG_OWN_NOTICES)
        name->own_notices[name->own_notice_count++] = *notice;
}

/* Notices to this process need no store. */
static int write_tells(struct dm_registers *registers, struct dm_reg_name *name, const struct dm_reg_result *result)
{
    struct dm_reg_tell_room *room = registers->tells;
    int count = 0;

    name->own_notice_count = 0;
    for (int i = 0; i < result->notice_count; i++) {
        const struct dm_reg_notice *notice = &result->notices[i];

        if (memcmp(notice->session.uuid, registers->uuid, sizeof registers->uuid) == 0) {
            keep_own_notice(name, notice);
            continue;
        }
        dm_reg_session_uuid(&notice->session, room[count].inbox);
        registers->tell_items[count] =
            (struct dm_reg_tell){ .inbox = room[count].inbox,
                                  .text = room[count].text,
                                  .size = dm_registers_write_notice(notice, room[count].text) };
        count++;
    }
    return count;
}

/* The value becomes the next value of the name.  False without memory, or if it is too large. */
static bool encode_next(struct dm_registers *registers, struct dm_reg_name *name, struct dm_reg_name_value *value,
                        bool is_deleted)
{
    size_t size;

    free(name->next_value);
    name->next_value = NULL;
    name->next_size = 0;
    memset(&name->next_version, 0, sizeof name->next_version);
    if (is_deleted)
        return true;
    value->version = name->next_version = dm_reg_writer_next(&registers->writer);
    size = dm_reg_name_encode(value, NULL, 0);
    if (size > registers->driver->can.value_max)
        return false;
    name->next_value = malloc(size);
    if (!name->next_value)
        return false;
    name->next_size = dm_reg_name_encode(value, name->next_value, size);
    return true;
}

static enum dm_reg_door door_of(const struct dm_reg_task *task, const struct dm_reg_name_value *value)
{
    if (dm_reg_errand_knocks(&task->errand))
        return DM_REG_KNOCKS;
    return task->act == DM_REG_RELEASE && value->hold_count == 0 ? DM_REG_LISTENS : DM_REG_PASSES;
}

static void send_swap(struct dm_registers *registers, struct dm_reg_task *task, const struct dm_reg_name_value *value,
                      const struct dm_reg_result *result)
{
    struct dm_reg_name *name = task->name;
    const struct dm_reg_request request = { .asked = DM_REG_ASKED_NAME, .is_swap = true, .name = name };
    struct dm_reg_item item = { .key = name->key,
                                .version = name->version,
                                .value = name->next_value,
                                .size = name->next_size,
                                .tells = registers->tell_items,
                                .reserves = true,
                                .door = door_of(task, value) };

    item.tell_count = write_tells(registers, name, result);
    if (!dm_registers_send(registers, &request, &item))
        return;
    dm_reg_errand_send(&task->errand);
    name->under_way = task;
    if (task->claimer && !task->is_claiming) {
        task->is_claiming = true;
        dm_reg_session_refer(&task->claimer->session, 1, 0);
    }
    if (dm_reg_task_refers(task) && task->act != DM_REG_CLAIM)
        dm_reg_attempt_note_sent(task->attempt);
}

/* ---- the step ---------------------------------------------------------------------------- */

enum dm_reg_progress dm_reg_task_step(struct dm_registers *registers, struct dm_reg_task *task,
                                      struct dm_reg_name_value *value)
{
    struct dm_reg_step step = step_of(registers, task);
    struct dm_reg_result result = { .notices = registers->notices, .notice_room = DM_REG_NOTICES };
    struct knowledge knowledge = { NULL, NULL, NULL };
    enum dm_reg_progress progress = DM_REG_TASK_MOVES;
    bool has_learnt = learn(registers, task->name, value, &step, &knowledge);

    want_quiet(registers, value, task);
    if (has_learnt)
        dm_reg_apply(value, &step, &result);
    free(knowledge.dead);
    free(knowledge.dead_labels);
    free(knowledge.known);
    task->answer = result.answer;
    task->answer.is_signalled = result.is_signalled;
    task->answer.has_left = result.has_left;
    task->told_upto = result.upto;
    if (task->errand.is_read) /* a repetition is for those of the first try; an old copy may not have them all */
        task->upto = result.upto;
    if (!has_learnt || result.answer.verdict == DM_SAYS_NO_MEMORY)
        return dm_reg_task_refuse(registers, task, DM_SAYS_NO_MEMORY, "out of memory");
    if (result.answer.verdict == DM_SAYS_REFUSED)
        return dm_reg_task_refuse(registers, task, DM_SAYS_REFUSED, result.reason);
    task->is_over = is_over_by(task, result.answer.verdict);
    task->errand.is_next =
        registers->driver->can.has_doors && value->queue_count == (result.answer.verdict == DM_SAYS_QUEUED);
    dm_reg_errand_applied(&task->errand, &task->name->copy, result.is_changed, task->is_over);
    if (task->errand.want == DM_REG_ERRAND_SWAP) {
        if (!encode_next(registers, task->name, value, result.is_deleted))
            return dm_reg_task_refuse(registers, task, task->act == DM_REG_ACQUIRE ? DM_SAYS_FULL : DM_SAYS_NO_MEMORY,
                                      "the value of the name is too large for the store");
        send_swap(registers, task, value, &result);
        progress = DM_REG_TASK_WAITS;
    }
    return progress;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names that this process uses.  Each has a copy of its value, the attempts of this process, and tasks: the
 * operations that are asked for, one request at a time.
 *
 * A task that ends an attempt takes the place of all others of the attempt.  A release stays until it is settled, also
 * if nobody waits for its answer any more (N5).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "base/units.h"
#include "registers/store_parts.h"

/* A store that refuses is asked again after this time. */
#define REFUSED_NS (500 * DM_NS_PER_MS)

/* Above this number of names, those that are not used are forgotten. */
#define NAMES_KEPT 1000

/* ---- attempts ---------------------------------------------------------------------------- */

static unsigned bucket_of_number(uint64_t number)
{
    return (unsigned)((number * UINT64_C(0x9E3779B97F4A7C15)) >> 56) % DM_REG_BUCKETS;
}

struct dm_reg_attempt *dm_registers_attempt(const struct dm_registers *registers, uint64_t number)
{
    struct dm_reg_attempt *attempt = registers->attempts[bucket_of_number(number)];

    while (attempt && attempt->number != number)
        attempt = attempt->in_row;
    return attempt;
}

struct dm_reg_attempt *dm_reg_attempt_make(struct dm_registers *registers, struct dm_reg_name *name,
                                           const struct dm_question *question)
{
    struct dm_reg_attempt **row = &registers->attempts[bucket_of_number(question->attempt)];
    struct dm_reg_attempt *attempt = calloc(1, sizeof *attempt);

    if (!attempt)
        return NULL;
    attempt->name = name;
    attempt->number = question->attempt;
    attempt->thread = question->thread;
    attempt->lease_ms = question->lease_ms;
    attempt->is_robust = question->is_robust;
    attempt->heard_ns = dm_clock_boot_ns();
    attempt->in_row = *row;
    *row = attempt;
    attempt->next = name->attempts;
    name->attempts = attempt;
    registers->sweep_ns = dm_min64(registers->sweep_ns, attempt->heard_ns + 2 * attempt->lease_ms * DM_NS_PER_MS);
    return attempt;
}

static void leave_condition(struct dm_reg_attempt *attempt)
{
    if (attempt->condition)
        attempt->condition->uses--;
    attempt->condition = NULL;
}

static void leave_session(struct dm_reg_attempt *attempt)
{
    if (!attempt->own)
        return;
    dm_reg_session_refer(&attempt->own->session, attempt->is_sent ? -1 : 0, attempt->is_hold ? -1 : 0);
    attempt->own->attempts--;
    attempt->own = NULL;
    attempt->is_sent = attempt->is_hold = attempt->is_waiting = attempt->is_asleep = false;
}

void dm_reg_attempt_join(struct dm_reg_attempt *attempt, struct dm_reg_own *own)
{
    leave_session(attempt);
    attempt->own = own;
    own->attempts++;
}

void dm_reg_attempt_note_sent(struct dm_reg_attempt *attempt)
{
    if (attempt->is_sent)
        return;
    attempt->is_sent = true;
    dm_reg_session_refer(&attempt->own->session, 1, 0);
}

void dm_reg_attempt_note_hold(struct dm_reg_attempt *attempt, uint64_t token)
{
    dm_reg_attempt_note_sent(attempt);
    attempt->is_waiting = attempt->is_asleep = false;
    attempt->token = token;
    attempt->heard_ns = dm_clock_boot_ns();
    if (attempt->is_hold || attempt->is_ending)
        return;
    attempt->is_hold = true;
    dm_reg_session_refer(&attempt->own->session, 0, 1);
}

void dm_reg_attempt_note_no_hold(struct dm_reg_attempt *attempt)
{
    if (attempt->is_hold && attempt->own)
        dm_reg_session_refer(&attempt->own->session, 0, -1);
    attempt->is_hold = false;
}

bool dm_reg_attempt_is_gone(const struct dm_reg_attempt *attempt)
{
    return !attempt->own || attempt->own->session.phase == DM_REG_SESSION_OVER ||
           attempt->own->session.phase == DM_REG_SESSION_PAST;
}

bool dm_reg_attempt_is_certain(const struct dm_reg_attempt *attempt)
{
    return attempt->own && dm_reg_session_is_certain(&attempt->own->session, dm_clock_boot_ns());
}

struct dm_reg_ref dm_reg_attempt_ref(const struct dm_reg_attempt *attempt)
{
    return (struct dm_reg_ref){ .session = attempt->own->session.id,
                                .thread = attempt->thread,
                                .attempt = attempt->number };
}

/* ---- names ------------------------------------------------------------------------------- */

static unsigned bucket_of_key(const char *key)
{
    return (unsigned)(dm_reg_identity_number(key) % DM_REG_BUCKETS);
}

struct dm_reg_name *dm_registers_name(struct dm_registers *registers, const char *key)
{
    struct dm_reg_name **row = &registers->buckets[bucket_of_key(key)], *name = *row;
    size_t size = strlen(key) + 1;

    while (name && strcmp(name->key, key) != 0)
        name = name->next;
    if (name)
        return name;
    name = calloc(1, sizeof *name + size);
    if (!name)
        return NULL;
    memcpy(name->key, key, size);
    name->last_task = &name->tasks;
    name->next = *row;
    *row = name;
    registers->name_count++;
    return name;
}

void dm_reg_name_forget(struct dm_registers *registers, struct dm_reg_name *name)
{
    struct dm_reg_name **at = &registers->buckets[bucket_of_key(name->key)];

    if (registers->name_count <= NAMES_KEPT || name->tasks || name->attempts || name->uses || name->copy.is_unsettled)
        return;
    while (*at != name)
        at = &(*at)->next;
    *at = name->next;
    registers->name_count--;
    dm_reg_name_free_memory(name);
}

void dm_reg_name_free_memory(struct dm_reg_name *name)
{
    free(name->value);
    free(name->next_value);
    free(name->own_notices);
    free(name);
}

static void put(struct dm_registers *registers, struct dm_reg_name *name, uint8_t *value, size_t size,
                const struct dm_reg_version *version)
{
    free(name->value);
    name->value = value;
    name->size = size;
    name->version = *version;
    name->reads_wanted = dm_reg_mark_next_read(&registers->mark);
}

void dm_reg_name_put_next(struct dm_registers *registers, struct dm_reg_name *name)
{
    put(registers, name, name->next_value, name->next_size, &name->next_version);
    name->next_value = NULL;
    name->next_size = 0;
}

void dm_reg_name_put_copy(struct dm_registers *registers, struct dm_reg_name *name, const struct dm_reg_reply *reply)
{
    uint8_t *value = reply->size ? malloc(reply->size) : NULL;

    if (reply->size && !value) {
        name->copy.is_known = false; /* read again */
        return;
    }
    if (reply->size)
        memcpy(value, reply->value, reply->size);
    put(registers, name, value, reply->size, &reply->version);
}

/* ---- tasks ------------------------------------------------------------------------------- */

static void unlink_task(struct dm_reg_task *task)
{
    struct dm_reg_name *name = task->name;
    struct dm_reg_task **at = &name->tasks;

    while (*at != task)
        at = &(*at)->next;
    *at = task->next;
    if (!*at)
        name->last_task = at;
}

void dm_reg_task_answer(struct dm_registers *registers, struct dm_reg_task *task, const char *refusal)
{
    struct dm_reg_batch *batch = task->batch;

    task->batch = NULL;
    if (batch)
        dm_registers_answer(registers, batch, task->index, &task->answer, refusal);
}

void dm_reg_attempt_owe(struct dm_registers *registers, struct dm_reg_attempt *attempt, enum dm_end end)
{
    struct dm_reg_task *task = dm_reg_attempt_find_release(attempt);

    attempt->is_ending = true;
    if (!task)
        task = dm_reg_task_add(registers, attempt->name, DM_REG_RELEASE, attempt, 0);
    if (task)
        task->end = end;
}

/* Releases that should have gone along. */
static void return_owed(struct dm_registers *registers, struct dm_reg_task *task)
{
    for (int i = 0; i < task->owed_count; i++) {
        struct dm_reg_attempt *attempt = dm_registers_attempt(registers, task->owed[i].ref.attempt);

        if (attempt && attempt != task->attempt)
            dm_reg_attempt_owe(registers, attempt, task->owed[i].end);
    }
    task->owed_count = 0;
}

void dm_reg_task_leave_claimer(struct dm_reg_task *task)
{
    if (!task->claimer)
        return;
    dm_reg_session_refer(&task->claimer->session, task->is_claiming ? -1 : 0, 0);
    task->claimer->attempts--;
    task->claimer = NULL;
    task->is_claiming = false;
}

void dm_reg_task_set_condition(struct dm_reg_task *task, struct dm_reg_name *condition)
{
    if (condition)
        condition->uses++;
    if (task->condition)
        task->condition->uses--;
    task->condition = condition;
}

/* Who counts and who wants to know may end one before the other. */
static void leave_others(struct dm_reg_task *task)
{
    if (task->attempt && task->attempt->finding == task)
        task->attempt->finding = NULL;
    if (task->binder)
        task->binder->bind->counting = NULL;
    if (task->bind && task->bind->counting)
        task->bind->counting->binder = NULL;
    dm_reg_task_set_condition(task, NULL);
}

enum dm_reg_progress dm_reg_task_finish(struct dm_registers *registers, struct dm_reg_task *task)
{
    if (task->attempt && task->batch)
        task->attempt->heard_ns = dm_clock_boot_ns();
    dm_reg_task_answer(registers, task, NULL);
    return_owed(registers, task);
    dm_reg_task_leave_claimer(task);
    leave_others(task);
    unlink_task(task);
    free(task->note);
    free(task->bind);
    free(task);
    return DM_REG_TASK_IS_GONE;
}

enum dm_reg_progress dm_reg_task_finish_with(struct dm_registers *registers, struct dm_reg_task *task,
                                             enum dm_verdict verdict)
{
    task->answer = (struct dm_answer){ .verdict = verdict };
    return dm_reg_task_finish(registers, task);
}

/* The task about the attempt that is still at the condition, if any. */
static void end_finding(struct dm_registers *registers, struct dm_reg_attempt *attempt, enum dm_verdict verdict)
{
    struct dm_reg_task *task = attempt->finding;

    if (!task)
        return;
    task->attempt = NULL;
    attempt->finding = NULL;
    if (task->name->under_way == task)
        task->is_dropped = true;
    else
        dm_reg_task_finish_with(registers, task, verdict);
}

void dm_reg_attempt_end(struct dm_registers *registers, struct dm_reg_attempt *attempt)
{
    struct dm_reg_attempt **at = &attempt->name->attempts;
    struct dm_reg_task *task = attempt->name->tasks;

    end_finding(registers, attempt, DM_SAYS_UNKNOWN);
    while (task) {
        struct dm_reg_task *next = task->next;

        if (task->attempt == attempt) {
            task->attempt = NULL;
            if (attempt->name->under_way == task)
                task->is_dropped = true;
            else
                dm_reg_task_finish_with(registers, task,
                                        task->act == DM_REG_RELEASE ? DM_SAYS_NOT_OWNER : DM_SAYS_UNKNOWN);
        }
        task = next;
    }
    while (*at != attempt)
        at = &(*at)->next;
    *at = attempt->next;
    at = &registers->attempts[bucket_of_number(attempt->number)];
    while (*at != attempt)
        at = &(*at)->in_row;
    *at = attempt->in_row;
    leave_session(attempt);
    leave_condition(attempt);
    free(attempt);
}

enum dm_reg_progress dm_reg_task_finish_attempt(struct dm_registers *registers, struct dm_reg_task *task)
{
    struct dm_reg_attempt *attempt = task->attempt;

    task->attempt = NULL;
    if (attempt && attempt->finding == task)
        attempt->finding = NULL;
    if (attempt)
        dm_reg_attempt_end(registers, attempt);
    return dm_reg_task_finish(registers, task);
}

enum dm_reg_progress dm_reg_task_finish_attempt_with(struct dm_registers *registers, struct dm_reg_task *task,
                                                     enum dm_verdict verdict)
{
    task->answer = (struct dm_answer){ .verdict = verdict };
    return dm_reg_task_finish_attempt(registers, task);
}

static struct dm_reg_task *find_task(const struct dm_reg_attempt *attempt, enum dm_reg_act act)
{
    struct dm_reg_task *task = attempt->name->tasks;

    while (task && (task->attempt != attempt || task->act != act))
        task = task->next;
    return task;
}

struct dm_reg_task *dm_reg_attempt_find_release(const struct dm_reg_attempt *attempt)
{
    return find_task(attempt, DM_REG_RELEASE);
}

struct dm_reg_task *dm_reg_attempt_find_claim(const struct dm_reg_attempt *attempt)
{
    return find_task(attempt, DM_REG_CLAIM);
}

/* The last of the name's tasks. */
static void link_task(struct dm_registers *registers, struct dm_reg_task *task, struct dm_reg_name *name)
{
    task->name = name;
    task->next = NULL;
    *name->last_task = task;
    name->last_task = &task->next;
    if (!name->is_in_row) {
        name->is_in_row = true;
        name->in_row = registers->busy;
        registers->busy = name;
    }
}

static void begin(struct dm_reg_task *task)
{
    enum dm_reg_act act = task->act;
    bool is_about_now = act == DM_REG_SERVE || act == DM_REG_MARK || act == DM_REG_FORCE || act >= DM_REG_ACT_COUNT;

    dm_reg_errand_init(&task->errand, &task->name->copy, act == DM_REG_ACQUIRE || act == DM_REG_TRY, is_about_now);
}

struct dm_reg_task *dm_reg_task_add(struct dm_registers *registers, struct dm_reg_name *name, enum dm_reg_act act,
                                    struct dm_reg_attempt *attempt, int owed_count)
{
    struct dm_reg_task *task = calloc(1, sizeof *task + (size_t)owed_count * sizeof task->owed[0]);

    if (!task)
        return NULL;
    task->act = act;
    task->attempt = attempt;
    link_task(registers, task, name);
    begin(task);
    return task;
}

enum dm_reg_progress dm_reg_task_move(struct dm_registers *registers, struct dm_reg_task *task,
                                      struct dm_reg_name *name, enum dm_reg_act act)
{
    if (task->attempt && task->attempt->finding == task)
        task->attempt->finding = NULL;
    unlink_task(task);
    task->is_unanswered = false;
    task->act = act;
    link_task(registers, task, name);
    begin(task);
    registers->has_moved = true;
    return DM_REG_TASK_IS_GONE;
}

enum dm_reg_progress dm_reg_task_begin_again(struct dm_reg_task *task)
{
    dm_reg_errand_init(&task->errand, &task->name->copy, task->errand.may_pause, true);
    return DM_REG_TASK_MOVES;
}

bool dm_reg_task_refers(const struct dm_reg_task *task)
{
    return task->act == DM_REG_ACQUIRE || task->act == DM_REG_TRY || task->act == DM_REG_CLAIM ||
           task->act == DM_REG_WAIT;
}

/*
 * A refusal of a wait says that nothing has changed.  If one of its swaps may still be executed, there is no answer
 * instead, and the process asks again.
 */
static enum dm_verdict refusal_of(const struct dm_reg_task *task, enum dm_verdict verdict)
{
    return task->act == DM_REG_WAIT && task->name->copy.is_unsettled ? DM_SAYS_NOTHING : verdict;
}

enum dm_reg_progress dm_reg_task_refuse(struct dm_registers *registers, struct dm_reg_task *task,
                                        enum dm_verdict verdict, const char *reason)
{
    task->answer = (struct dm_answer){ .verdict = refusal_of(task, verdict) };
    if (task->binder)
        dm_reg_task_refuse(registers, task->binder, verdict, reason);
    dm_reg_task_answer(registers, task, task->answer.verdict == DM_SAYS_NOTHING ? NULL : reason);
    if (task->act == DM_REG_RELEASE || task->act == DM_REG_CLAIM) { /* owed, or certain still: it is tried again */
        dm_reg_errand_refused(&task->errand, dm_clock_boot_ns() + REFUSED_NS);
        return DM_REG_TASK_WAITS;
    }
    if (task->act == DM_REG_ACT_BIND)
        return dm_reg_task_finish_attempt(registers, task);
    if (!task->attempt || !dm_reg_task_refers(task) || task->answer.verdict == DM_SAYS_NOTHING)
        return dm_reg_task_finish(registers, task);
    if (!task->attempt->is_sent)
        return dm_reg_task_finish_attempt(registers, task);
    dm_reg_attempt_owe(registers, task->attempt, DM_END_UNLOCKED);
    return dm_reg_task_finish(registers, task);
}

void dm_reg_task_adopt_claimer(struct dm_reg_task *task)
{
    bool was_hold = task->attempt->is_hold;

    if (!task->is_claiming)
        return;
    dm_reg_attempt_join(task->attempt, task->claimer);
    dm_reg_attempt_note_sent(task->attempt);
    if (was_hold)
        dm_reg_attempt_note_hold(task->attempt, task->attempt->token);
}

void dm_reg_attempt_supersede(struct dm_registers *registers, struct dm_reg_attempt *attempt)
{
    struct dm_reg_task *task = attempt->name->tasks;

    end_finding(registers, attempt, DM_SAYS_NOTHING);
    while (task) {
        struct dm_reg_task *next = task->next;

        if (task->attempt == attempt)
            dm_reg_task_adopt_claimer(task);
        if (task->attempt == attempt && attempt->name->under_way == task) {
            task->is_dropped = true;
            task->attempt = NULL;
        } else if (task->attempt == attempt) {
            dm_reg_task_finish_with(registers, task, DM_SAYS_NOTHING);
        }
        task = next;
    }
}

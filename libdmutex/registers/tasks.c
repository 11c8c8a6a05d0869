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

/* A store that refuses is asked again after this time. */
#define REFUSED_NS (500 * DM_NS_PER_MS)

/* Without notices the first of a queue looks so often, the p-th every p times that. */
#define POLL_NS (50 * DM_NS_PER_MS)

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

static void inbox_of(const struct dm_reg_session_id *id, char ret_inbox[DM_UUID_LENGTH + 1])
{
    for (size_t i = 0; i < sizeof id->uuid; i++)
        snprintf(ret_inbox + 2 * i, 3, "%02x", id->uuid[i]);
}

static void keep_own_notice(struct dm_reg_name *name, const struct dm_reg_notice *notice)
{
    if (name->own_notice_count < (int)(sizeof name->own_notices / sizeof name->own_notices[0]))
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
        inbox_of(&notice->session, room[count].inbox);
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

static void send_swap(struct dm_registers *registers, struct dm_reg_task *task, const struct dm_reg_result *result)
{
    struct dm_reg_name *name = task->name;
    const struct dm_reg_request request = { .asked = DM_REG_ASKED_NAME, .is_swap = true, .name = name };
    struct dm_reg_item item = { .key = name->key,
                                .version = name->version,
                                .value = name->next_value,
                                .size = name->next_size,
                                .tells = registers->tell_items };

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

/* One read serves all tasks that want one now. */
static enum dm_reg_progress send_read(struct dm_registers *registers, struct dm_reg_task *task)
{
    struct dm_reg_name *name = task->name;
    const struct dm_reg_request request = { .asked = DM_REG_ASKED_NAME, .name = name };
    struct dm_reg_item item = { .key = name->key };
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

/* ---- force ------------------------------------------------------------------------------- */

/* The note about the present holder.  A later holder is not meant: the hold that was to be broken has ended then. */
static bool begin_note(struct dm_registers *registers, struct dm_reg_task *task, const struct dm_reg_name_value *value)
{
    const struct dm_reg_entry *hold = value->entries;
    struct dm_reg_note *note;

    if (task->note || value->hold_count == 0)
        return true;
    note = calloc(1, sizeof *note);
    if (!note)
        return false;
    note->ref = (struct dm_reg_ref){ .session = value->sessions[hold->session].id,
                                     .thread = hold->thread,
                                     .attempt = hold->attempt };
    note->is_done =
        dm_registers_is_our_living(registers, &note->ref.session); /* a notice within the process is never lost */
    task->note = note;
    return true;
}

static enum dm_reg_progress send_note(struct dm_registers *registers, struct dm_reg_task *task)
{
    struct dm_reg_note *note = task->note;
    struct dm_reg_request request = { .asked = DM_REG_ASKED_NOTE, .name = task->name, .is_swap = note->must_swap };
    char key[DM_REG_SESSION_KEY_ROOM];
    struct dm_reg_item item = { .key = key, .value = registers->bytes };

    if (dm_clock_boot_ns() < note->retry_ns) {
        dm_reg_errand_refused(&task->errand, note->retry_ns); /* reads the name again then */
        return DM_REG_TASK_WAITS;
    }
    dm_reg_session_key(&note->ref.session, key);
    if (note->must_swap) {
        item.version = note->value.version;
        note->value.version = dm_reg_writer_next(&registers->writer);
        item.size = dm_reg_session_encode(&note->value, registers->bytes);
        note->must_swap = false;
    }
    if (dm_registers_send(registers, &request, &item))
        task->name->under_way = task;
    return DM_REG_TASK_WAITS;
}

/* A session that is dead or absent has nobody to tell; one with too many notes is told by its notice alone. */
static void read_note(struct dm_reg_note *note, const struct dm_reg_reply *reply)
{
    const char *reason;

    note->is_done = true;
    if (reply->size == 0 || dm_reg_session_decode(reply->value, reply->size, &note->value, &reason) ||
        note->value.is_dead || note->value.broken_count == DM_REG_NOTES_MAX)
        return;
    for (int i = 0; i < note->value.broken_count; i++) {
        if (note->value.broken[i] == note->ref.attempt)
            return;
    }
    note->value.broken[note->value.broken_count++] = note->ref.attempt;
    note->must_swap = true;
    note->is_done = false;
}

void dm_registers_note_replied(struct dm_registers *registers, const struct dm_reg_request *request,
                               const struct dm_reg_reply *reply)
{
    struct dm_reg_task *task = request->name->under_way;

    if (!task)
        return;
    request->name->under_way = NULL;
    if (task->is_dropped) {
        dm_reg_task_finish_with(registers, task, DM_SAYS_NOTHING);
        return;
    }
    if (reply->outcome == DM_REG_DONE && request->is_swap)
        task->note->is_done = true;
    else if (reply->outcome == DM_REG_DONE)
        read_note(task->note, reply);
    else if (reply->outcome != DM_REG_CONFLICT) /* else it is read again at once */
        task->note->retry_ns = dm_clock_boot_ns() + REFUSED_NS;
}

/* ---- one step ---------------------------------------------------------------------------- */

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

/* The value is decoded: does the step, and sends the new value if there is one. */
static enum dm_reg_progress do_step(struct dm_registers *registers, struct dm_reg_task *task,
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
    dm_reg_errand_applied(&task->errand, &task->name->copy, result.is_changed, task->is_over);
    if (task->errand.want == DM_REG_ERRAND_SWAP) {
        if (!encode_next(registers, task->name, value, result.is_deleted))
            return dm_reg_task_refuse(registers, task, task->act == DM_REG_ACQUIRE ? DM_SAYS_FULL : DM_SAYS_NO_MEMORY,
                                      "the value of the name is too large for the store");
        send_swap(registers, task, &result);
        progress = DM_REG_TASK_WAITS;
    }
    return progress;
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
    if (task->act == DM_REG_FORCE && !begin_note(registers, task, &value)) {
        dm_reg_name_free(&value);
        return dm_reg_task_refuse(registers, task, DM_SAYS_NO_MEMORY, "out of memory");
    }
    if (task->note && !task->note->is_done) {
        dm_reg_name_free(&value);
        return send_note(registers, task);
    }
    if (task->act == DM_REG_ACT_INFO) {
        dm_registers_inform(registers, task, &value);
        progress = dm_reg_task_finish(registers, task);
    } else if (task->act == DM_REG_ACT_SLEEPERS) {
        progress = dm_conditions_count(registers, task, &value);
    } else {
        progress = do_step(registers, task, &value);
    }
    dm_reg_name_free(&value);
    return progress;
}

/* ---- settling ---------------------------------------------------------------------------- */

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

/* A session of ours was lost before the thread could enter: asks anew, with another session. */
enum dm_reg_progress dm_reg_task_begin_again(struct dm_reg_task *task)
{
    dm_reg_errand_init(&task->errand, &task->name->copy, task->errand.may_pause, true);
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
        dm_registers_push_renewal(registers, task->batch, task->index, task->attempt->number, task->asked_ns,
                                  task->answer.has_waiter);
    task->batch = NULL;
    return dm_reg_task_finish(registers, task);
}

/* D4: the hold is in the new data now, or it is lost. */
static enum dm_reg_progress settle_claim(struct dm_registers *registers, struct dm_reg_task *task)
{
    if (task->answer.verdict == DM_SAYS_OWNED)
        dm_reg_task_adopt_claimer(task);
    else
        dm_registers_tell(registers, &(struct dm_message){ .kind = DM_MESSAGE_LOST, .attempt = task->attempt->number });
    return dm_reg_task_finish(registers, task);
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

static enum dm_reg_progress settle(struct dm_registers *registers, struct dm_reg_task *task)
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

/* ---- running ----------------------------------------------------------------------------- */

/* A hold can be given back in the new data once it is there. */
static bool is_being_claimed(struct dm_registers *registers, uint64_t number)
{
    const struct dm_reg_attempt *attempt = dm_registers_attempt(registers, number);
    const struct dm_reg_task *task = attempt ? attempt->name->tasks : NULL;

    while (task && (task->attempt != attempt || task->act != DM_REG_CLAIM))
        task = task->next;
    return task != NULL;
}

static enum dm_reg_progress go_on(struct dm_registers *registers, struct dm_reg_task *task, int64_t *due_ns)
{
    if (!registers->is_ready || task->name->under_way)
        return DM_REG_TASK_WAITS;
    if (is_answered_by_session(registers, task))
        return DM_REG_TASK_IS_GONE;
    if (task->act == DM_REG_CLAIM && !dm_reg_attempt_is_certain(task->attempt)) /* D4: only a certain hold is claimed */
        return give_claim_up(registers, task);
    if (task->leaving && task->act == DM_REG_WAIT && is_being_claimed(registers, task->leaving))
        return DM_REG_TASK_WAITS;
    switch (dm_reg_errand_wants(&task->errand, dm_clock_boot_ns())) {
    case DM_REG_ERRAND_READ:
        return send_read(registers, task);
    case DM_REG_ERRAND_APPLY:
    case DM_REG_ERRAND_SWAP: /* it could not be sent */
        return apply(registers, task);
    case DM_REG_ERRAND_SETTLED:
        return settle(registers, task);
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

static void swap_is_done(struct dm_registers *registers, struct dm_reg_task *task)
{
    struct dm_reg_name *name = task->name;
    struct dm_reg_notice notices[sizeof name->own_notices / sizeof name->own_notices[0]];
    int count = name->own_notice_count;
    const struct dm_reg_reply copy = { .version = name->next_version,
                                       .value = name->next_value,
                                       .size = name->next_size };

    memcpy(notices, name->own_notices, sizeof notices);
    dm_reg_name_put_copy(registers, name, &copy);
    step_errand(registers, task, DM_REG_ERRAND_EV_DONE);
    for (int i = 0; i < count; i++)
        dm_registers_take_notice(registers, &notices[i]);
}

/* D4: a hold that may have been given back is not claimed in other data: somebody may have had the lock since. */
static void note_perhaps_left(struct dm_registers *registers, const struct dm_reg_task *task)
{
    struct dm_reg_attempt *leaving = dm_registers_attempt(registers, task->leaving);

    if (leaving && task->act == DM_REG_WAIT)
        leaving->may_have_left = true;
}

static void take_swap(struct dm_registers *registers, struct dm_reg_task *task, const struct dm_reg_reply *reply)
{
    switch (reply->outcome) {
    case DM_REG_DONE:
        swap_is_done(registers, task);
        return;
    case DM_REG_CONFLICT:
        if (reply->has_value)
            dm_reg_name_put_copy(registers, task->name, reply);
        step_errand(registers, task, reply->has_value ? DM_REG_ERRAND_EV_BROUGHT : DM_REG_ERRAND_EV_CONFLICT);
        return;
    case DM_REG_REFUSED:
        task->refusal = DM_SAYS_REFUSED;
        break;
    case DM_REG_TOO_LARGE:
        task->refusal = task->act == DM_REG_ACQUIRE ? DM_SAYS_FULL : DM_SAYS_NO_MEMORY;
        break;
    default:
        task->is_unanswered = true;
        note_perhaps_left(registers, task);
        step_errand(registers, task, DM_REG_ERRAND_EV_UNKNOWN);
        return;
    }
    dm_reg_errand_refused(&task->errand, dm_clock_boot_ns() + REFUSED_NS);
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
        dm_reg_errand_refused(&task->errand, dm_clock_boot_ns() + REFUSED_NS);
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

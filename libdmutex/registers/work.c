/* SPDX-License-Identifier: BSD-2-Clause */
#include "registers/work.h"

#include <stdio.h>
#include <string.h>

/* ---- entries ----------------------------------------------------------------------------- */

static enum dm_reg_place place_of(const struct dm_reg_name_value *value, int index)
{
    return index < value->hold_count ? DM_REG_HOLDS : index < dm_work_queue_end(value) ? DM_REG_WAITS : DM_REG_SLEEPS;
}

bool dm_work_is_same(const struct dm_reg_name_value *value, int index, const struct dm_reg_ref *ref)
{
    return value->entries[index].attempt == ref->attempt &&
           dm_reg_session_id_equals(dm_work_session(value, index), &ref->session);
}

enum dm_reg_place dm_reg_find(const struct dm_reg_name_value *value, const struct dm_reg_ref *ref, int *ret_index)
{
    for (int i = 0; i < dm_work_count(value); i++) {
        if (dm_work_is_same(value, i, ref) && !(value->entries[i].flags & DM_WORK_IS_GONE)) {
            *ret_index = i;
            return place_of(value, i);
        }
    }
    return DM_REG_NOWHERE;
}

void dm_work_count_taken(struct dm_work *work)
{
    work->taken = 0;
    for (int i = 0; i < work->value->hold_count; i++)
        work->taken += work->value->entries[i].weight;
}

struct dm_reg_entry *dm_work_insert(struct dm_work *work, int index)
{
    struct dm_reg_entry *at = work->value->entries + index;

    memmove(at + 1, at, (size_t)(dm_work_count(work->value) - index) * sizeof *at);
    work->ret->is_changed = true;
    return at;
}

void dm_work_remove_gone(struct dm_work *work)
{
    struct dm_reg_name_value *value = work->value;
    int kept[] = { [DM_REG_HOLDS] = 0, [DM_REG_WAITS] = 0, [DM_REG_SLEEPS] = 0 }, count = 0;

    for (int i = 0; i < dm_work_count(value); i++) {
        if (!(value->entries[i].flags & DM_WORK_IS_GONE)) {
            kept[place_of(value, i)]++;
            value->entries[count++] = value->entries[i];
        }
    }
    value->hold_count = kept[DM_REG_HOLDS];
    value->queue_count = kept[DM_REG_WAITS];
    value->sleeper_count = kept[DM_REG_SLEEPS];
    dm_work_count_taken(work);
}

/* ---- notices ----------------------------------------------------------------------------- */

struct dm_reg_notice *dm_work_tell(struct dm_work *work, int index, enum dm_reg_news news)
{
    struct dm_reg_result *ret = work->ret;
    bool is_caller = work->step->act != DM_REG_FORCE && dm_work_is_same(work->value, index, &work->step->me);

    if (is_caller || ret->notice_count == ret->notice_room)
        return &work->lost;
    ret->notices[ret->notice_count] = (struct dm_reg_notice){
        .news = news,
        .session = *dm_work_session(work->value, index),
        .attempt = work->value->entries[index].attempt,
    };
    return &ret->notices[ret->notice_count++];
}

void dm_work_tell_holders(struct dm_work *work, int hold_count)
{
    for (int i = 0; i < hold_count; i++) {
        if (work->value->entries[i].flags & DM_REG_TELLS)
            dm_work_tell(work, i, DM_REG_NEWS_WANTED);
    }
}

static uint64_t now_ms(const struct dm_reg_step *step)
{
    return step->clock_us > DM_TOKEN_EPOCH_US ? (uint64_t)(step->clock_us - DM_TOKEN_EPOCH_US) / 1000 : 0;
}

/* ---- ends -------------------------------------------------------------------------------- */

/* C3: the marks of the conditions count the signals that are owed to their next sleepers in this very step. */
void dm_work_leave(struct dm_work *work, int index)
{
    struct dm_reg_entry *entry = &work->value->entries[index];

    if (entry->flags & DM_REG_CARRIES)
        work->value->conditions[entry->condition].mark++;
    entry->flags |= DM_WORK_IS_GONE;
    work->ret->is_changed = true;
}

/* What sort of process this is, as far as the caller knows. */
static const char *label_of(const struct dm_work *work, const struct dm_reg_session_id *id)
{
    const struct dm_reg_step *step = work->step;
    int i = 0;

    if (memcmp(id->uuid, step->me.session.uuid, sizeof id->uuid) == 0)
        return step->label;
    while (i < step->dead_count && !dm_reg_session_id_equals(&step->dead[i], id))
        i++;
    return i < step->dead_count && step->dead_labels ? step->dead_labels[i] : NULL;
}

/* A hold ends.  Unless somebody holds after this step, people see it as the last one. */
static void end_with(struct dm_work *work, int index, unsigned how)
{
    const struct dm_reg_entry *entry = &work->value->entries[index];
    const char *label = label_of(work, dm_work_session(work->value, index));
    struct dm_reg_last *last = &work->value->last;
    uint64_t now = now_ms(work->step);

    dm_work_leave(work, index);
    *last = (struct dm_reg_last){ .is_known = true,
                                  .how = how,
                                  .thread = entry->thread,
                                  .since_ms = entry->since_ms,
                                  .held_ms = now > entry->since_ms && entry->since_ms ? now - entry->since_ms : 0 };
    if (work->step->act == DM_REG_RELEASE && work->step->held_ms > 0 &&
        dm_work_is_same(work->value, index, &work->step->me))
        last->held_ms = (uint64_t)work->step->held_ms;
    snprintf(last->label, sizeof last->label, "%s", label && label[0] ? label : "?");
}

/* N12: the swap that ends the hold notes the death. */
void dm_work_die(struct dm_work *work, int index, unsigned how)
{
    if (dm_work_is_whole(work->value, &work->value->entries[index]))
        work->value->health = DM_REG_OWNER_DIED;
    end_with(work, index, how);
}

void dm_work_orphan(struct dm_work *work, int index)
{
    if (index >= work->value->hold_count)
        dm_work_leave(work, index);
    else if (work->value->entries[index].flags & DM_REG_KEPT)
        end_with(work, index, DM_END_UNLOCKED);
    else
        dm_work_die(work, index, DM_END_DIED);
}

/* Nobody can hold it any more: everybody is sent away, and asks again. */
static void give_up_for_ever(struct dm_work *work)
{
    work->value->health = DM_REG_NOT_RECOVERABLE;
    for (int i = 0; i < dm_work_count(work->value); i++) {
        if (!(work->value->entries[i].flags & DM_WORK_IS_GONE))
            dm_work_tell(work, i, DM_REG_NEWS_ASK);
        dm_work_leave(work, i);
    }
}

/* C2: an unlock uses up the signal that the holder carries. */
void dm_work_end_hold(struct dm_work *work, int index, enum dm_end end)
{
    struct dm_reg_entry *entry = &work->value->entries[index];

    if (end == DM_END_DIED) {
        dm_work_die(work, index, DM_END_DIED);
        return;
    }
    entry->flags &= (uint8_t)~DM_REG_CARRIES;
    end_with(work, index, end);
    if (end == DM_END_NOT_RECOVERABLE && dm_work_is_whole(work->value, entry))
        give_up_for_ever(work);
}

bool dm_work_end_attempt(struct dm_work *work, const struct dm_reg_ref *ref, enum dm_end end)
{
    int index;
    enum dm_reg_place place = dm_reg_find(work->value, ref, &index);

    if (place == DM_REG_HOLDS)
        dm_work_end_hold(work, index, end);
    else if (place != DM_REG_NOWHERE)
        dm_work_leave(work, index);
    return place != DM_REG_NOWHERE;
}

/* ---- the queue --------------------------------------------------------------------------- */

uint64_t dm_work_next_arrival(struct dm_reg_name_value *value)
{
    if (value->arrival < DM_REG_NUMBER_LIMIT - 1)
        value->arrival++;
    return value->arrival;
}

/* The session of the caller, in the table; there is room for it. */
static uint16_t my_session(struct dm_work *work)
{
    struct dm_reg_name_value *value = work->value;
    int i = 0;

    while (i < value->session_count && !dm_reg_session_id_equals(&value->sessions[i].id, &work->step->me.session))
        i++;
    if (i == value->session_count)
        value->sessions[value->session_count++] = (struct dm_reg_table_session){ .id = work->step->me.session };
    return (uint16_t)i;
}

struct dm_reg_entry dm_work_my_entry(struct dm_work *work)
{
    const struct dm_reg_step *step = work->step;

    return (struct dm_reg_entry){
        .attempt = step->me.attempt,
        .thread = step->me.thread,
        .since_ms = now_ms(step),
        .weight = step->weight,
        .session = my_session(work),
        .flags = step->is_robust ? DM_REG_ROBUST : 0,
    };
}

/* N10: the queue is in the order of arrival, and who comes back has its old number. */
void dm_work_enqueue(struct dm_work *work)
{
    struct dm_reg_name_value *value = work->value;
    struct dm_reg_entry entry = dm_work_my_entry(work);
    uint64_t back = work->step->arrival;
    int index = dm_work_queue_end(value);

    if (back && back < DM_REG_NUMBER_LIMIT) {
        if (value->arrival < back)
            value->arrival = back;
        while (index > value->hold_count && value->entries[index - 1].arrival > back)
            index--;
        entry.arrival = back;
    } else {
        entry.arrival = dm_work_next_arrival(value);
    }
    if (work->step->mark != DM_REG_MARK_NONE)
        entry.flags |= DM_REG_TELLS;
    *dm_work_insert(work, index) = entry;
    value->queue_count++;
}

void dm_work_wake(struct dm_work *work, int index, bool is_signalled)
{
    struct dm_reg_name_value *value = work->value;
    struct dm_reg_entry entry = value->entries[index];
    int end = dm_work_queue_end(value);

    entry.arrival = dm_work_next_arrival(value);
    entry.since_ms = now_ms(work->step);
    entry.flags |= is_signalled ? DM_REG_CARRIES | DM_WORK_IS_MOVED : 0;
    memmove(value->entries + end + 1, value->entries + end, (size_t)(index - end) * sizeof entry);
    value->entries[end] = entry;
    value->queue_count++;
    value->sleeper_count--;
    work->ret->is_changed = true;
}

uint64_t dm_work_wake_some(struct dm_work *work, int condition, int most, uint64_t upto)
{
    struct dm_reg_name_value *value = work->value;
    uint64_t last = 0;

    for (int i = dm_work_queue_end(value); i < dm_work_count(value) && most > 0; i++) {
        if (value->entries[i].condition != condition || value->entries[i].arrival > upto)
            continue;
        last = value->entries[i].arrival;
        dm_work_wake(work, i, true);
        most--;
    }
    return last;
}

/* C3: signals whose carriers have left go to the next sleepers. */
static void pass_signals_on(struct dm_work *work)
{
    for (int i = 0; i < work->value->condition_count; i++) {
        dm_work_wake_some(work, i, (int)work->value->conditions[i].mark, UINT64_MAX);
        work->value->conditions[i].mark = 0;
    }
}

/* ---- grants ------------------------------------------------------------------------------ */

bool dm_work_fits(const struct dm_work *work, uint32_t weight)
{
    return work->taken + weight <= work->value->capacity && work->value->hold_count < DM_REG_HOLDS_MAX &&
           dm_work_has_tokens(work->value);
}

/* The head of the queue holds.  N12: a holder that is not robust, and has the whole, takes the data as they are. */
static void grant(struct dm_work *work)
{
    struct dm_reg_name_value *value = work->value;
    struct dm_reg_entry *head = &value->entries[value->hold_count];
    struct dm_reg_notice *notice;

    head->token = ++value->token;
    head->arrival = 0;
    head->since_ms = now_ms(work->step);
    head->flags &= (uint8_t)~DM_WORK_IS_MOVED;
    if (!(head->flags & DM_REG_ROBUST) && dm_work_is_whole(value, head))
        value->health = DM_REG_CLEAN;
    value->hold_count++;
    value->queue_count--;
    work->taken += head->weight;
    work->ret->is_changed = true;
    notice = dm_work_tell(work, value->hold_count - 1, DM_REG_NEWS_GRANTED);
    notice->token = head->token;
    notice->is_owner_dead = value->health == DM_REG_OWNER_DIED && head->flags & DM_REG_ROBUST;
    notice->has_waiter = value->queue_count > 0;
}

/*
 * N1: while the head of the queue fits, it holds, so no value shows a lock that is free beside a waiter.  Nobody passes
 * the head.  D1: in doubt nothing is granted.
 */
static void serve(struct dm_work *work)
{
    struct dm_reg_name_value *value = work->value;

    while (value->queue_count && !work->is_in_doubt && dm_work_fits(work, value->entries[value->hold_count].weight))
        grant(work);
}

/* ---- the normal form -------------------------------------------------------------------- */

int dm_work_normalize(struct dm_work *work)
{
    int holds;

    dm_work_remove_gone(work);
    pass_signals_on(work);
    holds = work->value->hold_count;
    serve(work);
    return holds;
}

void dm_work_tell_moved(struct dm_work *work)
{
    struct dm_reg_name_value *value = work->value;

    for (int i = value->hold_count; i < dm_work_queue_end(value); i++) {
        if (value->entries[i].flags & DM_WORK_IS_MOVED) {
            value->entries[i].flags &= (uint8_t)~DM_WORK_IS_MOVED;
            dm_work_tell(work, i, DM_REG_NEWS_SIGNALLED)->position = (uint64_t)(i - value->hold_count + 1);
        }
    }
}

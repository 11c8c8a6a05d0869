/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names and their data, for people.  A name's value has who holds, waits and sleeps; what sort of process that is, and
 * when it was last heard of, is in its session.  So a view lists some keys, reads these names in one go, and then in
 * another go the sessions that they name, each once.  Nothing is written, and nothing is concluded: a session that the
 * store says to be as old as its lease is shown as dead, and stays for the next locker to end.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "base/self.h"
#include "base/units.h"
#include "registers/keys.h"
#include "registers/store_parts.h"
#include "store/calls.h"

/* How many names are read at once; their sessions may be a hundred times as many. */
#define NAMES_AT_ONCE 50

/* ---- a session ---------------------------------------------------------------------------- */

/* A process, as its session shows it. */
struct process {
    struct dm_reg_session_id id;
    bool is_known;  /* else the store has not said anything, and nothing below is set */
    bool is_over;   /* dead, absent, or not heard of for a lease */
    int64_t age_ms; /* since its last beat; -1: not known */
    uint32_t pid;
    char host[DM_HOST_ROOM], program[DM_PROGRAM_ROOM];
};

static void read_label(const char *label, uint32_t *ret_pid, char ret_host[DM_HOST_ROOM],
                       char ret_program[DM_PROGRAM_ROOM])
{
    sscanf(label, "%" SCNu32 " %64s %32s", ret_pid, ret_host, ret_program);
}

/* A session of which nothing of ours was read is neither dead nor alive.  room: a value is too large for a stack. */
static void take_session(struct process *process, const struct dm_reg_looked *looked, struct dm_reg_session_value *room)
{
    const char *reason;

    if (!looked->is_read)
        return; /* our own */
    process->age_ms = looked->age_ms;
    process->is_known = process->is_over = looked->size == 0;
    if (looked->size == 0 || dm_reg_session_decode(looked->value, looked->size, room, &reason) != 0)
        return;
    process->is_known = true;
    process->is_over = room->is_dead || looked->age_ms >= (int64_t)process->id.lease_ms;
    read_label(room->label, &process->pid, process->host, process->program);
}

/* A session of this very process need not be read. */
static bool take_own(const struct dm_registers *registers, struct process *process)
{
    const struct dm_reg_own *own = registers->owns;

    while (own && !dm_reg_session_id_equals(&own->session.id, &process->id))
        own = own->next;
    if (!own || own->session.phase > DM_REG_SESSION_ENDING)
        return false;
    process->is_known = true;
    process->age_ms = (dm_clock_boot_ns() - own->session.proved_ns) / DM_NS_PER_MS;
    read_label(registers->ident->label, &process->pid, process->host, process->program);
    return true;
}

/* ---- a name ------------------------------------------------------------------------------- */

/* What the store knows when the data are read. */
struct moment {
    int64_t now_ms;    /* since 2020 */
    int64_t quiet_ms;  /* for how long the store has had its data (D2) */
    uint64_t identity; /* of the data */
};

static struct moment moment_of(const struct dm_registers *registers)
{
    int64_t seen_ms = (dm_clock_boot_ns() - registers->mark.since_ns) / DM_NS_PER_MS;

    return (struct moment){ .now_ms = (dm_registers_wall_us(registers) - DM_TOKEN_EPOCH_US) / 1000,
                            .quiet_ms = dm_max64((int64_t)dm_reg_mark_quiet_ms(&registers->mark), seen_ms),
                            .identity = registers->identity_number };
}

static int64_t since_ms(const struct moment *moment, uint64_t then_ms)
{
    return then_ms ? dm_max64(0, moment->now_ms - (int64_t)then_ms) : 0;
}

/* D2: for how long nothing is granted, because data may be missing. */
static int64_t grace_ms(const struct moment *moment, const struct dm_reg_name_value *value, uint32_t lease_ms)
{
    int64_t needed_ms = lease_ms;

    if (dm_reg_is_settled(value, moment->identity))
        return 0;
    for (int i = 0; i < value->session_count; i++)
        needed_ms = dm_max64(needed_ms, value->sessions[i].id.lease_ms);
    return dm_max64(0, needed_ms - moment->quiet_ms);
}

/* The session of whoever holds, if the value is believed (D1).  NULL: nobody. */
static const struct dm_reg_session_id *holder_of(const struct moment *moment, const struct dm_reg_name_value *value)
{
    bool is_held = value->hold_count > 0 && dm_reg_is_settled(value, moment->identity);

    return is_held ? &value->sessions[value->entries[0].session].id : NULL;
}

static void fill_holder(const struct moment *moment, const struct dm_reg_entry *hold, const struct process *holder,
                        struct dm_info *info)
{
    dmutex_info_t *shown = &info->shown;

    shown->locked = 1;
    shown->hold_count = 1; /* only its process knows the depth */
    shown->thread = dm_self_tid(hold->thread);
    shown->token = hold->token;
    shown->remaining_ms = (int64_t)holder->id.lease_ms - dm_max64(0, holder->age_ms);
    shown->pid = holder->pid;
    dm_reg_session_uuid(&holder->id, shown->owner);
    snprintf(shown->host, sizeof shown->host, "%s", holder->host);
    snprintf(shown->program, sizeof shown->program, "%s", holder->program);
    info->held_ms = since_ms(moment, hold->since_ms);
}

/* `holder` NULL: nobody holds.  One that is over holds no more, and has died unless nobody was inside. */
static void fill_info(const struct moment *moment, const struct dm_reg_name_value *value, const struct process *holder,
                      uint32_t lease_ms, struct dm_info *ret_info)
{
    memset(ret_info, 0, sizeof *ret_info);
    ret_info->shown.struct_size = sizeof ret_info->shown;
    ret_info->shown.token = value->token;
    ret_info->shown.waiters = (uint32_t)value->queue_count;
    ret_info->shown.health = (uint32_t)value->health;
    ret_info->grace_ms = grace_ms(moment, value, lease_ms);
    if (holder && !holder->is_over)
        fill_holder(moment, &value->entries[0], holder, ret_info);
    else if (holder && !(value->entries[0].flags & DM_REG_KEPT))
        ret_info->shown.health = DM_REG_OWNER_DIED;
}

/* A holder that is over held until its lease ended: it was heard of a lease before that, at the latest. */
static struct dm_last last_of(const struct moment *moment, const struct dm_reg_name_value *value,
                              const struct process *holder)
{
    struct dm_last last = { 0 };
    uint64_t from_ms = value->last.since_ms;

    if (holder) {
        const struct dm_reg_entry *hold = &value->entries[0];

        from_ms = hold->since_ms;
        last = (struct dm_last){ .is_known = holder->program[0],
                                 .thread = dm_self_tid(hold->thread),
                                 .pid = holder->pid,
                                 .how = hold->flags & DM_REG_KEPT ? DM_END_UNLOCKED : DM_END_DIED };
        snprintf(last.host, sizeof last.host, "%s", holder->host);
        snprintf(last.program, sizeof last.program, "%s", holder->program);
        last.ago_ms = dm_max64(0, holder->age_ms - (int64_t)holder->id.lease_ms);
        last.held_ms = dm_max64(0, since_ms(moment, from_ms) - last.ago_ms);
    } else if (value->last.is_known) {
        last.thread = dm_self_tid(value->last.thread);
        last.how = value->last.how;
        last.held_ms = (int64_t)value->last.held_ms;
        last.ago_ms = dm_max64(0, since_ms(moment, from_ms) - last.held_ms);
        read_label(value->last.label, &last.pid, last.host, last.program);
        last.is_known = last.program[0];
    }
    last.from_us = DM_TOKEN_EPOCH_US + (int64_t)from_ms * 1000;
    return last;
}

/* ---- a view ------------------------------------------------------------------------------- */

/* The names of one go, and the processes that they name, in the order of their ids. */
struct visit {
    struct dm_registers *registers;
    const struct dm_view *view;
    const struct dm_deadline *deadline;
    char *ret_reason;
    struct moment moment; /* of the last read */
    int count;
    struct {
        char key[DM_REG_KEY_MAX + 1];
        struct dm_reg_name_value value;
        const char *fault; /* NULL: the value is ours */
    } names[NAMES_AT_ONCE];
    struct process *processes;
    int process_count;
    struct dm_seen_waiter waiters[DM_SEEN_WAITERS];
    struct dm_reg_session_value session;
};

static enum dm_verdict fail_for_memory(struct visit *visit)
{
    snprintf(visit->ret_reason, DM_REASON_ROOM, "out of memory");
    return DM_SAYS_REFUSED;
}

/*
 * Begins a look as soon as the store can be asked.  DONE: the caller holds the lock, sends what it wants to know, and
 * calls await().
 */
static enum dm_verdict begin(struct visit *visit, int count, struct dm_reg_look **ret_look)
{
    struct dm_registers *registers = visit->registers;
    struct dm_reg_look *look = dm_reg_look_new(count);

    if (!look)
        return fail_for_memory(visit);
    look->asker = dm_self_get();
    dm_mutex_lock(&registers->lock);
    while (!registers->is_ready) {
        dm_mutex_unlock(&registers->lock);
        if (!dm_store_await_able(&registers->store, NULL, DM_ASKS, visit->deadline)) {
            dm_reg_look_free(look);
            dm_store_reason(&registers->store, NULL, DM_ASKS, visit->ret_reason);
            return dm_deadline_left_ns(visit->deadline) > 0 ? DM_SAYS_REFUSED : DM_SAYS_NOTHING;
        }
        dm_mutex_lock(&registers->lock);
    }
    dm_registers_note_use(registers);
    look->left = count;
    *ret_look = look;
    return DM_SAYS_DONE;
}

/*
 * Sends what was asked, waits for the answers, and gives the lock back.  DONE: the look is complete and the caller's;
 * else it is freed.
 */
static enum dm_verdict await(struct visit *visit, struct dm_reg_look *look)
{
    struct dm_registers *registers = visit->registers;
    enum dm_verdict verdict = DM_SAYS_DONE;

    dm_registers_run(registers);
    while (look->left > 0 && dm_deadline_left_ns(visit->deadline) > 0) {
        dm_mutex_unlock(&registers->lock);
        dm_store_sleep(&registers->store, NULL, DM_ASKS, visit->deadline, PTHREAD_CANCEL_DISABLE);
        dm_mutex_lock(&registers->lock);
    }
    visit->moment = moment_of(registers);
    look->is_left = look->left > 0;
    if (look->is_left || look->has_failed)
        verdict = look->is_refused ? DM_SAYS_REFUSED : DM_SAYS_NOTHING;
    if (verdict != DM_SAYS_DONE && look->reason[0])
        snprintf(visit->ret_reason, DM_REASON_ROOM, "%s", look->reason);
    if (verdict != DM_SAYS_DONE && !look->is_left)
        dm_reg_look_free(look);
    dm_mutex_unlock(&registers->lock);
    if (verdict == DM_SAYS_NOTHING && !visit->ret_reason[0])
        dm_store_reason(&registers->store, NULL, DM_ASKS, visit->ret_reason);
    return verdict;
}

/* ---- the names of a view ------------------------------------------------------------------- */

static void take_name(struct visit *visit, int index, const struct dm_reg_looked *looked)
{
    const char *reason = "out of memory";
    int result = dm_reg_name_decode(&visit->names[index].value, looked->value, looked->size, &reason);

    visit->names[index].fault = result ? reason : NULL;
}

static enum dm_verdict read_names(struct visit *visit)
{
    struct dm_reg_look *look;
    enum dm_verdict verdict = begin(visit, visit->count, &look);

    if (verdict != DM_SAYS_DONE)
        return verdict;
    for (int i = 0; i < visit->count; i++)
        dm_reg_look_read(visit->registers, look, i, visit->names[i].key);
    verdict = await(visit, look);
    if (verdict != DM_SAYS_DONE)
        return verdict;
    for (int i = 0; i < visit->count; i++)
        take_name(visit, i, &look->items[i]);
    dm_reg_look_free(look);
    return DM_SAYS_DONE;
}

/* ---- the sessions of a view ---------------------------------------------------------------- */

static int compare(const void *one, const void *other)
{
    const struct dm_reg_session_id *first = one, *second = other;
    int order = memcmp(first->uuid, second->uuid, sizeof first->uuid);

    if (order == 0)
        order = first->serial < second->serial ? -1 : first->serial > second->serial;
    if (order == 0)
        order = first->lease_ms < second->lease_ms ? -1 : first->lease_ms > second->lease_ms;
    return order;
}

static int entry_count(const struct dm_reg_name_value *value)
{
    return value->hold_count + value->queue_count + value->sleeper_count;
}

/* The attempts that are shown: who holds, the first of the queue, and sleepers. */
static bool is_shown(const struct visit *visit, const struct dm_reg_name_value *value, int index)
{
    return (index == 0 && value->hold_count > 0) ||
           (index >= value->hold_count && index < value->hold_count + visit->view->waiters) ||
           (index >= value->hold_count + value->queue_count && visit->view->waiters > 0);
}

static void collect_of(struct visit *visit, struct dm_reg_name_value *value)
{
    for (int i = 0; i < value->session_count; i++)
        value->sessions[i].mark = 0;
    for (int i = 0; i < entry_count(value); i++)
        value->sessions[value->entries[i].session].mark |= is_shown(visit, value, i);
    for (int i = 0; i < value->session_count; i++) {
        if (value->sessions[i].mark)
            visit->processes[visit->process_count++] = (struct process){ .id = value->sessions[i].id, .age_ms = -1 };
    }
}

static bool collect_processes(struct visit *visit)
{
    int most = 0, count = 0;

    for (int i = 0; i < visit->count; i++)
        most += visit->names[i].value.session_count;
    visit->processes = calloc((size_t)most + 1, sizeof visit->processes[0]);
    if (!visit->processes)
        return false;
    for (int i = 0; i < visit->count; i++)
        collect_of(visit, &visit->names[i].value);
    qsort(visit->processes, (size_t)visit->process_count, sizeof visit->processes[0], compare);
    for (int i = 0; i < visit->process_count; i++) {
        if (i == 0 || compare(&visit->processes[i], &visit->processes[count - 1]) != 0)
            visit->processes[count++] = visit->processes[i];
    }
    visit->process_count = count;
    return true;
}

static const struct process *process_of(const struct visit *visit, const struct dm_reg_session_id *id)
{
    return bsearch(id, visit->processes, (size_t)visit->process_count, sizeof visit->processes[0], compare);
}

static enum dm_verdict read_sessions(struct visit *visit)
{
    char key[DM_REG_SESSION_KEY_ROOM];
    struct dm_reg_look *look;
    enum dm_verdict verdict;

    if (!collect_processes(visit))
        return fail_for_memory(visit);
    verdict = visit->process_count ? begin(visit, visit->process_count, &look) : DM_SAYS_DONE;
    if (verdict != DM_SAYS_DONE || visit->process_count == 0)
        return verdict;
    for (int i = 0; i < visit->process_count; i++) {
        if (take_own(visit->registers, &visit->processes[i])) {
            look->left--;
            continue;
        }
        dm_reg_session_key(&visit->processes[i].id, key);
        dm_reg_look_read(visit->registers, look, i, key);
    }
    verdict = await(visit, look);
    if (verdict != DM_SAYS_DONE)
        return verdict;
    for (int i = 0; i < visit->process_count; i++)
        take_session(&visit->processes[i], &look->items[i], &visit->session);
    dm_reg_look_free(look);
    return DM_SAYS_DONE;
}

/* ---- telling ------------------------------------------------------------------------------- */

static void add_waiter(struct visit *visit, const struct dm_reg_name_value *value, int index, struct dm_seen *seen)
{
    const struct dm_reg_entry *entry = &value->entries[index];
    const struct process *process = process_of(visit, &value->sessions[entry->session].id);
    struct dm_seen_waiter *waiter = &visit->waiters[seen->waiter_count];

    if (!process || seen->waiter_count >= dm_min64(visit->view->waiters, DM_SEEN_WAITERS))
        return;
    *waiter = (struct dm_seen_waiter){ .thread = dm_self_tid(entry->thread),
                                       .pid = process->pid,
                                       .lease_ms = process->id.lease_ms,
                                       .waited_ms = since_ms(&visit->moment, entry->since_ms),
                                       .silent_ms = dm_max64(0, process->age_ms) };
    dm_reg_session_uuid(&process->id, waiter->owner);
    snprintf(waiter->host, sizeof waiter->host, "%s", process->host);
    snprintf(waiter->program, sizeof waiter->program, "%s", process->program);
    seen->waiter_count++;
}

static void tell_mutex(struct visit *visit, const char *name, const struct dm_reg_name_value *value)
{
    const struct dm_reg_session_id *id = holder_of(&visit->moment, value);
    const struct process *holder = id ? process_of(visit, id) : NULL;
    struct dm_seen seen = { .key = name, .mutex = "", .waiters = visit->waiters };

    fill_info(&visit->moment, value, holder, DM_LEASE_DEFAULT_MS, &seen.info);
    if (seen.info.shown.locked) {
        seen.lease_ms = holder->id.lease_ms;
        seen.is_kept = value->entries[0].flags & DM_REG_KEPT;
    } else {
        seen.last = last_of(&visit->moment, value, holder);
    }
    for (int i = 0; i < value->queue_count; i++)
        add_waiter(visit, value, value->hold_count + i, &seen);
    visit->view->handler(visit->view->user, &seen);
}

/* `value` NULL: nobody waits on it. */
static void tell_condition(struct visit *visit, const char *name, const char *mutex,
                           const struct dm_reg_name_value *value, int condition)
{
    struct dm_seen seen = { .key = name, .mutex = mutex, .waiters = visit->waiters };

    for (int i = value ? value->hold_count + value->queue_count : 0; value && i < entry_count(value); i++) {
        if (value->entries[i].condition != condition)
            continue;
        seen.info.shown.waiters++;
        add_waiter(visit, value, i, &seen);
    }
    if (seen.info.shown.waiters || visit->view->key)
        visit->view->handler(visit->view->user, &seen);
}

/* The conditions that are waited on. */
static void tell_conditions(struct visit *visit, const char *mutex, const struct dm_reg_name_value *value)
{
    char name[DM_REG_NAME_ROOM];

    for (int i = 0; i < value->condition_count; i++) {
        if (dm_reg_key_read(value->conditions[i].name, name))
            tell_condition(visit, name, mutex, value, i);
    }
}

/* A name whose key was cut is shown by its beginning. */
static void tell_name(struct visit *visit, int index)
{
    const struct dm_reg_name_value *value = &visit->names[index].value;
    char name[DM_REG_NAME_ROOM];
    bool is_whole = dm_reg_key_read(visit->names[index].key, name);
    const struct dm_seen faulty = { .key = name,
                                    .fault = is_whole ? visit->names[index].fault
                                                      : "the store has only the beginning of so long a name" };

    if (faulty.fault && name[0])
        visit->view->handler(visit->view->user, &faulty);
    if (faulty.fault || dm_reg_version_is_absent(&value->version))
        return; /* it has gone since it was listed */
    tell_mutex(visit, name, value);
    tell_conditions(visit, name, value);
}

/* ---- which names --------------------------------------------------------------------------- */

static enum dm_verdict look_at_names(struct visit *visit)
{
    enum dm_verdict verdict = visit->count ? read_names(visit) : DM_SAYS_DONE;

    return verdict == DM_SAYS_DONE && visit->count ? read_sessions(visit) : verdict;
}

static void add_name(struct visit *visit, const char *key)
{
    dm_reg_name_init(&visit->names[visit->count].value);
    snprintf(visit->names[visit->count++].key, DM_REG_KEY_MAX + 1, "%s", key);
}

static enum dm_verdict view_mutex(struct visit *visit)
{
    struct dm_seen faulty = { .key = visit->view->key };
    char key[DM_REG_KEY_MAX + 1];
    enum dm_verdict verdict;

    dm_reg_key_write(visit->view->key, key);
    add_name(visit, key);
    verdict = look_at_names(visit);
    faulty.fault = visit->names[0].fault;
    if (verdict == DM_SAYS_DONE && faulty.fault)
        visit->view->handler(visit->view->user, &faulty);
    else if (verdict == DM_SAYS_DONE)
        tell_mutex(visit, visit->view->key, &visit->names[0].value);
    return verdict;
}

/* The mutex to which the condition is bound has its waiters.  *ret_mutex is "" if it is bound to none. */
static enum dm_verdict read_binding(struct visit *visit, const char *key, char ret_mutex[DM_REG_KEY_MAX + 1],
                                    const char **ret_fault)
{
    struct dm_reg_binding_value binding;
    struct dm_reg_look *look;
    enum dm_verdict verdict = begin(visit, 1, &look);

    if (verdict != DM_SAYS_DONE)
        return verdict;
    dm_reg_look_read(visit->registers, look, 0, key);
    verdict = await(visit, look);
    if (verdict != DM_SAYS_DONE)
        return verdict;
    ret_mutex[0] = '\0';
    if (look->items[0].size &&
        dm_reg_binding_decode(look->items[0].value, look->items[0].size, &binding, ret_fault) == 0)
        snprintf(ret_mutex, DM_REG_KEY_MAX + 1, "%s", binding.mutex);
    dm_reg_look_free(look);
    return DM_SAYS_DONE;
}

static enum dm_verdict view_condition(struct visit *visit)
{
    char key[DM_REG_KEY_MAX + 1], mutex_key[DM_REG_KEY_MAX + 1], mutex[DM_REG_KEY_MAX + 1];
    const struct dm_reg_name_value *value = &visit->names[0].value;
    struct dm_seen faulty = { .key = visit->view->key };
    enum dm_verdict verdict;
    int condition = 0;

    dm_reg_key_write(visit->view->key, key);
    verdict = read_binding(visit, key, mutex, &faulty.fault);
    if (verdict != DM_SAYS_DONE)
        return verdict;
    if (mutex[0]) {
        dm_reg_key_write(mutex, mutex_key);
        add_name(visit, mutex_key);
        verdict = look_at_names(visit);
        faulty.fault = visit->names[0].fault;
    }
    if (verdict == DM_SAYS_DONE && faulty.fault)
        visit->view->handler(visit->view->user, &faulty);
    if (verdict != DM_SAYS_DONE || faulty.fault)
        return verdict;
    while (condition < value->condition_count && strcmp(value->conditions[condition].name, key) != 0)
        condition++;
    tell_condition(visit, visit->view->key, mutex, condition < value->condition_count ? value : NULL, condition);
    return DM_SAYS_DONE;
}

/* ---- all names ------------------------------------------------------------------------------ */

/* Where a series of calls is: all names with a prefix, and then all with the next. */
struct row {
    char prefixes[2][DM_REG_KEY_MAX + 1]; /* the second "": there is none */
    bool is_second;
    char after[DM_REG_KEY_MAX + 1];
};

/* A group is the mutex of its own name, and all below; as a prefix, a whole key and what begins with it and a slash. */
static struct row *make_row(const struct dm_view *view)
{
    struct row *row = calloc(1, sizeof *row);
    size_t length;

    if (!row)
        return NULL;
    if (!view->group) {
        snprintf(row->prefixes[0], sizeof row->prefixes[0], "n/");
        snprintf(row->prefixes[1], sizeof row->prefixes[1], "a/");
        return row;
    }
    dm_reg_key_write(view->group, row->prefixes[0]);
    length = strlen(row->prefixes[0]);
    if (view->group[0] == 'n' && length < DM_REG_KEY_MAX)
        snprintf(row->prefixes[1], sizeof row->prefixes[1], "%.249s/", row->prefixes[0]);
    return row;
}

static struct row *row_of(struct dm_view *view)
{
    if (!view->row)
        view->row = make_row(view);
    view->free_row = free;
    return view->row;
}

/* The next keys.  A group's own key is no prefix, and needs no list. */
static enum dm_verdict list_names(struct visit *visit, const struct row *row, bool *ret_is_last)
{
    const char *prefix = row->prefixes[row->is_second];
    struct dm_reg_look *look;
    enum dm_verdict verdict;

    *ret_is_last = true;
    if (visit->view->group && !row->is_second) {
        add_name(visit, prefix);
        return DM_SAYS_DONE;
    }
    verdict = begin(visit, 0, &look);
    if (verdict != DM_SAYS_DONE)
        return verdict;
    dm_reg_look_list(visit->registers, look, prefix, row->after, NAMES_AT_ONCE);
    verdict = await(visit, look);
    if (verdict != DM_SAYS_DONE)
        return verdict;
    for (int i = 0; i < look->key_count && i < NAMES_AT_ONCE; i++)
        add_name(visit, look->keys[i]);
    *ret_is_last = look->is_last || look->key_count == 0;
    dm_reg_look_free(look);
    return DM_SAYS_DONE;
}

static enum dm_verdict view_some(struct visit *visit, struct dm_view *view)
{
    struct row *row = row_of(view);
    enum dm_verdict verdict;
    bool is_last;

    if (!visit->registers->driver->can.has_lists) {
        snprintf(visit->ret_reason, DM_REASON_ROOM, "this server cannot list its locks: ask for one by its name");
        return DM_SAYS_REFUSED;
    }
    if (!row)
        return fail_for_memory(visit);
    verdict = list_names(visit, row, &is_last);
    if (verdict == DM_SAYS_DONE)
        verdict = look_at_names(visit);
    if (verdict != DM_SAYS_DONE)
        return verdict;
    for (int i = 0; i < visit->count; i++)
        tell_name(visit, i);
    view->cursor = !is_last || (!row->is_second && row->prefixes[1][0]);
    snprintf(row->after, sizeof row->after, "%s", is_last ? "" : visit->names[visit->count - 1].key);
    row->is_second = row->is_second || is_last;
    return DM_SAYS_DONE;
}

static struct visit *new_visit(struct dm_registers *registers, const struct dm_view *view,
                               const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    struct visit *visit = calloc(1, sizeof *visit);

    if (!visit) {
        snprintf(ret_reason, DM_REASON_ROOM, "out of memory");
        return NULL;
    }
    visit->registers = registers;
    visit->view = view;
    visit->deadline = deadline;
    visit->ret_reason = ret_reason;
    return visit;
}

static void free_visit(struct visit *visit)
{
    for (int i = 0; i < visit->count; i++)
        dm_reg_name_free(&visit->names[i].value);
    free(visit->processes);
    free(visit);
}

enum dm_verdict dm_registers_view(struct dm_registers *registers, struct dm_view *view,
                                  const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    struct visit *visit = new_visit(registers, view, deadline, ret_reason);
    enum dm_verdict verdict;

    if (!visit)
        return DM_SAYS_REFUSED;
    if (!view->key)
        verdict = view_some(visit, view);
    else if (view->key[0] == 'c' || view->key[0] == 'd')
        verdict = view_condition(visit);
    else
        verdict = view_mutex(visit);
    free_visit(visit);
    return verdict;
}

/* ---- INFO --------------------------------------------------------------------------------- */

static uint64_t position_of(const struct dm_registers *registers, const struct dm_reg_name_value *value,
                            uint64_t attempt)
{
    for (int i = 0; i < value->queue_count && attempt; i++) {
        const struct dm_reg_entry *entry = &value->entries[value->hold_count + i];

        if (entry->attempt == attempt &&
            memcmp(value->sessions[entry->session].id.uuid, registers->uuid, sizeof registers->uuid) == 0)
            return (uint64_t)i + 1;
    }
    return 0;
}

static void take_info(const struct visit *visit, const struct dm_question *question)
{
    const struct dm_reg_name_value *value = &visit->names[0].value;
    const struct dm_reg_session_id *holder = holder_of(&visit->moment, value);
    struct dm_info *info = &question->ret_more->info;

    fill_info(&visit->moment, value, holder ? process_of(visit, holder) : NULL, question->lease_ms, info);
    info->position = position_of(visit->registers, value, question->attempt);
}

enum dm_verdict dm_registers_inform(struct dm_registers *registers, const struct dm_question *question,
                                    const struct dm_deadline *deadline, char ret_reason[DM_REASON_ROOM])
{
    const struct dm_view view = { .waiters = 0 };
    struct visit *visit = new_visit(registers, &view, deadline, ret_reason);
    enum dm_verdict verdict;

    if (!visit)
        return DM_SAYS_REFUSED;
    add_name(visit, question->place->key);
    verdict = look_at_names(visit);
    if (verdict == DM_SAYS_DONE && visit->names[0].fault) {
        snprintf(ret_reason, DM_REASON_ROOM, "the value of %.200s is not ours: %.90s", question->place->key,
                 visit->names[0].fault);
        verdict = DM_SAYS_REFUSED;
    } else if (verdict == DM_SAYS_DONE) {
        take_info(visit, question);
    }
    free_visit(visit);
    return verdict;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conditions.  Who sleeps on one is in the value of the mutex; which mutex that is, is the condition's own value, the
 * binding.  So a question about a condition begins as a task of the condition, which reads the binding, and goes on as
 * a task of the mutex (C5).
 *
 * A wait reads the binding before it sleeps, and each poll that the process asks for compares its version.  If it has
 * changed, a signal may have gone to another mutex meanwhile: the sleeper wakes up without one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "base/units.h"
#include "registers/keys.h"
#include "registers/store_parts.h"

/* Whether somebody who sleeps lives is looked at again after this part of his lease, and no sooner than that. */
#define LOOK_PART 20
#define LOOK_MIN_NS (10 * DM_NS_PER_MS)

bool dm_conditions_is_task(const struct dm_reg_task *task)
{
    return task->act == DM_REG_ACT_FIND || task->act == DM_REG_ACT_BIND || task->act == DM_REG_ACT_UNBIND;
}

/* ---- the binding ------------------------------------------------------------------------- */

/* The key of a mutex in the registry. */
static bool is_mutex(const char *mutex)
{
    return (mutex[0] == 'n' || mutex[0] == 'a') && mutex[1] && strlen(mutex) < DM_MUTEX_KEY_ROOM;
}

/* False, with a reason: the value is not ours.  "" if the condition is not bound. */
static bool read_mutex(const struct dm_reg_name *condition, char ret_mutex[DM_REG_KEY_MAX + 1], const char **ret_reason)
{
    struct dm_reg_binding_value value = { .mutex = "" };

    *ret_reason = "the binding of the condition names no mutex; delete its value in the store";
    if (condition->size && dm_reg_binding_decode(condition->value, condition->size, &value, ret_reason))
        return false;
    memcpy(ret_mutex, value.mutex, sizeof value.mutex);
    return !condition->size || is_mutex(value.mutex);
}

static struct dm_reg_name *mutex_of(struct dm_registers *registers, const char *mutex)
{
    char key[DM_REG_KEY_MAX + 1];

    dm_reg_key_write(mutex, key);
    return dm_registers_name(registers, key);
}

/* Swaps the binding; mutex NULL: deletes it. */
static enum dm_reg_progress write_binding(struct dm_registers *registers, struct dm_reg_task *task, const char *mutex)
{
    struct dm_reg_name *condition = task->name;
    const struct dm_reg_request request = { .asked = DM_REG_ASKED_NAME, .is_swap = true, .name = condition };
    struct dm_reg_item item = { .key = condition->key, .version = condition->version };
    struct dm_reg_binding_value value = { .version = dm_reg_writer_next(&registers->writer) };

    free(condition->next_value);
    condition->next_value = mutex ? malloc(DM_REG_SMALL_MAX) : NULL;
    condition->next_size = condition->own_notice_count = 0;
    memset(&condition->next_version, 0, sizeof condition->next_version);
    if (mutex && !condition->next_value)
        return dm_reg_task_refuse(registers, task, DM_SAYS_NO_MEMORY, "out of memory");
    if (mutex) {
        snprintf(value.mutex, sizeof value.mutex, "%s", mutex);
        condition->next_version = value.version;
        condition->next_size = dm_reg_binding_encode(&value, condition->next_value);
    }
    item.value = condition->next_value;
    item.size = condition->next_size;
    dm_reg_errand_applied(&task->errand, &condition->copy, true, false);
    if (dm_registers_send(registers, &request, &item)) {
        dm_reg_errand_send(&task->errand);
        condition->under_way = task;
    }
    return DM_REG_TASK_WAITS;
}

/* ---- sleepers ---------------------------------------------------------------------------- */

enum life { DIES, PERHAPS, LIVES };

/*
 * A session of others lives if it has changed since we began to look, or if the store says that its last beat is
 * younger than its lease.
 */
static enum life life_of(struct dm_registers *registers, const struct dm_reg_session_id *id, int64_t began_ns)
{
    const struct dm_reg_watched *watched;

    if (dm_registers_is_our_living(registers, id))
        return LIVES;
    watched = dm_reg_watch_add(&registers->watch, id, dm_clock_boot_ns());
    if (watched && watched->is_dead)
        return DIES;
    if (watched &&
        (watched->changed_ns > began_ns || (watched->young_ns > began_ns && registers->driver->can.has_ages)))
        return LIVES;
    return PERHAPS;
}

/* An answer to whoever counts: a BIND, or the process that destroys the condition. */
static enum dm_reg_progress end_count(struct dm_registers *registers, struct dm_reg_task *task, unsigned sleepers)
{
    if (task->binder) {
        task->binder->bind->sleepers = sleepers;
        registers->has_moved = true; /* the asker goes on */
        return dm_reg_task_finish(registers, task);
    }
    if (sleepers)
        return dm_reg_task_finish_with(registers, task, DM_SAYS_BUSY);
    if (task->is_anonymous)
        return dm_reg_task_move(registers, task, task->condition, DM_REG_ACT_UNBIND);
    return dm_reg_task_finish_with(registers, task, DM_SAYS_DONE);
}

enum dm_reg_progress dm_conditions_count(struct dm_registers *registers, struct dm_reg_task *task,
                                         const struct dm_reg_name_value *value)
{
    int first = value->hold_count + value->queue_count, end = first + value->sleeper_count;
    int64_t look_ns = DM_NEVER;

    for (int i = first; i < end; i++) {
        const struct dm_reg_entry *entry = &value->entries[i];
        const struct dm_reg_session_id *id = &value->sessions[entry->session].id;
        enum life life = DIES;

        if (strcmp(value->conditions[entry->condition].name, task->condition->key) == 0 &&
            id->identity == registers->identity_number) /* D6: nobody comes back from other data */
            life = life_of(registers, id, task->began_ns);
        if (life == LIVES)
            return end_count(registers, task, 1);
        if (life == PERHAPS)
            look_ns = dm_min64(look_ns, dm_max64(id->lease_ms * DM_NS_PER_MS / LOOK_PART, LOOK_MIN_NS));
    }
    if (look_ns == DM_NEVER)
        return end_count(registers, task, 0);
    dm_reg_errand_refused(&task->errand, dm_clock_boot_ns() + look_ns); /* reads again then */
    return DM_REG_TASK_WAITS;
}

/* ---- finding ----------------------------------------------------------------------------- */

/* A poll of a sleeper. */
static enum dm_reg_act act_of_poll(const struct dm_reg_task *task)
{
    bool is_same = dm_reg_version_equals(&task->name->version, &task->attempt->bound);

    return is_same ? DM_REG_SERVE : DM_REG_COND_CANCEL;
}

static enum dm_reg_progress find(struct dm_registers *registers, struct dm_reg_task *task, const char *mutex)
{
    struct dm_reg_name *name;

    if (task->then == DM_REG_SERVE)
        return dm_reg_task_move(registers, task, task->attempt->name, act_of_poll(task));
    if (!mutex[0]) /* nobody sleeps */
        return dm_reg_task_finish_with(registers, task, DM_SAYS_DONE);
    name = mutex_of(registers, mutex);
    if (!name)
        return dm_reg_task_refuse(registers, task, DM_SAYS_NO_MEMORY, "out of memory");
    dm_reg_task_set_condition(task, task->name);
    task->began_ns = dm_clock_boot_ns();
    return dm_reg_task_move(registers, task, name, task->then);
}

/* ---- binding ----------------------------------------------------------------------------- */

/* The condition is bound to the mutex: its waiter may fall asleep. */
static enum dm_reg_progress go_to_sleep(struct dm_registers *registers, struct dm_reg_task *task)
{
    struct dm_reg_attempt *attempt = task->attempt;

    attempt->bound = task->name->version;
    if (attempt->condition)
        attempt->condition->uses--;
    attempt->condition = task->name;
    attempt->condition->uses++;
    dm_reg_task_set_condition(task, task->name);
    return dm_reg_task_move(registers, task, attempt->name, DM_REG_WAIT);
}

static enum dm_reg_progress begin_count(struct dm_registers *registers, struct dm_reg_task *task)
{
    struct dm_reg_name *name = mutex_of(registers, task->bind->former);
    struct dm_reg_task *counting = name ? dm_reg_task_add(registers, name, DM_REG_ACT_SLEEPERS, NULL, 0) : NULL;

    if (!counting)
        return dm_reg_task_refuse(registers, task, DM_SAYS_NO_MEMORY, "out of memory");
    dm_reg_task_set_condition(counting, task->name);
    counting->binder = task;
    counting->began_ns = dm_clock_boot_ns();
    task->bind->counting = counting;
    registers->has_moved = true;
    return DM_REG_TASK_WAITS;
}

/* C5: before the swap. */
static enum dm_reg_progress bind(struct dm_registers *registers, struct dm_reg_task *task, const char *mutex)
{
    struct dm_reg_bind *bind = task->bind;
    struct dm_reg_name *condition = task->name;

    if (bind->counting)
        return DM_REG_TASK_WAITS;
    if (bind->is_undone) {
        if (!dm_reg_version_equals(&condition->version, &bind->ours))
            return dm_reg_task_finish_attempt_with(registers, task, DM_SAYS_BOUND);
        return write_binding(registers, task, bind->former);
    }
    if (strcmp(mutex, bind->mutex) == 0)
        return go_to_sleep(registers, task);
    snprintf(bind->former, sizeof bind->former, "%s", mutex);
    if (mutex[0] && !dm_reg_version_equals(&bind->counted, &condition->version)) {
        bind->counted = condition->version;
        return begin_count(registers, task);
    }
    if (mutex[0] && bind->sleepers)
        return dm_reg_task_finish_attempt_with(registers, task, DM_SAYS_BOUND);
    return write_binding(registers, task, bind->mutex);
}

/* C5: after it.  Who sleeps at the former mutex has come between the look and the swap, and stays there. */
static enum dm_reg_progress look_again(struct dm_registers *registers, struct dm_reg_task *task)
{
    struct dm_reg_bind *bind = task->bind;

    if (bind->counting)
        return DM_REG_TASK_WAITS;
    if (bind->is_undone)
        return dm_reg_task_finish_attempt_with(registers, task, DM_SAYS_BOUND);
    if (!bind->former[0])
        return go_to_sleep(registers, task);
    if (!bind->is_recounted) {
        bind->is_recounted = true;
        bind->ours = task->name->version;
        return begin_count(registers, task);
    }
    if (!bind->sleepers)
        return go_to_sleep(registers, task);
    bind->is_undone = true;
    dm_reg_errand_init(&task->errand, &task->name->copy, false, false);
    return DM_REG_TASK_MOVES;
}

/* ---- tasks ------------------------------------------------------------------------------- */

enum dm_reg_progress dm_conditions_apply(struct dm_registers *registers, struct dm_reg_task *task)
{
    char mutex[DM_REG_KEY_MAX + 1];
    const char *reason;

    if (!read_mutex(task->name, mutex, &reason))
        return dm_reg_task_refuse(registers, task, DM_SAYS_REFUSED, reason);
    if (task->act == DM_REG_ACT_BIND)
        return bind(registers, task, mutex);
    if (task->act == DM_REG_ACT_FIND)
        return find(registers, task, mutex);
    if (mutex[0]) /* UNBIND */
        return write_binding(registers, task, NULL);
    return dm_reg_task_finish_with(registers, task, DM_SAYS_DONE);
}

enum dm_reg_progress dm_conditions_settle(struct dm_registers *registers, struct dm_reg_task *task)
{
    if (task->act == DM_REG_ACT_BIND)
        return look_again(registers, task);
    return dm_reg_task_finish_with(registers, task, DM_SAYS_DONE);
}

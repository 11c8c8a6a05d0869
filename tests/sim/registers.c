/* SPDX-License-Identifier: BSD-2-Clause */
#include "registers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../registers/memory.h"
#include "check.h"
#include "hooks.h"
#include "net.h"
#include "registers/apply.h"
#include "registers/session.h"
#include "registers/store_parts.h"
#include "world.h"

#define HOURS_NS (INT64_C(3) * 3600 * DM_NS_PER_S)
#define PROCESSES_MAX 1000

static struct memory *memory;

static struct dm_reg_driver *drivers[PROCESSES_MAX]; /* of each process, by its number */

/* ---- time --------------------------------------------------------------------------------- */

static int64_t now_ns(void)
{
    return world_now();
}

static uint64_t chance(void)
{
    return chance_word(CHANCE_NETWORK) >> 16;
}

static int64_t delay_ns(void)
{
    return net_delay();
}

/* ---- the judge ------------------------------------------------------------------------------ */

/* Of each name, by its number. */
static struct {
    uint64_t token;
    uint64_t grants;
} names[NAMES_MAX];

/* Names are "n/g/x0", "n/g/x1" ...; -1: another key. */
static int index_of(const char *key)
{
    return strncmp(key, "n/g/x", 5) == 0 ? key[5] - '0' : -1;
}

static bool decode(struct dm_reg_name_value *value, const char *key, const void *bytes, size_t size)
{
    const char *reason = "no memory";

    dm_reg_name_init(value);
    if (dm_reg_name_decode(value, bytes, size, &reason) == 0)
        return true;
    world_break("a value of %s is not ours: %s", key, reason);
    return false;
}

static void judge_grant(int index, const struct dm_reg_name_value *value)
{
    const struct dm_reg_entry *hold = &value->entries[0];
    const struct dm_reg_session_id *id = &value->sessions[hold->session].id;
    char uuid[DM_UUID_LENGTH + 1];

    if (hold->token <= names[index].token)
        world_break("I2: x%d is granted with token %" PRIu64 " after %" PRIu64, index, hold->token, names[index].token);
    names[index].token = hold->token;
    names[index].grants++;
    for (size_t i = 0; i < sizeof id->uuid; i++)
        snprintf(uuid + 2 * i, 3, "%02x", id->uuid[i]);
    check_granted(index, uuid, hold->thread, hold->attempt,
                  value->health == DM_REG_OWNER_DIED && hold->flags & DM_REG_ROBUST);
}

/* I6: no value shows a lock that is free beside a waiter, but in doubt. */
static void judge_value(int index, const struct dm_reg_name_value *before, const struct dm_reg_name_value *value)
{
    bool is_same = before->hold_count && value->hold_count && before->entries[0].attempt == value->entries[0].attempt &&
                   before->entries[0].token == value->entries[0].token;
    bool is_claimed = is_same || (value->hold_count && value->entries[0].token <= names[index].token &&
                                  before->identity != value->identity);
    char identity[DM_REG_IDENTITY_ROOM];

    if (value->hold_count > 1)
        world_break("x%d has %d holders", index, value->hold_count);
    memory_identity(memory, identity);
    if (!value->hold_count && value->queue_count && dm_reg_is_settled(value, dm_reg_identity_number(identity)))
        world_break("I6: x%d is free, and %d wait", index, value->queue_count);
    if (value->hold_count && !is_claimed)
        judge_grant(index, value);
}

static int number_of(const struct dm_reg_session_id *id)
{
    return (int)((unsigned)id->uuid[0] << 24 | (unsigned)id->uuid[1] << 16 | (unsigned)id->uuid[2] << 8 | id->uuid[3]);
}

/* For people who read the trace. */
static void note_value(int index, const struct dm_reg_name_value *value)
{
    const struct dm_reg_session_id *id = value->hold_count ? &value->sessions[value->entries[0].session].id : NULL;

    if (id)
        world_note("x%d: p%d.%u attempt %" PRIu64 " holds with token %" PRIu64 ", %d wait, health %d", index,
                   number_of(id), id->serial, value->entries[0].attempt, value->entries[0].token, value->queue_count,
                   value->health);
    else
        world_note("x%d: free, %d wait, health %d", index, value->queue_count, value->health);
}

static void note_session(const char *key, const void *bytes, size_t size)
{
    static struct dm_reg_session_value value;
    struct dm_reg_session_id id;
    const char *reason;

    if (!dm_reg_session_parse_key(key, 0, &id))
        return;
    if (size == 0)
        world_note("p%d.%u: deleted", number_of(&id), id.serial);
    else if (dm_reg_session_decode(bytes, size, &value, &reason) == 0)
        world_note("p%d.%u: %s, beat %" PRIu64, number_of(&id), id.serial, value.is_dead ? "dead" : "lives",
                   value.beat);
}

static void swapped(void *user, const char *key, const void *old_value, size_t old_size, const void *new_value,
                    size_t size)
{
    struct dm_reg_name_value before, value;
    int index = index_of(key);

    (void)user;
    counters.scripts++;
    if (index < 0) {
        note_session(key, new_value, size);
        return;
    }
    if (decode(&before, key, old_value, old_size) && decode(&value, key, new_value, size)) {
        note_value(index, &value);
        judge_value(index, &before, &value);
        dm_reg_name_free(&value);
    }
    dm_reg_name_free(&before);
    check_soon();
}

static struct process *process_of(const struct dm_reg_session_id *id)
{
    struct process *process = processes();

    while (process && process->number != number_of(id))
        process = process->next;
    return process && process->is_alive ? process : NULL;
}

/* What one value says of the session with this key. */
struct search {
    char key[DM_REG_SESSION_KEY_ROOM];
    bool is_living;
};

static void find_session(void *user, const char *key, const void *bytes, size_t size)
{
    static struct dm_reg_session_value value;
    struct search *search = user;
    const char *reason;

    if (strcmp(key, search->key) == 0 && dm_reg_session_decode(bytes, size, &value, &reason) == 0)
        search->is_living = !value.is_dead;
}

static void check_left(void *user, const char *key, const void *bytes, size_t size)
{
    struct dm_reg_name_value value;
    int index = index_of(key);

    (void)user;
    if (index < 0 || !decode(&value, key, bytes, size))
        return;
    for (int i = 0; i < value.hold_count + value.queue_count + value.sleeper_count; i++) {
        const struct dm_reg_session_id *id = &value.sessions[value.entries[i].session].id;
        struct process *process = process_of(id);
        struct search search = { .is_living = false };

        dm_reg_session_key(id, search.key);
        memory_each(memory, find_session, &search);
        if (process && search.is_living && !dm_registry_attempt(&process->runtime.registry, value.entries[i].attempt))
            world_break("I4: x%d still has attempt %" PRIu64 " of p%d, which is over", index, value.entries[i].attempt,
                        process->number);
    }
    dm_reg_name_free(&value);
}

void registers_check_left(void)
{
    check_begin_look();
    memory_each(memory, check_left, NULL);
    check_end_look();
}

/* ---- beginning and end ------------------------------------------------------------------------ */

bool registers_are_there(void)
{
    return memory != NULL;
}

void registers_begin(void)
{
    static const struct memory_world world = {
        .now_ns = now_ns, .chance = chance, .delay_ns = delay_ns, .at = world_at
    };

    memset(drivers, 0, sizeof drivers);
    memset(names, 0, sizeof names);
    memory = memory_new(&world);
    memory_faults(memory)->late_most_ns = HOURS_NS;
    memory_faults(memory)->has_no_tells = chance_one_in(CHANCE_WORK, 4);
    memory_faults(memory)->has_no_ages = chance_one_in(CHANCE_WORK, 2);
    memory_faults(memory)->brings_old = hooks_has(MEMORY_BRINGS_OLD);
    memory_faults(memory)->reads_old = hooks_has(MEMORY_READS_OLD);
    memory_faults(memory)->repeats_versions = hooks_has(MEMORY_REPEATS_VERSIONS);
    memory_faults(memory)->forgets_epoch = hooks_has(MEMORY_KEEPS_IDENTITY);
    memory_faults(memory)->is_not_atomic = hooks_has(MEMORY_IS_NOT_ATOMIC);
    memory_watch(memory, swapped, NULL);
}

void registers_end(void)
{
    if (!memory)
        return;
    counters.messages += memory_counts(memory)->tells;
    memory_free(memory);
    memory = NULL;
}

static struct dm_reg_driver *make(void *user, const struct dm_reg_client *client, char ret_reason[DM_REASON_ROOM])
{
    struct process *process = user;

    (void)ret_reason;
    drivers[process->number] = memory_open(memory, client);
    return drivers[process->number];
}

/* The store's functions, with what is asked counted. */
static const struct dm_store_ops *real;
static struct dm_store_ops counting;

static bool submit(struct dm_store *store, const struct dm_question *questions, int count, dm_answers_fn done,
                   void *user)
{
    counters.polls += questions->op == DM_OP_POLL ? (uint64_t)count : 0;
    counters.renewals += questions->op == DM_OP_RENEW ? (uint64_t)count : 0;
    return real->submit(store, questions, count, done, user);
}

struct dm_store *registers_open(struct process *process, const struct dm_host *host)
{
    char reason[DM_REASON_ROOM];
    struct dm_store *store;

    if (process->number >= PROCESSES_MAX)
        abort();
    store = dm_registers_open(&process->runtime.ident, host, make, process, reason);
    real = store->ops;
    counting = *real;
    counting.submit = submit;
    store->ops = &counting;
    return store;
}

/* ---- faults ----------------------------------------------------------------------------------- */

void registers_cut(uint32_t number)
{
    int count = 0;

    for (int i = 0; i < PROCESSES_MAX; i++)
        count += drivers[i] != NULL;
    if (count == 0)
        return;
    number %= (uint32_t)count;
    for (int i = 0; i < PROCESSES_MAX; i++) {
        if (drivers[i] && number-- == 0)
            memory_cut(memory, drivers[i]);
    }
}

void registers_stall(int64_t for_ns)
{
    memory_stall(memory, world_now() + for_ns);
}

void registers_restart(enum registers_data data, int64_t down_ns)
{
    static const enum memory_data kinds[] = { MEMORY_KEEPS, MEMORY_LOSES, MEMORY_BRINGS_COPY };

    memory_restart(memory, kinds[data], world_now() + down_ns);
}

void registers_copy(void)
{
    memory_copy(memory);
}

void registers_wipe(void)
{
    memory_wipe(memory);
}

void registers_fill(bool is_full)
{
    memory_faults(memory)->is_full = is_full;
}

void registers_disturb(unsigned one_in)
{
    struct memory_faults *faults = memory_faults(memory);

    faults->lost = faults->unanswered = faults->late = one_in * 3;
    faults->poor = one_in ? 2 : 0;
    faults->tell_lost = one_in;
    faults->tell_doubled = one_in;
}

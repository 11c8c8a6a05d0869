/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sweep: a process lists sessions, names and bindings, a part each second, reads them, and swaps what is over.
 * There is no order among processes; all of them together make about one sweep an hour, because each waits for as many
 * hours as there are sessions.  Some begin soon after their start, so that short-lived processes clean up, too; and
 * all begin somewhere in the middle, so that they do not all clean up the same part.
 */
#include "registers/sweep.h"

#include <stdio.h>
#include <string.h>

#include "base/attrs.h"
#include "base/minmax.h"
#include "base/units.h"
#include "registers/apply.h"
#include "registers/keys.h"
#include "registers/store_parts.h"

#define HOUR_MS (INT64_C(3600) * 1000)
#define DAY_MS (24 * HOUR_MS)
#define WEEK_MS (7 * DAY_MS)

/* Of so many processes one begins its first sweep at once. */
#define EAGER_ONE_IN 32
#define EAGER_NS (2 * DM_NS_PER_S)

/* Between two parts. */
#define PAUSE_NS DM_NS_PER_S

/* ---- what is over -------------------------------------------------------------------------- */

enum dm_reg_fate dm_reg_sweep_session(const struct dm_reg_session_value *value, int64_t age_ms, int64_t now_us)
{
    if (value->is_dead && age_ms < 0)
        age_ms = (now_us - value->dead_us) / 1000;
    if (value->is_dead)
        return age_ms >= DAY_MS ? DM_REG_DELETE : DM_REG_KEEP;
    return age_ms >= HOUR_MS + (int64_t)value->lease_ms ? DM_REG_KILL : DM_REG_KEEP;
}

enum dm_reg_fate dm_reg_sweep_name(const struct dm_reg_name_value *value, int64_t age_ms, int64_t clock_us)
{
    int64_t next_token = clock_us - DM_TOKEN_EPOCH_US - WEEK_MS * 1000;

    if (age_ms < WEEK_MS || !dm_reg_is_idle(value) || clock_us == 0 || (int64_t)value->token >= next_token)
        return DM_REG_KEEP;
    return DM_REG_DELETE;
}

enum dm_reg_fate dm_reg_sweep_binding(const struct dm_reg_name_value *mutex, const char *key, int64_t age_ms)
{
    int first = mutex ? mutex->hold_count + mutex->queue_count : 0, count = mutex ? mutex->sleeper_count : 0;

    for (int i = first; i < first + count; i++) {
        if (strcmp(mutex->conditions[mutex->entries[i].condition].name, key) == 0)
            return DM_REG_KEEP;
    }
    return age_ms < WEEK_MS ? DM_REG_KEEP : DM_REG_DELETE;
}

int64_t dm_reg_sweep_age_ms(struct dm_reg_sweep_seen *seen, const char *key, const struct dm_reg_version *version,
                            int64_t now_ns)
{
    uint64_t hash = dm_reg_identity_number(key);
    int i = 0, oldest = 0;

    for (; i < seen->count && seen->items[i].key != hash; i++) {
        if (seen->items[i].seen_ns < seen->items[oldest].seen_ns)
            oldest = i;
    }
    if (i == DM_REG_SWEEP_SEEN)
        i = oldest;
    else if (i == seen->count)
        seen->count++;
    if (seen->items[i].key != hash || !dm_reg_version_equals(&seen->items[i].version, version)) {
        seen->items[i].key = hash;
        seen->items[i].version = *version;
        seen->items[i].since_ns = now_ns;
    }
    seen->items[i].seen_ns = now_ns;
    return (now_ns - seen->items[i].since_ns) / DM_NS_PER_MS;
}

/* ---- when ---------------------------------------------------------------------------------- */

static uint64_t chance(struct dm_registers *registers)
{
    registers->chance = registers->chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return registers->chance >> 33;
}

/* About so many hours, half of them more or less. */
static void plan(struct dm_registers *registers, int64_t hours)
{
    int64_t least_ms = HOUR_MS / 2 * dm_max64(hours, 1);

    registers->sweep.phase = DM_REG_SWEEP_PAUSES;
    registers->sweep.is_under_way = false;
    registers->sweep.due_ns =
        dm_clock_boot_ns() + (least_ms + (int64_t)(chance(registers) % (uint64_t)(2 * least_ms))) * DM_NS_PER_MS;
}

/* In this order; of what has no name and was left behind, too. */
static const char *const prefixes[] = { "s/", "n/", "a/", "c/", "d/" };
enum { SESSIONS, NAMES, ANONYMOUS_NAMES, BINDINGS };

/* The keys of one kind, from anywhere in what hexadecimal digits or letters there are. */
static void begin_kind(struct dm_registers *registers, int kind)
{
    struct dm_reg_sweep *sweep = &registers->sweep;

    sweep->kind = kind;
    sweep->has_wrapped = false;
    if (kind == SESSIONS)
        snprintf(sweep->start, sizeof sweep->start, "s/%02x%02x", (unsigned)chance(registers) % 256,
                 (unsigned)chance(registers) % 256);
    else
        snprintf(sweep->start, sizeof sweep->start, "%s%c", prefixes[kind],
                 (char)('.' + chance(registers) % ('z' - '.')));
    snprintf(sweep->after, sizeof sweep->after, "%s", sweep->start);
}

static void begin(struct dm_registers *registers)
{
    registers->sweep.is_under_way = true;
    registers->sweep.session_count = 0;
    begin_kind(registers, SESSIONS);
}

static void end_part(struct dm_registers *registers, bool is_last)
{
    struct dm_reg_sweep *sweep = &registers->sweep;

    sweep->phase = DM_REG_SWEEP_PAUSES;
    sweep->due_ns = dm_clock_boot_ns() + PAUSE_NS;
    if (!is_last)
        return;
    if (!sweep->has_wrapped) {
        sweep->has_wrapped = true;
        sweep->after[0] = '\0';
    } else if (sweep->kind + 1 < (int)DM_COUNT(prefixes)) {
        begin_kind(registers, sweep->kind + 1);
    } else {
        plan(registers, sweep->session_count);
    }
}

/* ---- one part ------------------------------------------------------------------------------ */

static void send_swap(struct dm_registers *registers, const char *key, const struct dm_reg_version *version,
                      bool is_killed)
{
    struct dm_reg_request request = { .asked = DM_REG_ASKED_SWEEP, .is_swap = true };
    struct dm_reg_item item = { .key = key, .version = *version, .value = registers->bytes };
    struct dm_reg_session_value *value = &registers->session;

    if (is_killed) {
        value->is_dead = true;
        value->dead_us = dm_registers_wall_us(registers);
        value->version = dm_reg_writer_next(&registers->writer);
        item.size = dm_reg_session_encode(value, registers->bytes);
    }
    dm_registers_send(registers, &request, &item); /* what is not sent is found by the next sweep */
}

/* A value that is not ours is nobody's to delete. */
static void sweep_session(struct dm_registers *registers, const char *key, const struct dm_reg_looked *looked)
{
    struct dm_reg_session_value *value = &registers->session;
    struct dm_reg_session_id id;
    int64_t age_ms = looked->age_ms;
    struct dm_reg_version version;
    enum dm_reg_fate fate;
    const char *reason;

    if (!dm_reg_session_parse_key(key, registers->identity_number, &id) ||
        dm_reg_session_decode(looked->value, looked->size, value, &reason) != 0 ||
        memcmp(id.uuid, registers->uuid, sizeof id.uuid) == 0)
        return;
    version = value->version;
    if (age_ms < 0)
        age_ms = dm_reg_sweep_age_ms(&registers->sweep.seen, key, &version, dm_clock_boot_ns());
    fate = dm_reg_sweep_session(value, looked->age_ms < 0 && value->is_dead ? -1 : age_ms,
                                dm_registers_wall_us(registers));
    if (fate != DM_REG_KEEP)
        send_swap(registers, key, &version, fate == DM_REG_KILL);
}

static void sweep_name(struct dm_registers *registers, const char *key, const struct dm_reg_looked *looked)
{
    int64_t clock_us = registers->clock_us ? dm_registers_wall_us(registers) : 0;
    struct dm_reg_name_value value;
    const char *reason;

    if (dm_reg_name_decode(&value, looked->value, looked->size, &reason) != 0)
        return;
    if (dm_reg_sweep_name(&value, looked->age_ms, clock_us) == DM_REG_DELETE)
        send_swap(registers, key, &value.version, false);
    dm_reg_name_free(&value);
}

/* The mutex of a binding that is over, unless somebody sleeps there. */
static bool find_mutex(const struct dm_reg_looked *looked, struct dm_reg_version *ret_version,
                       char ret_key[DM_REG_KEY_MAX + 1])
{
    struct dm_reg_binding_value value;
    const char *reason;

    if (!looked->is_read || looked->size == 0 ||
        dm_reg_binding_decode(looked->value, looked->size, &value, &reason) != 0 ||
        dm_reg_sweep_binding(NULL, "", looked->age_ms) == DM_REG_KEEP)
        return false;
    *ret_version = value.version;
    dm_reg_key_write(value.mutex, ret_key);
    return true;
}

/* The bindings of one part have been read: the mutexes of the old ones are next. */
static void read_mutexes(struct dm_registers *registers)
{
    struct dm_reg_sweep *sweep = &registers->sweep;
    const struct dm_reg_look *bindings = sweep->look;
    char mutex[DM_REG_KEY_MAX + 1];
    int count = 0;

    for (int i = 0; i < bindings->count; i++)
        count += find_mutex(&bindings->items[i], &sweep->versions[0], mutex);
    sweep->look = dm_reg_look_new(count);
    if (!sweep->look) {
        plan(registers, 1);
        return;
    }
    sweep->phase = DM_REG_SWEEP_READS_MUTEXES;
    sweep->look->left = count;
    count = 0;
    for (int i = 0; i < bindings->count; i++) {
        if (!find_mutex(&bindings->items[i], &sweep->versions[count], mutex))
            continue;
        memmove(sweep->keys[count], sweep->keys[i], sizeof sweep->keys[i]);
        dm_reg_look_read(registers, sweep->look, count++, mutex);
    }
}

/* A mutex that is not ours, or could not be read, may have sleepers. */
static void sweep_binding(struct dm_registers *registers, int index)
{
    const struct dm_reg_looked *mutex = &registers->sweep.look->items[index];
    const char *key = registers->sweep.keys[index];
    struct dm_reg_name_value value;
    enum dm_reg_fate fate;
    const char *reason;

    if (!mutex->is_read || dm_reg_name_decode(&value, mutex->value, mutex->size, &reason) != 0)
        return;
    fate = dm_reg_sweep_binding(&value, key, WEEK_MS);
    dm_reg_name_free(&value);
    if (fate == DM_REG_DELETE)
        send_swap(registers, key, &registers->sweep.versions[index], false);
}

/* The mutexes have been read. */
static void take_mutexes(struct dm_registers *registers)
{
    for (int i = 0; i < registers->sweep.look->count; i++)
        sweep_binding(registers, i);
    end_part(registers, registers->sweep.is_last);
}

/* The values of one part have been read. */
static void take_values(struct dm_registers *registers)
{
    struct dm_reg_sweep *sweep = &registers->sweep;

    for (int i = 0; i < sweep->look->count; i++) {
        const struct dm_reg_looked *looked = &sweep->look->items[i];

        if (!looked->is_read || looked->size == 0)
            continue;
        if (sweep->kind == SESSIONS)
            sweep_session(registers, sweep->keys[i], looked);
        else if (sweep->kind < BINDINGS)
            sweep_name(registers, sweep->keys[i], looked);
    }
    if (sweep->look->count)
        snprintf(sweep->after, sizeof sweep->after, "%s", sweep->keys[sweep->look->count - 1]);
    if (sweep->kind == SESSIONS)
        sweep->session_count += sweep->look->count;
    if (sweep->kind < BINDINGS)
        end_part(registers, sweep->is_last);
    else
        read_mutexes(registers);
}

/* Reads what was listed, but no further than to where the sweep began. */
static void take_keys(struct dm_registers *registers)
{
    struct dm_reg_sweep *sweep = &registers->sweep;
    const struct dm_reg_look *listed = sweep->look;
    int count = 0;

    sweep->is_last = listed->is_last;
    for (int i = 0; i < listed->key_count && i < DM_REG_SWEEP_KEYS; i++) {
        if (sweep->has_wrapped && strcmp(listed->keys[i], sweep->start) > 0) {
            sweep->is_last = true;
            break;
        }
        snprintf(sweep->keys[count++], sizeof sweep->keys[0], "%s", listed->keys[i]);
    }
    sweep->look = dm_reg_look_new(count);
    if (!sweep->look) {
        plan(registers, 1);
        return;
    }
    sweep->phase = DM_REG_SWEEP_READS;
    sweep->look->left = count;
    for (int i = 0; i < count; i++)
        dm_reg_look_read(registers, sweep->look, i, sweep->keys[i]);
}

/* ---- all ------------------------------------------------------------------------------------ */

static void list_part(struct dm_registers *registers)
{
    struct dm_reg_sweep *sweep = &registers->sweep;

    if (!sweep->is_under_way)
        begin(registers);
    sweep->look = dm_reg_look_new(0);
    if (!sweep->look) {
        plan(registers, 1);
        return;
    }
    sweep->phase = DM_REG_SWEEP_LISTS;
    dm_reg_look_list(registers, sweep->look, prefixes[sweep->kind], sweep->after, DM_REG_SWEEP_KEYS);
}

/* The answers to a part.  A store that gives none is left alone for an hour. */
static void take_answers(struct dm_registers *registers)
{
    struct dm_reg_sweep *sweep = &registers->sweep;
    struct dm_reg_look *look = sweep->look;

    if (look->has_failed)
        plan(registers, 1);
    else if (sweep->phase == DM_REG_SWEEP_LISTS)
        take_keys(registers);
    else if (sweep->phase == DM_REG_SWEEP_READS)
        take_values(registers);
    else
        take_mutexes(registers);
    if (sweep->look == look)
        sweep->look = NULL;
    dm_reg_look_free(look);
}

int64_t dm_registers_run_sweep(struct dm_registers *registers)
{
    struct dm_reg_sweep *sweep = &registers->sweep;

    if (!registers->is_ready || !registers->driver->can.has_lists)
        return DM_NEVER;
    if (sweep->due_ns == 0) {
        plan(registers, 1);
        if (chance(registers) % EAGER_ONE_IN == 0)
            sweep->due_ns = dm_clock_boot_ns() + EAGER_NS;
    }
    if (sweep->phase == DM_REG_SWEEP_PAUSES && dm_clock_boot_ns() >= sweep->due_ns)
        list_part(registers);
    while (sweep->look && sweep->look->left == 0)
        take_answers(registers);
    return sweep->look ? DM_NEVER : sweep->due_ns;
}

/* D3: what was read is of other data. */
void dm_registers_sweep_moved(struct dm_registers *registers)
{
    struct dm_reg_sweep *sweep = &registers->sweep;

    if (sweep->look && sweep->look->left > 0)
        sweep->look->is_left = true;
    else
        dm_reg_look_free(sweep->look);
    sweep->look = NULL;
    sweep->seen.count = 0;
    if (sweep->is_under_way)
        plan(registers, 1);
}

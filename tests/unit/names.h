/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * registers/: values of names as short texts, and steps on them.  Included once by each program of such tests.
 *
 *      "a1r | b2 c3+x | d4:x"        holds | queue | sleepers
 *
 * A letter is a process in its session of the present data, a capital the same process in a session of the data before;
 * the number is the attempt.  Then: r robust, t tells, k kept, w3 weighs 3, +x carries a signal of the condition x,
 * :x sleeps on x.  After a semicolon: "died" or "never" (not recoverable), and "doubt".  "" is an absent name.
 */
#ifndef UNIT_NAMES_H
#define UNIT_NAMES_H

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "registers/apply.h"

#define PRESENT 9 /* the identities */
#define FORMER 7
#define LEASE_MS 10000
#define LAST_TOKEN 50
#define LAST_ARRIVAL 500
#define NOW_US (DM_TOKEN_EPOCH_US + 5000000)
#define TEXT_ROOM 400
#define NOTICES 64

static struct dm_reg_writer names_writer;

/* ---- who --------------------------------------------------------------------------------- */

static inline struct dm_reg_session_id session_of_letter(char letter)
{
    bool is_former = letter >= 'A' && letter <= 'Z';
    struct dm_reg_session_id id = { .serial = 1, .lease_ms = LEASE_MS, .identity = is_former ? FORMER : PRESENT };

    memset(id.uuid, is_former ? letter + 32 : letter, sizeof id.uuid);
    return id;
}

/* "b2" */
static inline struct dm_reg_ref ref_of(const char *who)
{
    struct dm_reg_ref ref = { .session = session_of_letter(who[0]), .thread = 3 };

    ref.attempt = strtoull(who + 1, NULL, 10);
    return ref;
}

/* ---- from text --------------------------------------------------------------------------- */

static inline uint16_t session_index(struct dm_reg_name_value *value, struct dm_reg_session_id id)
{
    int i = 0;

    while (i < value->session_count && !dm_reg_session_id_equals(&value->sessions[i].id, &id))
        i++;
    if (i == value->session_count)
        value->sessions[value->session_count++].id = id;
    return (uint16_t)i;
}

static inline uint16_t condition_index(struct dm_reg_name_value *value, char letter)
{
    int i = 0;

    while (i < value->condition_count && value->conditions[i].name[0] != letter)
        i++;
    if (i == value->condition_count)
        snprintf(value->conditions[value->condition_count++].name, DM_REG_CONDITION_ROOM, "%c", letter);
    return (uint16_t)i;
}

/* Reads one entry; returns what follows. */
static inline const char *read_entry(struct dm_reg_name_value *value, const char *at, struct dm_reg_entry *entry)
{
    struct dm_reg_ref ref = ref_of(at);

    *entry = (struct dm_reg_entry){ .attempt = ref.attempt, .thread = ref.thread, .weight = 1 };
    entry->session = session_index(value, ref.session);
    at += 1 + strspn(at + 1, "0123456789");
    while (*at && *at != ' ') {
        switch (*at++) {
        case 'r':
            entry->flags |= DM_REG_ROBUST;
            break;
        case 't':
            entry->flags |= DM_REG_TELLS;
            break;
        case 'k':
            entry->flags |= DM_REG_TELLS | DM_REG_KEPT;
            break;
        case 'w':
            entry->weight = (uint32_t)strtoul(at, NULL, 10);
            at += strspn(at, "0123456789");
            break;
        case '+':
            entry->flags |= DM_REG_CARRIES; /* fall through */
        case ':':
            entry->condition = condition_index(value, *at++);
            break;
        default:
            fail_msg("no flag: %s", at - 1);
        }
    }
    return at;
}

/* The value is a mutex; a caller may change that afterwards.  Numbers: tokens up to 50, arrivals from 10 on. */
static inline void set_name(struct dm_reg_name_value *value, const char *text)
{
    int *counts[] = { &value->hold_count, &value->queue_count, &value->sleeper_count }, part = 0, count = 0;
    const char *state = strchr(text, ';');

    dm_reg_name_init(value);
    if (!*text)
        return;
    assert_int_equal(dm_reg_name_reserve(value, 30, 5, 30), 0);
    value->version = dm_reg_writer_next(&names_writer);
    value->identity = state && strstr(state, "doubt") ? FORMER : PRESENT;
    value->health = state && strstr(state, "died")    ? DM_REG_OWNER_DIED
                    : state && strstr(state, "never") ? DM_REG_NOT_RECOVERABLE
                                                      : DM_REG_CLEAN;
    value->token = LAST_TOKEN;
    value->arrival = LAST_ARRIVAL;
    for (const char *at = text; *at && *at != ';';) {
        if (*at == '|' || *at == ' ') {
            part += *at++ == '|';
            continue;
        }
        at = read_entry(value, at, &value->entries[count]);
        value->entries[count].token = part == 0 ? LAST_TOKEN : 0;
        value->entries[count].arrival = part == 0 ? 0 : 10 + (uint64_t)count * 10;
        value->entries[count].since_ms = 1000 + (uint64_t)count;
        count++;
        ++*counts[part];
    }
}

/* ---- to text ----------------------------------------------------------------------------- */

static inline void add_text(char *text, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));
static inline void add_text(char *text, const char *format, ...)
{
    size_t length = strlen(text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text + length, TEXT_ROOM - length, format, arguments);
    va_end(arguments);
}

static inline void show_entry(const struct dm_reg_name_value *value, int index, char *text)
{
    const struct dm_reg_entry *entry = &value->entries[index];
    const struct dm_reg_session_id *id = &value->sessions[entry->session].id;
    bool is_former = id->identity != PRESENT;

    add_text(text, " %c%d", is_former ? id->uuid[0] - 32 : id->uuid[0], (int)entry->attempt);
    if (entry->flags & DM_REG_ROBUST)
        add_text(text, "r");
    if (entry->flags & DM_REG_TELLS)
        add_text(text, entry->flags & DM_REG_KEPT ? "k" : "t");
    if (entry->weight != 1)
        add_text(text, "w%d", (int)entry->weight);
    if (entry->flags & DM_REG_CARRIES)
        add_text(text, "+%s", value->conditions[entry->condition].name);
    if (index >= value->hold_count + value->queue_count)
        add_text(text, ":%s", value->conditions[entry->condition].name);
}

static inline void show_name(const struct dm_reg_name_value *value, char text[TEXT_ROOM])
{
    int count = value->hold_count + value->queue_count + value->sleeper_count;

    text[0] = '\0';
    if (dm_reg_version_is_absent(&value->version))
        return;
    for (int i = 0; i <= count; i++) {
        for (int end = value->hold_count, part = 0; part < 2; part++, end += value->queue_count) {
            if (i == end)
                add_text(text, " |");
        }
        if (i < count)
            show_entry(value, i, text);
    }
    if (value->health || value->identity != PRESENT)
        add_text(text, " ;%s%s",
                 value->health == DM_REG_OWNER_DIED ? " died"
                 : value->health                    ? " never"
                                                    : "",
                 value->identity == PRESENT ? "" : " doubt");
}

/* The wanted text in the form of show_name(). */
static inline void show_wanted(const char *wanted, char text[TEXT_ROOM])
{
    struct dm_reg_name_value other;

    set_name(&other, wanted);
    show_name(&other, text);
    dm_reg_name_free(&other);
}

static inline bool is_name(const struct dm_reg_name_value *value, const char *wanted)
{
    char shown[TEXT_ROOM], text[TEXT_ROOM];

    show_wanted(wanted, text);
    show_name(value, shown);
    return strcmp(shown, text) == 0;
}

static inline void assert_name(const struct dm_reg_name_value *value, const char *wanted)
{
    char shown[TEXT_ROOM], text[TEXT_ROOM];

    show_wanted(wanted, text);
    show_name(value, shown);
    assert_string_equal(shown, text);
}

/* ---- bytes ------------------------------------------------------------------------------- */

/* To be freed. */
static inline uint8_t *bytes_of(const struct dm_reg_name_value *value, size_t *ret_size)
{
    uint8_t *bytes;

    *ret_size = dm_reg_name_encode(value, NULL, 0);
    bytes = malloc(*ret_size);
    assert_non_null(bytes);
    assert_int_equal(dm_reg_name_encode(value, bytes, *ret_size), *ret_size);
    return bytes;
}

/* The value comes back from its bytes as it was. */
static inline void pass_through_bytes(struct dm_reg_name_value *value)
{
    struct dm_reg_name_value copy;
    const char *reason = "";
    size_t size, size_again;
    uint8_t *bytes = bytes_of(value, &size), *again;

    if (dm_reg_name_decode(&copy, bytes, size, &reason) != 0)
        fail_msg("%s", reason);
    again = bytes_of(&copy, &size_again);
    assert_int_equal(size_again, size);
    assert_memory_equal(again, bytes, size);
    free(again);
    free(bytes);
    dm_reg_name_free(value);
    *value = copy;
}

/* ---- steps ------------------------------------------------------------------------------- */

static struct dm_reg_notice notices[NOTICES];
static struct dm_reg_result result;

/* A step of a mutex, by an attempt such as "b2", or "" for none. */
static inline struct dm_reg_step step_by(enum dm_reg_act act, const char *who)
{
    struct dm_reg_step step = {
        .act = act, .capacity = 1, .weight = 1, .identity = PRESENT, .clock_us = NOW_US, .most = 1, .condition = "x"
    };

    if (*who)
        step.me = ref_of(who);
    return step;
}

/* Does a step, and swaps the value if it has changed. */
static inline void apply_once(struct dm_reg_name_value *value, const struct dm_reg_step *step)
{
    size_t size = 0;
    uint8_t *before = dm_reg_version_is_absent(&value->version) ? NULL : bytes_of(value, &size);
    const char *reason;

    result = (struct dm_reg_result){ .notices = notices, .notice_room = NOTICES };
    dm_reg_apply(value, step, &result);
    if (result.is_deleted) {
        dm_reg_name_free(value);
    } else if (result.is_changed) {
        value->version = dm_reg_writer_next(&names_writer);
        pass_through_bytes(value);
    } else {
        dm_reg_name_free(value);
        assert_int_equal(dm_reg_name_decode(value, before, size, &reason), 0);
    }
    free(before);
}

/*
 * Does a step twice, as after a swap without an answer: the second one changes nothing, and the answer is that of the
 * first.
 */
static inline void apply_twice(struct dm_reg_name_value *value, const struct dm_reg_step *step)
{
    struct dm_reg_step again = *step;
    char once[TEXT_ROOM], twice[TEXT_ROOM];
    struct dm_reg_result first;

    apply_once(value, step);
    first = result;
    show_name(value, once);
    again.upto = first.upto ? first.upto : step->upto;
    if (step->act == DM_REG_FORCE && !step->me.attempt)
        return;
    if (step->act == DM_REG_SIGNAL && (!again.upto || step->most == 1))
        return;
    apply_once(value, &again);
    show_name(value, twice);
    assert_string_equal(twice, once);
    assert_false(result.is_changed);
    result = first;
}

static inline void step_once(struct dm_reg_name_value *value, enum dm_reg_act act, const char *who)
{
    struct dm_reg_step step = step_by(act, who);

    apply_twice(value, &step);
}

#endif

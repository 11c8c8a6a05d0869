/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values of a register store, which anybody may have written: a decoder takes only bytes that the encoder would write,
 * and a step on any name that was taken leads to a name that would be taken.  The input is hexadecimal: two bytes that
 * choose among the steps, and the value.
 */
#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "fuzz.h"
#include "registers/apply.h"

static const char *const seeds[] = {
    "00001111111111111111111111111111111111111111111111116e0000000000000009000132f40300e8070502010202616161616161"
    "6161616161616161616102904e6262626262626262626262626262626202904e6363636363636363636363636363636302904e646464"
    "6464646464646464646464646402904e6565656565656565656565656565656502904e01780179000100000000000000010300000100"
    "0000000000000002030114020800000000000000030300020a0300000000000000000403000328040000000000000000050301040a",
    "00001111111111111111111111111111111111111111111111116e0000000000000009000132f40300e8070100010000616161616161"
    "6161616161616161616102904e00060000000000000001030000",
    "00001111111111111111111111111111111111111111111111116e0000000000000007000132f40300e8070401010201616161616161"
    "6161616161616161616102904e6262626262626262626262626262626202904e6363636363636363636363636363636303904e000000"
    "00000000096464646464646464646464646464646402904e017800080000000000000001808080800400000001000000000000000002"
    "0301140200000000000000000303020a0300000000000000000403000328",
    "00001111111111111111111111111111111111111111111111116e0000000000000009000132f40302000000000000",
    "00001111111111111111111111111111111111111111111111116e0000000000000009000132f40300e8070200010300616161616161"
    "6161616161616161616102904e6262626262626262626262626262626202904e00000000000000000001030000010000000000000000"
    "020301140100000000000000000303020a0100000000000000000403030a",
    "00001111111111111111111111111111111111111111111111116e0000000000000009020332f40300e8070300010200636363636363"
    "6363636363636363636302904e6161616161616161616161616161616102904e6262626262626262626262626262626202904e001000"
    "000000000000010303000001000000000000000002030114021000000000000000030303020a",
    "00001111111111111111111111111111111111111111111111117307904e0f313220686f73742070726f6772616d0200000000000000"
    "050000000000000006",
    "000011111111111111111111111111111111111111111111111164c0843d03312068",
    "00001111111111111111111111111111111111111111111111116e0000000000000009000132f403040000000000000007e8070a03312068",
    "00001111111111111111111111111111111111111111111111116d0765706f636820318827",
    "000011111111111111111111111111111111111111111111111163046e672f6c",
    NULL,
};

static const char *const words[] = {
    "00",
    "01",
    "02",
    "03",
    "07",
    "08",
    "09",
    "10",
    "7f",
    "80",
    "ff",
    "6e",
    "73",
    "64",
    "6d",
    "63",
    "6178",
    "0179",
    "ffffffffffffffff01",
    "0000000000000009",
    "0000000000000007",
    "61616161616161616161616161616161",
    NULL,
};

const struct fuzzer fuzzer = { "values", seeds, words, 150000, 10000000 };

#define ROOM (FUZZ_INPUT_MAX / 2)

static size_t read_hex(const uint8_t *text, size_t length, uint8_t bytes[ROOM])
{
    static const char digits[] = "0123456789abcdef";
    size_t size = 0;

    for (size_t i = 0; i + 1 < length && size < ROOM; i += 2) {
        const char *high = memchr(digits, text[i], 16), *low = memchr(digits, text[i + 1], 16);

        bytes[size++] = (uint8_t)((high ? high - digits : text[i] % 16) << 4 | (low ? low - digits : text[i + 1] % 16));
    }
    return size;
}

/* ---- the small values --------------------------------------------------------------------- */

static void try_small(const uint8_t *bytes, size_t size)
{
    struct dm_reg_session_value session;
    struct dm_reg_mark_value mark;
    struct dm_reg_binding_value binding;
    uint8_t again[DM_REG_SMALL_MAX];
    const char *reason = NULL;

    if (dm_reg_session_decode(bytes, size, &session, &reason) == 0)
        must(dm_reg_session_encode(&session, again) == size && memcmp(again, bytes, size) == 0);
    else
        must(reason);
    if (dm_reg_mark_decode(bytes, size, &mark, &reason) == 0)
        must(dm_reg_mark_encode(&mark, again) == size && memcmp(again, bytes, size) == 0);
    if (dm_reg_binding_decode(bytes, size, &binding, &reason) == 0)
        must(dm_reg_binding_encode(&binding, again) == size && memcmp(again, bytes, size) == 0);
}

/* ---- a name ------------------------------------------------------------------------------ */

/* An attempt of the value, or a new one of a session of the value or of another one. */
static struct dm_reg_ref pick_ref(const struct dm_reg_name_value *value, uint8_t choice)
{
    int count = value->hold_count + value->queue_count + value->sleeper_count;
    struct dm_reg_ref ref = { .session = { .serial = 5, .lease_ms = 1000, .identity = 9 }, .attempt = 77 };

    if (count && choice % 4) {
        const struct dm_reg_entry *entry = &value->entries[choice / 4 % count];

        ref.session = value->sessions[entry->session].id;
        ref.attempt = choice % 4 == 1 ? 78 : entry->attempt;
    }
    return ref;
}

static struct dm_reg_step make_step(const struct dm_reg_name_value *value, enum dm_reg_act act, uint8_t choice,
                                    uint8_t other, struct dm_reg_session_id *dead, struct dm_reg_owed *owed)
{
    struct dm_reg_step step = { .act = act, .me = pick_ref(value, choice), .condition = "x" };

    step.leaving = pick_ref(value, (uint8_t)(choice * 7));
    step.kind = value->kind;
    step.capacity = value->capacity;
    step.weight = choice & 16 ? value->capacity : 1;
    step.is_robust = choice & 32;
    step.end = (enum dm_end)(choice % 3);
    step.mark = (enum dm_reg_mark)(choice / 3 % 3);
    step.arrival = choice & 64 ? choice : 0;
    step.token = value->token;
    step.is_anonymous = choice & 8;
    step.most = choice & 128 ? INT_MAX : 1;
    step.identity = choice & 4 && value->identity ? value->identity : 9;
    step.quiet_ms = choice & 2 ? DM_LEASE_MAX_MS : 0;
    step.clock_us = DM_TOKEN_EPOCH_US + choice * INT64_C(100000000);
    *owed = (struct dm_reg_owed){ pick_ref(value, other), step.end };
    step.owed = owed;
    step.owed_count = other >> 4 & 1 && owed->ref.attempt != step.me.attempt; /* a process does not owe what it wants */
    *dead = pick_ref(value, (uint8_t)(other * 3)).session;
    step.dead = dead;
    step.dead_count = other >> 5 & 1;
    return step;
}

/* Passes the value through its bytes, which must be taken.  Returns their size. */
static size_t pass(struct dm_reg_name_value *value, uint8_t bytes[4 * ROOM])
{
    size_t size = dm_reg_name_encode(value, bytes, 4 * ROOM);
    const char *reason;

    must(size <= 4 * ROOM);
    dm_reg_name_free(value);
    must(dm_reg_name_decode(value, bytes, size, &reason) == 0);
    return size;
}

/* N1: whoever fits holds, unless in doubt. */
static void check_name(const struct dm_reg_name_value *value, const struct dm_reg_step *step)
{
    uint64_t taken = 0;

    for (int i = 0; i < value->hold_count; i++)
        taken += value->entries[i].weight;
    must(taken <= value->capacity);
    must(!value->queue_count || !dm_reg_is_settled(value, step->identity) || value->token + 1 >= DM_TOKEN_LIMIT ||
         taken + value->entries[value->hold_count].weight > value->capacity);
}

/* True if an attempt is there twice, which we never write, and a decoder of 30 000 does not look for. */
static bool has_twins(const struct dm_reg_name_value *value)
{
    int count = value->hold_count + value->queue_count + value->sleeper_count;

    for (int i = 0; i < count; i++) {
        for (int j = 0; j < i; j++) {
            if (value->entries[i].attempt == value->entries[j].attempt)
                return true;
        }
    }
    return false;
}

static void try_name(const uint8_t *bytes, size_t size, enum dm_reg_act act, uint8_t choice, uint8_t other)
{
    struct dm_reg_name_value value;
    struct dm_reg_notice notices[2];
    struct dm_reg_result result = { .notices = notices, .notice_room = 2 };
    struct dm_reg_session_id dead;
    struct dm_reg_owed owed;
    struct dm_reg_step step;
    uint8_t once[4 * ROOM], twice[4 * ROOM];
    const char *reason = NULL;
    size_t size_once;
    bool is_same_twice;

    if (dm_reg_name_decode(&value, bytes, size, &reason) != 0) {
        must(reason && !value.entries);
        return;
    }
    if (size) {
        must(pass(&value, once) == size);
        must(memcmp(once, bytes, size) == 0);
    }
    step = make_step(&value, act, choice, other, &dead, &owed);
    is_same_twice = dm_reg_is_settled(&value, step.identity) && !has_twins(&value) && step.act != DM_REG_FORCE;
    dm_reg_apply(&value, &step, &result);
    if (result.is_changed && !result.is_deleted) {
        value.version.bytes[0] |= 1; /* the caller draws one */
        size_once = pass(&value, once);
        check_name(&value, &step);
        step.upto = result.upto;
        if (is_same_twice && (step.act != DM_REG_SIGNAL || (step.upto && step.most > 1))) {
            dm_reg_apply(&value, &step, &result);
            must(!result.is_changed);
        }
        dm_reg_name_free(&value);
        must(dm_reg_name_decode(&value, once, size_once, &reason) == 0);
        must(pass(&value, twice) == size_once);
    }
    dm_reg_name_free(&value);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    uint8_t raw[ROOM];
    size_t size = read_hex(bytes, length, raw);

    if (size < 2)
        return 0;
    try_small(raw + 2, size - 2);
    for (int act = 0; act < DM_REG_ACT_COUNT; act++)
        try_name(raw + 2, size - 2, (enum dm_reg_act)act, (uint8_t)(raw[0] + 29 * act), (uint8_t)(raw[1] + 37 * act));
    return 0;
}

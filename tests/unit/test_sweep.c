/* SPDX-License-Identifier: BSD-2-Clause */
/* What a sweep ends: S9, N6, C5, N11. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/units.h"
#include "core/hold.h"
#include "registers/sweep.h"

#define HOUR_MS (INT64_C(3600) * 1000)
#define DAY_MS (24 * HOUR_MS)
#define WEEK_MS (7 * DAY_MS)
#define NOW_US (DM_TOKEN_EPOCH_US + 1000 * DAY_MS * 1000)

/* ---- sessions ----------------------------------------------------------------------------- */

/* S9: a lease may be an hour long, and a third of it passes between beats. */
static void test_session_is_killed_an_hour_and_a_lease_after_its_last_beat(void **state)
{
    struct dm_reg_session_value value = { .beat = 1, .lease_ms = 10000 };

    (void)state;
    assert_int_equal(dm_reg_sweep_session(&value, HOUR_MS + 9999, NOW_US), DM_REG_KEEP);
    assert_int_equal(dm_reg_sweep_session(&value, HOUR_MS + 10000, NOW_US), DM_REG_KILL);
    value.lease_ms = HOUR_MS;
    assert_int_equal(dm_reg_sweep_session(&value, HOUR_MS + 10000, NOW_US), DM_REG_KEEP);
    assert_int_equal(dm_reg_sweep_session(&value, -1, NOW_US), DM_REG_KEEP);
}

/* S9: a dead one stays for a day, by the store's age of its value, else by the time in it. */
static void test_dead_session_is_deleted_after_a_day(void **state)
{
    struct dm_reg_session_value value = { .is_dead = true, .dead_us = NOW_US - DAY_MS * 1000 };

    (void)state;
    assert_int_equal(dm_reg_sweep_session(&value, -1, NOW_US - 1000), DM_REG_KEEP);
    assert_int_equal(dm_reg_sweep_session(&value, -1, NOW_US), DM_REG_DELETE);
    assert_int_equal(dm_reg_sweep_session(&value, DAY_MS - 1, NOW_US), DM_REG_KEEP);
    value.dead_us = NOW_US;
    assert_int_equal(dm_reg_sweep_session(&value, DAY_MS, NOW_US), DM_REG_DELETE);
}

/* ---- names -------------------------------------------------------------------------------- */

static struct dm_reg_name_value idle_name(void)
{
    return (struct dm_reg_name_value){ .version = { { 1 } }, .identity = 1, .capacity = 1, .token = 5, .arrival = 2 };
}

/* N6. */
static void test_idle_name_is_deleted_after_a_week(void **state)
{
    struct dm_reg_name_value value = idle_name();

    (void)state;
    assert_int_equal(dm_reg_sweep_name(&value, WEEK_MS - 1, NOW_US), DM_REG_KEEP);
    assert_int_equal(dm_reg_sweep_name(&value, WEEK_MS, NOW_US), DM_REG_DELETE);
    assert_int_equal(dm_reg_sweep_name(&value, -1, NOW_US), DM_REG_KEEP);
}

/* Whoever holds, waits or sleeps needs it, and so does who must be told of a death. */
static void test_name_that_is_in_use_or_not_clean_stays(void **state)
{
    struct dm_reg_table_session session = { .id = { .uuid = { 7 }, .serial = 1, .lease_ms = 900, .identity = 1 } };
    struct dm_reg_entry entry = { .attempt = 9, .thread = 11, .arrival = 1, .weight = 1 };
    struct dm_reg_name_value value = idle_name();

    (void)state;
    value.health = DM_REG_OWNER_DIED;
    assert_int_equal(dm_reg_sweep_name(&value, WEEK_MS, NOW_US), DM_REG_KEEP);
    value.health = DM_REG_NOT_RECOVERABLE;
    assert_int_equal(dm_reg_sweep_name(&value, WEEK_MS, NOW_US), DM_REG_KEEP);
    value.health = DM_REG_CLEAN;
    value.sessions = &session;
    value.session_count = 1;
    value.entries = &entry;
    value.sleeper_count = 1;
    assert_int_equal(dm_reg_sweep_name(&value, WEEK_MS, NOW_US), DM_REG_KEEP);
    value.sleeper_count = 0;
    value.hold_count = 1;
    assert_int_equal(dm_reg_sweep_name(&value, WEEK_MS, NOW_US), DM_REG_KEEP);
}

/* N11: the next token of a deleted name is the clock's, and must be a later one even if the clock is set back. */
static void test_name_with_a_high_token_stays(void **state)
{
    struct dm_reg_name_value value = idle_name();

    (void)state;
    value.token = (uint64_t)(NOW_US - DM_TOKEN_EPOCH_US - WEEK_MS * 1000);
    assert_int_equal(dm_reg_sweep_name(&value, WEEK_MS, NOW_US), DM_REG_KEEP);
    value.token--;
    assert_int_equal(dm_reg_sweep_name(&value, WEEK_MS, NOW_US), DM_REG_DELETE);
    assert_int_equal(dm_reg_sweep_name(&value, WEEK_MS, 0), DM_REG_KEEP); /* the store tells no time */
}

/* ---- bindings ----------------------------------------------------------------------------- */

/* C5, as N6. */
static void test_unused_binding_is_deleted_after_a_week(void **state)
{
    struct dm_reg_name_value mutex = idle_name();

    (void)state;
    assert_int_equal(dm_reg_sweep_binding(&mutex, "c/a", WEEK_MS - 1), DM_REG_KEEP);
    assert_int_equal(dm_reg_sweep_binding(&mutex, "c/a", WEEK_MS), DM_REG_DELETE);
    assert_int_equal(dm_reg_sweep_binding(&mutex, "c/a", -1), DM_REG_KEEP);
    assert_int_equal(dm_reg_sweep_binding(NULL, "c/a", WEEK_MS), DM_REG_DELETE); /* the mutex has gone before */
}

/* A signal reads the binding first: without it, who sleeps would be woken by his next poll only. */
static void test_binding_stays_while_somebody_sleeps(void **state)
{
    struct dm_reg_table_session session = { .id = { .uuid = { 7 }, .serial = 1, .lease_ms = 900, .identity = 1 } };
    struct dm_reg_table_condition conditions[] = { { .name = "c/other" }, { .name = "c/a" } };
    struct dm_reg_entry entries[] = { { .attempt = 8, .arrival = 1, .weight = 1 },
                                      { .attempt = 9, .arrival = 2, .weight = 1, .condition = 1 } };
    struct dm_reg_name_value mutex = idle_name();

    (void)state;
    mutex.sessions = &session;
    mutex.session_count = 1;
    mutex.conditions = conditions;
    mutex.condition_count = 2;
    mutex.entries = entries;
    mutex.hold_count = 1;
    mutex.sleeper_count = 1;
    assert_int_equal(dm_reg_sweep_binding(&mutex, "c/a", WEEK_MS), DM_REG_KEEP);
    assert_int_equal(dm_reg_sweep_binding(&mutex, "c/other", WEEK_MS), DM_REG_DELETE);
}

/* ---- ages by memory ----------------------------------------------------------------------- */

/* A version is as old as our memory of it; another version is new. */
static void test_age_counts_from_the_first_sight_of_a_version(void **state)
{
    static struct dm_reg_sweep_seen seen;
    const struct dm_reg_version one = { { 1 } }, other = { { 2 } };

    (void)state;
    assert_int_equal(dm_reg_sweep_age_ms(&seen, "s/a", &one, DM_NS_PER_S), 0);
    assert_int_equal(dm_reg_sweep_age_ms(&seen, "s/b", &one, 2 * DM_NS_PER_S), 0);
    assert_int_equal(dm_reg_sweep_age_ms(&seen, "s/a", &one, 5 * DM_NS_PER_S), 4000);
    assert_int_equal(dm_reg_sweep_age_ms(&seen, "s/a", &other, 6 * DM_NS_PER_S), 0);
    assert_int_equal(dm_reg_sweep_age_ms(&seen, "s/b", &one, 6 * DM_NS_PER_S), 4000);
}

/* The memory is bounded: the key that was not seen for longest makes room. */
static void test_memory_of_ages_is_bounded(void **state)
{
    static struct dm_reg_sweep_seen seen;
    const struct dm_reg_version version = { { 1 } };
    char key[16];

    (void)state;
    for (int i = 0; i < DM_REG_SWEEP_SEEN; i++) {
        snprintf(key, sizeof key, "s/%d", i);
        dm_reg_sweep_age_ms(&seen, key, &version, (i + 1) * DM_NS_PER_MS);
    }
    assert_int_equal(dm_reg_sweep_age_ms(&seen, "s/0", &version, 1001 * DM_NS_PER_MS), 1000);
    assert_int_equal(dm_reg_sweep_age_ms(&seen, "s/more", &version, 1002 * DM_NS_PER_MS), 0);
    assert_int_equal(seen.count, DM_REG_SWEEP_SEEN);
    assert_int_equal(dm_reg_sweep_age_ms(&seen, "s/0", &version, 1003 * DM_NS_PER_MS), 1002);
    assert_int_equal(dm_reg_sweep_age_ms(&seen, "s/1", &version, 1003 * DM_NS_PER_MS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_session_is_killed_an_hour_and_a_lease_after_its_last_beat),
        cmocka_unit_test(test_dead_session_is_deleted_after_a_day),
        cmocka_unit_test(test_idle_name_is_deleted_after_a_week),
        cmocka_unit_test(test_name_that_is_in_use_or_not_clean_stays),
        cmocka_unit_test(test_name_with_a_high_token_stays),
        cmocka_unit_test(test_unused_binding_is_deleted_after_a_week),
        cmocka_unit_test(test_binding_stays_while_somebody_sleeps),
        cmocka_unit_test(test_age_counts_from_the_first_sight_of_a_version),
        cmocka_unit_test(test_memory_of_ages_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

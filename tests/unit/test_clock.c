/* SPDX-License-Identifier: BSD-2-Clause */
/* base/clock: deadlines are never early, and no caller's number overflows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/range.h"
#include "base/clock.h"
#include "random.h"

#define TEN_YEARS_NS (INT64_C(3650) * 86400 * DM_NS_PER_S)

static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC };

static int64_t read_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * DM_NS_PER_S + now.tv_nsec;
}

static struct dm_deadline deadline_at(clockid_t clock, int64_t ns)
{
    return (struct dm_deadline){ .clock = clock, .at = { .tv_sec = ns / DM_NS_PER_S, .tv_nsec = ns % DM_NS_PER_S } };
}

/* The clock of leases is CLOCK_BOOTTIME, which runs on while the machine sleeps. */
static void test_clock_counts_boottime_when_asked_for_now(void **state)
{
    int64_t before = read_ns(CLOCK_BOOTTIME), now = dm_clock_boot_ns(), after = read_ns(CLOCK_BOOTTIME);

    (void)state;
    assert_true(before <= now && now <= after);
}

/* The time left is never more than the time to the deadline, and never negative. */
static void test_deadline_left_is_exact_when_ahead(void **state)
{
    (void)state;
    for (int i = 0; i < 2000; i++) {
        clockid_t clock = clocks[i % 2];
        int64_t ahead_ns = 1 + (int64_t)(random_word() % (uint64_t)TEN_YEARS_NS);
        int64_t before = read_ns(clock);
        struct dm_deadline deadline = deadline_at(clock, before + ahead_ns);
        int64_t left = dm_deadline_left_ns(&deadline), after = read_ns(clock);

        assert_true(left <= ahead_ns);
        assert_true(left >= ahead_ns - (after - before) || left == 0);
    }
}

/* POSIX scenario 19: the time left is 0 only at or after the deadline, to the nanosecond. */
static void test_deadline_is_over_never_early(void **state)
{
    (void)state;
    for (int i = 0; i < 2000; i++) {
        clockid_t clock = clocks[i % 2];
        int64_t at = read_ns(clock) + random_below(20000);
        struct dm_deadline deadline = deadline_at(clock, at);

        while (dm_deadline_left_ns(&deadline) > 0)
            continue;
        assert_true(read_ns(clock) >= at);
    }
}

/* A deadline in the past, also the earliest possible deadline, has 0 left. */
static void test_deadline_left_is_nothing_when_past(void **state)
{
    static const int64_t seconds[] = { 0, 1, -1, INT64_MIN, INT64_MIN + 1, -1000000 };

    (void)state;
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++) {
        struct dm_deadline deadline = { .clock = CLOCK_REALTIME, .at = { .tv_sec = seconds[i] } };

        assert_int_equal(dm_deadline_left_ns(&deadline), 0);
        deadline.at.tv_nsec = 999999999;
        assert_int_equal(dm_deadline_left_ns(&deadline), 0);
    }
}

/* POSIX scenario 22: the latest possible deadline does not overflow into the past. */
static void test_deadline_left_is_long_when_in_the_farthest_future(void **state)
{
    static const int64_t seconds[] = { INT64_MAX, INT64_MAX - 1, INT64_MAX / DM_NS_PER_S, INT64_MAX / DM_NS_PER_S + 1,
                                       INT32_MAX * INT64_C(1000) };

    (void)state;
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++) {
        for (int c = 0; c < 2; c++) {
            struct dm_deadline deadline = { .clock = clocks[c], .at = { .tv_sec = seconds[i], .tv_nsec = 999999999 } };

            assert_int_equal(dm_deadline_left_ns(&deadline), TEN_YEARS_NS);
        }
    }
}

/* An endless deadline never ends. */
static void test_deadline_left_is_infinite_when_endless(void **state)
{
    (void)state;
    assert_int_equal(dm_deadline_left_ns(&dm_deadline_endless), DM_NEVER);
}

/* A deadline in n milliseconds is never earlier than n milliseconds from now. */
static void test_deadline_in_ms_is_not_early(void **state)
{
    static const int64_t spans[] = { 0, 1, 999, 1000, 1001, 3600000 };

    (void)state;
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++) {
        int64_t before = read_ns(CLOCK_MONOTONIC);
        struct dm_deadline deadline = dm_deadline_in_ms(spans[i]);
        int64_t at = deadline.at.tv_sec * DM_NS_PER_S + deadline.at.tv_nsec;

        assert_int_equal(deadline.clock, CLOCK_MONOTONIC);
        assert_within(deadline.at.tv_nsec, 0, DM_NS_PER_S - 1);
        assert_true(at >= before + spans[i] * DM_NS_PER_MS);
        assert_true(at <= read_ns(CLOCK_MONOTONIC) + spans[i] * DM_NS_PER_MS);
    }
}

/* The sooner of deadline and limit is the deadline itself if the deadline is nearer. */
static void test_deadline_sooner_is_the_deadline_when_it_is_nearer(void **state)
{
    struct dm_deadline near = dm_deadline_in_ms(10), got = dm_deadline_sooner(&near, DM_NS_PER_S);

    (void)state;
    assert_memory_equal(&got.at, &near.at, sizeof near.at);
    assert_int_equal(got.clock, near.clock);
}

/* The sooner is the limit if the limit is nearer, on the deadline's clock: a step of the clock reaches the sleeper. */
static void test_deadline_sooner_is_the_limit_when_the_deadline_is_farther(void **state)
{
    (void)state;
    for (int c = 0; c < 2; c++) {
        struct dm_deadline far = { .clock = clocks[c], .at = { .tv_sec = INT64_MAX } };
        int64_t before = read_ns(clocks[c]);
        struct dm_deadline got = dm_deadline_sooner(&far, 5 * DM_NS_PER_MS);
        int64_t at = got.at.tv_sec * DM_NS_PER_S + got.at.tv_nsec;

        assert_int_equal(got.clock, clocks[c]);
        assert_false(got.is_endless);
        assert_true(at >= before + 5 * DM_NS_PER_MS);
        assert_true(at <= read_ns(clocks[c]) + 5 * DM_NS_PER_MS);
    }
}

/* An endless deadline with a limit ends at the limit, even at a limit beyond every clock. */
static void test_deadline_sooner_ends_when_the_deadline_is_endless(void **state)
{
    struct dm_deadline got = dm_deadline_sooner(&dm_deadline_endless, INT64_MAX - 1);

    (void)state;
    assert_false(got.is_endless);
    assert_within(got.at.tv_nsec, 0, DM_NS_PER_S - 1);
    assert_true(dm_deadline_left_ns(&got) > TEN_YEARS_NS - DM_NS_PER_S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock_counts_boottime_when_asked_for_now),
        cmocka_unit_test(test_deadline_left_is_exact_when_ahead),
        cmocka_unit_test(test_deadline_is_over_never_early),
        cmocka_unit_test(test_deadline_left_is_nothing_when_past),
        cmocka_unit_test(test_deadline_left_is_long_when_in_the_farthest_future),
        cmocka_unit_test(test_deadline_left_is_infinite_when_endless),
        cmocka_unit_test(test_deadline_in_ms_is_not_early),
        cmocka_unit_test(test_deadline_sooner_is_the_deadline_when_it_is_nearer),
        cmocka_unit_test(test_deadline_sooner_is_the_limit_when_the_deadline_is_farther),
        cmocka_unit_test(test_deadline_sooner_ends_when_the_deadline_is_endless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

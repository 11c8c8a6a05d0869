/* SPDX-License-Identifier: BSD-2-Clause */
/* process/claims/stats: the buckets of the histograms, and the holds whose time is known. */
#include "../lib/testlib.h"

#include <string.h>

#include "process/life/runtime.h"

#define US INT64_C(1000)

static struct dm_tenure tenure;
static struct dm_claim claim = { .tenure = &tenure };
static struct dm_stats stats;

/* Counters are written under the state lock. */
static int begin_anew(void **state)
{
    (void)state;
    dm_state_lock();
    memset(&stats, 0, sizeof stats);
    memset(&tenure, 0, sizeof tenure);
    claim.since_ns = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    dm_state_unlock();
    return 0;
}

static uint64_t noted_holds(void)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < DMUTEX_STATS_BUCKETS_NP; i++)
        sum += stats.holds.counts[i];
    return sum;
}

/* A time at the limit of a bucket is inside; a nanosecond more is in the next bucket. */
static void test_bucket_has_its_limit_and_no_more(void **state)
{
    (void)state;
    for (unsigned i = 0; i + 1 < DMUTEX_STATS_BUCKETS_NP; i++) {
        int64_t limit_ns = (int64_t)dm_stats_limit_us(i) * US;

        assert_int_equal(dm_stats_limit_us(i), INT64_C(4) << i);
        assert_int_equal(dm_stats_bucket(limit_ns), i);
        assert_int_equal(dm_stats_bucket(limit_ns + 1), i + 1);
    }
}

/* The first bucket has no time too short, the last no time too long. */
static void test_bucket_is_first_or_last_when_the_time_is_extreme(void **state)
{
    (void)state;
    assert_int_equal(dm_stats_bucket(INT64_MIN), 0);
    assert_int_equal(dm_stats_bucket(-1), 0);
    assert_int_equal(dm_stats_bucket(0), 0);
    assert_int_equal(dm_stats_bucket(INT64_MAX), DMUTEX_STATS_BUCKETS_NP - 1);
}

/* The sum has the nanoseconds; a clock that went backwards adds nothing. */
static void test_note_adds_the_time_and_one_count(void **state)
{
    (void)state;
    dm_stats_note(&stats.holds, 5 * US);
    dm_stats_note(&stats.holds, 3 * US);
    dm_stats_note(&stats.holds, -7 * US);
    assert_int_equal(stats.holds.ns, 8 * US);
    assert_int_equal(stats.holds.counts[0], 2);
    assert_int_equal(stats.holds.counts[1], 1);
    assert_int_equal(noted_holds(), 3);
}

/* The time of a hold is known if the hold began and ended by the state lock. */
static void test_hold_is_noted_once_when_it_began_and_ended_slowly(void **state)
{
    (void)state;
    tenure.number = 6;
    dm_stats_begin_hold(&claim, 100 * US);
    dm_stats_end_hold(&stats, &claim, 104 * US);
    assert_int_equal(stats.holds.ns, 4 * US);
    dm_stats_end_hold(&stats, &claim, 200 * US);
    assert_int_equal(noted_holds(), 1);
}

/* Another hold has come and gone without the lock: nobody knows when the hold that ends began. */
static void test_hold_is_not_noted_when_another_number_ends(void **state)
{
    (void)state;
    dm_stats_begin_hold(&claim, 100 * US);
    tenure.number++;
    dm_stats_end_hold(&stats, &claim, 104 * US);
    assert_int_equal(noted_holds(), 0);
    tenure.number = 0; /* nor any later */
    dm_stats_end_hold(&stats, &claim, 104 * US);
    assert_int_equal(noted_holds(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bucket_has_its_limit_and_no_more, begin_anew, end),
        cmocka_unit_test_setup_teardown(test_bucket_is_first_or_last_when_the_time_is_extreme, begin_anew, end),
        cmocka_unit_test_setup_teardown(test_note_adds_the_time_and_one_count, begin_anew, end),
        cmocka_unit_test_setup_teardown(test_hold_is_noted_once_when_it_began_and_ended_slowly, begin_anew, end),
        cmocka_unit_test_setup_teardown(test_hold_is_not_noted_when_another_number_ends, begin_anew, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* link/retry: when a broken connection is opened again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/range.h"
#include "base/clock.h"
#include "link/retry.h"

#define MS DM_NS_PER_MS
#define DRAWS 1000

static struct dm_retry retry;

/* The longest of many pauses after this many failures, each drawn independently. */
static int64_t longest_ms(unsigned failures, unsigned most_ms)
{
    int64_t longest_ns = 0;

    for (int draw = 0; draw < DRAWS; draw++) {
        retry = (struct dm_retry){ .failures = failures - 1, .most_ms = most_ms };
        dm_retry_note_failure(&retry, 5000 * MS);
        assert_int_equal(retry.failures, failures);
        assert_true(retry.due_ns >= 5000 * MS);
        if (retry.due_ns - 5000 * MS > longest_ns)
            longest_ns = retry.due_ns - 5000 * MS;
    }
    return longest_ns / MS;
}

/* The pause is random up to a limit, which doubles to 250 ms, stays there, and then grows to 2 s. */
static void test_retry_waits_longer_when_there_are_more_failures(void **state)
{
    static const struct {
        unsigned failures;
        int64_t limit_ms;
    } rows[] = { { 1, 10 }, { 2, 20 }, { 5, 160 }, { 6, 250 }, { 64, 250 }, { 65, 500 }, { 80, 2000 }, { 9999, 2000 } };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_within(longest_ms(rows[i].failures, 0), rows[i].limit_ms / 2, rows[i].limit_ms);
}

/* A lower limit holds for every pause, and the server is not asked more often than each 10 ms. */
static void test_retry_keeps_to_a_lower_limit_when_one_is_set(void **state)
{
    (void)state;
    assert_within(longest_ms(9999, 50), 25, 50);
    assert_within(longest_ms(9999, 5), 5, 10);
    assert_within(longest_ms(1, 500), 5, 10);
}

/* A limit that is set while the connection is closed does not wait for the next try as planned before. */
static void test_retry_plans_again_when_the_limit_changes(void **state)
{
    (void)state;
    retry = (struct dm_retry){ .failures = 9999 };
    dm_retry_note_failure(&retry, 0);
    retry.part = 999;
    dm_retry_limit(&retry, 50);
    assert_within(retry.due_ns, 49 * MS, 50 * MS);
    dm_retry_limit(&retry, 0);
    assert_within(retry.due_ns, 1990 * MS, 2000 * MS);
}

/* A connection counts as back once ready for a second; one that answered commands is tried quickly again. */
static void test_retry_forgets_failures_when_the_connection_is_of_use(void **state)
{
    (void)state;
    retry = (struct dm_retry){ .failures = 70, .ready_ns = 100 * MS };
    assert_false(dm_retry_note_use(&retry, 1099 * MS));
    assert_int_equal(retry.failures, 70);
    dm_retry_note_answer(&retry);
    assert_int_equal(retry.failures, 1);
    assert_true(dm_retry_note_use(&retry, 1100 * MS));
    assert_int_equal(retry.failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_retry_waits_longer_when_there_are_more_failures),
        cmocka_unit_test(test_retry_keeps_to_a_lower_limit_when_one_is_set),
        cmocka_unit_test(test_retry_plans_again_when_the_limit_changes),
        cmocka_unit_test(test_retry_forgets_failures_when_the_connection_is_of_use),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* stores/redis/cluster/vouchers: since when enough masters have named a master. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stores/redis/cluster/vouchers.h"

static struct dm_vouchers vouchers;

static int begin(void **state)
{
    (void)state;
    vouchers = (struct dm_vouchers){ 0 };
    return 0;
}

/* A Cluster of one or two masters elects nobody while one is missing. */
static void test_a_majority_must_name_a_master(void **state)
{
    static const unsigned needed[] = { 1, 1, 2, 2, 3, 3, 3, 3 };

    (void)state;
    for (unsigned masters = 0; masters < sizeof needed / sizeof needed[0]; masters++)
        assert_int_equal(dm_vouchers_needed(masters), needed[masters]);
}

static void test_a_master_says_it_once_when_it_says_it_often(void **state)
{
    (void)state;
    dm_vouchers_take(&vouchers, 1, 10);
    dm_vouchers_take(&vouchers, 1, 20);
    dm_vouchers_take(&vouchers, 1, 30);
    assert_int_equal(dm_vouchers_since_ns(&vouchers, 1), 30);
    assert_int_equal(dm_vouchers_since_ns(&vouchers, 2), 0);
    dm_vouchers_take(&vouchers, 2, 25);
    assert_int_equal(dm_vouchers_since_ns(&vouchers, 2), 25);
    assert_int_equal(dm_vouchers_since_ns(&vouchers, 3), 0);
}

static void test_the_newest_count_when_many_masters_answer(void **state)
{
    (void)state;
    for (unsigned by = 1; by <= 9; by++)
        dm_vouchers_take(&vouchers, by, 10 * by);
    assert_int_equal(dm_vouchers_since_ns(&vouchers, 1), 90);
    assert_int_equal(dm_vouchers_since_ns(&vouchers, 2), 80);
    assert_int_equal(dm_vouchers_since_ns(&vouchers, 3), 70);
}

/* An answer that comes late says what was so when the master was asked. */
static void test_late_answers_make_nothing_newer(void **state)
{
    (void)state;
    dm_vouchers_take(&vouchers, 1, 50);
    dm_vouchers_take(&vouchers, 2, 60);
    dm_vouchers_take(&vouchers, 3, 70);
    dm_vouchers_take(&vouchers, 1, 40);
    dm_vouchers_take(&vouchers, 4, 30);
    assert_int_equal(dm_vouchers_since_ns(&vouchers, 3), 50);
    dm_vouchers_take(&vouchers, 4, 65);
    assert_int_equal(dm_vouchers_since_ns(&vouchers, 1), 70);
    assert_int_equal(dm_vouchers_since_ns(&vouchers, 2), 65);
    assert_int_equal(dm_vouchers_since_ns(&vouchers, 3), 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_majority_must_name_a_master, begin),
        cmocka_unit_test_setup(test_a_master_says_it_once_when_it_says_it_often, begin),
        cmocka_unit_test_setup(test_the_newest_count_when_many_masters_answer, begin),
        cmocka_unit_test_setup(test_late_answers_make_nothing_newer, begin),
    };

    return cmocka_run_group_tests_name("vouchers", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* core/tenure: for how long a process may hand a hold on, and the word. */
#include "core/tenure.h"

#include "base/units.h"
#include "hold_clock.h"

static struct dm_tenure tenure;

static int begin_tenure(void **state)
{
    (void)state;
    dm_tenure_init(&tenure, &hold, "nname", 1, 0);
    return 0;
}

static void enter_times(uint32_t times)
{
    tenure.number += times;
}

/* I13: once another process waits, 64 holds more, or 10 ms. */
static void test_tenure_is_over_when_the_bound_is_reached(void **state)
{
    (void)state;
    enter_times(1000);
    assert_false(dm_tenure_is_over(&tenure, at(1000)));
    dm_tenure_bound(&tenure, at(0));
    enter_times(63);
    dm_tenure_bound(&tenure, at(5)); /* the bound begins once */
    assert_false(dm_tenure_is_over(&tenure, at(10) - 1));
    assert_true(dm_tenure_is_over(&tenure, at(10)));
    enter_times(1);
    assert_true(dm_tenure_is_over(&tenure, at(0)));
}

/* The last number of a tenure is given, and no number beyond, because the next token of the store follows. */
static void test_tenure_is_over_when_the_numbers_are_used_up(void **state)
{
    (void)state;
    enter_times(DM_TENURE_NUMBER_MAX - 1);
    assert_false(dm_tenure_is_over(&tenure, at(0)));
    enter_times(1);
    assert_int_equal(tenure.number, (1u << DM_TOKEN_SHIFT) - 1);
    assert_true(dm_tenure_is_over(&tenure, at(0)));
    dm_tenure_bound(&tenure, at(0));
    assert_int_equal(tenure.last, DM_TENURE_NUMBER_MAX);
}

/* Closing reports the thread inside, and leaves the word to the section. */
static void test_word_names_the_thread_inside_when_closed(void **state)
{
    (void)state;
    dm_tenure_publish(&tenure, 77, DM_TENURE_OPEN | DM_TENURE_LOOK);
    assert_int_equal(dm_tenure_inside(&tenure), 77);
    assert_int_equal(dm_tenure_close(&tenure), 77);
    assert_int_equal(tenure.word, 77 << DM_TENURE_SHIFT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_tenure_is_over_when_the_bound_is_reached, begin_tenure),
        cmocka_unit_test_setup(test_tenure_is_over_when_the_numbers_are_used_up, begin_tenure),
        cmocka_unit_test_setup(test_word_names_the_thread_inside_when_closed, begin_tenure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

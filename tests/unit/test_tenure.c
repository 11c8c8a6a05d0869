/* SPDX-License-Identifier: BSD-2-Clause */
/* core/tenure: what becomes of a hold at an unlock, and for how long a process may hand a hold on. */
#include "core/tenure.h"

#include "base/units.h"
#include "hold_clock.h"

static struct dm_tenure tenure;

static int begin_tenure(void **state)
{
    (void)state;
    dm_tenure_init(&tenure, (struct dm_claim *)&hold, "nname", 1, 0);
    return 0;
}

static enum dm_next next(struct dm_leave leave)
{
    leave.now_ns = at(0);
    return dm_tenure_next(&tenure, &leave);
}

static void enter_times(uint32_t times)
{
    tenure.number += times;
}

/* Without a seat and without a linger time the hold goes back to the store. */
static void test_unlock_gives_back_when_nobody_wants_the_hold(void **state)
{
    (void)state;
    assert_int_equal(next((struct dm_leave){ .may_keep = true }), DM_NEXT_GIVE_BACK);
}

/* A seat competes with newcomers; after a robust hold, or if starving, the seat is inside before it runs. */
static void test_unlock_passes_when_robust_or_starving_and_wakes_else(void **state)
{
    (void)state;
    assert_int_equal(next((struct dm_leave){ .has_seat = true }), DM_NEXT_WAKE);
    assert_int_equal(next((struct dm_leave){ .has_seat = true, .is_robust = true }), DM_NEXT_PASS);
    assert_int_equal(next((struct dm_leave){ .has_seat = true, .is_starving = true }), DM_NEXT_PASS);
}

/* A linger time keeps the lease, but not of a robust mutex, nor during the back-off, nor while others wait. */
static void test_unlock_keeps_when_the_object_lingers(void **state)
{
    (void)state;
    tenure.linger_ms = 100;
    assert_int_equal(next((struct dm_leave){ .may_keep = true }), DM_NEXT_KEEP);
    assert_int_equal(next((struct dm_leave){ .may_keep = false }), DM_NEXT_GIVE_BACK);
    assert_int_equal(next((struct dm_leave){ .may_keep = true, .is_robust = true }), DM_NEXT_GIVE_BACK);
    assert_int_equal(next((struct dm_leave){ .may_keep = true, .is_wanted = true }), DM_NEXT_GIVE_BACK);
}

/* I13: once another process waits, 64 holds more, or 10 ms. */
static void test_hold_goes_back_when_the_bound_is_reached(void **state)
{
    const struct dm_leave leave = { .has_seat = true, .is_wanted = true };

    (void)state;
    enter_times(1000);
    dm_tenure_bound(&tenure, at(0));
    assert_int_equal(next(leave), DM_NEXT_WAKE);
    enter_times(63);
    dm_tenure_bound(&tenure, at(5)); /* the bound begins once */
    assert_int_equal(next(leave), DM_NEXT_WAKE);
    assert_false(dm_tenure_is_over(&tenure, at(10) - 1));
    assert_true(dm_tenure_is_over(&tenure, at(10)));
    enter_times(1);
    assert_int_equal(next(leave), DM_NEXT_GIVE_BACK);
}

/* The last number of a tenure is given, and no number beyond, because the next token of the store follows. */
static void test_hold_goes_back_when_the_numbers_are_used_up(void **state)
{
    const struct dm_leave leave = { .has_seat = true, .is_robust = true };

    (void)state;
    enter_times(DM_TENURE_NUMBER_MAX - 1);
    assert_int_equal(next(leave), DM_NEXT_PASS);
    enter_times(1);
    assert_int_equal(tenure.number, (1u << DM_TOKEN_SHIFT) - 1);
    assert_int_equal(next(leave), DM_NEXT_GIVE_BACK);
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
        cmocka_unit_test_setup(test_unlock_gives_back_when_nobody_wants_the_hold, begin_tenure),
        cmocka_unit_test_setup(test_unlock_passes_when_robust_or_starving_and_wakes_else, begin_tenure),
        cmocka_unit_test_setup(test_unlock_keeps_when_the_object_lingers, begin_tenure),
        cmocka_unit_test_setup(test_hold_goes_back_when_the_bound_is_reached, begin_tenure),
        cmocka_unit_test_setup(test_hold_goes_back_when_the_numbers_are_used_up, begin_tenure),
        cmocka_unit_test_setup(test_word_names_the_thread_inside_when_closed, begin_tenure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

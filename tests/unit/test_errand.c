/* SPDX-License-Identifier: BSD-2-Clause */
/* registers/errand: when an operation on a name reads, swaps, pauses, and is settled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/units.h"
#include "registers/errand.h"

#define ROUND_TRIP_NS DM_NS_PER_MS

static struct dm_reg_copy copy;
static struct dm_reg_errand errand;
static int64_t now_ns;
static uint64_t chance; /* of the pauses */
static bool is_release; /* after which the attempt is over */

static int begin(void **state)
{
    (void)state;
    copy = (struct dm_reg_copy){ 0 };
    now_ns = DM_NS_PER_S;
    chance = UINT64_MAX;
    return 0;
}

static enum dm_reg_errand_want wants(void)
{
    return dm_reg_errand_wants(&errand, now_ns);
}

static void step(enum dm_reg_errand_event event)
{
    dm_reg_errand_step(&errand, &copy, event, now_ns, ROUND_TRIP_NS, chance);
}

/* Does what is wanted, which must be this, and takes the answer. */
static void go(enum dm_reg_errand_want want, enum dm_reg_errand_event event)
{
    assert_int_equal(wants(), want);
    dm_reg_errand_send(&errand);
    assert_int_equal(wants(), DM_REG_ERRAND_WAIT);
    assert_int_equal(dm_reg_errand_due_ns(&errand), DM_NEVER);
    step(event);
}

static void apply(bool writes)
{
    assert_int_equal(wants(), DM_REG_ERRAND_APPLY);
    dm_reg_errand_applied(&errand, &copy, writes, is_release);
}

static void begin_acquire(void)
{
    is_release = false;
    dm_reg_errand_init(&errand, &copy, true, false);
}

static void begin_release(void)
{
    is_release = true;
    dm_reg_errand_init(&errand, &copy, false, false);
}

/* An acquire whose swap has no answer: the name is unsettled from then on. */
static void leave_unsettled(void)
{
    begin_acquire();
    go(DM_REG_ERRAND_READ, DM_REG_ERRAND_EV_READ);
    apply(true);
    go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_UNKNOWN);
    assert_true(copy.is_unsettled);
}

/* ---- the usual way ----------------------------------------------------------------------- */

/* The first operation on a name reads; later ones begin with the copy. */
static void test_errand_reads_only_without_a_copy(void **state)
{
    (void)state;
    begin_acquire();
    go(DM_REG_ERRAND_READ, DM_REG_ERRAND_EV_READ);
    apply(true);
    go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_DONE);
    assert_int_equal(wants(), DM_REG_ERRAND_SETTLED);
    begin_release();
    apply(true);
    go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_DONE);
    assert_int_equal(wants(), DM_REG_ERRAND_SETTLED);
}

/* N5: "it is held", or "nothing to undo", by an old copy is no answer. */
static void test_answer_without_a_swap_needs_a_read(void **state)
{
    (void)state;
    copy.is_known = true;
    begin_release();
    apply(false);
    go(DM_REG_ERRAND_READ, DM_REG_ERRAND_EV_READ);
    apply(false);
    assert_int_equal(wants(), DM_REG_ERRAND_SETTLED);
}

/* A poll is about the present: it does not begin with a copy. */
static void test_poll_reads_although_there_is_a_copy(void **state)
{
    (void)state;
    copy.is_known = true;
    is_release = false;
    dm_reg_errand_init(&errand, &copy, false, true);
    assert_int_equal(wants(), DM_REG_ERRAND_READ);
}

/* A conflict that brings the newer value costs no read. */
static void test_conflict_reads_only_if_it_brings_nothing(void **state)
{
    (void)state;
    copy.is_known = true;
    begin_release();
    apply(true);
    go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_BROUGHT);
    apply(true);
    go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_CONFLICT);
    assert_false(copy.is_known);
    go(DM_REG_ERRAND_READ, DM_REG_ERRAND_EV_READ);
    apply(false);
    assert_int_equal(wants(), DM_REG_ERRAND_SETTLED);
}

/* ---- N5 ---------------------------------------------------------------------------------- */

/* N5: after a swap without an answer the errand reads, and goes on: the step is the same however often it is done. */
static void test_errand_reads_after_a_swap_without_an_answer(void **state)
{
    (void)state;
    leave_unsettled();
    assert_false(copy.is_known);
    go(DM_REG_ERRAND_READ, DM_REG_ERRAND_EV_READ);
    apply(true);
    go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_DONE);
    assert_false(copy.is_unsettled);
}

/* N5: the read shows nothing of the attempt, but its swap may still come: a release writes. */
static void test_end_of_an_attempt_writes_while_a_swap_is_unsettled(void **state)
{
    (void)state;
    leave_unsettled();
    begin_release();
    go(DM_REG_ERRAND_READ, DM_REG_ERRAND_EV_READ);
    apply(false);
    go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_DONE);
    assert_int_equal(wants(), DM_REG_ERRAND_SETTLED);
    assert_false(copy.is_unsettled);
}

/* N5: looking settles nothing, nor does a conflict. */
static void test_name_stays_unsettled_until_a_swap_is_done(void **state)
{
    (void)state;
    leave_unsettled();
    is_release = false;
    dm_reg_errand_init(&errand, &copy, false, true);
    go(DM_REG_ERRAND_READ, DM_REG_ERRAND_EV_READ);
    apply(false);
    assert_int_equal(wants(), DM_REG_ERRAND_SETTLED);
    assert_true(copy.is_unsettled);
    begin_release();
    apply(false);
    go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_BROUGHT);
    assert_true(copy.is_unsettled);
    apply(false);
    go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_UNKNOWN);
    assert_true(copy.is_unsettled);
}

/* N5: a read without an answer says nothing about swaps. */
static void test_read_without_an_answer_is_repeated_after_a_pause(void **state)
{
    (void)state;
    begin_acquire();
    go(DM_REG_ERRAND_READ, DM_REG_ERRAND_EV_UNKNOWN);
    assert_false(copy.is_unsettled);
    assert_int_equal(wants(), DM_REG_ERRAND_WAIT);
    now_ns = dm_reg_errand_due_ns(&errand);
    go(DM_REG_ERRAND_READ, DM_REG_ERRAND_EV_READ);
}

/* A copy that somebody has swapped since would be refused: it is read first, and then as good as any. */
static void test_errand_reads_first_when_the_copy_is_old(void **state)
{
    (void)state;
    copy.is_known = copy.is_old = true;
    begin_release();
    go(DM_REG_ERRAND_READ, DM_REG_ERRAND_EV_READ);
    assert_false(copy.is_old);
    apply(true);
    go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_DONE);
    assert_int_equal(wants(), DM_REG_ERRAND_SETTLED);
    begin_release();
    assert_int_equal(wants(), DM_REG_ERRAND_APPLY);
    copy.is_old = true;
    apply(true);
    go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_BROUGHT);
    assert_false(copy.is_old);
}

/* D3: what was unsettled in other data is forgotten with them. */
static void test_nothing_is_unsettled_in_other_data(void **state)
{
    (void)state;
    leave_unsettled();
    dm_reg_copy_forget(&copy);
    begin_release();
    go(DM_REG_ERRAND_READ, DM_REG_ERRAND_EV_READ);
    apply(false);
    assert_int_equal(wants(), DM_REG_ERRAND_SETTLED);
}

/* A store that refuses is asked again later, beginning with a read. */
static void test_errand_reads_again_later_when_the_store_refuses(void **state)
{
    (void)state;
    copy.is_known = true;
    begin_release();
    apply(true);
    dm_reg_errand_send(&errand);
    dm_reg_errand_refused(&errand, now_ns + DM_NS_PER_S);
    assert_int_equal(wants(), DM_REG_ERRAND_WAIT);
    assert_int_equal(dm_reg_errand_due_ns(&errand), now_ns + DM_NS_PER_S);
    now_ns += DM_NS_PER_S;
    go(DM_REG_ERRAND_READ, DM_REG_ERRAND_EV_READ);
    apply(true);
    go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_DONE);
    assert_int_equal(wants(), DM_REG_ERRAND_SETTLED);
}

/* ---- V6 ---------------------------------------------------------------------------------- */

/* V6: the longest pauses after the i-th conflict, in round trips; then the copy is old. */
static void test_acquire_pauses_longer_after_each_conflict(void **state)
{
    static const int64_t most[] = { 1, 4, 9, 16, 25, 32, 32 };

    (void)state;
    for (size_t i = 0; i < sizeof most / sizeof most[0]; i++) {
        begin(state);
        copy.is_known = true;
        begin_acquire();
        for (size_t j = 0; j <= i; j++) {
            now_ns += DM_NS_PER_S;
            chance = (uint64_t)most[j] * ROUND_TRIP_NS; /* the longest of all: see pause_ns() */
            if (wants() == DM_REG_ERRAND_READ)
                go(DM_REG_ERRAND_READ, DM_REG_ERRAND_EV_READ);
            apply(true);
            go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_BROUGHT);
        }
        assert_int_equal(dm_reg_errand_due_ns(&errand), now_ns + most[i] * ROUND_TRIP_NS);
        assert_int_equal(wants(), DM_REG_ERRAND_WAIT);
        now_ns = dm_reg_errand_due_ns(&errand);
        assert_int_equal(wants(), DM_REG_ERRAND_READ);
    }
}

/* V6: no pause is longer than that, whatever chance says. */
static void test_pause_has_a_limit(void **state)
{
    (void)state;
    copy.is_known = true;
    begin_acquire();
    for (unsigned i = 0; i < 200; i++) {
        now_ns += DM_NS_PER_S;
        chance = (uint64_t)i * ROUND_TRIP_NS / 3;
        if (wants() == DM_REG_ERRAND_READ)
            go(DM_REG_ERRAND_READ, DM_REG_ERRAND_EV_READ);
        apply(true);
        go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_CONFLICT);
        assert_true(dm_reg_errand_due_ns(&errand) <= now_ns + DM_REG_PAUSE_MOST * ROUND_TRIP_NS);
    }
}

/* V6: the pause is a matter of chance, down to none; without one the value that came is used. */
static void test_acquire_may_pause_not_at_all(void **state)
{
    (void)state;
    chance = 0;
    copy.is_known = true;
    begin_acquire();
    apply(true);
    go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_BROUGHT);
    apply(true);
}

/* V9: while nobody waits a value that came is used at once, three times; then comes a pause, and a read. */
static void test_brought_value_is_used_at_once_while_nobody_waits(void **state)
{
    (void)state;
    copy.is_known = true;
    begin_acquire();
    errand.is_next = true;
    for (int i = 0; i < 12; i++) {
        chance = 5 * ROUND_TRIP_NS;
        apply(true);
        go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_BROUGHT);
        if (i % 4 != 3)
            continue;
        assert_int_equal(wants(), DM_REG_ERRAND_WAIT);
        now_ns = dm_reg_errand_due_ns(&errand);
        go(DM_REG_ERRAND_READ, DM_REG_ERRAND_EV_READ);
    }
}

/* V6: others wait while the name is reserved, so a pause would only keep them waiting. */
static void test_acquire_does_not_pause_when_the_name_is_reserved(void **state)
{
    (void)state;
    copy.is_known = copy.is_old = true;
    begin_acquire();
    go(DM_REG_ERRAND_READ, DM_REG_ERRAND_EV_READ);
    for (int i = 0; i < 50; i++) {
        apply(true);
        copy.is_old = true;
        go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_RESERVED);
        assert_false(copy.is_old);
    }
    apply(true);
    go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_DONE);
    assert_int_equal(wants(), DM_REG_ERRAND_SETTLED);
}

/* V6: a release goes on at once, however often it meets others. */
static void test_release_never_pauses(void **state)
{
    (void)state;
    copy.is_known = true;
    begin_release();
    for (int i = 0; i < 50; i++) {
        apply(true);
        go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_BROUGHT);
    }
    apply(true);
}

/* ---- V9 ---------------------------------------------------------------------------------- */

/* V9: whoever joins knocks if it has been refused before and nobody waits; a release never does. */
static void test_second_swap_knocks(void **state)
{
    (void)state;
    copy.is_known = true;
    begin_acquire();
    errand.is_next = true;
    assert_false(dm_reg_errand_knocks(&errand));
    apply(true);
    go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_BROUGHT);
    assert_true(dm_reg_errand_knocks(&errand));
    errand.is_next = false;
    assert_false(dm_reg_errand_knocks(&errand));
    apply(true);
    go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_DONE);
    begin_release();
    apply(true);
    go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_BROUGHT);
    assert_false(dm_reg_errand_knocks(&errand));
}

/* V9: after a release that has heard a knock the process joins again later, and releases as ever. */
static void test_release_that_hears_a_knock_lets_others_join(void **state)
{
    (void)state;
    copy.is_known = true;
    begin_release();
    apply(true);
    go(DM_REG_ERRAND_SWAP, DM_REG_ERRAND_EV_KNOCKED);
    assert_int_equal(wants(), DM_REG_ERRAND_SETTLED);
    begin_release();
    apply(true);
    begin_acquire();
    assert_int_equal(wants(), DM_REG_ERRAND_WAIT);
    assert_int_equal(dm_reg_errand_due_ns(&errand), now_ns + 2 * ROUND_TRIP_NS);
    now_ns = dm_reg_errand_due_ns(&errand);
    apply(true);
}

#define TEST(test) cmocka_unit_test_setup(test, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_errand_reads_only_without_a_copy),
        TEST(test_answer_without_a_swap_needs_a_read),
        TEST(test_poll_reads_although_there_is_a_copy),
        TEST(test_conflict_reads_only_if_it_brings_nothing),
        TEST(test_errand_reads_after_a_swap_without_an_answer),
        TEST(test_end_of_an_attempt_writes_while_a_swap_is_unsettled),
        TEST(test_name_stays_unsettled_until_a_swap_is_done),
        TEST(test_read_without_an_answer_is_repeated_after_a_pause),
        TEST(test_errand_reads_first_when_the_copy_is_old),
        TEST(test_nothing_is_unsettled_in_other_data),
        TEST(test_errand_reads_again_later_when_the_store_refuses),
        TEST(test_acquire_pauses_longer_after_each_conflict),
        TEST(test_pause_has_a_limit),
        TEST(test_acquire_may_pause_not_at_all),
        TEST(test_brought_value_is_used_at_once_while_nobody_waits),
        TEST(test_second_swap_knocks),
        TEST(test_release_that_hears_a_knock_lets_others_join),
        TEST(test_acquire_does_not_pause_when_the_name_is_reserved),
        TEST(test_release_never_pauses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

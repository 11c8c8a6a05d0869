/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Promise P3: replicas that lag are promoted repeatedly, while the addresses stay the same, and no two threads own a
 * mutex.  Without a new server's grace two threads do own a mutex, which shows that the promotions are dangerous and
 * the grace is needed.  DM_SEED repeats a run as far as the kernel's scheduler does; DMUTEX_TEST_PROMOTIONS sets the
 * number of promotions.
 */
#include "runs.h"

#define IN_A_ROUND 5
#define ENOUGH 100 /* promotions without a second owner: then promotions are harmless */

static void promote(bool hands_on)
{
    runs_strike(hands_on, FAULTS_OF_PROMOTION, IN_A_ROUND, 0);
}

static void test_no_two_own_at_once_when_replicas_are_promoted(void **state)
{
    long promotions = count_from("DMUTEX_TEST_PROMOTIONS", 20, 100);

    (void)state;
    stage_begin(&stage, true);
    while (stage.promotions < promotions)
        promote(tally.rounds % 2);
    runs_assert_nothing_found();
    round_check_end(&stage);
}

static void promote_until_two_own(bool hands_on)
{
    stage_begin(&stage, false);
    while (!runs_have_two_owners() && stage.promotions < ENOUGH)
        promote(hands_on);
    runs_assert_two_owners();
    assert_int_equal(tally.stuck, 0);
}

static void test_two_own_when_there_is_no_grace(void **state)
{
    (void)state;
    promote_until_two_own(false);
}

static void test_two_own_when_there_is_no_grace_and_leases_are_kept(void **state)
{
    (void)state;
    promote_until_two_own(true);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        /*
         * In this order: only the last test uses the library in the test's own process, which does not fork after that.
         */
        RUNS_TEST(test_two_own_when_there_is_no_grace),
        RUNS_TEST(test_two_own_when_there_is_no_grace_and_leases_are_kept),
        RUNS_TEST(test_no_two_own_at_once_when_replicas_are_promoted),
    };

    runs_prepare(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

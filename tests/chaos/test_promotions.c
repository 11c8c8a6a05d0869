/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Promise P3: replicas that lag are promoted, again and again, behind the hosts' unchanged addresses, and no two
 * threads own a mutex.  Without a new server's grace two threads do own a mutex, which shows that the promotions
 * are dangerous, and the grace is needed.
 *
 * DM_SEED repeats a run as far as the kernel's scheduler does; DMUTEX_TEST_PROMOTIONS sets the number of promotions.
 */
#include <stdio.h>
#include <time.h>

#include "round.h"

#define IN_A_ROUND 5
#define ENOUGH 100 /* promotions without a second owner: then promotions are harmless */

static uint64_t seed;
static struct stage stage;
static struct tally tally;

static void promote(bool hands_on)
{
    stage_seed(&stage, seed + (uint64_t)tally.rounds);
    round_run(&stage, &tally, hands_on, FAULTS_OF_PROMOTION, IN_A_ROUND, 0);
}

static void test_nobody_owns_beside_another_when_replicas_are_promoted(void **state)
{
    long promotions = count_from("DMUTEX_TEST_PROMOTIONS", 20, 100);

    (void)state;
    stage_begin(&stage, true);
    while (stage.promotions < promotions)
        promote(tally.rounds % 2);
    tally_print(&tally, &stage);
    assert_int_equal(verdict_sum(&tally.verdict), 0);
    assert_int_equal(tally.stuck, 0);
    round_check_end(&stage);
}

static void promote_until_two_own(bool hands_on)
{
    stage_begin(&stage, false);
    while (tally.verdict.found[FOUND_OVERLAP] == 0 && stage.promotions < ENOUGH)
        promote(hands_on);
    tally_print(&tally, &stage);
    assert_true(tally.verdict.found[FOUND_OVERLAP] > 0);
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

static int begin(void **state)
{
    (void)state;
    tally = (struct tally){ .rounds = 0 };
    print_message("# DM_SEED=%llu\n", (unsigned long long)seed);
    return 0;
}

static int end(void **state)
{
    (void)state;
    stage_end(&stage);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        /* In this order: only the last test uses the library in the test's process, which forks no more after that. */
        cmocka_unit_test_setup_teardown(test_two_own_when_there_is_no_grace, begin, end),
        cmocka_unit_test_setup_teardown(test_two_own_when_there_is_no_grace_and_leases_are_kept, begin, end),
        cmocka_unit_test_setup_teardown(test_nobody_owns_beside_another_when_replicas_are_promoted, begin, end),
    };

    stage_isolate(argc);
    test_begin(argc, argv);
    seed = (uint64_t)count_from("DM_SEED", (long)time(NULL), (long)time(NULL));
    return cmocka_run_group_tests(tests, NULL, NULL);
}

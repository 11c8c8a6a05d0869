/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Promise P3 while no connection ends: master and replica change places, new connections lead to the new master, and
 * open connections stay.  A replica hears the messages published by the master, so an inbox left on a replica heard
 * grants that were not counted; and a server that becomes the master again has the same run id as before.
 *
 * DM_SEED repeats a run as far as the kernel's scheduler does; DMUTEX_TEST_PROMOTIONS sets the number of changes.
 */
#include "runs.h"

#define IN_A_ROUND 4

static void change_places(unsigned faults, bool has_grace)
{
    long switches = count_from("DMUTEX_TEST_PROMOTIONS", 5, 50);

    stage_begin(&stage, has_grace);
    stage_link(&stage);
    while (stage.promotions < switches) {
        runs_strike(((uint64_t)tally.rounds + seed) % 2, faults, IN_A_ROUND, 0);
    }
    runs_assert_nothing_found();
}

static void test_no_two_own_at_once_when_the_server_fails_over(void **state)
{
    (void)state;
    change_places(FAULTS_OF_FAILOVER, true);
}

/* No two threads own a mutex when servers change places by FAILOVER, also without grace: no write is lost. */
static void test_no_two_own_at_once_when_the_server_fails_over_without_grace(void **state)
{
    (void)state;
    change_places(FAULTS_OF_FAILOVER, false);
}

static void test_no_two_own_at_once_when_servers_are_switched_by_hand(void **state)
{
    (void)state;
    change_places(FAULTS_OF_SWITCH, true);
    round_check_end(&stage);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        /*
         * In this order: only the last test uses the library in the test's own process, which does not fork after that.
         */
        RUNS_TEST(test_no_two_own_at_once_when_the_server_fails_over),
        RUNS_TEST(test_no_two_own_at_once_when_the_server_fails_over_without_grace),
        RUNS_TEST(test_no_two_own_at_once_when_servers_are_switched_by_hand),
    };

    runs_prepare(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

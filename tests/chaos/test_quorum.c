/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Promises on a quorum: a minority of the servers ends, stops, refuses, is flushed, or comes back empty or with older
 * data, or all servers come back empty at once; no two threads own a mutex, no token comes back, and no waiter waits
 * forever.  With clocks that are hours apart, tokens rise while no server loses data; when servers come back empty with
 * another clock, tokens may go back, but no two threads own a mutex.  Two threads do own a mutex when servers come back
 * without grace, and when the clocks of a minority are set forward while the servers run.  DM_SEED repeats a run as far
 * as the kernel's scheduler does; DMUTEX_TEST_QUORUM sets the number of faults.
 */
#include <signal.h>

#include "masters.h"
#include "runs.h"

#define IN_A_ROUND 5
#define ENOUGH 200 /* faults without a second owner: then they are harmless */
#define TIMES "command_timeout=200&connect_timeout=200"

static void strike(unsigned faults)
{
    runs_strike(tally.rounds / 2 % 2, faults, IN_A_ROUND, 0);
}

static void must_two_own(int servers, unsigned faults, bool has_grace)
{
    stage_begin_quorum(&stage, servers, has_grace, has_grace ? "?" TIMES : "?grace=off&" TIMES);
    while (!runs_have_two_owners() && nemesis_sum(&tally.nemesis) < ENOUGH)
        strike(faults);
    runs_assert_two_owners();
}

static void test_two_own_when_there_is_no_grace(void **state)
{
    (void)state;
    must_two_own(3, FAULTS_OF_RETURNS, false);
}

/* While threads compete, a hold may have only as many servers as it needs; on those its lease ends an hour too soon. */
static void test_two_own_when_the_clocks_of_a_minority_are_set_forward(void **state)
{
    (void)state;
    must_two_own(5, FAULTS_OF_STEPS, true);
}

static void strike_often(unsigned faults, long count)
{
    while (nemesis_sum(&tally.nemesis) < count)
        strike(faults);
}

static void must_nobody_own_beside_another(int servers, long count)
{
    stage_begin_quorum(&stage, servers, true, "?" TIMES);
    strike_often(FAULTS_OF_MASTERS | FAULTS_OF_RETURNS | FAULTS_OF_NETWORKS | FAULTS_OF_PROCESSES, count);
    runs_assert_nothing_found();
}

static void test_no_two_own_at_once_on_three_servers(void **state)
{
    (void)state;
    must_nobody_own_beside_another(3, count_from("DMUTEX_TEST_QUORUM", 25, 250));
}

static void test_no_two_own_at_once_on_five_servers(void **state)
{
    (void)state;
    must_nobody_own_beside_another(5, count_from("DMUTEX_TEST_QUORUM", 15, 150));
}

static void test_tokens_rise_when_clocks_are_apart(void **state)
{
    (void)state;
    stage_begin_quorum(&stage, 3, true, "?" TIMES);
    masters_set_clocks_apart(&stage);
    strike_often(FAULTS_OF_MASTERS | FAULTS_OF_NETWORKS | FAULTS_OF_PROCESSES,
                 count_from("DMUTEX_TEST_QUORUM", 10, 150));
    runs_assert_nothing_found();
}

static void test_no_two_own_at_once_when_servers_come_back_with_wrong_clocks(void **state)
{
    const long *found = tally.verdict.found;

    (void)state;
    stage_begin_quorum(&stage, 3, true, "?" TIMES);
    strike_often(FAULTS_OF_CLOCKS | FAULTS_OF_PROCESSES, count_from("DMUTEX_TEST_QUORUM", 10, 100));
    tally_print(&tally, &stage);
    assert_int_equal(tally.stuck, 0);
    assert_int_equal(verdict_sum(&tally.verdict) - found[FOUND_TOKEN] - found[FOUND_STALE], 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        RUNS_TEST(test_two_own_when_there_is_no_grace),
        RUNS_TEST(test_two_own_when_the_clocks_of_a_minority_are_set_forward),
        RUNS_TEST(test_no_two_own_at_once_on_three_servers),
        RUNS_TEST(test_no_two_own_at_once_on_five_servers),
        RUNS_TEST(test_tokens_rise_when_clocks_are_apart),
        RUNS_TEST(test_no_two_own_at_once_when_servers_come_back_with_wrong_clocks),
    };

    runs_prepare(argc, argv);
    signal(SIGPIPE, SIG_IGN); /* a killed server closes the connections of the test, too */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

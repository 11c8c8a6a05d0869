/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Promises on a Cluster: slots with held mutexes, queues and conditions move again and again, replicas take masters'
 * places, and no two threads own a mutex, no token comes back, and no wake-up is lost.  Two threads own a mutex when
 * shards fail over and there is no grace, and when a move loses keys.
 *
 * DM_SEED repeats a run as far as the kernel's scheduler does; DMUTEX_TEST_MOVES sets the number of moves, and
 * DMUTEX_TEST_SHARDS the number of failovers.
 */
#include <signal.h>

#include "runs.h"

#define MOVES_IN_A_ROUND 5
#define IN_A_ROUND 2
#define CALLS 500       /* in a round: some after the grace, between two failovers */
#define ENOUGH 150      /* failovers, or moves, without a second owner: then they are harmless */
#define LONG_LEASE 1500 /* longer than a failover by force takes */
#define TIMES "command_timeout=200&connect_timeout=200&switch=400"

static void strike(unsigned faults, int count, int calls)
{
    runs_strike(tally.rounds % 2, faults, count, calls);
}

static void test_two_own_when_there_is_no_grace(void **state)
{
    (void)state;
    stage_begin_cluster(&stage, CLUSTER_FAST_MS, false, "?grace=off&" TIMES);
    stage.lease_ms = LONG_LEASE;
    while (!runs_have_two_owners() && stage.promotions < ENOUGH)
        strike(FAULTS_OF_FORCE, IN_A_ROUND, 0);
    runs_assert_two_owners();
}

static void test_two_own_when_a_move_loses_keys(void **state)
{
    (void)state;
    stage_begin_cluster(&stage, CLUSTER_CALM_MS, false, "?grace=off&" TIMES);
    while (!runs_have_two_owners() && stage.moves < ENOUGH)
        strike(FAULTS_OF_LOST_KEYS, IN_A_ROUND, 0);
    runs_assert_two_owners();
}

/* No data is lost: all waiters come by themselves. */
static void test_nothing_is_lost_when_slots_move(void **state)
{
    long moves = count_from("DMUTEX_TEST_MOVES", 20, 10000);

    (void)state;
    stage_begin_cluster(&stage, CLUSTER_CALM_MS, true, "?" TIMES);
    while (stage.moves < moves)
        strike(FAULTS_OF_SLOTS | (tally.rounds % 2 ? FAULTS_OF_PROCESSES : 0), MOVES_IN_A_ROUND, 0);
    runs_assert_nothing_found();
}

static void test_no_two_own_at_once_when_shards_fail_over(void **state)
{
    long failovers = count_from("DMUTEX_TEST_SHARDS", 10, 100);

    (void)state;
    stage_begin_cluster(&stage, CLUSTER_FAST_MS, true, "?" TIMES);
    stage.lease_ms = LONG_LEASE;
    while (stage.promotions < failovers)
        strike(FAULTS_OF_SHARDS | FAULTS_OF_FORCE | (tally.rounds % 2 ? FAULTS_OF_PROCESSES : 0), IN_A_ROUND, CALLS);
    runs_assert_nothing_found();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        RUNS_TEST(test_two_own_when_there_is_no_grace),
        RUNS_TEST(test_two_own_when_a_move_loses_keys),
        RUNS_TEST(test_nothing_is_lost_when_slots_move),
        RUNS_TEST(test_no_two_own_at_once_when_shards_fail_over),
    };

    runs_prepare(argc, argv);
    signal(SIGPIPE, SIG_IGN); /* a node that is replaced may close the connections of the test, too */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many processes on a real server, with faults of all kinds in the processes, the networks and the server: mutexes
 * stay exclusive as promised, tokens rise, and no wake-up is lost.  In every other round the processes hand the mutexes
 * on from thread to thread, and keep leases.
 *
 * DM_SEED repeats a run as far as the kernel's scheduler does; DM_ROUND=n runs only round n of the run, counted
 * from 0.  DMUTEX_TEST_ROUNDS sets the number of rounds, and DMUTEX_TEST_CALLS the least number of calls in a round.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "round.h"

#define FAULTS 21 /* of a round, at least */

static struct stage stage;

/*
 * Returns the groups of faults for a round.  In rounds without older copies of the data all waiters return without help
 * from the test.  A signal that was only written on a server that is lost is lost with it, and no promise covers it.
 */
static unsigned faults_of(long round)
{
    static const unsigned faults[] = {
        FAULTS_OF_PROCESSES | FAULTS_OF_NETWORKS | FAULTS_OF_SERVER,
        FAULTS_OF_PROCESSES | FAULTS_OF_NETWORKS | FAULTS_OF_SERVER | FAULTS_OF_RESTART,
        FAULTS_OF_PROCESSES | FAULTS_OF_NETWORKS | FAULTS_OF_SERVER | FAULTS_OF_RESTART | FAULTS_OF_COPIES |
            FAULTS_OF_PROMOTION,
    };

    return faults[round % 3];
}

static void test_promises_hold_under_real_faults(void **state)
{
    static struct tally tally;
    long rounds = count_from("DMUTEX_TEST_ROUNDS", 3, 99), only = count_from("DM_ROUND", -1, -1);
    int calls = (int)count_from("DMUTEX_TEST_CALLS", 5000, 8000);
    uint64_t seed = (uint64_t)count_from("DM_SEED", (long)time(NULL), (long)time(NULL));

    (void)state;
    print_message("# DM_SEED=%llu, %s\n", (unsigned long long)seed,
                  stage.has_device ? "a network namespace of its own" : "no network namespace");
    for (long i = 0; i < rounds; i++) {
        stage_seed(&stage, seed + (uint64_t)i);
        if (only < 0 || only == i)
            round_run(&stage, &tally, ((uint64_t)i + seed) % 2, faults_of(i), FAULTS, calls);
    }
    tally_print(&tally, &stage);
    assert_int_equal(verdict_sum(&tally.verdict), 0);
    assert_int_equal(tally.stuck, 0);
    round_check_handed(&tally);
    round_check_end(&stage);
}

static int begin(void **state)
{
    (void)state;
    stage_begin(&stage, true);
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
        cmocka_unit_test(test_promises_hold_under_real_faults),
    };

    stage_isolate(argc);
    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin, end);
}

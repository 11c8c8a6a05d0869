/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Promise P3 with Sentinel: the sentinels promote replicas again and again, replaced masters go on as writable masters
 * for seconds, and no two threads own a mutex.  Without the lookout's word and without grace two threads do.
 *
 * DM_SEED repeats a run as far as the kernel's scheduler does; DMUTEX_TEST_SWITCHES sets the number of switches.
 */
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "group.h"
#include "link/link.h"
#include "redis/lookout.h"
#include "round.h"

#define IN_A_ROUND 3
#define ENOUGH 30 /* switches without a second owner: then switches are harmless */
#define TIMES "command_timeout=200&connect_timeout=200&switch=400"

static uint64_t seed;
static struct stage stage;
static struct tally tally;

/* ---- the control: processes that ask no sentinel whether the master is still the master ---- */

static bool is_blind;

bool __real_dm_lookout_is_fresh(struct dm_lookout *lookout, uint64_t number);
bool __wrap_dm_lookout_is_fresh(struct dm_lookout *lookout, uint64_t number);
void __real_dm_link_close(struct dm_link *link, const char *reason);
void __wrap_dm_link_close(struct dm_link *link, const char *reason);

bool __wrap_dm_lookout_is_fresh(struct dm_lookout *lookout, uint64_t number)
{
    return is_blind || __real_dm_lookout_is_fresh(lookout, number);
}

void __wrap_dm_link_close(struct dm_link *link, const char *reason)
{
    if (!is_blind)
        __real_dm_link_close(link, reason);
}

/* ------------------------------------------------------------------------------------------- */

static void strike(unsigned faults)
{
    stage_seed(&stage, seed + (uint64_t)tally.rounds);
    round_run(&stage, &tally, tally.rounds % 2, faults, IN_A_ROUND, 0);
}

static void test_two_own_when_nobody_asks_the_sentinels(void **state)
{
    (void)state;
    is_blind = true;
    stage_begin_group(&stage, false, "?grace=off&" TIMES);
    while (tally.verdict.found[FOUND_OVERLAP] == 0 && stage.promotions < ENOUGH)
        strike(FAULTS_OF_GROUP | FAULTS_OF_PROCESSES);
    tally_print(&tally, &stage);
    assert_true(tally.verdict.found[FOUND_OVERLAP] > 0);
}

static void test_nobody_owns_beside_another_when_sentinels_switch(void **state)
{
    long switches = count_from("DMUTEX_TEST_SWITCHES", 4, 200);

    (void)state;
    stage_begin_group(&stage, true, "?" TIMES);
    while (stage.promotions < switches)
        strike(tally.rounds % 2 ? FAULTS_OF_GROUP | FAULTS_OF_PROCESSES : FAULTS_OF_GROUP);
    tally_print(&tally, &stage);
    assert_int_equal(verdict_sum(&tally.verdict), 0);
    assert_int_equal(tally.stuck, 0);
}

static int begin(void **state)
{
    (void)state;
    is_blind = false;
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
        cmocka_unit_test_setup_teardown(test_two_own_when_nobody_asks_the_sentinels, begin, end),
        cmocka_unit_test_setup_teardown(test_nobody_owns_beside_another_when_sentinels_switch, begin, end),
    };

    stage_isolate(argc);
    test_begin(argc, argv);
    signal(SIGPIPE, SIG_IGN); /* sentinels close the connections of the test, too, at any moment */
    seed = (uint64_t)count_from("DM_SEED", (long)time(NULL), (long)time(NULL));
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Promise P3 with Sentinel: the sentinels promote replicas repeatedly, replaced masters stay writable masters for
 * seconds, and no two threads own a mutex.  Without the master watch's word and without grace two threads do.  DM_SEED
 * repeats a run as far as the kernel's scheduler does; DMUTEX_TEST_SWITCHES sets the number of switches.
 */
#include <signal.h>

#include "../lib/hosts.h"
#include "group.h"
#include "link/link.h"
#include "runs.h"
#include "stores/redis/sentinel/master_watch.h"

#define IN_A_ROUND 3
#define ENOUGH 30 /* switches without a second owner: then switches are harmless */
#define TIMES "command_timeout=200&connect_timeout=200&switch=400"

/* ---- the control: processes that ask no sentinel whether the master is still the master ---- */

static bool is_blind;

bool __real_dm_master_watch_is_fresh(struct dm_master_watch *master_watch, uint64_t number);
bool __wrap_dm_master_watch_is_fresh(struct dm_master_watch *master_watch, uint64_t number);
void __real_dm_link_close(struct dm_link *link, const char *reason);
void __wrap_dm_link_close(struct dm_link *link, const char *reason);

bool __wrap_dm_master_watch_is_fresh(struct dm_master_watch *master_watch, uint64_t number)
{
    return is_blind || __real_dm_master_watch_is_fresh(master_watch, number);
}

void __wrap_dm_link_close(struct dm_link *link, const char *reason)
{
    if (!is_blind)
        __real_dm_link_close(link, reason);
}

/* ------------------------------------------------------------------------------------------- */

/* 0: the machine allows no hosts. */
static unsigned faults_of_hosts;

static void strike(unsigned faults)
{
    runs_strike(tally.rounds % 2, faults | faults_of_hosts, IN_A_ROUND, 0);
}

static void test_two_own_when_nobody_asks_the_sentinels(void **state)
{
    (void)state;
    is_blind = true;
    stage_begin_group(&stage, false, "?grace=off&" TIMES);
    while (!runs_have_two_owners() && stage.promotions < ENOUGH)
        strike(FAULTS_OF_GROUP | FAULTS_OF_PROCESSES);
    runs_assert_two_owners();
}

static void test_no_two_own_at_once_when_sentinels_switch(void **state)
{
    long switches = count_from("DMUTEX_TEST_SWITCHES", 4, 200);

    (void)state;
    is_blind = false;
    stage_begin_group(&stage, true, "?" TIMES);
    while (stage.promotions < switches)
        strike(tally.rounds % 2 ? FAULTS_OF_GROUP | FAULTS_OF_PROCESSES : FAULTS_OF_GROUP);
    runs_assert_nothing_found();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        RUNS_TEST(test_two_own_when_nobody_asks_the_sentinels),
        RUNS_TEST(test_no_two_own_at_once_when_sentinels_switch),
    };

    runs_prepare(argc, argv);
    if (hosts_begin())
        faults_of_hosts = FAULTS_OF_HOSTS;
    else
        print_message("# hosts need network namespaces and ip(8), package iproute2: nobody is cut off\n");
    signal(SIGPIPE, SIG_IGN); /* sentinels close the connections of the test, too, at any moment */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Promises P0 to P4 on PostgreSQL: servers, sessions, processes and networks end, stop and fail; standbys are promoted;
 * backups are restored.  DM_SEED repeats a run as far as the kernel's scheduler does; DMUTEX_TEST_PROMOTIONS sets the
 * number of promotions, and DMUTEX_TEST_ROUNDS of rounds without.
 */
#include "../registers/pgserver.h"
#include "databases.h"
#include "runs.h"

#define IN_A_ROUND 2
#define FAULTS 15 /* of a round without promotions */
#define ENOUGH 40 /* promotions or restorations without a second owner: then they are harmless */

#define USUAL_FAULTS (FAULTS_OF_PROCESSES | FAULTS_OF_NETWORKS | FAULTS_OF_DATABASE)

static void strike(unsigned faults, int count)
{
    runs_strike(tally.rounds % 2, faults, count, 0);
}

static void strike_until_two_own(unsigned faults)
{
    while (!runs_have_two_owners() && stage.promotions + stage.restarts < ENOUGH)
        strike(faults, IN_A_ROUND);
    runs_assert_two_owners();
}

/* The control: a standby that lacks the last locks */
static void test_two_own_when_there_is_no_grace(void **state)
{
    (void)state;
    databases_begin(&stage, false, false, "&dmutex.grace=off");
    strike_until_two_own(FAULTS_OF_UNWAITED);
}

/* The control: a copy of the tables that looks like the present ones */
static void test_two_own_when_a_backup_keeps_its_epoch(void **state)
{
    (void)state;
    databases_begin(&stage, true, false, "");
    strike_until_two_own(FAULTS_OF_BAD_BACKUP);
}

static void test_no_two_own_at_once_when_commits_are_lost(void **state)
{
    long promotions = count_from("DMUTEX_TEST_PROMOTIONS", 3, 100);

    (void)state;
    databases_begin(&stage, true, false, "");
    while (stage.promotions < promotions)
        strike(FAULTS_OF_UNWAITED | FAULTS_OF_RETURN | FAULTS_OF_BACKUP | (tally.rounds % 2 ? USUAL_FAULTS : 0),
               IN_A_ROUND);
    runs_assert_nothing_found();
    databases_check_end(&stage);
}

static void test_nothing_is_lost_when_commits_wait_for_the_standby(void **state)
{
    long promotions = count_from("DMUTEX_TEST_PROMOTIONS", 3, 100);

    (void)state;
    databases_begin(&stage, true, true, "");
    while (stage.promotions < promotions)
        strike(FAULTS_OF_WAITED | (tally.rounds % 2 ? USUAL_FAULTS : FAULTS_OF_PROCESSES), IN_A_ROUND);
    runs_assert_nothing_found();
    databases_check_end(&stage);
}

/* The control: the same, and commits wait for nobody */
static void test_something_is_lost_when_commits_do_not_wait(void **state)
{
    (void)state;
    databases_begin(&stage, true, false, "");
    while (verdict_sum(&tally.verdict) == 0 && tally.stuck == 0 && stage.promotions < ENOUGH)
        strike(FAULTS_OF_WAITED, IN_A_ROUND);
    tally_print(&tally, &stage);
    assert_true(verdict_sum(&tally.verdict) > 0);
}

static void test_nothing_is_lost_when_servers_and_sessions_fail(void **state)
{
    long rounds = count_from("DMUTEX_TEST_ROUNDS", 1, 40);

    (void)state;
    databases_begin(&stage, true, false, "");
    while (tally.rounds < rounds)
        strike(USUAL_FAULTS, FAULTS);
    runs_assert_nothing_found();
    databases_check_end(&stage);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        RUNS_TEST(test_two_own_when_there_is_no_grace),
        RUNS_TEST(test_two_own_when_a_backup_keeps_its_epoch),
        RUNS_TEST(test_no_two_own_at_once_when_commits_are_lost),
        RUNS_TEST(test_something_is_lost_when_commits_do_not_wait),
        RUNS_TEST(test_nothing_is_lost_when_commits_wait_for_the_standby),
        RUNS_TEST(test_nothing_is_lost_when_servers_and_sessions_fail),
    };

    runs_prepare(argc, argv);
    if (!pgserver_is_possible()) {
        puts("1..0 # SKIP no PostgreSQL is installed (package postgresql)");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

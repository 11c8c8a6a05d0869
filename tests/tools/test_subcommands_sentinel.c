/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Subcommands of dmutex(1) on a group of Sentinel: in good order, with a sentinel down, and with mistakes in the URL.
 */
#include "tool.h"

#include <stdlib.h>
#include <string.h>

#include "../lib/sentinels.h"

#define OPTIONS "?grace=off&command_timeout=2000"

static struct sentinels group;

static int begin_group(void **state)
{
    sentinels_start(&group, "");
    return tool_setup(state);
}

static int end_group(void **state)
{
    sentinels_end(&group);
    return tool_teardown(state);
}

static void test_subcommands_find_the_master_when_the_group_works(void **state)
{
    char wanted[100];

    (void)state;
    tool_use_subcommands(sentinels_url(&group, OPTIONS));
    command_run("DMUTEX_URL=$URL exec $dmutex doctor");
    assert_status(0);
    snprintf(wanted, sizeof wanted, "ok    sentinel     127.0.0.1:%d says 127.0.0.1:%d, with 2 replicas and 2 other",
             group.sentinel[2]->port, group.data[0]->port);
    assert_output(wanted);
    assert_output("ok    sentinels    3 of 3 agree on the master\n");
    assert_output("ok    failover     a master that is silent for 2000 ms is replaced");
    assert_output("ok    role ");
    assert_output("ok    file ");
    assert_output("(A8)");
}

/* The sentinel keeps naming another master, because the epoch of its failover is the same. */
static void test_doctor_says_how_to_unite_sentinels_that_name_two_masters(void **state)
{
    struct side *other = group.sentinel[2]->side;
    long long epoch = sentinels_epoch(&group);
    char wanted[100];

    (void)state;
    assert_int_equal(epoch, 0);
    assert_true(side_try(other, "SENTINEL REMOVE mymaster"));
    assert_true(side_try(other, "SENTINEL MONITOR mymaster 127.0.0.1 %d 2", group.data[1]->port));
    assert_true(sentinels_are_parted(&group));
    command_run("DMUTEX_URL=$URL exec $dmutex doctor");
    assert_status(0);
    snprintf(wanted, sizeof wanted, "warn  sentinels    they name 2 masters; 127.0.0.1:%d differs\n",
             group.sentinel[2]->port);
    assert_output(wanted);
    assert_output("SENTINEL FAILOVER mymaster, at a sentinel of the majority");
    assert_output("ok    sentinels    2 of 3 agree on the master\n");
    wait_until(sentinels_order_failover(&group));
    sentinels_await_switch(&group, epoch);
}

static void test_show_names_the_last_holder_when_the_master_was_replaced(void **state)
{
    struct actor *last = actor_start_at(sentinels_url(&group, OPTIONS));
    char wanted[100];

    (void)state;
    snprintf(wanted, sizeof wanted, "  last      test_subcommands_sentinel (process %d) on ", (int)actor_pid(last));
    actor_do(last, "0", "lock tw/last");
    actor_do(last, "0", "unlock tw/last");
    wait_until(side_int(group.data[sentinels_master(&group, 0)]->side, "WAIT 2 100") == 2);
    sentinels_switch(&group);
    command_run("DMUTEX_URL=$URL exec $dmutex show tw/last");
    assert_status(0);
    assert_output(wanted);
    assert_output("  end       unlocked\n");
    actor_end(last);
}

static void test_doctor_warns_when_sentinels_replace_a_master_too_soon(void **state)
{
    (void)state;
    for (int i = 0; i < SENTINELS; i++)
        assert_true(side_try(group.sentinel[i]->side, "SENTINEL SET mymaster down-after-milliseconds 500"));
    command_run("DMUTEX_URL=$URL exec $dmutex doctor");
    assert_status(0);
    assert_output("warn  failover     a master that is silent for 500 ms is replaced");
    assert_output("set down-after-milliseconds to 2000 or more");
    for (int i = 0; i < SENTINELS; i++)
        assert_true(side_try(group.sentinel[i]->side, "SENTINEL SET mymaster down-after-milliseconds 2000"));
}

/* Finding 130: a server configured by its command line restarts in its first role. */
static void test_doctor_warns_when_a_server_of_the_group_has_no_file(void **state)
{
    struct server *master = server_start_with(true, NULL), *sentinel;
    char text[200];

    (void)state;
    snprintf(text, sizeof text, "sentinel monitor mymaster 127.0.0.1 %d 1\n", master->port);
    sentinel = server_start_by_file(text, "--sentinel");
    snprintf(text, sizeof text, "redis+sentinel://127.0.0.1:%d/mymaster" OPTIONS, sentinel->port);
    tool_use_subcommands(text);
    command_run("DMUTEX_URL=$URL exec $dmutex doctor");
    assert_status(0);
    assert_output("warn  file         the server has no configuration file");
    assert_output("-> start all servers of the group with a file that they may write");
    server_end(sentinel);
    server_end(master);
}

static void test_doctor_warns_and_subcommands_go_on_when_a_sentinel_is_down(void **state)
{
    (void)state;
    server_kill(group.sentinel[0]);
    tool_use_subcommands(sentinels_url(&group, OPTIONS));
    command_run("DMUTEX_URL=$URL exec $dmutex doctor");
    assert_status(0);
    assert_output("warn  sentinel     127.0.0.1:");
    assert_output("Connection refused");
    assert_output("-> start the sentinel, or take it out of the URL");
    assert_output("ok    sentinels    2 of 3 agree on the master\n");
    server_restart(group.sentinel[0]);
}

/* Sets a rule, or several with blanks between them. */
static void set_user(const char *user, const char *rules)
{
    char copy[400], *rest = copy, *rule;

    snprintf(copy, sizeof copy, "%s", rules);
    while ((rule = strsep(&rest, " "))) {
        for (int i = 0; i < SENTINELS; i++)
            assert_true(side_try(group.sentinel[i]->side, "ACL SETUSER %s %s", user, rule));
    }
}

/* Without the sentinels' ids there is no lock; without their messages a failover is noticed later. */
static void test_doctor_names_the_rights_that_the_sentinels_user_lacks(void **state)
{
    char wanted[100];

    (void)state;
    tool_use_subcommands(sentinels_url(&group, OPTIONS));
    set_user("default", "-sentinel|myid");
    command_run("DMUTEX_URL=$URL exec $dmutex doctor");
    set_user("default", "+@all");
    assert_status(77);
    snprintf(wanted, sizeof wanted, "fail  rights       127.0.0.1:%d: the sentinels' user lacks +sentinel|myid\n",
             group.sentinel[0]->port);
    assert_output(wanted);
    assert_output("-> dmutex acl prints the rules of the sentinels' user\n");
    set_user("default", "-subscribe -sentinel|master");
    command_run("DMUTEX_URL=$URL exec $dmutex doctor");
    set_user("default", "+@all");
    assert_status(0);
    assert_output("the sentinels' user lacks +sentinel|master +subscribe &+switch-master\n");
    assert_output("ok    sentinels    3 of 3 agree on the master\n");
}

/* The rules that acl prints are enough. */
static void test_doctor_finds_all_rights_when_the_sentinels_user_has_those_of_acl(void **state)
{
    char rules[400], path[64];

    (void)state;
    command_run(
        "DMUTEX_URL=$URL $dmutex acl 2>&1 >$F/line | sed -n 's/.* on >PASSWORD \\(resetchannels\\)/\\1/p' | tr -d "
        "'\\n'");
    assert_output("+sentinel|get-master-addr-by-name");
    snprintf(rules, sizeof rules, "%.399s", ran.output);
    set_user("scout", "on >hidden");
    set_user("scout", rules);
    snprintf(path, sizeof path, "%s/password", group.data[0]->folder);
    command_run("echo hidden >%s && DMUTEX_URL=\"$URL&sentinel_user=scout&sentinel_password_file=%s\" "
                "exec $dmutex doctor",
                path, path);
    assert_status(0);
    assert_output("ok    sentinels    3 of 3 agree on the master\n");
    assert_null(strstr(ran.output, "lacks"));
    command_run("echo other >%s && DMUTEX_URL=\"$URL&sentinel_user=scout&sentinel_password_file=%s\" "
                "exec $dmutex doctor",
                path, path);
    assert_status(77);
    assert_output("-> correct sentinel_user and sentinel_password_file in the URL");
}

static void test_doctor_counts_a_sentinel_once_when_it_is_listed_by_two_names(void **state)
{
    char url[200], wanted[100];

    (void)state;
    snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d,localhost:%d,127.0.0.1:%d/mymaster" OPTIONS,
             group.sentinel[0]->port, group.sentinel[0]->port, group.sentinel[1]->port);
    tool_use_subcommands(url);
    command_run("DMUTEX_URL=$URL exec $dmutex doctor");
    assert_status(0);
    snprintf(wanted, sizeof wanted, "localhost:%d is the sentinel 127.0.0.1:%d, and has one vote\n",
             group.sentinel[0]->port, group.sentinel[0]->port);
    assert_output(wanted);
    assert_output("ok    sentinels    2 of 3 agree on the master\n");
}

static void test_subcommands_say_so_when_the_sentinels_know_no_such_master(void **state)
{
    char url[200];

    (void)state;
    snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/others" OPTIONS,
             group.sentinel[0]->port, group.sentinel[1]->port, group.sentinel[2]->port);
    tool_check_refusals(url, " knows no master named others\n",
                        "the sentinels know no master named \"others\": correct the name in the URL");
    assert_output("-> correct the name in the URL");
}

static void test_subcommands_say_so_when_a_server_stands_in_the_place_of_sentinels(void **state)
{
    char url[200];

    (void)state;
    snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d/mymaster" OPTIONS, group.data[0]->port);
    tool_check_refusals(
        url, "fail  sentinel     127.0.0.1:", "is not a sentinel: a server with data is listed as a sentinel");
    assert_output("-> the URL must list sentinels");
}

/* The sentinels have a login of their own, different from the data servers'. */
static void test_doctor_asks_for_the_sentinels_login_when_they_want_one(void **state)
{
    struct server *sentinel = server_start_with(true, NULL); /* answers NOAUTH, as a sentinel does */

    (void)state;
    side_text(sentinel->side, "CONFIG SET requirepass s3cret");
    command_run("DMUTEX_URL='redis+sentinel://127.0.0.1:%d/mymaster?command_timeout=5000' exec $dmutex doctor",
                sentinel->port);
    assert_status(77);
    assert_output("fail  login        127.0.0.1:");
    assert_output("-> give the sentinels' own login by sentinel_user and sentinel_password_file in the URL\n");
    server_end(sentinel);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_subcommands_find_the_master_when_the_group_works),
        cmocka_unit_test(test_doctor_says_how_to_unite_sentinels_that_name_two_masters),
        cmocka_unit_test(test_show_names_the_last_holder_when_the_master_was_replaced),
        cmocka_unit_test(test_doctor_warns_when_sentinels_replace_a_master_too_soon),
        cmocka_unit_test(test_doctor_warns_when_a_server_of_the_group_has_no_file),
        cmocka_unit_test(test_doctor_warns_and_subcommands_go_on_when_a_sentinel_is_down),
        cmocka_unit_test(test_doctor_asks_for_the_sentinels_login_when_they_want_one),
        cmocka_unit_test(test_doctor_names_the_rights_that_the_sentinels_user_lacks),
        cmocka_unit_test(test_doctor_finds_all_rights_when_the_sentinels_user_has_those_of_acl),
        cmocka_unit_test(test_doctor_counts_a_sentinel_once_when_it_is_listed_by_two_names),
        cmocka_unit_test(test_subcommands_say_so_when_the_sentinels_know_no_such_master),
        cmocka_unit_test(test_subcommands_say_so_when_a_server_stands_in_the_place_of_sentinels),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, end_group);
}

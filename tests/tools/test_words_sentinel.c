/* SPDX-License-Identifier: BSD-2-Clause */
/* Words of dmutex(1) on a group of Sentinel: as it should be, with a sentinel down, and with mistakes in the URL. */
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

static int begin_test(void **state)
{
    (void)state;
    setenv("URL", sentinels_url(&group, OPTIONS), 1);
    return 0;
}

static void use_all_words(void)
{
    struct actor *holder = actor_start_at(sentinels_url(&group, OPTIONS));

    actor_do(holder, "0", "lock ts/held");
    command_run("DMUTEX_URL=$URL exec $dmutex list");
    assert_status(0);
    assert_output("ts/held");
    command_run("DMUTEX_URL=$URL exec $dmutex show ts/held");
    assert_status(0);
    assert_output("  held by   ");
    command_run("DMUTEX_URL=$URL exec $dmutex top");
    assert_status(0);
    assert_output("1 held, 0 waiting\n");
    command_run("DMUTEX_URL=$URL exec $dmutex run -n ts/held true");
    assert_status(75);
    actor_do(holder, "0", "unlock ts/held");
    command_run("DMUTEX_URL=$URL exec $dmutex run ts/held echo is run");
    assert_status(0);
    assert_output("is run\n");
    actor_end(holder);
}

static void test_words_find_the_master_when_the_group_is_well(void **state)
{
    char wanted[100];

    (void)state;
    use_all_words();
    command_run("DMUTEX_URL=$URL exec $dmutex doctor");
    assert_status(0);
    snprintf(wanted, sizeof wanted, "ok    sentinel     127.0.0.1:%d says 127.0.0.1:%d, with 2 replicas and 2 other",
             group.sentinel[2]->port, group.data[0]->port);
    assert_output(wanted);
    assert_output("ok    sentinels    3 of 3 agree on the master\n");
    assert_output("ok    failover     a master that is silent for 500 ms is replaced");
    assert_output("ok    role ");
    assert_output("(A8)");
}

static void test_doctor_warns_and_words_go_on_when_a_sentinel_is_down(void **state)
{
    (void)state;
    server_kill(group.sentinel[0]);
    use_all_words();
    command_run("DMUTEX_URL=$URL exec $dmutex doctor");
    assert_status(0);
    assert_output("warn  sentinel     127.0.0.1:");
    assert_output("Connection refused");
    assert_output("-> start the sentinel, or take it out of the URL");
    assert_output("ok    sentinels    2 of 3 agree on the master\n");
    server_restart(group.sentinel[0]);
}

/* Asserts what doctor prints, and that the other words end with 69 and the sentence. */
static void check_refusals(const char *found, const char *advice, const char *sentence)
{
    static const char *const words[] = { "list", "show ts/x", "top", "run ts/x touch $F/ran" };

    command_run("DMUTEX_URL=$URL exec $dmutex doctor");
    assert_status(69);
    assert_output(found);
    assert_output(advice);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        command_run("DMUTEX_URL=$URL exec $dmutex %s", words[i]);
        assert_status(69);
        assert_errors(sentence);
    }
    assert_false(tool_has("ran"));
}

static void test_words_say_so_when_the_sentinels_know_no_such_master(void **state)
{
    char url[200];

    (void)state;
    snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/others" OPTIONS,
             group.sentinel[0]->port, group.sentinel[1]->port, group.sentinel[2]->port);
    setenv("URL", url, 1);
    check_refusals(" knows no master named others\n", "-> correct the name in the URL",
                   "the sentinels know no master named \"others\": correct the name in the URL");
}

static void test_words_say_so_when_a_server_stands_in_the_place_of_sentinels(void **state)
{
    char url[200];

    (void)state;
    snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d/mymaster" OPTIONS, group.data[0]->port);
    setenv("URL", url, 1);
    check_refusals("fail  sentinel     127.0.0.1:", "-> the list in the URL is of sentinels",
                   "is no sentinel: a server with data stands in the place of sentinels");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_words_find_the_master_when_the_group_is_well, begin_test),
        cmocka_unit_test_setup(test_doctor_warns_and_words_go_on_when_a_sentinel_is_down, begin_test),
        cmocka_unit_test_setup(test_words_say_so_when_the_sentinels_know_no_such_master, begin_test),
        cmocka_unit_test_setup(test_words_say_so_when_a_server_stands_in_the_place_of_sentinels, begin_test),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, end_group);
}

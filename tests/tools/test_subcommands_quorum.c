/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dmutex(1) on a quorum of three servers: doctor reports each fault and whether a majority is left; lists show names.
 */
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/impostor.h"

#define SERVERS 3
#define TIMES "command_timeout=1000&connect_timeout=1000"

static struct server *servers[SERVERS];
static bool is_down[SERVERS];

static int begin_group(void **state)
{
    for (int i = 0; i < SERVERS; i++)
        servers[i] = server_start_with(true, NULL);
    return tool_setup(state);
}

static int end_group(void **state)
{
    for (int i = 0; i < SERVERS; i++)
        server_end(servers[i]);
    return tool_teardown(state);
}

static void set_url(const char *options)
{
    char url[300];

    snprintf(url, sizeof url, "redis+quorum://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d?%s", servers[0]->port,
             servers[1]->port, servers[2]->port, options);
    setenv("URL", url, 1);
}

static void set_url_with_impostor(int index, const char *times)
{
    int ports[SERVERS] = { servers[0]->port, servers[1]->port, servers[2]->port };
    char url[300];

    ports[index] = impostor_port();
    snprintf(url, sizeof url, "redis+quorum://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d?grace=off&%s", ports[0], ports[1],
             ports[2], times);
    setenv("URL", url, 1);
}

static int begin(void **state)
{
    (void)state;
    set_url("grace=off&" TIMES);
    return 0;
}

static void kill_one(int i)
{
    server_kill(servers[i]);
    is_down[i] = true;
}

static int end(void **state)
{
    (void)state;
    for (int i = 0; i < SERVERS; i++) {
        if (is_down[i])
            server_restart(servers[i]);
        is_down[i] = false;
    }
    return 0;
}

static void examine(void)
{
    command_run("DMUTEX_URL=$URL exec $dmutex doctor");
}

/* A line of the output: its first words, the address of a server, and the rest. */
static const char *line_of(const char *words, int i, const char *behind)
{
    static char line[400];

    snprintf(line, sizeof line, "%s127.0.0.1:%d%s", words, servers[i]->port, behind);
    return line;
}

static void assert_no_output(const char *text)
{
    if (strstr(ran.output, text))
        fail_msg("%s", ran.output);
}

/* ---- doctor ------------------------------------------------------------------------------ */

static void test_doctor_finds_no_fault_when_all_servers_work(void **state)
{
    (void)state;
    set_url(TIMES);
    examine();
    assert_status(0);
    for (int i = 0; i < SERVERS; i++)
        assert_output(line_of("ok    server       ", i, ": answers\n"));
    assert_output(line_of("ok    rights       ", 0, ": all that locks need\n"));
    assert_no_output(line_of("rights       ", 1, ""));
    assert_output("ok    quorum       3 of 3 servers can be used, and a lock needs 2\n");
    assert_no_output("\nwarn ");
    assert_no_output("\nfail ");
    assert_output("P0    yes ");
    assert_output(
        "P3    yes          the loss of servers creates no second holder: if fewer than half of them fail at ");
}

static void test_doctor_warns_when_no_more_server_may_fail(void **state)
{
    (void)state;
    kill_one(1);
    examine();
    assert_status(0);
    assert_output(line_of("warn  server       ", 1, ": cannot be opened (Connection refused)\n"));
    assert_output("-> start the server: until then fewer others may fail\n");
    assert_output("warn  quorum       2 of 3 servers can be used, and a lock needs 2\n");
    assert_output("P0    yes ");
}

static void test_doctor_fails_when_no_majority_is_left(void **state)
{
    (void)state;
    kill_one(0);
    kill_one(1);
    command_run("DMUTEX_URL=$URL exec $dmutex doctor --json");
    assert_status(1);
    tool_check_json();
    assert_output(
        "{\"check\":\"quorum\",\"result\":\"fail\",\"text\":\"1 of 3 servers can be used, and a lock needs 2\"");
    assert_output("\"promises\":{\"P0\":null,");
    kill_one(2);
    examine();
    assert_status(69);
    assert_output("fail  quorum       0 of 3 servers can be used, and a lock needs 2\n");
}

/* A server that may evict locks has no vote. */
static void test_doctor_names_the_server_that_has_a_fault(void **state)
{
    (void)state;
    side_text(servers[2]->side, "CONFIG SET maxmemory-policy allkeys-lru");
    examine();
    side_text(servers[2]->side, "CONFIG SET maxmemory-policy noeviction");
    assert_status(1);
    assert_output(line_of("fail  memory       ", 2, ": maxmemory-policy is allkeys-lru"));
    assert_output("warn  quorum       2 of 3 servers can be used, and a lock needs 2\n");
    assert_output("P0    no ");
}

/* Nor has one that refuses writes, or one that is not a server at all. */
static void test_doctor_does_not_count_a_server_that_keeps_no_locks(void **state)
{
    (void)state;
    side_text(servers[2]->side, "CONFIG SET min-replicas-to-write 1");
    examine();
    side_text(servers[2]->side, "CONFIG SET min-replicas-to-write 0");
    assert_status(1);
    assert_output(line_of("fail  writes       ", 2, ": the server refuses to write"));
    assert_output("warn  quorum       2 of 3 servers can be used, and a lock needs 2\n");
    impostor_begin(servers[0]->folder);
    impostor_be(MANNER_BABBLING, "+OK\r\n", 5);
    set_url_with_impostor(0, TIMES);
    examine();
    impostor_end();
    assert_status(1);
    assert_output("answers INFO with no text");
    assert_output("warn  quorum       2 of 3 servers can be used, and a lock needs 2\n");
}

/* Another name may lead to the same server. */
static void test_doctor_finds_a_server_that_is_named_twice(void **state)
{
    char url[300];

    (void)state;
    snprintf(url, sizeof url, "redis+quorum://127.0.0.1:%d,localhost:%d,127.0.0.1:%d?grace=off&" TIMES,
             servers[0]->port, servers[0]->port, servers[1]->port);
    setenv("URL", url, 1);
    examine();
    assert_status(1);
    snprintf(url, sizeof url,
             "fail  server       localhost:%d: is the same server as 127.0.0.1:%d: the two fail together\n",
             servers[0]->port, servers[0]->port);
    assert_output(url);
    assert_output("warn  quorum       2 of 3 servers can be used, and a lock needs 2\n");
}

/* ---- the other subcommands --------------------------------------------------------------- */

static void test_all_subcommands_work_when_all_servers_do(void **state)
{
    (void)state;
    tool_use_subcommands(getenv("URL"));
}

static void assert_shown(const char *subcommand, const char *name, const char *text)
{
    command_run("DMUTEX_URL=$URL exec $dmutex %s %s", subcommand, name);
    assert_status(0);
    assert_output(text);
}

static void assert_unreachable(const char *arguments)
{
    command_run("DMUTEX_URL=$URL exec $dmutex %s", arguments);
    assert_status(69);
    if (!strstr(ran.errors, "of 3 servers cannot be used now"))
        fail_msg("%s", ran.errors);
}

static void test_lists_show_the_names_when_a_server_is_down(void **state)
{
    struct actor *holder = actor_start_at(getenv("URL"));

    (void)state;
    kill_one(0);
    actor_do(holder, "0", "lock q/held");
    assert_shown("list", "", "q/held");
    assert_shown("show", "q/held", "held by");
    kill_one(1);
    assert_unreachable("list");
    assert_unreachable("show q/held");
    assert_unreachable("token q/held");
    assert_unreachable("wait -w 1 q/held");
    kill_one(2);
    assert_unreachable("list");
    actor_kill(holder);
    actor_end(holder);
}

static bool is_on_all(const char *name)
{
    bool is_everywhere = true;

    for (int i = 0; i < SERVERS; i++)
        is_everywhere &= side_says(servers[i]->side, "1", "EXISTS %s", key_of("lock", name));
    return is_everywhere;
}

/* The first server has lost its data, as by a restart.  The others know the locks. */
static void test_lists_show_what_a_majority_says_when_a_server_is_empty(void **state)
{
    struct actor *holder = actor_start_at(getenv("URL"));
    char token[32];

    (void)state;
    actor_do(holder, "0", "init q/kept lease=60000");
    actor_do(holder, "0", "lock q/kept");
    snprintf(token, sizeof token, "%lld\n", actor_value(holder, "token q/kept"));
    wait_until(is_on_all("q/kept")); /* a majority is enough to hold */
    side_text(servers[0]->side, "FLUSHALL");
    assert_shown("list", "", "q/kept");
    assert_shown("show", "q/kept", "held by");
    assert_shown("token", "q/kept", token);
    command_run("DMUTEX_URL=$URL exec $dmutex wait -w 0.1 q/kept");
    assert_status(75);
    actor_do(holder, "0", "unlock q/kept");
    actor_end(holder);
}

/* Only the first server has granted the lock, as to an attempt that has yet to ask the others: nobody holds it. */
static void test_lists_show_no_holder_when_only_one_server_has_granted(void **state)
{
    struct actor *other;
    char url[120];

    (void)state;
    snprintf(url, sizeof url, "redis://127.0.0.1:%d?grace=off&" TIMES, servers[0]->port);
    other = actor_start_at(url);
    actor_do(other, "0", "lock q/alone");
    assert_shown("show", "q/alone", "free");
    command_run("DMUTEX_URL=$URL exec $dmutex list");
    assert_status(0);
    assert_no_output("held by");
    actor_do(other, "0", "unlock q/alone");
    actor_end(other);
}

static bool is_on_none(const char *name)
{
    int count = 0;

    for (int i = 0; i < SERVERS; i++)
        count += !side_says(servers[i]->side, "0", "EXISTS %s", key_of("lock", name));
    return count == 0;
}

/* A single server may have been the last to grant to somebody else. */
static void test_show_names_the_last_holder_that_a_majority_names(void **state)
{
    struct actor *last = actor_start_at(getenv("URL")), *other;
    char url[120], wanted[100];

    (void)state;
    snprintf(wanted, sizeof wanted, "  last      test_subcommands_quorum (process %d) on ", (int)actor_pid(last));
    actor_do(last, "0", "lock q/last");
    wait_until(is_on_all("q/last"));
    actor_do(last, "0", "unlock q/last");
    wait_until(is_on_none("q/last"));
    assert_shown("show", "q/last", wanted);
    assert_shown("show", "q/last", "  end       unlocked\n");
    snprintf(url, sizeof url, "redis://127.0.0.1:%d?grace=off&" TIMES, servers[0]->port);
    other = actor_start_at(url);
    actor_do(other, "0", "lock q/last");
    actor_do(other, "0", "unlock q/last");
    assert_shown("show", "q/last", wanted);
    kill_one(1);
    assert_shown("show", "q/last", "  free\n");
    assert_no_output("  last "); /* the two that are left disagree */
    actor_end(other);
    actor_end(last);
}

#define VIEW(health)                                               \
    "*2\r\n*2\r\n:1780000000000000\r\n:0\r\n"                      \
    "*11\r\n$0\r\n\r\n:0\r\n:-2\r\n:7\r\n$0\r\n\r\n:0\r\n:" health \
    "\r\n:1780000000000007\r\n:0\r\n$0\r\n\r\n$0\r\n\r\n"

/* What a faulty member may answer to SCAN, and to the script that reads a name; NULL: never anything. */
static const struct {
    const char *names, *data;
} lies[] = {
    { "*2\r\n$1\r\n7\r\n*0\r\n", "-ERR no\r\n" }, /* endless names */
    { "*2\r\n$1\r\n0\r\n*0\r\n", VIEW("0") },     /* no names, but data of each */
    { "*2\r\n$1\r\n0\r\n*0\r\n", VIEW("2") },     /* not recoverable */
    { "-ERR no\r\n", "-ERR no\r\n" },
    { NULL, NULL },
};

/* The faulty member is the first in the URL.  The other two hold what is listed. */
static void test_lists_show_what_a_majority_says_when_a_member_lies(void **state)
{
    struct actor *holder = actor_start_at(getenv("URL"));

    (void)state;
    actor_do(holder, "0", "init q/lie lease=60000");
    actor_do(holder, "0", "lock q/lie");
    wait_until(is_on_all("q/lie"));
    impostor_begin(servers[0]->folder);
    set_url_with_impostor(0, TIMES);
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        if (lies[i].names) {
            impostor_be(MANNER_LYING, lies[i].data, strlen(lies[i].data));
            impostor_answer("SCAN", lies[i].names);
        } else {
            impostor_be(MANNER_LYING, "", 0);
        }
        assert_shown("list", "", "q/lie");
        assert_shown("show", "q/lie", "held by");
        assert_no_output("not recoverable");
        assert_no_output("SCAN");
    }
    impostor_end();
    actor_do(holder, "0", "unlock q/lie");
    actor_end(holder);
}

/* It is asked last, and could take all the time that is left. */
static void test_lists_do_not_wait_for_a_silent_member(void **state)
{
    struct actor *holder = actor_start_at(getenv("URL"));

    (void)state;
    actor_do(holder, "0", "init q/silent lease=60000");
    actor_do(holder, "0", "lock q/silent");
    wait_until(is_on_all("q/silent"));
    impostor_begin(servers[0]->folder);
    impostor_be(MANNER_LYING, "", 0);
    impostor_answer("SCAN", "*2\r\n$1\r\n0\r\n*0\r\n");
    set_url_with_impostor(SERVERS - 1, "command_timeout=3600000&connect_timeout=3600000");
    assert_shown("show", "q/silent", "held by");
    assert_shown("list", "", "q/silent");
    impostor_end();
    actor_do(holder, "0", "unlock q/silent");
    actor_end(holder);
}

#define test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        test(test_doctor_finds_no_fault_when_all_servers_work),
        test(test_doctor_warns_when_no_more_server_may_fail),
        test(test_doctor_fails_when_no_majority_is_left),
        test(test_doctor_names_the_server_that_has_a_fault),
        test(test_doctor_does_not_count_a_server_that_keeps_no_locks),
        test(test_doctor_finds_a_server_that_is_named_twice),
        test(test_all_subcommands_work_when_all_servers_do),
        test(test_lists_show_the_names_when_a_server_is_down),
        test(test_lists_show_what_a_majority_says_when_a_server_is_empty),
        test(test_lists_show_no_holder_when_only_one_server_has_granted),
        test(test_show_names_the_last_holder_that_a_majority_names),
        test(test_lists_show_what_a_majority_says_when_a_member_lies),
        test(test_lists_do_not_wait_for_a_silent_member),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, end_group);
}

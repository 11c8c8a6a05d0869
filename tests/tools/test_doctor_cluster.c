/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dmutex doctor on a Cluster: the nodes, the slot map, and each master.  Every fault is named with the node that has
 * it.
 */
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/clusters.h"

#define OPTIONS "?command_timeout=1000"

static int timeout_ms; /* cluster-node-timeout; longer on a slow machine */

static int begin_group(void **state)
{
    cluster_group_setup_fast(state);
    sscanf(side_text(the_cluster->nodes[0]->side, "CONFIG GET cluster-node-timeout"), "%*s %d", &timeout_ms);
    assert_within(timeout_ms, 1, 1000000);
    return tool_setup(state);
}

static int end_group(void **state)
{
    cluster_group_teardown(state);
    return tool_teardown(state);
}

/* The masters of the first slot, of one in the middle, and of the last; failovers change them. */
static int masters[3];
static const int slots[3] = { 0, CLUSTER_SLOTS / 2, CLUSTER_SLOTS - 1 };

/* A URL with the current masters. login: "USER:PASSWORD@" or "". */
static const char *masters_url(const char *login, const char *url_options)
{
    static char url[300];

    for (int i = 0; i < 3; i++)
        masters[i] = cluster_master(the_cluster, slots[i]);
    snprintf(url, sizeof url, "redis+cluster://%s127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d%s", login,
             the_cluster->nodes[masters[0]]->port, the_cluster->nodes[masters[1]]->port,
             the_cluster->nodes[masters[2]]->port, url_options);
    return url;
}

static void examine(const char *url)
{
    setenv("URL", url, 1);
    command_run("DMUTEX_URL=$URL exec $dmutex doctor");
}

/* A line of the output: its first words, the address of a node, and the rest. */
static const char *line_of(const char *words, int node, const char *behind)
{
    static char line[400];

    snprintf(line, sizeof line, "%s127.0.0.1:%d%s", words, the_cluster->nodes[node]->port, behind);
    return line;
}

static void assert_line(const char *words, int node, const char *behind)
{
    assert_output(line_of(words, node, behind));
}

static void assert_no_output(const char *text)
{
    assert_null(strstr(ran.output, text));
}

/* ---- well -------------------------------------------------------------------------------- */

static void test_doctor_finds_no_fault_when_the_cluster_works(void **state)
{
    (void)state;
    examine(masters_url("", OPTIONS));
    assert_status(0);
    for (int i = 0; i < 3; i++) {
        assert_line("ok    node         ", masters[i], ": cluster_state is ok, 6 nodes are known\n");
        assert_line("ok    server       ", masters[i], ": answers, and serves 546");
    }
    assert_output("ok    slots        all 16384 have a master\n");
    assert_output("ok    masters      3\n");
    assert_output("ok    failover     a master that is silent for ");
    assert_line("ok    role         ", masters[0], ": master\n");
    assert_line("ok    replicas     ", masters[0], ": 1\n");
    assert_line("ok    rights       ", masters[0], ": all that locks need\n");
    assert_line("ok    messages     ", masters[0], ": a message to a subscribed channel arrives\n");
    assert_no_output("warn ");
    assert_no_output("fail ");
    assert_output("P0    yes ");
    assert_output("P3    yes          a failover creates no second holder: if a master that is cut off stops before");
    assert_output("P4    no ");
}

/* The first master is reported in full, the others by their differences. */
static void test_doctor_reports_differences_of_the_other_masters(void **state)
{
    struct side *side;

    (void)state;
    examine(masters_url("", OPTIONS));
    side = the_cluster->nodes[masters[1]]->side;
    assert_line("ok    persistence  ", masters[0], ": appendonly is no");
    assert_no_output(line_of("persistence  ", masters[1], ""));
    side_text(side, "CONFIG SET appendonly yes appendfsync always");
    examine(masters_url("", OPTIONS));
    side_text(side, "CONFIG SET appendonly no");
    assert_line("ok    persistence  ", masters[0], ": appendonly is no");
    assert_line("ok    persistence  ", masters[1], ": appendonly is yes, appendfsync is always\n");
    assert_output("P4    no ");
    side_text(side, "CONFIG SET maxmemory-policy allkeys-lru");
    command_run("DMUTEX_URL=$URL exec $dmutex doctor --json");
    side_text(side, "CONFIG SET maxmemory-policy noeviction");
    assert_status(1);
    tool_check_json();
    assert_line("{\"check\":\"memory\",\"result\":\"fail\",\"server\":\"", masters[1],
                "\",\"text\":\"maxmemory-policy is ");
    assert_output("\"promises\":{\"P0\":false,");
}

/* The mark of each node is in its lowest slot, written by the first program that came. */
static void test_doctor_reports_the_grace_when_a_replica_was_promoted(void **state)
{
    int after = cluster_fail_over(the_cluster, cluster_slot(the_cluster, "new"));

    (void)state;
    setenv("URL", masters_url("", "?switch=3600000"), 1);
    command_run("DMUTEX_URL=$URL exec $dmutex token new");
    assert_status(0);
    command_run("DMUTEX_URL=$URL exec $dmutex doctor");
    assert_status(0);
    assert_line("warn  grace        ", after, ": the server has just started: a lease of 10 s is granted in 36");
}

static void test_doctor_leaves_nothing_on_the_nodes(void **state)
{
    char before[3][COMMAND_ROOM];

    (void)state;
    for (int i = 0; i < 3; i++) {
        server_reconnect(the_cluster->nodes[i]);
        snprintf(before[i], sizeof before[i], "%s", side_keys(the_cluster->nodes[i]->side));
    }
    examine(masters_url("", OPTIONS));
    assert_status(0);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(side_keys(the_cluster->nodes[i]->side), before[i]);
        wait_until(
            side_int(the_cluster->nodes[i]->side, "EVAL %s 0", "return #redis.call('PUBSUB', 'SHARDCHANNELS')") == 0);
    }
}

/* ---- faults ------------------------------------------------------------------------------ */

static void test_doctor_warns_when_failovers_take_longer_than_a_lease(void **state)
{
    struct side *side;

    (void)state;
    setenv("URL", masters_url("", OPTIONS), 1);
    side = the_cluster->nodes[masters[1]]->side;
    side_text(side, "CONFIG SET cluster-node-timeout 15000");
    command_run("DMUTEX_URL=$URL exec $dmutex doctor");
    side_text(side, "CONFIG SET cluster-node-timeout %d", timeout_ms);
    assert_status(0);
    assert_output("warn  failover     cluster-node-timeout is 15000 ms, longer than the default lease of 10000 ms: ");
    assert_output("P3    yes ");
}

static void test_doctor_fails_when_there_are_fewer_replicas_than_wait(void **state)
{
    (void)state;
    examine(masters_url("", "?wait=2"));
    assert_status(1);
    assert_line("fail  replicas     ", masters[0], ": 1, and the URL has wait=2: no lock can be acquired\n");
    assert_line("fail  replicas     ", masters[2], ": 1, and the URL has wait=2: no lock can be acquired\n");
}

static void test_doctor_goes_on_when_a_replica_has_taken_over(void **state)
{
    int before, after;

    (void)state;
    setenv("URL", masters_url("", OPTIONS), 1);
    before = masters[2];
    cluster_kill(the_cluster, before);
    after = cluster_await_failover(the_cluster, slots[2], before);
    command_run("DMUTEX_URL=$URL exec $dmutex doctor");
    assert_status(0);
    assert_line("warn  node         ", before, ": cannot be opened (Connection refused)\n");
    assert_output("-> start the node, or take it out of the URL\n");
    assert_output("ok    masters      3\n");
    assert_line("ok    server       ", after, ": answers, and serves 546");
    assert_line("warn  replicas     ", after, ": 0: while this server is down no lock of its slots can be acquired\n");
    assert_output("P3    yes ");
    cluster_heal(the_cluster);
}

static void test_doctor_says_what_is_missing_when_a_shard_is_down(void **state)
{
    int replica = cluster_replica(the_cluster, slots[1]);
    struct server *other;

    (void)state;
    setenv("URL", masters_url("", OPTIONS), 1);
    other = the_cluster->nodes[masters[0]];
    server_reconnect(other);
    cluster_kill(the_cluster, replica);
    cluster_kill(the_cluster, masters[1]);
    wait_until(side_says(other->side, "cluster_state:fail", "CLUSTER INFO"));
    command_run("DMUTEX_URL=$URL exec $dmutex doctor");
    assert_status(1);
    assert_no_output("warn  node"); /* reported once, as a master */
    assert_line("fail  node         ", masters[0], ": cluster_state is fail");
    assert_line("fail  server       ", masters[1], ": cannot be opened (Connection refused)\n");
    assert_output("-> start the node; if it is up, make the address that the nodes tell reachable from here");
    assert_line("ok    server       ", masters[0], ": answers, and serves 546");
    assert_output("P0    not known ");
    cluster_heal(the_cluster);
}

/* ---- rights ------------------------------------------------------------------------------ */

/* Makes a user with the rights that dmutex acl prints, on all nodes, and with the changes on one node. */
static void make_user(const char *acl_options, int changed, const char *changes)
{
    char line[2000];

    setenv("URL", masters_url("", ""), 1);
    command_run("DMUTEX_URL=$URL exec $dmutex acl %s app", acl_options);
    assert_status(0);
    snprintf(line, sizeof line, "ACL SETUSER app reset on >secret %.*s", (int)strcspn(ran.output + 29, "\n"),
             ran.output + 29);
    for (int i = 0; i < the_cluster->count; i++) {
        server_reconnect(the_cluster->nodes[i]);
        side_text(the_cluster->nodes[i]->side, line);
    }
    snprintf(line, sizeof line, "ACL SETUSER app %s", changes);
    side_text(the_cluster->nodes[changed]->side, line);
}

static void examine_as(const char *acl_options, int changed, const char *changes)
{
    make_user(acl_options, changed, changes);
    examine(masters_url("app:secret@", OPTIONS));
}

/* The rights in the line that dmutex acl prints, each ended by NUL.  Returns their number. */
static int list_rights(char ret_rights[64][32])
{
    char *word, *rest;
    int count = 0;

    setenv("URL", masters_url("", ""), 1);
    command_run("DMUTEX_URL=$URL exec $dmutex acl");
    rest = strstr(ran.output, " +");
    while ((word = strsep(&rest, " \n")) && count < 64) {
        if (*word == '+')
            snprintf(ret_rights[count++], 32, "%s", word);
    }
    return count;
}

/* Only the last master lacks the right, and only it is named. */
static void test_doctor_names_each_right_that_a_node_does_not_give(void **state)
{
    char rights[64][32], changes[40], words[80];
    int count = list_rights(rights), last = cluster_master(the_cluster, CLUSTER_SLOTS - 1);

    (void)state;
    assert_within(count, 25, 63);
    examine_as("", last, "");
    assert_status(0);
    assert_line("ok    rights       ", masters[0], ": all that locks need\n");
    assert_output("for looking at locks the user lacks +scan, +cluster|info, +config|get");
    assert_output("its cluster_state is not known (needs +cluster|info)");
    assert_output("cluster-node-timeout is not known (needs +config|get)");
    for (int i = 0; i < count; i++) {
        snprintf(changes, sizeof changes, "-%s", rights[i] + 1);
        examine_as("", last, changes);
        assert_status(1);
        snprintf(words, sizeof words, ": the user lacks %.31s\n", rights[i]);
        assert_line("fail  rights       ", last, words);
        assert_output("P0    no ");
    }
    examine_as("--ops", last, "");
    assert_status(0);
    assert_no_output(" lacks ");
    assert_no_output("needs +");
}

static void test_doctor_names_the_patterns_that_a_node_does_not_give(void **state)
{
    int last = cluster_master(the_cluster, CLUSTER_SLOTS - 1);

    (void)state;
    examine_as("", last, "resetkeys ~other:*");
    assert_status(1);
    assert_line("fail  rights       ", last, ": the user lacks ~dmutex:*, the keys of the prefix\n");
    examine_as("", last, "resetchannels &dmutex:inbox:*");
    assert_status(1);
    assert_line("fail  rights       ", last, ": the user lacks &dmutex:{*}:inbox:*, the channels of the prefix\n");
}

static void test_doctor_says_so_when_no_node_has_a_slot_map(void **state)
{
    char url[200];

    (void)state;
    make_user("", 0, "-cluster|slots");
    snprintf(url, sizeof url, "redis+cluster://app:secret@127.0.0.1:%d", the_cluster->nodes[0]->port);
    examine(url);
    assert_status(77);
    assert_line("fail  rights       ", masters[0], ": the user lacks +cluster|slots\n");
    command_run("DMUTEX_URL=$URL exec $dmutex show t/x");
    assert_status(77);
    assert_errors("cluster|slots");
}

/* ---- URLs -------------------------------------------------------------------------------- */

static void test_doctor_says_so_when_no_node_can_be_asked(void **state)
{
    char url[200];

    (void)state;
    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d,127.0.0.1:%d", server_free_port(), server_free_port());
    examine(url);
    assert_status(69);
    assert_output("warn  node         127.0.0.1:");
    snprintf(url, sizeof url, "redis+cluster://app:s3cret@127.0.0.1:%d", the_cluster->nodes[0]->port);
    examine(url);
    assert_status(77);
    assert_output("the password or user is refused");
    assert_output("-> correct user and password");
    assert_null(strstr(ran.output, "s3cret"));
}

static void test_doctor_says_so_when_the_scheme_is_wrong(void **state)
{
    struct server *server = server_start_with(true, NULL);
    char url[200];

    (void)state;
    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d", server->port);
    examine(url);
    assert_status(69);
    snprintf(url, sizeof url, "fail  node         127.0.0.1:%d: the server is not a node of a Cluster\n", server->port);
    assert_output(url);
    assert_output("-> write redis:// instead of redis+cluster://");
    server_end(server);
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", the_cluster->nodes[0]->port);
    examine(url);
    assert_status(1);
    assert_output("fail  role         the server is a node of a Cluster\n");
    assert_output("-> write redis+cluster:// instead of redis://");
    assert_output("P0    no ");
}

/* Must be the last test: in Redis 7.0, a slot that was taken away and given back is lost at a later failover. */
static void test_doctor_names_the_slots_without_a_master(void **state)
{
    char url[300];

    (void)state;
    snprintf(url, sizeof url, "%s", masters_url("", OPTIONS));
    server_reconnect(the_cluster->nodes[masters[0]]);
    side_text(the_cluster->nodes[masters[0]]->side, "CLUSTER DELSLOTS 7");
    examine(cluster_url_of(the_cluster, masters[0], OPTIONS));
    assert_status(1);
    assert_line("fail  node         ", masters[0], ": cluster_state is fail: this node grants no lock\n");
    assert_output("fail  slots        1 of 16384 have no master, the first is 7: ");
    examine(url);
    assert_status(1);
    assert_line("ok    node         ", masters[1], ": cluster_state is ok");
    assert_line("warn  map          ", masters[0], " names another master for 1 slots, or none\n");
    assert_output("ok    slots        all 16384 have a master\n");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doctor_finds_no_fault_when_the_cluster_works),
        cmocka_unit_test(test_doctor_reports_differences_of_the_other_masters),
        cmocka_unit_test(test_doctor_leaves_nothing_on_the_nodes),
        cmocka_unit_test(test_doctor_warns_when_failovers_take_longer_than_a_lease),
        cmocka_unit_test(test_doctor_fails_when_there_are_fewer_replicas_than_wait),
        cmocka_unit_test(test_doctor_names_each_right_that_a_node_does_not_give),
        cmocka_unit_test(test_doctor_names_the_patterns_that_a_node_does_not_give),
        cmocka_unit_test(test_doctor_says_so_when_no_node_has_a_slot_map),
        cmocka_unit_test(test_doctor_says_so_when_no_node_can_be_asked),
        cmocka_unit_test(test_doctor_says_so_when_the_scheme_is_wrong),
        cmocka_unit_test(test_doctor_reports_the_grace_when_a_replica_was_promoted),
        cmocka_unit_test(test_doctor_goes_on_when_a_replica_has_taken_over),
        cmocka_unit_test(test_doctor_says_what_is_missing_when_a_shard_is_down),
        cmocka_unit_test(test_doctor_names_the_slots_without_a_master),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, end_group);
}

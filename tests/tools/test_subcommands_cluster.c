/* SPDX-License-Identifier: BSD-2-Clause */
/* Subcommands of dmutex(1) on a Cluster: in good order, with a shard down, and with mistakes in the URL. */
#include "tool.h"

#include <stdlib.h>
#include <string.h>

#include "../lib/clusters.h"

#define OPTIONS "?grace=off&command_timeout=1000"

static int begin_group(void **state)
{
    cluster_group_setup(state);
    return tool_setup(state);
}

static int end_group(void **state)
{
    cluster_group_teardown(state);
    return tool_teardown(state);
}

static void test_subcommands_find_each_name_when_the_cluster_works(void **state)
{
    struct actor *holder = actor_start_at(cluster_url(the_cluster, OPTIONS));
    const char *names[3];

    (void)state;
    tool_use_subcommands(cluster_url(the_cluster, OPTIONS));
    for (int i = 0; i < 3; i++) {
        names[i] = cluster_group_on(the_cluster, i, "tw");
        actor_do(holder, "0", "lock %s", names[i]);
        command_run("DMUTEX_URL=$URL exec $dmutex show %s", names[i]);
        assert_status(0);
        assert_output("  held by   ");
    }
    command_run("DMUTEX_URL=$URL exec $dmutex list");
    assert_status(0);
    for (int i = 0; i < 3; i++)
        assert_output(names[i]);
    command_run("DMUTEX_URL=$URL exec $dmutex top --json");
    assert_status(0);
    assert_output("{\"held\":3,");
    tool_check_json();
    for (int i = 0; i < 3; i++) {
        actor_do(holder, "0", "unlock %s", names[i]);
        command_run("DMUTEX_URL=$URL exec $dmutex show %s", names[i]);
        assert_output("  last      test_subcommands_cluster (process ");
        assert_output("  end       unlocked\n");
    }
    actor_end(holder);
}

/* A replica knows the slot map, too. */
static void test_subcommands_find_the_masters_when_the_url_names_a_replica(void **state)
{
    (void)state;
    tool_use_subcommands(cluster_url_of(the_cluster, cluster_replica(the_cluster, 0), OPTIONS));
}

/* With cluster-require-full-coverage no, the other nodes go on, though nobody serves the dead node's slots. */
static void test_subcommands_go_on_at_the_other_shards_when_one_is_down(void **state)
{
    struct actor *holder = actor_start_at(cluster_url(the_cluster, OPTIONS));
    int master = cluster_master(the_cluster, 0), replica = cluster_replica(the_cluster, 0), other = (master + 1) % 3;
    const char *lost = cluster_group_on(the_cluster, master, "lost");
    const char *there = cluster_group_on(the_cluster, other, "at");
    char sentence[100];

    (void)state;
    for (int i = 0; i < the_cluster->count; i++)
        side_text(the_cluster->nodes[i]->side, "CONFIG SET cluster-require-full-coverage no");
    actor_do(holder, "0", "lock %s", lost);
    actor_do(holder, "0", "lock %s", there);
    cluster_kill(the_cluster, replica);
    cluster_kill(the_cluster, master);
    snprintf(sentence, sizeof sentence, "127.0.0.1:%d: cannot be opened (Connection refused)",
             the_cluster->nodes[master]->port);
    setenv("URL", cluster_url(the_cluster, OPTIONS), 1);
    command_run("DMUTEX_URL=$URL exec $dmutex list");
    assert_status(69);
    assert_errors(sentence);
    command_run("DMUTEX_URL=$URL exec $dmutex top");
    assert_status(69);
    assert_errors(sentence);
    command_run("DMUTEX_URL=$URL exec $dmutex show %s", lost);
    assert_status(69);
    assert_errors(sentence);
    command_run("DMUTEX_URL=$URL exec $dmutex show %s", there);
    assert_status(0);
    assert_output("  held by   ");
    command_run("DMUTEX_URL=$URL exec $dmutex run -n %s true", there);
    assert_status(75);
    actor_end(holder);
    cluster_heal(the_cluster);
}

static void test_subcommands_say_so_when_the_cluster_stops_with_a_shard(void **state)
{
    int master = cluster_master(the_cluster, 0), replica = cluster_replica(the_cluster, 0), other = (master + 1) % 3;
    const char *name = cluster_group_on(the_cluster, other, "tw");

    (void)state;
    for (int i = 0; i < the_cluster->count; i++)
        side_text(the_cluster->nodes[i]->side, "CONFIG SET cluster-require-full-coverage yes");
    cluster_kill(the_cluster, replica);
    cluster_kill(the_cluster, master);
    wait_until(side_says(the_cluster->nodes[other]->side, "cluster_state:fail", "CLUSTER INFO"));
    setenv("URL", cluster_url(the_cluster, OPTIONS), 1);
    command_run("DMUTEX_URL=$URL exec $dmutex run -n %s true", name);
    assert_status(69);
    assert_errors("CLUSTERDOWN");
    assert_errors("run dmutex doctor to see which nodes are missing\n");
    cluster_heal(the_cluster);
}

static void test_subcommands_say_so_when_the_scheme_is_wrong(void **state)
{
    struct server *server = server_start_with(true, NULL);
    char url[200];

    (void)state;
    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d" OPTIONS, server->port);
    tool_check_refusals(url, "the server is not a node of a Cluster\n",
                        "the server is not a node of a Cluster: write redis:// instead of redis+cluster://");
    server_end(server);
    snprintf(url, sizeof url, "redis://127.0.0.1:%d" OPTIONS, the_cluster->nodes[0]->port);
    setenv("URL", url, 1);
    command_run("DMUTEX_URL=$URL exec $dmutex run tw/x touch $F/ran");
    assert_status(69);
    assert_errors("the server is a node of a Cluster: write redis+cluster:// instead of redis://");
    assert_false(tool_has("ran"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_subcommands_find_each_name_when_the_cluster_works),
        cmocka_unit_test(test_subcommands_find_the_masters_when_the_url_names_a_replica),
        cmocka_unit_test(test_subcommands_go_on_at_the_other_shards_when_one_is_down),
        cmocka_unit_test(test_subcommands_say_so_when_the_cluster_stops_with_a_shard),
        cmocka_unit_test(test_subcommands_say_so_when_the_scheme_is_wrong),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, end_group);
}

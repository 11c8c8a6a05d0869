/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node of a Cluster is used while enough masters vouch for it.  In a Cluster of nine masters some are gone, or no
 * longer have slots: the others are found.
 */
#include "../lib/testlib.h"

#define MASTERS 9
#define OPTIONS "?grace=off&command_timeout=500&connect_timeout=500&switch=1000"

static struct cluster cluster;

static int begin_group(void **state)
{
    (void)state;
    cluster_start_sparse(&cluster, MASTERS, CLUSTER_FAST_MS);
    return 0;
}

static int end_group(void **state)
{
    (void)state;
    cluster_end(&cluster);
    return 0;
}

static struct actor *start_at(int node)
{
    return actor_start_at(cluster_url_of(&cluster, node, OPTIONS));
}

static void use(struct actor *actor, int group)
{
    actor_do(actor, "0", "timedlock %s/x 5000", cluster_sparse_group(group));
    actor_do(actor, "0", "unlock %s/x", cluster_sparse_group(group));
}

static bool has_failed(int by, int node)
{
    char words[64];

    snprintf(words, sizeof words, ":%d@%d master,fail ", cluster.nodes[node]->port, cluster.bus_ports[node]);
    return side_says(cluster.nodes[by]->side, words, "CLUSTER NODES");
}

/* The nodes that are gone come first in the map, and cannot be opened. */
static void test_others_vouch_when_some_masters_are_gone(void **state)
{
    struct actor *actor;
    const int gone = 4;

    (void)state;
    for (int i = 0; i < gone; i++)
        cluster_kill(&cluster, i);
    for (int i = 0; i < gone; i++)
        wait_until(has_failed(MASTERS - 1, i));
    actor = start_at(MASTERS - 1);
    use(actor, MASTERS - 1);
    actor_end(actor);
    cluster_heal(&cluster);
}

/* The process only has connections to these nodes, and none of them has a vote any more. */
static void test_others_vouch_when_the_known_masters_have_no_slots_left(void **state)
{
    struct actor *actor = start_at(0);
    const int moved = 5;

    (void)state;
    for (int i = 0; i < moved; i++)
        use(actor, i);
    for (int i = 0; i < moved; i++)
        cluster_move(&cluster, cluster_slot(&cluster, cluster_sparse_group(i)), moved + i % (MASTERS - moved));
    use(actor, MASTERS - 1);
    for (int i = 0; i < moved; i++)
        use(actor, i);
    actor_end(actor);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_others_vouch_when_some_masters_are_gone),
        cmocka_unit_test(test_others_vouch_when_the_known_masters_have_no_slots_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, end_group);
}

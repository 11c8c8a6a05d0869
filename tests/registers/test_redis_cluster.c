/* SPDX-License-Identifier: BSD-2-Clause */
/* The suite of drivers on the driver of Redis: a Cluster of three masters, whose slots move. */
#include "redisbed.h"

#include "../lib/clusters.h"

static struct cluster cluster;
static int slot;

static void cut(void *user)
{
    (void)user;
    redisbed_cut(cluster.nodes[cluster_master(&cluster, slot)]);
}

/* The slot moves to another node. */
static void change_data(void *user)
{
    (void)user;
    cluster_move(&cluster, slot, (cluster_master(&cluster, slot) + 1) % 3);
}

int main(int argc, char **argv)
{
    struct driver_bed bed = { .name = "redis_cluster", .open = redisbed_open, .cut = cut, .change_data = change_data };
    int failures;

    test_begin(argc, argv);
    cluster_start(&cluster, 3, false, CLUSTER_CALM_MS);
    slot = cluster_slot(&cluster, "~registers");
    bed.user = redisbed_url(cluster_url(&cluster, ""));
    failures = driver_suite(&bed);
    cluster_end(&cluster);
    dm_url_free(bed.user);
    return failures;
}

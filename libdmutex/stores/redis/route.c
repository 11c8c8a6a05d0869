/* SPDX-License-Identifier: BSD-2-Clause */
#include "stores/redis/route.h"

#include <stdlib.h>

#include "link/tls_calls.h"

bool dm_route_to_one(struct dm_route *route, struct dm_url *url, const char *channel, const struct dm_node_hooks *hooks)
{
    struct dm_node *node = calloc(1, sizeof *node);

    if (node && dm_node_init(node, url, channel, hooks)) {
        *route = (struct dm_route){ .url = url, .one = node };
        return true;
    }
    free(node);
    return false;
}

bool dm_route_to_cluster(struct dm_route *route, struct dm_url *url, const struct dm_cluster_hooks *hooks)
{
    struct dm_cluster *cluster = calloc(1, sizeof *cluster);

    if (cluster && dm_cluster_init(cluster, url, hooks)) {
        *route = (struct dm_route){ .url = url, .cluster = cluster };
        return true;
    }
    free(cluster);
    return false;
}

void dm_route_clear_unused(struct dm_route *route)
{
    if (route->one)
        dm_node_clear_unused(route->one);
    else
        dm_cluster_clear_unused(route->cluster);
    free(route->one);
    free(route->cluster);
}

void dm_route_end(struct dm_route *route)
{
    if (route->one)
        dm_node_end(route->one);
    else
        dm_cluster_end(route->cluster);
}

/* In the order of the ranks: the cluster, all links, all nodes, TLS. */
void dm_route_fork_prepare(struct dm_route *route, enum dm_fork_stage stage)
{
    if (route->cluster)
        dm_cluster_fork_prepare(route->cluster, stage);
    else if (stage == DM_FORK_WAYS)
        dm_node_fork_prepare_links(route->one);
    else if (stage == DM_FORK_SERVER)
        dm_node_fork_prepare(route->one);
    if (stage == DM_FORK_SHARED)
        dm_tls_load_fork_prepare();
}

/* A node releases all its locks at once. */
void dm_route_fork_parent(struct dm_route *route, enum dm_fork_stage stage)
{
    if (stage == DM_FORK_SHARED)
        dm_tls_load_fork_parent();
    if (route->cluster)
        dm_cluster_fork_parent(route->cluster, stage);
    else if (stage == DM_FORK_SERVER)
        dm_node_fork_parent(route->one);
}

void dm_route_fork_child(struct dm_route *route)
{
    dm_tls_load_fork_child();
    if (route->one)
        dm_node_fork_child(route->one);
    else
        dm_cluster_fork_child(route->cluster);
}

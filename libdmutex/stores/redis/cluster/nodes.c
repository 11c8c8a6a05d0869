/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of nodes: adds and finds them, and uses them again for other servers. */
#include <stdlib.h>
#include <string.h>

#include "stores/redis/cluster/parts.h"

bool dm_cluster_is_vouched(void *user)
{
    const struct dm_cluster_node *node = user;

    return dm_clock_boot_ns() < __atomic_load_n(&node->vouched_until_ns, __ATOMIC_RELAXED);
}

bool dm_cluster_is_idle(struct dm_cluster_node *node)
{
    return !dm_cluster_is_serving(node) && !dm_cluster_is_vouched(node) &&
           dm_clock_boot_ns() >= node->used_ns + dm_cluster_rest_ns(node->cluster);
}

/* The next node, for a server with a URL of its own; not in the list yet.  NULL without memory. */
static struct dm_cluster_node *new_node(struct dm_cluster *cluster, struct dm_url *url)
{
    struct dm_cluster_node *node = calloc(1, sizeof *node);
    struct dm_node_hooks hooks = cluster->node_hooks;

    if (!node)
        return NULL;
    hooks.user = node;
    *node = (struct dm_cluster_node){ .cluster = cluster, .url = url, .used_ns = dm_clock_boot_ns() };
    if (dm_node_init(&node->base, url, "", &hooks)) {
        node->base.index = cluster->count;
        return node;
    }
    free(node);
    return NULL;
}

static void add(struct dm_cluster *cluster, struct dm_cluster_node *node)
{
    cluster->nodes[node->base.index] = node;
    __atomic_store_n(&cluster->count, node->base.index + 1, __ATOMIC_RELEASE);
}

static bool is_at(const struct dm_cluster_node *node, const char *host, const char *port)
{
    dm_assert_held(DM_RANK_CLUSTER);
    return strcmp(node->base.place.host, host) == 0 && strcmp(node->base.place.port, port) == 0;
}

/* True if nothing is under way to the node, and nothing will be. */
static bool is_free(struct dm_cluster_node *node)
{
    return dm_cluster_is_idle(node) && !node->asked_ns && !dm_link_is_open(node->base.commands.link) &&
           !dm_link_is_open(node->base.inbox.link);
}

/* When all records are in use: the node that has been of no use for the longest time.  NULL: all are needed. */
static struct dm_cluster_node *reuse(struct dm_cluster *cluster, const char *host, const char *port)
{
    struct dm_cluster_node *oldest = NULL;

    dm_assert_held(DM_RANK_CLUSTER);
    for (unsigned i = 0; i < cluster->count; i++) {
        struct dm_cluster_node *node = cluster->nodes[i];

        if ((!oldest || node->used_ns < oldest->used_ns) && is_free(node))
            oldest = node;
    }
    if (!oldest)
        return NULL;
    dm_node_move(&oldest->base, host, port);
    oldest->has_served = false;
    oldest->vouchers = (struct dm_vouchers){ 0 };
    oldest->used_ns = dm_clock_boot_ns();
    return oldest;
}

struct dm_cluster_node *dm_cluster_node_at(struct dm_cluster *cluster, const char *host, const char *port)
{
    struct dm_cluster_node *node;
    struct dm_url *url;

    dm_assert_held(DM_RANK_CLUSTER);
    for (unsigned i = 0; i < cluster->count; i++) {
        if (is_at(cluster->nodes[i], host, port))
            return cluster->nodes[i];
    }
    if (cluster->count == DM_CLUSTER_MOST)
        return cluster->is_ended ? NULL : reuse(cluster, host, port);
    url = !cluster->is_ended ? dm_url_of_server(cluster->url, host, port) : NULL;
    if (!url)
        return NULL;
    url->switch_ms = cluster->url->switch_ms;
    node = new_node(cluster, url);
    if (node)
        add(cluster, node);
    else
        dm_url_free(url);
    return node;
}

struct dm_cluster_node *dm_cluster_any(struct dm_cluster *cluster)
{
    unsigned count = dm_cluster_count(cluster);

    for (unsigned i = 0; i < count; i++) {
        if (dm_node_is_ready(&cluster->nodes[i]->base))
            return cluster->nodes[i];
    }
    return count ? cluster->nodes[0] : NULL;
}

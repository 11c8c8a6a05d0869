/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way from a request to its server: a store has one server, whose address a group of Sentinel may change, or the
 * nodes of a Cluster.  What is asked of one server never enters cluster/.
 */
#ifndef DM_REDIS_ROUTE_H
#define DM_REDIS_ROUTE_H

#include "stores/redis/cluster/cluster.h"
#include "stores/redis/node/node.h"

/* Either `one` or `cluster` is set, and the other is NULL. */
struct dm_route {
    struct dm_url *url;
    struct dm_node *one;
    struct dm_cluster *cluster;
};

/*
 * channel: of the only inbox, copied; a Cluster has one for each group (cluster/groups.h).  False if memory or
 * descriptors run out.
 */
bool dm_route_to_one(struct dm_route *route, struct dm_url *url, const char *channel,
                     const struct dm_node_hooks *hooks);
bool dm_route_to_cluster(struct dm_route *route, struct dm_url *url, const struct dm_cluster_hooks *hooks);
void dm_route_clear_unused(struct dm_route *route);

/* ---- the servers ------------------------------------------------------------------------- */

static inline unsigned dm_route_count(const struct dm_route *route)
{
    return route->one ? 1 : dm_cluster_count(route->cluster);
}

static inline struct dm_node *dm_route_node(const struct dm_route *route, unsigned index)
{
    return route->one ? route->one : &route->cluster->nodes[index]->base;
}

/* Loops over the servers; those added during the loop are not visited. */
#define DM_ROUTE_FOR_EACH(node, route)                                                                              \
    for (unsigned i_ = 0, count_ = dm_route_count(route); i_ < count_ && ((node) = dm_route_node(route, i_), true); \
         i_++)

static inline struct dm_node *dm_route_base(struct dm_cluster_node *node)
{
    return node ? &node->base : NULL;
}

/* ---- the server of a request; NULL: in a Cluster it is not known ------------------------- */

static inline struct dm_node *dm_route_of_slot(const struct dm_route *route, unsigned slot)
{
    return route->one ? route->one : dm_route_base(dm_cluster_of_slot(route->cluster, slot));
}

/* Any server, for questions that any can answer. */
static inline struct dm_node *dm_route_any(const struct dm_route *route)
{
    return route->one ? route->one : dm_route_base(dm_cluster_any(route->cluster));
}

/* As dm_cluster_of_args(). */
static inline struct dm_node *dm_route_of_args(const struct dm_route *route, struct dm_args *args)
{
    return route->one ? route->one : dm_route_base(dm_cluster_of_args(route->cluster, args));
}

/* As dm_cluster_await(); the only server is returned at once. */
static inline struct dm_node *dm_route_await(const struct dm_route *route, struct dm_args *args,
                                             const struct dm_deadline *deadline)
{
    return route->one ? route->one : dm_route_base(dm_cluster_await(route->cluster, args, deadline));
}

/* As dm_cluster_redirect(); the only server sends nothing on. */
static inline bool dm_route_redirect(const struct dm_route *route, struct dm_node *from, const char *key, size_t length,
                                     const char *error)
{
    return route->cluster && dm_cluster_redirect(route->cluster, dm_cluster_node_of(from), key, length, error);
}

/* A request could not be posted to the server, or has none: the loop thread sees to that.  Calls no hooks. */
static inline void dm_route_wish(const struct dm_route *route, struct dm_node *node)
{
    if (node)
        dm_node_wish(node);
    else
        dm_cluster_wish(route->cluster);
}

/* True if a server is asked for something, or will be: in a Cluster, if it has slots or names ahead of them. */
static inline bool dm_route_is_of_use(const struct dm_route *route, struct dm_node *node)
{
    return route->one || dm_cluster_is_serving(dm_cluster_node_of(node)) ||
           dm_cluster_is_vouched(dm_cluster_node_of(node));
}

/* ---- for the loop thread, as the functions of struct dm_store_ops ------------------------ */

void dm_route_end(struct dm_route *route);
void dm_route_fork_prepare(struct dm_route *route, enum dm_fork_stage stage);
void dm_route_fork_parent(struct dm_route *route, enum dm_fork_stage stage);
void dm_route_fork_child(struct dm_route *route);

#endif

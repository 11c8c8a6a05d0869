/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by cluster.c, map.c and nodes.c. */
#ifndef DM_REDIS_CLUSTER_PARTS_H
#define DM_REDIS_CLUSTER_PARTS_H

#include "stores/redis/cluster/cluster.h"

/*
 * How long after its last use a node may be used for another server: by then requests to it have had their answers.
 */
static inline int64_t dm_cluster_rest_ns(const struct dm_cluster *cluster)
{
    return 2 * cluster->url->command_timeout_ms * DM_NS_PER_MS;
}

/* The node at this address, a new one if need be.  NULL without memory, or with too many nodes.  Lock held. */
struct dm_cluster_node *dm_cluster_node_at(struct dm_cluster *cluster, const char *host, const char *port);

/* True if the node has been of no use for a while: it serves no slot, and is ahead of none.  Lock held. */
bool dm_cluster_is_idle(struct dm_cluster_node *node);

/* False if the node has the slot already.  Lock held. */
bool dm_cluster_give_slot(struct dm_cluster *cluster, unsigned slot, struct dm_cluster_node *node);

/*
 * `from` has redirected a request to the node.  True if the node can be believed from now on but could not before;
 * then the caller must call dm_cluster_tell_vouched().  Lock held.
 */
bool dm_cluster_vouch_ahead(struct dm_cluster_node *node, const struct dm_cluster_node *from);

/* The node can be believed from now on.  No lock held. */
void dm_cluster_tell_vouched(struct dm_cluster_node *node);

/* The on_map of struct dm_slot_map_hooks.  No lock held. */
bool dm_cluster_take_map(void *user, const struct redisReply *reply, const char *host);

/* Asks masters with an open link for the map and their vouchers.  Returns how many were asked.  No lock held. */
unsigned dm_cluster_ask_around(struct dm_cluster *cluster);

/* The same, and opens links to more masters; nothing if that was done just now.  No lock held. */
void dm_cluster_find_vouchers(struct dm_cluster *cluster);

#endif

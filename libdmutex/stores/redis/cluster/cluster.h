/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The masters of a Cluster.
 *
 *   slots   pure: keys to slots, replies of a Cluster         slot_map   asks a node for the map of all slots
 *   cluster  the nodes, and which node serves a slot          groups  inboxes of a Cluster, one for each group
 *   vouchers   pure: which masters have recently named a node
 *
 * A Cluster is as many stores as it has masters: each node has its own links, its own birth and its own grace, and a
 * name is on the node that serves the slot of its group (doc/design/cluster.md).
 *
 * Nodes are added and never removed, because a thread may be about to use one.  A node that has served nothing for a
 * while is closed, and not opened again; when there is no room for a new node, such a node is used for the new server.
 * A thread that takes it for the earlier server then sends its request to a server that redirects it.
 */
#ifndef DM_REDIS_CLUSTER_CLUSTER_H
#define DM_REDIS_CLUSTER_CLUSTER_H

#include "store/store.h"
#include "stores/redis/cluster/slot_map.h"
#include "stores/redis/cluster/vouchers.h"
#include "stores/redis/node/node.h"
#include "stores/redis/wire/slots.h"

#define DM_CLUSTER_MOST 200 /* nodes of a Cluster; must fit into a byte */

struct dm_cluster;

struct dm_cluster_node {
    struct dm_node base; /* first: see dm_cluster_node_of() */
    struct dm_cluster *cluster;
    struct dm_url *url;       /* the settings, with the node's address */
    unsigned slots;           /* that the node serves, according to the map.  Atomic */
    bool has_served;          /* some slot, at any time */
    int64_t used_ns;          /* when the node was known to be of use; perhaps later, while it serves a slot */
    int64_t vouched_until_ns; /* the node is believed until then.  Atomic */
    struct dm_vouchers vouchers;
    int64_t asked_ns; /* when the node was asked for the map; 0: no such request is under way */
};

/* The cluster node that has this node in it; NULL stays NULL. */
static inline struct dm_cluster_node *dm_cluster_node_of(struct dm_node *base)
{
    return (struct dm_cluster_node *)(void *)base;
}

/* Called without locks. */
struct dm_cluster_hooks {
    void (*on_ready)(void *user);
    void (*on_inbox)(void *user, struct dm_cluster_node *node);
    void (*on_message)(void *user, const char *text, const struct dm_server *server);
    void (*on_inbox_reply)(void *user, struct dm_cluster_node *node, const struct redisReply *reply);
    void (*on_map)(void *user);
    void (*on_change)(void *user);
    void *user;
};

/* A request that the node of its slot has redirected: its name is on another node already, ahead of the slot. */
struct dm_ahead {
    char *key; /* the first key of the request */
    struct dm_cluster_node *node;
    int64_t until_ns;
};

#define DM_CLUSTER_AHEAD 256 /* enough for a few batches of renewals */

struct dm_cluster {
    struct dm_url *url;
    struct dm_cluster_hooks hooks;
    struct dm_node_hooks node_hooks; /* of each node; `user` is the node */
    struct dm_cluster_node *nodes[DM_CLUSTER_MOST];
    unsigned count; /* of those: grows only, atomic */
    bool is_ended;  /* atomic */
    bool is_wished; /* a request had no node.  Atomic */

    struct dm_slot_map *slot_map;
    unsigned char *owners; /* of each slot: the node's index plus one; 0: not known.  Atomic bytes */

    struct dm_mutex lock; /* rank CLUSTER: guards all below, and all writes to the fields above */
    struct dm_ahead ahead[DM_CLUSTER_AHEAD];
    unsigned ahead_count; /* how many of them are in use.  Atomic */
    unsigned ahead_next;
    unsigned masters;     /* nodes that serve a slot */
    bool is_full;         /* the last map had a master for which there was no room */
    int64_t refreshed_ns; /* when the map was last asked for out of turn */
    int64_t sought_ns;    /* when vouchers were last sought out of turn */

    int64_t ask_ns;  /* when the masters are asked again.  Atomic */
    unsigned asked;  /* the node that was asked last.  Atomic */
    unsigned sought; /* the node whose link was opened last, to find vouchers.  Atomic */
};

/* False if memory or descriptors run out. */
bool dm_cluster_init(struct dm_cluster *cluster, struct dm_url *url, const struct dm_cluster_hooks *hooks);
void dm_cluster_clear_unused(struct dm_cluster *cluster);

static inline unsigned dm_cluster_count(const struct dm_cluster *cluster)
{
    return __atomic_load_n(&cluster->count, __ATOMIC_ACQUIRE);
}

/* Takes no lock. */
struct dm_cluster_node *dm_cluster_of_slot(const struct dm_cluster *cluster, unsigned slot);

/*
 * The node for a script call: the one that serves the slot of the first key, according to the map; or once, with
 * is_asking, the one that a redirect has named.  NULL: not known.  Takes the lock.
 */
struct dm_cluster_node *dm_cluster_of_args(struct dm_cluster *cluster, struct dm_args *args);

/*
 * The same, but waits until the node's link for commands is ready, and asks for the map while waiting.  NULL when the
 * deadline has passed.
 */
struct dm_cluster_node *dm_cluster_await(struct dm_cluster *cluster, struct dm_args *args,
                                         const struct dm_deadline *deadline);

/* True if the node serves some slot. */
static inline bool dm_cluster_is_serving(const struct dm_cluster_node *node)
{
    return __atomic_load_n(&node->slots, __ATOMIC_RELAXED) > 0;
}

/*
 * True if enough masters have recently named the node (stores/redis/cluster/vouchers.h), or if a master has
 * redirected a request to it while it has no slot yet.  Takes no lock.
 */
bool dm_cluster_is_vouched(void *node);

/* The lowest slot that the node serves; -1: none. */
int dm_cluster_first_slot(const struct dm_cluster_node *node);

/* Waits for the node of a slot, in the same way. */
struct dm_cluster_node *dm_cluster_await_slot(struct dm_cluster *cluster, unsigned slot,
                                              const struct dm_deadline *deadline);

/* A request could not be posted, because no node is known: the loop thread asks for the map.  Calls no hooks. */
void dm_cluster_wish(struct dm_cluster *cluster);

/* Any node, for questions that any node can answer; a ready one, if there is one.  NULL: no node is known yet. */
struct dm_cluster_node *dm_cluster_any(struct dm_cluster *cluster);

/*
 * True if the error, a reply to a call with this first key (NULL: to a subscription), redirects it to another node;
 * dm_cluster_of_args() knows that from now on.  No lock held.
 */
bool dm_cluster_redirect(struct dm_cluster *cluster, const struct dm_cluster_node *from, const char *key, size_t length,
                         const char *error);

/* Asks for the map, unless it was asked for just now.  No lock held. */
void dm_cluster_refresh(struct dm_cluster *cluster);

/* While the process has any claim, the loop thread calls dm_cluster_turn() when the masters must be asked again. */
int64_t dm_cluster_ask_due_ns(const struct dm_cluster *cluster);
void dm_cluster_turn(struct dm_cluster *cluster);

/* For people: why the node of a slot is not known. */
void dm_cluster_reason(struct dm_cluster *cluster, char ret_reason[DM_REASON_ROOM]);

/* For the loop thread, as the functions of struct dm_store_ops. */
void dm_cluster_end(struct dm_cluster *cluster);
void dm_cluster_fork_prepare(struct dm_cluster *cluster, enum dm_fork_stage stage);
void dm_cluster_fork_parent(struct dm_cluster *cluster, enum dm_fork_stage stage);
void dm_cluster_fork_child(struct dm_cluster *cluster);

#endif

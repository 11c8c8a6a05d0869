/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations that the parts of a Cluster share: cluster.c, what each node knows and answers; cluster_moves.c, slots
 * that move; cluster_shards.c, replicas and failovers.
 */
#ifndef SIM_CLUSTER_PARTS_H
#define SIM_CLUSTER_PARTS_H

#include "cluster.h"
#include "server_parts.h"
#include "stores/redis/wire/slots.h"

/* The last of all nodes hears so late of a move or a failover. */
#define CLUSTER_HEARS_MS 1000

struct cluster_move {
    bool is_on, is_given_up;
    unsigned slot;
    uint32_t from, to;
    int64_t pace_ns;
};

/* The move of the slot that is under way; NULL: the slot does not move. */
const struct cluster_move *cluster_move_of(unsigned slot);

/* True if no slot moves, and all nodes have heard of the last move. */
bool cluster_has_settled(void);

/* Who serves the slot, in the view of a node.  A node that no longer serves it ends the subscriptions there. */
uint32_t cluster_owner(uint32_t node, unsigned slot);
void cluster_take_view(uint32_t node, unsigned slot, uint32_t owner);

/* False: down, or stopped for a while. */
bool cluster_can_work(uint32_t node);

/* The shard's number counts modulo CLUSTER_SHARDS. */
uint32_t cluster_master(uint32_t shard);

/* The node has lost data, also as a new master that lacks the newest; it gives grace for a while. */
void cluster_note_loss(uint32_t node);
bool cluster_gives_grace(uint32_t node);

void cluster_begin_moves(int names, bool are_moves);
void cluster_begin_shards(int64_t lease_ms);

#endif

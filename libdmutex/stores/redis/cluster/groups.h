/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inboxes of a process in a Cluster: a channel for each group, on the node that serves the group's slot.  A script
 * can only publish in the slot of its keys, and a node counts only its own subscribers, so a channel follows its slot.
 *
 * A group has an inbox from the first wait in it until the inbox has not been used for a minute.
 */
#ifndef DM_REDIS_CLUSTER_GROUPS_H
#define DM_REDIS_CLUSTER_GROUPS_H

#include "stores/redis/cluster/cluster.h"

struct dm_groups;

/* uuid: of the process, borrowed.  on_inbox: messages may have been missed; called without locks.  NULL: no memory. */
struct dm_groups *dm_groups_new(struct dm_cluster *cluster, const char *uuid, void (*on_inbox)(void *user), void *user);
void dm_groups_free_unused(struct dm_groups *groups);

/* True if messages of the place's inbox arrive now.  Calls no hooks. */
bool dm_groups_is_heard(struct dm_groups *groups, const struct dm_place *place);

/* Begins to open the inbox.  No lock held. */
void dm_groups_want(struct dm_groups *groups, const struct dm_place *place);

/* Opens the inbox, and waits until it is open.  False when the deadline has passed. */
bool dm_groups_await(struct dm_groups *groups, const struct dm_place *place, const struct dm_deadline *deadline);

/* Notes that the inbox is in use: an attempt waits there.  Calls no hooks. */
void dm_groups_note_use(struct dm_groups *groups, const struct dm_place *place);

/* Events of the cluster.  No lock held. */
void dm_groups_inbox_ready(struct dm_groups *groups, struct dm_cluster_node *node);
void dm_groups_take_reply(struct dm_groups *groups, struct dm_cluster_node *node, const struct redisReply *reply);
void dm_groups_map_changed(struct dm_groups *groups);

/* For the loop thread: subscribes again where a subscription has ended, and gives up unused inboxes. */
void dm_groups_watch(const struct dm_groups *groups, struct dm_watch *watch);
void dm_groups_turn(struct dm_groups *groups);

#endif

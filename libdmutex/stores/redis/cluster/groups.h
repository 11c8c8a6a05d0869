/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inboxes of a process in a Cluster: a channel for each group, on the node that serves the group's slot.  A script
 * can only publish in the slot of its keys, and a node counts only its own subscribers; so a channel goes where the
 * slot goes.
 *
 * A group has an inbox from the first wait there, until the inbox was not used for a minute.
 */
#ifndef DM_REDIS_CLUSTER_GROUPS_H
#define DM_REDIS_CLUSTER_GROUPS_H

#include "stores/redis/cluster/fleet.h"

struct dm_groups;

/* uuid: of the process, borrowed.  on_inbox: messages may have been missed; called without locks.  NULL: no memory. */
struct dm_groups *dm_groups_new(struct dm_fleet *fleet, const char *uuid, void (*on_inbox)(void *user), void *user);
void dm_groups_free_unused(struct dm_groups *groups);

/* The place's inbox is heard now.  Quietly. */
bool dm_groups_is_heard(struct dm_groups *groups, const struct dm_place *place);

/* Begins to open the inbox.  No lock held. */
void dm_groups_want(struct dm_groups *groups, const struct dm_place *place);

/* Opens the inbox, and waits until it is heard.  False when the deadline has passed. */
bool dm_groups_await(struct dm_groups *groups, const struct dm_place *place, const struct dm_deadline *deadline);

/* The inbox is in use: an attempt waits there.  Quietly. */
void dm_groups_note_use(struct dm_groups *groups, const struct dm_place *place);

/* The fleet's news.  No lock held. */
void dm_groups_inbox_ready(struct dm_groups *groups, struct dm_member *member);
void dm_groups_take_reply(struct dm_groups *groups, struct dm_member *member, const struct redisReply *reply);
void dm_groups_map_changed(struct dm_groups *groups);

/* For the loop thread: asks again for subscriptions that have ended, and gives up unused inboxes. */
void dm_groups_watch(const struct dm_groups *groups, struct dm_watch *watch);
void dm_groups_turn(struct dm_groups *groups);

#endif

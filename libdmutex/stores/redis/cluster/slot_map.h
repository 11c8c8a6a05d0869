/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks for the map of a Cluster: has a link of its own, and tries one server after another until one answers, which may
 * be a replica.
 *
 * Once the nodes are known, and one can be asked, the map comes from it (stores/redis/cluster/cluster.c).
 */
#ifndef DM_REDIS_CLUSTER_SLOT_MAP_H
#define DM_REDIS_CLUSTER_SLOT_MAP_H

#include "link/link.h"
#include "store/store.h"
#include "stores/redis/node/greeting.h"
#include "stores/redis/sentinel/council.h"

struct dm_slot_map;

/* Called without locks. */
struct dm_slot_map_hooks {
    /* The server to ask at try `number`, counted from 0.  Called under the link's lock. */
    void (*find_host)(void *user, unsigned number, struct dm_master *ret_place);
    /* An answer to CLUSTER SLOTS by the server `host`.  False if it is of no use: then another server is asked. */
    bool (*on_map)(void *user, const struct redisReply *reply, const char *host);
    /* As in struct dm_link_hooks. */
    void (*on_change)(void *user);
    void *user;
};

/* Borrows the URL for as long as the slot map exists.  NULL if memory or descriptors run out. */
struct dm_slot_map *dm_slot_map_new(const struct dm_url *url, const struct dm_slot_map_hooks *hooks);
void dm_slot_map_free_unused(struct dm_slot_map *slot_map);

/* Opens the link if need be, and asks.  No lock held. */
void dm_slot_map_ask(struct dm_slot_map *slot_map);

/* The command CLUSTER SLOTS; bytes is NULL without memory.  The caller frees it with dm_command_free(). */
struct dm_command dm_slot_map_question(void);

/* To wait for a map, to say why there is none, to work in the loop thread, and around fork(). */
struct dm_link *dm_slot_map_link(struct dm_slot_map *slot_map);

/* True if a server has refused the map because of the login or of missing rights, and none has given one since. */
bool dm_slot_map_is_denied(const struct dm_slot_map *slot_map);

/* For the loop thread, as the function of struct dm_store_ops. */
void dm_slot_map_watch(struct dm_slot_map *slot_map, struct dm_watch *watch);

#endif

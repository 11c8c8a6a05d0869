/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by fleet.c, fleet_map.c and members.c. */
#ifndef DM_REDIS_CLUSTER_FLEET_PARTS_H
#define DM_REDIS_CLUSTER_FLEET_PARTS_H

#include "stores/redis/cluster/fleet.h"

static inline bool dm_fleet_is_clustered(const struct dm_fleet *fleet)
{
    return fleet->owners != NULL;
}

/*
 * How long after its last use a member may be used for another server: by then requests to it have had their answers.
 */
static inline int64_t dm_fleet_rest_ns(const struct dm_fleet *fleet)
{
    return 2 * fleet->url->command_timeout_ms * DM_NS_PER_MS;
}

/* Adds the only server, which has the URL of the store.  False if memory or descriptors run out. */
bool dm_fleet_add_only(struct dm_fleet *fleet);

/* The member at this address, a new one if need be.  NULL without memory, or with too many nodes.  Lock held. */
struct dm_member *dm_fleet_member_at(struct dm_fleet *fleet, const char *host, const char *port);

/* True if the member has been of no use for a while: it serves no slot, and is ahead of none.  Lock held. */
bool dm_fleet_is_idle(struct dm_member *member);

/* False if the member has the slot already.  Lock held. */
bool dm_fleet_give_slot(struct dm_fleet *fleet, unsigned slot, struct dm_member *member);

/*
 * `from` has redirected a request to the member.  True if the member can be believed from now on but could not before;
 * then the caller must call dm_fleet_tell_vouched().  Lock held.
 */
bool dm_fleet_vouch_ahead(struct dm_member *member, const struct dm_member *from);

/* The member can be believed from now on.  No lock held. */
void dm_fleet_tell_vouched(struct dm_member *member);

/* The on_map of struct dm_slot_map_hooks.  No lock held. */
bool dm_fleet_take_map(void *user, const struct redisReply *reply, const char *host);

/* Asks masters with an open link for the map and their vouchers.  Returns how many were asked.  No lock held. */
unsigned dm_fleet_ask_around(struct dm_fleet *fleet);

/* The same, and opens links to more masters; nothing if that was done just now.  No lock held. */
void dm_fleet_find_vouchers(struct dm_fleet *fleet);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of members: adds and finds them, and uses them again for other servers. */
#include <stdlib.h>
#include <string.h>

#include "stores/redis/cluster/fleet_parts.h"

bool dm_fleet_is_vouched(void *user)
{
    const struct dm_member *member = user;

    return !dm_fleet_is_clustered(member->fleet) ||
           dm_clock_boot_ns() < __atomic_load_n(&member->vouched_until_ns, __ATOMIC_RELAXED);
}

bool dm_fleet_is_idle(struct dm_member *member)
{
    return !dm_fleet_is_serving(member) && !dm_fleet_is_vouched(member) &&
           dm_clock_boot_ns() >= member->used_ns + dm_fleet_rest_ns(member->fleet);
}

/* The next member, for a server with a URL of its own; not in the list yet.  NULL without memory. */
static struct dm_member *new_member(struct dm_fleet *fleet, struct dm_url *url)
{
    struct dm_member *member = calloc(1, sizeof *member);
    struct dm_node_hooks hooks = fleet->node_hooks;

    if (!member)
        return NULL;
    hooks.user = member;
    *member = (struct dm_member){ .fleet = fleet, .index = fleet->count, .url = url };
    member->slots = !dm_fleet_is_clustered(fleet); /* the only server serves all */
    member->used_ns = dm_clock_boot_ns();
    if (dm_node_init(&member->node, url, fleet->channel, &hooks))
        return member;
    free(member);
    return NULL;
}

static void add(struct dm_fleet *fleet, struct dm_member *member)
{
    fleet->members[member->index] = member;
    __atomic_store_n(&fleet->count, member->index + 1, __ATOMIC_RELEASE);
}

static bool is_at(const struct dm_member *member, const char *host, const char *port)
{
    dm_assert_held(DM_RANK_FLEET);
    return strcmp(member->node.place.host, host) == 0 && strcmp(member->node.place.port, port) == 0;
}

/* True if nothing is under way to the member, and nothing will be. */
static bool is_free(struct dm_member *member)
{
    return dm_fleet_is_idle(member) && !member->asked_ns && !dm_link_is_open(member->node.commands.link) &&
           !dm_link_is_open(member->node.inbox.link);
}

/* For a full fleet: the member that has been of no use for the longest time.  NULL: all are needed. */
static struct dm_member *reuse(struct dm_fleet *fleet, const char *host, const char *port)
{
    struct dm_member *oldest = NULL;

    dm_assert_held(DM_RANK_FLEET);
    for (unsigned i = 0; i < fleet->count; i++) {
        struct dm_member *member = fleet->members[i];

        if ((!oldest || member->used_ns < oldest->used_ns) && is_free(member))
            oldest = member;
    }
    if (!oldest)
        return NULL;
    dm_node_move(&oldest->node, host, port);
    oldest->has_served = false;
    oldest->vouchers = (struct dm_vouchers){ 0 };
    oldest->used_ns = dm_clock_boot_ns();
    return oldest;
}

struct dm_member *dm_fleet_member_at(struct dm_fleet *fleet, const char *host, const char *port)
{
    struct dm_member *member;
    struct dm_url *url;

    dm_assert_held(DM_RANK_FLEET);
    for (unsigned i = 0; i < fleet->count; i++) {
        if (is_at(fleet->members[i], host, port))
            return fleet->members[i];
    }
    if (fleet->count == DM_FLEET_MOST)
        return fleet->is_ended ? NULL : reuse(fleet, host, port);
    url = !fleet->is_ended ? dm_url_of_server(fleet->url, host, port) : NULL;
    if (!url)
        return NULL;
    url->switch_ms = fleet->url->switch_ms;
    member = new_member(fleet, url);
    if (member)
        add(fleet, member);
    else
        dm_url_free(url);
    return member;
}

struct dm_member *dm_fleet_any(struct dm_fleet *fleet)
{
    unsigned count = dm_fleet_count(fleet);

    for (unsigned i = 0; i < count; i++) {
        if (dm_node_is_ready(&fleet->members[i]->node))
            return fleet->members[i];
    }
    return count ? fleet->members[0] : NULL;
}

bool dm_fleet_add_only(struct dm_fleet *fleet)
{
    struct dm_member *member = new_member(fleet, fleet->url);

    if (member)
        add(fleet, member);
    return member != NULL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The map of a Cluster, and the vouchers: both are in the nodes' answers to CLUSTER SLOTS.
 *
 * A node is believed for half of `switch` after the requests in whose answers enough masters named it.  So nobody
 * believes it any more at the end of the grace of the server that takes its place.
 */
#include <string.h>

#include "link/turns.h"
#include "stores/redis/cluster/fleet_parts.h"

/* The map is not asked for out of turn, and vouchers are not sought, more often than this. */
#define REFRESH_NS (100 * DM_NS_PER_MS)

/* How often masters are asked within `switch`, and how many at a time. */
#define ROUNDS_IN_SWITCH 4
#define ASKED_MOST 5

static const char not_serving[] = "the node serves no slot of the Cluster";

/* ---- the map ----------------------------------------------------------------------------- */

struct dm_member *dm_fleet_of_slot(const struct dm_fleet *fleet, unsigned slot)
{
    unsigned owner = fleet->owners ? __atomic_load_n(&fleet->owners[slot], __ATOMIC_ACQUIRE) : 1;

    return owner ? fleet->members[owner - 1] : NULL;
}

static void take_slot(struct dm_fleet *fleet, struct dm_member *member)
{
    if (__atomic_sub_fetch(&member->slots, 1, __ATOMIC_RELAXED) > 0)
        return;
    fleet->masters--;
    member->used_ns = dm_clock_boot_ns();
    member->vouchers = (struct dm_vouchers){ 0 };
    __atomic_store_n(&member->vouched_until_ns, 0, __ATOMIC_RELAXED);
}

bool dm_fleet_give_slot(struct dm_fleet *fleet, unsigned slot, struct dm_member *member)
{
    struct dm_member *before = dm_fleet_of_slot(fleet, slot);

    dm_assert_held(DM_RANK_FLEET);
    if (before == member)
        return false;
    if (before)
        take_slot(fleet, before);
    if (__atomic_add_fetch(&member->slots, 1, __ATOMIC_RELAXED) == 1)
        fleet->masters++;
    member->has_served = true;
    __atomic_store_n(&fleet->owners[slot], (unsigned char)(member->index + 1), __ATOMIC_RELEASE);
    return true;
}

/* A master for which there is no room serves the slot; the previous one no longer does. */
static void leave_slot(struct dm_fleet *fleet, unsigned slot)
{
    struct dm_member *before = dm_fleet_of_slot(fleet, slot);

    dm_assert_held(DM_RANK_FLEET);
    if (!before)
        return;
    __atomic_store_n(&fleet->owners[slot], 0, __ATOMIC_RELEASE);
    take_slot(fleet, before);
}

/* ---- vouchers ---------------------------------------------------------------------------- */

static int64_t switch_ns(const struct dm_fleet *fleet)
{
    return fleet->url->switch_ms * DM_NS_PER_MS;
}

/*
 * A node that gets its first slot is in no map until the move is complete, so a master that redirects a request to it
 * vouches for it, while others vouch for that master.  Nothing can have replaced the node, because a master without
 * slots is never replaced; one that had slots may have been.
 */
bool dm_fleet_vouch_ahead(struct dm_member *member, const struct dm_member *from)
{
    int64_t until_ns = __atomic_load_n(&from->vouched_until_ns, __ATOMIC_RELAXED);
    bool was_vouched = dm_fleet_is_vouched(member);

    dm_assert_held(DM_RANK_FLEET);
    if (member->has_served)
        return false;
    __atomic_store_n(&member->vouched_until_ns, until_ns, __ATOMIC_RELAXED);
    return !was_vouched && dm_fleet_is_vouched(member);
}

/* A map that is being read, and the nodes that can be used from now on. */
struct taking {
    struct dm_fleet *fleet;
    struct dm_member *by; /* NULL: the slot map, whose server may be any node under another name */
    int64_t asked_ns;
    bool has_changed; /* the map */
    bool is_full;     /* there is no room for a master */
    bool is_named[DM_FLEET_MOST], is_new[DM_FLEET_MOST];
};

/* a dm_slots_fn; a slot without a master keeps its previous owner, which may come back */
static void take_range(void *user, unsigned first, unsigned last, const char *host, const char *port)
{
    struct taking *taking = user;
    struct dm_member *member = dm_fleet_member_at(taking->fleet, host, port);

    if (member)
        taking->is_named[member->index] = true;
    else
        taking->is_full = true;
    for (unsigned slot = first; slot <= last; slot++) {
        if (!member)
            leave_slot(taking->fleet, slot);
        else if (dm_fleet_of_slot(taking->fleet, slot) != member)
            taking->has_changed |= dm_fleet_give_slot(taking->fleet, slot, member);
    }
}

static void vouch(struct taking *taking, struct dm_member *member)
{
    bool was_vouched = dm_fleet_is_vouched(member);
    int64_t since_ns;

    dm_vouchers_take(&member->vouchers, taking->by->index + 1, taking->asked_ns);
    since_ns = dm_vouchers_since_ns(&member->vouchers, dm_vouchers_needed(taking->fleet->masters));
    if (since_ns)
        __atomic_store_n(&member->vouched_until_ns, since_ns + switch_ns(taking->fleet) / 2, __ATOMIC_RELAXED);
    taking->is_new[member->index] = !was_vouched && dm_fleet_is_vouched(member);
}

/* A node that has no slot, according to its own answer, does not count. */
static void vouch_for_all(struct taking *taking)
{
    dm_assert_held(DM_RANK_FLEET);
    if (!taking->by || !taking->is_named[taking->by->index])
        return;
    for (unsigned i = 0; i < taking->fleet->count; i++) {
        if (taking->is_named[i])
            vouch(taking, taking->fleet->members[i]);
    }
}

/* As when the links have just been opened. */
void dm_fleet_tell_vouched(struct dm_member *member)
{
    dm_link_tell_news(member->node.commands.link);
    dm_link_tell_news(member->node.inbox.link);
    if (dm_link_is_ready(member->node.commands.link))
        member->fleet->hooks.on_ready(member);
    if (dm_link_is_ready(member->node.inbox.link))
        member->fleet->hooks.on_inbox(member);
}

static void tell_all_vouched(const struct taking *taking)
{
    struct dm_fleet *fleet = taking->fleet;

    for (unsigned i = 0, count = dm_fleet_count(fleet); i < count; i++) {
        if (!taking->is_new[i])
            continue;
        __atomic_store_n(&fleet->members[i]->is_wished, false, __ATOMIC_RELAXED);
        dm_fleet_tell_vouched(fleet->members[i]);
    }
}

/* ---- answers ----------------------------------------------------------------------------- */

/* Makes nodes that had no slot, and calls that wait for the owner of a slot, check again. */
static void tell_map(struct dm_fleet *fleet)
{
    unsigned count = dm_fleet_count(fleet);

    for (unsigned i = 0; i < count; i++) {
        dm_link_retry_soon(fleet->members[i]->node.commands.link);
        dm_link_retry_soon(fleet->members[i]->node.inbox.link);
    }
    dm_slot_map_tell_news(fleet->slot_map);
    fleet->hooks.on_map(fleet);
}

static bool take(struct taking *taking, const struct redisReply *reply, const char *host)
{
    struct dm_fleet *fleet = taking->fleet;
    bool is_map;

    dm_mutex_lock(&fleet->lock);
    is_map = dm_slots_read(reply, host, take_range, taking);
    if (is_map) {
        fleet->is_full = taking->is_full;
        vouch_for_all(taking);
    }
    dm_mutex_unlock(&fleet->lock);
    if (!is_map)
        return false;
    if (taking->has_changed)
        tell_map(fleet);
    tell_all_vouched(taking);
    return true;
}

bool dm_fleet_take_map(void *user, const struct redisReply *reply, const char *host)
{
    struct taking taking = { .fleet = user };

    return take(&taking, reply, host);
}

/* a dm_reply_fn for a member */
static void take_map_of_member(void *user, const struct redisReply *reply)
{
    struct dm_member *member = user;
    struct taking taking = { .fleet = member->fleet, .by = member };
    char host[sizeof member->node.place.host];

    dm_mutex_lock(&member->fleet->lock);
    taking.asked_ns = member->asked_ns;
    member->asked_ns = 0;
    memcpy(host, member->node.place.host, sizeof host);
    dm_mutex_unlock(&member->fleet->lock);
    if (reply)
        take(&taking, reply, host);
}

/* ---- questions --------------------------------------------------------------------------- */

/* At most one request to each node is under way, so that we know when the request of an answer was sent. */
static bool begin_question(struct dm_member *member)
{
    struct dm_fleet *fleet = member->fleet;
    bool may_ask;

    dm_mutex_lock(&fleet->lock);
    may_ask = member->asked_ns == 0;
    if (may_ask)
        member->asked_ns = dm_clock_boot_ns();
    dm_mutex_unlock(&fleet->lock);
    return may_ask;
}

static void give_up_question(struct dm_member *member)
{
    dm_mutex_lock(&member->fleet->lock);
    member->asked_ns = 0;
    dm_mutex_unlock(&member->fleet->lock);
}

/* False: the node cannot be asked now. */
static bool ask(struct dm_member *member)
{
    struct dm_command command;
    bool is_sent;

    if (!begin_question(member))
        return true;
    command = dm_slot_map_question();
    is_sent = dm_link_post(member->node.commands.link, &command, take_map_of_member, member) == DM_LINK_OK;
    dm_command_free(&command);
    if (!is_sent)
        give_up_question(member);
    return is_sent;
}

/*
 * Starts with other masters each time, because a node may be cut off from the rest.  Asks only masters of the map: a
 * node that serves nothing may be anybody that a redirect has named.  Returns how many were asked.
 */
static unsigned ask_some(struct dm_fleet *fleet, unsigned most)
{
    unsigned count = dm_fleet_count(fleet), asked = 0;

    for (unsigned i = 0; i < count && asked < most; i++) {
        struct dm_member *member = fleet->members[__atomic_add_fetch(&fleet->asked, 1, __ATOMIC_RELAXED) % count];

        if (dm_fleet_is_serving(member))
            asked += ask(member);
    }
    return asked;
}

/* If the last time was long enough ago, notes the time and returns true. */
static bool is_due_again(struct dm_fleet *fleet, int64_t *last_ns)
{
    int64_t now_ns = dm_clock_boot_ns();
    bool is_due;

    dm_mutex_lock(&fleet->lock);
    is_due = now_ns >= *last_ns + REFRESH_NS;
    if (is_due)
        __atomic_store_n(last_ns, now_ns, __ATOMIC_RELAXED); /* the loop reads it without the lock */
    dm_mutex_unlock(&fleet->lock);
    return is_due;
}

void dm_fleet_refresh(struct dm_fleet *fleet)
{
    if (dm_fleet_is_clustered(fleet) && is_due_again(fleet, &fleet->refreshed_ns) && ask_some(fleet, 1) == 0)
        dm_slot_map_ask(fleet->slot_map);
}

unsigned dm_fleet_ask_around(struct dm_fleet *fleet)
{
    int64_t next_ns = dm_clock_boot_ns() + switch_ns(fleet) / ROUNDS_IN_SWITCH;

    if (!dm_fleet_is_clustered(fleet))
        return 0;
    __atomic_store_n(&fleet->ask_ns, next_ns, __ATOMIC_RELAXED);
    return ask_some(fleet, ASKED_MOST);
}

/* Opens links until ASKED_MOST masters can be asked; other ones each time, because some may be gone. */
void dm_fleet_find_vouchers(struct dm_fleet *fleet)
{
    unsigned count = dm_fleet_count(fleet), found;

    if (!is_due_again(fleet, &fleet->sought_ns))
        return;
    found = dm_fleet_ask_around(fleet);
    for (unsigned i = 0; i < count && found < ASKED_MOST; i++) {
        struct dm_member *member = fleet->members[__atomic_add_fetch(&fleet->sought, 1, __ATOMIC_RELAXED) % count];

        if (!dm_fleet_is_serving(member) || dm_link_is_open(member->node.commands.link))
            continue;
        dm_link_want(member->node.commands.link);
        found++;
    }
}

int64_t dm_fleet_ask_due_ns(const struct dm_fleet *fleet)
{
    return __atomic_load_n(&fleet->ask_ns, __ATOMIC_RELAXED);
}

/* Closes the descriptors of nodes that have left, or never existed. */
static void close_idle(struct dm_fleet *fleet)
{
    unsigned count = dm_fleet_count(fleet);

    for (unsigned i = 0; i < count; i++) {
        struct dm_member *member = fleet->members[i];
        bool is_idle;

        dm_mutex_lock(&fleet->lock);
        is_idle = dm_fleet_is_idle(member);
        dm_mutex_unlock(&fleet->lock);
        if (!is_idle)
            continue;
        dm_link_rest(member->node.commands.link, not_serving);
        dm_link_rest(member->node.inbox.link, not_serving);
    }
}

void dm_fleet_turn(struct dm_fleet *fleet)
{
    if (dm_clock_boot_ns() >= dm_fleet_ask_due_ns(fleet)) {
        dm_fleet_ask_around(fleet);
        close_idle(fleet);
    }
    if (__atomic_exchange_n(&fleet->is_wished, false, __ATOMIC_RELAXED)) {
        dm_fleet_refresh(fleet);
        dm_fleet_find_vouchers(fleet);
    }
}

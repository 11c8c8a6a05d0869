/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The map of a Cluster, and the vouchers: both are in the nodes' answers to CLUSTER SLOTS.
 *
 * A node is believed for half of `switch` after the requests in whose answers enough masters named it.  So nobody
 * believes it any more at the end of the grace of the server that takes its place.
 */
#include <string.h>

#include "link/turns.h"
#include "stores/redis/cluster/parts.h"

/* The map is not asked for out of turn, and vouchers are not sought, more often than this. */
#define REFRESH_NS (100 * DM_NS_PER_MS)

/* How often masters are asked within `switch`, and how many at a time. */
#define ROUNDS_IN_SWITCH 4
#define ASKED_MOST 5

static const char not_serving[] = "the node serves no slot of the Cluster";

/* ---- the map ----------------------------------------------------------------------------- */

struct dm_cluster_node *dm_cluster_of_slot(const struct dm_cluster *cluster, unsigned slot)
{
    unsigned owner = __atomic_load_n(&cluster->owners[slot], __ATOMIC_ACQUIRE);

    return owner ? cluster->nodes[owner - 1] : NULL;
}

static void take_slot(struct dm_cluster *cluster, struct dm_cluster_node *node)
{
    if (__atomic_sub_fetch(&node->slots, 1, __ATOMIC_RELAXED) > 0)
        return;
    cluster->masters--;
    node->used_ns = dm_clock_boot_ns();
    node->vouchers = (struct dm_vouchers){ 0 };
    __atomic_store_n(&node->vouched_until_ns, 0, __ATOMIC_RELAXED);
}

bool dm_cluster_give_slot(struct dm_cluster *cluster, unsigned slot, struct dm_cluster_node *node)
{
    struct dm_cluster_node *before = dm_cluster_of_slot(cluster, slot);

    dm_assert_held(DM_RANK_CLUSTER);
    if (before == node)
        return false;
    if (before)
        take_slot(cluster, before);
    if (__atomic_add_fetch(&node->slots, 1, __ATOMIC_RELAXED) == 1)
        cluster->masters++;
    node->has_served = true;
    __atomic_store_n(&cluster->owners[slot], (unsigned char)(node->base.index + 1), __ATOMIC_RELEASE);
    return true;
}

/* A master for which there is no room serves the slot; the previous one no longer does. */
static void leave_slot(struct dm_cluster *cluster, unsigned slot)
{
    struct dm_cluster_node *before = dm_cluster_of_slot(cluster, slot);

    dm_assert_held(DM_RANK_CLUSTER);
    if (!before)
        return;
    __atomic_store_n(&cluster->owners[slot], 0, __ATOMIC_RELEASE);
    take_slot(cluster, before);
}

/* ---- vouchers ---------------------------------------------------------------------------- */

static int64_t switch_ns(const struct dm_cluster *cluster)
{
    return cluster->url->switch_ms * DM_NS_PER_MS;
}

/*
 * A node that gets its first slot is in no map until the move is complete, so a master that redirects a request to it
 * vouches for it, while others vouch for that master.  Nothing can have replaced the node, because a master without
 * slots is never replaced; one that had slots may have been.
 */
bool dm_cluster_vouch_ahead(struct dm_cluster_node *node, const struct dm_cluster_node *from)
{
    int64_t until_ns = __atomic_load_n(&from->vouched_until_ns, __ATOMIC_RELAXED);
    bool was_vouched = dm_cluster_is_vouched(node);

    dm_assert_held(DM_RANK_CLUSTER);
    if (node->has_served)
        return false;
    __atomic_store_n(&node->vouched_until_ns, until_ns, __ATOMIC_RELAXED);
    return !was_vouched && dm_cluster_is_vouched(node);
}

/* A map that is being read, and the nodes that can be used from now on. */
struct taking {
    struct dm_cluster *cluster;
    struct dm_cluster_node *by; /* NULL: the slot map, whose server may be any node under another name */
    int64_t asked_ns;
    bool has_changed; /* the map */
    bool is_full;     /* there is no room for a master */
    bool is_named[DM_CLUSTER_MOST], is_new[DM_CLUSTER_MOST];
};

/* a dm_slots_fn; a slot without a master keeps its previous owner, which may come back */
static void take_range(void *user, unsigned first, unsigned last, const char *host, const char *port)
{
    struct taking *taking = user;
    struct dm_cluster_node *node = dm_cluster_node_at(taking->cluster, host, port);

    if (node)
        taking->is_named[node->base.index] = true;
    else
        taking->is_full = true;
    for (unsigned slot = first; slot <= last; slot++) {
        if (!node)
            leave_slot(taking->cluster, slot);
        else if (dm_cluster_of_slot(taking->cluster, slot) != node)
            taking->has_changed |= dm_cluster_give_slot(taking->cluster, slot, node);
    }
}

static void vouch(struct taking *taking, struct dm_cluster_node *node)
{
    bool was_vouched = dm_cluster_is_vouched(node);
    int64_t since_ns;

    dm_vouchers_take(&node->vouchers, taking->by->base.index + 1, taking->asked_ns);
    since_ns = dm_vouchers_since_ns(&node->vouchers, dm_vouchers_needed(taking->cluster->masters));
    if (since_ns)
        __atomic_store_n(&node->vouched_until_ns, since_ns + switch_ns(taking->cluster) / 2, __ATOMIC_RELAXED);
    taking->is_new[node->base.index] = !was_vouched && dm_cluster_is_vouched(node);
}

/* A node that has no slot, according to its own answer, does not count. */
static void vouch_for_all(struct taking *taking)
{
    dm_assert_held(DM_RANK_CLUSTER);
    if (!taking->by || !taking->is_named[taking->by->base.index])
        return;
    for (unsigned i = 0; i < taking->cluster->count; i++) {
        if (taking->is_named[i])
            vouch(taking, taking->cluster->nodes[i]);
    }
}

/* As when the links have just been opened. */
void dm_cluster_tell_vouched(struct dm_cluster_node *node)
{
    dm_link_tell_news(node->base.commands.link);
    dm_link_tell_news(node->base.inbox.link);
    if (dm_link_is_ready(node->base.commands.link))
        node->cluster->hooks.on_ready(node->cluster->hooks.user);
    if (dm_link_is_ready(node->base.inbox.link))
        node->cluster->hooks.on_inbox(node->cluster->hooks.user, node);
}

static void tell_all_vouched(const struct taking *taking)
{
    struct dm_cluster *cluster = taking->cluster;

    for (unsigned i = 0, count = dm_cluster_count(cluster); i < count; i++) {
        if (!taking->is_new[i])
            continue;
        __atomic_store_n(&cluster->nodes[i]->base.is_wished, false, __ATOMIC_RELAXED);
        dm_cluster_tell_vouched(cluster->nodes[i]);
    }
}

/* ---- answers ----------------------------------------------------------------------------- */

/* Makes nodes that had no slot, and calls that wait for the owner of a slot, check again. */
static void tell_map(struct dm_cluster *cluster)
{
    unsigned count = dm_cluster_count(cluster);

    for (unsigned i = 0; i < count; i++) {
        dm_link_retry_soon(cluster->nodes[i]->base.commands.link);
        dm_link_retry_soon(cluster->nodes[i]->base.inbox.link);
    }
    dm_link_tell_news(dm_slot_map_link(cluster->slot_map));
    cluster->hooks.on_map(cluster->hooks.user);
}

static bool take(struct taking *taking, const struct redisReply *reply, const char *host)
{
    struct dm_cluster *cluster = taking->cluster;
    bool is_map;

    dm_mutex_lock(&cluster->lock);
    is_map = dm_slots_read(reply, host, take_range, taking);
    if (is_map) {
        cluster->is_full = taking->is_full;
        vouch_for_all(taking);
    }
    dm_mutex_unlock(&cluster->lock);
    if (!is_map)
        return false;
    if (taking->has_changed)
        tell_map(cluster);
    tell_all_vouched(taking);
    return true;
}

bool dm_cluster_take_map(void *user, const struct redisReply *reply, const char *host)
{
    struct taking taking = { .cluster = user };

    return take(&taking, reply, host);
}

/* a dm_reply_fn for a node */
static void take_map_of_node(void *user, const struct redisReply *reply)
{
    struct dm_cluster_node *node = user;
    struct taking taking = { .cluster = node->cluster, .by = node };
    char host[sizeof node->base.place.host];

    dm_mutex_lock(&node->cluster->lock);
    taking.asked_ns = node->asked_ns;
    node->asked_ns = 0;
    memcpy(host, node->base.place.host, sizeof host);
    dm_mutex_unlock(&node->cluster->lock);
    if (reply)
        take(&taking, reply, host);
}

/* ---- questions --------------------------------------------------------------------------- */

/* At most one request to each node is under way, so that we know when the request of an answer was sent. */
static bool begin_question(struct dm_cluster_node *node)
{
    struct dm_cluster *cluster = node->cluster;
    bool may_ask;

    dm_mutex_lock(&cluster->lock);
    may_ask = node->asked_ns == 0;
    if (may_ask)
        node->asked_ns = dm_clock_boot_ns();
    dm_mutex_unlock(&cluster->lock);
    return may_ask;
}

static void give_up_question(struct dm_cluster_node *node)
{
    dm_mutex_lock(&node->cluster->lock);
    node->asked_ns = 0;
    dm_mutex_unlock(&node->cluster->lock);
}

/* False: the node cannot be asked now. */
static bool ask(struct dm_cluster_node *node)
{
    struct dm_command command;
    bool is_sent;

    if (!begin_question(node))
        return true;
    command = dm_slot_map_question();
    is_sent = dm_link_post(node->base.commands.link, &command, take_map_of_node, node) == DM_LINK_OK;
    dm_command_free(&command);
    if (!is_sent)
        give_up_question(node);
    return is_sent;
}

/*
 * Starts with other masters each time, because a node may be cut off from the rest.  Asks only masters of the map: a
 * node that serves nothing may be anybody that a redirect has named.  Returns how many were asked.
 */
static unsigned ask_some(struct dm_cluster *cluster, unsigned most)
{
    unsigned count = dm_cluster_count(cluster), asked = 0;

    for (unsigned i = 0; i < count && asked < most; i++) {
        struct dm_cluster_node *node = cluster->nodes[__atomic_add_fetch(&cluster->asked, 1, __ATOMIC_RELAXED) % count];

        if (dm_cluster_is_serving(node))
            asked += ask(node);
    }
    return asked;
}

/* If the last time was long enough ago, notes the time and returns true. */
static bool is_due_again(struct dm_cluster *cluster, int64_t *last_ns)
{
    int64_t now_ns = dm_clock_boot_ns();
    bool is_due;

    dm_mutex_lock(&cluster->lock);
    is_due = now_ns >= *last_ns + REFRESH_NS;
    if (is_due)
        __atomic_store_n(last_ns, now_ns, __ATOMIC_RELAXED); /* the loop reads it without the lock */
    dm_mutex_unlock(&cluster->lock);
    return is_due;
}

void dm_cluster_refresh(struct dm_cluster *cluster)
{
    if (is_due_again(cluster, &cluster->refreshed_ns) && ask_some(cluster, 1) == 0)
        dm_slot_map_ask(cluster->slot_map);
}

unsigned dm_cluster_ask_around(struct dm_cluster *cluster)
{
    int64_t next_ns = dm_clock_boot_ns() + switch_ns(cluster) / ROUNDS_IN_SWITCH;

    __atomic_store_n(&cluster->ask_ns, next_ns, __ATOMIC_RELAXED);
    return ask_some(cluster, ASKED_MOST);
}

/* Opens links until ASKED_MOST masters can be asked; other ones each time, because some may be gone. */
void dm_cluster_find_vouchers(struct dm_cluster *cluster)
{
    unsigned count = dm_cluster_count(cluster), found;

    if (!is_due_again(cluster, &cluster->sought_ns))
        return;
    found = dm_cluster_ask_around(cluster);
    for (unsigned i = 0; i < count && found < ASKED_MOST; i++) {
        struct dm_cluster_node *node =
            cluster->nodes[__atomic_add_fetch(&cluster->sought, 1, __ATOMIC_RELAXED) % count];

        if (!dm_cluster_is_serving(node) || dm_link_is_open(node->base.commands.link))
            continue;
        dm_link_want(node->base.commands.link);
        found++;
    }
}

int64_t dm_cluster_ask_due_ns(const struct dm_cluster *cluster)
{
    return __atomic_load_n(&cluster->ask_ns, __ATOMIC_RELAXED);
}

/* Closes the descriptors of nodes that have left, or never existed. */
static void close_idle(struct dm_cluster *cluster)
{
    unsigned count = dm_cluster_count(cluster);

    for (unsigned i = 0; i < count; i++) {
        struct dm_cluster_node *node = cluster->nodes[i];
        bool is_idle;

        dm_mutex_lock(&cluster->lock);
        is_idle = dm_cluster_is_idle(node);
        dm_mutex_unlock(&cluster->lock);
        if (!is_idle)
            continue;
        dm_link_rest(node->base.commands.link, not_serving);
        dm_link_rest(node->base.inbox.link, not_serving);
    }
}

void dm_cluster_turn(struct dm_cluster *cluster)
{
    if (dm_clock_boot_ns() >= dm_cluster_ask_due_ns(cluster)) {
        dm_cluster_ask_around(cluster);
        close_idle(cluster);
    }
    if (__atomic_exchange_n(&cluster->is_wished, false, __ATOMIC_RELAXED)) {
        dm_cluster_refresh(cluster);
        dm_cluster_find_vouchers(cluster);
    }
}

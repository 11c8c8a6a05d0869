/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reader of the map takes no lock: a slot's owner is a byte, nodes are never removed, and a byte that is out of
 * date sends a request to a node that answers MOVED.
 */
#include "stores/redis/cluster/parts.h"

#include <stdlib.h>
#include <string.h>

#include "link/turns.h"
#include "stores/redis/wire/reply.h"

/* How long a call waits for a node before it looks the slot up again. */
#define SLICE_MS 200

/* A redirected request goes to the other node within this time, or asks both nodes again. */
#define AHEAD_NS (200 * DM_NS_PER_MS)

/* ---- the hooks of a node, for the cluster -------------------------------------------------- */

/* A link can be used once others vouch for the node. */
static void commands_ready(void *user)
{
    struct dm_cluster_node *node = user;

    if (dm_cluster_is_vouched(node))
        node->cluster->hooks.on_ready(node->cluster->hooks.user);
    dm_cluster_ask_around(node->cluster);
}

static void inbox_ready(void *user)
{
    struct dm_cluster_node *node = user;

    if (dm_cluster_is_vouched(node))
        node->cluster->hooks.on_inbox(node->cluster->hooks.user, node);
}

static void message_came(void *user, const char *text, const struct dm_server *server)
{
    struct dm_cluster_node *node = user;

    node->cluster->hooks.on_message(node->cluster->hooks.user, text, server);
}

static void inbox_replied(void *user, const struct redisReply *reply)
{
    struct dm_cluster_node *node = user;

    node->cluster->hooks.on_inbox_reply(node->cluster->hooks.user, node, reply);
}

static void changed(void *user)
{
    const struct dm_cluster_node *node = user;

    node->cluster->hooks.on_change(node->cluster->hooks.user);
}

int dm_cluster_first_slot(const struct dm_cluster_node *node)
{
    for (unsigned slot = 0; slot < DM_SLOTS; slot++) {
        if (dm_cluster_of_slot(node->cluster, slot) == node)
            return (int)slot;
    }
    return -1;
}

static int last_slot(const struct dm_cluster_node *node)
{
    for (unsigned slot = DM_SLOTS; slot-- > 0;) {
        if (dm_cluster_of_slot(node->cluster, slot) == node)
            return (int)slot;
    }
    return -1;
}

/*
 * The lowest slot, so that all processes find the same mark; the highest, if the lowest is moving.  A node without
 * slots has no mark: it is only used for names ahead of their slots.
 */
static bool find_tag(void *user, bool is_lowest_under_way, char ret_tag[DM_SLOT_TAG_ROOM],
                     char ret_reason[DM_REASON_ROOM])
{
    const struct dm_cluster_node *node = user;
    int slot = is_lowest_under_way ? last_slot(node) : dm_cluster_first_slot(node);

    dm_assert_held(DM_RANK_CONN);
    ret_tag[0] = '\0';
    if (slot >= 0)
        dm_slot_tag((unsigned)slot, ret_tag);
    if (slot >= 0 || dm_cluster_is_vouched(user))
        return true;
    snprintf(ret_reason, DM_REASON_ROOM, "the node serves no slot of the Cluster");
    return false;
}

/* ---- names ahead of their slots ---------------------------------------------------------- */

static void forget_ahead(struct dm_cluster *cluster, struct dm_ahead *ahead)
{
    dm_assert_held(DM_RANK_CLUSTER);
    if (ahead->key)
        __atomic_sub_fetch(&cluster->ahead_count, 1, __ATOMIC_RELAXED);
    free(ahead->key);
    ahead->key = NULL;
}

/*
 * While a slot moves, its node redirects a request if it has none of its keys (ASK).  Then the name is on the other
 * node, because nothing new is created on the first one.  We compare the key, because another name of the slot may not
 * have moved yet, and would seem to be free on the other node.
 *
 * Only one request goes ahead, and soon: an operator may move the keys back, and start the same move again.
 */
static struct dm_cluster_node *take_ahead(struct dm_cluster *cluster, const char *key, size_t length)
{
    struct dm_cluster_node *node = NULL;

    if (__atomic_load_n(&cluster->ahead_count, __ATOMIC_RELAXED) == 0)
        return NULL;
    dm_mutex_lock(&cluster->lock);
    for (int i = 0; i < DM_CLUSTER_AHEAD && !node; i++) {
        struct dm_ahead *ahead = &cluster->ahead[i];

        if (!ahead->key || strlen(ahead->key) != length || memcmp(ahead->key, key, length) != 0)
            continue;
        if (dm_clock_boot_ns() < ahead->until_ns)
            node = ahead->node;
        forget_ahead(cluster, ahead);
    }
    dm_mutex_unlock(&cluster->lock);
    return node;
}

/* Replaces the oldest; without memory the next request is redirected once more. */
static void note_ahead(struct dm_cluster *cluster, const char *key, size_t length, struct dm_cluster_node *node)
{
    struct dm_ahead *ahead = &cluster->ahead[cluster->ahead_next++ % DM_CLUSTER_AHEAD];

    dm_assert_held(DM_RANK_CLUSTER);
    forget_ahead(cluster, ahead);
    node->used_ns = dm_clock_boot_ns();
    *ahead = (struct dm_ahead){ strndup(key, length), node, node->used_ns + AHEAD_NS };
    if (ahead->key)
        __atomic_add_fetch(&cluster->ahead_count, 1, __ATOMIC_RELAXED);
}

/* ---- routes ------------------------------------------------------------------------------ */

/* EVALSHA, the hash, the number of keys, and the keys: all are of one group, and so of one slot. */
#define FIRST_KEY 3

struct dm_cluster_node *dm_cluster_of_args(struct dm_cluster *cluster, struct dm_args *args)
{
    const char *key = args->texts[FIRST_KEY];
    size_t length = args->lengths[FIRST_KEY];
    struct dm_cluster_node *ahead = take_ahead(cluster, key, length);

    args->is_asking = ahead != NULL;
    if (ahead)
        return ahead;
    return dm_cluster_of_slot(cluster, dm_slot_of(key, length));
}

/* Notes a name that is only ahead of its slot; changes the map for a slot that has moved. */
bool dm_cluster_redirect(struct dm_cluster *cluster, const struct dm_cluster_node *from, const char *key, size_t length,
                         const char *error)
{
    struct dm_redirect redirect;
    struct dm_cluster_node *to;
    bool is_redirect, is_news = false;

    dm_mutex_lock(&cluster->lock);
    is_redirect = dm_redirect_read(error, from->base.place.host, &redirect);
    to = is_redirect ? dm_cluster_node_at(cluster, redirect.host, redirect.port) : NULL;
    if (to && !redirect.is_ask)
        dm_cluster_give_slot(cluster, redirect.slot, to);
    else if (to && key)
        note_ahead(cluster, key, length, to);
    if (to && redirect.is_ask)
        is_news = dm_cluster_vouch_ahead(to, from);
    dm_mutex_unlock(&cluster->lock);
    if (!is_redirect)
        return false;
    if (to)
        dm_node_wish(&to->base);
    if (is_news) {
        dm_link_retry_soon(to->base.commands.link);
        dm_cluster_tell_vouched(to);
    }
    if (!redirect.is_ask)
        dm_cluster_refresh(cluster);
    return true;
}

void dm_cluster_wish(struct dm_cluster *cluster)
{
    __atomic_store_n(&cluster->is_wished, true, __ATOMIC_RELAXED);
}

/* A slot, for a wait until the node that serves the slot is known. */
struct lookup {
    const struct dm_cluster *cluster;
    unsigned slot;
};

static bool is_known(void *user)
{
    const struct lookup *lookup = user;

    return dm_cluster_of_slot(lookup->cluster, lookup->slot) != NULL;
}

static void await_map(struct dm_cluster *cluster, unsigned slot, const struct dm_deadline *deadline)
{
    struct lookup lookup = { cluster, slot };

    dm_link_await(dm_slot_map_link(cluster->slot_map), is_known, &lookup, deadline);
}

/* One slice of a wait for `node`, or for the map; in slices, because another node may serve the slot by now. */
static bool await_slice(struct dm_cluster *cluster, struct dm_cluster_node *node, unsigned slot,
                        const struct dm_deadline *deadline)
{
    struct dm_deadline slice = dm_deadline_sooner(deadline, SLICE_MS * DM_NS_PER_MS);

    if (node && !dm_cluster_is_vouched(node))
        dm_cluster_find_vouchers(cluster);
    if (node)
        return dm_link_await_ready(node->base.commands.link, &slice);
    await_map(cluster, slot, &slice);
    return false;
}

static bool is_over(const struct dm_cluster *cluster, const struct dm_deadline *deadline)
{
    return __atomic_load_n(&cluster->is_ended, __ATOMIC_RELAXED) || dm_deadline_left_ns(deadline) == 0;
}

struct dm_cluster_node *dm_cluster_await(struct dm_cluster *cluster, struct dm_args *args,
                                         const struct dm_deadline *deadline)
{
    struct dm_cluster_node *node = dm_cluster_of_args(cluster, args);

    while (!await_slice(cluster, node, dm_slot_of(args->texts[FIRST_KEY], args->lengths[FIRST_KEY]), deadline)) {
        if (is_over(cluster, deadline))
            return NULL;
        dm_cluster_refresh(cluster);
        node = dm_cluster_of_args(cluster, args);
    }
    return node;
}

struct dm_cluster_node *dm_cluster_await_slot(struct dm_cluster *cluster, unsigned slot,
                                              const struct dm_deadline *deadline)
{
    struct dm_cluster_node *node = dm_cluster_of_slot(cluster, slot);

    while (!await_slice(cluster, node, slot, deadline)) {
        if (is_over(cluster, deadline))
            return NULL;
        dm_cluster_refresh(cluster);
        node = dm_cluster_of_slot(cluster, slot);
    }
    return node;
}

void dm_cluster_reason(struct dm_cluster *cluster, char ret_reason[DM_REASON_ROOM])
{
    bool is_full;

    dm_mutex_lock(&cluster->lock);
    is_full = cluster->is_full;
    dm_mutex_unlock(&cluster->lock);
    if (is_full)
        snprintf(ret_reason, DM_REASON_ROOM,
                 "the Cluster has more than %d masters, or a node names masters that it does not have: "
                 "compare CLUSTER SLOTS of all nodes",
                 DM_CLUSTER_MOST);
    else
        dm_link_reason(dm_slot_map_link(cluster->slot_map), ret_reason);
}

/* ---- start and end ------------------------------------------------------------------- */

static void slot_map_changed(void *user)
{
    struct dm_cluster *cluster = user;

    cluster->hooks.on_change(cluster->hooks.user);
}

/* The first node from `number` on that serves a slot; NULL: there is none left. */
static struct dm_cluster_node *serving_from(const struct dm_cluster *cluster, unsigned number)
{
    unsigned count = dm_cluster_count(cluster);

    while (number < count && !dm_cluster_is_serving(cluster->nodes[number]))
        number++;
    return number < count ? cluster->nodes[number] : NULL;
}

/*
 * The servers of the URL, and then all masters of the map, because the former may all be gone.  A node that serves
 * nothing, which only a redirect or an earlier map has named, is not asked: it may be anybody.
 */
static void find_host(void *user, unsigned number, struct dm_master *ret_place)
{
    const struct dm_cluster *cluster = user;
    unsigned listed = (unsigned)cluster->url->host_count, at = number % (listed + dm_cluster_count(cluster));
    struct dm_cluster_node *node = at < listed ? NULL : serving_from(cluster, at - listed);
    const struct dm_url_host *host = &cluster->url->hosts[number % listed];

    dm_assert_held(DM_RANK_CONN);
    if (node) {
        dm_mutex_lock(&node->base.lock);
        *ret_place = node->base.place;
        dm_mutex_unlock(&node->base.lock);
        return;
    }
    *ret_place = (struct dm_master){ .epoch = 0 };
    snprintf(ret_place->host, sizeof ret_place->host, "%s", host->host);
    snprintf(ret_place->port, sizeof ret_place->port, "%s", host->port);
}

static bool open_slot_map(struct dm_cluster *cluster)
{
    const struct dm_slot_map_hooks hooks = {
        .find_host = find_host, .on_map = dm_cluster_take_map, .on_change = slot_map_changed, .user = cluster
    };

    cluster->owners = calloc(DM_SLOTS, 1);
    cluster->slot_map = cluster->owners ? dm_slot_map_new(cluster->url, &hooks) : NULL;
    return cluster->slot_map != NULL;
}

bool dm_cluster_init(struct dm_cluster *cluster, struct dm_url *url, const struct dm_cluster_hooks *hooks)
{
    *cluster = (struct dm_cluster){ .url = url, .hooks = *hooks, .ask_ns = DM_NEVER };
    cluster->lock = (struct dm_mutex)DM_MUTEX_INITIALIZER(DM_RANK_CLUSTER);
    cluster->node_hooks = (struct dm_node_hooks){
        .on_ready = commands_ready,
        .on_inbox = inbox_ready,
        .on_message = message_came,
        .on_change = changed,
        .find_tag = find_tag,
        .is_vouched = dm_cluster_is_vouched,
        .on_inbox_reply = inbox_replied,
    };
    if (open_slot_map(cluster))
        return true;
    free(cluster->owners);
    return false;
}

/* A Cluster that was never used has no nodes. */
void dm_cluster_clear_unused(struct dm_cluster *cluster)
{
    for (unsigned i = 0; i < cluster->count; i++) {
        dm_node_clear_unused(&cluster->nodes[i]->base);
        free(cluster->nodes[i]);
    }
    dm_slot_map_free_unused(cluster->slot_map);
    free(cluster->owners);
}

void dm_cluster_end(struct dm_cluster *cluster)
{
    unsigned count;

    dm_mutex_lock(&cluster->lock);
    __atomic_store_n(&cluster->is_ended, true, __ATOMIC_RELAXED);
    count = cluster->count;
    dm_mutex_unlock(&cluster->lock);
    for (unsigned i = 0; i < count; i++)
        dm_node_end(&cluster->nodes[i]->base);
    dm_link_end(dm_slot_map_link(cluster->slot_map), "this process uses another server now");
}

/* ---- fork -------------------------------------------------------------------------------- */

/* In the order of the ranks: the cluster, all links, all nodes. */
void dm_cluster_fork_prepare(struct dm_cluster *cluster, enum dm_fork_stage stage)
{
    if (stage == DM_FORK_STORES)
        dm_mutex_lock(&cluster->lock);
    if (stage == DM_FORK_WAYS)
        dm_link_fork_prepare(dm_slot_map_link(cluster->slot_map));
    for (unsigned i = 0; stage == DM_FORK_WAYS && i < cluster->count; i++)
        dm_node_fork_prepare_links(&cluster->nodes[i]->base);
    for (unsigned i = 0; stage == DM_FORK_SERVER && i < cluster->count; i++)
        dm_node_fork_prepare(&cluster->nodes[i]->base);
}

/* A node releases all its locks at once. */
void dm_cluster_fork_parent(struct dm_cluster *cluster, enum dm_fork_stage stage)
{
    for (unsigned i = 0; stage == DM_FORK_SERVER && i < cluster->count; i++)
        dm_node_fork_parent(&cluster->nodes[i]->base);
    if (stage == DM_FORK_WAYS)
        dm_link_fork_parent(dm_slot_map_link(cluster->slot_map));
    if (stage == DM_FORK_STORES)
        dm_mutex_unlock(&cluster->lock);
}

/* Locks are reset, as those of the nodes are. */
void dm_cluster_fork_child(struct dm_cluster *cluster)
{
    for (unsigned i = 0; i < cluster->count; i++)
        dm_node_fork_child(&cluster->nodes[i]->base);
    dm_link_fork_child(dm_slot_map_link(cluster->slot_map));
    cluster->is_ended = true; /* no link opens for the forking thread, if a signal handler interrupted its wait */
    dm_mutex_reset(&cluster->lock);
}

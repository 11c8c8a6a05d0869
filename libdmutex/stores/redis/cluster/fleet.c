/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reader of the map takes no lock: a slot's owner is a byte, members are never removed, and a byte that is out of
 * date sends a request to a node that answers MOVED.
 */
#include "stores/redis/cluster/fleet_parts.h"

#include <stdlib.h>
#include <string.h>

#include "link/tls_calls.h"
#include "link/turns.h"
#include "stores/redis/wire/reply.h"

/* How long a call waits for a node before it looks the slot up again. */
#define SLICE_MS 200

/* A redirected request goes to the other node within this time, or asks both nodes again. */
#define AHEAD_NS (200 * DM_NS_PER_MS)

/* ---- the hooks of a node, for the fleet -------------------------------------------------- */

/*
 * The server may be another one than before.  The sender of a post whose script the server does not know sends it
 * again, if it still exists; the release of a quorum's hold does not, once a majority has answered.
 */
static void forget_scripts(struct dm_member *member)
{
    for (int i = 0; i < DM_OPS; i++)
        __atomic_store_n(&member->is_unknown[i], true, __ATOMIC_RELAXED);
}

/* In a Cluster a link can be used once others vouch for the node. */
static void commands_ready(void *user)
{
    struct dm_member *member = user;

    forget_scripts(member);
    if (dm_fleet_is_vouched(member)) {
        __atomic_store_n(&member->is_wished, false, __ATOMIC_RELAXED);
        member->fleet->hooks.on_ready(member);
    }
    dm_fleet_ask_around(member->fleet);
}

static void inbox_ready(void *user)
{
    struct dm_member *member = user;

    if (dm_fleet_is_vouched(member))
        member->fleet->hooks.on_inbox(member);
}

static void message_came(void *user, const char *text, const struct dm_server *server)
{
    struct dm_member *member = user;

    member->fleet->hooks.on_message(member, text, server);
}

static void inbox_replied(void *user, const struct redisReply *reply)
{
    struct dm_member *member = user;

    member->fleet->hooks.on_inbox_reply(member, reply);
}

static void changed(void *user)
{
    const struct dm_member *member = user;

    member->fleet->hooks.on_change(member->fleet);
}

int dm_fleet_first_slot(const struct dm_member *member)
{
    for (unsigned slot = 0; slot < DM_SLOTS; slot++) {
        if (dm_fleet_of_slot(member->fleet, slot) == member)
            return (int)slot;
    }
    return -1;
}

static int last_slot(const struct dm_member *member)
{
    for (unsigned slot = DM_SLOTS; slot-- > 0;) {
        if (dm_fleet_of_slot(member->fleet, slot) == member)
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
    const struct dm_member *member = user;
    int slot = is_lowest_under_way ? last_slot(member) : dm_fleet_first_slot(member);

    dm_assert_held(DM_RANK_CONN);
    ret_tag[0] = '\0';
    if (slot >= 0)
        dm_slot_tag((unsigned)slot, ret_tag);
    if (slot >= 0 || dm_fleet_is_vouched(user))
        return true;
    snprintf(ret_reason, DM_REASON_ROOM, "the node serves no slot of the Cluster");
    return false;
}

/* ---- names ahead of their slots ---------------------------------------------------------- */

static void forget_ahead(struct dm_fleet *fleet, struct dm_ahead *ahead)
{
    dm_assert_held(DM_RANK_FLEET);
    if (ahead->key)
        __atomic_sub_fetch(&fleet->ahead_count, 1, __ATOMIC_RELAXED);
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
static struct dm_member *take_ahead(struct dm_fleet *fleet, const char *key, size_t length)
{
    struct dm_member *member = NULL;

    if (__atomic_load_n(&fleet->ahead_count, __ATOMIC_RELAXED) == 0)
        return NULL;
    dm_mutex_lock(&fleet->lock);
    for (int i = 0; i < DM_FLEET_AHEAD && !member; i++) {
        struct dm_ahead *ahead = &fleet->ahead[i];

        if (!ahead->key || strlen(ahead->key) != length || memcmp(ahead->key, key, length) != 0)
            continue;
        if (dm_clock_boot_ns() < ahead->until_ns)
            member = ahead->member;
        forget_ahead(fleet, ahead);
    }
    dm_mutex_unlock(&fleet->lock);
    return member;
}

/* Replaces the oldest; without memory the next request is redirected once more. */
static void note_ahead(struct dm_fleet *fleet, const char *key, size_t length, struct dm_member *member)
{
    struct dm_ahead *ahead = &fleet->ahead[fleet->ahead_next++ % DM_FLEET_AHEAD];

    dm_assert_held(DM_RANK_FLEET);
    forget_ahead(fleet, ahead);
    member->used_ns = dm_clock_boot_ns();
    *ahead = (struct dm_ahead){ strndup(key, length), member, member->used_ns + AHEAD_NS };
    if (ahead->key)
        __atomic_add_fetch(&fleet->ahead_count, 1, __ATOMIC_RELAXED);
}

/* ---- routes ------------------------------------------------------------------------------ */

/* EVALSHA, the hash, the number of keys, and the keys: all are of one group, and so of one slot. */
#define FIRST_KEY 3

struct dm_member *dm_fleet_of_args(struct dm_fleet *fleet, struct dm_args *args)
{
    const char *key = args->texts[FIRST_KEY];
    size_t length = args->lengths[FIRST_KEY];
    struct dm_member *ahead = dm_fleet_is_clustered(fleet) ? take_ahead(fleet, key, length) : NULL;

    args->is_asking = ahead != NULL;
    if (ahead)
        return ahead;
    return dm_fleet_of_slot(fleet, dm_fleet_is_clustered(fleet) ? dm_slot_of(key, length) : 0);
}

/* Notes a name that is only ahead of its slot; changes the map for a slot that has moved. */
bool dm_fleet_redirect(struct dm_fleet *fleet, const struct dm_member *from, const char *key, size_t length,
                       const char *error)
{
    struct dm_redirect redirect;
    struct dm_member *to;
    bool is_redirect, is_news = false;

    if (!dm_fleet_is_clustered(fleet))
        return false;
    dm_mutex_lock(&fleet->lock);
    is_redirect = dm_redirect_read(error, from->node.place.host, &redirect);
    to = is_redirect ? dm_fleet_member_at(fleet, redirect.host, redirect.port) : NULL;
    if (to && !redirect.is_ask)
        dm_fleet_give_slot(fleet, redirect.slot, to);
    else if (to && key)
        note_ahead(fleet, key, length, to);
    if (to && redirect.is_ask)
        is_news = dm_fleet_vouch_ahead(to, from);
    dm_mutex_unlock(&fleet->lock);
    if (!is_redirect)
        return false;
    if (to)
        dm_fleet_wish(fleet, to);
    if (is_news) {
        dm_link_retry_soon(to->node.commands.link);
        dm_fleet_tell_vouched(to);
    }
    if (!redirect.is_ask)
        dm_fleet_refresh(fleet);
    return true;
}

/* Without a member, the map is what is missing. */
void dm_fleet_wish(struct dm_fleet *fleet, struct dm_member *member)
{
    __atomic_store_n(member ? &member->is_wished : &fleet->is_wished, true, __ATOMIC_RELAXED);
}

/* A slot, for a wait until the node that serves the slot is known. */
struct lookup {
    const struct dm_fleet *fleet;
    unsigned slot;
};

static bool is_known(void *user)
{
    const struct lookup *lookup = user;

    return dm_fleet_of_slot(lookup->fleet, lookup->slot) != NULL;
}

static void await_map(struct dm_fleet *fleet, unsigned slot, const struct dm_deadline *deadline)
{
    struct lookup lookup = { fleet, slot };

    dm_slot_map_await(fleet->slot_map, is_known, &lookup, deadline);
}

/* One slice of a wait for `member`, or for the map; in slices, because another node may serve the slot by now. */
static bool await_slice(struct dm_fleet *fleet, struct dm_member *member, unsigned slot,
                        const struct dm_deadline *deadline)
{
    struct dm_deadline slice = dm_deadline_sooner(deadline, SLICE_MS * DM_NS_PER_MS);

    if (member && !dm_fleet_is_vouched(member))
        dm_fleet_find_vouchers(fleet);
    if (member)
        return dm_link_await_ready(member->node.commands.link, &slice);
    await_map(fleet, slot, &slice);
    return false;
}

static bool is_over(const struct dm_fleet *fleet, const struct dm_deadline *deadline)
{
    return __atomic_load_n(&fleet->is_ended, __ATOMIC_RELAXED) || dm_deadline_left_ns(deadline) == 0;
}

struct dm_member *dm_fleet_await(struct dm_fleet *fleet, struct dm_args *args, const struct dm_deadline *deadline)
{
    struct dm_member *member = dm_fleet_of_args(fleet, args);

    if (!dm_fleet_is_clustered(fleet))
        return member;
    while (!await_slice(fleet, member, dm_slot_of(args->texts[FIRST_KEY], args->lengths[FIRST_KEY]), deadline)) {
        if (is_over(fleet, deadline))
            return NULL;
        dm_fleet_refresh(fleet);
        member = dm_fleet_of_args(fleet, args);
    }
    return member;
}

struct dm_member *dm_fleet_await_slot(struct dm_fleet *fleet, unsigned slot, const struct dm_deadline *deadline)
{
    struct dm_member *member = dm_fleet_of_slot(fleet, slot);

    while (!await_slice(fleet, member, slot, deadline)) {
        if (is_over(fleet, deadline))
            return NULL;
        dm_fleet_refresh(fleet);
        member = dm_fleet_of_slot(fleet, slot);
    }
    return member;
}

void dm_fleet_reason(struct dm_fleet *fleet, char ret_reason[DM_REASON_ROOM])
{
    bool is_full;

    dm_mutex_lock(&fleet->lock);
    is_full = fleet->is_full;
    dm_mutex_unlock(&fleet->lock);
    if (is_full)
        snprintf(ret_reason, DM_REASON_ROOM,
                 "the Cluster has more than %d masters, or a node names masters that it does not have: "
                 "compare CLUSTER SLOTS of all nodes",
                 DM_FLEET_MOST);
    else
        dm_slot_map_reason(fleet->slot_map, ret_reason);
}

/* ---- start and end ------------------------------------------------------------------- */

static void slot_map_changed(void *user)
{
    struct dm_fleet *fleet = user;

    fleet->hooks.on_change(fleet);
}

/* The first member from `number` on that serves a slot; NULL: there is none left. */
static struct dm_member *serving_from(const struct dm_fleet *fleet, unsigned number)
{
    unsigned count = dm_fleet_count(fleet);

    while (number < count && !dm_fleet_is_serving(fleet->members[number]))
        number++;
    return number < count ? fleet->members[number] : NULL;
}

/*
 * The servers of the URL, and then all masters of the map, because the former may all be gone.  A node that serves
 * nothing, which only a redirect or an earlier map has named, is not asked: it may be anybody.
 */
static void find_host(void *user, unsigned number, struct dm_master *ret_place)
{
    const struct dm_fleet *fleet = user;
    unsigned listed = (unsigned)fleet->url->host_count, at = number % (listed + dm_fleet_count(fleet));
    struct dm_member *member = at < listed ? NULL : serving_from(fleet, at - listed);
    const struct dm_url_host *host = &fleet->url->hosts[number % listed];

    dm_assert_held(DM_RANK_CONN);
    if (member) {
        dm_mutex_lock(&member->node.lock);
        *ret_place = member->node.place;
        dm_mutex_unlock(&member->node.lock);
        return;
    }
    *ret_place = (struct dm_master){ .epoch = 0 };
    snprintf(ret_place->host, sizeof ret_place->host, "%s", host->host);
    snprintf(ret_place->port, sizeof ret_place->port, "%s", host->port);
}

static bool open_guide(struct dm_fleet *fleet)
{
    const struct dm_slot_map_hooks hooks = {
        .find_host = find_host, .on_map = dm_fleet_take_map, .on_change = slot_map_changed, .user = fleet
    };

    fleet->owners = calloc(DM_SLOTS, 1);
    fleet->slot_map = fleet->owners ? dm_slot_map_new(fleet->url, &hooks) : NULL;
    return fleet->slot_map != NULL;
}

bool dm_fleet_init(struct dm_fleet *fleet, struct dm_url *url, const char *channel, const struct dm_fleet_hooks *hooks)
{
    *fleet = (struct dm_fleet){ .url = url, .channel = channel, .hooks = *hooks };
    fleet->lock = (struct dm_mutex)DM_MUTEX_INITIALIZER(DM_RANK_FLEET);
    fleet->ask_ns = DM_NEVER;
    fleet->node_hooks = (struct dm_node_hooks){
        .open_local = hooks->open_local,
        .on_ready = commands_ready,
        .on_inbox = inbox_ready,
        .on_message = message_came,
        .on_change = changed,
    };
    if (url->kind == DM_URL_CLUSTER) {
        fleet->node_hooks.find_tag = find_tag;
        fleet->node_hooks.is_vouched = dm_fleet_is_vouched;
        fleet->node_hooks.on_inbox_reply = inbox_replied;
    }
    if (url->kind == DM_URL_CLUSTER ? open_guide(fleet) : dm_fleet_add_only(fleet))
        return true;
    free(fleet->owners);
    return false;
}

/* A Cluster that was never used has no members. */
void dm_fleet_clear_unused(struct dm_fleet *fleet)
{
    for (unsigned i = 0; i < fleet->count; i++) {
        dm_node_clear_unused(&fleet->members[i]->node);
        free(fleet->members[i]);
    }
    dm_slot_map_free_unused(fleet->slot_map);
    free(fleet->owners);
}

void dm_fleet_end(struct dm_fleet *fleet)
{
    unsigned count;

    dm_mutex_lock(&fleet->lock);
    __atomic_store_n(&fleet->is_ended, true, __ATOMIC_RELAXED);
    count = fleet->count;
    dm_mutex_unlock(&fleet->lock);
    for (unsigned i = 0; i < count; i++)
        dm_node_end(&fleet->members[i]->node);
    if (fleet->slot_map)
        dm_slot_map_end(fleet->slot_map);
}

/* ---- fork -------------------------------------------------------------------------------- */

/* In the order of the ranks: the fleet, all links, all nodes, TLS. */
void dm_fleet_fork_prepare(struct dm_fleet *fleet, enum dm_fork_stage stage)
{
    if (stage == DM_FORK_STORES)
        dm_mutex_lock(&fleet->lock);
    if (stage == DM_FORK_WAYS && fleet->slot_map)
        dm_slot_map_fork_prepare(fleet->slot_map);
    for (unsigned i = 0; stage == DM_FORK_WAYS && i < fleet->count; i++)
        dm_node_fork_prepare_links(&fleet->members[i]->node);
    for (unsigned i = 0; stage == DM_FORK_SERVER && i < fleet->count; i++)
        dm_node_fork_prepare(&fleet->members[i]->node);
    if (stage == DM_FORK_SHARED)
        dm_tls_load_fork_prepare();
}

/* A node releases all its locks at once. */
void dm_fleet_fork_parent(struct dm_fleet *fleet, enum dm_fork_stage stage)
{
    if (stage == DM_FORK_SHARED)
        dm_tls_load_fork_parent();
    for (unsigned i = 0; stage == DM_FORK_SERVER && i < fleet->count; i++)
        dm_node_fork_parent(&fleet->members[i]->node);
    if (stage == DM_FORK_WAYS && fleet->slot_map)
        dm_slot_map_fork_parent(fleet->slot_map);
    if (stage == DM_FORK_STORES)
        dm_mutex_unlock(&fleet->lock);
}

/* Locks are reset, as those of the nodes are. */
void dm_fleet_fork_child(struct dm_fleet *fleet)
{
    dm_tls_load_fork_child();
    for (unsigned i = 0; i < fleet->count; i++)
        dm_node_fork_child(&fleet->members[i]->node);
    if (fleet->slot_map)
        dm_slot_map_fork_child(fleet->slot_map);
    fleet->is_ended = true; /* no link opens for the forking thread, if a signal handler interrupted its wait */
    dm_mutex_reset(&fleet->lock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The Redis store as the process sees it: the operations of store/store.h on one server or several. */
#include <stdio.h>
#include <stdlib.h>

#include "base/self.h"
#include "link/tls_calls.h"
#include "store/drivers.h"
#include "stores/redis/parts.h"

/* How long bytes may stay unread on the commands' connection while callers seem to be reading it. */
#define TICK_NS (10 * DM_NS_PER_MS)

/* How long messages may stay unread while a waiter leads the inbox. */
#define LEFT_NS DM_NS_PER_S

/*
 * A hold whose renewal is not answered has 0.8 - 1/3 of its lease left.  While the process has a hold, a broken link is
 * tried at least this often per shortest lease, which makes about ten tries.
 */
#define TRIES_IN_LEASE 20

/* How often the map is asked for while a claim needs a node of a Cluster that cannot be reached. */
#define MAP_NS (250 * DM_NS_PER_MS)

/* The node of a place; without a place, any node.  NULL: no node is known yet. */
static struct dm_node *node_of(const struct dm_store *store, const struct dm_place *place)
{
    const struct dm_route *route = &dm_redis(store)->route;

    return place ? dm_route_of_slot(route, place->slot) : dm_route_any(route);
}

/*
 * Requests and answers go over the link for commands, messages over the link for the inbox.  Both belong to one node,
 * which makes sure that both reach the same server.
 */
static struct dm_link *link_of(const struct dm_node *node, enum dm_way way)
{
    return way == DM_ASKS ? node->commands.link : node->inbox.link;
}

/* ---- events of the nodes ------------------------------------------------------------------ */

/* Each passes an event on to the process, through the functions of struct dm_host. */
static void commands_ready(void *user)
{
    const struct dm_redis *redis = user;

    redis->host.on_ready(redis->host.user);
}

static void inbox_ready(void *user)
{
    const struct dm_redis *redis = user;

    redis->host.on_inbox(redis->host.user);
}

/* `server`: that of the inbox.  dm_redis_hear() takes a grant by another server for a hint. */
static void message_came(void *user, const char *text, const struct dm_server *server)
{
    dm_redis_hear(user, text, server);
}

/* Called when a link's lock has just been released: it may only ring a bell. */
static void changed(void *user)
{
    const struct dm_redis *redis = user;

    redis->host.on_change(redis->host.user);
}

/* In a Cluster this starts the subscriptions to the channels, and the inbox is ready with the last answer. */
static void inbox_of_node_ready(void *user, struct dm_cluster_node *node)
{
    const struct dm_redis *redis = user;

    dm_groups_inbox_ready(redis->groups, node);
}

static void inbox_replied(void *user, struct dm_cluster_node *node, const struct redisReply *reply)
{
    const struct dm_redis *redis = user;

    dm_groups_take_reply(redis->groups, node, reply);
}

/* Inboxes follow their slots, and the loop opens links that requests have wished for. */
static void map_changed(void *user)
{
    const struct dm_redis *redis = user;

    dm_groups_map_changed(redis->groups);
    redis->host.on_change(redis->host.user);
}

/* ---- names, and the way to them ------------------------------------------------------------ */

/* The place has the keys of the name, so that no later request makes them again. */
static struct dm_place *place(struct dm_store *store, const char *key)
{
    return dm_keys_of(&dm_redis(store)->naming, key);
}

/* Requests about names of one node go together. */
static unsigned lane(struct dm_store *store, const struct dm_place *place)
{
    const struct dm_node *node = node_of(store, place);

    return node ? node->index : 0;
}

/* FNV-1a of the lock's key */
static uint32_t spread(struct dm_store *store, const struct dm_place *place)
{
    uint32_t hash = 2166136261u;

    (void)store;
    for (size_t i = 0; i < place->length[DM_KEY_LOCK]; i++)
        hash = (hash ^ (unsigned char)place->text[DM_KEY_LOCK][i]) * 16777619u;
    return hash;
}

/* A hint: the link may break right after, and then the request ends without an answer. */
static bool is_able(struct dm_store *store, const struct dm_place *place, enum dm_way way)
{
    const struct dm_redis *redis = dm_redis(store);
    const struct dm_node *node;

    if (way == DM_TELLS && redis->groups && place)
        return dm_groups_is_heard(redis->groups, place);
    node = node_of(store, place);
    return node && dm_link_is_ready(link_of(node, way));
}

static void want(struct dm_store *store, const struct dm_place *place, enum dm_way way)
{
    struct dm_redis *redis = dm_redis(store);
    const struct dm_node *node = node_of(store, place);

    if (way == DM_TELLS && redis->groups && place)
        dm_groups_want(redis->groups, place);
    else if (node)
        dm_link_want(link_of(node, way));
    else
        dm_cluster_refresh(redis->route.cluster);
}

/* The caller may become the leader of the link, and opens it if need be. */
static bool await_able(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                       const struct dm_deadline *deadline)
{
    struct dm_redis *redis = dm_redis(store);

    if (!redis->groups)
        return dm_link_await_ready(link_of(node_of(store, place), way), deadline);
    if (way == DM_TELLS && place)
        return dm_groups_await(redis->groups, place, deadline);
    return dm_cluster_await_slot(redis->route.cluster, place ? place->slot : 0, deadline) != NULL;
}

/*
 * A link's deadlines are time spans.  With a deadline by the settable clock the thread sleeps on its semaphore, and
 * leaves messages to the loop thread.
 */
static bool sleep_reading(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                          const struct dm_deadline *deadline, int cancel_state)
{
    const struct dm_node *node = node_of(store, place);
    struct dm_link *link = node ? link_of(node, way) : NULL;

    if ((!deadline->is_endless && deadline->clock == CLOCK_REALTIME) || !link || !dm_link_is_ready(link))
        return dm_self_sleep_cancellably(dm_self_get(), deadline, cancel_state);
    return dm_link_listen(link, deadline, cancel_state);
}

static void reason(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                   char ret_reason[DM_REASON_ROOM])
{
    struct dm_node *node = node_of(store, place);

    if (node)
        dm_node_reason(node, link_of(node, way), ret_reason);
    else
        dm_cluster_reason(dm_redis(store)->route.cluster, ret_reason);
}

/* Of a Cluster any node: the sentence that goes with it names the node. */
static bool is_denied(struct dm_store *store)
{
    const struct dm_route *route = &dm_redis(store)->route;
    struct dm_node *node;

    DM_ROUTE_FOR_EACH(node, route)
    {
        if (dm_node_is_denied(node))
            return true;
    }
    return route->cluster && dm_slot_map_is_denied(route->cluster->slot_map);
}

/*
 * The server of the commands' link, because it gives the answers.  Different nodes of a Cluster have different numbers,
 * but 1 means none for every node.
 */
static struct dm_origin origin(struct dm_store *store, const struct dm_place *place)
{
    struct dm_node *node = node_of(store, place);
    struct dm_server server;
    uint64_t number;

    if (!node)
        return (struct dm_origin){ .number = 1 };
    number = dm_node_link_server(&node->commands, &server);
    if (number > 1)
        number |= (uint64_t)node->index << 48;
    return (struct dm_origin){ number, server.run, server.epoch };
}

/* Messages come only over the inbox, and requests go only over the other link; both links may reconnect. */
static void count(struct dm_store *store, struct dm_traffic *ret_traffic)
{
    const struct dm_route *route = &dm_redis(store)->route;
    struct dm_link_traffic asks, tells;
    struct dm_node *node;

    *ret_traffic = (struct dm_traffic){ 0 };
    DM_ROUTE_FOR_EACH(node, route)
    {
        dm_link_count(link_of(node, DM_ASKS), &asks);
        dm_link_count(link_of(node, DM_TELLS), &tells);
        ret_traffic->commands += asks.commands;
        ret_traffic->messages += tells.messages;
        ret_traffic->reconnects += asks.reconnects + tells.reconnects;
    }
}

/* A waiter or holder needs the inbox of its group. */
static bool submit(struct dm_store *store, const struct dm_question *questions, int count, dm_answers_fn done,
                   void *user)
{
    struct dm_groups *groups = dm_redis(store)->groups;
    bool is_kept = questions->op == DM_OP_RENEW || questions->op == DM_OP_POLL;

    for (int i = 0; groups && is_kept && i < count; i++)
        dm_groups_note_use(groups, questions[i].place);
    return dm_redis_submit(store, questions, count, done, user);
}

/* ---- the loop thread --------------------------------------------------------------------- */

/* Posts go over the commands' link; this calls their handlers. */
static void work(struct dm_store *store)
{
    struct dm_node *node;

    DM_ROUTE_FOR_EACH(node, &dm_redis(store)->route)
    dm_link_work(link_of(node, DM_ASKS));
}

/* Called with the state lock held, so it sends quietly. */
static int64_t look(struct dm_store *store)
{
    int64_t next_ns = DM_NEVER, look_ns;
    struct dm_node *node;

    dm_assert_held(DM_RANK_STATE);
    DM_ROUTE_FOR_EACH(node, &dm_redis(store)->route)
    {
        look_ns = dm_node_identify(node);
        next_ns = look_ns < next_ns ? look_ns : next_ns;
    }
    return next_ns;
}

/*
 * While the process has any claim, a broken connection is reopened with its back-off, without waiting for a call:
 * waiters need their inbox, holds their renewals.  is_wished: some claim needs a connection that was never open.  A
 * node that no longer serves anything is left alone.
 */
static void watch_link(struct dm_redis *redis, struct dm_node *node, enum dm_way way, bool is_wished,
                       struct dm_link_watch *ret_watch)
{
    struct dm_link *link = link_of(node, way);
    unsigned lease_ms;

    dm_link_watch(link, ret_watch);
    if (!ret_watch->is_closed || !(ret_watch->was_wanted || is_wished) || !dm_route_is_of_use(&redis->route, node) ||
        !redis->host.is_in_need(redis->host.user, &lease_ms))
        return;
    dm_link_limit_pauses(link, lease_ms / TRIES_IN_LEASE);
    dm_link_want(link);
    dm_link_watch(link, ret_watch);
}

/* Adds a link to what the loop waits for: its descriptor, if the loop polls it, and in any case its due time. */
static void add(struct dm_watch *watch, const struct dm_link_watch *of, bool is_polled)
{
    if (is_polled)
        dm_watch_poll(watch, of->fd, of->events);
    dm_watch_until(watch, of->due_ns);
}

/*
 * Callers read the replies to their own commands, and waiters read the inbox.  While others read a link, the loop does
 * not poll its descriptor, because every wake-up of the loop would cost them time, but checks the link every TICK_NS.
 * When nobody has read for a tick, the loop polls the descriptor: for the answers to posted commands, for messages, and
 * for the end of the connection.
 */
static void watch_reading(struct dm_watched *watched, bool is_left, const struct dm_link_watch *now,
                          struct dm_watch *watch)
{
    watched->is_ticking = now->activity != watched->activity || (now->is_attended && !is_left);
    watched->activity = now->activity;
    add(watch, now, !watched->is_ticking && !is_left);
    if (watched->is_ticking)
        dm_watch_until(watch, dm_clock_boot_ns() + TICK_NS);
    if (is_left)
        dm_watch_until(watch, dm_clock_boot_ns() + LEFT_NS);
}

/* Another node may serve the slots of one that requests cannot reach. */
static void wish_for_map(struct dm_cluster *cluster, struct dm_cluster_node *node, const struct dm_link_watch *commands,
                         bool is_wished)
{
    bool is_missed =
        commands->is_closed ? commands->was_wanted || is_wished : is_wished && !dm_cluster_is_vouched(node);

    if (is_missed && dm_cluster_is_serving(node))
        dm_cluster_wish(cluster);
}

/*
 * A waiter can lead the inbox for hours, and then the loop does not tick.  A leader that is stopped, for instance in a
 * signal handler, delays messages to others by a second at most: that is how often a process with waiters checks the
 * server, and each turn reads.
 */
static void watch_node(struct dm_redis *redis, struct dm_node *node, struct dm_watch *watch)
{
    bool is_wished = __atomic_load_n(&node->is_wished, __ATOMIC_RELAXED), is_left;
    struct dm_link_watch inbox, commands;

    watch_link(redis, node, DM_TELLS, false, &inbox);
    watch_link(redis, node, DM_ASKS, is_wished, &commands);
    is_left = dm_link_leave_to_leader(link_of(node, DM_TELLS), node->inbox_seen.activity);
    watch_reading(&node->inbox_seen, is_left, &inbox, watch);
    watch_reading(&node->commands_seen, false, &commands, watch);
    if (node->master_watch)
        dm_master_watch_watch(node->master_watch, watch);
    if (redis->route.cluster)
        wish_for_map(redis->route.cluster, dm_cluster_node_of(node), &commands, is_wished);
}

/* While a claim needs masters to vouch, or a node that cannot be used, the map is asked for again and again. */
static void watch_map(struct dm_redis *redis, struct dm_watch *watch)
{
    unsigned lease_ms;

    dm_slot_map_watch(redis->route.cluster->slot_map, watch);
    dm_groups_watch(redis->groups, watch);
    if (!redis->host.is_in_need(redis->host.user, &lease_ms))
        return;
    dm_watch_until(watch, dm_cluster_ask_due_ns(redis->route.cluster));
    if (__atomic_load_n(&redis->route.cluster->is_wished, __ATOMIC_RELAXED))
        dm_watch_until(watch, __atomic_load_n(&redis->route.cluster->refreshed_ns, __ATOMIC_RELAXED) + MAP_NS);
}

static void watch(struct dm_store *store, struct dm_watch *watch)
{
    struct dm_redis *redis = dm_redis(store);
    struct dm_node *node;

    DM_ROUTE_FOR_EACH(node, &redis->route)
    watch_node(redis, node, watch);
    if (redis->groups)
        watch_map(redis, watch);
}

/* Only the commands' link has posts that nobody waits for; the inbox sends nothing but its greeting. */
static void note_look(struct dm_store *store, int64_t look_ns)
{
    struct dm_node *node;

    DM_ROUTE_FOR_EACH(node, &dm_redis(store)->route)
    dm_link_note_turn(link_of(node, DM_ASKS), look_ns);
}

/*
 * While others read, the loop reads only bytes that have stayed unread for a whole tick: `activity` has not changed
 * since watch_reading() noted it.
 */
static void turn_link(struct dm_watched *watched, struct dm_link *link)
{
    struct dm_link_watch now;

    dm_link_watch(link, &now);
    if (now.activity != watched->activity)
        return;
    dm_link_work(link);
    dm_link_watch(link, &now);
    watched->activity = now.activity; /* what the loop itself has read does not show that others read */
}

/* Turns both links each time: we do not know which one has woken the loop, and a check costs little. */
static void turn_node(struct dm_node *node)
{
    if (node->master_watch)
        dm_master_watch_turn(node->master_watch); /* first, because what the links read may no longer count */
    turn_link(&node->inbox_seen, link_of(node, DM_TELLS));
    turn_link(&node->commands_seen, link_of(node, DM_ASKS));
}

static void turn_map(struct dm_redis *redis)
{
    dm_link_work(dm_slot_map_link(redis->route.cluster->slot_map));
    dm_cluster_turn(redis->route.cluster);
    dm_groups_turn(redis->groups);
}

static void turn(struct dm_store *store)
{
    struct dm_redis *redis = dm_redis(store);
    struct dm_node *node;

    DM_ROUTE_FOR_EACH(node, &redis->route)
    turn_node(node);
    if (redis->groups)
        turn_map(redis);
}

/* ---- start, end, fork ---------------------------------------------------------------- */

/*
 * Only the commands' links, because the process's requests go there.  A node that was never asked has nothing to drain.
 */
static void drain(struct dm_store *store, const struct dm_deadline *deadline)
{
    const struct dm_route *route = &dm_redis(store)->route;
    struct dm_node *node;

    DM_ROUTE_FOR_EACH(node, route)
    {
        if (route->one || dm_link_is_ready(link_of(node, DM_ASKS)))
            dm_link_drain(link_of(node, DM_ASKS), deadline);
    }
}

/* The links never open again; the memory stays, because a thread may still be about to use the store. */
static void end(struct dm_store *store)
{
    dm_route_end(&dm_redis(store)->route);
}

/* Takes all locks, so that the child inherits nothing that is half changed. */
static void fork_prepare(struct dm_store *store, enum dm_fork_stage stage)
{
    dm_route_fork_prepare(&dm_redis(store)->route, stage);
}

static void fork_parent(struct dm_store *store, enum dm_fork_stage stage)
{
    dm_route_fork_parent(&dm_redis(store)->route, stage);
}

static void fork_child(struct dm_store *store)
{
    dm_route_fork_child(&dm_redis(store)->route);
}

/* A module is loaded only for TLS. */
static bool load(struct dm_store *store)
{
    return !dm_redis(store)->route.url->has_tls || dm_tls_load_here();
}

/* There is no thread and no socket yet. */
static void free_unused(struct dm_store *store)
{
    struct dm_redis *redis = dm_redis(store);

    dm_route_clear_unused(&redis->route);
    dm_groups_free_unused(redis->groups);
    free(redis);
}

/*
 * All functions are set: store/calls.h does not check for NULL.  A call through the table costs a jump, which does not
 * show next to a system call (doc/design/performance.md, "The wall").
 */
static const struct dm_store_ops ops = {
    .place = place,
    .lane = lane,
    .spread = spread,
    .ask = dm_redis_ask,
    .submit = submit,
    .view = dm_redis_view,
    .is_able = is_able,
    .want = want,
    .await_able = await_able,
    .sleep = sleep_reading,
    .reason = reason,
    .is_denied = is_denied,
    .origin = origin,
    .count = count,
    .load = load,
    .work = work,
    .look = look,
    .watch = watch,
    .note_look = note_look,
    .turn = turn,
    .drain = drain,
    .end = end,
    .fork_prepare = fork_prepare,
    .fork_parent = fork_parent,
    .fork_child = fork_child,
    .free_unused = free_unused,
};

/* The channel of the only inbox is the prefix of all inboxes, followed by the UUID of the process. */
static bool open_one(struct dm_redis *redis, struct dm_url *url)
{
    const struct dm_node_hooks hooks = {
        .open_local = redis->host.open_local,
        .on_ready = commands_ready,
        .on_inbox = inbox_ready,
        .on_message = message_came,
        .on_change = changed,
        .user = redis,
    };
    char channel[160];

    snprintf(channel, sizeof channel, "%s%s", redis->inbox_prefix, redis->uuid);
    return dm_route_to_one(&redis->route, url, channel, &hooks);
}

/* The inboxes of a Cluster are opened by waits. */
static bool open_cluster(struct dm_redis *redis, struct dm_url *url)
{
    const struct dm_cluster_hooks hooks = {
        .on_ready = commands_ready,
        .on_inbox = inbox_of_node_ready,
        .on_message = message_came,
        .on_inbox_reply = inbox_replied,
        .on_map = map_changed,
        .on_change = changed,
        .user = redis,
    };

    if (!dm_route_to_cluster(&redis->route, url, &hooks))
        return false;
    redis->groups = dm_groups_new(redis->route.cluster, redis->uuid, inbox_ready, redis);
    if (redis->groups)
        return true;
    dm_route_clear_unused(&redis->route);
    return false;
}

struct dm_store *dm_redis_open(struct dm_url *url, const struct dm_ident *ident, const struct dm_host *host,
                               char ret_reason[DM_REASON_ROOM])
{
    struct dm_redis *redis = calloc(1, sizeof *redis);

    ret_reason[0] = '\0';
    if (!redis)
        return NULL;
    redis->store.ops = &ops;
    redis->host = *host;
    redis->is_cluster = url->kind == DM_URL_CLUSTER;
    dm_redis_init(redis, url->prefix, ident->uuid, ident->label);
    if (redis->is_cluster ? open_cluster(redis, url) : open_one(redis, url))
        return &redis->store;
    free(redis);
    return NULL;
}

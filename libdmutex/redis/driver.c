/* SPDX-License-Identifier: BSD-2-Clause */
/* The Redis store as the process sees it: one node behind the operations of store/store.h. */
#include <stdio.h>
#include <stdlib.h>

#include "base/self.h"
#include "redis/store_parts.h"
#include "store/drivers.h"

/* How long bytes may lie on the commands' connection while callers seem to read there. */
#define TICK_NS (10 * DM_NS_PER_MS)

/* How long messages may lie while a waiter leads the inbox. */
#define LEFT_NS DM_NS_PER_S

/*
 * Requests and answers go over the link of the commands, messages come over the link of the inbox. Both belong to one
 * node, which sees to it that both reach one server.
 */
static struct dm_node *node_of(const struct dm_store *store, const struct dm_place *place)
{
    (void)place; /* all places are on one server */
    return &dm_redis(store)->node;
}

/* A waiter needs both: the link that asks, and the one that tells. */
static struct dm_link *link_of(struct dm_store *store, const struct dm_place *place, enum dm_way way)
{
    return way == DM_ASKS ? node_of(store, place)->commands.link : node_of(store, place)->inbox.link;
}

/* ---- what the node says ------------------------------------------------------------------ */

/* The node's hooks: each hands an event on to the process, by the functions of struct dm_host. */
static void commands_ready(void *user)
{
    struct dm_redis *redis = user;

    redis->host.on_ready(redis->host.user);
}

static void inbox_ready(void *user)
{
    struct dm_redis *redis = user;

    redis->host.on_inbox(redis->host.user);
}

/* `server`: the server of the inbox. A grant by another server becomes a hint in dm_redis_hear(). */
static void message_came(void *user, const char *text, const struct dm_server *server)
{
    dm_redis_hear(user, text, server);
}

/*
 * Called by threads that hold no lock, except the link's leave has just given it back: ringing a bell is all that may
 * happen.
 */
static void changed(void *user)
{
    struct dm_redis *redis = user;

    redis->host.on_change(redis->host.user);
}

/* ---- names, and the way there ------------------------------------------------------------ */

/* The place has the keys of the name, so no later question makes the keys again. */
static struct dm_place *place(struct dm_store *store, const char *key)
{
    return dm_keys_of(dm_redis(store)->prefix, key);
}

/* A hint: the link may break just after, and the request then ends without an answer. */
static bool is_able(struct dm_store *store, const struct dm_place *place, enum dm_way way)
{
    return dm_link_is_ready(link_of(store, place, way));
}

static void want(struct dm_store *store, const struct dm_place *place, enum dm_way way)
{
    dm_link_want(link_of(store, place, way));
}

/* The caller becomes a leader of the link, and opens it if need be. */
static bool await_able(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                       const struct dm_deadline *deadline)
{
    return dm_link_await_ready(link_of(store, place, way), deadline);
}

/*
 * A link's deadlines are spans: a deadline by the clock that can be set is for the semaphore, and messages for the loop
 * thread.
 */
static bool sleep_reading(struct dm_store *store, const struct dm_place *place, const struct dm_deadline *deadline,
                          int cancel_state)
{
    struct dm_link *inbox = link_of(store, place, DM_TELLS);

    if ((!deadline->is_endless && deadline->clock == CLOCK_REALTIME) || !dm_link_is_ready(inbox))
        return dm_self_sleep_cancellably(dm_self_get(), deadline, cancel_state);
    return dm_link_listen(inbox, deadline, cancel_state);
}

static void reason(struct dm_store *store, const struct dm_place *place, enum dm_way way,
                   char ret_reason[DM_REASON_ROOM])
{
    dm_node_reason(node_of(store, place), link_of(store, place, way), ret_reason);
}

/* The server of the commands' link, because that server gives the answers. */
static struct dm_origin origin(struct dm_store *store, const struct dm_place *place)
{
    struct dm_server server;
    uint64_t number = dm_line_server(&node_of(store, place)->commands, &server);

    return (struct dm_origin){ number, server.run, server.epoch };
}

/* Messages come by the inbox alone, and requests go by the other link alone; both links open again. */
static void count(struct dm_store *store, struct dm_traffic *ret_traffic)
{
    struct dm_link_traffic asks, tells;

    dm_link_count(link_of(store, NULL, DM_ASKS), &asks);
    dm_link_count(link_of(store, NULL, DM_TELLS), &tells);
    *ret_traffic = (struct dm_traffic){
        .commands = asks.commands,
        .messages = tells.messages,
        .reconnects = asks.reconnects + tells.reconnects,
    };
}

/* ---- the loop thread --------------------------------------------------------------------- */

/* Posts go over the commands' link, and their handlers are called here. */
static void work(struct dm_store *store)
{
    dm_link_work(link_of(store, NULL, DM_ASKS));
}

/* Called with the state lock held, so it sends quietly. */
static int64_t look(struct dm_store *store)
{
    return dm_node_look(node_of(store, NULL));
}

/*
 * While the process has any claim, a connection that broke is opened again, by the connection's own back-off, without
 * waiting for a call: waiters need their inbox, holds their renewals.
 */
static void watch_link(struct dm_redis *redis, struct dm_link *link, struct dm_link_watch *ret_watch)
{
    unsigned lease_ms;

    dm_link_watch(link, ret_watch);
    if (!ret_watch->is_closed || !ret_watch->was_wanted || !redis->host.is_in_need(redis->host.user, &lease_ms))
        return;
    dm_link_note_lease(link, lease_ms);
    dm_link_want(link);
    dm_link_watch(link, ret_watch);
}

/*
 * Adds a link to the wishes of the loop: the descriptor if the loop is to poll, and the earlier due time in any case.
 */
static void add(struct dm_watch *watch, const struct dm_link_watch *of, bool is_polled)
{
    if (is_polled)
        dm_watch_poll(watch, of->fd, of->events);
    dm_watch_until(watch, of->due_ns);
}

/*
 * Callers read the replies to their own commands, and waiters read the inbox.  While others read a link, the loop keeps
 * away from the descriptor, because every wake of the loop would cost the others time, and looks every TICK_NS instead.
 * When nobody has read for a tick the loop polls the descriptor: for the answers to posted commands, for messages, and
 * for the end of the connection.
 */
static void watch_line(struct dm_watched *line, bool is_left, const struct dm_link_watch *now, struct dm_watch *watch)
{
    line->is_ticking = now->activity != line->activity || (now->is_attended && !is_left);
    line->activity = now->activity;
    add(watch, now, !line->is_ticking && !is_left);
    if (line->is_ticking)
        dm_watch_until(watch, dm_clock_boot_ns() + TICK_NS);
    if (is_left)
        dm_watch_until(watch, dm_clock_boot_ns() + LEFT_NS);
}

/*
 * A waiter can lead the inbox for hours: then the loop does not tick.  A leader that is stopped, for instance in a
 * signal handler, holds up the messages to others for a second at most: so often a process with waiters looks at the
 * server, and each turn reads.
 */
static void watch(struct dm_store *store, struct dm_watch *watch)
{
    struct dm_redis *redis = dm_redis(store);
    struct dm_link_watch inbox, commands;

    watch_link(redis, redis->node.inbox.link, &inbox);
    watch_link(redis, redis->node.commands.link, &commands);
    watch_line(&redis->inbox, dm_link_leave_to_leader(redis->node.inbox.link, redis->inbox.activity), &inbox, watch);
    watch_line(&redis->commands, false, &commands, watch);
    if (redis->node.lookout)
        dm_lookout_watch(redis->node.lookout, watch);
}

/* The commands' link alone has posts that nobody awaits; the inbox sends nothing but its greeting. */
static void note_look(struct dm_store *store, int64_t look_ns)
{
    dm_link_note_turn(link_of(store, NULL, DM_ASKS), look_ns);
}

/*
 * While others read, the loop reads only bytes that have been lying for a whole tick: `activity` has not grown since
 * watch_line() noted the number.
 */
static void turn_line(struct dm_watched *line, struct dm_link *link)
{
    struct dm_link_watch now;

    dm_link_watch(link, &now);
    if (now.activity != line->activity)
        return;
    dm_link_work(link);
    dm_link_watch(link, &now);
    line->activity = now.activity; /* what the loop itself has read is no sign of others */
}

/* Both links each time: which of the two has woken the loop is not known, and a look costs little. */
static void turn(struct dm_store *store)
{
    struct dm_redis *redis = dm_redis(store);

    if (redis->node.lookout)
        dm_lookout_turn(redis->node.lookout); /* first: what the links read may count no more */
    turn_line(&redis->inbox, redis->node.inbox.link);
    turn_line(&redis->commands, redis->node.commands.link);
}

/* ---- beginning, end, fork ---------------------------------------------------------------- */

/* The commands' link alone: the process's requests go there. */
static bool drain(struct dm_store *store, const struct dm_deadline *deadline)
{
    return dm_link_drain(link_of(store, NULL, DM_ASKS), deadline);
}

/* The links never open again; the memory stays, because a thread may still be about to use the store. */
static void end(struct dm_store *store)
{
    dm_node_end(node_of(store, NULL));
}

/* Locks both links, then the node, so that the child inherits none of them half changed. */
static void fork_prepare(struct dm_store *store)
{
    dm_node_fork_prepare(node_of(store, NULL));
}

static void fork_parent(struct dm_store *store)
{
    dm_node_fork_parent(node_of(store, NULL));
}

static void fork_child(struct dm_store *store)
{
    dm_node_fork_child(node_of(store, NULL));
}

/* The node has no thread and no socket as yet. */
static void free_unused(struct dm_store *store)
{
    dm_node_clear_unused(node_of(store, NULL));
    free(dm_redis(store));
}

/*
 * All operations are there: store/calls.h calls without a look at NULL.  A call through the table costs a jump,
 * which is not seen beside a system call (doc/design/performance.md, "The wall").
 */
static const struct dm_store_ops ops = {
    .place = place,
    .is_able = is_able,
    .want = want,
    .await_able = await_able,
    .sleep = sleep_reading,
    .reason = reason,
    .origin = origin,
    .count = count,
    .acquire = dm_redis_acquire,
    .cancel = dm_redis_cancel,
    .release = dm_redis_release,
    .renew = dm_redis_renew,
    .consistent = dm_redis_consistent,
    .force = dm_redis_force,
    .drop = dm_redis_drop,
    .info = dm_redis_info,
    .view = dm_redis_view,
    .cond_wait = dm_redis_cond_wait,
    .cond_cancel = dm_redis_cond_cancel,
    .cond_signal = dm_redis_cond_signal,
    .cond_drop = dm_redis_cond_drop,
    .post_release = dm_redis_post_release,
    .post_poll = dm_redis_post_poll,
    .post_renew = dm_redis_post_renew,
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

/*
 * The hooks are copied by the node, and carry the store; the inbox's channel is the prefix of all inboxes and the UUID
 * of the process.
 */
struct dm_store *dm_redis_open(struct dm_url *url, const struct dm_ident *ident, const struct dm_host *host)
{
    struct dm_redis *redis = calloc(1, sizeof *redis);
    const struct dm_node_hooks hooks = {
        .open_local = host->open_local,
        .on_ready = commands_ready,
        .on_inbox = inbox_ready,
        .on_message = message_came,
        .on_change = changed,
        .user = redis,
    };
    char channel[160];

    if (!redis)
        return NULL;
    redis->store.ops = &ops;
    redis->host = *host;
    dm_redis_init(redis, url->prefix, ident->uuid, ident->label);
    snprintf(channel, sizeof channel, "%s%s", redis->inbox_prefix, ident->uuid);
    if (dm_node_init(&redis->node, url, channel, &hooks))
        return &redis->store;
    free(redis);
    return NULL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The Redis store as the process sees it: two connections to one server behind the operations of store/store.h. */
#include <stdio.h>
#include <stdlib.h>

#include "redis/store_parts.h"
#include "store/drivers.h"

/* How long bytes may lie on the commands' connection while callers seem to read there. */
#define TICK_NS (10 * DM_NS_PER_MS)

static struct dm_conn *conn_of(struct dm_store *store, enum dm_way way)
{
    return way == DM_ASKS ? dm_redis(store)->commands : dm_redis(store)->inbox;
}

/* ---- what the connections say ------------------------------------------------------------ */

/*
 * Commands and inbox go to one server: if the address now leads to another server, the connection that greeted last is
 * right.
 */
static void keep_together(struct dm_conn *newest, struct dm_conn *other)
{
    struct dm_server server;

    dm_conn_server(newest, &server);
    dm_conn_distrust_other(other, &server, "leads to another server than before");
}

static void commands_ready(void *user)
{
    struct dm_redis *redis = user;

    dm_conn_retry_soon(redis->inbox);
    keep_together(redis->commands, redis->inbox);
    redis->host.on_ready(redis->host.user);
}

static void inbox_ready(void *user)
{
    struct dm_redis *redis = user;

    keep_together(redis->inbox, redis->commands);
    redis->host.on_inbox(redis->host.user);
}

static void message_came(void *user, const char *text, const struct dm_server *server)
{
    dm_redis_hear(user, text, server);
}

static void changed(void *user)
{
    struct dm_redis *redis = user;

    redis->host.on_change(redis->host.user);
}

/* ---- names, and the way there ------------------------------------------------------------ */

static struct dm_place *place(struct dm_store *store, const char *key)
{
    return dm_keys_of(dm_redis(store)->prefix, key);
}

static bool is_able(struct dm_store *store, enum dm_way way)
{
    return dm_conn_is_ready(conn_of(store, way));
}

static bool await_able(struct dm_store *store, enum dm_way way, const struct dm_deadline *deadline)
{
    return dm_conn_await_ready(conn_of(store, way), deadline);
}

static void reason(struct dm_store *store, enum dm_way way, char ret_reason[DM_REASON_ROOM])
{
    dm_conn_reason(conn_of(store, way), ret_reason);
}

static struct dm_origin origin(struct dm_store *store)
{
    struct dm_server server;
    uint64_t number = dm_conn_server(dm_redis(store)->commands, &server);

    return (struct dm_origin){ number, server.run, server.epoch };
}

/* ---- the loop thread --------------------------------------------------------------------- */

static void work(struct dm_store *store)
{
    dm_conn_work(dm_redis(store)->commands);
}

static int64_t look(struct dm_store *store)
{
    return dm_conn_look(dm_redis(store)->commands);
}

/*
 * While the process has any claim, a connection that broke is opened again, by the connection's own back-off, without
 * waiting for a call: waiters need their inbox, holds their renewals.
 */
static void watch_conn(struct dm_redis *redis, struct dm_conn *conn, struct dm_conn_watch *ret_watch)
{
    unsigned lease_ms;

    dm_conn_watch(conn, ret_watch);
    if (!ret_watch->is_closed || !ret_watch->was_wanted || !redis->host.is_in_need(redis->host.user, &lease_ms))
        return;
    dm_conn_note_lease(conn, lease_ms);
    dm_conn_want(conn);
    dm_conn_watch(conn, ret_watch);
}

static void add(struct dm_watch *watch, const struct dm_conn_watch *of, bool is_polled)
{
    if (is_polled)
        watch->polled[watch->count++] = (struct pollfd){ .fd = of->fd, .events = of->events };
    if (of->due_ns < watch->due_ns)
        watch->due_ns = of->due_ns;
}

/*
 * The loop thread alone reads the inbox.  Callers read the replies to their own commands.  While callers read, the loop
 * keeps away from the descriptor, because every wake of the loop would cost the callers time, and looks every TICK_NS
 * instead.  When nobody has read for a tick the loop polls the descriptor, for the answers to posted commands, and for
 * the end of the connection.
 */
static void watch(struct dm_store *store, struct dm_watch *ret_watch)
{
    struct dm_redis *redis = dm_redis(store);
    struct dm_conn_watch inbox, commands;

    *ret_watch = (struct dm_watch){ .due_ns = DM_NEVER };
    watch_conn(redis, redis->inbox, &inbox);
    watch_conn(redis, redis->commands, &commands);
    redis->is_ticking = commands.activity != redis->activity || commands.is_attended;
    redis->activity = commands.activity;
    add(ret_watch, &inbox, true);
    add(ret_watch, &commands, !redis->is_ticking);
    if (redis->is_ticking && dm_clock_boot_ns() + TICK_NS < ret_watch->due_ns)
        ret_watch->due_ns = dm_clock_boot_ns() + TICK_NS;
}

static void note_look(struct dm_store *store, int64_t look_ns)
{
    dm_conn_note_look(dm_redis(store)->commands, look_ns);
}

/* While callers read, the loop reads only bytes that have been lying for a whole tick. */
static void turn(struct dm_store *store)
{
    struct dm_redis *redis = dm_redis(store);
    struct dm_conn_watch commands;

    dm_conn_work(redis->inbox);
    dm_conn_watch(redis->commands, &commands);
    if (commands.activity == redis->activity && (redis->is_ticking || !commands.is_attended))
        dm_conn_work(redis->commands);
}

/* ---- beginning, end, fork ---------------------------------------------------------------- */

static bool drain(struct dm_store *store, const struct dm_deadline *deadline)
{
    return dm_conn_drain(dm_redis(store)->commands, deadline);
}

static void end(struct dm_store *store)
{
    dm_conn_end(dm_redis(store)->commands);
    dm_conn_end(dm_redis(store)->inbox);
}

static void fork_prepare(struct dm_store *store)
{
    dm_conn_fork_prepare(dm_redis(store)->commands);
    dm_conn_fork_prepare(dm_redis(store)->inbox);
}

static void fork_parent(struct dm_store *store)
{
    dm_conn_fork_parent(dm_redis(store)->inbox);
    dm_conn_fork_parent(dm_redis(store)->commands);
}

static void fork_child(struct dm_store *store)
{
    dm_conn_fork_child(dm_redis(store)->inbox);
    dm_conn_fork_child(dm_redis(store)->commands);
}

static void free_unused(struct dm_store *store)
{
    dm_conn_free_unused(dm_redis(store)->commands);
    dm_conn_free_unused(dm_redis(store)->inbox);
    free(dm_redis(store));
}

static const struct dm_store_ops ops = {
    .place = place,
    .is_able = is_able,
    .await_able = await_able,
    .reason = reason,
    .origin = origin,
    .acquire = dm_redis_acquire,
    .cancel = dm_redis_cancel,
    .release = dm_redis_release,
    .renew = dm_redis_renew,
    .consistent = dm_redis_consistent,
    .force = dm_redis_force,
    .drop = dm_redis_drop,
    .info = dm_redis_info,
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

struct dm_store *dm_redis_open(struct dm_url *url, const struct dm_ident *ident, const struct dm_host *host)
{
    struct dm_redis *redis = calloc(1, sizeof *redis);
    struct dm_conn_hooks hooks = { .open_local = host->open_local, .on_change = changed, .user = redis };
    char channel[160];

    if (!redis)
        return NULL;
    redis->store.ops = &ops;
    redis->host = *host;
    hooks.on_ready = commands_ready;
    dm_redis_init(redis, dm_conn_new(url, NULL, &hooks), url->prefix, ident->uuid, ident->label);
    hooks.on_ready = inbox_ready;
    hooks.on_message = message_came;
    snprintf(channel, sizeof channel, "%s%s", redis->inbox_prefix, ident->uuid);
    redis->inbox = dm_conn_new(url, channel, &hooks);
    if (redis->commands && redis->inbox)
        return &redis->store;
    free_unused(&redis->store);
    return NULL;
}

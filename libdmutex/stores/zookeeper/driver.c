/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One connection to one server of ZooKeeper, on which any number of requests are under way: the server answers them in
 * their order, and writes its log once for those that have come together.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "stores/zookeeper/open.h"
#include "stores/zookeeper/parts.h"

#define LEASE_MIN_MS 1000
#define SESSION_MS 30000                                /* the server allows 2 to 20 of its ticks, by default */
#define LOOK_TICK_NS (200 * DM_NS_PER_MS)               /* for a thread that connects, if its bell is lost */
#define TLS_STACK (DM_OPENSSL_STACK + (size_t)4 * 1024) /* and for our own functions on the way there */

/* ---- the end of the connection ------------------------------------------------------------- */

static void close_connection(struct dm_zk *zk)
{
    if (zk->dial)
        dm_dial_abandon(zk->dial);
    zk->dial = NULL;
    dm_zk_wire_close(&zk->wire);
    zk->session_ms = 0;
    zk->pinged_ns = zk->clock_ns = 0;
    zk->is_doomed = false;
}

/* What has been sent may be executed, or still will be. */
static void give_up_items(struct dm_zk *zk, const char *reason)
{
    struct dm_zk_item *item;

    while ((item = dm_zk_item_take(zk))) {
        dm_zk_item_fail(zk, item, DM_REG_UNKNOWN, reason);
        dm_zk_item_free(item);
    }
}

static void break_off(struct dm_zk *zk)
{
    bool was_ready = zk->phase == DM_ZK_READY, is_final = zk->is_final;
    char reason[DM_REG_REASON_ROOM];

    memcpy(reason, zk->doom, sizeof reason);
    close_connection(zk);
    zk->phase = DM_ZK_PAUSING;
    zk->host = (zk->host + 1) % zk->url->host_count;
    dm_retry_note_failure(&zk->retry, dm_clock_boot_ns());
    give_up_items(zk, reason);
    if (was_ready)
        zk->client.on_inbox(zk->client.user, false);
    zk->client.on_down(zk->client.user, reason, is_final);
}

/* ---- answers ------------------------------------------------------------------------------- */

/* Swaps that were never sent are answered once those before them are. */
static void answer_large(struct dm_zk *zk)
{
    while (zk->items && zk->items->kind == DM_ZK_ITEM_LARGE) {
        struct dm_zk_item *item = dm_zk_item_take(zk);

        dm_zk_item_fail(zk, item, DM_REG_TOO_LARGE, NULL);
        dm_zk_item_free(item);
    }
}

static void take_answer(struct dm_zk *zk, int32_t xid, int64_t zxid, int32_t error, struct dm_jute *answer)
{
    struct dm_zk_item *item = zk->items;

    if (!item || item->xid != xid) {
        dm_zk_doom(zk, false, "ZooKeeper answers what nobody asked");
        return;
    }
    dm_zk_item_take(zk);
    if (zk->phase == DM_ZK_READY && zxid > zk->zxid)
        zk->zxid = zxid;
    if (item->kind >= DM_ZK_ITEM_EPOCH)
        dm_zk_take_greeting(zk, item, error, zxid, answer);
    else
        dm_zk_item_answer(zk, item, error, answer);
    dm_zk_item_free(item);
}

static void take_frame(struct dm_zk *zk, struct dm_jute *frame)
{
    int32_t xid, error;
    int64_t zxid;

    if (!zk->session_ms) {
        dm_zk_take_session(zk, frame);
        return;
    }
    xid = dm_jute_int(frame);
    zxid = dm_jute_long(frame);
    error = dm_jute_int(frame);
    if (frame->is_bad)
        dm_zk_doom(zk, false, DM_ZK_NOT_WHOLE);
    else if (xid == DM_ZK_PING_XID)
        zk->pinged_ns = 0;
    else if (xid == DM_ZK_LOG_IN_XID)
        dm_zk_take_login(zk, error);
    else if (xid == DM_ZK_EVENT_XID && zk->phase == DM_ZK_READY)
        dm_zk_take_event(zk, frame);
    else if (xid != DM_ZK_EVENT_XID)
        take_answer(zk, xid, zxid, error, frame);
}

static bool is_connected(const struct dm_zk *zk)
{
    return zk->phase == DM_ZK_GREETING || zk->phase == DM_ZK_READY;
}

/* The client, which each of them may call, can close the connection. */
static void take_frames(struct dm_zk *zk)
{
    char reason[DM_REASON_ROOM] = "";
    struct dm_jute frame;

    while (is_connected(zk) && !zk->is_doomed && dm_zk_wire_next(&zk->wire, &frame, reason)) {
        take_frame(zk, &frame);
        answer_large(zk);
    }
    if (reason[0])
        dm_zk_doom(zk, false, "%s", reason);
}

/* ---- the connection ------------------------------------------------------------------------ */

static void begin_to_connect(struct dm_zk *zk)
{
    const struct dm_url *url = zk->url;
    const struct dm_dial_options options = {
        .address = { .host = dm_zk_host(zk)->host, .port = dm_zk_host(zk)->port },
        .tls = { .is_on = url->has_tls,
                 .is_verified = url->is_verified,
                 .name = url->servername ? url->servername : dm_zk_host(zk)->host,
                 .cacert = url->cacert,
                 .cert = url->cert,
                 .key = url->key },
        .connect_timeout_ms = url->connect_timeout_ms,
        .user_timeout_ms = url->command_timeout_ms,
    };

    zk->phase = DM_ZK_CONNECTING;
    zk->dial = dm_dial_begin(&options);
    if (!zk->dial)
        dm_zk_doom(zk, false, "this process cannot start a thread or open a descriptor for a connection");
}

static void take_dial(struct dm_zk *zk)
{
    char reason[DM_REASON_ROOM];
    struct dm_stream stream;

    if (!zk->dial || !dm_dial_take(zk->dial, &stream, reason))
        return;
    zk->dial = NULL;
    zk->phase = DM_ZK_GREETING;
    zk->greeted_ns = zk->sent_ns = dm_clock_boot_ns();
    if (stream.fd < 0)
        dm_zk_doom(zk, false, "%s", reason);
    else if (!dm_zk_wire_begin(&zk->wire, stream, SESSION_MS))
        dm_zk_doom(zk, false, "out of memory");
}

static int64_t ping_is_due_ns(const struct dm_zk *zk)
{
    return zk->session_ms && !zk->pinged_ns ? zk->sent_ns + zk->session_ms / 3 * DM_NS_PER_MS : DM_NEVER;
}

/* Without a sign of life the server ends the session, and closes the connection. */
static void ping(struct dm_zk *zk)
{
    zk->pinged_ns = dm_clock_boot_ns();
    dm_zk_end(&zk->wire, dm_zk_begin(&zk->wire, DM_ZK_PING_XID, DM_ZK_PING));
}

/* A server may never answer who has come while it was starting (3.8.0): whether there is a session is known soon. */
static int64_t patience_ends_ns(const struct dm_zk *zk)
{
    int64_t since_ns = DM_NEVER, patience_ns = zk->url->command_timeout_ms * DM_NS_PER_MS;

    if (zk->phase == DM_ZK_GREETING && !zk->session_ms)
        return zk->greeted_ns + zk->url->connect_timeout_ms * DM_NS_PER_MS;
    if (zk->phase == DM_ZK_GREETING)
        since_ns = zk->greeted_ns;
    if (zk->items && zk->items->sent_ns < since_ns)
        since_ns = zk->items->sent_ns;
    if (zk->pinged_ns && zk->pinged_ns < since_ns)
        since_ns = zk->pinged_ns;
    return since_ns == DM_NEVER ? DM_NEVER : since_ns + patience_ns;
}

/* A server that has no majority, or too many connections of this address, closes the connection without a word. */
static void explain_break(struct dm_zk *zk, const char *reason)
{
    if (zk->session_ms)
        dm_zk_doom(zk, false, "%s", reason);
    else
        dm_zk_doom(zk, false,
                   "%s before there was a session: is a majority of the servers up, and maxClientCnxns not "
                   "reached?",
                   reason);
}

static void use_connection(struct dm_zk *zk)
{
    char reason[DM_REASON_ROOM];
    bool is_whole;

    if (!dm_stream_is_ours(&zk->wire.stream)) {
        dm_zk_doom(zk, false, "the program has closed the connection to ZooKeeper");
        return;
    }
    if (dm_clock_boot_ns() >= ping_is_due_ns(zk))
        ping(zk);
    if (zk->wire.out.size)
        zk->sent_ns = dm_clock_boot_ns();
    is_whole = dm_zk_wire_turn(&zk->wire, reason);
    answer_large(zk);
    take_frames(zk);
    if (!is_connected(zk))
        return;
    if (!is_whole)
        explain_break(zk, reason);
    if (zk->phase == DM_ZK_READY)
        dm_retry_note_use(&zk->retry, dm_clock_boot_ns());
    if (dm_clock_boot_ns() >= patience_ends_ns(zk))
        dm_zk_doom(zk, false, "ZooKeeper has not answered for %u ms",
                   zk->session_ms ? zk->url->command_timeout_ms : zk->url->connect_timeout_ms);
    if (!zk->is_doomed)
        dm_zk_wire_send(&zk->wire); /* what fails fails again in the next turn */
}

/* ---- the driver's operations --------------------------------------------------------------- */

static struct dm_zk *zk_of(struct dm_reg_driver *driver)
{
    return (struct dm_zk *)(void *)driver;
}

static void want(struct dm_reg_driver *driver)
{
    struct dm_zk *zk = zk_of(driver);

    if (zk->phase == DM_ZK_RESTING)
        zk->phase = DM_ZK_PAUSING;
}

static void turn(struct dm_reg_driver *driver)
{
    struct dm_zk *zk = zk_of(driver);

    if (zk->phase == DM_ZK_PAUSING && dm_clock_boot_ns() >= zk->retry.due_ns)
        begin_to_connect(zk);
    if (zk->phase == DM_ZK_CONNECTING)
        take_dial(zk);
    if (is_connected(zk) && !zk->is_doomed)
        use_connection(zk);
    if (zk->is_doomed)
        break_off(zk);
}

/* The stream minds the stack itself, and would do nothing on a small one. */
static size_t stack(const struct dm_reg_driver *driver)
{
    return ((const struct dm_zk *)(const void *)driver)->url->has_tls ? TLS_STACK : 0;
}

static void watch(struct dm_reg_driver *driver, struct dm_watch *watched)
{
    struct dm_zk *zk = zk_of(driver);

    switch (zk->phase) {
    case DM_ZK_PAUSING:
        dm_watch_until(watched, zk->retry.due_ns);
        break;
    case DM_ZK_CONNECTING:
        dm_watch_poll(watched, zk->dial ? dm_dial_fd(zk->dial) : -1, POLLIN);
        dm_watch_until(watched, dm_clock_boot_ns() + LOOK_TICK_NS);
        break;
    case DM_ZK_GREETING:
    case DM_ZK_READY:
        dm_watch_poll(watched, zk->wire.stream.fd, dm_zk_wire_events(&zk->wire));
        dm_watch_until(watched, patience_ends_ns(zk));
        dm_watch_until(watched, ping_is_due_ns(zk));
        if (dm_zk_wire_has_more(&zk->wire) || (zk->items && zk->items->kind == DM_ZK_ITEM_LARGE))
            dm_watch_until(watched, 0);
        break;
    case DM_ZK_RESTING:
    case DM_ZK_ENDED:
        break;
    }
}

static bool load(struct dm_reg_driver *driver)
{
    return !zk_of(driver)->url->has_tls || dm_tls_load_here();
}

static bool is_open(const struct dm_zk *zk)
{
    return zk->phase == DM_ZK_READY && !zk->is_doomed;
}

/* What has been written goes out at once; what fails fails again in the next turn. */
static bool send_now(struct dm_zk *zk, bool is_written)
{
    if (is_written) {
        zk->sent_ns = dm_clock_boot_ns();
        dm_zk_wire_send(&zk->wire);
    }
    return is_written;
}

static bool read_items(struct dm_reg_driver *driver, uint64_t ticket, const struct dm_reg_item *items, int count)
{
    struct dm_zk *zk = zk_of(driver);

    return is_open(zk) && send_now(zk, dm_zk_read(zk, ticket, items, count));
}

static bool swap_items(struct dm_reg_driver *driver, uint64_t ticket, const struct dm_reg_item *items, int count)
{
    struct dm_zk *zk = zk_of(driver);

    return is_open(zk) && send_now(zk, dm_zk_swap(zk, ticket, items, count));
}

static bool list_keys(struct dm_reg_driver *driver, uint64_t ticket, const char *prefix, const char *after, int most)
{
    struct dm_zk *zk = zk_of(driver);

    return is_open(zk) && send_now(zk, dm_zk_list(zk, ticket, prefix, after, most));
}

static bool listen_to(struct dm_reg_driver *driver, const char *inbox)
{
    struct dm_zk *zk = zk_of(driver);

    snprintf(zk->inbox, sizeof zk->inbox, "%s", inbox);
    return true;
}

static void place(struct dm_reg_driver *driver, char *ret_text, size_t room)
{
    snprintf(ret_text, room, "ZooKeeper at %s", dm_zk_place(zk_of(driver)).text);
}

/* The server forgets the session at once if it is told. */
static void say_goodbye(struct dm_zk *zk)
{
    if (!zk->session_ms || !dm_stream_is_ours(&zk->wire.stream))
        return;
    dm_zk_end(&zk->wire, dm_zk_begin(&zk->wire, 0, DM_ZK_CLOSE));
    dm_zk_wire_send(&zk->wire);
}

static void stop(struct dm_zk *zk, enum dm_zk_phase phase)
{
    struct dm_zk_item *item;

    if (zk->phase == DM_ZK_ENDED)
        return;
    say_goodbye(zk);
    close_connection(zk);
    zk->phase = phase;
    while ((item = dm_zk_item_take(zk)))
        dm_zk_item_free(item);
}

static void rest(struct dm_reg_driver *driver)
{
    stop(zk_of(driver), DM_ZK_RESTING);
}

static void end(struct dm_reg_driver *driver)
{
    stop(zk_of(driver), DM_ZK_ENDED);
}

static void forget(struct dm_reg_driver *driver)
{
    struct dm_zk *zk = zk_of(driver);

    if (zk->dial)
        dm_dial_forget(zk->dial);
    zk->dial = NULL;
    dm_zk_wire_forget(&zk->wire);
    zk->phase = DM_ZK_ENDED;
}

static void free_unused(struct dm_reg_driver *driver)
{
    free(driver);
}

static const struct dm_reg_driver_ops ops = {
    .want = want,
    .rest = rest,
    .read = read_items,
    .swap = swap_items,
    .list = list_keys,
    .listen = listen_to,
    .watch = watch,
    .turn = turn,
    .stack = stack,
    .load = load,
    .place = place,
    .end = end,
    .forget = forget,
    .free_unused = free_unused,
};

struct dm_reg_driver *dm_zookeeper_driver_open(const struct dm_url *url, const struct dm_reg_client *client,
                                               char ret_reason[DM_REASON_ROOM])
{
    struct dm_zk *zk = calloc(1, sizeof *zk);

    ret_reason[0] = '\0';
    if (!zk)
        return NULL;
    zk->driver.ops = &ops;
    zk->driver.can = (struct dm_reg_abilities){ .has_tells = true,
                                                .has_ages = true,
                                                .has_lists = true,
                                                .value_max = DM_ZK_VALUE_MAX,
                                                .lease_ms_min = LEASE_MIN_MS };
    zk->client = *client;
    zk->url = url;
    zk->items_end = &zk->items;
    zk->wire.stream = dm_stream_of(-1);
    return &zk->driver;
}

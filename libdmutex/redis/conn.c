/* SPDX-License-Identifier: BSD-2-Clause */
#include "redis/conn.h"

#include <stdio.h>
#include <stdlib.h>

#include "redis/reply.h"

/* ---- the link's greeter ------------------------------------------------------------------ */

static void begin(void *user)
{
    struct dm_conn *conn = user;

    dm_greeting_begin(&conn->greeting);
}

static int next_round(void *user, struct dm_command *ret_round)
{
    struct dm_conn *conn = user;

    *ret_round = dm_greeting_round(&conn->greeting);
    return conn->greeting.step_count;
}

static bool take(void *user, const redisReply *reply, char ret_reason[DM_REASON_ROOM])
{
    struct dm_conn *conn = user;

    return dm_greeting_take(&conn->greeting, reply, ret_reason);
}

/* Commands that were written for the server before must not be sent to this server. */
static uint64_t note_server(void *user)
{
    struct dm_conn *conn = user;
    const struct dm_server *server = &conn->greeting.server;
    uint64_t number;

    dm_mutex_lock(&conn->lock);
    if (!dm_server_is_same(server, &conn->server) || server->born_us != conn->server.born_us)
        conn->number++;
    conn->server = *server;
    conn->looked_ns = dm_clock_boot_ns();
    number = conn->number;
    dm_mutex_unlock(&conn->lock);
    return number;
}

/*
 * A server that was a master may have become a replica, and a master again with the data of another server, while the
 * connection stayed open.  So in each second of use the connection asks the server again, ahead of a command that is
 * sent anyway.
 *
 * The inbox listens and cannot ask.  The inbox is connected to the same server as the commands (runtime/schedule.c);
 * the connection for commands asks for both.
 */
static struct dm_command look(void *user)
{
    struct dm_conn *conn = user;
    struct dm_command command = { 0 };
    int64_t now_ns = dm_clock_boot_ns();

    dm_mutex_lock(&conn->lock);
    if (now_ns >= conn->looked_ns + DM_LOOK_NS)
        command = dm_greeting_look(&conn->greeting);
    if (command.bytes)
        conn->looked_ns = now_ns;
    dm_mutex_unlock(&conn->lock);
    return command;
}

static bool take_look(void *user, const redisReply *reply, char ret_reason[DM_REASON_ROOM])
{
    struct dm_conn *conn = user;

    return dm_greeting_take_look(&conn->greeting, reply, ret_reason);
}

/* ---- the link's hooks -------------------------------------------------------------------- */

static int open_local(void *user, bool may_block, char ret_reason[DM_REASON_ROOM])
{
    struct dm_conn *conn = user;

    return conn->hooks.open_local(conn->url, may_block, ret_reason);
}

static void note_ready(void *user)
{
    struct dm_conn *conn = user;

    if (conn->hooks.on_ready)
        conn->hooks.on_ready(conn->hooks.user);
}

static void note_change(void *user)
{
    struct dm_conn *conn = user;

    if (conn->hooks.on_change)
        conn->hooks.on_change(conn->hooks.user);
}

static void take_message(void *user, const redisReply *reply, uint64_t peer)
{
    struct dm_conn *conn = user;
    struct dm_server server;

    if (reply->elements != 3 || !dm_reply_is(reply, "message") || reply->element[2]->type != REDIS_REPLY_STRING)
        return;
    if (dm_conn_server(conn, &server) != peer) /* another server has come meanwhile */
        server = (struct dm_server){ 0 };
    conn->hooks.on_message(conn->hooks.user, reply->element[2]->str, &server);
}

/* ---- beginning --------------------------------------------------------------------------- */

static struct dm_link *open_link(struct dm_conn *conn)
{
    const struct dm_url *url = conn->url;
    struct dm_link_options options = {
        .address = { .host = url->host, .port = url->port, .path = url->path },
        .open = url->kind == DM_URL_LOCAL ? open_local : NULL,
        .open_user = conn,
        .connect_timeout_ms = url->connect_timeout_ms,
        .command_timeout_ms = url->command_timeout_ms,
        .is_listening = conn->greeting.inbox != NULL,
    };
    const struct dm_greeter greeter = {
        .begin = begin,
        .round = next_round,
        .take = take,
        .ready = note_server,
        .look = conn->greeting.inbox ? NULL : look,
        .take_look = take_look,
        .user = conn,
    };
    const struct dm_link_hooks hooks = {
        .on_ready = note_ready,
        .on_message = take_message,
        .on_change = note_change,
        .user = conn,
    };

    dm_url_describe(url, options.name, sizeof options.name);
    return dm_link_new(&options, &greeter, &hooks);
}

struct dm_conn *dm_conn_new(struct dm_url *url, const char *inbox, const struct dm_conn_hooks *hooks)
{
    struct dm_conn *conn = calloc(1, sizeof *conn);

    if (!conn)
        return NULL;
    conn->lock = (struct dm_mutex)DM_MUTEX_INITIALIZER(DM_RANK_NODE);
    conn->url = url;
    conn->hooks = *hooks;
    conn->number = 1;
    conn->greeting.url = url;
    if (inbox) {
        snprintf(conn->channel, sizeof conn->channel, "%s", inbox);
        conn->greeting.inbox = conn->channel;
    }
    conn->link = open_link(conn);
    if (conn->link)
        return conn;
    free(conn);
    return NULL;
}

void dm_conn_free_unused(struct dm_conn *conn)
{
    if (conn)
        dm_link_free_unused(conn->link);
    free(conn);
}

void dm_conn_end(struct dm_conn *conn)
{
    dm_link_end(conn->link, "this process uses another server now");
}

/* ---- the server -------------------------------------------------------------------------- */

uint64_t dm_conn_server(struct dm_conn *conn, struct dm_server *ret_server)
{
    uint64_t number;

    dm_mutex_lock(&conn->lock);
    number = conn->number;
    *ret_server = conn->server;
    dm_mutex_unlock(&conn->lock);
    return number;
}

void dm_conn_distrust(struct dm_conn *conn, const char *reason)
{
    dm_link_distrust(conn->link, 0, reason);
}

void dm_conn_distrust_other(struct dm_conn *conn, const struct dm_server *server, const char *reason)
{
    struct dm_server own;
    uint64_t number = dm_conn_server(conn, &own);

    if (own.run && server->run && !dm_server_is_same(&own, server))
        dm_link_distrust(conn->link, number, reason);
}

int64_t dm_conn_look(struct dm_conn *conn)
{
    int64_t next_ns;

    if (!dm_link_look(conn->link))
        return DM_NEVER;
    dm_mutex_lock(&conn->lock);
    next_ns = conn->looked_ns + DM_LOOK_NS;
    dm_mutex_unlock(&conn->lock);
    return next_ns;
}

/* ---- the link ---------------------------------------------------------------------------- */

enum dm_link_result dm_conn_call(struct dm_conn *conn, const struct dm_command *command,
                                 const struct dm_deadline *deadline, redisReply **ret_reply)
{
    return dm_link_call(conn->link, command, deadline, ret_reply);
}

enum dm_link_result dm_conn_post(struct dm_conn *conn, const struct dm_command *command, dm_reply_fn handler,
                                 void *user)
{
    return dm_link_post(conn->link, command, handler, user);
}

enum dm_link_result dm_conn_post_quietly(struct dm_conn *conn, const struct dm_command *command, dm_reply_fn handler,
                                         void *user)
{
    return dm_link_post_quietly(conn->link, command, handler, user);
}

void dm_conn_watch(struct dm_conn *conn, struct dm_conn_watch *ret_watch)
{
    struct dm_link_watch watch;

    dm_link_watch(conn->link, &watch);
    *ret_watch = (struct dm_conn_watch){
        .fd = watch.fd,
        .events = watch.events,
        .due_ns = watch.due_ns,
        .is_attended = watch.is_attended,
        .activity = watch.activity,
        .is_closed = watch.is_closed,
        .was_wanted = watch.was_wanted,
    };
}

void dm_conn_want(struct dm_conn *conn)
{
    dm_link_want(conn->link);
}

void dm_conn_note_lease(struct dm_conn *conn, unsigned lease_ms)
{
    dm_link_note_lease(conn->link, lease_ms);
}

void dm_conn_retry_soon(struct dm_conn *conn)
{
    dm_link_retry_soon(conn->link);
}

bool dm_conn_is_ready(struct dm_conn *conn)
{
    return dm_link_is_ready(conn->link);
}

bool dm_conn_await_ready(struct dm_conn *conn, const struct dm_deadline *deadline)
{
    return dm_link_await_ready(conn->link, deadline);
}

bool dm_conn_drain(struct dm_conn *conn, const struct dm_deadline *deadline)
{
    return dm_link_drain(conn->link, deadline);
}

void dm_conn_reason(struct dm_conn *conn, char ret_reason[DM_REASON_ROOM])
{
    dm_link_reason(conn->link, ret_reason);
}

void dm_conn_note_look(struct dm_conn *conn, int64_t look_ns)
{
    dm_link_note_turn(conn->link, look_ns);
}

void dm_conn_work(struct dm_conn *conn)
{
    dm_link_work(conn->link);
}

void dm_conn_fork_prepare(struct dm_conn *conn)
{
    dm_link_fork_prepare(conn->link);
    dm_mutex_lock(&conn->lock);
}

void dm_conn_fork_parent(struct dm_conn *conn)
{
    dm_mutex_unlock(&conn->lock);
    dm_link_fork_parent(conn->link);
}

void dm_conn_fork_child(struct dm_conn *conn)
{
    dm_link_fork_child(conn->link);
    dm_mutex_reset(&conn->lock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/thread.h"
#include "redis/conn_parts.h"
#include "redis/reply.h"

static void begin_greeting(struct dm_conn *conn)
{
    conn->reader = dm_reply_reader_new();
    if (!conn->reader) {
        dm_conn_fail(conn, "cannot be opened (out of memory)");
        return;
    }
    dm_reply_reader_count(conn->reader, &conn->budget);
    dm_greeting_begin(&conn->greeting);
    conn->state = DM_CONN_CONNECTING;
    conn->deadline_ns = dm_clock_boot_ns() + conn->url->connect_timeout_ms * DM_NS_PER_MS;
    conn->is_change_news = true;
    dm_conn_wake_all(conn);
}

/* Goes on with the socket; -1: fails with the reason. */
static void take_socket(struct dm_conn *conn, int fd, const char *reason)
{
    conn->fd = fd;
    if (conn->fd >= 0)
        begin_greeting(conn);
    else
        dm_conn_fail(conn, "%s", reason);
}

static void connect_next(struct dm_conn *conn)
{
    char reason[DM_REASON_ROOM];
    int fd = dm_socket_connect(conn->addresses, conn->url->command_timeout_ms);

    if (fd < 0)
        snprintf(reason, sizeof reason, "cannot be opened (%s)", strerror(errno));
    take_socket(conn, fd, reason);
}

static void go_on(struct dm_conn *conn, struct dm_addresses *addresses, const char *reason)
{
    dm_addresses_free(conn->addresses);
    conn->addresses = addresses;
    if (addresses)
        connect_next(conn);
    else
        dm_conn_fail(conn, "%s", reason);
}

/* The helper thread: looks a name up, which can block for long. */
static void *prepare(void *user)
{
    struct dm_conn *conn = user;
    char reason[DM_REASON_ROOM] = "";
    struct dm_addresses *addresses = dm_addresses_find(conn->url, true, reason);

    dm_conn_enter(conn);
    if (conn->state == DM_CONN_PREPARING)
        go_on(conn, addresses, reason);
    else
        dm_addresses_free(addresses); /* the connection has ended meanwhile */
    dm_conn_leave(conn);
    return NULL;
}

/* The same for a local server, which may have to be started. */
static void *prepare_local(void *user)
{
    struct dm_conn *conn = user;
    char reason[DM_REASON_ROOM] = "";
    int fd = conn->hooks.open_local(conn->url, true, reason);

    dm_conn_enter(conn);
    conn->hopeless += fd < 0;
    if (conn->state == DM_CONN_PREPARING)
        take_socket(conn, fd, reason);
    else if (fd >= 0)
        close(fd);
    dm_conn_leave(conn);
    return NULL;
}

static void start_preparing(struct dm_conn *conn)
{
    void *(*begin)(void *) = conn->url->kind == DM_URL_LOCAL ? prepare_local : prepare;

    conn->state = DM_CONN_PREPARING;
    if (dm_thread_start(begin, conn) != 0)
        dm_conn_fail(conn, "cannot be opened (no thread for the look-up)");
}

/* A local server that runs already needs no preparing; the preparing finds out why the server cannot be used. */
static void open_local(struct dm_conn *conn)
{
    char reason[DM_REASON_ROOM];
    int fd = conn->hooks.open_local(conn->url, false, reason);

    if (fd >= 0)
        take_socket(conn, fd, reason);
    else
        start_preparing(conn);
}

/*
 * All addresses of a name are tried, one after the other; then the addresses are looked up again, because the server
 * may have moved.
 */
static void open_conn(struct dm_conn *conn)
{
    char reason[DM_REASON_ROOM];

    if (conn->url->kind == DM_URL_LOCAL) {
        open_local(conn);
        return;
    }
    if (dm_addresses_has_more(conn->addresses)) {
        connect_next(conn);
        return;
    }
    dm_addresses_free(conn->addresses);
    conn->addresses = dm_addresses_find(conn->url, false, reason);
    if (!conn->addresses && reason[0])
        dm_conn_fail(conn, "%s", reason);
    else if (!conn->addresses)
        start_preparing(conn);
    else
        connect_next(conn);
}

void dm_conn_open_if_due(struct dm_conn *conn)
{
    if (conn->state == DM_CONN_CLOSED && conn->is_wanted && dm_clock_boot_ns() >= conn->retry_ns)
        open_conn(conn);
}

/* Commands that were written for the server before must not be sent to this server. */
static void note_server(struct dm_conn *conn)
{
    const struct dm_server *server = &conn->greeting.server;
    bool is_same = dm_server_is_same(server, &conn->server) && server->born_us == conn->server.born_us;

    conn->server = *server;
    if (!is_same)
        conn->server_number++;
}

static void become_ready(struct dm_conn *conn)
{
    note_server(conn);
    dm_addresses_free(conn->addresses);
    conn->addresses = NULL;
    conn->state = DM_CONN_READY;
    conn->ready_ns = conn->looked_ns = dm_clock_boot_ns();
    dm_conn_note_reason(conn, DM_NO_ANSWER);
    conn->is_ready_news = true;
    conn->is_change_news = true;
    dm_conn_wake_all(conn);
}

void dm_conn_greet(struct dm_conn *conn)
{
    struct dm_command round = dm_greeting_round(&conn->greeting);
    bool is_written;

    conn->state = DM_CONN_GREETING;
    if (conn->greeting.step_count == 0) {
        become_ready(conn);
        return;
    }
    is_written = round.bytes && dm_conn_write(conn, round.bytes, round.length);
    free(round.bytes);
    if (!is_written) {
        dm_conn_fail(conn, "broke in the greeting");
        return;
    }
    for (int i = 0; i < conn->greeting.step_count; i++) {
        struct dm_slot *slot = dm_conn_take_slot(conn);

        if (!slot) {
            dm_conn_fail(conn, "cannot be opened (out of memory)");
            return;
        }
        slot->is_greeting = true;
        slot->sent_ns = dm_clock_boot_ns();
        dm_conn_push_slot(conn, slot);
    }
}

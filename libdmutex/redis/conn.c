/* SPDX-License-Identifier: BSD-2-Clause */
#include "redis/conn.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "redis/conn_parts.h"

int64_t dm_conn_due_ns(const struct dm_conn *conn)
{
    switch (conn->state) {
    case DM_CONN_CLOSED:
        return conn->is_wanted ? conn->retry_ns : DM_NEVER;
    case DM_CONN_CONNECTING:
    case DM_CONN_GREETING:
        return conn->deadline_ns;
    case DM_CONN_READY:
        return conn->first ? conn->first->sent_ns + conn->url->command_timeout_ms * DM_NS_PER_MS : DM_NEVER;
    case DM_CONN_PREPARING:
    case DM_CONN_ENDED:
        break;
    }
    return DM_NEVER;
}

static void check_time(struct dm_conn *conn)
{
    if (conn->state == DM_CONN_CLOSED || dm_clock_boot_ns() < dm_conn_due_ns(conn))
        return;
    if (conn->state == DM_CONN_READY)
        dm_conn_fail(conn, "gave no answer within command_timeout");
    else
        dm_conn_fail(conn, "could not be opened within connect_timeout");
}

static void check_connect(struct dm_conn *conn)
{
    struct pollfd poller = { .fd = conn->fd, .events = POLLOUT };
    int error;

    if (poll(&poller, 1, 0) <= 0)
        return;
    error = dm_socket_error(conn->fd);
    if (error)
        dm_conn_fail(conn, "cannot be opened (%s)", strerror(error));
    else
        dm_conn_greet(conn);
}

short dm_conn_wanted_events(const struct dm_conn *conn)
{
    if (conn->state == DM_CONN_CONNECTING)
        return POLLOUT;
    return (short)(POLLIN | (conn->out_length ? POLLOUT : 0));
}

void dm_conn_do_work(struct dm_conn *conn)
{
    dm_conn_open_if_due(conn);
    if (conn->state == DM_CONN_CONNECTING)
        check_connect(conn);
    if (conn->state == DM_CONN_GREETING || conn->state == DM_CONN_READY) {
        dm_conn_flush(conn);
        if (conn->fd >= 0)
            dm_conn_read(conn);
    }
    check_time(conn);
}

/* ---- the interface ----------------------------------------------------------- */

struct dm_conn *dm_conn_new(struct dm_url *url, const char *inbox, const struct dm_conn_hooks *hooks)
{
    struct dm_conn *conn = calloc(1, sizeof *conn);

    if (!conn)
        return NULL;
    conn->lock = (struct dm_mutex)DM_MUTEX_INITIALIZER(DM_RANK_CONN);
    conn->url = url;
    conn->hooks = *hooks;
    conn->fd = -1;
    conn->server_number = 1;
    conn->leader_bell = dm_bell_open();
    if (conn->leader_bell < 0) {
        free(conn);
        return NULL;
    }
    conn->finished_end = &conn->finished;
    conn->greeting.url = url;
    if (inbox) {
        snprintf(conn->channel, sizeof conn->channel, "%s", inbox);
        conn->greeting.inbox = conn->channel;
    }
    dm_conn_note_reason(conn, DM_NO_ANSWER);
    return conn;
}

void dm_conn_free_unused(struct dm_conn *conn)
{
    if (conn)
        close(conn->leader_bell);
    free(conn);
}

void dm_conn_free_bell(struct dm_conn *conn)
{
    if (conn->state != DM_CONN_ENDED || conn->calls || conn->leader_bell < 0)
        return;
    close(conn->leader_bell);
    conn->leader_bell = -1;
}

/* Nobody waits for a posted command: the loop finds out that no answer comes. */
static void want_look(struct dm_conn *conn, const struct dm_slot *slot)
{
    int64_t due_ns = slot->sent_ns + conn->url->command_timeout_ms * DM_NS_PER_MS;

    if (conn->look_ns <= due_ns)
        return;
    conn->look_ns = due_ns;
    conn->is_change_news = true;
}

bool dm_conn_is_for_server(const struct dm_conn *conn, const struct dm_command *command)
{
    return command->server == 0 || command->server == conn->server_number;
}

static enum dm_conn_result post(struct dm_conn *conn, const struct dm_command *command, dm_reply_fn handler, void *user)
{
    struct dm_slot *slot = NULL;

    if (conn->state == DM_CONN_READY && !dm_conn_is_for_server(conn, command))
        return DM_CONN_OTHER;
    if (conn->state == DM_CONN_READY)
        slot = dm_conn_send(conn, command->bytes, command->length);
    if (!slot)
        return DM_CONN_DOWN;
    slot->handler = handler;
    slot->user = user;
    want_look(conn, slot);
    return DM_CONN_OK;
}

enum dm_conn_result dm_conn_post(struct dm_conn *conn, const struct dm_command *command, dm_reply_fn handler,
                                 void *user)
{
    enum dm_conn_result result;
    sigset_t all, mask;

    if (!command->bytes)
        return DM_CONN_DOWN;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    dm_conn_enter(conn);
    result = post(conn, command, handler, user);
    dm_conn_leave(conn);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return result;
}

enum dm_conn_result dm_conn_post_quietly(struct dm_conn *conn, const struct dm_command *command, dm_reply_fn handler,
                                         void *user)
{
    enum dm_conn_result result = DM_CONN_DOWN;

    if (!command->bytes)
        return result;
    dm_conn_enter(conn);
    result = post(conn, command, handler, user);
    dm_mutex_unlock(&conn->lock);
    return result;
}

void dm_conn_want(struct dm_conn *conn)
{
    bool is_known;

    dm_conn_enter(conn);
    is_known = conn->is_wanted;
    conn->is_wanted = conn->was_wanted = true;
    dm_conn_open_if_due(conn);
    conn->is_wanted = true;                         /* also after a failure at once: the next try is planned */
    if (!is_known || conn->state != DM_CONN_CLOSED) /* else a caller that wants a connection each turn wakes itself */
        conn->is_change_news = true;
    dm_conn_leave(conn);
}

void dm_conn_note_lease(struct dm_conn *conn, unsigned lease_ms)
{
    dm_conn_enter(conn);
    if (conn->lease_ms != lease_ms) {
        conn->lease_ms = lease_ms;
        if (conn->state == DM_CONN_CLOSED && conn->failures)
            dm_conn_plan_retry(conn);
    }
    dm_conn_leave(conn);
}

void dm_conn_retry_soon(struct dm_conn *conn)
{
    dm_conn_enter(conn);
    if (conn->state == DM_CONN_CLOSED && conn->is_wanted) {
        conn->retry_ns = dm_clock_boot_ns();
        conn->is_change_news = true;
    }
    dm_conn_leave(conn);
}

void dm_conn_end(struct dm_conn *conn)
{
    dm_conn_enter(conn);
    snprintf(conn->reason, sizeof conn->reason, "this process uses another server now");
    dm_conn_shut(conn, DM_CONN_ENDED);
    dm_conn_free_bell(conn);
    dm_conn_leave(conn);
}

void dm_conn_distrust(struct dm_conn *conn, const char *reason)
{
    dm_conn_enter(conn);
    if (conn->state == DM_CONN_READY)
        dm_conn_fail(conn, "%s", reason);
    dm_conn_leave(conn);
}

static bool is_other(const struct dm_server *server, const struct dm_server *other)
{
    return server->run && other->run && !dm_server_is_same(server, other);
}

void dm_conn_distrust_other(struct dm_conn *conn, const struct dm_server *server, const char *reason)
{
    dm_conn_enter(conn);
    if (conn->state == DM_CONN_READY && is_other(&conn->server, server))
        dm_conn_fail(conn, "%s", reason);
    dm_conn_leave(conn);
}

bool dm_conn_is_ready(struct dm_conn *conn)
{
    bool is_ready_now;

    dm_conn_enter(conn);
    is_ready_now = conn->state == DM_CONN_READY;
    dm_conn_leave(conn);
    return is_ready_now;
}

uint64_t dm_conn_server(struct dm_conn *conn, struct dm_server *ret_server)
{
    uint64_t number;

    dm_conn_enter(conn);
    number = conn->server_number;
    *ret_server = conn->server;
    dm_mutex_unlock(&conn->lock);
    return number;
}

void dm_conn_reason(struct dm_conn *conn, char ret_reason[DM_REASON_ROOM])
{
    dm_conn_enter(conn);
    memcpy(ret_reason, conn->reason, DM_REASON_ROOM);
    dm_conn_leave(conn);
}

void dm_conn_watch(struct dm_conn *conn, struct dm_conn_watch *ret_watch)
{
    dm_conn_enter(conn);
    ret_watch->fd = conn->fd;
    ret_watch->events = conn->fd >= 0 ? dm_conn_wanted_events(conn) : 0;
    ret_watch->due_ns = dm_conn_due_ns(conn);
    ret_watch->is_attended = conn->leader != NULL;
    ret_watch->activity = conn->activity;
    ret_watch->is_closed = conn->state == DM_CONN_CLOSED;
    ret_watch->was_wanted = conn->was_wanted;
    dm_conn_leave(conn);
}

void dm_conn_note_look(struct dm_conn *conn, int64_t look_ns)
{
    dm_conn_enter(conn);
    conn->look_ns = look_ns;
    dm_conn_leave(conn);
}

void dm_conn_work(struct dm_conn *conn)
{
    dm_conn_enter(conn);
    dm_conn_do_work(conn);
    dm_conn_leave(conn);
}

void dm_conn_fork_prepare(struct dm_conn *conn)
{
    dm_mutex_lock(&conn->lock);
}

void dm_conn_fork_parent(struct dm_conn *conn)
{
    dm_mutex_unlock(&conn->lock);
}

void dm_conn_fork_child(struct dm_conn *conn)
{
    if (conn->fd >= 0)
        close(conn->fd);
    if (conn->leader_bell >= 0)
        close(conn->leader_bell);
    conn->fd = conn->leader_bell = -1;
    conn->state = DM_CONN_ENDED;
    dm_mutex_reset(&conn->lock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The look at the server's identity, as in link/session.c: what is sent to a server that is not known waits for it. */
#include "conn_parts.h"

#include <stdlib.h>

#include "scripting.h"

static bool is_known_for(const struct dm_link *conn, int64_t most_ns)
{
    return !conn->greeter.look || dm_clock_boot_ns() < conn->known_ns + most_ns;
}

void conn_look_if_due(struct dm_link *conn, int64_t pause_ns)
{
    struct dm_command command;
    struct slot *slot;

    if (!conn->greeter.look || conn->is_stopped || dm_clock_boot_ns() < conn->looked_ns + pause_ns ||
        !conn_is_usable(conn))
        return;
    command = conn->greeter.look(conn->greeter.user);
    net_send(conn->link, TO_SERVER, command.bytes, command.length);
    free(command.bytes);
    slot = conn_push(conn, 0);
    slot->is_look = true;
    conn->looked_ns = slot->sent_ns;
    conn->looks++;
}

void conn_send(struct dm_link *conn, const char *bytes, size_t length, bool is_for_any)
{
    conn->is_stopped = conn->is_stopped || !(is_for_any || is_known_for(conn, DM_LOOK_NS));
    if (conn->is_stopped)
        bytes_add(&conn->link->behind, bytes, length);
    else
        net_send(conn->link, TO_SERVER, bytes, length);
}

static void go_on(struct dm_link *conn)
{
    struct bytes *behind = &conn->link->behind;

    conn->is_stopped = false;
    net_send(conn->link, TO_SERVER, behind->data, behind->length);
    behind->length = 0;
}

void conn_take_look(struct dm_link *conn, redisReply *reply, int64_t sent_ns)
{
    char reason[DM_REASON_ROOM] = "said too late that it is the same server";
    enum dm_looked looked = conn->greeter.take_look(conn->greeter.user, reply, reason);
    int64_t most_ns = conn->options.command_timeout_ms * DM_NS_PER_MS;

    freeReplyObject(reply);
    conn->looks--;
    if (looked == DM_LOOKED_SAME)
        conn->known_ns = sent_ns;
    else
        conn->looked_ns = conn->known_ns;
    if (looked == DM_LOOKED_SAME && conn->is_stopped && is_known_for(conn, most_ns))
        go_on(conn);
    else if (looked == DM_LOOKED_OTHER || (conn->is_stopped && conn->looks == 0))
        conn_fail(conn, reason);
}

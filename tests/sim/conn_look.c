/* SPDX-License-Identifier: BSD-2-Clause */
/* The look at the server's identity, as in link/session.c: what is sent to a server that is not known waits for it. */
#include "conn_parts.h"

#include <stdlib.h>

#include "scripting.h"

static bool is_due(const struct dm_link *conn, int64_t since_ns, int64_t pause_ns)
{
    return conn->greeter.look && !conn->is_stopped && dm_clock_boot_ns() >= since_ns + pause_ns && conn_is_usable(conn);
}

void conn_send(struct dm_link *conn, const char *bytes, size_t length)
{
    if (conn->is_stopped)
        bytes_add(&conn->link->behind, bytes, length);
    else
        net_send(conn->link, TO_SERVER, bytes, length);
}

void conn_look_if_due(struct dm_link *conn, int64_t pause_ns)
{
    struct dm_command command;
    struct slot *slot;

    if (!is_due(conn, conn->looked_ns, pause_ns))
        return;
    command = conn->greeter.look(conn->greeter.user);
    net_send(conn->link, TO_SERVER, command.bytes, command.length);
    free(command.bytes);
    slot = conn_push(conn, 0);
    slot->is_look = true;
    conn->looked_ns = slot->sent_ns;
    conn->is_stopped = is_due(conn, conn->known_ns, DM_LOOK_NS);
}

void conn_note_known(struct dm_link *conn, int64_t sent_ns)
{
    conn->known_ns = sent_ns;
    if (sent_ns != conn->looked_ns)
        return;
    conn->is_stopped = false;
    if (conn->link->behind.length > 0)
        net_send(conn->link, TO_SERVER, conn->link->behind.data, conn->link->behind.length);
    conn->link->behind.length = 0;
}

void conn_take_look(struct dm_link *conn, redisReply *reply, int64_t sent_ns)
{
    char reason[DM_REASON_ROOM];
    bool is_good = conn->greeter.take_look(conn->greeter.user, reply, reason);

    freeReplyObject(reply);
    if (is_good)
        conn_note_known(conn, sent_ns);
    else
        conn_fail(conn, reason);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server that was a master may have become a replica, and a master again with the data of another server, while the
 * connection stayed open.  So in each second of use the connection asks the server again, ahead of a command that is
 * sent anyway.
 *
 * The inbox listens and cannot ask.  The inbox is connected to the same server as the commands (runtime/schedule.c);
 * the connection for commands asks for both.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "redis/conn_parts.h"

static bool is_due(const struct dm_conn *conn)
{
    return conn->state == DM_CONN_READY && !conn->greeting.inbox && dm_clock_boot_ns() >= conn->looked_ns + DM_LOOK_NS;
}

/* Without memory the look stays due. */
void dm_conn_look_if_due(struct dm_conn *conn)
{
    struct dm_command command;
    struct dm_slot *slot;

    if (!is_due(conn))
        return;
    command = dm_greeting_look(&conn->greeting);
    slot = command.bytes ? dm_conn_take_slot(conn) : NULL;
    if (slot && dm_conn_write(conn, command.bytes, command.length)) {
        slot->is_look = true;
        slot->sent_ns = conn->looked_ns = dm_clock_boot_ns();
        dm_conn_push_slot(conn, slot);
    } else if (slot) {
        dm_conn_spare_slot(conn, slot);
        dm_conn_fail(conn, "broke while sending (%s)", strerror(errno));
    }
    free(command.bytes);
}

void dm_conn_take_look(struct dm_conn *conn, redisReply *reply)
{
    char reason[DM_REASON_ROOM];
    bool is_good = dm_greeting_take_look(&conn->greeting, reply, reason);

    freeReplyObject(reply);
    if (!is_good)
        dm_conn_fail(conn, "%s", reason);
}

int64_t dm_conn_look(struct dm_conn *conn)
{
    int64_t next_ns;

    dm_conn_enter(conn);
    dm_conn_look_if_due(conn);
    next_ns = conn->state == DM_CONN_READY ? conn->looked_ns + DM_LOOK_NS : DM_NEVER;
    dm_mutex_unlock(&conn->lock);
    return next_ns;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks the server's identity with link/identify.c: what is sent to a server that is not known waits for the result.
 */
#include "conn_parts.h"
#include "hooks.h"

#include <stdlib.h>

#include "scripting.h"

void conn_identify_if_due(struct dm_link *conn, int64_t pause_ns)
{
    struct dm_command command;
    struct slot *slot;

    if (!conn->greeter.identify || conn->is_stopped ||
        !dm_identify_is_due(&conn->identify, pause_ns, dm_clock_boot_ns()) || !conn_is_usable(conn))
        return;
    conn_begin_asking();
    command = conn->greeter.identify(conn->greeter.user);
    conn_end_asking();
    net_send(conn->link, TO_SERVER, command.bytes, command.length);
    dm_command_free(&command);
    slot = conn_push(conn, 0);
    slot->is_check = true;
    dm_identify_note_sent(&conn->identify, slot->sent_ns);
}

void conn_send(struct dm_link *conn, const char *bytes, size_t length, bool is_for_any)
{
    if (!is_for_any && conn->greeter.identify && !hooks_has(LINK_AWAITS_NO_IDENTITY) &&
        dm_identify_at_request(&conn->identify, dm_clock_boot_ns()) != DM_IDENTIFY_SENDS)
        conn->is_stopped = true;
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

void conn_take_identity(struct dm_link *conn, redisReply *reply, int64_t sent_ns)
{
    char reason[DM_REASON_ROOM] = "said too late that it is the same server";
    enum dm_identify_verdict verdict;
    enum dm_identified identified;

    conn_begin_asking();
    identified = conn->greeter.take_identity(conn->greeter.user, reply, reason);
    conn_end_asking();
    verdict = dm_identify_take(&conn->identify, identified, sent_ns, conn->is_stopped,
                               conn->options.command_timeout_ms * DM_NS_PER_MS, dm_clock_boot_ns());
    dm_reply_free(reply);
    if (verdict == DM_IDENTIFY_FAILS)
        conn_fail(conn, reason);
    else if (verdict == DM_IDENTIFY_SENDS && conn->is_stopped)
        go_on(conn);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "stores/zookeeper/wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The longest answer is the list of all keys. */
#define FRAME_MOST (8 * 1024 * 1024)
#define IN_KEPT ((size_t)64 * 1024)
#define RECEIVES_MOST 16
#define PASSWORD_SIZE 16
#define ALL_RIGHTS 31

static const char no_zookeeper[] = "what answers there is no ZooKeeper";

static bool fail(char ret_reason[DM_REASON_ROOM], const char *reason)
{
    snprintf(ret_reason, DM_REASON_ROOM, "%s", reason);
    return false;
}

static bool explain(const struct dm_zk_wire *wire, char ret_reason[DM_REASON_ROOM])
{
    int error = errno;
    const char *reason = dm_stream_reason(&wire->stream);

    if (reason[0])
        return fail(ret_reason, reason);
    return fail(ret_reason, error ? dm_text_error(error) : "it has closed the connection");
}

/* ---- requests ------------------------------------------------------------------------------ */

/*
 * Always a new session, whose number and password are zero, and without the last zxid that we have seen: a server that
 * is behind would refuse us without a word, and could not be told from one whose data are gone.
 */
bool dm_zk_wire_begin(struct dm_zk_wire *wire, struct dm_stream stream, int session_ms)
{
    static const char password[PASSWORD_SIZE];
    size_t begin;

    wire->stream = stream;
    begin = wire->out.size;
    dm_jute_begin(&wire->out);
    dm_jute_add_int(&wire->out, 0);  /* version of the protocol */
    dm_jute_add_long(&wire->out, 0); /* zxid */
    dm_jute_add_int(&wire->out, session_ms);
    dm_jute_add_long(&wire->out, 0); /* session */
    dm_jute_add_bytes(&wire->out, password, sizeof password);
    dm_jute_add_bool(&wire->out, false); /* a server without a majority must not serve us */
    return dm_zk_end(wire, begin);
}

size_t dm_zk_begin(struct dm_zk_wire *wire, int32_t xid, int32_t type)
{
    size_t begin = wire->out.size;

    dm_jute_begin(&wire->out);
    dm_jute_add_int(&wire->out, xid);
    dm_jute_add_int(&wire->out, type);
    return begin;
}

bool dm_zk_end(struct dm_zk_wire *wire, size_t begin)
{
    dm_jute_end(&wire->out, begin + 4);
    if (!wire->out.is_short)
        return true;
    wire->out.size = begin;
    wire->out.is_short = false;
    return false;
}

bool dm_zk_log_in(struct dm_zk_wire *wire, const char *user, const char *password)
{
    size_t begin = dm_zk_begin(wire, DM_ZK_LOG_IN_XID, DM_ZK_LOG_IN), text;

    dm_jute_add_int(&wire->out, 0);
    dm_jute_add_text(&wire->out, "digest");
    text = dm_jute_begin(&wire->out);
    dm_bytes_print(&wire->out, "%s:%s", user, password);
    dm_jute_end(&wire->out, text);
    return dm_zk_end(wire, begin);
}

void dm_zk_add_acl(struct dm_bytes *to, bool has_login)
{
    dm_jute_add_int(to, 1);
    dm_jute_add_int(to, ALL_RIGHTS);
    dm_jute_add_text(to, has_login ? "auth" : "world");
    dm_jute_add_text(to, has_login ? "" : "anyone");
}

/* ---- bytes --------------------------------------------------------------------------------- */

bool dm_zk_wire_send(struct dm_zk_wire *wire)
{
    ssize_t sent = 1;

    while (wire->sent < wire->out.size && sent > 0) {
        sent = dm_stream_send(&wire->stream, wire->out.at + wire->sent, wire->out.size - wire->sent);
        if (sent < 0)
            return false;
        wire->sent += (size_t)sent;
    }
    if (wire->sent == wire->out.size)
        wire->sent = wire->out.size = 0;
    return true;
}

static void forget_taken(struct dm_zk_wire *wire)
{
    if (wire->taken == wire->in.size && wire->in.room > IN_KEPT)
        dm_bytes_free(&wire->in);
    else if (wire->taken)
        dm_bytes_take(&wire->in, wire->taken);
    wire->taken = 0;
}

bool dm_zk_wire_turn(struct dm_zk_wire *wire, char ret_reason[DM_REASON_ROOM])
{
    ssize_t got = 1;

    forget_taken(wire);
    if (!dm_zk_wire_send(wire))
        return explain(wire, ret_reason);
    for (int i = 0; i < RECEIVES_MOST && got > 0; i++) {
        got = dm_stream_receive(&wire->stream, wire->room, sizeof wire->room);
        if (got < 0)
            return explain(wire, ret_reason);
        dm_bytes_add(&wire->in, wire->room, (size_t)got);
        if (wire->in.is_short)
            return fail(ret_reason, "out of memory");
        if ((size_t)got < sizeof wire->room && !dm_stream_holds(&wire->stream))
            break;
    }
    return true;
}

bool dm_zk_wire_next(struct dm_zk_wire *wire, struct dm_jute *ret_frame, char ret_reason[DM_REASON_ROOM])
{
    struct dm_jute rest = { .at = (const uint8_t *)wire->in.at + wire->taken, .left = wire->in.size - wire->taken };
    int32_t size;

    ret_reason[0] = '\0';
    if (rest.left < 4)
        return false;
    size = dm_jute_int(&rest);
    if (size < 0 || size > FRAME_MOST)
        return fail(ret_reason, no_zookeeper);
    if (rest.left < (size_t)size)
        return false;
    *ret_frame = (struct dm_jute){ .at = rest.at, .left = (size_t)size };
    wire->taken += 4 + (size_t)size;
    return true;
}

bool dm_zk_wire_has_more(const struct dm_zk_wire *wire)
{
    return dm_stream_holds(&wire->stream) || dm_stream_is_cut(&wire->stream);
}

short dm_zk_wire_events(const struct dm_zk_wire *wire)
{
    return dm_stream_events(&wire->stream, wire->out.size > wire->sent);
}

void dm_zk_wire_close(struct dm_zk_wire *wire)
{
    dm_stream_close(&wire->stream);
    dm_bytes_free(&wire->out);
    dm_bytes_free(&wire->in);
    wire->sent = wire->taken = 0;
}

void dm_zk_wire_forget(struct dm_zk_wire *wire)
{
    dm_stream_forget(&wire->stream);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection to a server of ZooKeeper: messages in frames, each after its length. */
#ifndef DM_ZOOKEEPER_WIRE_H
#define DM_ZOOKEEPER_WIRE_H

#include "link/stream.h"
#include "stores/zookeeper/jute.h"

/* What is asked for, as the protocol numbers it. */
enum {
    DM_ZK_CREATE = 1,
    DM_ZK_DELETE = 2,
    DM_ZK_EXISTS = 3,
    DM_ZK_GET = 4,
    DM_ZK_SET = 5,
    DM_ZK_GET_ACL = 6,
    DM_ZK_CHILDREN = 8,
    DM_ZK_SYNC = 9,
    DM_ZK_PING = 11,
    DM_ZK_CHECK = 13,
    DM_ZK_MULTI = 14,
    DM_ZK_CREATE2 = 15, /* whose answer has the node's stat */
    DM_ZK_LOG_IN = 100,
    DM_ZK_ADD_WATCH = 106,
    DM_ZK_CLOSE = -11
};

/* Errors that an answer can have. */
enum {
    DM_ZK_AFTER_ERROR = -2, /* of what comes after the one that has failed, in a multi */
    DM_ZK_UNIMPLEMENTED = -6,
    DM_ZK_NO_NODE = -101,
    DM_ZK_NO_RIGHT = -102,
    DM_ZK_NODE_EXISTS = -110,
    DM_ZK_NOT_EMPTY = -111,
    DM_ZK_LOGIN_FAILED = -115,
    DM_ZK_OVER_QUOTA = -125
};

/* What answers if not a request. */
enum { DM_ZK_EVENT_XID = -1, DM_ZK_PING_XID = -2, DM_ZK_LOG_IN_XID = -4 };

/* The caller's lock guards a connection. */
struct dm_zk_wire {
    struct dm_stream stream;
    struct dm_bytes out;
    size_t sent; /* of `out` */
    struct dm_bytes in;
    size_t taken; /* of `in` */
    char room[8192];
};

/* Takes over a connected stream, and asks for a session of some ms.  False without memory. */
bool dm_zk_wire_begin(struct dm_zk_wire *wire, struct dm_stream stream, int session_ms);

/* Begins a request; returns where, for the end of it.  In between the caller adds to `out`. */
size_t dm_zk_begin(struct dm_zk_wire *wire, int32_t xid, int32_t type);
/* False without memory: the request is taken back. */
bool dm_zk_end(struct dm_zk_wire *wire, size_t begin);

/* Tells who we are. */
bool dm_zk_log_in(struct dm_zk_wire *wire, const char *user, const char *password);

/* Adds what a node may be used for: by its creator alone, or by all. */
void dm_zk_add_acl(struct dm_bytes *to, bool has_login);

/* Sends what can be sent now.  False with errno. */
bool dm_zk_wire_send(struct dm_zk_wire *wire);

/*
 * Sends and receives what can be sent and received now, up to some 128 KiB.  False if the connection is of no more
 * use, with the reason; then frames that have come whole can still be read.
 */
bool dm_zk_wire_turn(struct dm_zk_wire *wire, char ret_reason[DM_REASON_ROOM]);

/*
 * The next frame that has come whole, valid until the next turn.  False if there is none, with the reason if that is
 * because what comes is no frame, else "".
 */
bool dm_zk_wire_next(struct dm_zk_wire *wire, struct dm_jute *ret_frame, char ret_reason[DM_REASON_ROOM]);

/* The turn ended at its limit, or bytes wait inside the stream: another turn is due at once. */
bool dm_zk_wire_has_more(const struct dm_zk_wire *wire);

short dm_zk_wire_events(const struct dm_zk_wire *wire);

void dm_zk_wire_close(struct dm_zk_wire *wire);
/* In a forked child. */
void dm_zk_wire_forget(struct dm_zk_wire *wire);

#endif

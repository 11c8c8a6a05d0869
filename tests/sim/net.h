/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network between processes and the server: two streams of bytes per connection, which arrive in
 * order, late, in pieces, or, from some byte on, not at all.  Nothing is lost or doubled that TCP
 * would not lose or double.
 */
#ifndef SIM_NET_H
#define SIM_NET_H

#include "scripting.h"

struct dm_conn;

enum way { TO_SERVER, TO_CLIENT, WAYS };

struct stream {
    int64_t last_arrival_ns;
    int64_t bytes_left; /* until the cut; -1: none is planned */
    bool is_dry;        /* nothing arrives any more */
};

struct link {
    struct link *next;  /* of those that the server knows */
    struct link *older; /* of all of this run */
    struct dm_conn *conn;
    struct stream streams[WAYS];
    bool is_black;          /* nobody hears anything, and nobody is told */
    bool is_shut_by_client; /* what it has sent is on its way yet */
    bool is_known_to_server;

    /* The server's side. */
    int node; /* which of the servers it leads to */
    uint64_t client_id;
    char channel[80]; /* subscribed, or "" */
    struct bytes in;
};

/* Asks for a connection; conn_connected() or conn_closed() follows, or nothing. */
struct link *net_connect(struct dm_conn *conn);

void net_send(struct link *link, enum way way, const char *bytes, size_t length);

/* The client closes its end: what it sent before may still arrive. */
void net_shut(struct link *link);

/* Both ends are told that it is broken, the client after a while; nothing arrives any more. */
void net_reset(struct link *link);

/* The stream ends after so many more bytes, and then the link is reset. */
void net_cut(struct link *link, enum way way, int64_t bytes);

/* No connection is there, or is there any more. */
void net_begin(void);
void net_end(void);

/* Faults of all connections: how slow it is. */
void net_set_delay(int64_t usual_ns, int64_t most_ns);

/* What happens at the client's end: conn.c. */
void conn_connected(struct dm_conn *conn, struct link *link);
void conn_bytes(struct dm_conn *conn, struct link *link, const char *bytes, size_t length);
void conn_closed(struct dm_conn *conn, struct link *link);

#endif

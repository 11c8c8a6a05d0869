/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network between processes and the server: two streams of bytes per connection; bytes arrive in
 * order, late, in pieces, or, from some byte on, not at all.  No byte is lost or doubled where TCP
 * would not lose or double bytes.
 */
#ifndef SIM_NET_H
#define SIM_NET_H

#include "scripting.h"

struct process;

#define SHARDS_MAX 4

enum way { TO_SERVER, TO_CLIENT, WAYS };

struct stream {
    int64_t last_arrival_ns;
    int64_t bytes_left; /* until the cut; -1: none is planned */
    bool is_dry;        /* nothing arrives any more */
};

struct link {
    struct link *next;  /* of the links known to the server */
    struct link *older; /* of all of this run */
    struct stream streams[WAYS];
    bool is_black;          /* neither end hears anything, or learns of it */
    bool is_shut_by_client; /* bytes sent before are still on the way */
    bool is_known_to_server;

    /* The client's end. */
    struct process *process;
    int fd;
    bool is_connected, is_closed; /* the latter: by anybody */
    struct bytes received;

    /* The server's side. */
    int server, node;            /* the indices of the link's server, and of its node */
    uint64_t client_id, replid;  /* the latter: the server's at the beginning of the link */
    char channel[80];            /* subscribed, or "" */
    char shards[SHARDS_MAX][80]; /* of a Cluster, as above */
    bool is_asking;              /* the next command follows ASKING */
    uint64_t written;            /* the offset after the last write of this link */
    int replicas_wanted;
    uint64_t waits;
    bool is_waiting; /* WAIT blocks the link */
    struct bytes in;
};

/* Asks for a connection to the server of this number; it is then connected, or closed, or neither. */
struct link *net_connect(struct process *process, int server);

void net_send(struct link *link, enum way way, const char *bytes, size_t length);

/* Closes the client's end: bytes sent before may still arrive. */
void net_shut(struct link *link);

/* Breaks the link: both ends learn of it, the client after a while; nothing arrives any more. */
void net_reset(struct link *link);

/* Nothing arrives any more, at either end.  After a while the client's keepalive notices. */
void net_blacken(struct link *link);

/* The host of the process is gone. */
void net_blacken_all(const struct process *process);

/* The stream ends after this many more bytes, and then the link is reset. */
void net_cut(struct link *link, enum way way, int64_t bytes);

/* There is no connection yet; or none any more. */
void net_begin(void);
void net_end(void);

/* Faults of all connections: the network's delay. */
void net_set_delay(int64_t usual_ns, int64_t most_ns);
int64_t net_delay(void);

#endif

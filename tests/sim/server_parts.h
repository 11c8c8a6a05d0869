/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations that the parts of the servers share: server.c, and replicas.c for a group with sentinels. */
#ifndef SIM_SERVER_PARTS_H
#define SIM_SERVER_PARTS_H

#include "server.h"

struct node {
    uint64_t run, last_client_id;
    int64_t started_us;
    uint32_t known_scripts; /* a set of bits */
};

/* A server: two nodes, one of which is the master.  With sentinels and in a Cluster one node is used. */
struct server {
    struct store store, copy;
    struct node nodes[2], *master;
    struct link *links;                             /* of both nodes, the newest first */
    uint64_t last_run, ends, replid, replid_before; /* 0: never promoted */
    int64_t ahead_us, most_ahead_us;                /* ahead of true time: now, and at most so far */
    int64_t stalled_until_ns, loading_until_ns;
    bool is_full, is_down, has_monitor;
    bool is_replica; /* of another server */
    uint32_t follows;
    uint64_t offset; /* of the last write that the server has */
};

extern struct server servers[SERVERS_MAX];

/* Runs the commands that have arrived, up to one that blocks the link. */
void server_work_on(struct link *link);

/* Of the chosen server: another replication id; ends the connections to the master, with inboxes or without. */
void server_draw_replid(void);
void server_reset_links(bool is_inbox_too);

/* WAIT: writes the reply, or blocks the link until the replicas have the link's writes or the time is over. */
void server_await_replicas(struct link *link, int replicas, int64_t limit_ms, struct bytes *reply);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The servers: data, clock, clients and faults.  In most runs there is one; in a quorum there are several, which know
 * nothing of each other, with sentinels a group (sentinels.h), and in a Cluster three shards (cluster.h).  What follows
 * is about the chosen server.
 *
 * There are two nodes, a master and a replica.  The replica has all data at once, and gives its subscribers all
 * messages of the master.  New connections come to the master, as by an address that follows the master; an open
 * connection stays with its node.
 */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include "net.h"
#include "store.h"

#define SERVERS_MAX 6

/* The first is chosen. */
void server_begin(struct scripting *scripting, int count);
void server_end(void);

int server_count(void);

/* False if what one of several servers stores says nothing about the locks, so that only the processes are judged. */
bool server_is_judged(void);

/* Chooses a server, by its number modulo their count; an event of a server chooses that server. */
void server_choose(uint32_t number);
uint32_t server_number(void);

/* The network's side. */
bool server_accept(struct link *link);
void server_bytes(struct link *link, const char *bytes, size_t length);
void server_gone(struct link *link);

/* ---- faults ------------------------------------------------------------------------------- */

enum keeps { KEEPS_ALL, KEEPS_COPY, KEEPS_NOTHING }; /* data kept by a restart */

/* Ends now, and is there again after `down_ns`, as another run. */
void server_restart(enum keeps keeps, int64_t down_ns);
bool server_is_down(void);

/* Makes the copy that KEEPS_COPY goes back to: the data of a replica, or of a snapshot. */
void server_copy(void);

/* The replica becomes the master, with all data or the data of the last copy.  No connection ends. */
void server_promote(enum keeps keeps);

/*
 * Promotes the replica with the data of the last copy, then the earlier master again, before any client came to the
 * replica; the way there and back takes `down_ns`.  Commands' connections end, inboxes stay.
 */
void server_promote_and_back(int64_t down_ns);

/*
 * Of a group: REPLICAOF NO ONE, which changes nothing for a master; REPLICAOF the server of this number, with its data;
 * the data of that master reach the replica.  Connections stay, as in a Cluster.
 */
void server_become_master(void);
void server_become_replica(uint32_t number);
void server_catch_up(uint32_t number);

/* The first two, by sentinels: all connections end. */
void server_take_over(void);
void server_follow(uint32_t number);

/* Somebody has subscribed to all channels by a pattern. */
void server_set_monitor(bool is_there);

/* Does nothing for a while; bytes wait. */
void server_stall(int64_t for_ns);

/* Answers LOADING for a while. */
void server_load(int64_t for_ns);

void server_set_clock(int64_t us); /* ahead of true time, from the beginning on */
void server_step_clock(int64_t us);
bool server_is_clock_behind(void); /* below its highest time, so that expired keys may live again */
bool server_right_clock(void);     /* no longer below its highest time; true if it was */
void server_set_full(bool is_full);
void server_flush_scripts(void);
void server_flush_data(void);
void server_evict(uint32_t number);

/* A defect for a negative control: CLIENT KILL says yes and does nothing. */
void server_let_ghosts_live(void);

/* Ends the number-th connection of all there are, on the server. */
void server_kill_client(uint32_t number);

/* Returns the number-th accepted connection; NULL: no such connection. */
struct link *server_link(uint32_t number);

/* ---- for the checks ----------------------------------------------------------------------- */

struct store *server_store(void);
int64_t server_now_us(void);
uint64_t server_now_token(void); /* the token made from the clock */

/* True if the master knows a subscriber of the process's inbox. */
bool server_hears(struct text uuid);

#endif

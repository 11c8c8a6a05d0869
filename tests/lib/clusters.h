/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A Cluster: masters with a replica each, or without, on loopback.  The first nodes are the masters at first, and node
 * i + masters is the replica of node i.
 *
 *     int slot = cluster_slot(the_cluster, "orders");
 *     int before = cluster_master(the_cluster, slot);
 *
 *     cluster_kill(the_cluster, before);
 *     after = cluster_await_failover(the_cluster, slot, before);
 *
 * All functions fail the running test if the work cannot be done.
 */
#ifndef TEST_CLUSTERS_H
#define TEST_CLUSTERS_H

#include "server.h"

#define CLUSTER_NODES 9
#define CLUSTER_SLOTS 16384

/* cluster-node-timeout on a quiet machine: for tests in which no node fails, and for tests of failovers. */
#define CLUSTER_CALM_MS 5000
#define CLUSTER_FAST_MS 500

struct cluster {
    struct server *nodes[CLUSTER_NODES]; /* NULL: forgotten */
    int bus_ports[CLUSTER_NODES];
    char ids[CLUSTER_NODES][48];
    bool is_stopped[CLUSTER_NODES];
    int64_t elected_ms[CLUSTER_NODES]; /* when the node was seen to be elected; 0: never */
    int masters, count, timeout_ms;
    bool is_sparse; /* most slots have no node, and the nodes serve all the same */
};

/* Starts all nodes with equal shares of the slots, and waits until all of them know all others and serve. */
void cluster_start(struct cluster *cluster, int masters, bool has_replicas, int timeout_ms);
void cluster_end(struct cluster *cluster);

/*
 * The same with masters that have one slot each, for one group of names; nobody misses the others.  The slots rise with
 * the node numbers.  The second returns the group of a node, valid until the next start.
 */
void cluster_start_sparse(struct cluster *cluster, int masters, int timeout_ms);
const char *cluster_sparse_group(int node);

/* Three masters and three replicas for a whole group of tests, calm or fast. */
extern struct cluster *the_cluster;
int cluster_group_setup(void **state);
int cluster_group_setup_fast(void **state);
int cluster_group_teardown(void **state);

/* The URL with the first three nodes, or with one node; options such as "?grace=off", or "", are appended. */
const char *cluster_url(const struct cluster *cluster, const char *options);
const char *cluster_url_of(const struct cluster *cluster, int node, const char *options);

/* ---- slots ------------------------------------------------------------------------------- */

/* The slot of a group of names. */
int cluster_slot(const struct cluster *cluster, const char *group);

/*
 * The node that serves the slot according to node `by`, or -1; and according to all running nodes, for which it waits.
 */
int cluster_master_by(const struct cluster *cluster, int by, int slot);
int cluster_master(const struct cluster *cluster, int slot);

/* A new plain connection to the node that serves the group: Redis closes the connections of demoted nodes. */
struct side *cluster_side(struct cluster *cluster, const char *group);

/* A group name that begins with `word`, in a slot of the node.  The last four results are valid. */
const char *cluster_group_on(const struct cluster *cluster, int node, const char *word);

/* Moving a slot to another master.  A step moves one key, and returns false if there are no more. */
struct move {
    struct cluster *cluster;
    int slot, from, to;
};
void cluster_move_begin(struct cluster *cluster, int slot, int to, struct move *ret_move);
bool cluster_move_step(const struct move *move);
void cluster_move_key(const struct move *move, const char *key);
void cluster_move_finish(const struct move *move);

/* Tries a step for this many ms.  If the second node does not answer, the key stays on both nodes, or on the first. */
bool cluster_move_try(const struct move *move, int timeout_ms);

/* Ends the move, and loses the second node's keys of the slot, as if the node failed at that moment. */
void cluster_move_lose(const struct move *move);

/*
 * Ends the move: the first node serves the slot again, and then gets back the keys that have moved.  Keys that it has
 * got in the meantime stay.
 */
void cluster_move_abort(const struct move *move);

/* Waits until all running nodes know the newest epoch: a node that takes a slot takes an epoch above those it knows. */
void cluster_await_epoch(const struct cluster *cluster);

/* All steps of a move. */
void cluster_move(struct cluster *cluster, int slot, int to);

/* ---- nodes ------------------------------------------------------------------------------- */

/*
 * SIGKILL, a new start, SIGSTOP and SIGCONT.  The first and the third wait until the node's replica can be elected
 * again, some seconds after its last election.
 */
void cluster_kill(struct cluster *cluster, int node);
void cluster_restart(struct cluster *cluster, int node);
void cluster_stop(struct cluster *cluster, int node);
void cluster_cont(struct cluster *cluster, int node);

/* Waits until all running nodes name a master of the slot other than `before`.  Returns it. */
int cluster_await_failover(struct cluster *cluster, int slot, int before);

/* A replica of the slot's master, or -1. */
int cluster_replica(const struct cluster *cluster, int slot);

/*
 * CLUSTER FAILOVER at the replica, and waits for it.  The second uses FORCE, when the master is stopped and the replica
 * may lag.  Both return the new master.
 */
int cluster_fail_over(struct cluster *cluster, int slot);
int cluster_force_over(struct cluster *cluster, int slot);

/*
 * From now on the replicas of the slot's master get nothing that is written, until they reconnect: within a second,
 * unless they are stopped.
 */
void cluster_part(struct cluster *cluster, int slot);

/* Starts killed nodes, continues stopped ones, and waits until all serve and all replicas follow. */
void cluster_heal(struct cluster *cluster);

/* Adds a master without slots; makes all nodes forget such a master, and ends it. */
int cluster_add_node(struct cluster *cluster);
void cluster_forget_node(struct cluster *cluster, int node);

#endif

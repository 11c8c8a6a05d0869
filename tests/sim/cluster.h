/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A Cluster of three shards, each with a master and a replica.  Each node has its own view of who serves which slot.
 *
 * A slot moves as redis-cli moves it: key by key; then the new master takes the slot, then the earlier one hears of it,
 * and the third much later.  A key that got stuck may be on both nodes.  Or the move is given up, and all keys are back
 * at once (an assumption of doc/design/cluster.md).
 *
 * A replica has its master's data of some earlier moment.  When it takes over, the other masters, which have elected
 * it, hear of its slots soon, and the rest later.  The replaced master continues until it hears of it, too.
 */
#ifndef SIM_CLUSTER_H
#define SIM_CLUSTER_H

#include "server.h"

#define CLUSTER_SHARDS 3
#define CLUSTER_SERVERS (2 * CLUSTER_SHARDS) /* the masters of the beginning come first */
#define CLUSTER_SWITCH_MS 200

/*
 * names: how many there are, each in its own slot; lease_ms: of all, and the length of a node's grace; are_moves: slots
 * move in this run.
 */
void cluster_begin(int names, int64_t lease_ms, bool are_moves);
void cluster_none(void); /* no Cluster in this run */
bool cluster_is_there(void);

/* ---- the chosen node's side --------------------------------------------------------------- */

/* False: the node refuses a command with these keys, and `reply`, if not NULL, gets the error. */
bool cluster_serves(const struct text *keys, int count, bool is_asking, struct bytes *reply);

/* C4: a script that fails while its slot is moving has changed nothing, and notified nobody. */
void cluster_before_script(struct text key);
void cluster_after_script(int script, const struct bytes *reply);

/* CLUSTER SLOTS, SSUBSCRIBE, SUNSUBSCRIBE. */
void cluster_say_slots(struct bytes *reply);
void cluster_subscribe(struct link *link, struct text channel, struct bytes *reply);
void cluster_unsubscribe(struct link *link, struct text channel, struct bytes *reply);

/* ---- faults ------------------------------------------------------------------------------- */

bool cluster_has_moves(void);

/*
 * Moves the slot of a name, or a node's lowest slot, to another master; a key in `pace_ns`, more or less.  Nothing
 * happens during another move, or while the slot's master gives grace (an assumption, too).
 */
void cluster_move(uint32_t number, int64_t pace_ns, bool is_given_up);

/* The chosen node is about to lose its data; false: a slot is on its way. */
bool cluster_may_lose(void);

/* Planned: with all data.  Else the replica has what has reached it, and the replaced master stops, or ends empty. */
enum shard_failover { SHARD_PLANNED, SHARD_FORCED, SHARD_MASTER_STALLS, SHARD_MASTER_RESTARTS };

int64_t cluster_switched_ns(uint32_t shard); /* its last failover */

/* False: nothing happens during a move, soon after the last failover of the shard, or where nobody can be elected. */
bool cluster_fail_over(uint32_t shard, enum shard_failover how, int64_t for_ns);

#endif

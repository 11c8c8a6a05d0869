/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stage with a Cluster instead of two servers, and its faults: slots with mutexes move, and replicas replace masters.
 * slots_heal() brings back the nodes that a fault has killed or stopped.
 */
#ifndef CHAOS_SLOTS_H
#define CHAOS_SLOTS_H

#include "stage.h"

/* `options`: of the processes' URL, "?switch=400". */
void slots_begin(struct stage *stage, int timeout_ms, const char *options);
void slots_end(struct stage *stage);

/* A new plain connection to the node that has most mutexes. */
struct side *slots_side(struct stage *stage);

/* A slot that mutexes are in, chosen by the dice, goes to another master; key by key, with pauses. */
void slots_move(struct stage *stage);
void slots_move_there_and_back(struct stage *stage);
void slots_move_both(struct stage *stage);         /* two slots at the same time */
void slots_move_slowly(struct stage *stage);       /* leases end half-way, unless they are renewed */
void slots_begin_and_give_up(struct stage *stage); /* before a key has moved */
void slots_lose_keys(struct stage *stage);         /* half-way: the keys that have moved are lost */
void slots_move_through_stop(struct stage *stage); /* the new node stops while a key is on the way */

/* The shard of a slot that mutexes are in. */
void slots_kill_master(struct stage *stage);
void slots_stop_master(struct stage *stage);
void slots_fail_over(struct stage *stage); /* CLUSTER FAILOVER */
void slots_fail_over_twice(struct stage *stage);

/*
 * The replica gets no writes from the first call on; with the second the replica takes the place of the master, which
 * is stopped, by FORCE.
 */
void slots_part(struct stage *stage);
void slots_force_over(struct stage *stage);

void slots_heal(struct stage *stage);

#endif

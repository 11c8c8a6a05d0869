/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes of a Cluster (lib/clusters.h, `the_cluster`), and names on its nodes. */
#ifndef TEST_SHARDS_H
#define TEST_SHARDS_H

#include "../lib/testlib.h"

#define TIMES "command_timeout=500&connect_timeout=500&switch=1000"           /* for nodes that fall silent */
#define LONG_TIMES "command_timeout=20000&connect_timeout=20000&switch=20000" /* a busy machine keeps these */
#define SWITCH 1000
#define LONG_LEASE 60000 /* no poll and no renewal within the time of a test */
#define LEASE 30000      /* longer than any failover */

/* Two processes for each test, without grace; the second: with LONG_TIMES. */
extern struct actor *holder, *waiter;
int shards_begin(void **state);
int shards_begin_patient(void **state);
int shards_end(void **state);
struct actor *shards_start(void);

/*
 * The slots have three shares, of a node each; a failover may have changed the node.  A name in a slot of the share:
 * "word7/x".  The last four results are valid.
 */
#define SHARES 3
int shards_node(int share);
const char *shards_name(int share, const char *word);

/* A name's slot and the slot's node; and the node's plain connection. */
int shards_slot(const char *name);
int shards_master(const char *name);
struct side *shards_side(const char *name);

/* True if the node of the name has a key of this kind: lock, state, queue, waiter. */
bool shards_has(const char *kind, const char *name);

/* Waiters of a mutex, and of a condition, as the node says. */
int shards_waiters(const char *name);
int shards_sleepers(const char *cond);

/* Inboxes of processes that the node of the name hears. */
int shards_inboxes(const char *name);

/*
 * The holder holds and the waiter waits.  The second: the hold is the same as before, and goes to the waiter, with a
 * later token.
 */
void shards_begin_queue(const char *name, int lease_ms);
void shards_end_queue(const char *name, long long token);

/* The process locks the mutex, and waits on the condition NAME-c as the `place`-th. */
void shards_begin_wait(struct actor *actor, const char *name, int place);

/* The process locks and unlocks. */
void shards_use(struct actor *actor, const char *name);

/* Waits for this long by the clock of a node, while nothing should happen. */
void shards_let_pass(int ms);

/* The last test of a group: no keys but the states of names, and the marks of servers; no inboxes. */
void test_nothing_is_left_on_the_nodes(void **state);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stage with a group of Sentinel instead of two servers, and its faults.  When a fault returns, the sentinels have
 * made another server the master. group_heal() brings back the servers that the fault has killed or stopped, as masters
 * that do not yet know that they were replaced.
 */
#ifndef CHAOS_GROUP_H
#define CHAOS_GROUP_H

#include "stage.h"

/* `options`: of the processes' URL, "?switch=400". */
void group_begin(struct stage *stage, const char *options);
void group_end(struct stage *stage);

/* A new plain connection to the master. */
struct side *group_side(struct stage *stage);

void group_kill_master(struct stage *stage);
void group_stop_master(struct stage *stage);
void group_sleep_master(struct stage *stage); /* DEBUG SLEEP */
void group_fail_over(struct stage *stage);    /* SENTINEL FAILOVER */
void group_fail_over_twice(struct stage *stage);
void group_restart_sentinel(struct stage *stage);       /* and kills the master while one sentinel is away */
void group_kill_master_of_stopped(struct stage *stage); /* the replicas are stopped a while before */

/* Where the stage has hosts. */
void group_part_master(struct stage *stage);    /* and the processes of its host */
void group_part_sentinels(struct stage *stage); /* two of three: nobody is promoted */

/* All servers and hosts are back; nobody waits until they follow the master. */
void group_heal(struct stage *stage);

/* Waits until the sentinels name a server that is a master. */
void group_await_master(struct stage *stage);

#endif

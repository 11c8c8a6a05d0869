/* SPDX-License-Identifier: BSD-2-Clause */
#include "group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct server *master_of(const struct stage *stage)
{
    return stage->group->data[stage->master];
}

void group_begin(struct stage *stage, const char *options)
{
    stage->group = calloc(1, sizeof *stage->group);
    assert_non_null(stage->group);
    sentinels_start(stage->group, "");
    snprintf(stage->options, sizeof stage->options, "%s", options);
}

void group_end(struct stage *stage)
{
    sentinels_end(stage->group);
    free(stage->group);
    stage->group = NULL;
}

struct side *group_side(struct stage *stage)
{
    server_reconnect(master_of(stage));
    return master_of(stage)->side;
}

/* ---- the switch -------------------------------------------------------------------------- */

static void await_switch(struct stage *stage)
{
    stage->master = sentinels_await_switch(stage->group, stage->master);
    stage->promotions++;
}

void group_kill_master(struct stage *stage)
{
    server_kill(master_of(stage));
    await_switch(stage);
}

/* With the time of the election about three seconds in all. */
void group_stop_master(struct stage *stage)
{
    server_stop(master_of(stage));
    await_switch(stage);
    stage_rest(stage, 2000);
}

void group_sleep_master(struct stage *stage)
{
    side_try(group_side(stage), "DEBUG SLEEP 2");
    await_switch(stage);
}

/* Sentinels give a failover up whose replica does not answer in time, and try no other. */
#define FAILOVER_MS 8000
#define FAILOVERS 3

/* Refused while a failover goes on. */
void group_fail_over(struct stage *stage)
{
    for (int i = 0; i < FAILOVERS; i++) {
        wait_until(side_try(stage->group->sentinel[0]->side, "SENTINEL FAILOVER mymaster"));
        if (sentinels_switch_within(stage->group, stage->master, FAILOVER_MS))
            break;
    }
    await_switch(stage);
}

void group_fail_over_twice(struct stage *stage)
{
    group_fail_over(stage);
    group_fail_over(stage);
}

void group_restart_sentinel(struct stage *stage)
{
    struct server *sentinel = stage->group->sentinel[dice_below(&stage->dice, SENTINELS)];

    server_kill(sentinel);
    server_kill(master_of(stage));
    await_switch(stage);
    server_restart(sentinel);
}

/* The replicas have what lies in their sockets, and no more. */
void group_kill_master_of_stopped(struct stage *stage)
{
    const struct sentinels *group = stage->group;

    for (int i = 0; i <= REPLICAS; i++) {
        if (i != stage->master)
            server_stop(group->data[i]);
    }
    stage_rest(stage, LEASE);
    server_kill(master_of(stage));
    for (int i = 0; i <= REPLICAS; i++) {
        if (i != stage->master)
            server_cont(group->data[i]);
    }
    await_switch(stage);
}

/* ---- the way back ------------------------------------------------------------------------ */

/* Sentinels close the connections of a server that changes its place. */
static bool follows(const struct stage *stage, struct server *server)
{
    char port[32];

    if (server == master_of(stage))
        return false;
    snprintf(port, sizeof port, "master_port:%d\r", master_of(stage)->port);
    if (!side_says(server->side, port, "INFO replication")) {
        server_reconnect(server);
        return false;
    }
    return side_says(server->side, "master_link_status:up", "INFO replication");
}

/*
 * A busy machine may have had the sentinels switch once more.  All must follow: a replaced master that is promoted
 * again before it has followed another has the identity of before, as test_sentinel has it (doc/design/sentinel.md).
 */
static bool do_all_follow(struct stage *stage)
{
    int master = sentinels_master(stage->group, 0);

    if (master >= 0)
        stage->master = master;
    for (int i = 0; i <= REPLICAS; i++) {
        if (i != stage->master && !follows(stage, stage->group->data[i]))
            return false;
    }
    return master >= 0;
}

void group_heal(struct stage *stage)
{
    for (int i = 0; i <= REPLICAS; i++) {
        struct server *server = stage->group->data[i];

        if (!server->pid)
            server_restart(server);
        server_cont(server);
    }
    wait_until(do_all_follow(stage));
}

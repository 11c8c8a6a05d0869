/* SPDX-License-Identifier: BSD-2-Clause */
#include "group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/hosts.h"

static struct server *master_of(const struct stage *stage)
{
    return stage->group->data[stage->master];
}

/* The master can be cut off with a sentinel or without, and the majority of the sentinels. */
static const int data_hosts[] = { 0, 1, 1 }, sentinel_hosts[] = { 0, 2, 2 };

void group_begin(struct stage *stage, const char *options)
{
    stage->group = calloc(1, sizeof *stage->group);
    assert_non_null(stage->group);
    /* Sentinels open a lost connection once a second: with less than that they often promote twice, one more fault. */
    sentinels_start_on(stage->group, "sentinel down-after-milliseconds mymaster 500", data_hosts, sentinel_hosts);
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

/* Sentinels retry a failover every 6 s; one that was late itself does nothing for 30 s (TILT), and perhaps again. */
#define SWITCH_MS 15000
#define TILT_MS 120000
#define PARTED_MS 2000

/* Sentinels with two masters by one number of a promotion need one more failover, as an operator orders it. */
static bool await_agreement(struct stage *stage, long long epoch)
{
    int64_t began_ms = wait_now_ms();

    while (!sentinels_switch_within(stage->group, epoch, PARTED_MS)) {
        if (wait_now_ms() > began_ms + TILT_MS)
            return false;
        if (sentinels_are_parted(stage->group))
            sentinels_order_failover(stage->group);
    }
    return true;
}

static bool has_master(struct stage *stage)
{
    if (!sentinels_switch_within(stage->group, -1, 0))
        return false;
    stage->master = sentinels_await_switch(stage->group, -1);
    return strncmp(side_text(group_side(stage), "ROLE"), "master", strlen("master")) == 0;
}

/* Sentinels that name a replica check it for 20 s before they promote another server. */
void group_await_master(struct stage *stage)
{
    int64_t began_ms = wait_now_ms();

    while (!has_master(stage)) {
        if (wait_now_ms() > began_ms + TILT_MS) {
            sentinels_show(stage->group);
            fail_msg("the sentinels name no server that is a master");
        }
        wait_pause(began_ms);
    }
}

/* While no replica is fit for it, none is promoted: then the master comes back, and that was no promotion. */
static void await_switch(struct stage *stage, long long epoch)
{
    if (sentinels_switch_within(stage->group, epoch, SWITCH_MS))
        stage->promotions++;
    else
        group_heal(stage);
    if (!await_agreement(stage, epoch - 1)) {
        sentinels_show(stage->group);
        fail_msg("the sentinels do not agree on a master behind epoch %lld", epoch);
    }
    stage->master = sentinels_await_switch(stage->group, epoch - 1);
}

void group_kill_master(struct stage *stage)
{
    long long epoch = sentinels_epoch(stage->group);

    server_kill(master_of(stage));
    await_switch(stage, epoch);
}

/* With the time of the election about three seconds in all. */
void group_stop_master(struct stage *stage)
{
    long long epoch = sentinels_epoch(stage->group);

    server_stop(master_of(stage));
    await_switch(stage, epoch);
    stage_rest(stage, 2000);
}

/* Sentinels give a failover up whose replica does not answer in time, and none may begin while a master sleeps. */
#define FAILOVER_MS 8000
#define FAILOVERS 3

static void strike_until_switched(struct stage *stage, void strike(struct stage *))
{
    long long epoch = sentinels_epoch(stage->group);

    for (int i = 0; i < FAILOVERS; i++) {
        strike(stage);
        if (sentinels_switch_within(stage->group, epoch, FAILOVER_MS))
            break;
    }
    await_switch(stage, epoch);
}

static void put_to_sleep(struct stage *stage)
{
    side_try(group_side(stage), "DEBUG SLEEP 2");
}

void group_sleep_master(struct stage *stage)
{
    strike_until_switched(stage, put_to_sleep);
}

/* Refused during a failover. */
static void order_failover(struct stage *stage)
{
    wait_until(side_try(stage->group->sentinel[0]->side, "SENTINEL FAILOVER mymaster"));
}

void group_fail_over(struct stage *stage)
{
    strike_until_switched(stage, order_failover);
}

void group_fail_over_twice(struct stage *stage)
{
    group_fail_over(stage);
    group_fail_over(stage);
}

void group_restart_sentinel(struct stage *stage)
{
    struct server *sentinel = stage->group->sentinel[dice_below(&stage->dice, SENTINELS)];
    long long epoch = sentinels_epoch(stage->group);

    server_kill(sentinel);
    server_kill(master_of(stage));
    await_switch(stage, epoch);
    server_restart(sentinel);
}

/* The replicas have what is in their sockets, and no more. */
void group_kill_master_of_stopped(struct stage *stage)
{
    const struct sentinels *group = stage->group;
    long long epoch = sentinels_epoch(group);

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
    await_switch(stage, epoch);
}

/* ---- the network ------------------------------------------------------------------------- */

static void cut(struct stage *stage, int host)
{
    for (int i = 0; i < SENTINELS; i++)
        stage->group->is_out[i] = sentinel_hosts[i] == host;
    stage->cut_host = host;
    hosts_cut(host);
}

static void join(struct stage *stage)
{
    if (stage->cut_host < 0)
        return;
    hosts_join(stage->cut_host);
    stage->cut_host = -1;
    memset(stage->group->is_out, 0, sizeof stage->group->is_out);
}

/* The processes on the master's host continue with the old master, and the others with the new one. */
void group_part_master(struct stage *stage)
{
    long long epoch = sentinels_epoch(stage->group);

    cut(stage, master_of(stage)->host);
    await_switch(stage, epoch);
}

/* Nobody is promoted, and no word of the sentinels is fresh. */
void group_part_sentinels(struct stage *stage)
{
    cut(stage, sentinel_hosts[SENTINELS - 1]);
    stage_rest(stage, 2000);
}

/* ---- the way back ------------------------------------------------------------------------ */

/* Nobody waits until all follow: a replaced master may be promoted again at once. */
void group_heal(struct stage *stage)
{
    join(stage);
    for (int i = 0; i <= REPLICAS; i++) {
        struct server *server = stage->group->data[i];

        if (!server->pid)
            server_restart(server);
        server_cont(server);
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "slots.h"

#include <stdio.h>
#include <stdlib.h>

#define SHARDS 3

/* The groups of all mutexes (mutex_kinds). */
static const char *const groups[] = { "chaos", "apart" };

void slots_begin(struct stage *stage, int timeout_ms, const char *options)
{
    stage->cluster = calloc(1, sizeof *stage->cluster);
    assert_non_null(stage->cluster);
    cluster_start(stage->cluster, SHARDS, true, timeout_ms);
    snprintf(stage->options, sizeof stage->options, "%s", options);
}

void slots_end(struct stage *stage)
{
    cluster_end(stage->cluster);
    free(stage->cluster);
    stage->cluster = NULL;
}

struct side *slots_side(struct stage *stage)
{
    return cluster_side(stage->cluster, groups[0]);
}

static int some_slot(struct stage *stage)
{
    return cluster_slot(stage->cluster, groups[dice_below(&stage->dice, 2)]);
}

/* ---- moves ------------------------------------------------------------------------------- */

/* A master of another share than the slot has now. */
static int another_master(struct stage *stage, int slot)
{
    int now = cluster_master(stage->cluster, slot), other;

    do
        other = cluster_master(stage->cluster, CLUSTER_SLOTS / SHARDS * (int)dice_below(&stage->dice, SHARDS) + 1);
    while (other == now);
    return other;
}

static struct move begin_move(struct stage *stage, int slot)
{
    struct move move;

    cluster_move_begin(stage->cluster, slot, another_master(stage, slot), &move);
    return move;
}

static void end_move(struct stage *stage, const struct move *move, unsigned pause_ms)
{
    while (cluster_move_step(move))
        stage_rest(stage, pause_ms);
    cluster_move_finish(move);
    stage->moves++;
}

void slots_move(struct stage *stage)
{
    struct move move = begin_move(stage, some_slot(stage));

    end_move(stage, &move, dice_below(&stage->dice, 20));
}

void slots_move_there_and_back(struct stage *stage)
{
    struct move there = begin_move(stage, some_slot(stage)), back;

    end_move(stage, &there, 2);
    cluster_move_begin(stage->cluster, there.slot, there.from, &back);
    end_move(stage, &back, 2);
}

void slots_move_both(struct stage *stage)
{
    struct move first = begin_move(stage, cluster_slot(stage->cluster, groups[0]));
    struct move second = begin_move(stage, cluster_slot(stage->cluster, groups[1]));

    while (cluster_move_step(&first) | cluster_move_step(&second))
        stage_rest(stage, 5);
    cluster_move_finish(&second);
    stage_rest(stage, 20);
    end_move(stage, &first, 0);
    stage->moves++;
}

void slots_move_slowly(struct stage *stage)
{
    struct move move = begin_move(stage, some_slot(stage));

    stage_rest(stage, LEASE);
    cluster_move_step(&move);
    stage_rest(stage, LEASE);
    end_move(stage, &move, 2);
}

void slots_begin_and_give_up(struct stage *stage)
{
    struct move move = begin_move(stage, some_slot(stage));

    stage_rest(stage, LEASE / 2);
    cluster_move_abort(&move);
}

void slots_lose_keys(struct stage *stage)
{
    struct move move = begin_move(stage, some_slot(stage));

    for (int i = 0; i < 10; i++)
        cluster_move_step(&move);
    cluster_move_lose(&move);
    stage->moves++;
}

/* The key is then on both nodes, or only on the old one. */
void slots_move_through_stop(struct stage *stage)
{
    struct move move = begin_move(stage, some_slot(stage));

    cluster_stop(stage->cluster, move.to);
    cluster_move_try(&move, 50);
    cluster_cont(stage->cluster, move.to);
    end_move(stage, &move, 2);
}

/* ---- failovers --------------------------------------------------------------------------- */

static void await_failover(struct stage *stage, int slot, int before)
{
    cluster_await_failover(stage->cluster, slot, before);
    stage->promotions++;
}

void slots_kill_master(struct stage *stage)
{
    int slot = some_slot(stage), master = cluster_master(stage->cluster, slot);

    cluster_kill(stage->cluster, master);
    await_failover(stage, slot, master);
}

void slots_stop_master(struct stage *stage)
{
    int slot = some_slot(stage), master = cluster_master(stage->cluster, slot);

    cluster_stop(stage->cluster, master);
    await_failover(stage, slot, master);
    stage_rest(stage, 2 * LEASE);
}

static void fail_over(struct stage *stage, int slot)
{
    cluster_fail_over(stage->cluster, slot);
    stage->promotions++;
}

void slots_fail_over(struct stage *stage)
{
    fail_over(stage, some_slot(stage));
}

void slots_fail_over_twice(struct stage *stage)
{
    int slot = some_slot(stage);

    fail_over(stage, slot);
    stage_rest(stage, LEASE);
    fail_over(stage, slot);
}

/* A replica that is stopped cannot reconnect. */
void slots_part(struct stage *stage)
{
    int slot = some_slot(stage), replica = cluster_replica(stage->cluster, slot);

    stage->parted_slot = slot;
    cluster_stop(stage->cluster, replica);
    cluster_part(stage->cluster, slot);
    stage->parted_replica = replica;
}

void slots_force_over(struct stage *stage)
{
    int slot = stage->parted_slot;

    cluster_stop(stage->cluster, cluster_master(stage->cluster, slot));
    cluster_cont(stage->cluster, stage->parted_replica);
    cluster_force_over(stage->cluster, slot);
    stage->promotions++;
}

void slots_heal(struct stage *stage)
{
    cluster_heal(stage->cluster);
}

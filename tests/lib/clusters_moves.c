/* SPDX-License-Identifier: BSD-2-Clause */
/* Moves a slot from node to node, as redis-cli does. */
#include <stdio.h>
#include <string.h>

#include "testlib.h"

static struct side *side_of(const struct cluster *cluster, int node)
{
    return cluster->nodes[node]->side;
}

#define MIGRATE_MS 5000

void cluster_move_begin(struct cluster *cluster, int slot, int to, struct move *ret_move)
{
    int from = cluster_master(cluster, slot);

    assert_int_not_equal(from, to);
    *ret_move = (struct move){ cluster, slot, from, to };
    side_text(side_of(cluster, to), "CLUSTER SETSLOT %d IMPORTING %s", slot, cluster->ids[from]);
    side_text(side_of(cluster, from), "CLUSTER SETSLOT %d MIGRATING %s", slot, cluster->ids[to]);
}

/* A key of the slot on the node, or "". */
static const char *key_in(const struct move *move, int node)
{
    static char key[1024];
    const char *text = side_text(side_of(move->cluster, node), "CLUSTER GETKEYSINSLOT %d 1", move->slot);

    snprintf(key, sizeof key, "%s", text ? text : "");
    return key;
}

/* A key that has expired in the meantime need not be moved.  `option`: REPLACE, or "". */
static bool move_key(const struct move *move, const char *key, int from, int to, int timeout_ms, const char *option)
{
    int port = move->cluster->nodes[to]->port;
    char command[64];

    snprintf(command, sizeof command, "MIGRATE 127.0.0.1 %d %%s 0 %d %s", port, timeout_ms, option);
    return side_try(side_of(move->cluster, from), command, key);
}

/* A key that got stuck may be on both nodes: the node that serves the slot has the newer one. */
void cluster_move_key(const struct move *move, const char *key)
{
    if (!move_key(move, key, move->from, move->to, MIGRATE_MS, "REPLACE"))
        fail_msg("%s: %s", key, side_error(side_of(move->cluster, move->from)));
}

bool cluster_move_step(const struct move *move)
{
    const char *key = key_in(move, move->from);

    if (*key)
        cluster_move_key(move, key);
    return *key;
}

bool cluster_move_try(const struct move *move, int timeout_ms)
{
    const char *key = key_in(move, move->from);

    return *key && move_key(move, key, move->from, move->to, timeout_ms, "REPLACE");
}

/*
 * The new master comes first: a slot that no node serves would be lost.  It must know the epoch of the last change:
 * with an older one it would lose the slot to a message that the first node has sent before.
 */
void cluster_move_finish(const struct move *move)
{
    const struct cluster *cluster = move->cluster;

    cluster_await_epoch(cluster);
    side_text(side_of(cluster, move->to), "CLUSTER SETSLOT %d NODE %s", move->slot, cluster->ids[move->to]);
    side_text(side_of(cluster, move->from), "CLUSTER SETSLOT %d NODE %s", move->slot, cluster->ids[move->to]);
    wait_until(cluster_master(cluster, move->slot) == move->to);
}

/* On the importing node, which accepts commands on the slot's keys after ASKING until it forgets the move. */
static void delete_key(const struct move *move, const char *key)
{
    struct side *side = side_of(move->cluster, move->to);

    side_text(side, "ASKING");
    side_int(side, "DEL %s", key);
}

/*
 * Takes one key back.  If it is on both nodes, the one here is deleted.  Any other refusal comes from a busy Cluster,
 * and passes.
 */
static bool is_all_back(const struct move *move)
{
    const char *key = key_in(move, move->to);

    if (*key && !move_key(move, key, move->to, move->from, MIGRATE_MS, "") &&
        strstr(side_error(side_of(move->cluster, move->to)), "BUSYKEY"))
        delete_key(move, key);
    return !*key;
}

void cluster_move_abort(const struct move *move)
{
    struct side *from = side_of(move->cluster, move->from), *to = side_of(move->cluster, move->to);

    side_text(from, "CLUSTER SETSLOT %d STABLE", move->slot);
    wait_until(is_all_back(move));
    side_text(to, "CLUSTER SETSLOT %d STABLE", move->slot);
}

void cluster_move_lose(const struct move *move)
{
    const char *key;

    while (*(key = key_in(move, move->to)))
        delete_key(move, key);
    cluster_move_abort(move);
}

void cluster_move(struct cluster *cluster, int slot, int to)
{
    struct move move;

    cluster_move_begin(cluster, slot, to, &move);
    while (cluster_move_step(&move))
        continue;
    cluster_move_finish(&move);
}

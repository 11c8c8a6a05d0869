/* SPDX-License-Identifier: BSD-2-Clause */
/* The shards of a Cluster: a replica for each master, and failovers. */
#include <string.h>

#include "cluster_parts.h"
#include "world.h"

/* How late the data of a master reach its replica. */
#define LAG_NS (150 * MS)
#define LAG_MOST_NS (600 * MS)

/* The other masters have elected the new one, and hear soon that it has taken the slots. */
#define VOTERS_HEAR_MS 20

/* The replaced master, once it runs, hears of that as soon. */
#define REPLACED_HEARS_MS 20

/* A node that is replaced and elected again sooner is left out (doc/design/cluster.md, "Assumptions"). */
#define APART_NS (1500 * MS)

static uint32_t masters[CLUSTER_SHARDS];
static int64_t switched_ns[CLUSTER_SHARDS], lost_ns[CLUSTER_SERVERS], grace_ns;

static uint32_t shard_of(uint32_t node)
{
    return node % CLUSTER_SHARDS;
}

static uint32_t other_of(uint32_t node)
{
    return (node + CLUSTER_SHARDS) % CLUSTER_SERVERS;
}

uint32_t cluster_master(uint32_t shard)
{
    return masters[shard % CLUSTER_SHARDS];
}

int64_t cluster_switched_ns(uint32_t shard)
{
    return switched_ns[shard % CLUSTER_SHARDS];
}

void cluster_note_loss(uint32_t node)
{
    lost_ns[node] = world_now();
}

bool cluster_gives_grace(uint32_t node)
{
    return lost_ns[node] && world_now() < lost_ns[node] + grace_ns;
}

static bool is_master(uint32_t node)
{
    return masters[shard_of(node)] == node;
}

bool cluster_can_work(uint32_t node)
{
    return !servers[node].is_down && servers[node].stalled_until_ns <= world_now();
}

static void replicate(void *object, uint64_t number)
{
    uint32_t node = (uint32_t)number;

    server_choose(node);
    if (!is_master(node))
        server_catch_up(masters[shard_of(node)]);
    world_at(world_now() + chance_delay(CHANCE_NETWORK, LAG_NS, LAG_MOST_NS), replicate, object, number);
}

/* ---- failovers --------------------------------------------------------------------------- */

/* A node hears that another one has taken the slots of its former master, which may be the node itself. */
static void take_slots(uint32_t node, uint32_t next)
{
    for (unsigned slot = 0; slot < DM_SLOTS; slot++) {
        if (cluster_owner(node, slot) == other_of(next))
            cluster_take_view(node, slot, next);
    }
}

static void hear(void *object, uint64_t next)
{
    take_slots((uint32_t)(uintptr_t)object, (uint32_t)next);
}

static void tell_others(uint32_t next)
{
    for (uint32_t node = 0; node < CLUSTER_SERVERS; node++) {
        uint32_t within_ms = is_master(node) ? VOTERS_HEAR_MS : CLUSTER_HEARS_MS;

        if (shard_of(node) != shard_of(next))
            world_at(world_now() + chance_below(CHANCE_FAULTS, within_ms) * MS, hear, (void *)(uintptr_t)node, next);
    }
}

/* The replaced master becomes a replica. */
static void step_down(uint32_t node)
{
    server_choose(node);
    server_become_replica(other_of(node));
    take_slots(node, other_of(node));
}

static void step_down_soon(uint32_t node);

/* A node that was stopped runs what lies in its sockets before. */
static void hear_of_end(void *object, uint64_t node)
{
    (void)object;
    if (cluster_can_work((uint32_t)node))
        step_down((uint32_t)node);
    else
        step_down_soon((uint32_t)node);
}

static void step_down_soon(uint32_t node)
{
    world_at(world_now() + (1 + chance_below(CHANCE_FAULTS, REPLACED_HEARS_MS)) * MS, hear_of_end, NULL, node);
}

/* All masters but the replaced one elect. */
static bool can_elect(uint32_t before)
{
    for (uint32_t shard = 0; shard < CLUSTER_SHARDS; shard++) {
        if (masters[shard] != before && !cluster_can_work(masters[shard]))
            return false;
    }
    return true;
}

static bool may_fail_over(uint32_t before, enum shard_failover how)
{
    uint32_t next = other_of(before);

    return cluster_has_settled() && world_now() - switched_ns[shard_of(before)] > APART_NS && can_elect(before) &&
           servers[next].is_replica && cluster_can_work(next) && (how != SHARD_PLANNED || cluster_can_work(before));
}

static void hurt(uint32_t before, enum shard_failover how, int64_t for_ns)
{
    server_choose(before);
    if (how == SHARD_MASTER_STALLS)
        server_stall(for_ns);
    if (how == SHARD_MASTER_RESTARTS)
        server_restart(KEEPS_NOTHING, for_ns);
}

bool cluster_fail_over(uint32_t shard, enum shard_failover how, int64_t for_ns)
{
    uint32_t before = cluster_master(shard), next = other_of(before);

    if (!may_fail_over(before, how))
        return false;
    hurt(before, how, for_ns);
    server_choose(next);
    if (how == SHARD_PLANNED)
        server_catch_up(before);
    server_become_master();
    masters[shard_of(next)] = next;
    switched_ns[shard_of(next)] = world_now();
    cluster_note_loss(next);
    counters.switches++;
    world_note("server %u is the master instead of %u", next, before);
    take_slots(next, next);
    tell_others(next);
    if (how == SHARD_PLANNED)
        step_down(before);
    else
        step_down_soon(before);
    return true;
}

/* ---- beginning --------------------------------------------------------------------------- */

void cluster_begin_shards(int64_t lease_ms)
{
    grace_ns = (2 * lease_ms + CLUSTER_SWITCH_MS) * MS;
    memset(lost_ns, 0, sizeof lost_ns);
    for (uint32_t shard = 0; shard < CLUSTER_SHARDS; shard++) {
        masters[shard] = shard;
        switched_ns[shard] = -APART_NS;
        server_choose(other_of(shard));
        server_become_replica(shard);
    }
    for (uint32_t node = 0; node < CLUSTER_SERVERS; node++)
        replicate(NULL, node);
    server_choose(0);
}

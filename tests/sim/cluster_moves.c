/* SPDX-License-Identifier: BSD-2-Clause */
/* A slot moves from one master of a Cluster to another. */
#include <string.h>

#include "cluster_parts.h"
#include "world.h"

#define KEYS_MOST 64

static bool has_moves; /* in this run */
static uint32_t name_count;
static int64_t ended_ns;

/* A slot on its way; there is one at most. */
static struct cluster_move move;

const struct cluster_move *cluster_move_of(unsigned slot)
{
    return move.is_on && move.slot == slot ? &move : NULL;
}

bool cluster_has_settled(void)
{
    return !move.is_on && world_now() - ended_ns > CLUSTER_HEARS_MS * MS;
}

/* Another node hears of the newest move of the slot. */
static void hear_of_move(void *object, uint64_t number)
{
    uint32_t node = (uint32_t)(uintptr_t)object;
    unsigned slot = (unsigned)number;

    if (cluster_owner(node, slot) != node)
        cluster_take_view(node, slot, cluster_owner(cluster_owner(node, slot), slot));
}

static void tell_others(void)
{
    for (uint32_t node = 0; node < CLUSTER_SERVERS; node++)
        world_at(world_now() + chance_below(CHANCE_FAULTS, CLUSTER_HEARS_MS) * MS, hear_of_move,
                 (void *)(uintptr_t)node, move.slot);
}

static void end(void)
{
    move.is_on = false;
    ended_ns = world_now();
}

static void finish(void *object, uint64_t number)
{
    (void)object;
    (void)number;
    cluster_take_view(move.from, move.slot, move.to);
    tell_others();
    end();
    counters.slot_moves++;
    world_note("slot %u is at server %u", move.slot, move.to);
}

/* The earlier master keeps redirecting with ASK for a while: by then all its keys are gone. */
static void take_slot(void)
{
    cluster_take_view(move.to, move.slot, move.to);
    world_at(world_now() + chance_delay(CHANCE_FAULTS, 2 * MS, 200 * MS), finish, NULL, 0);
}

/* The next key of the slot at a node; NULL: none. */
static struct key *some_key(uint32_t node)
{
    static struct key *keys[KEYS_MOST];
    int count;

    server_choose(node);
    count = store_list(server_store(), keys, KEYS_MOST);
    for (int i = 0; i < count; i++) {
        if (dm_slot_of(keys[i]->name, keys[i]->length) == move.slot)
            return keys[i];
    }
    return NULL;
}

/* MIGRATE without REPLACE overwrites no key: a copy whose answer was late is older than the key, and goes. */
static void move_key_back(const struct key *key)
{
    struct store *from = &servers[move.from].store, *to = &servers[move.to].store;
    struct text name = { key->name, key->length };

    if (store_find(from, name))
        store_delete(to, name);
    else
        store_move_key(from, to, key);
}

static void give_up(void)
{
    const struct key *key;

    while ((key = some_key(move.to)) != NULL)
        move_key_back(key);
    end();
    world_note("slot %u stays at server %u", move.slot, move.from);
}

/* MIGRATE: a copy, then a deletion; of a key in eight the answer is late, and the key is at both nodes for a while. */
static void move_key(const struct key *key)
{
    struct store *from = &servers[move.from].store, *to = &servers[move.to].store;

    if (chance_one_in(CHANCE_FAULTS, 8))
        store_copy_key(to, key);
    else
        store_move_key(to, from, key);
}

static void step(void *object, uint64_t number)
{
    const struct key *key;

    (void)object;
    if (!cluster_can_work(move.from) || !cluster_can_work(move.to)) {
        world_at(world_now() + 10 * MS, step, NULL, number);
        return;
    }
    key = some_key(move.from);
    if (move.is_given_up && (number == 0 || !key)) {
        give_up();
    } else if (key) {
        move_key(key);
        world_at(world_now() + chance_delay(CHANCE_FAULTS, move.pace_ns, 8 * move.pace_ns), step, NULL, number - 1);
    } else {
        take_slot();
    }
}

static unsigned lowest_slot(uint32_t node)
{
    unsigned slot = 0;

    while (slot < DM_SLOTS - 1 && cluster_owner(node, slot) != node)
        slot++;
    return slot;
}

/* Of five moves one is of a node's lowest slot, which has the node's mark. */
static unsigned some_slot(uint32_t number)
{
    char group = (char)('a' + number / 5 % name_count);

    return number % 5 == 0 ? lowest_slot(cluster_master(number / 5)) : dm_slot_of(&group, 1);
}

/* An operator who is interrupted leaves a slot for long as if it were on its way. */
static int64_t some_beginning_ns(void)
{
    return (int64_t)(1 + chance_below(CHANCE_FAULTS, 400)) * MS;
}

void cluster_move(uint32_t number, int64_t pace_ns, bool is_given_up)
{
    unsigned slot = some_slot(number);
    uint32_t shard = 0, from;

    while (shard < CLUSTER_SHARDS && cluster_owner(cluster_master(shard), slot) != cluster_master(shard))
        shard++;
    from = cluster_master(shard);
    if (move.is_on || shard == CLUSTER_SHARDS || cluster_gives_grace(from))
        return;
    move.is_on = true;
    move.is_given_up = is_given_up;
    move.slot = slot;
    move.from = from;
    move.to = cluster_master(shard + 1 + number / 97 % (CLUSTER_SHARDS - 1));
    move.pace_ns = pace_ns;
    world_note("slot %u leaves server %u for %u", slot, from, move.to);
    world_at(world_now() + some_beginning_ns(), step, NULL, 1 + number / 193 % 6);
}

bool cluster_may_lose(void)
{
    if (move.is_on)
        return false;
    cluster_note_loss(server_number());
    return true;
}

bool cluster_has_moves(void)
{
    return has_moves;
}

void cluster_begin_moves(int names, bool are_moves)
{
    has_moves = are_moves;
    memset(&move, 0, sizeof move);
    name_count = (uint32_t)names;
    ended_ns = 0;
}

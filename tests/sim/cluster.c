/* SPDX-License-Identifier: BSD-2-Clause */
#include "cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/slots.h"
#include "server_parts.h"
#include "words.h"
#include "world.h"

#define KEYS_MOST 64
#define RANGES_MOST 64

static bool is_there;
static uint32_t name_count;
static int64_t grace_ns;
static unsigned char views[CLUSTER_MASTERS][DM_SLOTS]; /* of each node: the number of each slot's master */
static int64_t lost_ns[CLUSTER_MASTERS];               /* when the node lost its data */

/* A slot on its way; there is one at most. */
static struct {
    bool is_on, is_given_up;
    unsigned slot;
    uint32_t from, to;
    int64_t pace_ns;
} move;

bool cluster_is_there(void)
{
    return is_there;
}

static unsigned slot_of(struct text key)
{
    return dm_slot_of(key.bytes, key.length);
}

/* ---- commands ---------------------------------------------------------------------------- */

static int count_missing(const struct text *keys, int count)
{
    int missing = 0;

    for (int i = 0; i < count; i++)
        missing += store_find(server_store(), keys[i]) == NULL;
    return missing;
}

static bool refuse(struct bytes *reply, const char *error, unsigned slot, uint32_t node)
{
    if (reply && node < CLUSTER_MASTERS)
        bytes_print(reply, "-%s %u server:%u\r\n", error, slot, node + 1);
    else if (reply)
        bytes_print(reply, "-%s\r\n", error);
    return false;
}

static bool refuse_for_now(struct bytes *reply)
{
    return refuse(reply, "TRYAGAIN Multiple keys request during rehashing of slot", 0, CLUSTER_MASTERS);
}

/* As Redis 7.0 does: a slot that leaves, a slot that comes, a slot of others.  Commands of a script are asked, too. */
bool cluster_serves(const struct text *keys, int count, bool is_asking, struct bytes *reply)
{
    unsigned slot = slot_of(keys[0]);
    uint32_t node = server_number(), owner = views[node][slot];
    bool is_moving = move.is_on && move.slot == slot;
    int missing;

    if (is_moving && owner == node && move.from == node) {
        missing = count_missing(keys, count);
        if (missing > 0 && missing < count)
            return refuse_for_now(reply);
        return missing == 0 || refuse(reply, "ASK", slot, move.to);
    }
    if (is_moving && owner != node && move.to == node && is_asking)
        return count == 1 || count_missing(keys, count) == 0 || refuse_for_now(reply);
    return owner == node || refuse(reply, "MOVED", slot, owner);
}

/* The data before a script whose slot is on its way. */
static struct {
    bool is_on;
    struct store store;
    uint64_t messages;
} before;

void cluster_before_script(struct text key)
{
    before.is_on = move.is_on && move.slot == slot_of(key);
    if (!before.is_on)
        return;
    store_copy(&before.store, server_store());
    before.store.now_ms = server_store()->now_ms;
    before.messages = counters.messages;
}

void cluster_after_script(int script, const struct bytes *reply)
{
    if (!before.is_on || reply->data[0] != '-')
        return;
    if (!store_is_same(server_store(), &before.store) || counters.messages != before.messages)
        world_break("C4: %s fails in its middle: %s", scripting_name(script), reply->data);
}

/* Neighbours with one master.  Returns their number. */
static int list_ranges(const unsigned char *view, unsigned firsts[RANGES_MOST + 1])
{
    int count = 0;

    for (unsigned slot = 0; slot < DM_SLOTS; slot++) {
        if (slot > 0 && view[slot] == view[slot - 1])
            continue;
        if (count == RANGES_MOST)
            abort();
        firsts[count++] = slot;
    }
    firsts[count] = DM_SLOTS;
    return count;
}

void cluster_say_slots(struct bytes *reply)
{
    const unsigned char *view = views[server_number()];
    unsigned firsts[RANGES_MOST + 1];
    int count = list_ranges(view, firsts);

    bytes_print(reply, "*%d\r\n", count);
    for (int i = 0; i < count; i++)
        bytes_print(reply, "*3\r\n:%u\r\n:%u\r\n*2\r\n$6\r\nserver\r\n:%u\r\n", firsts[i], firsts[i + 1] - 1,
                    view[firsts[i]] + 1u);
}

/* ---- inboxes ----------------------------------------------------------------------------- */

static void say(struct bytes *bytes, const char *what, const char *channel)
{
    bytes_print(bytes, "*3\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n:1\r\n", strlen(what), what, strlen(channel), channel);
}

/* The place of a channel, or a free place. */
static char *find_shard(struct link *link, struct text channel)
{
    char *free_place = NULL;

    for (int i = 0; i < SHARDS_MAX; i++) {
        if (word_is(channel, link->shards[i]))
            return link->shards[i];
        if (!link->shards[i][0])
            free_place = link->shards[i];
    }
    return free_place;
}

void cluster_subscribe(struct link *link, struct text channel, struct bytes *reply)
{
    unsigned slot = slot_of(channel);
    uint32_t node = server_number(), owner = views[node][slot];

    if (owner != node) {
        refuse(reply, "MOVED", slot, owner);
        return;
    }
    snprintf(find_shard(link, channel), sizeof link->shards[0], "%s", channel.bytes);
    say(reply, "ssubscribe", channel.bytes);
}

void cluster_unsubscribe(struct link *link, struct text channel, struct bytes *reply)
{
    find_shard(link, channel)[0] = '\0';
    say(reply, "sunsubscribe", channel.bytes);
}

/* A node ends the subscriptions of a slot that it does not serve any more. */
static void end_subscriptions(struct link *link, unsigned slot)
{
    struct bytes bytes = { 0 };

    for (int i = 0; i < SHARDS_MAX; i++) {
        if (!link->shards[i][0] || dm_slot_of(link->shards[i], strlen(link->shards[i])) != slot)
            continue;
        say(&bytes, "sunsubscribe", link->shards[i]);
        link->shards[i][0] = '\0';
    }
    if (bytes.length)
        net_send(link, TO_CLIENT, bytes.data, bytes.length);
    free(bytes.data);
}

/* ---- a slot moves ------------------------------------------------------------------------ */

static void take_view(uint32_t node, unsigned slot, uint32_t owner)
{
    bool was_own = views[node][slot] == node;

    views[node][slot] = (unsigned char)owner;
    for (struct link *link = servers[node].links; was_own && owner != node && link; link = link->next)
        end_subscriptions(link, slot);
}

/* The third node hears of the newest move of the slot. */
static void hear_of_move(void *object, uint64_t slot)
{
    uint32_t node = (uint32_t)(uintptr_t)object;

    if (views[node][slot] != node)
        take_view(node, (unsigned)slot, views[views[node][slot]][slot]);
}

static void tell_others(void)
{
    for (uint32_t node = 0; node < CLUSTER_MASTERS; node++)
        world_at(world_now() + (1 + chance_below(CHANCE_FAULTS, 1000)) * MS, hear_of_move, (void *)(uintptr_t)node,
                 move.slot);
}

static void finish(void *object, uint64_t number)
{
    (void)object;
    (void)number;
    take_view(move.from, move.slot, move.to);
    tell_others();
    move.is_on = false;
    counters.slot_moves++;
    world_note("slot %u is at server %u", move.slot, move.to);
}

/* The earlier master goes on asking for a while: by then all its keys are gone. */
static void take_slot(void)
{
    take_view(move.to, move.slot, move.to);
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

static void give_up(void)
{
    struct key *key;

    while ((key = some_key(move.to)) != NULL)
        store_move_key(&servers[move.from].store, &servers[move.to].store, key);
    move.is_on = false;
    world_note("slot %u stays at server %u", move.slot, move.from);
}

static bool can_work(uint32_t node)
{
    return !servers[node].is_down && servers[node].stalled_until_ns <= world_now();
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
    if (!can_work(move.from) || !can_work(move.to)) {
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

    while (slot < DM_SLOTS - 1 && views[node][slot] != node)
        slot++;
    return slot;
}

/* Of five moves one is of a node's lowest slot, which has the node's mark. */
static unsigned some_slot(uint32_t number)
{
    char group = (char)('a' + number / 5 % name_count);

    return number % 5 == 0 ? lowest_slot(number / 5 % CLUSTER_MASTERS) : dm_slot_of(&group, 1);
}

static bool gives_grace(uint32_t node)
{
    return lost_ns[node] && world_now() < lost_ns[node] + grace_ns;
}

/* An operator who is interrupted leaves a slot for long as if it were on its way. */
static int64_t some_beginning_ns(void)
{
    return (int64_t)(1 + chance_below(CHANCE_FAULTS, 400)) * MS;
}

void cluster_move(uint32_t number, int64_t pace_ns, bool is_given_up)
{
    unsigned slot = some_slot(number);
    uint32_t from = 0;

    while (from < CLUSTER_MASTERS && views[from][slot] != from)
        from++;
    if (move.is_on || from == CLUSTER_MASTERS || gives_grace(from))
        return;
    move.is_on = true;
    move.is_given_up = is_given_up;
    move.slot = slot;
    move.from = from;
    move.to = (from + 1 + number / 97 % (CLUSTER_MASTERS - 1)) % CLUSTER_MASTERS;
    move.pace_ns = pace_ns;
    world_note("slot %u leaves server %u for %u", slot, from, move.to);
    world_at(world_now() + some_beginning_ns(), step, NULL, 1 + number / 193 % 6);
}

bool cluster_may_lose(void)
{
    uint32_t node = server_number();

    if (move.is_on)
        return false;
    lost_ns[node] = world_now();
    return true;
}

/* ---- beginning --------------------------------------------------------------------------- */

void cluster_none(void)
{
    is_there = false;
}

void cluster_begin(int names, int64_t lease_ms)
{
    is_there = true;
    name_count = (uint32_t)names;
    grace_ns = (2 * lease_ms + CLUSTER_SWITCH_MS) * MS;
    move.is_on = false;
    before.is_on = false;
    memset(lost_ns, 0, sizeof lost_ns);
    for (int node = 0; node < CLUSTER_MASTERS; node++) {
        for (unsigned slot = 0; slot < DM_SLOTS; slot++)
            views[node][slot] = (unsigned char)(slot * CLUSTER_MASTERS / DM_SLOTS);
    }
}

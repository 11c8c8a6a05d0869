/* SPDX-License-Identifier: BSD-2-Clause */
#include "cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster_parts.h"
#include "words.h"
#include "world.h"

#define RANGES_MOST 64

static bool is_there;
static unsigned char views[CLUSTER_SERVERS][DM_SLOTS]; /* of each node: the number of each slot's master */

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
    if (reply && node < CLUSTER_SERVERS)
        bytes_print(reply, "-%s %u 10.0.0.1:%u\r\n", error, slot, node + 1);
    else if (reply)
        bytes_print(reply, "-%s\r\n", error);
    return false;
}

static bool refuse_for_now(struct bytes *reply)
{
    return refuse(reply, "TRYAGAIN Multiple keys request during rehashing of slot", 0, CLUSTER_SERVERS);
}

/* As Redis 7.0 does: a slot that leaves, a slot that comes, a slot of others.  Commands of a script are asked, too. */
bool cluster_serves(const struct text *keys, int count, bool is_asking, struct bytes *reply)
{
    unsigned slot = slot_of(keys[0]);
    uint32_t node = server_number(), owner = views[node][slot];
    const struct cluster_move *move = cluster_move_of(slot);
    int missing;

    if (move && owner == node && move->from == node) {
        missing = count_missing(keys, count);
        if (missing > 0 && missing < count)
            return refuse_for_now(reply);
        return missing == 0 || refuse(reply, "ASK", slot, move->to);
    }
    if (move && owner != node && move->to == node && is_asking)
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
    before.is_on = cluster_move_of(slot_of(key)) != NULL;
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
        bytes_print(reply, "*3\r\n:%u\r\n:%u\r\n*2\r\n$8\r\n10.0.0.1\r\n:%u\r\n", firsts[i], firsts[i + 1] - 1,
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
        if (text_is(channel, link->shards[i]))
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

/* A node ends the subscriptions to a slot that it no longer serves. */
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

/* ---- views ------------------------------------------------------------------------------- */

uint32_t cluster_owner(uint32_t node, unsigned slot)
{
    return views[node][slot];
}

void cluster_take_view(uint32_t node, unsigned slot, uint32_t owner)
{
    bool was_own = views[node][slot] == node;

    views[node][slot] = (unsigned char)owner;
    for (struct link *link = servers[node].links; was_own && owner != node && link; link = link->next)
        end_subscriptions(link, slot);
}

/* ---- beginning --------------------------------------------------------------------------- */

void cluster_none(void)
{
    is_there = false;
}

void cluster_begin(int names, int64_t lease_ms, bool are_moves)
{
    is_there = true;
    before.is_on = false;
    for (int node = 0; node < CLUSTER_SERVERS; node++) {
        for (unsigned slot = 0; slot < DM_SLOTS; slot++)
            views[node][slot] = (unsigned char)(slot * CLUSTER_SHARDS / DM_SLOTS);
    }
    cluster_begin_moves(names, are_moves);
    cluster_begin_shards(lease_ms);
}

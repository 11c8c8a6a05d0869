/* SPDX-License-Identifier: BSD-2-Clause */
#include "shards.h"

#include <stdio.h>
#include <string.h>

struct actor *holder, *waiter;

struct actor *shards_start(void)
{
    return actor_start_at(cluster_url(the_cluster, "?grace=off&" TIMES));
}

int shards_begin(void **state)
{
    (void)state;
    holder = shards_start();
    waiter = shards_start();
    return 0;
}

int shards_begin_patient(void **state)
{
    (void)state;
    holder = actor_start_at(cluster_url(the_cluster, "?grace=off&" LONG_TIMES));
    waiter = actor_start_at(cluster_url(the_cluster, "?grace=off&" LONG_TIMES));
    return 0;
}

int shards_end(void **state)
{
    (void)state;
    actor_end(holder);
    actor_end(waiter);
    return 0;
}

int shards_node(int share)
{
    return cluster_master(the_cluster, CLUSTER_SLOTS * share / SHARES);
}

const char *shards_name(int share, const char *word)
{
    static char names[4][40];
    static unsigned last;
    char *name = names[last++ % 4];

    snprintf(name, sizeof names[0], "%s/x", cluster_group_on(the_cluster, shards_node(share), word));
    return name;
}

static const char *group_of(const char *name)
{
    static char group[64];

    snprintf(group, sizeof group, "%.*s", (int)strcspn(name, "/"), name);
    return group;
}

int shards_slot(const char *name)
{
    return cluster_slot(the_cluster, group_of(name));
}

int shards_master(const char *name)
{
    return cluster_master(the_cluster, shards_slot(name));
}

struct side *shards_side(const char *name)
{
    return cluster_side(the_cluster, group_of(name));
}

bool shards_has(const char *kind, const char *name)
{
    return side_says(shards_side(name), "1", "EXISTS %s", key_of(kind, name));
}

int shards_waiters(const char *name)
{
    return waiters_at(shards_side(name), name);
}

int shards_sleepers(const char *cond)
{
    return (int)side_int(shards_side(cond), "ZCARD %s", key_of("cond", cond));
}

int shards_inboxes(const char *name)
{
    const char *channels = side_text(shards_side(name), "PUBSUB SHARDCHANNELS dmutex:{%s}:*", group_of(name));
    int count = *channels != '\0';

    while ((channels = strchr(channels, '\n'))) {
        count++;
        channels++;
    }
    return count;
}

/* Tests without grace: a replica that lacks the hold would grant the lock once more, if it is promoted. */
static void await_replica(const char *name)
{
    wait_until(side_has_replicas(shards_side(name), key_of("written", name), 1));
}

void shards_begin_queue(const char *name, int lease_ms)
{
    actor_do(holder, "0", "init %s lease=%d", name, lease_ms);
    actor_do(waiter, "0", "init %s lease=%d", name, lease_ms);
    actor_do(holder, "0", "lock %s", name);
    actor_send(waiter, "lock %s", name);
    wait_until(shards_waiters(name) == 1);
    await_replica(name);
}

void shards_end_queue(const char *name, long long token)
{
    wait_until(shards_has("lock", name));
    assert_true(actor_value(holder, "token %s", name) == token);
    assert_int_equal(actor_losses(holder), 0);
    if (!actor_is_silent(waiter))
        fail_msg("the waiter says %s", actor_answer(waiter));
    actor_do(holder, "0", "unlock %s", name);
    actor_expect(waiter, "0");
    assert_true(actor_value(waiter, "token %s", name) > token);
    actor_do(waiter, "0", "unlock %s", name);
}

void shards_begin_wait(struct actor *actor, const char *name, int place)
{
    char cond[64];

    snprintf(cond, sizeof cond, "%s-c", name);
    actor_do(actor, "0", "init %s lease=%d", name, LONG_LEASE);
    actor_do(actor, "0", "lock %s", name);
    actor_send(actor, "wait %s %s", cond, name);
    wait_until(shards_sleepers(cond) == place);
}

void shards_use(struct actor *actor, const char *name)
{
    actor_do(actor, "0", "lock %s", name);
    actor_do(actor, "0", "unlock %s", name);
}

void shards_let_pass(int ms)
{
    side_set_control(cluster_side(the_cluster, "time"), "{time}", ms);
    side_await_control(cluster_side(the_cluster, "time"), "{time}");
}

void test_nothing_is_left_on_the_nodes(void **state)
{
    (void)state;
    for (int i = 0; i < SHARES; i++) {
        struct side *side = the_cluster->nodes[shards_node(i)]->side;

        check_keys(side);
        wait_until(*side_text(side, "PUBSUB SHARDCHANNELS") == '\0');
    }
}

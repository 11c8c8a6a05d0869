/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A Cluster, while all nodes are well: each name is locked on the node of its group, and all calls give the results
 * that a single server gives.
 */
#include <string.h>

#include "shards.h"

#define SHORT_LEASE 1000
#define GROUPS 1000
#define WAITERS 5

static bool is_there(const char *group, const char *key)
{
    return side_says(cluster_side(the_cluster, group), "1", "EXISTS {%s}%s", group, key);
}

/* tests/lib/clusters.h: keys go with their slot, and come back from a move that is given up; replicas have all. */
static void test_keys_stay_when_a_slot_moves_and_a_shard_fails_over(void **state)
{
    int slot = cluster_slot(the_cluster, "keys"), first = cluster_master(the_cluster, slot);
    struct move move;

    (void)state;
    side_text(cluster_side(the_cluster, "keys"), "SET {keys}a 1 PX 60000");
    side_text(cluster_side(the_cluster, "keys"), "SET {keys}b 1 PX 60000");
    cluster_move(the_cluster, slot, (first + 1) % 3);
    assert_int_equal(cluster_master(the_cluster, slot), (first + 1) % 3);
    assert_true(is_there("keys", "a") && is_there("keys", "b"));
    cluster_move_begin(the_cluster, slot, first, &move);
    assert_true(cluster_move_step(&move));
    cluster_move_abort(&move);
    assert_int_equal(cluster_master(the_cluster, slot), (first + 1) % 3);
    assert_true(is_there("keys", "a") && is_there("keys", "b"));
    cluster_fail_over(the_cluster, slot);
    assert_int_equal(cluster_replica(the_cluster, slot), (first + 1) % 3);
    assert_true(is_there("keys", "a") && is_there("keys", "b"));
    side_text(cluster_side(the_cluster, "keys"), "DEL {keys}a {keys}b");
}

/* ---- locks ------------------------------------------------------------------------------- */

static void test_a_lock_is_on_the_node_of_its_group(void **state)
{
    (void)state;
    for (int i = 0; i < SHARES; i++) {
        const char *name = shards_name(i, "place");

        actor_do(holder, "0", "lock %s", name);
        assert_int_equal(shards_master(name), shards_node(i));
        assert_true(shards_has("lock", name));
        actor_do(waiter, "EBUSY", "trylock %s", name);
        actor_do(waiter, "ETIMEDOUT", "timedlock %s 50", name);
        actor_do(waiter, "ETIMEDOUT", "clocklock %s 50", name);
        actor_do(holder, "0", "unlock %s", name);
        assert_false(shards_has("lock", name));
        actor_do(waiter, "0", "trylock %s", name);
        actor_do(waiter, "0", "unlock %s", name);
    }
}

static void test_a_recursive_mutex_counts_its_levels(void **state)
{
    const char *name = shards_name(1, "levels");

    (void)state;
    actor_do(holder, "0", "init %s recursive lease=%d", name, LEASE);
    actor_do(holder, "0", "lock %s", name);
    actor_do(holder, "0", "lock %s", name);
    assert_int_equal(actor_value(holder, "holdcount %s", name), 2);
    actor_do(holder, "0", "unlock %s", name);
    assert_true(shards_has("lock", name));
    actor_do(holder, "0", "unlock %s", name);
    assert_false(shards_has("lock", name));
}

static void test_a_thread_gets_an_error_when_it_relocks_or_unlocks_for_another(void **state)
{
    const char *name = shards_name(2, "checked");

    (void)state;
    actor_do(holder, "0", "init %s errorcheck lease=%d", name, LEASE);
    actor_do(waiter, "0", "init %s errorcheck lease=%d", name, LEASE);
    actor_do(holder, "0", "lock %s", name);
    actor_do(holder, "EDEADLK", "lock %s", name);
    actor_do(waiter, "EPERM", "unlock %s", name);
    actor_do(holder, "0", "unlock %s", name);
}

/* Waiters on three nodes at once; the holder dies in all three. */
static void test_robust_waiters_get_ownerdead_when_the_holder_is_killed(void **state)
{
    int lease_ms = late_stretched_ms(SHORT_LEASE);
    struct actor *heirs[SHARES];
    const char *names[SHARES];

    (void)state;
    for (int i = 0; i < SHARES; i++) {
        names[i] = shards_name(i, "robust");
        heirs[i] = shards_start();
        actor_do(holder, "0", "init %s robust lease=%d", names[i], lease_ms);
        actor_do(heirs[i], "0", "init %s robust lease=%d", names[i], lease_ms);
        actor_do(holder, "0", "lock %s", names[i]);
        actor_send(heirs[i], "lock %s", names[i]);
        wait_until(shards_waiters(names[i]) == 1);
    }
    actor_kill(holder);
    for (int i = 0; i < SHARES; i++) {
        actor_expect(heirs[i], "EOWNERDEAD");
        actor_do(heirs[i], "0", "consistent %s", names[i]);
        actor_do(heirs[i], "0", "unlock %s", names[i]);
        actor_end(heirs[i]);
    }
}

/* A release notifies the first waiter by one message to the group's inbox, and nobody polls. */
static void test_a_handoff_costs_one_command_when_a_process_waits(void **state)
{
    const char *name = shards_name(0, "handoff");
    int64_t scripts, messages;

    (void)state;
    shards_use(holder, name);
    shards_begin_queue(name, LONG_LEASE);
    scripts = side_calls(shards_side(name), "evalsha");
    messages = side_calls(shards_side(name), "spublish");
    actor_do(holder, "0", "unlock %s", name);
    actor_expect(waiter, "0");
    assert_int_equal(side_calls(shards_side(name), "evalsha"), scripts + 1);
    assert_int_equal(side_calls(shards_side(name), "spublish"), messages + 1);
    assert_int_equal(side_calls(shards_side(name), "publish"), 0);
    actor_do(waiter, "0", "unlock %s", name);
}

static void test_waiters_of_many_processes_count_exactly(void **state)
{
    const char *name = shards_name(1, "count");
    struct actor *actors[WAITERS];
    char file[64];

    (void)state;
    snprintf(file, sizeof file, "%s/count", the_cluster->nodes[0]->folder);
    actor_begin_count(file);
    for (int i = 0; i < WAITERS; i++) {
        actors[i] = shards_start();
        actor_do(actors[i], "0", "init %s lease=%d fair", name, LEASE);
        actor_send(actors[i], "count %s 40 %s", file, name);
    }
    for (int i = 0; i < WAITERS; i++) {
        assert_string_equal(actor_answer_of_count(actors[i], file), "0");
        actor_end(actors[i]);
    }
    assert_int_equal(actor_counted(file), WAITERS * 40);
}

/* A process hears a group's slot only while the process waits for the group's names, or keeps them. */
static void test_an_inbox_is_opened_on_the_node_of_the_group_alone(void **state)
{
    const char *name = shards_name(2, "inbox"), *other = shards_name(0, "inbox");

    (void)state;
    shards_use(waiter, other);
    shards_begin_queue(name, LEASE);
    assert_int_equal(shards_inboxes(name), 1);
    assert_int_equal(shards_inboxes(other), 0);
    for (int i = 0; i < SHARES; i++)
        assert_int_equal(side_count_channels(the_cluster->nodes[shards_node(i)]->side), 0);
    shards_end_queue(name, actor_value(holder, "token %s", name));
}

static void test_tokens_rise_when_the_mutex_changes_hands(void **state)
{
    const char *name = shards_name(1, "tokens");
    long long last = 0;

    (void)state;
    for (int i = 0; i < 20; i++) {
        struct actor *actor = i % 2 ? holder : waiter;
        long long token;

        actor_do(actor, "0", "lock %s", name);
        token = actor_value(actor, "token %s", name);
        assert_true(token > last);
        last = token;
        actor_do(actor, "0", "unlock %s", name);
    }
}

/* A message to the group's inbox tells the keeper of the waiter, and the keeper gives the lease back: no lease ends. */
static void test_a_kept_lease_is_asked_back_by_the_inbox_of_the_group(void **state)
{
    const char *name = shards_name(2, "kept");

    (void)state;
    actor_do(holder, "0", "init %s lease=%d linger=%d", name, LONG_LEASE, LONG_LEASE);
    actor_do(waiter, "0", "init %s lease=%d", name, LONG_LEASE);
    shards_use(holder, name);
    wait_until(shards_inboxes(name) == 1);
    shards_use(holder, name);
    assert_true(shards_has("lock", name));
    shards_use(waiter, name);
    assert_int_equal(actor_losses(holder), 0);
}

static void test_info_shows_holder_and_waiters(void **state)
{
    const char *name = shards_name(0, "info");

    (void)state;
    assert_int_equal(actor_value(holder, "islocked %s", name), 0);
    shards_begin_queue(name, LEASE);
    assert_int_equal(actor_value(holder, "waiters %s", name), 1);
    assert_int_equal(actor_value(holder, "islocked %s", name), 1);
    shards_end_queue(name, actor_value(holder, "token %s", name));
}

static void test_an_operator_takes_a_mutex_away(void **state)
{
    const char *name = shards_name(1, "force");

    (void)state;
    shards_begin_queue(name, LEASE);
    actor_do(holder, "0", "forceunlock %s", name);
    actor_expect(waiter, "0");
    actor_do(holder, "EPERM", "unlock %s", name);
    actor_do(waiter, "0", "unlock %s", name);
}

/* ---- conditions -------------------------------------------------------------------------- */

static void test_a_signal_wakes_one_and_a_broadcast_all(void **state)
{
    struct actor *other = shards_start();

    (void)state;
    for (int i = 0; i < SHARES; i++) {
        const char *name = shards_name(i, "cond");

        shards_begin_wait(holder, name, 1);
        shards_begin_wait(waiter, name, 2);
        actor_do(other, "0", "signal %s-c", name);
        actor_expect(holder, "0");
        assert_true(actor_is_silent(waiter));
        actor_do(holder, "0", "unlock %s", name);
        shards_begin_wait(holder, name, 2);
        actor_do(other, "0", "broadcast %s-c", name);
        actor_expect(waiter, "0");
        actor_do(waiter, "0", "unlock %s", name);
        actor_expect(holder, "0");
        actor_do(holder, "0", "unlock %s", name);
    }
    actor_end(other);
}

static void test_a_timed_wait_ends_on_time(void **state)
{
    const char *name = shards_name(2, "timed");

    (void)state;
    actor_do(holder, "0", "lock %s", name);
    actor_do(holder, "ETIMEDOUT", "timedwait %s-c %s 50", name, name);
    actor_do(holder, "0", "unlock %s", name);
}

/* ---- many groups ------------------------------------------------------------------------- */

static int locks_on(int share)
{
    return side_count_keys(the_cluster->nodes[shards_node(share)]->side, "dmutex:{many*}:lock:x");
}

/* All nodes have a share, at the same time. */
static void test_a_thousand_groups_are_held_on_all_nodes(void **state)
{
    (void)state;
    for (int i = 0; i < GROUPS; i++)
        actor_do(holder, "0", "lock many%d/x", i);
    assert_int_equal(locks_on(0) + locks_on(1) + locks_on(2), GROUPS);
    for (int i = 0; i < SHARES; i++)
        assert_within(locks_on(i), GROUPS / 4, GROUPS / 2);
    for (int i = 0; i < GROUPS; i++)
        actor_do(waiter, "EBUSY", "trylock many%d/x", i);
    for (int i = 0; i < GROUPS; i++)
        actor_do(holder, "0", "unlock many%d/x", i);
    assert_int_equal(locks_on(0) + locks_on(1) + locks_on(2), 0);
}

#define HOLDS 90

static void test_holds_on_all_nodes_are_renewed_for_many_leases(void **state)
{
    int lease_ms = late_stretched_ms(SHORT_LEASE * 6 / 10);

    (void)state;
    for (int i = 0; i < HOLDS; i++) {
        actor_do(holder, "0", "init renew%d/x lease=%d", i, lease_ms);
        actor_do(holder, "0", "lock renew%d/x", i);
    }
    shards_let_pass(3 * lease_ms);
    assert_int_equal(actor_losses(holder), 0);
    for (int i = 0; i < HOLDS; i++)
        actor_do(waiter, "EBUSY", "trylock renew%d/x", i);
    for (int i = 0; i < HOLDS; i++)
        actor_do(holder, "0", "unlock renew%d/x", i);
}

/* ---- the first node ---------------------------------------------------------------------- */

/* Locks on each node. */
static void use_all(struct actor *actor, const char *word)
{
    for (int i = 0; i < SHARES; i++)
        shards_use(actor, shards_name(i, word));
}

static void test_one_node_leads_to_all(void **state)
{
    (void)state;
    for (int i = 0; i < the_cluster->count; i++) {
        struct actor *actor = actor_start_at(cluster_url_of(the_cluster, i, "?grace=off&" TIMES));

        use_all(actor, i < the_cluster->masters ? "one" : "replica");
        actor_end(actor);
    }
}

static void test_nodes_that_are_down_are_passed_over(void **state)
{
    struct actor *actor;
    char url[160];

    (void)state;
    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d?grace=off&" TIMES,
             server_free_port(), server_free_port(), the_cluster->nodes[4]->port);
    actor = actor_start_at(url);
    use_all(actor, "seeds");
    actor_end(actor);
}

static void test_a_child_of_fork_finds_the_nodes(void **state)
{
    const char *name = shards_name(0, "fork");

    (void)state;
    if (IS_THREAD_SANITIZED)
        return; /* the forked child starts threads */
    actor_do(holder, "0", "init %s lease=%d", name, LEASE);
    actor_do(holder, "0", "lock %s", name);
    actor_do(holder, "EBUSY", "in-child trylock %s", name);
    actor_do(holder, "0", "unlock %s", name);
    actor_do(holder, "0", "in-child-exit lock %s", name);
}

/* ---- rights ------------------------------------------------------------------------------ */

#define RIGHTS                                                                                                      \
    "resetkeys ~dmutex:* resetchannels &dmutex:{*}:inbox:* -@all "                                                  \
    "+eval +evalsha +ssubscribe +sunsubscribe +spublish +pubsub|shardnumsub +asking +cluster|slots +role +info "    \
    "+client|id +client|kill +time +del +exists +pexpire +pttl +hset +hget +hmget +hlen +hdel +zadd +zrem +zrange " \
    "+zrank +zscore +zcard"

static void on_all_nodes(const char *command)
{
    for (int i = 0; i < the_cluster->count; i++)
        side_text(the_cluster->nodes[i]->side, command);
}

static struct actor *start_app(void)
{
    char url[200];

    snprintf(url, sizeof url, "redis+cluster://app:pw@127.0.0.1:%d,127.0.0.1:%d?grace=off&" TIMES,
             the_cluster->nodes[0]->port, the_cluster->nodes[1]->port);
    return actor_start_at(url);
}

/* As doc/guide/operating.md has the rights. */
static void test_a_user_with_the_least_rights_locks_and_waits(void **state)
{
    const char *name = shards_name(2, "rights");

    (void)state;
    on_all_nodes("ACL SETUSER app reset on >pw " RIGHTS);
    actor_end(holder);
    actor_end(waiter);
    holder = start_app();
    waiter = start_app();
    shards_begin_queue(name, LONG_LEASE);
    shards_end_queue(name, actor_value(holder, "token %s", name));
    on_all_nodes("ACL DELUSER app");
}

#define test(name) cmocka_unit_test_setup_teardown(name, shards_begin, shards_end)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_stay_when_a_slot_moves_and_a_shard_fails_over),
        test(test_a_lock_is_on_the_node_of_its_group),
        test(test_a_recursive_mutex_counts_its_levels),
        test(test_a_thread_gets_an_error_when_it_relocks_or_unlocks_for_another),
        test(test_robust_waiters_get_ownerdead_when_the_holder_is_killed),
        test(test_a_handoff_costs_one_command_when_a_process_waits),
        test(test_waiters_of_many_processes_count_exactly),
        test(test_an_inbox_is_opened_on_the_node_of_the_group_alone),
        test(test_tokens_rise_when_the_mutex_changes_hands),
        test(test_a_kept_lease_is_asked_back_by_the_inbox_of_the_group),
        test(test_info_shows_holder_and_waiters),
        test(test_an_operator_takes_a_mutex_away),
        test(test_a_signal_wakes_one_and_a_broadcast_all),
        test(test_a_timed_wait_ends_on_time),
        test(test_a_thousand_groups_are_held_on_all_nodes),
        test(test_holds_on_all_nodes_are_renewed_for_many_leases),
        test(test_one_node_leads_to_all),
        test(test_nodes_that_are_down_are_passed_over),
        test(test_a_child_of_fork_finds_the_nodes),
        test(test_a_user_with_the_least_rights_locks_and_waits),
        cmocka_unit_test(test_nothing_is_left_on_the_nodes),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, cluster_group_setup, cluster_group_teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes of a Cluster that fail, are replaced, have wrong maps, or are no nodes: a clear error, nothing lost, no grant
 * too early, and no loop without a pause.
 */
#include <stdlib.h>
#include <string.h>

#include "shards.h"

#define SHORT_LEASE 1000
#define MORE_THAN_ROOM 250    /* addresses; a process has places for 200 */
#define ASKED_IN_A_SECOND 400 /* commands: 5 redirects, then a pause; without pauses some 20000 */

/* Tokens count from 2020 on: lua/_numbers.lua. */
#define EPOCH_US INT64_C(1577836800000000)

static struct server *server_of(int node)
{
    return the_cluster->nodes[node];
}

static struct side *side_of(int node)
{
    return server_of(node)->side;
}

static void on_all_nodes(const char *command)
{
    for (int i = 0; i < the_cluster->count; i++)
        side_text(side_of(i), command);
}

/* ---- a replica takes the master's place -------------------------------------------------- */

static void test_a_hold_and_a_waiter_follow_when_the_master_is_killed(void **state)
{
    const char *name = shards_name(0, "killed");
    int before = shards_master(name);
    long long token;

    (void)state;
    shards_begin_queue(name, LEASE);
    token = actor_value(holder, "token %s", name);
    cluster_kill(the_cluster, before);
    cluster_await_failover(the_cluster, shards_slot(name), before);
    shards_end_queue(name, token);
}

/* The old master becomes a replica, and only MOVED says so. */
static void test_a_hold_and_a_waiter_follow_when_an_operator_switches(void **state)
{
    const char *name = shards_name(1, "switch");
    long long token;

    (void)state;
    shards_begin_queue(name, LEASE);
    token = actor_value(holder, "token %s", name);
    cluster_fail_over(the_cluster, shards_slot(name));
    shards_end_queue(name, token);
}

static void test_a_hold_and_a_waiter_follow_two_switches_in_a_row(void **state)
{
    const char *name = shards_name(2, "twice");
    long long token;

    (void)state;
    shards_begin_queue(name, LEASE);
    token = actor_value(holder, "token %s", name);
    cluster_fail_over(the_cluster, shards_slot(name));
    cluster_fail_over(the_cluster, shards_slot(name));
    shards_end_queue(name, token);
}

/* The third switch elects the replica of the first, which Redis would count the old votes of. */
static void test_a_hold_and_a_waiter_follow_when_stopped_masters_are_replaced_by_force(void **state)
{
    const char *name = shards_name(0, "forced");
    long long token;

    (void)state;
    cluster_heal(the_cluster);
    shards_begin_queue(name, LEASE);
    token = actor_value(holder, "token %s", name);
    for (int i = 0; i < 3; i++) {
        cluster_stop(the_cluster, shards_master(name));
        cluster_force_over(the_cluster, shards_slot(name));
        cluster_heal(the_cluster);
    }
    shards_end_queue(name, token);
}

/*
 * A stopped master answers nobody.  The lease lasts longer than the stop, so the first answers after it grant nothing.
 */
static void test_a_stopped_master_is_not_used_again(void **state)
{
    const char *name = shards_name(0, "stopped");
    int before = shards_master(name);
    long long token;

    (void)state;
    shards_begin_queue(name, LEASE);
    token = actor_value(holder, "token %s", name);
    cluster_stop(the_cluster, before);
    cluster_await_failover(the_cluster, shards_slot(name), before);
    wait_until(shards_has("lock", name));
    cluster_cont(the_cluster, before);
    shards_end_queue(name, token);
    cluster_heal(the_cluster);
    assert_true(side_try(side_of(before), "READONLY"));
    wait_until(side_int(side_of(before), "EXISTS %s", key_of("lock", name)) == 0);
}

/*
 * Long enough for a request to stay in a socket until the lease has ended; masters are believed for this long at most.
 */
#define QUICK "?grace=off&command_timeout=500&switch=14000"
#define PATIENT "?grace=off&command_timeout=14000&switch=14000"
#define BELIEVED 7000

/*
 * A stopped master that continues answers the requests in its sockets before it hears that it was replaced.  The lease
 * of the hold has ended there, and the holder has renewed it on the new master.
 */
static void test_a_replaced_master_is_not_believed_when_it_goes_on(void **state)
{
    const char *name = shards_name(1, "replaced");
    int before = shards_master(name), lease_ms = 10 * SHORT_LEASE;
    int64_t ends_ms;

    (void)state;
    actor_end(holder);
    actor_end(waiter);
    holder = actor_start_at(cluster_url(the_cluster, QUICK));
    waiter = actor_start_at(cluster_url(the_cluster, PATIENT));
    actor_do(waiter, "0", "init %s lease=%d", name, lease_ms);
    shards_use(waiter, name);
    actor_do(holder, "0", "init %s lease=%d", name, lease_ms);
    actor_do(holder, "0", "lock %s", name);
    wait_until(side_has_replicas(side_of(before), key_of("written", name), 1));
    cluster_stop(the_cluster, before);
    ends_ms = wait_now_ms() + lease_ms;
    actor_send(waiter, "trylock %s", name);
    cluster_await_failover(the_cluster, shards_slot(name), before);
    if (ends_ms < wait_now_ms() + BELIEVED)
        ends_ms = wait_now_ms() + BELIEVED;
    wait_until(wait_now_ms() > ends_ms);
    assert_true(shards_has("lock", name));
    assert_true(actor_is_silent(waiter));
    cluster_cont(the_cluster, before);
    actor_expect(waiter, "EBUSY");
    actor_do(holder, "0", "unlock %s", name);
    assert_int_equal(actor_losses(holder), 0);
}

/* By the server's clock: the time of the grant, which the token contains; and since when the node is a master. */
static long long granted_us(struct actor *actor, const char *name)
{
    return (actor_value(actor, "token %s", name) >> 12) + EPOCH_US;
}

static long long since_us(int node)
{
    char *mark = strdup(side_text(side_of(node), "KEYS dmutex:{*}:server"));
    long long since;

    assert_null(strchr(mark, '\n'));
    since = side_int(side_of(node), "HGET %s since", mark);
    free(mark);
    return since;
}

/* The master dies with the holder: the next owner comes a lease and a switch after the promotion, and not earlier. */
static void test_a_new_master_grants_nothing_for_a_lease_and_a_switch(void **state)
{
    const char *name = shards_name(1, "grace");
    int before = shards_master(name), after;
    int64_t told_ms;

    (void)state;
    actor_end(holder);
    actor_end(waiter);
    holder = actor_start_at(cluster_url(the_cluster, "?" TIMES));
    waiter = actor_start_at(cluster_url(the_cluster, "?" TIMES));
    shards_begin_queue(name, SHORT_LEASE);
    cluster_kill(the_cluster, before);
    actor_kill(holder);
    after = cluster_await_failover(the_cluster, shards_slot(name), before);
    told_ms = wait_now_ms();
    actor_expect(waiter, "0");
    print_message("# the next holder %lld ms behind promotion, lease and switch\n",
                  (long long)(wait_now_ms() - told_ms - SHORT_LEASE - SWITCH));
    server_reconnect(server_of(after));
    assert_true(granted_us(waiter, name) >= since_us(after) + (SHORT_LEASE + SWITCH) * 1000);
    actor_do(waiter, "0", "unlock %s", name);
}

/* The replica becomes the master again without the lock, and the holder does not come back yet. */
static void lose_the_lock(const char *name)
{
    int slot = shards_slot(name), replica = cluster_replica(the_cluster, slot);

    cluster_stop(the_cluster, replica);
    cluster_part(the_cluster, slot);
    actor_do(holder, "0", "lock %s", name);
    actor_stop(holder);
    cluster_stop(the_cluster, cluster_master(the_cluster, slot));
    cluster_cont(the_cluster, replica);
    assert_int_equal(cluster_force_over(the_cluster, slot), replica);
}

/* A process that has heard of its node in the last second asks as before. */
#define KNOWN_MS 1000

/*
 * A process that was idle has its old connection to the node, and would ask without grace.  Another process has come
 * before: the node knows since when it is new.
 */
static void test_a_master_that_was_a_replica_gives_grace_to_an_old_connection(void **state)
{
    const char *name = shards_name(2, "again");
    int slot = shards_slot(name), before = shards_master(name);
    struct actor *first;
    int64_t used_ms;

    (void)state;
    actor_end(waiter);
    waiter = actor_start_at(cluster_url(the_cluster, "?" TIMES));
    actor_do(waiter, "0", "init %s lease=%d", name, 10 * SWITCH);
    shards_use(waiter, name);
    used_ms = wait_now_ms();
    assert_int_not_equal(cluster_fail_over(the_cluster, slot), before);
    actor_do(holder, "0", "init %s lease=%d", name, LEASE);
    lose_the_lock(name);
    assert_int_equal(shards_master(name), before);
    first = actor_start_at(cluster_url(the_cluster, "?" TIMES));
    actor_do(first, "0", "init %s lease=%d", name, 10 * SWITCH);
    actor_do(first, "EBUSY", "trylock %s", name);
    wait_until(wait_now_ms() > used_ms + KNOWN_MS);
    actor_do(waiter, "EBUSY", "trylock %s", name);
    actor_end(first);
    actor_cont(holder);
    cluster_heal(the_cluster);
    actor_do(holder, "0", "renew %s", name);
    assert_int_equal(actor_losses(holder), 0);
    actor_do(holder, "0", "unlock %s", name);
}

/* ---- nodes that are silent, or gone ------------------------------------------------------ */

/* One share has no node for a while: the holds of the other shares are renewed in time, and locks come at once. */
static void test_other_nodes_go_on_when_a_node_is_silent(void **state)
{
    int lease_ms = late_stretched_ms(2 * SHORT_LEASE), silent = shards_node(2);
    int replica = cluster_replica(the_cluster, CLUSTER_SLOTS - 1);
    const char *names[SHARES];

    (void)state;
    on_all_nodes("CONFIG SET cluster-require-full-coverage no");
    for (int i = 0; i < SHARES; i++) {
        names[i] = shards_name(i, "silent");
        actor_do(holder, "0", "init %s lease=%d", names[i], lease_ms);
        actor_do(waiter, "0", "init %s lease=%d", names[i], lease_ms);
        actor_do(holder, "0", "lock %s", names[i]);
    }
    cluster_stop(the_cluster, replica);
    cluster_stop(the_cluster, silent);
    wait_until(actor_losses(holder) == 1);
    actor_do(waiter, "ETIMEDOUT", "timedlock %s 300", names[2]);
    for (int i = 0; i < SHARES - 1; i++) {
        actor_do(waiter, "EBUSY", "trylock %s", names[i]);
        actor_do(holder, "0", "unlock %s", names[i]);
        shards_use(waiter, names[i]);
    }
    actor_do(holder, "EPERM", "unlock %s", names[2]);
    cluster_heal(the_cluster);
    on_all_nodes("CONFIG SET cluster-require-full-coverage yes");
    shards_use(waiter, names[2]);
}

static int64_t count_maps(int node, int other)
{
    return side_calls(side_of(node), "cluster|slots") + side_calls(side_of(other), "cluster|slots");
}

/* The holder has claims everywhere, so it asks the other nodes for the node that is gone, with pauses. */
static void test_the_map_is_asked_for_with_pauses_when_a_node_is_gone(void **state)
{
    int gone = shards_node(2), replica = cluster_replica(the_cluster, CLUSTER_SLOTS - 1);
    int nodes[] = { shards_node(0), shards_node(1) };
    const char *name = shards_name(2, "gone");
    int64_t before, maps;

    (void)state;
    on_all_nodes("CONFIG SET cluster-require-full-coverage no");
    for (int i = 0; i < SHARES; i++)
        actor_do(holder, "0", "lock %s", shards_name(i, "gone"));
    cluster_kill(the_cluster, replica);
    cluster_kill(the_cluster, gone);
    actor_do(waiter, "ETIMEDOUT", "timedlock %s 300", name);
    before = count_maps(nodes[0], nodes[1]);
    actor_do(waiter, "ETIMEDOUT", "timedlock %s 1000", name);
    maps = count_maps(nodes[0], nodes[1]) - before;
    print_message("# %lld maps in a second\n", (long long)maps);
    assert_within(maps, 1, ASKED_IN_A_SECOND);
    cluster_heal(the_cluster);
    on_all_nodes("CONFIG SET cluster-require-full-coverage yes");
}

static bool is_down(int node)
{
    return side_says(side_of(node), "cluster_state:fail", "CLUSTER INFO");
}

/* A share is lost with both its nodes, which come back without data; all the time nobody else owns. */
static void test_calls_wait_when_the_cluster_is_down(void **state)
{
    const char *name = shards_name(0, "down"), *lost = shards_name(2, "down");
    int node = shards_node(2), replica = cluster_replica(the_cluster, shards_slot(lost)), up = shards_node(0);
    struct actor *late = shards_start();
    long long token;

    (void)state;
    shards_begin_queue(name, LEASE);
    token = actor_value(holder, "token %s", name);
    actor_do(holder, "0", "init %s lease=%d", lost, LEASE);
    actor_do(holder, "0", "lock %s", lost);
    cluster_kill(the_cluster, replica);
    cluster_kill(the_cluster, node);
    wait_until(is_down(up));
    actor_do(late, "ETIMEDOUT", "timedlock %s 300", name);
    actor_assert_words(late, "CLUSTERDOWN");
    actor_do(late, "ENOLCK", "trylock %s", name);
    cluster_heal(the_cluster);
    actor_do(late, "EBUSY", "trylock %s", name);
    actor_do(holder, "0", "unlock %s", lost);
    shards_use(late, lost);
    shards_end_queue(name, token);
    actor_end(late);
}

static void test_a_lock_waits_when_all_listed_nodes_are_gone(void **state)
{
    int nobody = server_free_port();
    struct actor *actor;
    char url[160];

    (void)state;
    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d?grace=off&" TIMES, nobody);
    actor = actor_start_at(url);
    actor_do(actor, "ETIMEDOUT", "timedlock nobody/x 300");
    actor_assert_words(actor, "Connection refused");
    actor_do(actor, "ENOLCK", "trylock nobody/x");
    actor_end(actor);
}

/* ---- wrong maps -------------------------------------------------------------------------- */

static int64_t count_asked(void)
{
    int64_t count = 0;

    for (int i = 0; i < the_cluster->count; i++)
        count += side_client_commands(side_of(i));
    return count;
}

/* A lock that ends by its deadline costs all nodes together few commands. */
static void try_for_a_second(const char *name)
{
    int64_t before = count_asked(), commands;

    actor_do(waiter, "ETIMEDOUT", "timedlock %s 1000", name);
    commands = count_asked() - before;
    print_message("# %lld commands in a second\n", (long long)commands);
    assert_within(commands, 3, ASKED_IN_A_SECOND);
}

/* No node serves the slot of the name: others are locked as usual. */
static void test_a_lock_waits_when_the_map_has_a_hole(void **state)
{
    const char *name = shards_name(0, "hole");
    int slot = shards_slot(name), node = shards_node(0);
    char command[64];

    (void)state;
    on_all_nodes("CONFIG SET cluster-require-full-coverage no");
    snprintf(command, sizeof command, "CLUSTER DELSLOTS %d", slot);
    for (int i = 0; i < the_cluster->count; i++)
        side_try(side_of(i), command);
    try_for_a_second(name);
    actor_do(waiter, "ENOLCK", "trylock %s", name);
    shards_use(waiter, shards_name(0, "full"));
    actor_send(waiter, "lock %s", name);
    side_text(side_of(node), "CLUSTER ADDSLOTS %d", slot);
    on_all_nodes("CONFIG SET cluster-require-full-coverage yes");
    actor_expect(waiter, "0");
    actor_do(waiter, "0", "unlock %s", name);
    cluster_heal(the_cluster);
}

/* Each of two nodes says that the other has the slot. */
static void test_a_lock_waits_when_nodes_send_it_in_a_circle(void **state)
{
    const char *name = shards_name(1, "circle");
    int slot = shards_slot(name), node = shards_node(1), other = shards_node(2);

    (void)state;
    shards_use(waiter, shards_name(1, "before"));
    side_text(side_of(node), "CLUSTER SETSLOT %d NODE %s", slot, the_cluster->ids[other]);
    side_text(side_of(other), "CLUSTER SETSLOT %d NODE %s", slot, the_cluster->ids[node]);
    try_for_a_second(name);
    actor_do(waiter, "ENOLCK", "trylock %s", name);
    shards_use(waiter, shards_name(1, "beside"));
    actor_send(waiter, "lock %s", name);
    side_text(side_of(node), "CLUSTER SETSLOT %d NODE %s", slot, the_cluster->ids[node]);
    actor_expect(waiter, "0");
    actor_do(waiter, "0", "unlock %s", name);
}

/* The slot moves, says its node, and the other node knows nothing of that. */
static void test_a_lock_waits_when_a_move_is_known_to_one_node_alone(void **state)
{
    const char *name = shards_name(2, "half");
    int slot = shards_slot(name), node = shards_node(2), other = shards_node(0);

    (void)state;
    shards_use(waiter, shards_name(2, "before"));
    side_text(side_of(node), "CLUSTER SETSLOT %d MIGRATING %s", slot, the_cluster->ids[other]);
    try_for_a_second(name);
    actor_send(waiter, "lock %s", name);
    side_text(side_of(node), "CLUSTER SETSLOT %d STABLE", slot);
    actor_expect(waiter, "0");
    actor_do(waiter, "0", "unlock %s", name);
}

static bool is_told(int node, int port)
{
    char words[32];

    snprintf(words, sizeof words, ":%d@", port);
    for (int i = 0; i < the_cluster->count; i++) {
        if (!side_says(side_of(i), words, "CLUSTER NODES"))
            return false;
    }
    return side_says(side_of(node), "cluster_state:ok", "CLUSTER INFO");
}

/* A node announces an address that leads nowhere, as with network address translation. */
static void test_a_lock_waits_when_an_address_leads_nowhere(void **state)
{
    const char *name = shards_name(1, "nowhere");
    int node = shards_node(1), nowhere = server_free_port();
    struct actor *actor;
    char words[80];

    (void)state;
    side_text(side_of(node), "CONFIG SET cluster-announce-port %d", nowhere);
    wait_until(is_told(node, nowhere));
    actor = actor_start_at(cluster_url_of(the_cluster, shards_node(0), "?grace=off&" TIMES));
    actor_do(actor, "ETIMEDOUT", "timedlock %s 500", name);
    snprintf(words, sizeof words, "127.0.0.1:%d: cannot be opened (Connection refused)", nowhere);
    actor_assert_words(actor, words);
    shards_use(actor, shards_name(0, "somewhere"));
    side_text(side_of(node), "CONFIG SET cluster-announce-port 0");
    wait_until(is_told(node, server_of(node)->port));
    actor_do(actor, "0", "lock %s", name);
    actor_do(actor, "0", "unlock %s", name);
    actor_end(actor);
}

/* The address is 127.1.0.N now; connections to the one before are at an end, as when a pod has moved. */
static void move_to(struct cluster *cluster, int number)
{
    struct server *server = cluster->nodes[0];
    char bind[40];

    snprintf(bind, sizeof bind, "127.0.0.1 127.1.0.%d", number);
    side_text(server->side, "CONFIG SET bind %s", bind);
    side_text(server->side, "CONFIG SET cluster-announce-ip 127.1.0.%d", number);
    side_text(server->side, "CLIENT KILL TYPE normal SKIPME yes");
    side_text(server->side, "CLIENT KILL TYPE pubsub");
}

/* A record is free for another node soon. */
#define QUICK_TIMES "command_timeout=100&connect_timeout=100&switch=1000"

/* Months of pods, in a minute; in the long run more addresses than a process has places for. */
static void test_a_process_goes_on_when_a_node_has_had_many_addresses(void **state)
{
    int count = (int)count_from("DMUTEX_TEST_ADDRESSES", 20, MORE_THAN_ROOM);
    struct cluster cluster = { .masters = 0 };
    struct actor *actor;
    char name[40], url[120];

    (void)state;
    cluster_start_sparse(&cluster, 1, CLUSTER_CALM_MS);
    snprintf(name, sizeof name, "%s/x", cluster_sparse_group(0));
    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d?grace=off&" QUICK_TIMES, cluster.nodes[0]->port);
    actor = actor_start_at(url);
    for (int i = 1; i <= count; i++) {
        move_to(&cluster, i);
        shards_use(actor, name);
    }
    actor_end(actor);
    cluster_end(&cluster);
}

/* ---- other servers ----------------------------------------------------------------------- */

static void test_a_lock_waits_when_a_cluster_url_names_a_single_server(void **state)
{
    struct server *single = server_start_with(true, NULL);
    struct actor *actor;
    char url[120];

    (void)state;
    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d?grace=off&" TIMES, single->port);
    actor = actor_start_at(url);
    actor_do(actor, "ETIMEDOUT", "timedlock wrong/x 300");
    actor_assert_words(actor, "redis://");
    actor_do(actor, "ENOLCK", "trylock wrong/x");
    actor_end(actor);
    server_end(single);
}

/* A node that endlessly sends each script to another address: few tries, and no more descriptors. */
static void redirect_for_a_second(const char *redirect)
{
    struct actor *actor;
    char url[120];

    impostor_redirect(redirect, cluster_slot(the_cluster, "lie"));
    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d?grace=off&" TIMES, impostor_port());
    actor = actor_start_at(url);
    actor_do(actor, "ETIMEDOUT", "timedlock lie/x 1000");
    print_message("# %d times %s in a second\n", impostor_said(), redirect);
    assert_within(impostor_said(), 1, ASKED_IN_A_SECOND);
    actor_do(actor, "ENOLCK", "trylock lie/x");
    actor_end(actor);
}

static void test_a_lock_waits_when_a_stranger_sends_it_around(void **state)
{
    (void)state;
    impostor_begin(server_of(0)->folder);
    redirect_for_a_second("MOVED");
    redirect_for_a_second("ASK");
    impostor_end();
}

/* CLUSTER SLOTS with more masters than a process has places for, of some slots each. */
static const char *map_of_many(void)
{
    static char map[MORE_THAN_ROOM * 80];
    int share = CLUSTER_SLOTS / MORE_THAN_ROOM;
    char *at = map, host[20];

    at += sprintf(at, "*%d\r\n", MORE_THAN_ROOM);
    for (int i = 0; i < MORE_THAN_ROOM; i++) {
        snprintf(host, sizeof host, "127.9.9.%d", i);
        at += sprintf(at, "*3\r\n:%d\r\n:%d\r\n*2\r\n$%zu\r\n%s\r\n:1\r\n", i * share,
                      i < MORE_THAN_ROOM - 1 ? (i + 1) * share - 1 : CLUSTER_SLOTS - 1, strlen(host), host);
    }
    return map;
}

/* Once the stranger is gone, the process finds room for the masters of the Cluster. */
static void test_a_process_goes_on_when_a_stranger_has_named_too_many_masters(void **state)
{
    struct actor *actor;
    char url[160];

    (void)state;
    impostor_begin(server_of(0)->folder);
    impostor_redirect("MOVED", cluster_slot(the_cluster, "lie"));
    impostor_answer("CLUSTER SLOTS", map_of_many());
    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d,127.0.0.1:%d?grace=off&" TIMES, impostor_port(),
             server_of(0)->port);
    actor = actor_start_at(url);
    actor_do(actor, "ETIMEDOUT", "timedlock last430/x 500"); /* one of the last slots */
    actor_assert_words(actor, "the Cluster has more than 200 masters, or a node names masters that");
    impostor_be(MANNER_CLOSING, "", 0);
    for (int share = 0; share < SHARES; share++)
        shards_use(actor, shards_name(share, "again"));
    actor_end(actor);
    impostor_end();
}

/* The first node's refusal is the reason, also while a later connection waits for an answer. */
static void test_the_reason_is_reported_when_the_map_is_refused(void **state)
{
    struct actor *actor;
    char url[120];

    (void)state;
    impostor_begin(server_of(0)->folder);
    impostor_be(MANNER_REFUSING_ONCE, "", 0);
    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d?grace=off", impostor_port());
    actor = actor_start_at(url);
    while (impostor_said() < 2)
        actor_do(actor, "ETIMEDOUT", "timedlock refused/x 100");
    actor_do(actor, "ETIMEDOUT", "timedlock refused/x 100");
    actor_assert_words(actor, "NOPERM this user may not ask");
    actor_end(actor);
    impostor_end();
}

static int end_test(void **state)
{
    cluster_heal(the_cluster);
    return shards_end(state);
}

#define test(name) cmocka_unit_test_setup_teardown(name, shards_begin, end_test)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        test(test_a_hold_and_a_waiter_follow_when_the_master_is_killed),
        test(test_a_hold_and_a_waiter_follow_when_an_operator_switches),
        test(test_a_hold_and_a_waiter_follow_two_switches_in_a_row),
        test(test_a_hold_and_a_waiter_follow_when_stopped_masters_are_replaced_by_force),
        test(test_a_stopped_master_is_not_used_again),
        test(test_a_replaced_master_is_not_believed_when_it_goes_on),
        test(test_a_new_master_grants_nothing_for_a_lease_and_a_switch),
        test(test_a_master_that_was_a_replica_gives_grace_to_an_old_connection),
        test(test_other_nodes_go_on_when_a_node_is_silent),
        test(test_the_map_is_asked_for_with_pauses_when_a_node_is_gone),
        test(test_calls_wait_when_the_cluster_is_down),
        test(test_a_lock_waits_when_all_listed_nodes_are_gone),
        test(test_a_lock_waits_when_the_map_has_a_hole),
        test(test_a_lock_waits_when_nodes_send_it_in_a_circle),
        test(test_a_lock_waits_when_a_move_is_known_to_one_node_alone),
        test(test_a_lock_waits_when_an_address_leads_nowhere),
        test(test_a_lock_waits_when_a_stranger_sends_it_around),
        test(test_a_process_goes_on_when_a_node_has_had_many_addresses),
        test(test_a_process_goes_on_when_a_stranger_has_named_too_many_masters),
        test(test_the_reason_is_reported_when_the_map_is_refused),
        test(test_a_lock_waits_when_a_cluster_url_names_a_single_server),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, cluster_group_setup_fast, cluster_group_teardown);
}

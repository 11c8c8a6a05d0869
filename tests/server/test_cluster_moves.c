/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slots of a Cluster move to other nodes while there are holds, queues and conditions, as when an operator moves part
 * of the data: holders keep their holds, waiters get the lock once the slot has moved, and no two own at once.
 */
#include <string.h>

#include "shards.h"

#define SHORT_LEASE 600
#define MOVES 6
#define COUNTERS 4
#define TURNS 60

static int other_than(int node)
{
    return (node + 1) % 3;
}

/* A move of the name's slot, with no key moved yet: to that node, or to the next. */
static struct move begin_move_to(const char *name, int node)
{
    struct move move;

    cluster_move_begin(the_cluster, shards_slot(name), node, &move);
    return move;
}

static struct move begin_move(const char *name)
{
    return begin_move_to(name, other_than(shards_master(name)));
}

static void move_all(const struct move *move)
{
    while (cluster_move_step(move))
        continue;
}

static void move_slot(const char *name)
{
    struct move move = begin_move(name);

    move_all(&move);
    cluster_move_finish(&move);
}

/* ---- holds ------------------------------------------------------------------------------- */

static long long hold(const char *name, int lease_ms)
{
    actor_do(holder, "0", "init %s lease=%d", name, lease_ms);
    actor_do(holder, "0", "lock %s", name);
    return actor_value(holder, "token %s", name);
}

static void assert_held(const char *name, long long token)
{
    assert_true(actor_value(holder, "token %s", name) == token);
    actor_do(waiter, "EBUSY", "trylock %s", name);
    actor_do(holder, "0", "unlock %s", name);
    shards_use(waiter, name);
}

/* Half-way one name is on the new node already, and the other is on the old node still. */
static void must_holds_be_renewed_through_a_move(const char *name, int node)
{
    int lease_ms = late_stretched_ms(SHORT_LEASE);
    long long token, next_token;
    struct move move;
    char next[48];

    snprintf(next, sizeof next, "%s-next", name);
    token = hold(name, lease_ms);
    next_token = hold(next, lease_ms);
    move = begin_move_to(name, node);
    shards_let_pass(lease_ms * 3 / 2);
    cluster_move_key(&move, key_of("state", name));
    cluster_move_key(&move, key_of("lock", name));
    shards_let_pass(lease_ms * 3 / 2);
    move_all(&move);
    shards_let_pass(lease_ms * 3 / 2);
    cluster_move_finish(&move);
    shards_let_pass(lease_ms * 3 / 2);
    assert_int_equal(actor_losses(holder), 0);
    assert_held(name, token);
    assert_held(next, next_token);
}

static void test_holds_are_renewed_through_a_whole_move(void **state)
{
    const char *name = shards_name(0, "hold");

    (void)state;
    must_holds_be_renewed_through_a_move(name, other_than(shards_master(name)));
}

/* The first slot of a new node: until the end of the move no master names the node. */
static void test_holds_are_renewed_through_the_first_move_to_a_new_node(void **state)
{
    const char *name = shards_name(0, "first");
    int node = shards_master(name), added = cluster_add_node(the_cluster);

    (void)state;
    must_holds_be_renewed_through_a_move(name, added);
    cluster_move(the_cluster, shards_slot(name), node);
    cluster_forget_node(the_cluster, added);
}

/*
 * The mark of a node, and the keys of the probe, are in the lowest slot, which is also the first that an operator moves
 * away.  New connections can still be made: by a holder whose connections break, and by another process.
 */
static void test_a_node_can_be_used_when_its_lowest_slot_moves(void **state)
{
    const char *name = shards_name(0, "lowest"), *other = shards_name(0, "other");
    int lease_ms = late_stretched_ms(SHORT_LEASE), node = shards_master(name);
    long long token = hold(name, lease_ms);
    struct actor *late = shards_start();
    struct move move;

    (void)state;
    assert_true(cluster_master(the_cluster, 0) == node && shards_slot(name) > 0 && shards_slot(other) > 0);
    cluster_move_begin(the_cluster, 0, other_than(node), &move);
    side_text(shards_side(name), "CLIENT KILL TYPE normal");
    actor_do(late, "0", "timedlock %s 5000", other);
    actor_do(late, "0", "unlock %s", other);
    move_all(&move);
    side_text(shards_side(name), "CLIENT KILL TYPE normal");
    actor_do(late, "0", "timedlock %s 5000", other);
    actor_do(late, "0", "unlock %s", other);
    shards_let_pass(lease_ms * 3 / 2);
    assert_int_equal(actor_losses(holder), 0);
    cluster_move_abort(&move);
    assert_held(name, token);
    actor_end(late);
}

static void test_tokens_rise_when_the_slot_moves_between_holds(void **state)
{
    const char *name = shards_name(1, "rise");
    long long last = 0, token;

    (void)state;
    for (int i = 0; i < MOVES; i++) {
        struct actor *actor = i % 2 ? holder : waiter;

        actor_do(actor, "0", "lock %s", name);
        token = actor_value(actor, "token %s", name);
        assert_true(token > last);
        last = token;
        actor_do(actor, "0", "unlock %s", name);
        move_slot(name);
    }
}

/* ---- queues ------------------------------------------------------------------------------ */

static void test_a_waiter_owns_when_the_slot_has_moved(void **state)
{
    const char *name = shards_name(2, "queue");

    (void)state;
    shards_begin_queue(name, LONG_LEASE);
    move_slot(name);
    shards_end_queue(name, actor_value(holder, "token %s", name));
}

/*
 * The old node ends the waiter's subscription unasked; the waiter subscribes at the new node, and a message wakes it
 * there: no lease ends, and no poll comes, within the time of a test.
 */
static void test_a_waiter_subscribes_again_when_the_slot_has_moved(void **state)
{
    const char *name = shards_name(0, "inbox");
    int64_t messages;

    (void)state;
    shards_use(holder, shards_name(other_than(0), "open")); /* a new connection publishes to nobody, as a try */
    shards_begin_queue(name, LONG_LEASE);
    assert_int_equal(shards_inboxes(name), 1);
    move_slot(name);
    wait_until(shards_inboxes(name) == 1);
    messages = side_calls(shards_side(name), "spublish");
    actor_do(holder, "0", "unlock %s", name);
    actor_expect(waiter, "0");
    assert_int_equal(side_calls(shards_side(name), "spublish"), messages + 1);
    actor_do(waiter, "0", "unlock %s", name);
}

/* A release while keys are half-way changes nothing, and is repeated after the move. */
static void test_a_waiter_owns_when_the_holder_unlocks_half_way(void **state)
{
    const char *name = shards_name(1, "half");
    struct move move;

    (void)state;
    shards_begin_queue(name, LEASE / 3);
    move = begin_move(name);
    assert_true(cluster_move_step(&move));
    actor_send(holder, "unlock %s", name);
    shards_let_pass(300);
    assert_true(actor_is_silent(waiter));
    move_all(&move);
    cluster_move_finish(&move);
    actor_expect(holder, "0");
    actor_expect(waiter, "0");
    actor_do(waiter, "0", "unlock %s", name);
}

/* Nobody has used the name before: no key of the name is anywhere. */
static void test_a_new_lock_waits_for_the_end_of_a_move(void **state)
{
    const char *name = shards_name(2, "new");
    struct move move = begin_move(name);

    (void)state;
    actor_do(waiter, "0", "init %s lease=%d", name, LONG_LEASE);
    actor_do(waiter, "ETIMEDOUT", "timedlock %s 300", name);
    actor_do(waiter, "ENOLCK", "trylock %s", name);
    actor_send(waiter, "lock %s", name);
    move_all(&move);
    cluster_move_finish(&move);
    actor_expect(waiter, "0");
    actor_do(holder, "EBUSY", "trylock %s", name);
    actor_do(waiter, "0", "unlock %s", name);
}

/* Each turn is a handoff between processes. */
static void test_processes_count_exactly_while_the_slot_moves_on(void **state)
{
    const char *name = shards_name(0, "count");
    struct actor *actors[COUNTERS];
    char file[64];

    (void)state;
    snprintf(file, sizeof file, "%s/moves", the_cluster->nodes[0]->folder);
    actor_begin_count(file);
    for (int i = 0; i < COUNTERS; i++) {
        actors[i] = shards_start();
        actor_do(actors[i], "0", "init %s lease=%d fair", name, LEASE);
        actor_send(actors[i], "count %s %d %s", file, TURNS, name);
    }
    for (int i = 0; i < MOVES; i++)
        move_slot(name);
    for (int i = 0; i < COUNTERS; i++) {
        assert_string_equal(actor_answer_of_count(actors[i], file), "0");
        actor_end(actors[i]);
    }
    assert_int_equal(actor_counted(file), COUNTERS * TURNS);
}

/* ---- conditions -------------------------------------------------------------------------- */

static void test_a_signal_wakes_when_the_slot_has_moved(void **state)
{
    const char *name = shards_name(1, "signal");

    (void)state;
    shards_begin_wait(waiter, name, 1);
    move_slot(name);
    actor_do(holder, "0", "signal %s-c", name);
    actor_expect(waiter, "0");
    actor_do(waiter, "0", "unlock %s", name);
}

/* The signal waits for the end of the move, too. */
static void test_a_signal_given_half_way_wakes(void **state)
{
    const char *name = shards_name(2, "signal");
    struct move move;

    (void)state;
    shards_begin_wait(waiter, name, 1);
    move = begin_move(name);
    assert_true(cluster_move_step(&move));
    actor_send(holder, "signal %s-c", name);
    shards_let_pass(300);
    move_all(&move);
    cluster_move_finish(&move);
    actor_expect(holder, "0");
    actor_expect(waiter, "0");
    actor_do(waiter, "0", "unlock %s", name);
}

/* ---- moves that fail --------------------------------------------------------------------- */

/* The operator gives up: the slot stays, and the keys that have moved come back. */
static void test_a_queue_goes_on_when_a_move_is_given_up(void **state)
{
    const char *name = shards_name(0, "stay");
    int node = shards_master(name);
    struct move move;

    (void)state;
    shards_begin_queue(name, LONG_LEASE);
    move = begin_move(name);
    cluster_move_abort(&move);
    move = begin_move(name);
    assert_true(cluster_move_step(&move));
    cluster_move_abort(&move);
    assert_int_equal(shards_master(name), node);
    shards_end_queue(name, actor_value(holder, "token %s", name));
}

/* The node that gets the slot stops while a key is on the way, and continues later. */
static void test_a_queue_goes_on_when_a_key_is_stuck_on_the_way(void **state)
{
    const char *name = shards_name(1, "stuck");
    struct move move;

    (void)state;
    shards_begin_queue(name, LONG_LEASE);
    move = begin_move(name);
    cluster_stop(the_cluster, move.to);
    assert_false(cluster_move_try(&move, 100));
    cluster_cont(the_cluster, move.to);
    cluster_heal(the_cluster);
    move_all(&move);
    cluster_move_finish(&move);
    shards_end_queue(name, actor_value(holder, "token %s", name));
}

/* ---- nodes that come and go -------------------------------------------------------------- */

/* The slot with a queue moves to a new node, and back; then the new node leaves the Cluster. */
static void test_a_queue_goes_on_when_a_node_comes_and_goes(void **state)
{
    const char *name = shards_name(2, "come");
    int node = shards_master(name), added;

    (void)state;
    shards_begin_queue(name, LONG_LEASE);
    added = cluster_add_node(the_cluster);
    cluster_move(the_cluster, shards_slot(name), added);
    wait_until(shards_inboxes(name) == 1);
    actor_do(holder, "0", "unlock %s", name);
    actor_expect(waiter, "0");
    actor_send(holder, "lock %s", name);
    wait_until(shards_waiters(name) == 1);
    cluster_move(the_cluster, shards_slot(name), node);
    cluster_forget_node(the_cluster, added);
    actor_do(waiter, "0", "unlock %s", name);
    actor_expect(holder, "0");
    actor_do(holder, "0", "unlock %s", name);
}

#define test(name) cmocka_unit_test_setup_teardown(name, shards_begin, shards_end)

/* A call that goes on after the move, but no longer than command_timeout. */
#define patient_test(name) cmocka_unit_test_setup_teardown(name, shards_begin_patient, shards_end)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        test(test_holds_are_renewed_through_a_whole_move),
        test(test_holds_are_renewed_through_the_first_move_to_a_new_node),
        test(test_a_node_can_be_used_when_its_lowest_slot_moves),
        test(test_tokens_rise_when_the_slot_moves_between_holds),
        test(test_a_waiter_owns_when_the_slot_has_moved),
        test(test_a_waiter_subscribes_again_when_the_slot_has_moved),
        patient_test(test_a_waiter_owns_when_the_holder_unlocks_half_way),
        test(test_a_new_lock_waits_for_the_end_of_a_move),
        test(test_processes_count_exactly_while_the_slot_moves_on),
        test(test_a_signal_wakes_when_the_slot_has_moved),
        patient_test(test_a_signal_given_half_way_wakes),
        test(test_a_queue_goes_on_when_a_move_is_given_up),
        test(test_a_queue_goes_on_when_a_key_is_stuck_on_the_way),
        test(test_a_queue_goes_on_when_a_node_comes_and_goes),
        cmocka_unit_test(test_nothing_is_left_on_the_nodes),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, cluster_group_setup, cluster_group_teardown);
}

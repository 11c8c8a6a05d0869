/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Lua scripts on two nodes of a Cluster: while the slot of the keys moves from node to node, a script is executed
 * as a whole or not at all, and renewals succeed.
 */
#include <stdio.h>
#include <string.h>

#include "scripts.h"

#define GROUP "t" /* of all keys */

static struct cluster cluster;
static struct move move; /* of the group's slot; `from` and `to` are set for each test */

/* The node that serves the slot, and the other node. */
static void use_from(void)
{
    scripts_use(cluster.nodes[move.from], true);
}

static void use_to(void)
{
    scripts_use(cluster.nodes[move.to], true);
}

static void begin_move(void)
{
    cluster_move_begin(&cluster, move.slot, move.to, &move);
}

/* A key of "t/x", or of "t/c", goes to the other node. */
static void move_key(const char *kind)
{
    bool is_of_condition = strcmp(kind, "cond") == 0 || strcmp(kind, "sleeper") == 0;

    assert_string_equal(side_text(cluster.nodes[move.from]->side, "MIGRATE 127.0.0.1 %d %s 0 5000",
                                  cluster.nodes[move.to]->port, key(kind, is_of_condition ? "c" : "x")),
                        "OK");
}

/* The next command is executed, though the slot has not come yet. */
static void ask(void)
{
    assert_string_equal(command("ASKING"), "OK");
}

static bool is_told(const char *answer, const char *word)
{
    return strncmp(answer, "error\n", 6) == 0 && strstr(answer, word);
}

static int group_setup(void **state)
{
    (void)state;
    cluster_start(&cluster, 2, false, CLUSTER_CALM_MS);
    return 0;
}

static int group_teardown(void **state)
{
    scripts_close();
    cluster_end(&cluster);
    (void)state;
    return 0;
}

/* Ends what a failed test has begun. */
static int setup(void **state)
{
    (void)state;
    inbox_close_all();
    move = (struct move){ .cluster = &cluster, .slot = cluster_slot(&cluster, GROUP) };
    for (int i = 0; i < 2; i++) {
        side_text(cluster.nodes[i]->side, "CLUSTER SETSLOT %d STABLE", move.slot);
        side_text(cluster.nodes[i]->side, "FLUSHALL");
    }
    move.from = cluster_master(&cluster, move.slot);
    move.to = 1 - move.from;
    use_from();
    return 0;
}

/* ---- inboxes ----------------------------------------------------------------------------- */

/* A handoff reaches the inbox of the group, and the waiter has the lock. */
static void test_scripts_message_a_sharded_inbox_when_the_node_is_of_a_cluster(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open_sharded("b");

    (void)state;
    assert_answer(acquire(&a, QUEUE), "owned");
    assert_answer(acquire(&b, QUEUE), "queued");
    assert_answer(release(&a, UNLOCKED), "released");
    assert_string_equal(owner("x"), "b:1");
    assert_memory_equal(inbox_messages(inbox), "granted 1 1 ", 12);
    inbox_close(inbox);
}

/* A subscriber of the usual kind is no inbox, also by the same name: PUBLISH reaches such subscribers of all nodes. */
static void test_scripts_pass_a_waiter_over_when_the_inbox_is_not_sharded(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open_channel(SHARDED_INBOX "b");

    (void)state;
    acquire(&a, QUEUE);
    acquire(&b, QUEUE);
    assert_answer(release(&a, UNLOCKED), "released");
    assert_string_equal(owner("x"), "");
    assert_string_equal(inbox_messages(inbox), "");
    assert_string_equal(line_of(poll_of(&b), 1), "owned");
    inbox_close(inbox);
}

/* The probe tries the commands for sharded inboxes. */
static void test_probe_names_the_command_when_the_right_to_sharded_messages_is_missing(void **state)
{
    static const struct {
        const char *rules, *word;
    } cases[] = { { "-spublish", " SPUBLISH failed" },
                  { "-pubsub", "PUBSUB SHARDNUMSUB failed" },
                  { "-exists", " EXISTS failed" } };

    (void)state;
    assert_true(number_of(probe(), 0) > 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        become(cases[i].rules);
        assert_non_null(strstr(probe(), cases[i].word));
        become_nobody_special();
    }
}

/* ---- the guard --------------------------------------------------------------------------- */

/* The commands of scripts since CONFIG RESETSTAT, but EXISTS, which is the guard's. */
static long long count_calls(void)
{
    static const char *const others[] = { "eval", "config", "info", "exists", "asking" };
    const char *line = command("INFO commandstats");
    long long sum = 0, calls;

    while ((line = strstr(line, "cmdstat_"))) {
        bool is_counted = sscanf(strchr(line, ':'), ":calls=%lld", &calls) == 1;

        line += strlen("cmdstat_");
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
            is_counted = is_counted && strncmp(line, others[i], strlen(others[i])) != 0;
        sum += is_counted ? calls : 0;
    }
    return sum;
}

/* "a" holds "t/x", "b" waits in the queue, and "s" on the condition "t/c": all six keys are there. */
static struct who a, b, s;

static void fill(void)
{
    a = who("a"), b = who("b"), s = who("s");
    fall_asleep(&s);
    assert_answer(acquire(&a, QUEUE), "owned");
    assert_answer(acquire(&b, QUEUE), "queued");
    command("HSET %s health 1", key("state", "x"));
}

static const char *call_acquire(void)
{
    struct who c = who("c");

    return acquire(&c, QUEUE);
}

static const char *call_try(void)
{
    struct who c = who("c");

    return acquire(&c, TRY);
}

static const char *call_cond_acquire(void)
{
    return cond_acquire(&s, QUEUE);
}

static const char *call_release(void)
{
    return release(&a, UNLOCKED);
}

static const char *call_release_died(void)
{
    return release(&a, DIED);
}

static const char *call_cond_release(void)
{
    return cond_release(&s, UNLOCKED);
}

static const char *call_cancel(void)
{
    return cancel(&b);
}

static const char *call_consistent(void)
{
    return consistent(&a);
}

static const char *call_force(void)
{
    return force("x");
}

static const char *call_drop(void)
{
    return drop("x", "clean");
}

static const char *call_info(void)
{
    return info("x");
}

static const char *call_poll(void)
{
    return poll_of(&b);
}

static const char *call_cond_poll(void)
{
    return cond_poll(&s);
}

static const char *call_cond_wait(void)
{
    struct who next = a;

    next.attempt++;
    return cond_wait(&next, a.attempt);
}

static const char *call_cond_cancel(void)
{
    return cond_cancel(&s);
}

static const char *call_cond_drop(void)
{
    return cond_drop("c", "look");
}

static const struct {
    const char *(*call)(void);
    const char *word; /* of the answer without a move */
} calls[] = {
    { call_acquire, "queued" },
    { call_try, "busy" },
    { call_cond_acquire, "queued" },
    { call_release, "released" },
    { call_release_died, "released" },
    { call_cond_release, "left" },
    { call_cancel, "left" },
    { call_consistent, "1" },
    { call_force, "broken" },
    { call_drop, "0" },
    { call_info, "a:1" },
    { call_poll, NULL },
    { call_cond_poll, NULL },
    { call_cond_wait, "waiting" },
    { call_cond_cancel, "queued" },
    { signal_one, "moved" },
    { call_cond_drop, "0" },
};

#define CALLS (sizeof calls / sizeof calls[0])

static void assert_called(size_t i)
{
    const char *answer = calls[i].call();

    if (calls[i].word)
        assert_string_equal(line_of(answer, 0), calls[i].word);
    else
        assert_true(number_of(answer, 0) > 0);
}

/* Even with all its keys there, a script is refused before its first command; after the move it is executed. */
static void test_scripts_do_nothing_when_their_slot_moves(void **state)
{
    (void)state;
    for (size_t i = 0; i < CALLS; i++) {
        struct inbox *inbox = inbox_open_sharded("b"), *sleeper = inbox_open_sharded("s");
        const char *before;

        fill();
        before = dump();
        begin_move();
        command("CONFIG RESETSTAT");
        if (!is_told(calls[i].call(), "TRYAGAIN the slot of dmutex:{" GROUP "}:"))
            fail_msg("script %zu is not refused by the guard", i);
        assert_int_equal(count_calls(), 0);
        assert_string_equal(dump(), before);
        assert_string_equal(inbox_messages(inbox), "");
        assert_string_equal(inbox_messages(sleeper), "");
        cluster_move_abort(&move);
        assert_called(i); /* the refusal came from the move */
        inbox_close(inbox);
        inbox_close(sleeper);
        command("FLUSHALL");
    }
}

/*
 * The control, which shows why the guard is needed: the script for one server notifies the next owner, takes the lock
 * away, and fails before the owner is recorded.
 */
static void test_scripts_break_in_the_middle_when_they_have_no_guard(void **state)
{
    struct inbox *inbox;
    const char *answer;

    (void)state;
    fill();
    scripts_use(cluster.nodes[move.from], false);
    inbox = inbox_open("b");
    begin_move();
    answer = release(&a, DIED);
    assert_true(is_told(answer, "non local key") || is_told(answer, "ASK") || is_told(answer, "TRYAGAIN"));
    assert_memory_equal(inbox_messages(inbox), "granted 1 1 ", 12);
    assert_string_equal(hold_of_leaf("x"), "");
    cluster_move_abort(&move);
    assert_int_equal(lifetime("lock", "x"), -2);
    inbox_close(inbox);
}

/* The importing node runs a script once all its keys have come, after ASKING; there is no inbox yet. */
static void test_scripts_are_whole_when_all_their_keys_have_moved(void **state)
{
    struct inbox *inbox = inbox_open_sharded("b");

    (void)state;
    fill();
    begin_move();
    while (cluster_move_step(&move))
        continue;
    assert_true(is_told(release(&a, DIED), "ASK "));
    use_to();
    ask();
    assert_answer(release(&a, DIED), "released");
    ask();
    assert_string_equal(hold_of_leaf("x"), "");
    use_from();
    assert_string_equal(inbox_messages(inbox), "");
    inbox_close(inbox);
    cluster_move_finish(&move);
    use_to();
    inbox = inbox_open_sharded("b");
    assert_true(number_of(poll_of(&b), 0) > 0);
    assert_string_equal(owner("x"), "b:1");
    inbox_close(inbox);
}

/* ---- renewals ---------------------------------------------------------------------------- */

/* A hold is confirmed before its slot moves, while all keys are still there, and where they have gone. */
static void test_renewals_go_on_when_the_slot_moves(void **state)
{
    (void)state;
    fill();
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 2);
    begin_move();
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 2);
    move_key("queue");
    move_key("waiter");
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 2);
    move_key("lock");
    move_key("state");
    assert_true(is_told(renew(&a, 1, "1"), "ASK "));
    use_to();
    assert_true(is_told(renew(&a, 1, "1"), "MOVED "));
    ask();
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 2);
    while (cluster_move_step(&move))
        continue;
    cluster_move_finish(&move);
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 2);
    assert_string_equal(owner("x"), "a:1");
}

/* A marked hold asks for its queue: unknown while the queue is on the other node, which counts as nobody waiting. */
static void test_renewals_go_on_when_the_queue_of_a_marked_hold_has_moved(void **state)
{
    (void)state;
    fill();
    a.mark = "+ ";
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 2);
    begin_move();
    move_key("queue");
    move_key("waiter");
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 1);
    while (cluster_move_step(&move))
        continue;
    cluster_move_finish(&move);
    use_to();
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 2);
}

/* Between the move of `state` and of the lock no node can confirm: "again", not "lost". */
static void test_renewals_are_put_off_when_lock_and_state_are_apart(void **state)
{
    const char *answer;

    (void)state;
    fill();
    begin_move();
    move_key("state");
    answer = renew(&a, 1, "1");
    assert_true(is_told(answer, "ASK ") || is_told(answer, "TRYAGAIN "));
    use_to();
    ask();
    assert_true(is_told(renew(&a, 1, "1"), "TRYAGAIN "));
    move_key("lock");
    ask();
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 2);
    cluster_move_abort(&move);
    use_from();
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 2);
}

int main(int argc, char **argv)
{
#define TEST(test) cmocka_unit_test_setup(test, setup)
    const struct CMUnitTest tests[] = {
        TEST(test_scripts_message_a_sharded_inbox_when_the_node_is_of_a_cluster),
        TEST(test_scripts_pass_a_waiter_over_when_the_inbox_is_not_sharded),
        TEST(test_probe_names_the_command_when_the_right_to_sharded_messages_is_missing),
        TEST(test_scripts_do_nothing_when_their_slot_moves),
        TEST(test_scripts_break_in_the_middle_when_they_have_no_guard),
        TEST(test_scripts_are_whole_when_all_their_keys_have_moved),
        TEST(test_renewals_go_on_when_the_slot_moves),
        TEST(test_renewals_go_on_when_the_queue_of_a_marked_hold_has_moved),
        TEST(test_renewals_are_put_off_when_lock_and_state_are_apart),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A quorum of three servers that are all well: holds, handoffs, deaths, tokens. */
#include <stdio.h>

#include "trio.h"

#define LONG_LEASE (10 * 60 * 1000)

/* The servers have not seen the scripts: the release goes to the last of them, too, once the others have answered. */
static void test_a_hold_is_on_every_server_and_excludes(void **state)
{
    (void)state;
    trio_init("q/all");
    side_set_control(trio[0]->side, "lease", LEASE / 2);
    actor_do(trio_holder, "0", "lock q/all");
    wait_until(trio_count("lock", "q/all") == TRIO);
    actor_do(trio_waiter, "EBUSY", "trylock q/all");
    actor_do(trio_holder, "0", "unlock q/all");
    wait_until(trio_count("lock", "q/all") == 0);
    assert_false(side_is_control_over(trio[0]->side, "lease")); /* else the lease may have ended the hold */
    actor_do(trio_waiter, "0", "trylock q/all");
    actor_do(trio_waiter, "0", "unlock q/all");
}

static void test_a_waiter_gets_the_lock_when_the_holder_unlocks(void **state)
{
    (void)state;
    trio_init("q/turn");
    actor_do(trio_holder, "0", "lock q/turn");
    actor_send(trio_waiter, "lock q/turn");
    wait_until(trio_waiters("q/turn") == 1);
    assert_true(actor_is_silent(trio_waiter));
    actor_do(trio_holder, "0", "unlock q/turn");
    actor_expect(trio_waiter, "0");
    wait_until(trio_count("lock", "q/turn") == TRIO);
    actor_do(trio_waiter, "0", "unlock q/turn");
    wait_until(trio_count("lock", "q/turn") == 0);
    assert_int_equal(trio_waiters("q/turn"), 0);
}

#define PAIRS 20
#define ROUNDS 10

/* The scripts that the server executes from the count on, once the last pair's have come: they may be late. */
static int64_t calls_from(int server, int64_t before)
{
    wait_until(side_calls(trio[server]->side, "evalsha") >= before + 2 * PAIRS);
    return side_calls(trio[server]->side, "evalsha") - before;
}

static bool costs_two_scripts(void)
{
    int64_t before[TRIO], calls = 0;

    wait_until(trio_count("lock", "q/cost") == 0);
    for (int i = 0; i < TRIO; i++)
        before[i] = side_calls(trio[i]->side, "evalsha");
    for (int i = 0; i < PAIRS; i++) {
        actor_do(trio_holder, "0", "lock q/cost");
        actor_do(trio_holder, "0", "unlock q/cost");
    }
    for (int i = 0; i < TRIO; i++)
        calls += calls_from(i, before[i]);
    return calls == TRIO * 2 * PAIRS;
}

/*
 * One question to each server for a lock, one for an unlock: two rounds, as with one server.  A hold that one server is
 * late to confirm is renewed soon, so on a busy machine some pairs cost a third script, and another round is tried.
 */
static void test_a_pair_costs_each_server_two_scripts(void **state)
{
    int rounds = 1;

    (void)state;
    trio_init("q/cost");
    actor_do(trio_holder, "0", "lock q/cost");
    wait_until(trio_count("lock", "q/cost") == TRIO);
    actor_do(trio_holder, "0", "unlock q/cost");
    while (!costs_two_scripts())
        assert_within(++rounds, 2, ROUNDS);
}

/* Of all servers. */
static int64_t count_scripts(void)
{
    int64_t calls = 0;

    for (int i = 0; i < TRIO; i++)
        calls += side_calls(trio[i]->side, "evalsha");
    return calls;
}

/* The scripts that all servers run while the lock goes from its owner to a waiter.  The two change their places. */
static int64_t count_scripts_of_handoff(struct actor **owner, struct actor **next, const char *name)
{
    int64_t calls = count_scripts();
    struct actor *former = *owner;

    actor_send(*next, "lock %s", name);
    wait_until(trio_waiters(name) == 1);
    actor_do(former, "0", "unlock %s", name);
    actor_expect(*next, "0");
    *owner = *next;
    *next = former;
    return count_scripts() - calls;
}

#define CHEAP_HANDOFFS 5

/*
 * Finding 109: a process that has met others takes a turn at once, also when it is younger than a lease.  So a handoff
 * is two scripts on each server, and one more for the queue; a process that tries all servers first needs twice as
 * many.  Others are remembered for 200 ms, so on a busy machine some handoffs are dear, and more are tried.
 */
static void test_handoffs_cost_the_same_when_the_processes_are_young(void **state)
{
    struct actor *owner = trio_holder, *next = trio_waiter;
    int cheap = 0;

    (void)state;
    actor_do(trio_holder, "0", "init q/young lease=%d fair", LONG_LEASE);
    actor_do(trio_waiter, "0", "init q/young lease=%d fair", LONG_LEASE);
    actor_do(owner, "0", "lock q/young");
    wait_until((cheap += count_scripts_of_handoff(&owner, &next, "q/young") <= 2 * TRIO + 1) >= CHEAP_HANDOFFS);
    actor_do(owner, "0", "unlock q/young");
}

/* The owner's lease ends on all servers, at different times; a robust waiter gets the death. */
static void test_a_death_is_reported_when_the_holder_was_killed(void **state)
{
    (void)state;
    actor_do(trio_holder, "0", "init q/death robust lease=1000");
    actor_do(trio_waiter, "0", "init q/death robust lease=1000");
    actor_do(trio_holder, "0", "lock q/death");
    actor_send(trio_waiter, "lock q/death");
    wait_until(trio_waiters("q/death") == 1);
    actor_kill(trio_holder);
    actor_expect(trio_waiter, "EOWNERDEAD");
    wait_until(trio_has_one_hold("q/death"));
    actor_do(trio_waiter, "0", "consistent q/death");
    actor_do(trio_waiter, "0", "unlock q/death");
    actor_do(trio_waiter, "0", "lock q/death");
    actor_do(trio_waiter, "0", "unlock q/death");
}

/* How many of the servers know that the lock was taken this many times: "<depth> <token>". */
static int count_depth(const char *name, int depth)
{
    int count = 0;

    for (int i = 0; i < TRIO; i++)
        count += side_int(trio[i]->side, "HGET %s depth", key_of("state", name)) == depth;
    return count;
}

/* The holder dies; the waiter owns on all servers, because another server would report the death once more (Q8). */
static void take_from_dead(const char *name, const char *options)
{
    actor_do(trio_holder, "0", "init %s lease=1000%s", name, options);
    actor_do(trio_waiter, "0", "init %s lease=60000%s", name, options);
    actor_do(trio_holder, "0", "lock %s", name);
    actor_kill(trio_holder);
    actor_do(trio_waiter, "EOWNERDEAD", "lock %s", name);
    wait_until(trio_has_one_hold(name));
}

/* All that the servers know of the hold stays: how often the lock was taken, and a mark for the holder. */
static void test_a_hold_is_unchanged_when_the_data_are_made_consistent(void **state)
{
    (void)state;
    take_from_dead("q/twice", " robust recursive");
    actor_do(trio_waiter, "0", "lock q/twice");
    actor_do(trio_waiter, "0", "renew q/twice");
    wait_until(count_depth("q/twice", 2) == TRIO);
    actor_do(trio_waiter, "0", "consistent q/twice");
    assert_int_equal(count_depth("q/twice", 2), TRIO);
    actor_do(trio_waiter, "0", "unlock q/twice");
    actor_do(trio_waiter, "0", "unlock q/twice");
}

static void test_a_mutex_is_not_recoverable_by_a_majority(void **state)
{
    (void)state;
    take_from_dead("q/lost", " robust");
    actor_do(trio_waiter, "0", "unlock q/lost");
    actor_do(trio_waiter, "ENOTRECOVERABLE", "lock q/lost");
    actor_do(trio_waiter, "ENOTRECOVERABLE", "trylock q/lost");
    actor_do(trio_waiter, "0", "destroy q/lost");
    actor_do(trio_waiter, "0", "init q/lost robust lease=1000");
    actor_do(trio_waiter, "0", "lock q/lost");
    actor_do(trio_waiter, "0", "unlock q/lost");
}

/* The tokens of three servers come from three clocks; a token that was returned is below all later tokens. */
static void test_tokens_rise_from_hold_to_hold(void **state)
{
    long long last = 0, token;

    (void)state;
    trio_init("q/token");
    for (int i = 0; i < 20; i++) {
        struct actor *actor = i % 2 ? trio_holder : trio_waiter;

        actor_do(actor, "0", "lock q/token");
        token = actor_value(actor, "token q/token");
        assert_true(token > last);
        last = token;
        actor_do(actor, "0", "unlock q/token");
    }
}

static void test_conditions_are_not_supported(void **state)
{
    (void)state;
    trio_init("q/m");
    actor_do(trio_holder, "0", "lock q/m");
    actor_do(trio_holder, "EOPNOTSUPP", "wait q/c q/m");
    actor_assert_words(trio_holder, "no condition variables");
    actor_do(trio_holder, "0", "unlock q/m");
    actor_do(trio_holder, "EOPNOTSUPP", "signal q/c");
}

/* Each may have one server of three for a moment: nobody waits forever, and two are never inside. */
static void test_three_rivals_take_turns(void **state)
{
    const int turns = repetitions(60);
    struct actor *rivals[3];
    char path[64];

    (void)state;
    rivals[0] = trio_holder;
    rivals[1] = trio_waiter;
    rivals[2] = actor_start_at(trio_url("?grace=off&" TIMES));
    snprintf(path, sizeof path, "%s/count", trio[0]->folder);
    actor_begin_count(path);
    for (int i = 0; i < 3; i++) {
        actor_do(rivals[i], "0", "init q/rivals lease=%d fair", LEASE);
        actor_send(rivals[i], "count %s %d q/rivals", path, turns);
    }
    for (int i = 0; i < 3; i++)
        assert_string_equal(actor_answer_of_count(rivals[i], path), "0");
    assert_int_equal(actor_counted(path), 3 * turns);
    actor_end(rivals[2]);
}

int main(int argc, char **argv)
{
#define USUAL(test) cmocka_unit_test_setup_teardown(test, trio_begin_test, trio_end_test)
    const struct CMUnitTest tests[] = {
        USUAL(test_a_hold_is_on_every_server_and_excludes),
        USUAL(test_a_waiter_gets_the_lock_when_the_holder_unlocks),
        cmocka_unit_test_setup_teardown(test_a_pair_costs_each_server_two_scripts, trio_begin_count, trio_end_test),
        USUAL(test_handoffs_cost_the_same_when_the_processes_are_young),
        USUAL(test_a_death_is_reported_when_the_holder_was_killed),
        USUAL(test_a_hold_is_unchanged_when_the_data_are_made_consistent),
        USUAL(test_a_mutex_is_not_recoverable_by_a_majority),
        USUAL(test_tokens_rise_from_hold_to_hold),
        USUAL(test_conditions_are_not_supported),
        USUAL(test_three_rivals_take_turns),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, trio_begin_group, trio_end_group);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A quorum whose servers are killed, stopped, flushed or empty: locks work without a minority, and nobody owns with
 * less than a majority.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trio.h"

/* ---- a minority fails -------------------------------------------------------------------- */

static void test_a_hold_goes_on_when_any_server_is_killed(void **state)
{
    (void)state;
    for (int i = 0; i < TRIO; i++) {
        char name[16];

        snprintf(name, sizeof name, "q/kill%d", i);
        trio_init(name);
        actor_do(trio_holder, "0", "lock %s", name);
        server_kill(trio[i]);
        actor_do(trio_holder, "0", "renew %s", name);
        actor_do(trio_waiter, "EBUSY", "trylock %s", name);
        actor_do(trio_holder, "0", "unlock %s", name);
        trio_lock_in_turns(name, 10);
        server_restart(trio[i]);
        server_reconnect(trio[i]);
        trio_lock_in_turns(name, 10);
        assert_int_equal(actor_losses(trio_holder), 0);
    }
}

/* Nothing is answered, and connections stay: the first command_timeout shows it, then the server is left out. */
static void test_locks_go_on_when_any_server_is_stopped(void **state)
{
    (void)state;
    for (int i = 0; i < TRIO; i++) {
        char name[16];

        snprintf(name, sizeof name, "q/stop%d", i);
        trio_init(name);
        trio_lock_in_turns(name, 2);
        server_stop(trio[i]);
        trio_lock_in_turns(name, 10);
        server_cont(trio[i]);
        trio_lock_in_turns(name, 10);
    }
}

static void test_a_waiter_gets_the_lock_when_any_server_is_killed(void **state)
{
    (void)state;
    for (int i = 0; i < TRIO; i++) {
        char name[16];

        snprintf(name, sizeof name, "q/wait%d", i);
        trio_init(name);
        actor_do(trio_holder, "0", "lock %s", name);
        actor_send(trio_waiter, "lock %s", name);
        wait_until(trio_waiters(name) == 1);
        server_kill(trio[i]);
        actor_do(trio_holder, "0", "unlock %s", name);
        actor_expect(trio_waiter, "0");
        actor_do(trio_waiter, "0", "unlock %s", name);
        server_restart(trio[i]);
        server_reconnect(trio[i]);
    }
}

/* The flushed server alone would grant the lock again. */
static void test_a_hold_excludes_when_any_server_is_flushed(void **state)
{
    (void)state;
    for (int i = 0; i < TRIO; i++) {
        char name[16];

        snprintf(name, sizeof name, "q/flush%d", i);
        trio_init(name);
        actor_do(trio_holder, "0", "lock %s", name);
        wait_until(trio_count("lock", name) == TRIO);
        side_text(trio[i]->side, "FLUSHALL");
        actor_do(trio_waiter, "EBUSY", "trylock %s", name);
        actor_do(trio_holder, "0", "unlock %s", name);
        trio_lock_in_turns(name, 4);
    }
}

/*
 * A server without data grants nothing before the holders have come back: with grace, and leases that the test waits
 * for.  The holder's renewal puts the hold back there, so the other two may even go down one after the other.
 */
static void test_a_hold_comes_back_when_the_servers_restart_empty_one_by_one(void **state)
{
    struct actor *owner = actor_start_at(trio_url("?" TIMES)), *other = actor_start_at(trio_url("?" TIMES));
    long long token;

    (void)state;
    actor_do(owner, "0", "init q/empty lease=4000 fair");
    actor_do(other, "0", "init q/empty lease=4000 fair");
    actor_do(owner, "0", "lock q/empty");
    token = actor_value(owner, "token q/empty");
    for (int i = 0; i < TRIO; i++) {
        wait_until(trio_count("lock", "q/empty") == TRIO);
        server_kill(trio[i]);
        server_restart(trio[i]);
        server_reconnect(trio[i]);
        actor_do(other, "EBUSY", "trylock q/empty");
    }
    wait_until(trio_count("lock", "q/empty") == TRIO);
    assert_int_equal(actor_losses(owner), 0);
    assert_true(actor_value(owner, "token q/empty") == token);
    actor_do(owner, "0", "unlock q/empty");
    actor_do(other, "0", "lock q/empty");
    assert_true(actor_value(other, "token q/empty") > token);
    actor_do(other, "0", "unlock q/empty");
    actor_end(owner);
    actor_end(other);
}

/* A server without its mark is new, for earlier clients and for those that come then. */
static void test_a_hold_excludes_when_all_servers_are_flushed(void **state)
{
    struct actor *owner = actor_start_at(trio_url("?" TIMES)), *old = actor_start_at(trio_url("?" TIMES)), *new;

    (void)state;
    actor_do(owner, "0", "init q/flushed lease=3000 fair");
    actor_do(old, "0", "init q/flushed lease=3000 fair");
    actor_do(owner, "0", "lock q/flushed");
    wait_until(trio_has_one_hold("q/flushed"));
    actor_do(old, "EBUSY", "trylock q/flushed");
    for (int i = 0; i < TRIO; i++)
        side_text(trio[i]->side, "FLUSHALL");
    assert_true(actor_value(old, "waiters q/flushed") == 0); /* by a script that may not write */
    actor_do(old, "EBUSY", "trylock q/flushed");
    new = actor_start_at(trio_url("?" TIMES));
    actor_do(new, "0", "init q/flushed lease=3000 fair");
    actor_do(new, "EBUSY", "trylock q/flushed");
    wait_until(trio_has_one_hold("q/flushed"));
    assert_int_equal(actor_losses(owner), 0);
    actor_do(owner, "0", "unlock q/flushed");
    actor_do(new, "0", "lock q/flushed");
    actor_do(new, "0", "unlock q/flushed");
    actor_end(owner);
    actor_end(old);
    actor_end(new);
}

/* The token that a majority has confirmed is on two servers at least; the next hold gets its own from any two. */
static void test_a_returned_token_is_on_a_majority(void **state)
{
    unsigned long long told;
    int known = 0;

    (void)state;
    trio_init("q/told");
    actor_do(trio_holder, "0", "lock q/told");
    told = (unsigned long long)actor_value(trio_holder, "token q/told") >> 12;
    for (int i = 0; i < TRIO; i++) {
        const char *text = side_text(trio[i]->side, "HGET %s token", key_of("state", "q/told"));

        known += text && strtoull(text, NULL, 10) >= told;
    }
    assert_true(known >= 2);
    actor_do(trio_holder, "0", "unlock q/told");
}

static unsigned long long token_on(int server, const char *name)
{
    return strtoull(side_text(trio[server]->side, "HGET %s token", key_of("state", name)), NULL, 10);
}

/* Two servers own, each with a token of its own clock: the higher one is on only one server, until a renewal. */
static void test_a_token_is_not_returned_when_no_majority_confirms_it(void **state)
{
    (void)state;
    trio_init("q/untold");
    server_kill(trio[0]);
    actor_do(trio_holder, "0", "lock q/untold");
    while (token_on(1, "q/untold") == token_on(2, "q/untold")) {
        actor_do(trio_holder, "0", "unlock q/untold");
        actor_do(trio_holder, "0", "lock q/untold");
    }
    server_kill(trio[1]);
    actor_do(trio_holder, "ENOLCK", "token q/untold");
    for (int i = 0; i < 2; i++) {
        server_restart(trio[i]);
        server_reconnect(trio[i]);
    }
}

/* ---- a majority fails -------------------------------------------------------------------- */

static void test_calls_say_who_is_missing_when_a_majority_is_down(void **state)
{
    (void)state;
    trio_init("q/down");
    trio_lock_in_turns("q/down", 2);
    server_kill(trio[0]);
    server_kill(trio[1]);
    actor_do(trio_holder, "ENOLCK", "trylock q/down");
    actor_assert_words(trio_holder, "2 of 3 servers");
    actor_do(trio_holder, "ETIMEDOUT", "timedlock q/down 100");
    actor_send(trio_holder, "lock q/down");
    server_restart(trio[1]);
    actor_expect(trio_holder, "0");
    server_restart(trio[0]);
    for (int i = 0; i < 2; i++)
        server_reconnect(trio[i]);
    actor_do(trio_holder, "0", "unlock q/down");
}

/* ---- seven servers ----------------------------------------------------------------------- */

#define SEVEN 7

/* Two processes take turns on these servers while three are killed; without a fourth server nobody has a turn. */
static void take_turns_on(struct server *const *seven)
{
    struct actor *actors[2];
    char url[400] = "redis+quorum://";
    long long token = 0;

    for (int i = 0; i < SEVEN; i++)
        snprintf(url + strlen(url), sizeof url - strlen(url), "%s127.0.0.1:%d", i ? "," : "", seven[i]->port);
    snprintf(url + strlen(url), sizeof url - strlen(url), "?grace=off&" TIMES);
    for (int i = 0; i < 2; i++) {
        actors[i] = actor_start_at(url);
        actor_do(actors[i], "0", "init q/seven lease=%d", LEASE);
    }
    for (int killed = 0; killed < SEVEN / 2; killed++) {
        struct actor *first = actors[killed % 2], *second = actors[1 - killed % 2];

        actor_do(first, "0", "lock q/seven");
        server_kill(seven[killed]);
        assert_true(actor_value(first, "token q/seven") > token);
        token = actor_value(first, "token q/seven");
        actor_do(second, "EBUSY", "trylock q/seven");
        actor_do(first, "0", "unlock q/seven");
    }
    server_kill(seven[SEVEN / 2]);
    actor_do(actors[0], "ENOLCK", "trylock q/seven");
    actor_assert_words(actors[0], "4 of 7 servers");
    for (int i = 0; i < 2; i++)
        actor_end(actors[i]);
}

static void test_locks_go_on_when_three_of_seven_servers_are_killed(void **state)
{
    struct server *seven[SEVEN];

    (void)state;
    for (int i = 0; i < SEVEN; i++)
        seven[i] = server_start_with(true, NULL);
    take_turns_on(seven);
    for (int i = 0; i < SEVEN; i++)
        server_end(seven[i]);
}

int main(int argc, char **argv)
{
#define USUAL(test) cmocka_unit_test_setup_teardown(test, trio_begin_test, trio_end_test)
    const struct CMUnitTest tests[] = {
        USUAL(test_a_hold_goes_on_when_any_server_is_killed),
        USUAL(test_locks_go_on_when_any_server_is_stopped),
        USUAL(test_a_waiter_gets_the_lock_when_any_server_is_killed),
        USUAL(test_a_hold_excludes_when_any_server_is_flushed),
        USUAL(test_a_hold_comes_back_when_the_servers_restart_empty_one_by_one),
        USUAL(test_a_hold_excludes_when_all_servers_are_flushed),
        USUAL(test_a_returned_token_is_on_a_majority),
        USUAL(test_a_token_is_not_returned_when_no_majority_confirms_it),
        USUAL(test_calls_say_who_is_missing_when_a_majority_is_down),
        cmocka_unit_test(test_locks_go_on_when_three_of_seven_servers_are_killed),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, trio_begin_group, trio_end_group);
}

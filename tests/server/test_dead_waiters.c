/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiters that die, are stopped or go deaf, and how little the others notice. */
#include <hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "pair.h"

#define SLACK 1000

/* A lease that ends soon, and that this machine keeps. */
static int brief_lease(void)
{
    return late_stretched_ms(300);
}

/* The test's own thread holds `name` by a lease that does not end. */
static void hold(const char *name)
{
    make_robust(&mutex, name, LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
}

/* Failure 16: a waiter that was killed is passed over at once; no waiter waits for the dead waiter's lease. */
static void test_the_next_waiter_owns_at_once_when_the_head_was_killed(void **state)
{
    int channels = side_count_channels(the_server->side);
    struct actor *dead, *next;

    (void)state;
    hold("queue/killed");
    dead = start_waiter("queue/killed", LONG_LEASE, 1);
    next = start_waiter("queue/killed", LONG_LEASE, 2);
    actor_kill(dead);
    actor_end(dead);
    wait_until(side_count_channels(the_server->side) == channels + 1);
    promise_within(AT_ONCE);
    assert_result(dmutex_unlock(&mutex), 0);
    actor_expect(next, "0");
    assert_kept();
    actor_do(next, "0", "unlock queue/killed");
    actor_end(next);
    wait_until(!is_locked(&mutex));
    side_text(the_server->side, "DEL %s %s", key_of("queue", "queue/killed"),
              key_of("waiter", "queue/killed")); /* the dead waiter's, for two leases */
}

/*
 * A monitor that hears every channel changes nothing: the killed waiter is passed over at once, and the next waiter
 * gets no death.
 */
static void test_the_next_waiter_owns_at_once_when_a_monitor_hears_the_killed_heads_message(void **state)
{
    struct redisContext *monitor = redisConnectUnix(the_server->path);
    int channels = side_count_channels(the_server->side);
    struct actor *dead, *next;

    (void)state;
    freeReplyObject(redisCommand(monitor, "PSUBSCRIBE *"));
    hold("queue/monitor");
    dead = start_waiter("queue/monitor", LONG_LEASE, 1);
    next = start_waiter("queue/monitor", LONG_LEASE, 2);
    actor_kill(dead);
    actor_end(dead);
    wait_until(side_count_channels(the_server->side) == channels + 1);
    promise_within(AT_ONCE);
    assert_result(dmutex_unlock(&mutex), 0);
    actor_expect(next, "0"); /* not EOWNERDEAD */
    assert_kept();
    actor_do(next, "0", "unlock queue/monitor");
    actor_end(next);
    wait_until(!is_locked(&mutex));
    redisFree(monitor);
    side_text(the_server->side, "DEL %s %s", key_of("queue", "queue/monitor"), key_of("waiter", "queue/monitor"));
}

/* A waiter that no longer speaks is passed over although its inbox is there. */
static void test_the_next_waiter_owns_at_once_when_the_head_is_stopped(void **state)
{
    struct actor *stopped, *next;
    int lease_ms = brief_lease();

    (void)state;
    hold("queue/stopped");
    stopped = start_waiter("queue/stopped", lease_ms, 1);
    next = start_waiter("queue/stopped", LONG_LEASE, 2);
    side_set_control(the_server->side, "silence", 4 * lease_ms);
    actor_stop(stopped);
    side_await_control(the_server->side, "silence");
    promise_within(AT_ONCE);
    assert_result(dmutex_unlock(&mutex), 0);
    actor_expect(next, "0");
    assert_kept();
    actor_cont(stopped);
    actor_do(next, "0", "unlock queue/stopped");
    actor_expect(stopped, "0");
    actor_do(stopped, "0", "unlock queue/stopped");
    actor_end(stopped);
    actor_end(next);
}

/* POSIX scenario 11: a waiter that dies with the grant on the way costs one lease of its own. */
static void test_the_next_waiter_owns_when_the_chosen_one_dies(void **state)
{
    struct actor *chosen, *next;
    int lease_ms = brief_lease();

    (void)state;
    hold("queue/chosen");
    chosen = start_waiter("queue/chosen", lease_ms, 1);
    next = start_waiter("queue/chosen", 3 * lease_ms, 2);
    actor_stop(chosen);
    promise_within(2 * lease_ms + SLACK);
    assert_result(dmutex_unlock(&mutex), 0);
    wait_until(waiters_of(&mutex) == 1); /* granted, and not heard */
    actor_kill(chosen);
    actor_end(chosen);
    actor_expect(next, "EOWNERDEAD");
    assert_kept();
    actor_do(next, "0", "consistent queue/chosen");
    actor_do(next, "0", "unlock queue/chosen");
    actor_end(next);
}

/* A waiter that is stopped for longer than the grant is good for asks again when going on. */
static void test_a_waiter_does_not_believe_an_old_grant_when_it_was_stopped(void **state)
{
    struct actor *stopped;

    (void)state;
    hold("queue/late");
    stopped = start_waiter("queue/late", brief_lease(), 1);
    actor_stop(stopped);
    assert_result(dmutex_unlock(&mutex), 0);
    wait_until(waiters_of(&mutex) == 0);
    wait_until(!is_locked(&mutex));                 /* the lease has ended */
    assert_result(dmutex_lock(&mutex), EOWNERDEAD); /* the dead waiter may have run */
    assert_result(dmutex_consistent(&mutex), 0);
    actor_cont(stopped);
    wait_until(waiters_of(&mutex) == 1); /* asked again, and waits */
    assert_true(actor_is_silent(stopped));
    assert_result(dmutex_unlock(&mutex), 0);
    actor_expect(stopped, "0");
    actor_do(stopped, "0", "unlock queue/late");
    actor_end(stopped);
}

/* Failure 17: live waiters keep their places however long the wait is. */
static void test_waiters_keep_their_order_when_they_wait_for_many_leases(void **state)
{
    struct actor *waiters[4];
    int lease_ms = brief_lease();

    (void)state;
    hold("queue/patient");
    for (int i = 0; i < 4; i++)
        waiters[i] = start_waiter("queue/patient", lease_ms + lease_ms / 4 * i, i + 1);
    side_set_control(the_server->side, "many", 5 * lease_ms);
    side_await_control(the_server->side, "many");
    assert_int_equal(waiters_of(&mutex), 4);
    assert_result(dmutex_unlock(&mutex), 0);
    for (int i = 0; i < 4; i++) {
        actor_expect(waiters[i], "0");
        for (int later = i + 1; later < 4; later++)
            assert_true(actor_is_silent(waiters[later]));
        actor_do(waiters[i], "0", "unlock queue/patient");
    }
    for (int i = 0; i < 4; i++)
        actor_end(waiters[i]);
}

/* Failure 17: a timed lock that ran out leaves no ghost in the queue. */
static void test_the_queue_is_empty_when_timed_locks_ran_out(void **state)
{
    struct actor *waiters[3];

    (void)state;
    hold("queue/timed");
    for (int i = 0; i < 3; i++) {
        waiters[i] = actor_start(the_server);
        actor_send(waiters[i], "timedlock queue/timed 100");
    }
    for (int i = 0; i < 3; i++)
        actor_expect(waiters[i], "ETIMEDOUT");
    assert_int_equal(waiters_of(&mutex), 0);
    assert_int_equal(
        side_int(the_server->side, "EXISTS %s %s", key_of("queue", "queue/timed"), key_of("waiter", "queue/timed")), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    for (int i = 0; i < 3; i++)
        actor_end(waiters[i]);
}

/* Failure 3: a killed owner's lock is had at the end of the lease, with 10 000 other keys to expire. */
static void test_a_waiter_owns_at_the_leases_end_when_the_server_has_many_keys_to_expire(void **state)
{
    struct actor *holder = actor_start(the_server), *waiters[4];
    int64_t commands, began_ms;
    int owners = 0;

    (void)state;
    side_text(the_server->side, "EVAL %s 0",
              "for i = 1, 10000 do redis.call('SET', 'control:' .. i, 1, "
              "'EX', 3600 + i) end return 1");
    make_robust(&mutex, "queue/expiry", LONG_LEASE);
    actor_do(holder, "0", "init queue/expiry robust lease=600");
    actor_do(holder, "0", "lock queue/expiry");
    for (int i = 0; i < 4; i++)
        waiters[i] = start_waiter("queue/expiry", LONG_LEASE, i + 1);
    promise_within(600 + SLACK);
    actor_kill(holder);
    actor_end(holder);
    commands = client_commands();
    began_ms = wait_now_ms();
    wait_until(!actor_is_silent(waiters[0]));
    commands = client_commands() - commands;
    assert_kept();
    actor_expect(waiters[0], "EOWNERDEAD");
    /* Two each: polls, and the requests that answers cause.  Later, a check of each connection in each second. */
    assert_within(commands, 1, 16 + 16 * ((wait_now_ms() - began_ms) / 1000));
    actor_do(waiters[0], "0", "consistent queue/expiry");
    for (int i = 0; i < 4; i++) {
        if (i > 0)
            actor_expect(waiters[i], "0");
        actor_do(waiters[i], "0", "unlock queue/expiry");
        owners++;
    }
    assert_int_equal(owners, 4);
    for (int i = 0; i < 4; i++)
        actor_end(waiters[i]);
    side_text(the_server->side, "EVAL %s 0", "for i = 1, 10000 do redis.call('DEL', 'control:' .. i) end return 1");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_next_waiter_owns_at_once_when_the_head_was_killed),
        cmocka_unit_test(test_the_next_waiter_owns_at_once_when_a_monitor_hears_the_killed_heads_message),
        cmocka_unit_test(test_the_next_waiter_owns_at_once_when_the_head_is_stopped),
        cmocka_unit_test(test_the_next_waiter_owns_when_the_chosen_one_dies),
        cmocka_unit_test(test_a_waiter_does_not_believe_an_old_grant_when_it_was_stopped),
        cmocka_unit_test(test_waiters_keep_their_order_when_they_wait_for_many_leases),
        cmocka_unit_test(test_the_queue_is_empty_when_timed_locks_ran_out),
        cmocka_unit_test(test_a_waiter_owns_at_the_leases_end_when_the_server_has_many_keys_to_expire),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

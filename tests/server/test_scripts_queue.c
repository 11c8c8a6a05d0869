/* SPDX-License-Identifier: BSD-2-Clause */
/* The Lua scripts: the queue, the served waiters, the waiters passed over, and the lives of keys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripts.h"

#define WEEK_MS (7 * 86400 * 1000LL)

/* ---- order ------------------------------------------------------------------------------- */

/* I8: waiters are served in the order of arrival, each notified once with all facts. */
static void test_waiters_are_served_in_the_order_of_arrival(void **state)
{
    struct who a = who("a"), w[5];
    struct inbox *inbox = inbox_open("w");

    (void)state;
    acquire(&a, TRY);
    for (int i = 0; i < 5; i++) {
        w[i] = who("w");
        w[i].thread = w[i].attempt = 5 - i;
        w[i].request = 10 + i;
        w[i].lease_ms = LEASE + i;
        assert_int_equal(number_of(acquire(&w[i], QUEUE), 1), i + 1);
    }
    release(&a, UNLOCKED);
    for (int i = 0; i < 5; i++) {
        char expected[80];

        snprintf(expected, sizeof expected, "granted %d %d %s %d 0 " SERVER_RUN, 5 - i, 10 + i, line_of(info("x"), 3),
                 LEASE + i);
        assert_string_equal(inbox_messages(inbox), expected);
        assert_answer(release(&w[i], UNLOCKED), "released");
    }
    assert_string_equal(owner("x"), "");
    assert_string_equal(inbox_messages(inbox), "");
    inbox_close(inbox);
}

/* A grant is for the waiter's own lease, not for the releaser's. */
static void test_a_grant_is_for_the_waiters_lease(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open("b");

    (void)state;
    a.lease_ms = 10 * LEASE;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    release(&a, UNLOCKED);
    assert_within(lifetime("lock", "x"), LEASE / 2, LEASE);
    assert_string_equal(line_of(poll_of(&b), 1), "owned");
    inbox_close(inbox);
}

/* A grant names the newest request that the server had. */
static void test_a_grant_names_the_newest_request(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open("b");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    b.request = 2;
    acquire(&b, QUEUE);
    b.request = 7;
    poll_of(&b);
    release(&a, UNLOCKED);
    assert_memory_equal(inbox_messages(inbox), "granted 1 7 ", 12);
    inbox_close(inbox);
}

/* A try does not come before the waiters: the free lock goes to the waiters. */
static void test_a_try_is_busy_when_others_wait_for_the_free_lock(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");
    struct inbox *inbox = inbox_open("b");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    end_lease("x");
    assert_answer(acquire(&c, TRY), "busy");
    assert_string_equal(owner("x"), "b:1");
    inbox_close(inbox);
}

/* A place is kept by the arrival number, which the server gave and no other attempt has. */
static void test_a_waiter_has_its_place_again_when_it_brings_its_arrival_back(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");

    (void)state;
    acquire(&a, TRY);
    snprintf(b.arrival, sizeof b.arrival, "%s", line_of(acquire(&b, QUEUE), 3));
    assert_true(number_of(acquire(&c, QUEUE), 3) > strtoll(b.arrival, NULL, 10));
    cancel(&b);
    b.attempt = 2;
    assert_int_equal(number_of(acquire(&b, QUEUE), 1), 1);
    assert_string_equal(line_of(acquire(&b, QUEUE), 3), b.arrival);
    assert_int_equal(number_of(acquire(&c, QUEUE), 1), 2);
}

/* A place that was brought back does not set the numbers back for newcomers. */
static void test_a_newcomer_is_last_when_an_old_arrival_was_brought_back(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c"), d = who("d");

    (void)state;
    command("HSET %s arrival 5000000000000000", key("state", "x"));
    acquire(&a, TRY);
    snprintf(b.arrival, sizeof b.arrival, "%s", line_of(acquire(&b, QUEUE), 3));
    acquire(&c, QUEUE);
    cancel(&b);
    b.attempt = 2;
    acquire(&b, QUEUE);
    assert_int_equal(number_of(acquire(&d, QUEUE), 1), 3);
}

/* Many in one microsecond, or with a clock that stands: no two have one number. */
static void test_arrivals_only_rise_when_the_clock_is_slow(void **state)
{
    struct who a = who("a");
    long long before = 5000000000000000;

    (void)state;
    command("HSET %s arrival 5000000000000000", key("state", "x"));
    acquire(&a, TRY);
    for (int i = 0; i < 20; i++) {
        struct who w = who("w");
        long long arrival;

        w.thread = w.attempt = i + 1;
        arrival = number_of(acquire(&w, QUEUE), 3);
        assert_true(arrival > before);
        before = arrival;
    }
}

/* The queue has a limit: a newcomer beyond it gets that answer, and no waiter is lost. */
static void test_acquire_is_full_when_ten_thousand_wait(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    run_script("for i = 1, 9999 do redis.call('ZADD', KEYS[1], 1000 + i, 'g:' .. i .. ':1') end", 1, key("queue", "x"),
               NULL);
    assert_answer(acquire(&c, QUEUE), "full");
    assert_int_equal(size_of("queue", "x"), 10000);
    assert_answer(acquire(&b, QUEUE), "queued");
    cancel(&b);
    assert_answer(acquire(&c, QUEUE), "queued");
}

/* ---- the silent and the dead ------------------------------------------------------------- */

/* A waiter that was not heard of for two thirds of a lease is passed over and keeps the place. */
static void test_a_silent_waiter_is_passed_over_and_keeps_its_place(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");
    struct inbox *of_b = inbox_open("b"), *of_c = inbox_open("c");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    acquire(&c, QUEUE);
    age(&b, LEASE * 2 / 3 + 1);
    release(&a, UNLOCKED);
    assert_string_equal(owner("x"), "c:1");
    assert_string_equal(inbox_messages(of_b), "");
    assert_int_equal(size_of("queue", "x"), 1);
    assert_string_equal(line_of(poll_of(&b), 1), "queued");
    release(&c, UNLOCKED);
    assert_string_equal(owner("x"), "b:1");
    inbox_close(of_b);
    inbox_close(of_c);
}

/* A waiter is silent after a second at the earliest, however short the lease is. */
static void test_a_waiter_of_a_short_lease_is_served_when_heard_of_within_a_second(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open("b");

    (void)state;
    b.lease_ms = 100;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    age(&b, 300);
    release(&a, UNLOCKED);
    assert_memory_equal(inbox_messages(inbox), "granted", 7);
    inbox_close(inbox);
}

/* After two leases the waiter is gone, and its late poll says so. */
static void test_a_waiter_is_removed_when_not_heard_of_for_two_leases(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    acquire(&c, QUEUE);
    age(&b, 2 * LEASE + 1);
    age(&c, 2 * LEASE - 1000);
    release(&a, UNLOCKED);
    assert_int_equal(size_of("queue", "x"), 1);
    assert_int_equal(command_number("HLEN %s", key("waiter", "x")), 1);
    assert_string_equal(line_of(poll_of(&b), 1), "unknown");
}

/* A waiter without an inbox at the moment is passed over and keeps the place. */
static void test_a_deaf_waiter_is_passed_over_and_keeps_its_place(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");
    struct inbox *inbox = inbox_open("c");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    acquire(&c, QUEUE);
    release(&a, UNLOCKED);
    assert_string_equal(owner("x"), "c:1");
    assert_string_equal(line_of(poll_of(&b), 1), "queued");
    assert_string_equal(line_of(poll_of(&b), 2), "1");
    inbox_close(inbox);
}

/*
 * A monitor that has subscribed to every channel is no waiter: a deaf waiter is passed over with the monitor as
 * without. By the short way of a release, by serve(), and by a signal.
 */
static void test_a_deaf_waiter_is_passed_over_when_a_monitor_hears_all(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c"), d = who("d");
    struct inbox *monitor = inbox_open_pattern("*"), *inbox = inbox_open("d");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    release(&a, UNLOCKED);
    assert_string_equal(owner("x"), "");
    acquire(&c, QUEUE);
    assert_string_equal(owner("x"), "c:1"); /* asks on its own, and b does not own */
    acquire(&d, QUEUE);
    release(&c, DIED);
    assert_string_equal(owner("x"), "d:1");
    cancel(&b);
    release(&d, UNLOCKED);
    b.attempt = d.attempt = 2;
    fall_asleep(&b);
    fall_asleep(&d);
    assert_answer(cond_signal("c", "x", 1, ""), "moved");
    assert_string_equal(owner("x"), "d:1");
    inbox_close(inbox);
    inbox_close(monitor);
}

/* I6: the head that asks is served by the answer, for any inbox. */
static void test_the_head_is_served_by_its_poll_when_it_is_deaf(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    release(&a, UNLOCKED);
    assert_string_equal(owner("x"), "");
    assert_string_equal(line_of(poll_of(&b), 1), "owned");
    assert_string_equal(owner("x"), "b:1");
    release(&b, UNLOCKED);
    b.attempt = 2;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    release(&a, UNLOCKED);
    assert_answer(acquire(&b, QUEUE), "owned");
}

/* I6: any poll of a free lock serves the waiters: a poll of a later waiter, or of no waiter. */
static void test_a_free_lock_is_granted_when_anybody_polls(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");
    struct inbox *inbox = inbox_open("b");

    (void)state;
    for (int way = 0; way < 3; way++) {
        b.attempt = c.attempt = a.attempt = way + 1;
        acquire(&a, TRY);
        acquire(&b, QUEUE);
        acquire(&c, QUEUE);
        end_lease("x");
        if (way == 0)
            assert_string_equal(line_of(poll_of(&c), 1), "queued");
        else if (way == 1)
            assert_string_equal(line_of(poll_serving("x"), 1), "unknown");
        else
            assert_answer(acquire(&c, QUEUE), "queued");
        assert_string_equal(owner("x"), "b:1");
        assert_memory_equal(inbox_messages(inbox), "granted", 7);
        cancel(&c);
        release(&b, UNLOCKED);
    }
    inbox_close(inbox);
}

/* A poll of an attempt that neither waits nor owns says so, and adds no waiter to the queue. */
static void test_a_poll_is_unknown_when_nobody_waits(void **state)
{
    struct who a = who("a"), b = who("b");
    const char *before;

    (void)state;
    acquire(&a, TRY);
    before = dump();
    assert_string_equal(line_of(poll_of(&b), 1), "unknown");
    assert_string_equal(dump(), before);
}

/* ---- wanted ------------------------------------------------------------------------------ */

/* A renewal says whether others want the lock, until nobody waits. */
static void test_a_renewal_says_wanted_while_others_wait(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    acquire(&a, TRY);
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 1);
    acquire(&b, TRY);
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 1);
    acquire(&b, QUEUE);
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 2);
    cancel(&b);
    release(&a, UNLOCKED);
    a.attempt = 2;
    acquire(&a, TRY);
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 1);
}

/* ---- lifetimes --------------------------------------------------------------------------- */

/* A queue lives for three leases after a waiter's last request, and not forever. */
static void test_a_queue_lives_for_three_leases_after_each_request(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    for (int way = 0; way < 3; way++) {
        assert_within(lifetime("queue", "x"), 3 * LEASE - LEASE / 2, 3 * LEASE);
        assert_within(lifetime("waiter", "x"), 3 * LEASE - LEASE / 2, 3 * LEASE);
        command("PEXPIRE %s 1000", key("queue", "x"));
        command("PEXPIRE %s 1000", key("waiter", "x"));
        if (way == 0)
            poll_of(&b);
        else if (way == 1)
            acquire(&b, QUEUE);
        else
            acquire(&c, QUEUE);
    }
    assert_within(lifetime("queue", "x"), 3 * LEASE - LEASE / 2, 3 * LEASE);
}

/* The longest lease among the waiters counts. */
static void test_a_queue_lives_for_the_longest_lease_when_they_differ(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");

    (void)state;
    b.lease_ms = 3600000;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    acquire(&c, QUEUE);
    poll_of(&c);
    assert_within(lifetime("queue", "x"), 2 * 3600000, 3 * 3600000);
    assert_within(lifetime("waiter", "x"), 2 * 3600000, 3 * 3600000);
}

/* The same when `state` was lost, and the waiters whom the queue is for were not: by the short way, and by the long. */
static void test_a_queue_lives_on_when_its_state_is_lost(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c"), d = who("d");

    (void)state;
    for (int way = 0; way < 2; way++) {
        command("FLUSHALL");
        b.lease_ms = 3600000;
        acquire(&a, TRY);
        acquire(&b, QUEUE);
        command("DEL %s", key("state", "x"));
        if (way == 0) { /* the next owner takes the lock without checking the queue, and the caller comes after it */
            command("DEL %s", key("lock", "x"));
            assert_answer(acquire(&d, QUEUE), "owned");
        }
        assert_int_equal(number_of(acquire(&c, QUEUE), 1), 2);
        assert_within(lifetime("queue", "x"), 2 * 3600000, 3 * 3600000);
        assert_within(lifetime("waiter", "x"), 2 * 3600000, 3 * 3600000);
    }
}

/* I10: `state` outlives the lock by a week, for any last writer; then nothing is left. */
static void test_a_state_lives_for_a_week(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    for (int way = 0; way < 4; way++) {
        command("FLUSHALL");
        if (way == 1)
            acquire(&b, QUEUE);
        if (way == 2)
            renew(&b, 1, "1000");
        if (way == 3) {
            acquire(&b, TRY);
            force("x");
        }
        acquire(&a, way ? QUEUE : TRY);
        assert_within(lifetime("state", "x"), WEEK_MS - LEASE, WEEK_MS);
        release(&a, UNLOCKED);
        assert_within(lifetime("state", "x"), WEEK_MS - LEASE, WEEK_MS);
    }
}

/* The same for a lock that is handed from one owner to the next for weeks, and never free or renewed. */
static void test_a_state_lives_for_a_week_more_when_the_lock_is_handed_over_a_day_later(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open("b");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    command("HINCRBY %s token -172800000000", key("state", "x"));
    command("PEXPIRE %s 1000000", key("state", "x"));
    assert_answer(release(&a, UNLOCKED), "released");
    assert_string_equal(owner("x"), "b:1");
    assert_true(lifetime("state", "x") > 600000000);
    inbox_close(inbox);
}

/* A lock that is renewed for longer than a week keeps its `state`. */
static void test_a_state_lives_on_when_the_hold_is_renewed(void **state)
{
    struct who a = who("a");

    (void)state;
    acquire(&a, TRY);
    command("PEXPIRE %s %d", key("state", "x"), 3 * 86400 * 1000);
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 1);
    assert_within(lifetime("state", "x"), WEEK_MS - LEASE, WEEK_MS);
}

/* I10: a lock that is used every day keeps its `state`, so that tokens keep rising. */
static void test_a_state_lives_on_when_used_another_day(void **state)
{
    struct who a = who("a");
    long long token;

    (void)state;
    token = number_of(acquire(&a, TRY), 1);
    release(&a, UNLOCKED);
    run_script("return redis.call('HSET', KEYS[1], 'token', ARGV[1])", 1, key("state", "x"), "1000000000000000", NULL);
    command("PEXPIRE %s 5000", key("state", "x"));
    a.attempt = 2;
    assert_true(number_of(acquire(&a, TRY), 1) >= token);
    assert_within(lifetime("state", "x"), WEEK_MS - LEASE, WEEK_MS);
}

/* I10: after release, cancel and drop a quiet name has a `state` only, an anonymous name nothing. */
static void test_nothing_but_the_state_is_left_when_all_is_over(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    cancel(&b);
    release(&a, UNLOCKED);
    assert_string_equal(command("KEYS *"), "dmutex:{t}:state:x");
    assert_string_equal(drop("x", "delete"), "1");
    assert_string_equal(command("KEYS *"), "");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(test_waiters_are_served_in_the_order_of_arrival),
        SCRIPT_TEST(test_a_grant_is_for_the_waiters_lease),
        SCRIPT_TEST(test_a_grant_names_the_newest_request),
        SCRIPT_TEST(test_a_try_is_busy_when_others_wait_for_the_free_lock),
        SCRIPT_TEST(test_a_waiter_has_its_place_again_when_it_brings_its_arrival_back),
        SCRIPT_TEST(test_a_newcomer_is_last_when_an_old_arrival_was_brought_back),
        SCRIPT_TEST(test_arrivals_only_rise_when_the_clock_is_slow),
        SCRIPT_TEST(test_acquire_is_full_when_ten_thousand_wait),
        SCRIPT_TEST(test_a_silent_waiter_is_passed_over_and_keeps_its_place),
        SCRIPT_TEST(test_a_waiter_of_a_short_lease_is_served_when_heard_of_within_a_second),
        SCRIPT_TEST(test_a_waiter_is_removed_when_not_heard_of_for_two_leases),
        SCRIPT_TEST(test_a_deaf_waiter_is_passed_over_and_keeps_its_place),
        SCRIPT_TEST(test_a_deaf_waiter_is_passed_over_when_a_monitor_hears_all),
        SCRIPT_TEST(test_the_head_is_served_by_its_poll_when_it_is_deaf),
        SCRIPT_TEST(test_a_free_lock_is_granted_when_anybody_polls),
        SCRIPT_TEST(test_a_poll_is_unknown_when_nobody_waits),
        SCRIPT_TEST(test_a_renewal_says_wanted_while_others_wait),
        SCRIPT_TEST(test_a_queue_lives_for_three_leases_after_each_request),
        SCRIPT_TEST(test_a_queue_lives_for_the_longest_lease_when_they_differ),
        SCRIPT_TEST(test_a_queue_lives_on_when_its_state_is_lost),
        SCRIPT_TEST(test_a_state_lives_for_a_week),
        SCRIPT_TEST(test_a_state_lives_for_a_week_more_when_the_lock_is_handed_over_a_day_later),
        SCRIPT_TEST(test_a_state_lives_on_when_the_hold_is_renewed),
        SCRIPT_TEST(test_a_state_lives_on_when_used_another_day),
        SCRIPT_TEST(test_nothing_but_the_state_is_left_when_all_is_over),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, scripts_group_setup, scripts_group_teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The Lua scripts of conditions: cond_signal for one waiter, and the remaining keys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripts.h"

#define AT_ONCE 256 /* of a broadcast */
#define MARK " @dmutex:{t}:cond:c "

/* The server's notes about a waiter in the queue of the mutex. */
static const char *entry_of(const char *id)
{
    return command("HGET %s %s", key("waiter", "x"), id);
}

/* ---- the addressed waiters --------------------------------------------------------------- */

/* No waiter, no signal: the call changes nothing, and no later waiter has any use of the signal. */
static void test_a_signal_is_for_none_when_nobody_waits(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    acquire(&b, TRY);
    for (int way = 0; way < 2; way++) { /* never waited on; all signalled */
        const char *before = dump();

        assert_answer(cond_signal("c", NULL, 1, ""), "none");
        assert_answer(signal_one(), "none");
        assert_answer(cond_signal("c", "x", AT_ONCE, ""), "none");
        assert_string_equal(dump(), before);
        if (way == 0) {
            release(&b, UNLOCKED);
            fall_asleep(&a);
            assert_string_equal(line_of(cond_poll(&a), 1), "waiting"); /* no stored credit */
            signal_one();
        }
    }
}

/* A caller that does not know the mutex, or has a wrong one, gets the mutex, and nothing has happened. */
static void test_a_signal_gets_the_mutex_when_it_does_not_know_it(void **state)
{
    struct who a = who("a");
    const char *before;

    (void)state;
    fall_asleep(&a);
    before = dump();
    for (int most = 1; most <= AT_ONCE; most += AT_ONCE - 1) {
        const char *answer = cond_signal("c", NULL, most, "");

        assert_answer(answer, "bound");
        assert_string_equal(line_of(answer, 1), "nt/x");
        assert_string_equal(cond_signal("c", "y", most, ""), answer);
    }
    assert_string_equal(dump(), before);
}

/* ---- one --------------------------------------------------------------------------------- */

/* I5: from the condition to the queue of the mutex, notified, and carrying the signal. */
static void test_a_signal_moves_a_waiter_to_the_queue_when_the_mutex_is_held(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");
    struct inbox *inbox = inbox_open("a");
    const char *answer, *message;

    (void)state;
    fall_asleep(&a);
    acquire(&b, TRY);
    acquire(&c, QUEUE);
    answer = signal_one();
    assert_moved(answer, 0, 0);
    assert_string_equal(line_of(answer, 1), newest());
    message = inbox_messages(inbox);
    assert_memory_equal(message, "signalled 2 2 ", 14);
    assert_within(atoll(message + 14), LEASE / 2, LEASE);
    assert_int_equal(sleepers(), 0);
    assert_int_equal(command_number("HEXISTS %s a:1:2", key("sleeper", "c")), 0);
    assert_non_null(strstr(entry_of("a:1:2"), MARK));
    assert_string_equal(line_of(cond_poll(&a), 1), "queued");
    assert_string_equal(line_of(cond_poll(&a), 2), "2");
    assert_string_equal(owner("x"), "b:1");
    inbox_close(inbox);
}

/* A free mutex is the waiter's at once, for the waiter's own lease. */
static void test_a_signal_grants_the_mutex_when_it_is_free(void **state)
{
    struct who a = who("a");
    struct inbox *inbox = inbox_open("a");
    char expected[100];

    (void)state;
    a.request = 7;
    a.lease_ms = LEASE / 2;
    fall_asleep(&a);
    assert_moved(signal_one(), 0, 0);
    snprintf(expected, sizeof expected, "granted 2 7 %s %d 0 " SERVER_RUN, command("HGET %s token", key("state", "x")),
             LEASE / 2);
    assert_string_equal(inbox_messages(inbox), expected);
    assert_string_equal(owner("x"), "a:1");
    assert_within(lifetime("lock", "x"), LEASE / 4, LEASE / 2);
    assert_int_equal(queued(), 0);
    inbox_close(inbox);
}

/* POSIX: a signal is for one waiter, also when the same message comes twice. */
static void test_a_signal_moves_one_when_many_wait(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    for (int i = 1; i <= 5; i++) {
        a.thread = i;
        a.attempt = 1;
        fall_asleep(&a);
    }
    acquire(&b, TRY);
    for (int signals = 1; signals <= 5; signals++) {
        assert_answer(signal_one(), "moved");
        assert_int_equal(sleepers(), 5 - signals);
        assert_int_equal(queued(), signals);
    }
    assert_answer(signal_one(), "none");
}

/* First come, first signalled; and the waiters own the mutex in that order. */
static void test_waiters_are_signalled_in_the_order_of_arrival(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open("a");
    static const int order[] = { 3, 1, 2 };

    (void)state;
    for (int i = 0; i < 3; i++) {
        a.thread = order[i];
        a.attempt = 1;
        fall_asleep(&a);
    }
    acquire(&b, TRY);
    for (int i = 0; i < 3; i++)
        signal_one();
    release(&b, UNLOCKED);
    for (int i = 0; i < 3; i++) {
        a.thread = order[i];
        a.attempt = 2;
        assert_string_equal(line_of(cond_poll(&a), 1), "owned");
        cond_release(&a, UNLOCKED);
    }
    inbox_close(inbox);
}

/*
 * POSIX: a waiter that comes after the signal has no part in the signal, though the newcomer hears and the other does
 * not.
 */
static void test_a_later_waiter_has_no_part_in_a_signal(void **state)
{
    struct who a = who("a"), late = who("late");
    struct inbox *inbox = inbox_open("late");

    (void)state;
    fall_asleep(&a);
    acquire(&late, TRY);
    signal_one();
    late.attempt = 2;
    assert_answer(cond_wait(&late, 1), "waiting");
    assert_string_equal(line_of(cond_poll(&late), 1), "waiting");
    assert_string_equal(owner("x"), "");
    assert_string_equal(line_of(cond_poll(&a), 1), "owned");
    assert_answer(cond_release(&a, UNLOCKED), "released");
    assert_string_equal(line_of(cond_poll(&late), 1), "waiting");
    assert_string_equal(inbox_messages(inbox), "");
    inbox_close(inbox);
}

/* A signalled waiter comes after earlier requests for the mutex, and before later ones. */
static void test_a_moved_waiter_has_its_place_by_the_time_of_the_signal(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c"), d = who("d");

    (void)state;
    fall_asleep(&a);
    acquire(&b, TRY);
    acquire(&c, QUEUE);
    signal_one();
    acquire(&d, QUEUE);
    assert_string_equal(command("ZRANGE %s 0 -1", key("queue", "x")), "c:1:1\na:1:2\nd:1:1");
}

/* I8: the queue comes first also when the signal finds the mutex free. */
static void test_a_signal_serves_those_in_the_queue_first(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");
    struct inbox *of_a = inbox_open("a"), *of_c;

    (void)state;
    fall_asleep(&a);
    acquire(&b, TRY);
    acquire(&c, QUEUE);
    release(&b, UNLOCKED); /* c does not hear the message */
    of_c = inbox_open("c");
    assert_moved(signal_one(), 0, 0);
    assert_string_equal(owner("x"), "c:1");
    assert_memory_equal(inbox_messages(of_a), "signalled 2 2 ", 14);
    inbox_close(of_a);
    inbox_close(of_c);
}

/* The owner's next renewal says that another wants the mutex. */
static void test_a_moved_waiter_wants_the_mutex(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    fall_asleep(&a);
    acquire(&b, TRY);
    assert_int_equal(number_of(renew(&b, 1, "1"), 1), 1);
    signal_one();
    assert_int_equal(number_of(renew(&b, 1, "1"), 1), 2);
}

/* If a signal finds the owner dead, this is a death, and the waiter that owns next gets it. */
static void test_a_signal_finds_a_death_when_the_lease_ended(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open("a");

    (void)state;
    fall_asleep(&a);
    acquire(&b, TRY);
    end_lease("x");
    signal_one();
    assert_string_equal(owner("x"), "a:1");
    assert_string_equal(command("HGET %s health", key("state", "x")), "1");
    assert_string_equal(line_of(cond_poll(&a), 3), "1");
    inbox_close(inbox);
}

/* No thread can own the mutex: the waiters, sixteen at a time, get the message to ask, and stay. */
static void test_a_signal_makes_all_ask_when_the_mutex_is_not_recoverable(void **state)
{
    struct inbox *inbox = inbox_open("g");
    const char *before, *messages;

    (void)state;
    command("HSET %s health 2", key("state", "x"));
    enter_sleepers("g", "c", 20, 0);
    before = dump();
    for (int most = 1; most <= AT_ONCE; most += AT_ONCE - 1) {
        assert_moved(cond_signal("c", "x", most, ""), 0, 0);
        messages = inbox_messages(inbox);
        for (int i = 0; i < 16; i++)
            assert_string_equal(line_of(messages, i), "ask 1");
        assert_string_equal(line_of(messages, 16), "");
    }
    assert_string_equal(dump(), before);
    inbox_close(inbox);
}

/* ---- the deaf, the silent and the gone --------------------------------------------------- */

/* A waiter with an unread inbox is passed over while another hears. */
static void test_a_signal_passes_a_deaf_waiter_when_another_hears(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open("b");

    (void)state;
    fall_asleep(&a);
    fall_asleep(&b);
    signal_one();
    assert_string_equal(owner("x"), "b:1");
    assert_string_equal(line_of(cond_poll(&a), 1), "waiting");
    inbox_close(inbox);
}

/* A waiter that was not heard of for a while is passed over, for any inbox. */
static void test_a_signal_passes_a_silent_waiter_when_another_was_heard_of(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *of_a = inbox_open("a"), *of_b = inbox_open("b");

    (void)state;
    fall_asleep(&a);
    fall_asleep(&b);
    age_sleeper(&a, LEASE * 2 / 3 + 1);
    signal_one();
    assert_string_equal(inbox_messages(of_a), "");
    assert_string_equal(owner("x"), "b:1");
    assert_string_equal(line_of(cond_poll(&a), 1), "waiting");
    inbox_close(of_a);
    inbox_close(of_b);
}

/* When none hears the first is moved all the same, and finds out by a poll. */
static void test_a_signal_moves_the_first_when_nobody_hears(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    fall_asleep(&a);
    fall_asleep(&b);
    age_sleeper(&a, LEASE);
    assert_answer(signal_one(), "moved");
    assert_int_equal(sleepers(), 1);
    assert_string_equal(owner("x"), "");
    assert_string_equal(line_of(cond_poll(&a), 1), "owned");
}

/* A gone waiter has no use for a signal: the signal goes to the next, and the gone are forgotten. */
static void test_a_signal_forgets_those_who_are_gone(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    enter_sleepers("g", "c", 40, 2 * LEASE + 1000);
    command("HSET %s g:1:1 junk", key("sleeper", "c"));
    command("HDEL %s g:2:1", key("sleeper", "c"));
    fall_asleep(&a);
    acquire(&b, TRY);
    assert_answer(signal_one(), "moved");
    assert_string_equal(command("ZRANGE %s 0 -1", key("queue", "x")), "a:1:2");
    assert_int_equal(sleepers(), 0);
    assert_int_equal(size_of("sleeper", "c"), 2); /* mutex, arrival */
}

/* However many waiters that are gone come first, one signal moves a living waiter, by calls of bounded work. */
static void test_a_signal_passes_more_gone_waiters_than_one_call_looks_at(void **state)
{
    struct who b = who("b");

    (void)state;
    for (int live = 1; live <= 300; live += 299) {
        const char *answer;
        int calls = 0;

        command("FLUSHALL");
        acquire(&b, TRY);
        enter_sleepers("gone", "c", 600, 2 * LEASE + 1000);
        enter_sleepers("g", "c", live, 0);
        do {
            answer = signal_one();
            assert_answer(answer, "moved");
            assert_true(++calls <= 3);
        } while (number_of(answer, 2) == 1);
        assert_string_equal(command("ZRANGE %s 0 -1", key("queue", "x")), "g:1:1");
    }
}

/* If sixteen in the queue do not hear, the caller learns that there may be more. */
static void test_a_signal_says_more_when_the_next_sixteen_are_deaf(void **state)
{
    struct who a = who("a"), b = who("b"), w = who("w");

    (void)state;
    fall_asleep(&a);
    acquire(&b, TRY);
    for (int i = 1; i <= 32; i++) {
        w.thread = i;
        acquire(&w, QUEUE);
    }
    release(&b, UNLOCKED); /* checks the first 16 */
    assert_moved(signal_one(), 0, 1);
    assert_string_equal(owner("x"), "");
}

/* ---- what a signal leaves ---------------------------------------------------------------- */

/* The signal is part of the resulting hold, until the owner gives the hold back. */
static void test_a_hold_carries_the_signal_until_it_is_given_back(void **state)
{
    struct who a = who("a");
    struct inbox *inbox = inbox_open("a");
    const char *hold;

    (void)state;
    fall_asleep(&a);
    signal_one();
    hold = hold_of_leaf("x");
    assert_memory_equal(hold, "a:1:2 60000" MARK, strlen("a:1:2 60000" MARK));
    assert_true(number_of(renew(&a, 1, "1"), 1) > 0);
    assert_non_null(strstr(hold_of_leaf("x"), MARK));
    release(&a, UNLOCKED);
    assert_string_equal(hold_of_leaf("x"), "");
    inbox_close(inbox);
}

/* The same when the mutex comes by a release, an acquire or a poll, with a queue or without. */
static void test_a_hold_carries_the_signal_when_it_was_handed_on(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        struct who a = who("a"), b = who("b");
        struct inbox *inbox = inbox_open(way < 2 ? "a" : "nobody");

        command("FLUSHALL");
        fall_asleep(&a);
        acquire(&b, TRY);
        signal_one();
        release(&b, way == 0 ? UNLOCKED : DIED);
        if (way == 2)
            acquire(&a, QUEUE);
        if (way == 3)
            cond_poll(&a);
        assert_string_equal(owner("x"), "a:1");
        assert_non_null(strstr(hold_of_leaf("x"), MARK));
        inbox_close(inbox);
    }
}

/* The queue with a signal inside outlives the short lease of the carrier. */
static void test_the_queue_lives_three_of_the_longest_leases_when_a_signal_is_in_it(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    a.lease_ms = 300;
    fall_asleep(&a);
    acquire(&b, TRY);
    signal_one();
    cond_poll(&a);
    assert_within(lifetime("queue", "x"), 2 * 3600000, 3 * 3600000);
    assert_within(lifetime("waiter", "x"), 2 * 3600000, 3 * 3600000);
}

/* I10: a `state` that expired during the wait is rewritten, and expires again. */
static void test_a_state_ends_when_a_signal_has_rewritten_it(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        struct who a = who("a"), c = who("c");

        command("FLUSHALL");
        fall_asleep(&a);
        fall_asleep(&c);
        if (way == 2)
            signal_one();
        command("DEL %s", key("state", "x"));
        if (way == 0)
            signal_one();
        if (way == 1)
            cond_cancel(&a);
        if (way == 2) {
            age(&a, 2 * LEASE + 1000); /* the signal of a is owed */
            poll_serving("x");
        }
        assert_within(lifetime("state", "x"), 1, 7 * 86400 * 1000LL);
    }
}

/* Numbers are written out whole where Lua would write an exponent. */
static void test_numbers_are_whole_when_they_are_large(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open("a");

    (void)state;
    command("HSET %s token 3000000000000000 arrival 6000000000000000", key("state", "x"));
    command("HSET %s arrival 7000000000000000", key("sleeper", "c"));
    a.thread = 9007199254740993;
    a.attempt = 9223372036854775805;
    a.request = 9007199254740995;
    fall_asleep(&a);
    acquire(&b, TRY);
    assert_string_equal(line_of(signal_one(), 1), "7000000000000001");
    assert_string_equal(command("HGET %s arrival", key("state", "x")), "6000000000000001");
    assert_memory_equal(inbox_messages(inbox), "signalled 9223372036854775806 1 ", 32);
    release(&b, UNLOCKED);
    assert_string_equal(owner("x"), "a:9007199254740993");
    assert_string_equal(line_of(cond_poll(&a), 2), "3000000000000003");
    assert_string_equal(inbox_messages(inbox), "granted 9223372036854775806 9007199254740995 "
                                               "3000000000000003 60000 0 " SERVER_RUN);
    inbox_close(inbox);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(test_a_signal_is_for_none_when_nobody_waits),
        SCRIPT_TEST(test_a_signal_gets_the_mutex_when_it_does_not_know_it),
        SCRIPT_TEST(test_a_signal_moves_a_waiter_to_the_queue_when_the_mutex_is_held),
        SCRIPT_TEST(test_a_signal_grants_the_mutex_when_it_is_free),
        SCRIPT_TEST(test_a_signal_moves_one_when_many_wait),
        SCRIPT_TEST(test_waiters_are_signalled_in_the_order_of_arrival),
        SCRIPT_TEST(test_a_later_waiter_has_no_part_in_a_signal),
        SCRIPT_TEST(test_a_moved_waiter_has_its_place_by_the_time_of_the_signal),
        SCRIPT_TEST(test_a_signal_serves_those_in_the_queue_first),
        SCRIPT_TEST(test_a_moved_waiter_wants_the_mutex),
        SCRIPT_TEST(test_a_signal_finds_a_death_when_the_lease_ended),
        SCRIPT_TEST(test_a_signal_makes_all_ask_when_the_mutex_is_not_recoverable),
        SCRIPT_TEST(test_a_signal_passes_a_deaf_waiter_when_another_hears),
        SCRIPT_TEST(test_a_signal_passes_a_silent_waiter_when_another_was_heard_of),
        SCRIPT_TEST(test_a_signal_moves_the_first_when_nobody_hears),
        SCRIPT_TEST(test_a_signal_forgets_those_who_are_gone),
        SCRIPT_TEST(test_a_signal_passes_more_gone_waiters_than_one_call_looks_at),
        SCRIPT_TEST(test_a_signal_says_more_when_the_next_sixteen_are_deaf),
        SCRIPT_TEST(test_a_hold_carries_the_signal_until_it_is_given_back),
        SCRIPT_TEST(test_a_hold_carries_the_signal_when_it_was_handed_on),
        SCRIPT_TEST(test_the_queue_lives_three_of_the_longest_leases_when_a_signal_is_in_it),
        SCRIPT_TEST(test_a_state_ends_when_a_signal_has_rewritten_it),
        SCRIPT_TEST(test_numbers_are_whole_when_they_are_large),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, scripts_group_setup, scripts_group_teardown);
}

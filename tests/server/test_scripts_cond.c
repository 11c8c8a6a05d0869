/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Lua scripts of conditions: cond_wait, which gives the mutex up, and the answers to a repeated call. In all of
 * these tests "a" waits; attempt 1 of "a" was the hold, attempt 2 waits.
 */
#include <stdio.h>
#include <string.h>

#include "scripts.h"

#define THREE_LEASES (3 * LEASE)

/* The place of an attempt of thread 1 of the process: in the queue, on the condition, or "". */
static const char *rank(const char *kind, const char *uuid, int attempt)
{
    return command("ZRANK %s %s:1:%d", key(kind, kind[0] == 'c' ? "c" : "x"), uuid, attempt);
}

/* ---- a wait ------------------------------------------------------------------------------ */

/* The new attempt is on the condition, the hold is gone, and there is nothing else. */
static void test_a_wait_is_on_the_condition_and_its_mutex_is_free(void **state)
{
    struct who a = who("a");
    const char *answer;

    (void)state;
    acquire(&a, TRY);
    a.attempt = 2;
    answer = cond_wait(&a, 1);
    assert_answer(answer, "waiting");
    assert_int_equal(number_of(answer, 1), 0);
    assert_string_equal(rank("cond", "a", 2), "0");
    assert_string_equal(command("HGET %s mutex", key("sleeper", "c")), "nt/x");
    assert_string_equal(command("HGET %s arrival", key("sleeper", "c")), command("ZSCORE %s a:1:2", key("cond", "c")));
    assert_int_equal(command_number("EXISTS %s %s %s", key("lock", "x"), key("queue", "x"), key("waiter", "x")), 0);
    assert_string_equal(hold_of_leaf("x"), "");
}

/* The mutex goes to the first waiter for the mutex, in the same script, as by a release. */
static void test_a_wait_grants_the_mutex_to_its_first_waiter(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");
    struct inbox *inbox = inbox_open("b");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    acquire(&c, QUEUE);
    a.attempt = 2;
    assert_answer(cond_wait(&a, 1), "waiting");
    assert_string_equal(owner("x"), "b:1");
    assert_memory_equal(inbox_messages(inbox), "granted 1 1 ", 12);
    assert_int_equal(size_of("queue", "x"), 1);
    inbox_close(inbox);
}

/* If the first 16 do not hear, the waiter learns that a poll must serve the rest. */
static void test_a_wait_says_more_when_the_first_sixteen_are_deaf(void **state)
{
    (void)state;
    for (int deaf = 15; deaf <= 16; deaf++) {
        struct who a = who("a"), w = who("w");

        command("FLUSHALL");
        acquire(&a, TRY);
        for (int i = 1; i <= deaf; i++) {
            w.thread = i;
            acquire(&w, QUEUE);
        }
        a.attempt = 2;
        assert_int_equal(number_of(cond_wait(&a, 1), 1), deaf == 16);
        assert_string_equal(owner("x"), "");
    }
}

/* At any depth, the mutex is given up whole; the depth is counted up again after. */
static void test_a_wait_gives_up_all_of_a_recursive_hold(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open("a");

    (void)state;
    acquire(&a, TRY);
    renew(&a, 3, "1");
    assert_int_equal(number_of(info("x"), 1), 3);
    a.attempt = 2;
    cond_wait(&a, 1);
    assert_answer(acquire(&b, TRY), "owned");
    cond_signal("c", "x", 1, "");
    release(&b, UNLOCKED);
    assert_int_equal(number_of(info("x"), 1), 1);
    assert_true(number_of(renew(&a, 3, "1"), 1) > 0);
    assert_int_equal(number_of(info("x"), 1), 3);
    inbox_close(inbox);
}

/* I2: a returning waiter has a higher token than the hold that was given up, and than any token seen. */
static void test_the_token_rises_when_a_waiter_comes_back(void **state)
{
    struct who a = who("a");
    struct inbox *inbox = inbox_open("a");
    long long token;

    (void)state;
    token = number_of(acquire(&a, TRY), 1);
    a.attempt = 2;
    cond_wait(&a, 1);
    cond_signal("c", "x", 1, "");
    assert_true(number_of(cond_poll(&a), 2) > token);
    a.attempt = 3;
    a.seen = "3000000000000000";
    cond_wait(&a, 2);
    cond_signal("c", "x", 1, "");
    assert_string_equal(line_of(cond_poll(&a), 2), "3000000000000001");
    inbox_close(inbox);
}

/* A renewal that comes late does not bring back the hold that the wait has ended. */
static void test_a_late_renewal_is_lost_when_its_thread_waits(void **state)
{
    struct who a = who("a"), hold = who("a");
    const char *before;

    (void)state;
    fall_asleep(&a);
    before = dump();
    assert_int_equal(number_of(renew(&hold, 1, "1"), 1), 0);
    assert_answer(release(&hold, UNLOCKED), "notowner");
    assert_answer(release(&hold, DIED), "notowner");
    assert_string_equal(dump(), before);
}

/* An unnoticed end of the hold's lease was no death: the hold is given up here. */
static void test_a_wait_is_no_death_when_the_lease_had_ended(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    acquire(&a, TRY);
    end_lease("x");
    a.attempt = 2;
    assert_answer(cond_wait(&a, 1), "waiting");
    assert_int_equal(number_of(acquire(&b, TRY), 2), 0);
}

/* A robust owner that never called consistent makes the mutex not recoverable by a wait, as by an unlock. */
static void test_a_wait_makes_the_mutex_not_recoverable_when_asked_to(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open("b");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    a.attempt = 2;
    assert_answer(cond_wait_ending(&a, 1, NOT_RECOVERABLE), "notrecoverable");
    assert_string_equal(inbox_messages(inbox), "ask 1");
    assert_string_equal(owner("x"), "");
    assert_int_equal(sleepers(), 0);
    assert_string_equal(line_of(poll_of(&b), 1), "notrecoverable");
    assert_answer(cond_wait_ending(&a, 1, NOT_RECOVERABLE), "notowner");
    inbox_close(inbox);
}

/* ---- attempts that may not wait ---------------------------------------------------------- */

/* An attempt that does not own the mutex changes nothing: another's, no owner's, an earlier attempt's. */
static void test_a_wait_changes_nothing_when_not_the_owner(void **state)
{
    struct who a = who("a"), b = who("b"), thread = who("b");
    const char *before = dump();

    (void)state;
    a.attempt = b.attempt = thread.attempt = 3;
    thread.thread = 2;
    assert_answer(cond_wait(&a, 1), "notowner"); /* never used */
    assert_string_equal(dump(), before);
    acquire(&b, TRY);
    before = dump();
    b.attempt = 4;
    assert_answer(cond_wait(&a, 1), "notowner");
    assert_answer(cond_wait(&a, 3), "notowner");
    assert_answer(cond_wait(&b, 2), "notowner");
    assert_answer(cond_wait(&thread, 3), "notowner");
    assert_answer(cond_wait_ending(&a, 1, NOT_RECOVERABLE), "notowner");
    assert_string_equal(dump(), before);
    b.attempt = 3;
    release(&b, UNLOCKED);
    before = dump();
    b.attempt = 4;
    assert_answer(cond_wait(&b, 3), "notowner"); /* its own, given back */
    assert_string_equal(dump(), before);
}

/* A hold that was broken by force is not there to be given up. */
static void test_a_wait_is_not_the_owner_when_its_hold_was_broken(void **state)
{
    struct who a = who("a");
    const char *before;

    (void)state;
    acquire(&a, TRY);
    force("x");
    before = dump();
    a.attempt = 2;
    assert_answer(cond_wait(&a, 1), "notowner");
    assert_string_equal(dump(), before);
}

/* A condition that others wait on with another mutex refuses, and the hold stays (EINVAL). */
static void test_a_wait_is_bound_when_others_wait_with_another_mutex(void **state)
{
    struct who a = who("a"), b = who("b");
    const char *before;

    (void)state;
    fall_asleep(&b);
    a.leaf = "y";
    acquire(&a, TRY);
    a.attempt = 2;
    before = dump();
    assert_answer(cond_wait(&a, 1), "bound");
    assert_string_equal(dump(), before);
    assert_string_equal(owner("y"), "a:1");
    cond_cancel(&b);
    assert_answer(cond_wait(&a, 1), "waiting");
    assert_string_equal(command("HGET %s mutex", key("sleeper", "c")), "nt/y");
}

/* A signalled waiter no longer waits on the condition, which can be used with another mutex. */
static void test_a_wait_binds_again_when_all_were_signalled(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");

    (void)state;
    fall_asleep(&b);
    fall_asleep(&c);
    a.leaf = "y";
    acquire(&a, TRY);
    a.attempt = 2;
    cond_signal("c", "x", 1, "");
    assert_answer(cond_wait(&a, 1), "bound");
    cond_signal("c", "x", 1, "");
    assert_answer(cond_wait(&a, 1), "waiting");
    assert_string_equal(line_of(cond_signal("c", NULL, 1, ""), 1), "nt/y");
}

/* Waiters that died do not bind a condition for longer than two leases. */
static void test_a_wait_binds_again_when_the_others_are_gone(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    fall_asleep(&b);
    a.leaf = "y";
    acquire(&a, TRY);
    a.attempt = 2;
    age_sleeper(&b, 2 * LEASE - 1000);
    assert_answer(cond_wait(&a, 1), "bound");
    age_sleeper(&b, 1001);
    assert_answer(cond_wait(&a, 1), "waiting");
    assert_string_equal(rank("cond", "a", 2), "0");
    assert_int_equal(sleepers(), 1);
    assert_int_equal(command_number("HEXISTS %s b:1:2", key("sleeper", "c")), 0);
}

/* Of many dead waiters each call forgets sixteen, and never a living waiter. */
static void test_a_wait_binds_again_when_many_others_are_gone(void **state)
{
    struct who a = who("a");

    (void)state;
    a.leaf = "y";
    acquire(&a, TRY);
    a.attempt = 2;
    enter_sleepers("dead", "c", 40, 2 * LEASE + 1000);
    assert_answer(cond_wait(&a, 1), "bound");
    assert_int_equal(sleepers(), 24);
    assert_answer(cond_wait(&a, 1), "bound");
    assert_int_equal(sleepers(), 8);
    enter_sleepers("live", "c", 1, 0);
    assert_answer(cond_wait(&a, 1), "bound");
    assert_answer(cond_wait(&a, 1), "bound");
    assert_int_equal(sleepers(), 1);
    assert_string_equal(owner("y"), "a:1");
}

/* Ten thousand can wait on a condition; the next caller keeps the mutex. */
static void test_a_wait_is_full_when_ten_thousand_wait(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    enter_sleepers("g", "c", 9999, 0);
    fall_asleep(&b);
    acquire(&a, TRY);
    a.attempt = 2;
    assert_answer(cond_wait(&a, 1), "full");
    assert_string_equal(owner("x"), "a:1");
    assert_int_equal(sleepers(), 10000);
    assert_answer(cond_wait(&b, 1), "waiting"); /* one of the waiters, again */
    cond_cancel(&b);
    assert_answer(cond_wait(&a, 1), "waiting");
}

/* ---- a wait repeated --------------------------------------------------------------------- */

/* A repeated wait finds itself on the condition, counts as heard from, and changes nothing. */
static void test_a_repeated_wait_waits_when_nothing_has_happened(void **state)
{
    struct who a = who("a"), b = who("b");
    const char *before;

    (void)state;
    fall_asleep(&a);
    fall_asleep(&b);
    before = dump();
    assert_answer(cond_wait(&a, 1), "waiting");
    assert_string_equal(dump(), before);
    age_sleeper(&a, 3 * LEASE);
    cond_wait(&a, 1);
    cond_signal("c", "x", 1, "");
    assert_string_equal(rank("queue", "a", 2), "0"); /* the attempt was not gone */
}

/* Repeated when another owns the mutex, the wait does not end the other's hold. */
static void test_a_repeated_wait_leaves_the_next_owner_alone(void **state)
{
    struct who a = who("a"), b = who("b");
    const char *before;

    (void)state;
    fall_asleep(&a);
    acquire(&b, TRY);
    before = dump();
    assert_answer(cond_wait(&a, 1), "waiting");
    assert_answer(cond_wait_ending(&a, 1, NOT_RECOVERABLE), "waiting");
    assert_string_equal(dump(), before);
}

/* Repeated after a signal the attempt is where the signal has put the attempt, and carries the signal. */
static void test_a_repeated_wait_is_queued_when_it_was_signalled(void **state)
{
    struct who a = who("a"), b = who("b");
    const char *before, *answer;

    (void)state;
    fall_asleep(&a);
    acquire(&b, TRY);
    cond_signal("c", "x", 1, "");
    before = dump();
    assert_non_null(strstr(before, " @dmutex:{t}:cond:c "));
    answer = cond_wait(&a, 1);
    assert_answer(answer, "queued");
    assert_int_equal(number_of(answer, 1), 1);
    assert_within(number_of(answer, 2), LEASE / 2, LEASE);
    assert_int_equal(number_of(answer, 3), 0);
    assert_string_equal(dump(), before);
}

/* Repeated after the grant the attempt owns, for a full lease, by the same token. */
static void test_a_repeated_wait_is_owned_when_it_was_granted(void **state)
{
    struct inbox *inbox = inbox_open("a");

    (void)state;
    for (int dies = 0; dies <= 1; dies++) {
        struct who a = who("a"), b = who("b");
        const char *before, *answer;

        command("FLUSHALL");
        fall_asleep(&a);
        acquire(&b, TRY);
        cond_signal("c", "x", 1, "");
        release(&b, dies ? DIED : UNLOCKED);
        command("PEXPIRE %s 5000", key("lock", "x"));
        before = dump();
        answer = cond_wait(&a, 1);
        assert_answer(answer, "owned");
        assert_string_equal(line_of(answer, 1), command("HGET %s token", key("state", "x")));
        assert_int_equal(number_of(answer, 2), dies);
        assert_string_equal(dump(), before);
        assert_within(lifetime("lock", "x"), LEASE / 2, LEASE);
    }
    inbox_close(inbox);
}

/* I4: repeated when everything is over, the attempt is not the owner, and nothing starts again. */
static void test_a_repeated_wait_is_not_the_owner_when_it_has_come_and_gone(void **state)
{
    struct who a = who("a");
    struct inbox *inbox = inbox_open("a");
    const char *before;

    (void)state;
    fall_asleep(&a);
    cond_signal("c", "x", 1, "");
    assert_answer(cond_release(&a, UNLOCKED), "released");
    before = dump();
    assert_answer(cond_wait(&a, 1), "notowner");
    assert_string_equal(dump(), before);
    inbox_close(inbox);
}

/* ---- numbers and lifetimes --------------------------------------------------------------- */

/* Many in one microsecond, or with a clock that stands still: a later waiter comes after an earlier one. */
static void test_arrivals_on_a_condition_only_rise_when_the_clock_is_slow(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    fall_asleep(&b);
    command("HSET %s arrival 5000000000000000", key("sleeper", "c"));
    command("ZADD %s 5000000000000000 b:1:2", key("cond", "c"));
    for (int i = 1; i <= 20; i++) {
        char expected[32];

        a.thread = i;
        fall_asleep(&a);
        snprintf(expected, sizeof expected, "%lld", 5000000000000000LL + i);
        assert_string_equal(command("HGET %s arrival", key("sleeper", "c")), expected);
        a.attempt++;
    }
    assert_int_equal(sleepers(), 21);
    assert_string_equal(rank("cond", "b", 2), "0");
}

static void assert_lives(const char *kind, long long from, long long to)
{
    assert_within(lifetime(kind, "c"), from, to);
}

/* I10: a condition lives for three leases after a waiter's last request. */
static void test_a_condition_lives_for_three_leases_after_each_request(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    fall_asleep(&a);
    assert_lives("cond", THREE_LEASES - LEASE, THREE_LEASES);
    assert_lives("sleeper", THREE_LEASES - LEASE, THREE_LEASES);
    for (int way = 0; way < 2; way++) {
        command("PEXPIRE %s 5000", key("cond", "c"));
        command("PEXPIRE %s 5000", key("sleeper", "c"));
        assert_string_equal(way ? line_of(cond_wait(&a, 1), 0) : line_of(cond_poll(&a), 1), "waiting");
        assert_lives("cond", THREE_LEASES - LEASE, THREE_LEASES);
        assert_lives("sleeper", THREE_LEASES - LEASE, THREE_LEASES);
    }
    b.lease_ms = LEASE / 10;
    fall_asleep(&b);
    assert_lives("cond", THREE_LEASES - LEASE, THREE_LEASES); /* the longer lease counts */
    b.attempt++;
    b.lease_ms = 10 * LEASE;
    fall_asleep(&b);
    assert_lives("cond", 29 * LEASE, 30 * LEASE);
    assert_lives("sleeper", 29 * LEASE, 30 * LEASE);
}

/* I10: with the last waiter the queue of a condition goes, and the remaining keys have an end. */
static void test_a_condition_has_an_end_when_nobody_waits_any_more(void **state)
{
    struct who a = who("a");

    (void)state;
    fall_asleep(&a);
    cond_signal("c", "x", 1, "");
    assert_int_equal(command_number("EXISTS %s", key("cond", "c")), 0);
    assert_lives("sleeper", 1, THREE_LEASES);
    cond_release(&a, UNLOCKED);
    a.attempt = 3;
    fall_asleep(&a);
    assert_lives("cond", THREE_LEASES - LEASE, THREE_LEASES);
    assert_lives("sleeper", THREE_LEASES - LEASE, THREE_LEASES);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(test_a_wait_is_on_the_condition_and_its_mutex_is_free),
        SCRIPT_TEST(test_a_wait_grants_the_mutex_to_its_first_waiter),
        SCRIPT_TEST(test_a_wait_says_more_when_the_first_sixteen_are_deaf),
        SCRIPT_TEST(test_a_wait_gives_up_all_of_a_recursive_hold),
        SCRIPT_TEST(test_the_token_rises_when_a_waiter_comes_back),
        SCRIPT_TEST(test_a_late_renewal_is_lost_when_its_thread_waits),
        SCRIPT_TEST(test_a_wait_is_no_death_when_the_lease_had_ended),
        SCRIPT_TEST(test_a_wait_makes_the_mutex_not_recoverable_when_asked_to),
        SCRIPT_TEST(test_a_wait_changes_nothing_when_not_the_owner),
        SCRIPT_TEST(test_a_wait_is_not_the_owner_when_its_hold_was_broken),
        SCRIPT_TEST(test_a_wait_is_bound_when_others_wait_with_another_mutex),
        SCRIPT_TEST(test_a_wait_binds_again_when_all_were_signalled),
        SCRIPT_TEST(test_a_wait_binds_again_when_the_others_are_gone),
        SCRIPT_TEST(test_a_wait_binds_again_when_many_others_are_gone),
        SCRIPT_TEST(test_a_wait_is_full_when_ten_thousand_wait),
        SCRIPT_TEST(test_a_repeated_wait_waits_when_nothing_has_happened),
        SCRIPT_TEST(test_a_repeated_wait_leaves_the_next_owner_alone),
        SCRIPT_TEST(test_a_repeated_wait_is_queued_when_it_was_signalled),
        SCRIPT_TEST(test_a_repeated_wait_is_owned_when_it_was_granted),
        SCRIPT_TEST(test_a_repeated_wait_is_not_the_owner_when_it_has_come_and_gone),
        SCRIPT_TEST(test_arrivals_on_a_condition_only_rise_when_the_clock_is_slow),
        SCRIPT_TEST(test_a_condition_lives_for_three_leases_after_each_request),
        SCRIPT_TEST(test_a_condition_has_an_end_when_nobody_waits_any_more),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, scripts_group_setup, scripts_group_teardown);
}

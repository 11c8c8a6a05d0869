/* SPDX-License-Identifier: BSD-2-Clause */
/* The Lua scripts of conditions: how a wait continues and ends: cond_cancel, poll, release, cond_drop. */
#include <stdio.h>
#include <string.h>

#include "scripts.h"

/* "a" waits on the condition; "b" owns the mutex. */
static void begin(struct who *a, struct who *b)
{
    *a = who("a");
    *b = who("b");
    command("FLUSHALL");
    fall_asleep(a);
    acquire(b, TRY);
}

/* The waiter is neither on the condition nor in the queue. */
static void assert_gone(const char *id)
{
    assert_string_equal(command("ZSCORE %s %s", key("cond", "c"), id), "");
    assert_string_equal(command("ZSCORE %s %s", key("queue", "x"), id), "");
    assert_int_equal(command_number("HEXISTS %s %s", key("sleeper", "c"), id), 0);
    assert_int_equal(command_number("HEXISTS %s %s", key("waiter", "x"), id), 0);
}

/* ---- cancel ------------------------------------------------------------------------------ */

/* Without a signal the attempt comes to the end of the queue, and no signal is counted as its own. */
static void test_a_cancel_queues_for_the_mutex_when_it_is_held(void **state)
{
    struct who a, b, c = who("c");
    const char *answer, *before;

    (void)state;
    begin(&a, &b);
    acquire(&c, QUEUE);
    answer = cond_cancel(&a);
    assert_answer(answer, "queued");
    assert_int_equal(number_of(answer, 1), 2);
    assert_within(number_of(answer, 2), LEASE / 2, LEASE);
    assert_int_equal(number_of(answer, 5), 0);
    assert_int_equal(sleepers(), 0);
    assert_string_equal(command("ZRANGE %s 0 -1", key("queue", "x")), "c:1:1\na:1:2");
    assert_null(strchr(command("HGET %s a:1:2", key("waiter", "x")), '@'));
    before = dump();
    answer = cond_cancel(&a);
    assert_answer(answer, "queued");
    assert_int_equal(number_of(answer, 5), 0);
    assert_string_equal(dump(), before);
}

/* A free mutex is the attempt's own by the answer, for any inbox; repeated, the same hold. */
static void test_a_cancel_owns_when_the_mutex_is_free(void **state)
{
    struct who a = who("a");
    const char *answer, *token, *before;

    (void)state;
    fall_asleep(&a);
    answer = cond_cancel(&a);
    assert_answer(answer, "owned");
    assert_int_equal(number_of(answer, 2), 0);
    assert_int_equal(number_of(answer, 4), 0);
    token = line_of(answer, 1);
    assert_string_equal(token, command("HGET %s token", key("state", "x")));
    assert_string_equal(owner("x"), "a:1");
    assert_int_equal(sleepers(), 0);
    command("PEXPIRE %s 5000", key("lock", "x"));
    before = dump();
    answer = cond_cancel(&a);
    assert_answer(answer, "owned");
    assert_string_equal(line_of(answer, 1), token);
    assert_string_equal(dump(), before);
    assert_within(lifetime("lock", "x"), LEASE / 2, LEASE);
}

/* The signal came first: each request of the waiter says so, in the queue and as the owner. */
static void test_a_cancel_says_signalled_when_the_signal_came_first(void **state)
{
    struct who a, b;
    const char *before, *answer;

    (void)state;
    begin(&a, &b);
    signal_one();
    before = dump();
    for (int times = 0; times < 2; times++) {
        answer = cond_cancel(&a);
        assert_answer(answer, "queued");
        assert_int_equal(number_of(answer, 1), 1);
        assert_int_equal(number_of(answer, 6), 1);
        assert_string_equal(dump(), before); /* the attempt carries the signal on */
    }
    release(&b, UNLOCKED);
    for (int times = 0; times < 2; times++) {
        answer = cond_cancel(&a);
        assert_answer(answer, "owned");
        assert_int_equal(number_of(answer, 4), 1);
    }
}

/* The cancel came first: the signal goes to another, or to nobody. */
static void test_a_signal_goes_to_another_when_the_cancel_came_first(void **state)
{
    struct who a, b, c = who("c");

    (void)state;
    begin(&a, &b);
    release(&b, UNLOCKED);
    fall_asleep(&c);
    cond_cancel(&a);
    signal_one();
    assert_int_equal(sleepers(), 0);
    assert_int_equal(number_of(cond_cancel(&a), 4), 0);
    assert_int_equal(number_of(cond_cancel(&c), 6), 1);
    assert_answer(signal_one(), "none");
}

/* I8: earlier waiters for the mutex come first, and a free mutex is granted to them. */
static void test_a_cancel_serves_those_before_it_when_the_mutex_is_free(void **state)
{
    struct who a, b, c = who("c");
    struct inbox *inbox;
    const char *answer;

    (void)state;
    begin(&a, &b);
    c.lease_ms = 2 * LEASE;
    acquire(&c, QUEUE);
    release(&b, UNLOCKED); /* c does not hear the message */
    inbox = inbox_open("c");
    answer = cond_cancel(&a);
    assert_answer(answer, "queued");
    assert_int_equal(number_of(answer, 1), 1);
    assert_within(number_of(answer, 2), LEASE, 2 * LEASE);
    assert_string_equal(owner("x"), "c:1");
    inbox_close(inbox);
}

/* If a cancel finds the owner dead, this is a death: a robust waiter gets it. */
static void test_a_cancel_reports_a_death_when_the_lease_ended(void **state)
{
    (void)state;
    for (int robust = 0; robust <= 1; robust++) {
        struct who a, b;
        const char *answer;

        begin(&a, &b);
        a.is_robust = robust;
        end_lease("x");
        answer = cond_cancel(&a);
        assert_answer(answer, "owned");
        assert_int_equal(number_of(answer, 2), robust);
        assert_int_equal(number_of(cond_cancel(&a), 2), robust);
    }
}

/* An attempt that is nowhere any more gets that answer, and is put nowhere. */
static void test_a_cancel_is_unknown_when_nobody_waits(void **state)
{
    struct who a, b;
    const char *before, *answer;

    (void)state;
    begin(&a, &b);
    cond_release(&a, UNLOCKED);
    before = dump();
    answer = cond_cancel(&a);
    assert_answer(answer, "unknown");
    assert_int_equal(number_of(answer, 2), 0);
    assert_string_equal(dump(), before);
    command("FLUSHALL");
    assert_answer(cond_cancel(&a), "unknown");
    assert_string_equal(dump(), "");
}

/* Nobody can own the mutex any more: the waiter leaves the condition and the queue. */
static void test_a_cancel_is_not_recoverable_when_the_mutex_is(void **state)
{
    (void)state;
    for (int signalled = 0; signalled <= 1; signalled++) {
        struct who a, b;

        begin(&a, &b);
        if (signalled)
            signal_one();
        release(&b, NOT_RECOVERABLE);
        assert_answer(cond_cancel(&a), "notrecoverable");
        assert_gone("a:1:2");
        assert_answer(cond_cancel(&a), "notrecoverable");
    }
}

/* ---- poll -------------------------------------------------------------------------------- */

/* A waiter that polls is not gone however long the wait is; the request number is the newest. */
static void test_a_poll_keeps_a_waiter_alive_while_it_waits(void **state)
{
    struct who a, b, c = who("c");
    struct inbox *inbox = inbox_open("a");

    (void)state;
    begin(&a, &b);
    release(&b, UNLOCKED);
    fall_asleep(&c);
    for (int polls = 0; polls < 3; polls++) {
        age_sleeper(&a, 2 * LEASE + 1000);
        a.request++;
        assert_string_equal(line_of(cond_poll(&a), 1), "waiting");
    }
    signal_one();
    assert_string_equal(owner("x"), "a:1");
    assert_memory_equal(inbox_messages(inbox), "granted 2 4 ", 12);
    inbox_close(inbox);
}

/* A waiter with a lost message finds its place by a poll. */
static void test_a_poll_says_queued_or_owned_when_signalled(void **state)
{
    struct who a, b;

    (void)state;
    begin(&a, &b);
    signal_one();
    assert_string_equal(line_of(cond_poll(&a), 1), "queued");
    assert_string_equal(line_of(cond_poll(&a), 2), "1");
    release(&b, UNLOCKED);
    assert_string_equal(line_of(cond_poll(&a), 1), "owned");
    assert_string_equal(line_of(cond_poll(&a), 2), command("HGET %s token", key("state", "x")));
    assert_string_equal(owner("x"), "a:1");
}

/* A waiter that the condition has forgotten gets that answer and is not put back: a spurious wake-up. */
static void test_a_poll_is_unknown_when_the_condition_has_forgotten_the_waiter(void **state)
{
    struct who a, b;
    const char *before;

    (void)state;
    begin(&a, &b);
    age_sleeper(&a, 2 * LEASE + 1000);
    signal_one();
    before = dump();
    assert_string_equal(line_of(cond_poll(&a), 1), "unknown");
    assert_string_equal(dump(), before);
    command("FLUSHALL");
    assert_string_equal(line_of(cond_poll(&a), 1), "unknown");
    assert_string_equal(dump(), "");
}

/* No thread can own the mutex any more: a waiter on the condition learns it from a poll, and leaves. */
static void test_a_poll_is_not_recoverable_when_the_mutex_is(void **state)
{
    struct who a, b;

    (void)state;
    begin(&a, &b);
    release(&b, NOT_RECOVERABLE);
    assert_string_equal(line_of(cond_poll(&a), 1), "notrecoverable");
    assert_gone("a:1:2");
}

/* I6: the poll of a waiter on a condition grants the free mutex to the waiter for the mutex. */
static void test_a_poll_on_a_condition_serves_the_mutex_when_it_is_free(void **state)
{
    struct who a, b, c = who("c");
    struct inbox *inbox;

    (void)state;
    begin(&a, &b);
    acquire(&c, QUEUE);
    end_lease("x");
    inbox = inbox_open("c");
    assert_string_equal(line_of(cond_poll(&a), 1), "waiting");
    assert_string_equal(owner("x"), "c:1");
    assert_memory_equal(inbox_messages(inbox), "granted 1 1 ", 12);
    inbox_close(inbox);
}

/* A waiter of a condition, six keys, and a waiter of a mutex, four, in one poll: each has its answer. */
static void test_a_batch_has_waiters_of_conditions_and_of_mutexes(void **state)
{
    struct who a, b, y = who("a"), z = who("z");
    const char *answer;

    (void)state;
    begin(&a, &b);
    y.leaf = z.leaf = "y";
    y.thread = 2;
    acquire(&z, TRY);
    acquire(&y, QUEUE);
    answer = cond_poll_both(&a, &y);
    assert_string_equal(line_of(answer, 1), "waiting");
    assert_string_equal(line_of(answer, 2), "queued");
    assert_string_equal(line_of(answer, 3), "1");
    release(&z, UNLOCKED);
    signal_one();
    answer = cond_poll_both(&a, &y);
    assert_string_equal(line_of(answer, 1), "queued");
    assert_string_equal(line_of(answer, 4), "owned");
    assert_string_equal(owner("y"), "a:2");
}

/* ---- release ----------------------------------------------------------------------------- */

/* A signalled attempt that is given back leaves the queue, or the mutex, which goes to the next. */
static void test_a_release_leaves_the_queue_or_the_mutex_when_signalled(void **state)
{
    struct who a, b, c = who("c");

    (void)state;
    begin(&a, &b);
    signal_one();
    assert_answer(cond_release(&a, UNLOCKED), "left");
    assert_gone("a:1:2");
    assert_string_equal(owner("x"), "b:1");
    assert_answer(cond_release(&a, UNLOCKED), "notowner");
    begin(&a, &b);
    signal_one();
    release(&b, UNLOCKED);
    cond_poll(&a);
    assert_answer(cond_release(&a, UNLOCKED), "released");
    assert_answer(cond_release(&a, UNLOCKED), "notowner");
    assert_answer(acquire(&c, TRY), "owned");
}

/* An attempt that is given back during the wait leaves the condition, and the answer says that the attempt waited. */
static void test_a_release_leaves_the_condition(void **state)
{
    struct who a, b;

    (void)state;
    begin(&a, &b);
    assert_answer(cond_release(&a, UNLOCKED), "left");
    assert_gone("a:1:2");
    assert_string_equal(owner("x"), "b:1");
    assert_answer(cond_release(&a, UNLOCKED), "notowner");
}

/* ---- drop -------------------------------------------------------------------------------- */

/* An anonymous condition's keys are deleted with the condition; a named condition's keys are left to their end. */
static void test_a_drop_is_done_when_nobody_waits(void **state)
{
    struct who a, b;

    (void)state;
    assert_string_equal(cond_drop("c", "look"), "1");
    assert_string_equal(cond_drop("c", "delete"), "1");
    begin(&a, &b);
    signal_one();
    assert_string_equal(cond_drop("c", "look"), "1");
    assert_int_equal(command_number("EXISTS %s", key("sleeper", "c")), 1);
    assert_string_equal(cond_drop("c", "delete"), "1");
    assert_int_equal(command_number("EXISTS %s", key("sleeper", "c")), 0);
    assert_string_equal(line_of(cond_poll(&a), 1), "queued"); /* no wait: the mutex has the attempt */
    assert_string_equal(cond_drop("c", "delete"), "1");
}

/* A condition with a waiter is not destroyed: EBUSY, and nothing is deleted. */
static void test_a_drop_is_refused_while_somebody_waits(void **state)
{
    struct who a, b;
    const char *before;

    (void)state;
    begin(&a, &b);
    before = dump();
    assert_string_equal(cond_drop("c", "look"), "0");
    assert_string_equal(cond_drop("c", "delete"), "0");
    assert_string_equal(dump(), before);
    signal_one();
    assert_string_equal(cond_drop("c", "delete"), "1");
}

/* However many that are gone precede the living waiter. */
static void test_a_drop_is_refused_when_one_waits_after_many_that_are_gone(void **state)
{
    struct who a, b;

    (void)state;
    begin(&a, &b);
    release(&b, UNLOCKED);
    cond_cancel(&a);
    cond_release(&a, UNLOCKED);
    enter_sleepers("gone", "c", 300, 2 * LEASE + 1000);
    a.attempt = 3;
    fall_asleep(&a);
    for (int calls = 0; calls < 30; calls++)
        assert_string_equal(cond_drop("c", "delete"), "0");
    assert_string_equal(line_of(cond_poll(&a), 1), "waiting");
}

/* Gone waiters do not keep a condition from being destroyed, some calls at most. */
static void test_a_drop_does_not_count_those_who_are_gone(void **state)
{
    int calls = 0;

    (void)state;
    enter_sleepers("gone", "c", 40, 2 * LEASE + 1000);
    while (strcmp(cond_drop("c", "delete"), "1") != 0)
        assert_true(++calls < 4);
    assert_int_equal(command_number("EXISTS %s %s", key("cond", "c"), key("sleeper", "c")), 0);
}

/* I10: each key that a wait, a signal and a poll leave has an end. */
static void test_nothing_is_left_forever_when_nobody_waits(void **state)
{
    static const char script[] = "local out = {}\n"
                                 "for _, name in ipairs(redis.call('KEYS', '*')) do\n"
                                 "  if redis.call('PTTL', name) < 0 then out[#out + 1] = name end\n"
                                 "end\n"
                                 "return out\n";
    struct who a, b;

    (void)state;
    begin(&a, &b);
    assert_string_equal(run_script(script, 0, NULL), "");
    signal_one();
    assert_string_equal(run_script(script, 0, NULL), "");
    release(&b, UNLOCKED);
    cond_poll(&a);
    cond_release(&a, UNLOCKED);
    assert_string_equal(run_script(script, 0, NULL), "");
    assert_int_equal(command_number("DBSIZE"), 2); /* state; of the condition, the binding */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(test_a_cancel_queues_for_the_mutex_when_it_is_held),
        SCRIPT_TEST(test_a_cancel_owns_when_the_mutex_is_free),
        SCRIPT_TEST(test_a_cancel_says_signalled_when_the_signal_came_first),
        SCRIPT_TEST(test_a_signal_goes_to_another_when_the_cancel_came_first),
        SCRIPT_TEST(test_a_cancel_serves_those_before_it_when_the_mutex_is_free),
        SCRIPT_TEST(test_a_cancel_reports_a_death_when_the_lease_ended),
        SCRIPT_TEST(test_a_cancel_is_unknown_when_nobody_waits),
        SCRIPT_TEST(test_a_cancel_is_not_recoverable_when_the_mutex_is),
        SCRIPT_TEST(test_a_poll_keeps_a_waiter_alive_while_it_waits),
        SCRIPT_TEST(test_a_poll_says_queued_or_owned_when_signalled),
        SCRIPT_TEST(test_a_poll_is_unknown_when_the_condition_has_forgotten_the_waiter),
        SCRIPT_TEST(test_a_poll_is_not_recoverable_when_the_mutex_is),
        SCRIPT_TEST(test_a_poll_on_a_condition_serves_the_mutex_when_it_is_free),
        SCRIPT_TEST(test_a_batch_has_waiters_of_conditions_and_of_mutexes),
        SCRIPT_TEST(test_a_release_leaves_the_queue_or_the_mutex_when_signalled),
        SCRIPT_TEST(test_a_release_leaves_the_condition),
        SCRIPT_TEST(test_a_drop_is_done_when_nobody_waits),
        SCRIPT_TEST(test_a_drop_is_refused_while_somebody_waits),
        SCRIPT_TEST(test_a_drop_is_refused_when_one_waits_after_many_that_are_gone),
        SCRIPT_TEST(test_a_drop_does_not_count_those_who_are_gone),
        SCRIPT_TEST(test_nothing_is_left_forever_when_nobody_waits),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, scripts_group_setup, scripts_group_teardown);
}

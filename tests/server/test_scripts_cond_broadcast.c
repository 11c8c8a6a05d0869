/* SPDX-License-Identifier: BSD-2-Clause */
/* The Lua scripts of conditions: cond_signal for all waiters, 256 a call. */
#include <stdio.h>
#include <string.h>

#include "scripts.h"

#define AT_ONCE 256

static const char *broadcast(const char *upto)
{
    return cond_signal("c", "x", AT_ONCE, upto);
}

/* Each gets its place, once, even a waiter that does not hear the message. */
static void test_a_broadcast_moves_all_in_the_order_of_arrival(void **state)
{
    struct who a = who("a"), b = who("b"), deaf = who("deaf"), silent = who("silent");
    struct inbox *inbox = inbox_open("a");
    const char *messages;

    (void)state;
    fall_asleep(&a);
    fall_asleep(&deaf);
    fall_asleep(&silent);
    a.thread = 2;
    a.attempt = 1;
    fall_asleep(&a);
    age_sleeper(&silent, LEASE);
    acquire(&b, TRY);
    assert_moved(broadcast(""), 0, 0);
    assert_string_equal(command("ZRANGE %s 0 -1", key("queue", "x")), "a:1:2\ndeaf:1:2\nsilent:1:2\na:2:2");
    assert_int_equal(sleepers(), 0);
    messages = inbox_messages(inbox);
    assert_memory_equal(messages, "signalled 2 1 ", 14);
    assert_memory_equal(line_of(messages, 1), "signalled 2 4 ", 14);
    assert_string_equal(line_of(messages, 2), "");
    inbox_close(inbox);
}

/* A free mutex is granted to the first of the moved waiters. */
static void test_a_broadcast_grants_the_mutex_when_it_is_free(void **state)
{
    struct inbox *inbox = inbox_open("g");

    (void)state;
    enter_sleepers("g", "c", 5, 0);
    assert_moved(broadcast(""), 0, 0);
    assert_string_equal(owner("x"), "g:1");
    assert_int_equal(queued(), 4);
    inbox_close(inbox);
}

/* 256 a call, and no waiter that came after the first call. */
static void test_a_broadcast_goes_in_steps_and_leaves_out_who_comes_later(void **state)
{
    struct who b = who("b");
    char upto[24];
    const char *answer;

    (void)state;
    acquire(&b, TRY);
    enter_sleepers("g", "c", AT_ONCE + 44, 0);
    answer = broadcast("");
    snprintf(upto, sizeof upto, "%s", line_of(answer, 1));
    assert_string_equal(upto, newest());
    assert_moved(answer, 1, 0);
    assert_int_equal(queued(), AT_ONCE);
    b.attempt = 2;
    cond_wait(&b, 1);
    answer = broadcast(upto);
    assert_string_equal(line_of(answer, 1), upto);
    assert_int_equal(number_of(answer, 2), 0);
    assert_int_equal(queued(), AT_ONCE + 44);
    assert_int_equal(sleepers(), 1);
    assert_string_equal(line_of(cond_poll(&b), 1), "waiting");
}

/* Ten thousand are all moved, 256 a call, each once and in order. */
static void test_a_broadcast_moves_ten_thousand(void **state)
{
    struct who b = who("b");
    char before[200000], upto[24] = "";
    const char *answer;
    int calls = 0;

    (void)state;
    acquire(&b, TRY);
    enter_sleepers("g", "c", 10000, 0);
    snprintf(before, sizeof before, "%s", command("ZRANGE %s 0 -1", key("cond", "c")));
    do {
        long long moved = queued();

        answer = broadcast(upto);
        snprintf(upto, sizeof upto, "%s", line_of(answer, 1));
        assert_within(queued() - moved, 1, AT_ONCE);
        assert_int_equal(queued() + sleepers(), 10000);
        calls++;
    } while (number_of(answer, 2) == 1);
    assert_int_equal(calls, 10000 / AT_ONCE + 1);
    assert_int_equal(sleepers(), 0);
    assert_string_equal(command("ZRANGE %s 0 -1", key("queue", "x")), before);
}

/* With 255, 256 and 257 waiters the calls come to an end, and all are moved. */
static void test_a_broadcast_ends_when_a_call_has_moved_all(void **state)
{
    struct who b = who("b");

    (void)state;
    for (int count = AT_ONCE - 1; count <= AT_ONCE + 1; count++) {
        const char *answer;
        int calls = 0;

        command("FLUSHALL");
        acquire(&b, TRY);
        enter_sleepers("g", "c", count, 0);
        do {
            answer = broadcast("");
            assert_true(++calls <= 2);
        } while (number_of(answer, 2) == 1);
        assert_int_equal(queued(), count);
        assert_int_equal(calls, count < AT_ONCE ? 1 : 2);
    }
}

/* The call continues after the waiters that are gone, and counts none of them as moved. */
static void test_a_broadcast_goes_on_after_those_who_are_gone(void **state)
{
    struct who b = who("b");

    (void)state;
    acquire(&b, TRY);
    enter_sleepers("gone", "c", AT_ONCE + 10, 2 * LEASE + 1000);
    enter_sleepers("g", "c", 10, 0);
    assert_moved(broadcast(""), 1, 0);
    assert_int_equal(queued(), 0);
    assert_moved(broadcast(""), 0, 0);
    assert_int_equal(queued(), 10);
    assert_int_equal(sleepers(), 0);
}

/* Repeated with its own bound the call moves no waiter, neither those already moved nor later ones. */
static void test_a_broadcast_moves_nobody_when_repeated(void **state)
{
    struct who a = who("a"), b = who("b"), late = who("late");
    const char *upto, *before;

    (void)state;
    fall_asleep(&a);
    upto = line_of(broadcast(""), 1);
    before = dump();
    assert_answer(broadcast(upto), "none");
    assert_string_equal(dump(), before);
    assert_string_equal(line_of(cond_poll(&a), 1), "owned");
    cond_release(&a, UNLOCKED);
    fall_asleep(&late);
    acquire(&b, TRY);
    before = dump();
    assert_moved(broadcast(upto), 0, 0);
    assert_string_equal(dump(), before);
}

/* The bound is exact also where Lua's own text of a number is not. */
static void test_a_broadcast_is_bounded_exactly_when_the_numbers_are_large(void **state)
{
    struct who a = who("a"), b = who("b");
    const char *upto;

    (void)state;
    command("HSET %s arrival 5000000000000000", key("sleeper", "c"));
    fall_asleep(&a);
    upto = newest();
    assert_string_equal(upto, "5000000000000001");
    fall_asleep(&b);
    b.attempt = 3;
    acquire(&b, TRY);
    assert_moved(broadcast(upto), 0, 0);
    assert_string_equal(command("ZRANGE %s 0 -1", key("queue", "x")), "a:1:2");
    assert_int_equal(sleepers(), 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(test_a_broadcast_moves_all_in_the_order_of_arrival),
        SCRIPT_TEST(test_a_broadcast_grants_the_mutex_when_it_is_free),
        SCRIPT_TEST(test_a_broadcast_goes_in_steps_and_leaves_out_who_comes_later),
        SCRIPT_TEST(test_a_broadcast_moves_ten_thousand),
        SCRIPT_TEST(test_a_broadcast_ends_when_a_call_has_moved_all),
        SCRIPT_TEST(test_a_broadcast_goes_on_after_those_who_are_gone),
        SCRIPT_TEST(test_a_broadcast_moves_nobody_when_repeated),
        SCRIPT_TEST(test_a_broadcast_is_bounded_exactly_when_the_numbers_are_large),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, scripts_group_setup, scripts_group_teardown);
}

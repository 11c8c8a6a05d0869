/* SPDX-License-Identifier: BSD-2-Clause */
/* The Lua scripts: many dead waiters at the head of a queue cost the living one removal each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripts.h"

/* `count` waiters of a dead process come before all later waiters. */
static void enter_dead(int count)
{
    static const char script[] =
        "local now = redis.call('TIME')[1] .. '000000'\n"
        "for i = 1, tonumber(ARGV[1]) do\n"
        "  redis.call('ZADD', KEYS[3], i, 'dead:' .. i .. ':1')\n"
        "  redis.call('HSET', KEYS[4], 'dead:' .. i .. ':1', '1 60000 1 ' .. now .. ' 0 1 h p')\n"
        "end\n"
        "return redis.call('HSET', KEYS[2], 'wanted', 1)\n";
    char text[16];

    snprintf(text, sizeof text, "%d", count);
    run_script(script, 4, key("lock", "x"), key("state", "x"), key("queue", "x"), key("waiter", "x"), text, NULL);
}

/* The same after all present waiters. */
static void enter_dead_behind(int count)
{
    for (int i = 0; i < count; i++) {
        struct who dead = who("deaf");

        dead.thread = i + 1;
        acquire(&dead, QUEUE);
    }
}

/* Commands that scripts have called so far, and the scripts. */
static long long commands_run(void)
{
    const char *at = command("INFO commandstats");
    long long sum = 0;

    while ((at = strstr(at, ":calls="))) {
        at += strlen(":calls=");
        sum += strtoll(at, NULL, 10);
    }
    return sum;
}

/* How often scripts have asked whether an inbox is there. */
static long long inboxes_looked_for(void)
{
    const char *line = strstr(command("INFO commandstats"), "cmdstat_pubsub|numsub:calls=");

    return line ? strtoll(strchr(line, '=') + 1, NULL, 10) : 0;
}

/* A call checks at most 16 heads and says that there are more; the next call continues. */
static void test_a_thousand_dead_heads_are_passed_sixteen_at_a_time(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open("b");
    const char *answer;
    int calls = 1;

    (void)state;
    acquire(&a, TRY);
    enter_dead(1000);
    acquire(&b, QUEUE);
    command("CONFIG RESETSTAT");
    answer = release(&a, UNLOCKED);
    assert_answer(answer, "released");
    assert_int_equal(number_of(answer, 1), 1);
    while (strcmp(owner("x"), "") == 0) {
        assert_true(inboxes_looked_for() <= 16 * calls + 1); /* a release calls the first head separately */
        answer = poll_serving("x");
        assert_string_equal(line_of(answer, 1), "unknown");
        calls++;
        assert_true(calls <= 1 + 1000 / 16);
    }
    assert_string_equal(owner("x"), "b:1");
    assert_int_equal(number_of(answer, 2), 0);
    assert_memory_equal(inbox_messages(inbox), "granted", 7);
    assert_int_equal(size_of("queue", "x"), 1000);
    inbox_close(inbox);
}

/* The living waiter after the dead ones is also served by its own polls, each of which gets further. */
static void test_a_thousand_dead_heads_are_passed_when_the_live_one_polls(void **state)
{
    struct who a = who("a"), b = who("b");
    int calls = 0;

    (void)state;
    acquire(&a, TRY);
    enter_dead(1000);
    acquire(&b, QUEUE);
    release(&a, UNLOCKED);
    while (strcmp(line_of(poll_of(&b), 1), "owned") != 0)
        assert_true(++calls <= 1 + 1000 / 16);
}

/* A waiter that lives again before the cursor is served by its poll. */
static void test_heads_that_revive_are_served_when_they_poll(void **state)
{
    struct who a = who("a");
    struct who first = who("dead");

    (void)state;
    acquire(&a, TRY);
    enter_dead(40);
    release(&a, UNLOCKED);
    assert_string_equal(line_of(poll_of(&first), 1), "owned");
}

/* The server's work for `turns` handoffs between two live waiters, in calls of commands. */
static long long calls_of_handoffs(int turns)
{
    struct who w[2] = { who("b"), who("b") };
    long long before;

    w[0].thread = 1, w[1].thread = 2;
    w[0].attempt = w[1].attempt = 1000;
    while (strcmp(line_of(acquire(&w[0], QUEUE), 0), "queued") == 0 && strcmp(owner("x"), "b:1") != 0)
        poll_serving("x");
    before = commands_run();
    for (int i = 0; i < turns; i++) {
        struct who *next = &w[(i + 1) % 2];

        next->attempt++;
        acquire(next, QUEUE);
        release(&w[i % 2], UNLOCKED);
        assert_true(strcmp(owner("x"), (i + 1) % 2 ? "b:2" : "b:1") == 0);
    }
    return commands_run() - before;
}

/*
 * Dead heads cost their removal once: after that, a handoff with 1500 of them costs little more than one without, where
 * the waiter waits alone.
 */
static void test_handoffs_cost_the_same_when_1500_dead_come_first(void **state)
{
    struct inbox *inbox = inbox_open("b");
    long long without = calls_of_handoffs(50), with;

    (void)state;
    command("DEL %s %s %s %s", key("lock", "x"), key("state", "x"), key("queue", "x"), key("waiter", "x"));
    enter_dead(1500);
    with = calls_of_handoffs(50);
    assert_within(with, without, without + 50 * 20);
    assert_int_equal(size_of("queue", "x"), 1500);
    inbox_close(inbox);
}

/* The dead before the cursor are removed once they are gone, 16 per call, and the cursor with the last of them. */
static void test_the_gone_are_removed_when_the_cursor_has_passed_them(void **state)
{
    struct inbox *inbox = inbox_open("b");

    (void)state;
    enter_dead(100);
    calls_of_handoffs(1);
    assert_int_equal(command_number("HEXISTS %s cursor", key("state", "x")), 1);
    run_script("for i = 1, 100 do redis.call('HSET', KEYS[1], 'dead:' .. i .. ':1', '1 60000 1 1000000 0 1 h p') end",
               1, key("waiter", "x"), NULL);
    end_lease("x");
    command("HDEL %s hold", key("state", "x"));
    calls_of_handoffs(10);
    assert_int_equal(size_of("queue", "x"), 0);
    assert_int_equal(command_number("HEXISTS %s cursor", key("state", "x")), 0);
    inbox_close(inbox);
}

/*
 * I8: a waiter before the cursor that polls is granted before the waiters after it, by a release that does not see it.
 */
static void test_a_revived_waiter_comes_first_when_it_stands_before_the_cursor(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");
    struct inbox *of_b, *of_c = inbox_open("c");

    (void)state;
    acquire(&a, TRY);
    enter_dead(20);
    acquire(&b, QUEUE);
    enter_dead_behind(20);
    acquire(&c, QUEUE);
    release(&a, UNLOCKED);
    while (strcmp(owner("x"), "") == 0)
        poll_serving("x");
    assert_string_equal(owner("x"), "c:1"); /* b has no inbox */
    a.attempt++;
    acquire(&a, QUEUE);
    of_b = inbox_open("b");
    assert_string_equal(line_of(poll_of(&b), 1), "queued");
    release(&c, UNLOCKED);
    assert_string_equal(owner("x"), "b:1");
    inbox_close(of_b);
    inbox_close(of_c);
}

/* Every answer that leaves the lock free mentions the heads that failed, so that the reader continues to poll. */
static void test_answers_say_more_when_the_lock_is_left_free(void **state)
{
    struct who a = who("a"), b = who("b"), c = who("c");

    (void)state;
    acquire(&a, TRY);
    enter_dead(200);
    release(&a, UNLOCKED);
    assert_string_equal(line_of(acquire(&b, QUEUE), 5), "1");
    assert_string_equal(line_of(poll_of(&b), 6), "1");
    assert_string_equal(line_of(acquire(&c, TRY), 4), "1");
    for (int i = 0; i < 20 && strcmp(owner("x"), "") == 0; i++)
        acquire(&b, QUEUE);
    assert_string_equal(owner("x"), "b:1");
}

/* The dead that will not come back are removed, at most 16 per call. */
static void test_the_gone_are_removed_when_the_queue_is_served(void **state)
{
    struct who a = who("a");
    int calls = 0;

    (void)state;
    acquire(&a, TRY);
    enter_dead(100);
    run_script("for _, id in ipairs(redis.call('HKEYS', KEYS[1])) do "
               "redis.call('HSET', KEYS[1], id, '1 60000 1 1000000 0 1 h p') end",
               1, key("waiter", "x"), NULL);
    release(&a, UNLOCKED);
    while (size_of("queue", "x") > 0) {
        long long before = size_of("queue", "x");

        poll_serving("x");
        assert_true(before - size_of("queue", "x") <= 16);
        assert_true(++calls <= 30);
    }
    assert_int_equal(command_number("EXISTS %s %s", key("queue", "x"), key("waiter", "x")), 0);
    a.attempt = 2;
    assert_answer(acquire(&a, TRY), "owned");
}

/* A try among dead heads is busy while there are more, and has the lock when all are seen. */
static void test_a_try_owns_when_all_heads_are_dead(void **state)
{
    struct who a = who("a"), b = who("b");

    (void)state;
    acquire(&a, TRY);
    enter_dead(40);
    release(&a, UNLOCKED);
    assert_answer(acquire(&b, TRY), "busy");
    assert_answer(acquire(&b, TRY), "owned");
}

/* I10: a cursor is written into a `state` that expires, even if the previous state is lost. */
static void test_a_state_ends_when_it_has_a_cursor_alone(void **state)
{
    (void)state;
    enter_dead(20);
    command("DEL %s", key("state", "x"));
    poll_serving("x");
    assert_int_equal(command_number("HEXISTS %s cursor", key("state", "x")), 1);
    assert_true(lifetime("state", "x") > 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(test_a_thousand_dead_heads_are_passed_sixteen_at_a_time),
        SCRIPT_TEST(test_a_thousand_dead_heads_are_passed_when_the_live_one_polls),
        SCRIPT_TEST(test_heads_that_revive_are_served_when_they_poll),
        SCRIPT_TEST(test_handoffs_cost_the_same_when_1500_dead_come_first),
        SCRIPT_TEST(test_the_gone_are_removed_when_the_cursor_has_passed_them),
        SCRIPT_TEST(test_a_revived_waiter_comes_first_when_it_stands_before_the_cursor),
        SCRIPT_TEST(test_answers_say_more_when_the_lock_is_left_free),
        SCRIPT_TEST(test_the_gone_are_removed_when_the_queue_is_served),
        SCRIPT_TEST(test_a_try_owns_when_all_heads_are_dead),
        SCRIPT_TEST(test_a_state_ends_when_it_has_a_cursor_alone),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, scripts_group_setup, scripts_group_teardown);
}

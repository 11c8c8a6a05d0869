/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Lua scripts: the number of commands that the scripts run on the server, as the server counts them.  The numbers
 * are exact, because each call more is about 3 % of a handoff's time on the server.
 */
#include <stdio.h>
#include <string.h>

#include "scripts.h"

#define MANY 100 /* holds of a renewal */

/* The commands since CONFIG RESETSTAT, without the scripts themselves and without the test's own questions. */
static long long count_calls(void)
{
    const char *line = command("INFO commandstats");
    long long sum = 0, calls;

    while ((line = strstr(line, "cmdstat_"))) {
        bool is_ours = strncmp(line, "cmdstat_eval", 12) != 0 && strncmp(line, "cmdstat_config", 14) != 0 &&
                       strncmp(line, "cmdstat_info", 12) != 0;

        if (is_ours && sscanf(strchr(line, ':'), ":calls=%lld", &calls) == 1)
            sum += calls;
        line++;
    }
    return sum;
}

static void begin_to_count(void)
{
    command("CONFIG RESETSTAT");
}

/* A free lock that nobody waits for: five commands to have it, three to release it. */
static void test_a_pair_makes_eight_calls_when_nobody_waits(void **state)
{
    struct who a = who("a");

    (void)state;
    acquire(&a, QUEUE);
    release(&a, UNLOCKED);
    a.attempt++;
    begin_to_count();
    assert_answer(acquire(&a, QUEUE), "owned");
    assert_answer(release(&a, UNLOCKED), "released");
    assert_int_equal(count_calls(), 8);
}

/* The same after a handoff to the only waiter: nobody waits any more. */
static void test_a_pair_makes_eight_calls_after_a_handoff(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open("b");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    release(&a, UNLOCKED);
    begin_to_count();
    assert_answer(release(&b, UNLOCKED), "released");
    a.attempt = 2;
    assert_answer(acquire(&a, QUEUE), "owned");
    assert_int_equal(count_calls(), 8);
    inbox_close(inbox);
}

/*
 * A waiter comes, and the release grants it the lock: four commands to wait alone, six to hand over.  A name's first
 * waiter goes to the queue, because the queue may be older than `state`.
 */
static void test_a_handoff_makes_ten_calls_when_one_waits(void **state)
{
    struct who a = who("a"), b = who("b");
    struct inbox *inbox = inbox_open("b");

    (void)state;
    for (int i = 0; i < 3; i++) { /* the first handoff of a name, and the next */
        assert_answer(acquire(&a, TRY), "owned");
        begin_to_count();
        assert_answer(acquire(&b, QUEUE), "queued");
        assert_int_equal(count_calls(), i ? 4 : 9);
        assert_answer(release(&a, UNLOCKED), "released");
        assert_string_equal(owner("x"), "b:1");
        assert_int_equal(count_calls() - 2, i ? 10 : 18); /* owner() has asked twice */
        assert_answer(release(&b, UNLOCKED), "released");
        a.attempt++;
        b.attempt++;
    }
    inbox_close(inbox);
}

/* The same in a queue: each handoff of a turn of three. */
static void test_a_handoff_makes_eighteen_calls_when_others_wait(void **state)
{
    struct who w[3] = { who("w"), who("w"), who("w") };
    struct inbox *inbox = inbox_open("w");

    (void)state;
    for (int i = 0; i < 3; i++) {
        w[i].thread = i + 1;
        acquire(&w[i], QUEUE);
    }
    for (int turn = 0; turn < 6; turn++) {
        struct who *next = &w[turn % 3];

        begin_to_count();
        assert_answer(release(next, UNLOCKED), "released");
        next->attempt++;
        assert_answer(acquire(next, QUEUE), "queued");
        assert_int_equal(count_calls(), 18);
    }
    inbox_close(inbox);
}

/* Four commands for each hold, and the clock. */
static void test_a_renewal_makes_four_calls_for_each_hold(void **state)
{
    struct who holds[MANY];
    char leaves[MANY][8];
    const char *answer;

    (void)state;
    for (int i = 0; i < MANY; i++) {
        snprintf(leaves[i], sizeof leaves[i], "x%d", i);
        holds[i] = who("a");
        holds[i].leaf = leaves[i];
        acquire(&holds[i], TRY);
    }
    begin_to_count();
    answer = renew_all(holds, MANY);
    assert_int_equal(count_calls(), 4 * MANY + 1);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(number_of(answer, i + 1), 1);
}

/* The commands of the first waiter, of the next waiter, and of a renewal, of a hold with this mark. */
static void count_of_mark(const char *leaf, const char *mark, long long ret_counts[3])
{
    struct who a = who("a"), b = who("b"), c = who("c");

    a.leaf = b.leaf = c.leaf = leaf;
    a.mark = mark;
    acquire(&a, TRY);
    renew(&a, 1, "1");
    begin_to_count();
    assert_answer(acquire(&b, QUEUE), "queued");
    ret_counts[0] = count_calls();
    begin_to_count();
    assert_answer(acquire(&c, QUEUE), "queued");
    ret_counts[1] = count_calls();
    begin_to_count();
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 2);
    ret_counts[2] = count_calls();
}

/*
 * A mark costs one command, by which the first waiter notifies the owner, and one in a renewal that looks for waiters.
 */
static void test_a_mark_makes_one_call_more_when_others_wait(void **state)
{
    long long unmarked[3], marked[3];

    (void)state;
    count_of_mark("x", "", unmarked);
    count_of_mark("y", "- ", marked);
    assert_int_equal(marked[0], unmarked[0] + 1);
    assert_int_equal(marked[1], unmarked[1]);
    assert_int_equal(marked[2], unmarked[2] + 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(test_a_pair_makes_eight_calls_when_nobody_waits),
        SCRIPT_TEST(test_a_pair_makes_eight_calls_after_a_handoff),
        SCRIPT_TEST(test_a_handoff_makes_ten_calls_when_one_waits),
        SCRIPT_TEST(test_a_handoff_makes_eighteen_calls_when_others_wait),
        SCRIPT_TEST(test_a_renewal_makes_four_calls_for_each_hold),
        SCRIPT_TEST(test_a_mark_makes_one_call_more_when_others_wait),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, scripts_group_setup, scripts_group_teardown);
}

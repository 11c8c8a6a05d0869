/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Lua scripts: the lone waiter of a mutex, which is in the field `wanted` of `state` and in no queue, from an
 * acquire of a held lock that nobody else waits for until the next script that needs the queue.
 */
#include <stdio.h>
#include <string.h>

#include "scripts.h"

/* Two attempts; the second waits alone for the first. */
static struct who a, b;
static struct inbox *inbox; /* of the waiter */

/* After a handoff `state` says that nobody waits; a new name says nothing, and its first waiter goes to the queue. */
static int begin_alone(void **state)
{
    scripts_setup(state);
    a = who("a"), b = who("b");
    inbox = inbox_open("b");
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    release(&a, UNLOCKED);
    release(&b, UNLOCKED);
    a.attempt = b.attempt = 2;
    b.request = 7;
    assert_answer(acquire(&a, TRY), "owned");
    assert_answer(acquire(&b, QUEUE), "queued");
    inbox_messages(inbox);
    return 0;
}

static int end_alone(void **state)
{
    (void)state;
    inbox_close(inbox);
    return 0;
}

#define LONE_TEST(test) cmocka_unit_test_setup_teardown(test, begin_alone, end_alone)

static bool is_alone(void)
{
    return strncmp(command("HGET %s wanted", key("state", "x")), "b:1:2 7 60000 1 ", 16) == 0;
}

static bool has_queue(void)
{
    return command_number("EXISTS %s %s", key("queue", "x"), key("waiter", "x")) > 0;
}

static void assert_granted_to_b(void)
{
    char expected[80];

    assert_string_equal(owner("x"), "b:1");
    snprintf(expected, sizeof expected, "granted 2 7 %s 60000 0 " SERVER_RUN, line_of(info("x"), 3));
    assert_string_equal(inbox_messages(inbox), expected);
    assert_string_equal(command("HGET %s wanted", key("state", "x")), "0");
}

/* ---- the short way ------------------------------------------------------------------------- */

static void test_a_lone_waiter_is_granted_the_lock_without_a_queue(void **state)
{
    (void)state;
    assert_true(is_alone());
    assert_false(has_queue());
    assert_answer(release(&a, UNLOCKED), "released");
    assert_granted_to_b();
    assert_false(has_queue());
    assert_answer(release(&b, UNLOCKED), "released");
    assert_string_equal(owner("x"), "");
}

static void test_a_marked_owner_learns_of_a_lone_waiter(void **state)
{
    struct inbox *of_owner = inbox_open("a");

    (void)state;
    release(&b, UNLOCKED);
    release(&a, UNLOCKED);
    a.attempt = b.attempt = 3;
    acquire(&a, TRY);
    a.mark = "+ ";
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 1);
    acquire(&b, QUEUE);
    assert_string_equal(inbox_messages(of_owner), "wanted 3");
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 2);
    inbox_close(of_owner);
}

/* ---- into the queue ------------------------------------------------------------------------- */

static void test_a_second_waiter_comes_after_the_lone_one(void **state)
{
    struct who c = who("c");
    struct inbox *second = inbox_open("c");

    (void)state;
    assert_answer(acquire(&c, QUEUE), "queued");
    assert_int_equal(number_of(acquire(&c, QUEUE), 1), 2);
    assert_int_equal(queued(), 2);
    assert_within(lifetime("queue", "x"), 2 * LEASE, 3 * LEASE);
    assert_within(lifetime("waiter", "x"), 2 * LEASE, 3 * LEASE);
    release(&a, UNLOCKED);
    assert_string_equal(owner("x"), "b:1");
    release(&b, UNLOCKED);
    assert_string_equal(owner("x"), "c:1");
    inbox_close(second);
}

static void test_a_lone_waiter_keeps_its_place_when_it_asks_again(void **state)
{
    const char *first, *second;

    (void)state;
    first = acquire(&b, QUEUE);
    assert_answer(first, "queued");
    assert_int_equal(number_of(first, 1), 1);
    second = acquire(&b, QUEUE);
    assert_string_equal(line_of(second, 3), line_of(first, 3));
    assert_int_equal(queued(), 1);
    release(&a, UNLOCKED);
    assert_granted_to_b();
}

static void test_a_lone_waiter_is_in_the_queue_when_it_has_polled(void **state)
{
    const char *answer;

    (void)state;
    answer = poll_of(&b);
    assert_string_equal(line_of(answer, 1), "queued");
    assert_int_equal(number_of(answer, 2), 1);
    assert_int_equal(queued(), 1);
    release(&a, UNLOCKED);
    assert_granted_to_b();
}

static void test_a_lone_waiter_leaves_when_it_cancels_or_releases(void **state)
{
    (void)state;
    assert_answer(cancel(&b), "left");
    b.attempt = 3;
    assert_answer(acquire(&b, QUEUE), "queued");
    assert_answer(release(&b, UNLOCKED), "left");
    assert_answer(release(&a, UNLOCKED), "released");
    assert_string_equal(owner("x"), "");
    assert_string_equal(inbox_messages(inbox), "");
}

/* The lone waiter has died: no inbox is there. */
static void test_a_free_lock_passes_over_a_lone_waiter_without_an_inbox(void **state)
{
    struct who c = who("c");

    (void)state;
    inbox_close(inbox);
    assert_answer(release(&a, UNLOCKED), "released");
    assert_string_equal(owner("x"), "");
    assert_answer(acquire(&c, QUEUE), "owned");
    inbox = inbox_open("b");
}

static void test_a_free_lock_waits_for_the_poll_of_a_silent_lone_waiter(void **state)
{
    (void)state;
    age_lone("x", LEASE);
    assert_answer(release(&a, UNLOCKED), "released");
    assert_string_equal(owner("x"), "");
    assert_string_equal(line_of(poll_of(&b), 1), "owned");
}

static void test_a_lone_waiter_gets_the_lock_of_a_dead_owner(void **state)
{
    (void)state;
    end_lease("x");
    assert_string_equal(line_of(poll_of(&b), 1), "owned");
    assert_int_equal(number_of(poll_of(&b), 3), 1); /* an owner died */
}

static void test_a_lone_waiter_gets_the_lock_that_is_broken(void **state)
{
    (void)state;
    force("x");
    assert_string_equal(owner("x"), "b:1");
}

static void test_a_signalled_waiter_comes_after_a_lone_waiter(void **state)
{
    struct who c = who("c");
    struct inbox *sleeper = inbox_open("c");

    (void)state;
    cancel(&b);
    release(&a, UNLOCKED);
    fall_asleep(&c);
    a.attempt = b.attempt = 3;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    signal_one();
    assert_int_equal(queued(), 2);
    release(&a, UNLOCKED);
    assert_string_equal(owner("x"), "b:1");
    inbox_close(sleeper);
}

/* ---- what others see ------------------------------------------------------------------------- */

static void test_info_counts_a_lone_waiter_and_leaves_all_as_it_is(void **state)
{
    (void)state;
    assert_int_equal(number_of(info("x"), 5), 1);
    assert_true(is_alone());
    assert_false(has_queue());
}

/* As long as a queue lives, and no longer. */
static void test_a_lone_waiter_counts_until_its_entry_is_three_leases_old(void **state)
{
    (void)state;
    a.mark = "+ ";
    age_lone("x", 2 * LEASE);
    assert_int_equal(number_of(info("x"), 5), 1);
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 2);
    age_lone("x", 2 * LEASE);
    assert_int_equal(number_of(info("x"), 5), 0);
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 1);
}

static void test_a_mutex_is_in_use_while_a_lone_waiter_lives(void **state)
{
    (void)state;
    end_lease("x");
    assert_string_equal(drop("x", "delete"), "0");
    age(&b, 3 * LEASE);
    assert_string_equal(drop("x", "delete"), "1");
    assert_false(has_queue());
    assert_int_equal(command_number("EXISTS %s", key("state", "x")), 0);
}

/* A copy may be older than the grant: then its owner is no longer lone there. */
static void test_a_renewal_takes_its_attempt_from_the_lone_place(void **state)
{
    char token[32];

    (void)state;
    end_lease("x");
    snprintf(token, sizeof token, "%lld", number_of(info("x"), 3) + 1);
    assert_int_equal(number_of(renew(&b, 1, token), 1), 1);
    assert_string_equal(owner("x"), "b:1");
    assert_string_equal(command("HGET %s wanted", key("state", "x")), "0");
    assert_answer(release(&b, UNLOCKED), "released");
    assert_string_equal(owner("x"), "");
}

static void set_wanted(const char *text)
{
    run_script("return redis.call('HSET', KEYS[1], 'wanted', ARGV[1])", 1, key("state", "x"), text, NULL);
}

/* Like a waiter in the queue whose entry is not ours; a faulty client harms nobody else. */
static void test_a_lone_waiter_with_an_odd_entry_is_dropped(void **state)
{
    static const char *const texts[] = { "somebody",
                                         "b:1:2",
                                         "b:1:2 words",
                                         "alone 7 60000 1 5 0 label",
                                         "b:1:2  60000 1 5 0 label",
                                         "b:1:2 7 60000 1 5 1e3 label" };
    struct who c = who("c");
    struct inbox *next = inbox_open("c");

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        set_wanted(texts[i]);
        assert_int_equal(number_of(renew(&a, 1, "1"), 1), 2);
        assert_int_equal(number_of(info("x"), 5), 0);
        assert_answer(acquire(&c, QUEUE), "queued");
        assert_answer(release(&a, UNLOCKED), "released");
        assert_string_equal(owner("x"), "c:1");
        assert_answer(release(&c, UNLOCKED), "released");
        set_wanted(texts[i]);
        a.attempt++, c.attempt++;
        assert_answer(acquire(&a, QUEUE), "owned");
        assert_answer(release(&a, UNLOCKED), "released");
        a.attempt++;
        assert_answer(acquire(&a, QUEUE), "owned");
    }
    inbox_close(next);
}

/* The owner of a marked hold hears of the next waiter, and the dead one gets no queue. */
static void test_a_lone_waiter_is_gone_when_its_entry_is_three_leases_old(void **state)
{
    struct inbox *of_owner = inbox_open("a");
    struct who c = who("c");

    (void)state;
    a.mark = "- ";
    renew(&a, 1, "1");
    age_lone("x", 4 * LEASE);
    assert_int_equal(number_of(acquire(&c, QUEUE), 1), 1);
    assert_string_equal(inbox_messages(of_owner), "wanted 2");
    assert_int_equal(queued(), 1);
    assert_string_equal(line_of(poll_of(&b), 1), "unknown");
    inbox_close(of_owner);
}

/*
 * After an eviction of the state nobody knows of the queue: the signal leaves the question open, and the next waiter
 * comes after the queue.
 */
static void test_a_signal_leaves_the_queue_unknown_when_the_state_was_lost(void **state)
{
    struct who c = who("c"), d = who("d"), s = who("s");
    struct inbox *of_s = inbox_open("s"), *of_c = inbox_open("c"), *of_d = inbox_open("d");

    (void)state;
    cancel(&b);
    release(&a, UNLOCKED);
    fall_asleep(&s);
    a.attempt = 3;
    acquire(&a, TRY);
    acquire(&c, QUEUE);
    gather();
    command("DEL %s %s", key("state", "x"), key("lock", "x"));
    signal_one();
    assert_string_equal(owner("x"), "s:1");
    assert_int_equal(number_of(acquire(&d, QUEUE), 1), 2);
    s.attempt = 2;
    assert_answer(release(&s, UNLOCKED), "released");
    assert_string_equal(owner("x"), "c:1");
    inbox_close(of_s);
    inbox_close(of_c);
    inbox_close(of_d);
}

/* Nothing is written before all keys have been checked. */
static void test_a_lone_waiter_stays_when_another_key_has_a_wrong_type(void **state)
{
    static const char *const kinds_of_keys[] = { "lock", "queue", "waiter", "cond", "sleeper" };

    (void)state;
    for (size_t i = 0; i < sizeof kinds_of_keys / sizeof kinds_of_keys[0]; i++) {
        bool is_of_cond = i > 2;
        const char *name = key(kinds_of_keys[i], is_of_cond ? "c" : "x"), *before;

        command("DEL %s", name);
        command("SET %s text", name);
        before = dump();
        cond_poll(&b);
        cond_wait(&b, 1);
        cond_cancel(&b);
        if (!is_of_cond) {
            force("x");
            poll_of(&b);
            acquire(&b, QUEUE);
            drop("x", "delete");
        }
        assert_string_equal(dump(), before);
        assert_true(is_alone());
        command("DEL %s", name);
    }
}

/* An older version knows no lone waiter, and writes another value into the field. */
static void test_a_lone_waiter_is_told_to_come_back_when_the_field_was_overwritten(void **state)
{
    (void)state;
    command("HDEL %s wanted", key("state", "x"));
    assert_string_equal(line_of(poll_of(&b), 1), "unknown");
    assert_answer(acquire(&b, QUEUE), "queued");
    release(&a, UNLOCKED);
    assert_string_equal(owner("x"), "b:1");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LONE_TEST(test_a_lone_waiter_is_granted_the_lock_without_a_queue),
        LONE_TEST(test_a_marked_owner_learns_of_a_lone_waiter),
        LONE_TEST(test_a_second_waiter_comes_after_the_lone_one),
        LONE_TEST(test_a_lone_waiter_keeps_its_place_when_it_asks_again),
        LONE_TEST(test_a_lone_waiter_is_in_the_queue_when_it_has_polled),
        LONE_TEST(test_a_lone_waiter_leaves_when_it_cancels_or_releases),
        LONE_TEST(test_a_free_lock_passes_over_a_lone_waiter_without_an_inbox),
        LONE_TEST(test_a_free_lock_waits_for_the_poll_of_a_silent_lone_waiter),
        LONE_TEST(test_a_lone_waiter_gets_the_lock_of_a_dead_owner),
        LONE_TEST(test_a_lone_waiter_gets_the_lock_that_is_broken),
        LONE_TEST(test_a_signalled_waiter_comes_after_a_lone_waiter),
        LONE_TEST(test_info_counts_a_lone_waiter_and_leaves_all_as_it_is),
        LONE_TEST(test_a_lone_waiter_counts_until_its_entry_is_three_leases_old),
        LONE_TEST(test_a_mutex_is_in_use_while_a_lone_waiter_lives),
        LONE_TEST(test_a_renewal_takes_its_attempt_from_the_lone_place),
        LONE_TEST(test_a_lone_waiter_with_an_odd_entry_is_dropped),
        LONE_TEST(test_a_lone_waiter_is_gone_when_its_entry_is_three_leases_old),
        LONE_TEST(test_a_signal_leaves_the_queue_unknown_when_the_state_was_lost),
        LONE_TEST(test_a_lone_waiter_stays_when_another_key_has_a_wrong_type),
        LONE_TEST(test_a_lone_waiter_is_told_to_come_back_when_the_field_was_overwritten),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, scripts_group_setup, scripts_group_teardown);
}

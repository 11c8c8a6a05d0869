/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Lua scripts: the ended hold, which `state` keeps of the last holder of a free mutex until the next grant,
 * "-<how> <held ms> <thread> <label>"; it counts as no hold.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripts.h"

#define BY_RELEASE "17 1 1 host program" /* as the releases of these tests say */

static struct who a, b;

static int begin(void **state)
{
    scripts_setup(state);
    a = who("a"), b = who("b");
    return 0;
}

#define LAST_TEST(test) cmocka_unit_test_setup(test, begin)

/* The ended hold has this beginning, thread 1 and the label; returns for how many ms the hold lasted. */
static long long assert_ended(const char *how)
{
    const char *ended = ended_hold("x");
    char *end;
    long long ms = strtoll(ended + strlen(how), &end, 10);

    assert_memory_equal(ended, how, strlen(how));
    assert_string_equal(end, " 1 1 host program");
    return ms;
}

/* Moves the grant of the present hold, and its last renewal, into the past. */
static void age_hold(long long granted_ms, long long renewed_ms)
{
    static const char script[] = "local t = redis.call('TIME')\n"
                                 "local us = (t[1] - 1577836800) * 1000000 + t[2] - ARGV[1] * 1000\n"
                                 "redis.call('HSET', KEYS[1], 'token', ('%d'):format(us))\n"
                                 "return redis.call('PEXPIRE', KEYS[1], 7 * 24 * 3600000 - ARGV[2])\n";

    run_script(script, 1, key("state", "x"), scripts_text("%lld", granted_ms), scripts_text("%lld", renewed_ms), NULL);
}

/* ---- who had it, and how it ended -------------------------------------------------------- */

/* By the usual way, and by the way of what is not usual. */
static void test_a_release_leaves_the_hold_as_ended(void **state)
{
    (void)state;
    assert_answer(acquire(&a, TRY), "owned");
    assert_string_equal(ended_hold("x"), "");
    assert_answer(release(&a, UNLOCKED), "released");
    assert_string_equal(ended_hold("x"), "-0 " BY_RELEASE);
    a.attempt = 2;
    assert_answer(acquire(&a, TRY), "owned");
    assert_string_equal(ended_hold("x"), "");
    assert_answer(release(&a, DIED), "released");
    assert_string_equal(ended_hold("x"), "-1 " BY_RELEASE);
    a.attempt = 3;
    assert_answer(acquire(&a, TRY), "owned");
    assert_answer(release(&a, UNLOCKED), "released"); /* with a death not made consistent */
    assert_string_equal(ended_hold("x"), "-0 " BY_RELEASE);
    a.attempt = 4;
    assert_answer(acquire(&a, TRY), "owned");
    assert_answer(release(&a, NOT_RECOVERABLE), "released");
    assert_string_equal(ended_hold("x"), "-2 " BY_RELEASE);
}

/* The same if a death is reported, which is not the usual case, and if there was a waiter that has gone. */
static void test_a_release_finds_no_waiter_and_leaves_the_hold_as_ended(void **state)
{
    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    age(&b, 1000000);
    assert_answer(release(&a, UNLOCKED), "released");
    assert_string_equal(owner("x"), "");
    assert_string_equal(ended_hold("x"), "-0 " BY_RELEASE);
}

static void test_a_handoff_leaves_no_ended_hold(void **state)
{
    struct inbox *inbox = inbox_open("b");

    (void)state;
    acquire(&a, TRY);
    acquire(&b, QUEUE);
    assert_answer(release(&a, UNLOCKED), "released");
    assert_string_equal(owner("x"), "b:1");
    assert_string_equal(ended_hold("x"), "");
    assert_answer(release(&b, UNLOCKED), "released");
    assert_string_equal(ended_hold("x"), "-0 " BY_RELEASE);
    inbox_close(inbox);
}

static void test_a_break_leaves_the_hold_as_broken(void **state)
{
    long long ms;

    (void)state;
    acquire(&a, TRY);
    age_hold(100000, 0);
    assert_answer(force("x"), "broken");
    ms = assert_ended("-3 ");
    assert_true(ms >= 100000 && ms < 160000);
    assert_int_equal(number_of(info("x"), 6), 1); /* the next robust holder gets it */
    assert_answer(release(&a, UNLOCKED), "notowner");
    assert_ended("-3 ");
    assert_answer(force("x"), "free");
}

/* Without a renewal the lease began with the grant. */
static void test_a_dead_owner_held_to_the_end_of_its_lease(void **state)
{
    long long ms;

    (void)state;
    acquire(&a, TRY);
    age_hold(100000, 200000);
    end_lease("x");
    poll_serving("x");
    assert_int_equal(assert_ended("-1 "), LEASE);
    a.attempt = 2;
    acquire(&a, TRY);
    age_hold(200000, 80000); /* renewed after 120 s */
    end_lease("x");
    poll_serving("x");
    ms = assert_ended("-1 ");
    assert_true(ms > 110000 + LEASE && ms < 130000 + LEASE);
}

/* A renewal postpones the end of `state`, which thus shows the time of the renewal. */
static void test_a_renewal_is_known_by_the_life_of_the_state(void **state)
{
    long long week = 7 * 24 * 3600000LL;

    (void)state;
    acquire(&a, TRY);
    age_hold(100000, 80000);
    assert_true(lifetime("state", "x") <= week - 80000);
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 1);
    assert_true(lifetime("state", "x") > week - 60000);
}

static void test_the_end_of_a_kept_lease_is_no_death(void **state)
{
    (void)state;
    acquire(&a, TRY);
    a.mark = "- ";
    renew(&a, 1, "1");
    end_lease("x");
    poll_serving("x");
    assert_ended("-0 ");
    assert_int_equal(number_of(info("x"), 6), 0);
}

static void test_a_wait_on_a_condition_leaves_the_hold_as_ended(void **state)
{
    (void)state;
    acquire(&a, TRY);
    a.attempt = 2;
    assert_answer(cond_wait(&a, 1), "waiting");
    assert_ended("-0 ");
    assert_answer(signal_one(), "moved");
    assert_string_equal(owner("x"), "");
    a.attempt = 1;
}

/* A release that an acquire names uses the same text. */
static void test_a_release_that_is_named_by_another_acquire_ends_the_hold(void **state)
{
    struct who next = who("a");

    (void)state;
    acquire(&a, TRY);
    next.attempt = 2;
    assert_answer(acquire_naming(&next, TRY, "1:1:2"), "notrecoverable");
    assert_ended("-2 ");
}

/* ---- an ended hold is no hold ------------------------------------------------------------ */

static void test_an_ended_hold_is_nobodys(void **state)
{
    const char *before;

    (void)state;
    acquire(&a, TRY);
    release(&a, UNLOCKED);
    before = strdup(dump());
    assert_answer(release(&a, UNLOCKED), "notowner");
    assert_answer(cond_wait(&a, 1), "notowner");
    assert_string_equal(consistent(&a), "0");
    assert_answer(cancel(&a), "left");
    assert_int_equal(number_of(renew(&a, 1, line_of(info("x"), 3)), 1), 0);
    assert_string_equal(line_of(info("x"), 0), "");
    assert_int_equal(number_of(info("x"), 6), 0);
    poll_serving("x");
    assert_string_equal(dump(), before);
    assert_answer(force("x"), "free");
    assert_string_equal(dump(), before);
    free((void *)before);
    assert_answer(acquire(&b, QUEUE), "owned");
    assert_int_equal(number_of(info("x"), 6), 0);
}

static void test_a_signal_takes_a_lock_with_an_ended_hold(void **state)
{
    struct inbox *inbox = inbox_open("a");

    (void)state;
    fall_asleep(&a);
    assert_ended("-0 ");
    signal_one();
    assert_string_equal(owner("x"), "a:1");
    assert_string_equal(ended_hold("x"), "");
    inbox_close(inbox);
}

static void test_a_destroyed_anonymous_mutex_leaves_no_ended_hold(void **state)
{
    (void)state;
    acquire(&a, TRY);
    release(&a, UNLOCKED);
    assert_string_equal(drop("x", "clean"), "1");
    assert_string_equal(ended_hold("x"), "-0 " BY_RELEASE);
    assert_string_equal(drop("x", "delete"), "1");
    assert_string_equal(dump(), "");
}

/* Not by the usual acquire, which only checks the minus sign. */
static void test_a_text_that_only_looks_ended_is_refused(void **state)
{
    static const char *const texts[] = { "-", "-x", "-0", "-0 1", "-0 1 x label", "--1 1 1 label", "-0 1e5 1 label" };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        command("HSET %s hold %s token 5", key("state", "x"), texts[i]);
        assert_non_null(strstr(info("x"), "DMSTATE"));
        assert_non_null(strstr(force("x"), "DMSTATE"));
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LAST_TEST(test_a_release_leaves_the_hold_as_ended),
        LAST_TEST(test_a_release_finds_no_waiter_and_leaves_the_hold_as_ended),
        LAST_TEST(test_a_handoff_leaves_no_ended_hold),
        LAST_TEST(test_a_break_leaves_the_hold_as_broken),
        LAST_TEST(test_a_dead_owner_held_to_the_end_of_its_lease),
        LAST_TEST(test_a_renewal_is_known_by_the_life_of_the_state),
        LAST_TEST(test_the_end_of_a_kept_lease_is_no_death),
        LAST_TEST(test_a_wait_on_a_condition_leaves_the_hold_as_ended),
        LAST_TEST(test_a_release_that_is_named_by_another_acquire_ends_the_hold),
        LAST_TEST(test_an_ended_hold_is_nobodys),
        LAST_TEST(test_a_signal_takes_a_lock_with_an_ended_hold),
        LAST_TEST(test_a_destroyed_anonymous_mutex_leaves_no_ended_hold),
        LAST_TEST(test_a_text_that_only_looks_ended_is_refused),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, scripts_group_setup, scripts_group_teardown);
}

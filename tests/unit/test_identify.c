/* SPDX-License-Identifier: BSD-2-Clause */
/* link/identify: when requests wait until the server has said that it is the server of the greeting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "link/identify.h"

#define MS DM_NS_PER_MS
#define BEGUN (5000 * MS)
#define TIMEOUT (2000 * MS)

static struct dm_identify identify;

static int begin(void **state)
{
    (void)state;
    identify = (struct dm_identify){ 0 };
    dm_identify_begin(&identify, BEGUN);
    return 0;
}

static enum dm_identify_verdict take(enum dm_identified identified, int64_t sent_ns, bool has_waiting, int64_t now_ns)
{
    return dm_identify_take(&identify, identified, sent_ns, has_waiting, TIMEOUT, now_ns);
}

/* A check that is not answered yet is due no sooner. */
static void test_a_look_is_due_a_pause_after_the_last(void **state)
{
    (void)state;
    assert_false(dm_identify_is_due(&identify, DM_IDENTIFY_NS, BEGUN + DM_IDENTIFY_NS - 1));
    assert_true(dm_identify_is_due(&identify, DM_IDENTIFY_NS, BEGUN + DM_IDENTIFY_NS));
    dm_identify_note_sent(&identify, BEGUN + DM_IDENTIFY_NS);
    assert_false(dm_identify_is_due(&identify, DM_IDENTIFY_NS, BEGUN + DM_IDENTIFY_NS + 1));
}

static void test_a_request_goes_out_while_the_server_is_known(void **state)
{
    (void)state;
    assert_int_equal(dm_identify_at_request(&identify, BEGUN + DM_IDENTIFY_NS - 1), DM_IDENTIFY_SENDS);
    dm_identify_note_sent(&identify, BEGUN + 500 * MS);
    assert_int_equal(take(DM_IDENTIFIED_SAME, BEGUN + 500 * MS, false, BEGUN + 600 * MS), DM_IDENTIFY_SENDS);
    assert_int_equal(dm_identify_at_request(&identify, BEGUN + 1499 * MS), DM_IDENTIFY_SENDS);
}

/* The server is known as of the question: the answer says nothing about what happened after it. */
static void test_a_request_waits_after_an_idle_second(void **state)
{
    (void)state;
    dm_identify_note_sent(&identify, BEGUN + 3000 * MS);
    assert_int_equal(dm_identify_at_request(&identify, BEGUN + 3000 * MS), DM_IDENTIFY_WAITS);
    assert_int_equal(take(DM_IDENTIFIED_SAME, BEGUN + 3000 * MS, true, BEGUN + 3100 * MS), DM_IDENTIFY_SENDS);
    assert_int_equal(dm_identify_at_request(&identify, BEGUN + 3999 * MS), DM_IDENTIFY_SENDS);
    assert_int_equal(dm_identify_at_request(&identify, BEGUN + 4000 * MS),
                     DM_IDENTIFY_FAILS); /* a check must be under way */
}

/* Finding 128: the check of a request before is not answered yet, and is not half a second old. */
static void test_a_request_waits_for_a_slow_look_of_another_request(void **state)
{
    (void)state;
    dm_identify_note_sent(&identify, BEGUN + 900 * MS);
    assert_int_equal(dm_identify_at_request(&identify, BEGUN + 950 * MS), DM_IDENTIFY_SENDS);
    assert_false(dm_identify_is_due(&identify, DM_IDENTIFY_NS / 2, BEGUN + 1300 * MS));
    assert_int_equal(dm_identify_at_request(&identify, BEGUN + 1300 * MS), DM_IDENTIFY_WAITS);
    assert_int_equal(take(DM_IDENTIFIED_SAME, BEGUN + 900 * MS, true, BEGUN + 1400 * MS), DM_IDENTIFY_SENDS);
}

/* Finding 128: an answer that lay in the socket of a stopped process says nothing about the current server. */
static void test_waiting_requests_fail_when_the_answer_is_old(void **state)
{
    int64_t sent_ns = BEGUN + 3000 * MS;

    (void)state;
    dm_identify_note_sent(&identify, sent_ns);
    assert_int_equal(take(DM_IDENTIFIED_SAME, sent_ns, true, sent_ns + TIMEOUT), DM_IDENTIFY_FAILS);
    assert_int_equal(identify.under_way, 0);
}

static void test_an_old_answer_is_harmless_when_nothing_waits(void **state)
{
    int64_t sent_ns = BEGUN + 3000 * MS;

    (void)state;
    dm_identify_note_sent(&identify, sent_ns);
    assert_int_equal(take(DM_IDENTIFIED_SAME, sent_ns, false, sent_ns + TIMEOUT), DM_IDENTIFY_WAITS);
    assert_int_equal(dm_identify_at_request(&identify, sent_ns + TIMEOUT), DM_IDENTIFY_FAILS);
}

static void test_the_connection_fails_when_the_server_is_another(void **state)
{
    (void)state;
    for (int has_waiting = 0; has_waiting < 2; has_waiting++) {
        dm_identify_note_sent(&identify, BEGUN + 100 * MS);
        assert_int_equal(take(DM_IDENTIFIED_OTHER, BEGUN + 100 * MS, has_waiting, BEGUN + 200 * MS), DM_IDENTIFY_FAILS);
    }
}

/* A busy server does not count as known: what waits has no answer to wait for, and the next request checks at once. */
static void test_a_busy_server_is_asked_again(void **state)
{
    (void)state;
    dm_identify_note_sent(&identify, BEGUN + 800 * MS);
    assert_int_equal(take(DM_IDENTIFIED_BUSY, BEGUN + 800 * MS, false, BEGUN + 900 * MS), DM_IDENTIFY_WAITS);
    assert_true(dm_identify_is_due(&identify, DM_IDENTIFY_NS / 2, BEGUN + 900 * MS));
    assert_int_equal(dm_identify_at_request(&identify, BEGUN + 999 * MS), DM_IDENTIFY_SENDS);
    dm_identify_note_sent(&identify, BEGUN + 1000 * MS);
    assert_int_equal(take(DM_IDENTIFIED_BUSY, BEGUN + 1000 * MS, true, BEGUN + 1100 * MS), DM_IDENTIFY_FAILS);
}

/* Another check is under way, and may let the requests go. */
static void test_requests_wait_on_when_one_of_two_looks_says_nothing(void **state)
{
    (void)state;
    dm_identify_note_sent(&identify, BEGUN + 1000 * MS);
    dm_identify_note_sent(&identify, BEGUN + 1600 * MS);
    assert_int_equal(take(DM_IDENTIFIED_BUSY, BEGUN + 1000 * MS, true, BEGUN + 1700 * MS), DM_IDENTIFY_WAITS);
    assert_int_equal(take(DM_IDENTIFIED_SAME, BEGUN + 1600 * MS, true, BEGUN + 1800 * MS), DM_IDENTIFY_SENDS);
}

static void test_nothing_is_under_way_when_the_connection_has_ended(void **state)
{
    (void)state;
    dm_identify_note_sent(&identify, BEGUN);
    dm_identify_end(&identify);
    assert_int_equal(identify.under_way, 0);
}

#define LOOK_TEST(test) cmocka_unit_test_setup(test, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOK_TEST(test_a_look_is_due_a_pause_after_the_last),
        LOOK_TEST(test_a_request_goes_out_while_the_server_is_known),
        LOOK_TEST(test_a_request_waits_after_an_idle_second),
        LOOK_TEST(test_a_request_waits_for_a_slow_look_of_another_request),
        LOOK_TEST(test_waiting_requests_fail_when_the_answer_is_old),
        LOOK_TEST(test_an_old_answer_is_harmless_when_nothing_waits),
        LOOK_TEST(test_the_connection_fails_when_the_server_is_another),
        LOOK_TEST(test_a_busy_server_is_asked_again),
        LOOK_TEST(test_requests_wait_on_when_one_of_two_looks_says_nothing),
        LOOK_TEST(test_nothing_is_under_way_when_the_connection_has_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

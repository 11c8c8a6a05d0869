/* SPDX-License-Identifier: BSD-2-Clause */
/* core/hold, held at a store of several servers: the store says since when the lease counts. */
#include "hold_clock.h"

static unsigned renewed_from(int64_t from_ms, bool is_partial, uint64_t request, int64_t ms)
{
    struct dm_answer answer = {
        .verdict = DM_SAYS_OWNED, .token = 100, .from_ns = at(from_ms), .is_partial = is_partial
    };

    return step(DM_EV_RENEWED, request, &answer, ms);
}

/* Q1: a store of several servers says from when the lease counts, also if that is before the sending: renew soon. */
static void test_hold_is_certain_from_the_stores_moment_when_told(void **state)
{
    (void)state;
    own();
    pass_time(THIRD_MS);
    assert_int_equal(renewed_from(100, false, send_due_at(THIRD_MS), 310), 0);
    assert_certain_until(100 + CERTAIN_MS);
    assert_int_equal(next_ns(), at(310 + RETRY_MS));
}

/* A server gave the lock away: the majority's moment goes back, and certainty with it. */
static void test_hold_is_certain_for_less_when_the_store_takes_back(void **state)
{
    (void)state;
    own();
    assert_int_equal(renewed_from(200, false, send_at(200), 210), 0);
    assert_certain_until(200 + CERTAIN_MS);
    assert_int_equal(renewed_from(50, false, send_at(220), 230), 0);
    assert_certain_until(50 + CERTAIN_MS);
}

static void test_hold_renews_soon_when_a_server_has_not_got_it(void **state)
{
    (void)state;
    own();
    assert_int_equal(renewed_from(200, true, send_at(200), 210), 0);
    assert_int_equal(next_ns(), at(210 + RETRY_MS));
    assert_int_equal(renewed_from(300, false, send_at(300), 310), 0);
    assert_int_equal(next_ns(), at(300 + THIRD_MS));
}

/* A grant without a token is for attempts that wait. */
static void test_hold_stays_when_a_hint_comes_late(void **state)
{
    (void)state;
    own();
    assert_int_equal(step(DM_EV_GRANTED, 0, &(struct dm_answer){ .verdict = DM_SAYS_OWNED }, 10), 0);
    assert_int_equal(hold.phase, DM_HELD);
    assert_certain_until(CERTAIN_MS);
}

/* Q6: the token is known once a renewal has confirmed it, and stays known. */
static void test_a_token_is_soft_until_a_renewal_makes_it_firm(void **state)
{
    struct dm_answer soft = { .verdict = DM_SAYS_OWNED, .token = 100, .is_token_soft = true };
    uint64_t request = send_at(0);

    (void)state;
    assert_int_equal(step(DM_EV_ANSWER, request, &soft, 1), DM_DO_WAKE);
    assert_true(hold.is_token_soft);
    assert_int_equal(step(DM_EV_RENEWED, send_at(2), &soft, 3), 0);
    assert_true(hold.is_token_soft);
    assert_int_equal(renewed(DM_SAYS_OWNED, send_at(4), 5), 0);
    assert_false(hold.is_token_soft);
    assert_int_equal(step(DM_EV_RENEWED, send_at(6), &soft, 7), 0);
    assert_false(hold.is_token_soft);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        USUAL(test_hold_is_certain_from_the_stores_moment_when_told),
        USUAL(test_hold_is_certain_for_less_when_the_store_takes_back),
        USUAL(test_hold_renews_soon_when_a_server_has_not_got_it),
        USUAL(test_hold_stays_when_a_hint_comes_late),
        USUAL(test_a_token_is_soft_until_a_renewal_makes_it_firm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

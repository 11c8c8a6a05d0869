/* SPDX-License-Identifier: BSD-2-Clause */
/* core/quorum: a hold on several servers: renewals, tokens, deaths, and giving back. */
#include "attempts.h"

/* ---- Q5: renew only what is certain; servers that come back ------------------------------- */

static void test_a_renewal_goes_only_to_a_server_that_is_certain(void **state)
{
    (void)state;
    dash(3, false);
    assert_int_equal(dm_quorum_renewal(&quorum, 0, at(CERTAIN_MS) - 1), DM_QUORUM_RENEW);
    assert_int_equal(dm_quorum_renewal(&quorum, 0, at(CERTAIN_MS)), DM_QUORUM_TRY);
    assert_int_equal(dm_quorum_renewal(&quorum, 2, at(1)), DM_QUORUM_TRY);
    renew(1, 300, DM_SAYS_UNKNOWN);
    assert_int_equal(dm_quorum_renewal(&quorum, 1, at(310)), DM_QUORUM_TRY);
}

/* The first version took an older copy's word, and two attempts owned: the copy named one that had given back since. */
static void test_a_try_is_not_owned_when_the_server_is_in_its_grace(void **state)
{
    (void)state;
    dash(2, false);
    answer_newly(0, DM_QUORUM_TRY, 0, DM_SAYS_OWNED, LEASE_MS - 1);
    assert_int_equal(step_at(1), DM_QUORUM_OPEN);
    say(2, DM_SAYS_BUSY);
    assert_int_equal(step_at(1), DM_QUORUM_REFUSED);
    assert_true(quorum.legs[0].is_touched);
}

static void test_a_try_is_owned_when_the_grace_is_over(void **state)
{
    (void)state;
    dash(2, false);
    answer_newly(0, DM_QUORUM_TRY, 0, DM_SAYS_OWNED, LEASE_MS);
    assert_int_equal(step_at(1), DM_QUORUM_OWNED);
}

/* A server that came back with older data has forgotten the hold, and grants nothing before the hold's end. */
static void test_a_hold_stays_certain_when_a_new_server_has_forgotten_the_hold(void **state)
{
    (void)state;
    dash(3, false);
    assert_int_equal(step_at(1), DM_QUORUM_OWNED);
    answer_newly(0, DM_QUORUM_RENEW, 300, DM_SAYS_UNKNOWN, 100);
    assert_certain_until(CERTAIN_MS);
    assert_true(dm_quorum_hold(&quorum, at(310)).is_token_soft);
}

static void test_a_hold_is_lost_when_the_grace_ends_too_soon(void **state)
{
    (void)state;
    dash(3, false);
    assert_int_equal(step_at(1), DM_QUORUM_OWNED);
    answer_newly(0, DM_QUORUM_RENEW, 300, DM_SAYS_UNKNOWN, 400);
    assert_false(dm_quorum_is_certain(&quorum, at(300)));
}

/* ---- Q6: tokens -------------------------------------------------------------------------- */

/* A token that was returned before is on two of three servers: at least one of these two has given a higher one. */
static void test_a_token_is_the_highest_when_a_majority_owns(void **state)
{
    (void)state;
    dash(3, false);
    assert_int_equal(step_at(1), DM_QUORUM_OWNED);
    assert_int_equal(settled_at(1), 102);
}

/* Two of these three have given a higher one than any that was returned, so a single server cannot raise the token. */
static void test_a_token_is_the_second_when_all_three_own(void **state)
{
    (void)state;
    dash(3, false);
    own(2, 0, 900);
    assert_int_equal(step_at(1), DM_QUORUM_OWNED);
    assert_int_equal(settled_at(1), 102);
}

/* Of three the highest, of four the second, of five the third. */
static void test_a_token_of_five_is_of_a_lower_rank_with_each_server_that_owns(void **state)
{
    static const struct {
        unsigned owned;
        uint64_t token;
    } cases[] = { { 7, 103 }, { 15, 103 }, { 31, 103 }, { 28, 105 }, { 30, 104 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dm_quorum_init(&quorum, 5, LEASE_MS, 100);
        dash(cases[i].owned, false);
        assert_int_equal(settled_at(1), cases[i].token);
    }
}

/* The renewal has gone out with the token, and the caller may know it. */
static void test_a_token_stays_when_another_server_comes(void **state)
{
    (void)state;
    dash(3, false);
    assert_int_equal(settled_at(1), 102);
    own(2, 10, 900);
    assert_int_equal(settled_at(11), 102);
    assert_int_equal(dm_quorum_hold(&quorum, at(12)).token, 102);
}

/* A server that is no longer certain may have granted to others since: its token says nothing. */
static void test_a_token_is_not_of_a_server_whose_certainty_is_over(void **state)
{
    (void)state;
    dash(4, false);
    own(0, 300, 500);
    own(1, 300, 400);
    assert_int_equal(settled_at(CERTAIN_MS + 10), 500);
}

/* The caller gets no token that may still change. */
static void test_a_token_is_soft_until_it_is_settled(void **state)
{
    (void)state;
    dash(7, false);
    assert_int_equal(step_at(1), DM_QUORUM_OWNED);
    assert_true(dm_quorum_hold(&quorum, at(1)).is_token_soft);
    assert_int_equal(dm_quorum_hold(&quorum, at(1)).token, 101);
    settled_at(1);
    assert_false(dm_quorum_hold(&quorum, at(1)).is_token_soft);
    assert_int_equal(dm_quorum_hold(&quorum, at(1)).token, 102);
}

/* ---- Q6: tokens that are not believed ---------------------------------------------------- */

#define HUGE_TOKEN (DM_TOKEN_LIMIT - 2)

/* The server that has jumped owns, but its token does not count; nor do renewals carry it. */
static void test_a_token_is_not_believed_when_it_is_far_ahead_of_the_clocks(void **state)
{
    (void)state;
    for (int liar = 0; liar < 3; liar++) {
        dm_quorum_init(&quorum, 3, LEASE_MS, 100);
        dash(7 & ~(1u << liar), false);
        own(liar, 0, HUGE_TOKEN);
        assert_int_equal(step_at(1), DM_QUORUM_OWNED);
        assert_int_equal(settled_at(1), liar == 2 ? 102 : 103);
        for (int i = 0; i < 3; i++)
            renew(i, 10, DM_SAYS_OWNED);
        assert_false(dm_quorum_hold(&quorum, at(12)).is_token_soft);
        assert_int_equal(dm_quorum_hold(&quorum, at(12)).token, liar == 2 ? 102 : 103);
    }
}

static void test_a_hold_goes_on_without_a_token_when_a_server_of_two_has_jumped(void **state)
{
    (void)state;
    dash(1, false);
    own(1, 0, HUGE_TOKEN);
    assert_int_equal(step_at(1), DM_QUORUM_OWNED);
    assert_int_equal(settled_at(1), 0);
    renew(0, 10, DM_SAYS_OWNED);
    renew(1, 10, DM_SAYS_OWNED);
    assert_true(dm_quorum_hold(&quorum, at(12)).is_token_soft);
    assert_int_equal(dm_quorum_hold(&quorum, at(12)).token, 101);
    own(2, 20, 103);
    assert_int_equal(settled_at(21), 103);
    assert_true(dm_quorum_hold(&quorum, at(22)).is_token_soft);
    renew(0, 30, DM_SAYS_OWNED);
    assert_false(dm_quorum_hold(&quorum, at(32)).is_token_soft);
}

/* The bound itself: a day ahead of the clock. */
static void test_a_token_is_believed_up_to_a_day_ahead_of_the_clock(void **state)
{
    (void)state;
    for (uint64_t beyond = 0; beyond < 2; beyond++) {
        dm_quorum_init(&quorum, 3, LEASE_MS, 100);
        dash(1, false);
        own(1, 0, DM_QUORUM_AHEAD_US + beyond);
        assert_int_equal(settled_at(0), beyond ? 0 : DM_QUORUM_AHEAD_US);
    }
}

/* It reports a clock that fits the token; the clocks of the others say otherwise. */
static void test_a_server_does_not_prove_its_token_by_its_own_clock(void **state)
{
    (void)state;
    dash(3, false);
    own_by_clock(2, 0, HUGE_TOKEN, DM_TOKEN_EPOCH_US + (int64_t)HUGE_TOKEN);
    dm_quorum_lose(&quorum, 0, at(5));
    assert_int_equal(settled_at(6), 0);
    assert_true(dm_quorum_hold(&quorum, at(6)).is_token_soft);
}

/* Two clocks of three decide: a server whose clock is slow makes no other server's token unbelievable. */
static void test_tokens_are_believed_when_one_clock_is_years_slow(void **state)
{
    (void)state;
    dm_quorum_begin(&quorum, DM_QUORUM_DASH, false, 0);
    send_all(0);
    own_by_clock(0, 0, 5, 0 + 1);
    own(1, 0, 102);
    own(2, 0, 103);
    assert_int_equal(settled_at(1), 102);
    assert_false(dm_quorum_hold(&quorum, at(1)).is_token_soft);
}

/* Without the clocks of a majority no token is believed, and none is carried but the lowest. */
static void test_no_token_is_settled_when_a_server_gives_no_time(void **state)
{
    (void)state;
    dash(1, false);
    own_by_clock(1, 0, HUGE_TOKEN, 0);
    assert_int_equal(step_at(1), DM_QUORUM_OWNED);
    assert_int_equal(settled_at(1), 0);
    assert_int_equal(dm_quorum_token(&quorum), 101);
    assert_true(dm_quorum_hold(&quorum, at(1)).is_token_soft);
}

/* The one that was returned may since have been on the server that has jumped: the others' may be below it. */
static void test_no_token_is_settled_below_one_that_is_not_believed(void **state)
{
    (void)state;
    dash(3, false);
    assert_int_equal(settled_at(1), 102); /* returned */
    dm_quorum_begin_release(&quorum, -1);
    dash(4, false);
    own(1, 0, HUGE_TOKEN);
    assert_int_equal(settled_at(1), 0);
}

/* ---- Q6: tokens and rounds --------------------------------------------------------------- */

/* The process was stopped, and learns of the majority too late: another hold has come and gone on server 2. */
static void test_a_token_is_new_when_the_attempt_asks_again(void **state)
{
    (void)state;
    dash(3, false);
    assert_int_equal(step_at(1), DM_QUORUM_OWNED);
    assert_int_equal(settled_at(1), 102);
    dm_quorum_begin(&quorum, DM_QUORUM_DASH, false, 0);
    assert_int_equal(send_all(2000), 3);
    own(0, 2000, 101);
    own(2, 2000, 900);
    assert_int_equal(step_at(2001), DM_QUORUM_OWNED);
    assert_int_equal(settled_at(2001), 900);
}

/* A server that was given back in an earlier round has no part in the hold. */
static void test_a_token_is_of_the_servers_that_have_the_hold(void **state)
{
    (void)state;
    dash(4, true);
    dm_quorum_begin_release(&quorum, -1);
    dash(3, true);
    assert_int_equal(step_at(1), DM_QUORUM_OWNED);
    assert_int_equal(settled_at(2), 102);
}

/* 101 and 102: the token 102 is on one server. A renewal carries it to the other. */
static void test_a_token_is_firm_when_a_majority_has_it(void **state)
{
    (void)state;
    dash(3, false);
    assert_int_equal(step_at(1), DM_QUORUM_OWNED);
    settled_at(2);
    assert_true(dm_quorum_hold(&quorum, at(2)).is_token_soft);
    renew(1, 10, DM_SAYS_OWNED);
    assert_true(dm_quorum_hold(&quorum, at(12)).is_token_soft);
    renew(0, 10, DM_SAYS_OWNED);
    assert_false(dm_quorum_hold(&quorum, at(12)).is_token_soft);
}

/* A server that comes later with a higher token gives none below the hold's. */
static void test_a_token_is_firm_when_another_server_has_a_higher_one(void **state)
{
    (void)state;
    dash(3, false);
    settled_at(2);
    own(2, 10, 900);
    assert_false(dm_quorum_hold(&quorum, at(12)).is_token_soft);
}

/* A server that gave the lock away may have lost its data, and its token with it; a renewal brings the token again. */
static void test_a_token_is_soft_again_when_a_server_has_lost_the_hold(void **state)
{
    (void)state;
    dash(7, false);
    assert_int_equal(settled_at(1), 102);
    assert_false(dm_quorum_hold(&quorum, at(12)).is_token_soft);
    renew(1, 20, DM_SAYS_UNKNOWN);
    assert_true(dm_quorum_hold(&quorum, at(22)).is_token_soft);
    own(1, 30, 50); /* new data */
    assert_true(dm_quorum_hold(&quorum, at(32)).is_token_soft);
    renew(1, 40, DM_SAYS_OWNED);
    assert_false(dm_quorum_hold(&quorum, at(42)).is_token_soft);
}

/* ---- Q8: deaths and refusals ------------------------------------------------------------- */

static void test_a_death_is_reported_when_one_server_reports_it(void **state)
{
    (void)state;
    dash(1, false);
    answer(1, DM_QUORUM_TRY, 0, (struct dm_answer){ .verdict = DM_SAYS_OWNED, .token = 5, .is_owner_dead = true });
    assert_int_equal(step_at(1), DM_QUORUM_OWNED);
    assert_true(dm_quorum_hold(&quorum, at(1)).is_owner_dead);
}

/* One server that missed the cleaning leaves a majority; two do not. */
static void test_a_mutex_is_not_recoverable_when_two_say_so(void **state)
{
    (void)state;
    dash(6, true);
    say(0, DM_SAYS_NOT_RECOVERABLE);
    assert_int_equal(step_at(1), DM_QUORUM_OWNED);
    dm_quorum_init(&quorum, 3, LEASE_MS, 100);
    dash(1, true);
    say(1, DM_SAYS_NOT_RECOVERABLE);
    assert_int_equal(step_at(1), DM_QUORUM_OPEN);
    say(2, DM_SAYS_NOT_RECOVERABLE);
    assert_int_equal(step_at(1), DM_QUORUM_REFUSED);
    assert_int_equal(dm_quorum_refusal(&quorum).verdict, DM_SAYS_NOT_RECOVERABLE);
}

/* ---- Q4: giving back --------------------------------------------------------------------- */

static void release_all(void)
{
    dm_quorum_begin_release(&quorum, -1);
    for (int i = 0; i < quorum.count; i++) {
        if (quorum.legs[i].is_touched)
            dm_quorum_send(&quorum, i, DM_QUORUM_RELEASE);
    }
}

static void released(int server, enum dm_verdict verdict)
{
    answer(server, DM_QUORUM_RELEASE, 0, (struct dm_answer){ .verdict = verdict });
}

static void test_a_release_is_done_when_a_majority_has_answered(void **state)
{
    (void)state;
    dash(7, false);
    release_all();
    assert_false(dm_quorum_is_certain(&quorum, at(1)));
    released(0, DM_SAYS_DONE);
    assert_int_equal(dm_quorum_released(&quorum, false), DM_SAYS_NOTHING);
    released(2, DM_SAYS_DONE);
    assert_int_equal(dm_quorum_released(&quorum, false), DM_SAYS_DONE);
    assert_int_equal(dm_quorum_released(&quorum, true), DM_SAYS_NOTHING);
}

/* One server had the hold, and one had not: as after `dmutex break`, which may have missed a server. */
static void check_last(enum dm_verdict last, enum dm_verdict result)
{
    dm_quorum_init(&quorum, 3, LEASE_MS, 100);
    dash(7, false);
    release_all();
    released(0, DM_SAYS_DONE);
    released(2, DM_SAYS_NOT_OWNER);
    assert_int_equal(dm_quorum_released(&quorum, false), DM_SAYS_NOTHING);
    if (last == DM_SAYS_NOTHING)
        dm_quorum_take(&quorum, 1, DM_QUORUM_RELEASE, at(0), NULL);
    else
        released(1, last);
    assert_int_equal(dm_quorum_released(&quorum, false), result);
}

static void test_the_last_server_decides_when_the_others_differ(void **state)
{
    (void)state;
    check_last(DM_SAYS_DONE, DM_SAYS_DONE);
    check_last(DM_SAYS_NOT_OWNER, DM_SAYS_NOT_OWNER);
    check_last(DM_SAYS_NOTHING, DM_SAYS_DONE);
}

static void test_a_release_leaves_a_minority_that_is_silent(void **state)
{
    (void)state;
    dash(7, false);
    release_all();
    released(0, DM_SAYS_DONE);
    dm_quorum_leave_silent(&quorum);
    assert_int_equal(dm_quorum_released(&quorum, true), DM_SAYS_NOTHING); /* two are silent */
    released(2, DM_SAYS_NOT_OWNER);
    assert_int_equal(dm_quorum_released(&quorum, false), DM_SAYS_NOTHING);
    dm_quorum_leave_silent(&quorum);
    assert_int_equal(dm_quorum_released(&quorum, false), DM_SAYS_DONE);
    assert_int_equal(dm_quorum_released(&quorum, true), DM_SAYS_DONE);
    assert_true(quorum.legs[1].is_touched);
}

/* A server that was busy, and one that has forgotten the hold, are no majority that has lost the hold. */
static void test_a_release_is_done_when_one_of_two_servers_has_forgotten_the_hold(void **state)
{
    (void)state;
    dash(3, false);
    say(2, DM_SAYS_BUSY);
    assert_int_equal(step_at(1), DM_QUORUM_OWNED);
    release_all();
    released(1, DM_SAYS_NOT_OWNER);
    released(2, DM_SAYS_NOT_OWNER);
    assert_int_equal(dm_quorum_released(&quorum, false), DM_SAYS_NOTHING);
    released(0, DM_SAYS_DONE);
    assert_int_equal(dm_quorum_released(&quorum, false), DM_SAYS_DONE);
}

static void test_a_release_finds_no_owner_when_no_server_had_the_hold(void **state)
{
    (void)state;
    dash(7, false);
    release_all();
    released(0, DM_SAYS_NOT_OWNER);
    released(2, DM_SAYS_NOT_OWNER);
    assert_int_equal(dm_quorum_released(&quorum, false), DM_SAYS_NOT_OWNER);
}

/* A waiter is on only one server. */
static void test_a_release_is_done_when_the_only_server_has_answered(void **state)
{
    (void)state;
    dm_quorum_begin(&quorum, DM_QUORUM_TURN, true, 1);
    send_all(0);
    release_all();
    assert_int_equal(dm_quorum_released(&quorum, false), DM_SAYS_NOTHING);
    released(1, DM_SAYS_AGAIN);
    assert_int_equal(dm_quorum_released(&quorum, false), DM_SAYS_NOTHING);
    dm_quorum_send(&quorum, 1, DM_QUORUM_RELEASE);
    released(1, DM_SAYS_DONE);
    assert_int_equal(dm_quorum_released(&quorum, true), DM_SAYS_DONE);
    assert_int_equal(dm_quorum_released(&quorum, false), DM_SAYS_DONE);
    assert_false(quorum.legs[1].is_touched);
}

/* What is given back may be granted to others at once; the first server, where the attempt waits, is kept. */
static void test_a_server_that_is_kept_stays_certain(void **state)
{
    uint64_t round;

    (void)state;
    dash(7, true);
    round = quorum.round;
    dm_quorum_begin_release(&quorum, 0);
    assert_int_not_equal(quorum.round, round);
    assert_int_equal(dm_quorum_renewal(&quorum, 0, at(1)), DM_QUORUM_RENEW);
    assert_int_equal(dm_quorum_renewal(&quorum, 1, at(1)), DM_QUORUM_TRY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        THREE(test_a_renewal_goes_only_to_a_server_that_is_certain),
        THREE(test_a_try_is_not_owned_when_the_server_is_in_its_grace),
        THREE(test_a_try_is_owned_when_the_grace_is_over),
        THREE(test_a_hold_stays_certain_when_a_new_server_has_forgotten_the_hold),
        THREE(test_a_hold_is_lost_when_the_grace_ends_too_soon),
        THREE(test_a_token_is_the_highest_when_a_majority_owns),
        THREE(test_a_token_is_the_second_when_all_three_own),
        FIVE(test_a_token_of_five_is_of_a_lower_rank_with_each_server_that_owns),
        THREE(test_a_token_stays_when_another_server_comes),
        THREE(test_a_token_is_not_of_a_server_whose_certainty_is_over),
        THREE(test_a_token_is_soft_until_it_is_settled),
        THREE(test_a_token_is_not_believed_when_it_is_far_ahead_of_the_clocks),
        THREE(test_a_hold_goes_on_without_a_token_when_a_server_of_two_has_jumped),
        THREE(test_a_token_is_believed_up_to_a_day_ahead_of_the_clock),
        THREE(test_a_server_does_not_prove_its_token_by_its_own_clock),
        THREE(test_tokens_are_believed_when_one_clock_is_years_slow),
        THREE(test_no_token_is_settled_when_a_server_gives_no_time),
        THREE(test_no_token_is_settled_below_one_that_is_not_believed),
        THREE(test_a_token_is_new_when_the_attempt_asks_again),
        THREE(test_a_token_is_of_the_servers_that_have_the_hold),
        THREE(test_a_token_is_firm_when_a_majority_has_it),
        THREE(test_a_token_is_firm_when_another_server_has_a_higher_one),
        THREE(test_a_token_is_soft_again_when_a_server_has_lost_the_hold),
        THREE(test_a_death_is_reported_when_one_server_reports_it),
        THREE(test_a_mutex_is_not_recoverable_when_two_say_so),
        THREE(test_a_release_is_done_when_a_majority_has_answered),
        THREE(test_the_last_server_decides_when_the_others_differ),
        THREE(test_a_release_leaves_a_minority_that_is_silent),
        THREE(test_a_release_is_done_when_one_of_two_servers_has_forgotten_the_hold),
        THREE(test_a_release_finds_no_owner_when_no_server_had_the_hold),
        THREE(test_a_release_is_done_when_the_only_server_has_answered),
        THREE(test_a_server_that_is_kept_stays_certain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

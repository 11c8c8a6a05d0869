/* SPDX-License-Identifier: BSD-2-Clause */
/* core/quorum: how an attempt comes to own several servers, and for how long. */
#include "attempts.h"

/* ---- Q1: a majority, by the K-th latest moment ------------------------------------------- */

static void test_an_attempt_owns_when_a_majority_has_answered(void **state)
{
    (void)state;
    dash(1, false);
    assert_int_equal(step_at(1), DM_QUORUM_OPEN);
    own(2, 0, 7);
    assert_int_equal(step_at(1), DM_QUORUM_OWNED);
}

static void test_five_servers_need_three(void **state)
{
    (void)state;
    dash(3, false);
    assert_int_equal(step_at(1), DM_QUORUM_OPEN);
    own(4, 0, 7);
    assert_int_equal(step_at(1), DM_QUORUM_OWNED);
}

/* Of three servers confirmed at 0, 100 and 300, two are certain until 100 + 800. */
static void test_a_hold_is_certain_by_the_second_latest_of_three(void **state)
{
    (void)state;
    dash(7, false);
    renew(1, 100, DM_SAYS_OWNED);
    renew(2, 300, DM_SAYS_OWNED);
    assert_int_equal(dm_quorum_from_ns(&quorum), at(100));
    assert_certain_until(100 + CERTAIN_MS);
}

static void test_a_hold_of_five_is_certain_by_the_third_latest(void **state)
{
    (void)state;
    dash(31, false);
    for (int i = 1; i < 5; i++)
        renew(i, i * 100, DM_SAYS_OWNED);
    assert_int_equal(dm_quorum_from_ns(&quorum), at(200));
    assert_certain_until(200 + CERTAIN_MS);
}

/* An answer counts from the sending, also if it comes late. */
static void test_an_older_answer_shortens_nothing(void **state)
{
    (void)state;
    dash(7, false);
    for (int i = 0; i < 3; i++)
        renew(i, 300, DM_SAYS_OWNED);
    for (int i = 0; i < 3; i++)
        renew(i, 200, DM_SAYS_OWNED);
    assert_certain_until(300 + CERTAIN_MS);
}

/* Two remaining servers are a majority, from their own times; one is not. */
static void test_a_hold_is_lost_when_less_than_a_majority_is_left(void **state)
{
    (void)state;
    dash(7, false);
    assert_int_equal(step_at(1), DM_QUORUM_OWNED);
    renew(0, 300, DM_SAYS_OWNED);
    renew(1, 300, DM_SAYS_UNKNOWN);
    assert_int_equal(dm_quorum_hold(&quorum, at(310)).verdict, DM_SAYS_OWNED);
    assert_int_equal(dm_quorum_hold(&quorum, at(310)).from_ns, at(0));
    renew(2, 300, DM_SAYS_UNKNOWN);
    assert_int_equal(dm_quorum_hold(&quorum, at(310)).verdict, DM_SAYS_UNKNOWN);
}

/* Two threads may take two answers in the other order: what was owned before the loss is lost. */
static void test_an_answer_from_before_a_loss_is_no_news(void **state)
{
    (void)state;
    dash(3, false);
    renew(1, 300, DM_SAYS_UNKNOWN);
    renew(1, 200, DM_SAYS_OWNED);
    assert_false(dm_quorum_is_certain(&quorum, at(310)));
    own(1, 310, 9);
    assert_true(dm_quorum_is_certain(&quorum, at(320)));
}

static void test_a_break_by_force_at_one_server_leaves_a_majority(void **state)
{
    (void)state;
    dash(7, false);
    dm_quorum_lose(&quorum, 0, at(10));
    assert_true(dm_quorum_is_certain(&quorum, at(20)));
    dm_quorum_lose(&quorum, 1, at(10));
    assert_false(dm_quorum_is_certain(&quorum, at(20)));
}

/* ---- Q2, Q3: turns ----------------------------------------------------------------------- */

static void test_a_try_fails_when_two_are_busy(void **state)
{
    (void)state;
    dash(1, false);
    say(1, DM_SAYS_BUSY);
    assert_int_equal(step_at(1), DM_QUORUM_OPEN);
    say(2, DM_SAYS_BUSY);
    assert_int_equal(step_at(1), DM_QUORUM_REFUSED);
    assert_int_equal(dm_quorum_refusal(&quorum).verdict, DM_SAYS_BUSY);
    assert_int_equal(dm_quorum_refusal(&quorum).remaining_ms, 70);
}

static void test_a_lock_goes_after_others_when_two_are_busy(void **state)
{
    (void)state;
    dash(1, true);
    say(1, DM_SAYS_BUSY);
    say(2, DM_SAYS_BUSY);
    assert_int_equal(step_at(1), DM_QUORUM_BEHIND);
}

/* The others are free already, but the first server is another attempt's: that one has had its turn. */
static void test_a_dash_does_not_overtake_the_attempt_whose_turn_it_is(void **state)
{
    (void)state;
    dash(6, true);
    assert_int_equal(dm_quorum_step(&quorum, true, at(1)), DM_QUORUM_OPEN);
    say(0, DM_SAYS_BUSY);
    assert_int_equal(step_at(1), DM_QUORUM_BEHIND);
}

/* A try overtakes: it has no second chance; and a server in its grace has no turns. */
static void test_a_dash_owns_without_the_first_server_when_that_has_no_turns(void **state)
{
    (void)state;
    dash(6, false);
    say(0, DM_SAYS_BUSY);
    assert_int_equal(step_at(1), DM_QUORUM_OWNED);
    dm_quorum_init(&quorum, 3, LEASE_MS, 100);
    dash(6, true);
    answer(0, DM_QUORUM_TRY, 0, (struct dm_answer){ .verdict = DM_SAYS_BUSY, .grace_ms = 500 });
    assert_int_equal(step_at(1), DM_QUORUM_OWNED);
}

/* Impatient: a first server that is slow does not hold the majority up. */
static void test_a_dash_owns_when_the_first_server_is_slow(void **state)
{
    (void)state;
    dash(6, true);
    assert_int_equal(dm_quorum_step(&quorum, true, at(1)), DM_QUORUM_OPEN);
    assert_int_equal(dm_quorum_step(&quorum, false, at(1)), DM_QUORUM_OWNED);
}

static void test_a_turn_asks_the_first_server_alone(void **state)
{
    (void)state;
    dm_quorum_begin(&quorum, DM_QUORUM_TURN, true, 1);
    assert_int_equal(dm_quorum_ask(&quorum, 0, at(0)), DM_QUORUM_NONE);
    assert_int_equal(dm_quorum_ask(&quorum, 1, at(0)), DM_QUORUM_QUEUE);
    assert_int_equal(send_all(0), 1);
    assert_int_equal(step_at(1), DM_QUORUM_OPEN);
    answer(1, DM_QUORUM_QUEUE, 0, (struct dm_answer){ .verdict = DM_SAYS_QUEUED, .position = 2 });
    assert_int_equal(step_at(1), DM_QUORUM_QUEUED);
}

/* With the first server in hand the others are asked, again and again. */
static void test_a_turn_asks_the_others_when_the_first_server_is_owned(void **state)
{
    (void)state;
    dm_quorum_begin(&quorum, DM_QUORUM_TURN, true, 1);
    send_all(0);
    answer(1, DM_QUORUM_QUEUE, 0, (struct dm_answer){ .verdict = DM_SAYS_OWNED, .token = 5 });
    assert_int_equal(step_at(1), DM_QUORUM_MORE);
    dm_quorum_ask_more(&quorum, at(1));
    assert_int_equal(send_all(1), 2);
    assert_int_equal(step_at(2), DM_QUORUM_OPEN);
    say(0, DM_SAYS_BUSY);
    say(2, DM_SAYS_BUSY);
    assert_int_equal(step_at(2), DM_QUORUM_MORE);
    dm_quorum_ask_more(&quorum, at(3));
    assert_int_equal(send_all(3), 2);
    own(2, 3, 6);
    assert_int_equal(step_at(4), DM_QUORUM_OWNED);
}

/* A hint was wrong: the attempt still waits, and must not own by the others. */
static void test_a_confirmation_waits_when_the_first_server_says_queued(void **state)
{
    (void)state;
    dm_quorum_begin(&quorum, DM_QUORUM_CONFIRM, true, 0);
    assert_int_equal(send_all(0), 3);
    own(1, 0, 5);
    own(2, 0, 5);
    assert_int_equal(dm_quorum_step(&quorum, true, at(1)), DM_QUORUM_OPEN);
    answer(0, DM_QUORUM_QUEUE, 0, (struct dm_answer){ .verdict = DM_SAYS_QUEUED, .position = 1 });
    assert_int_equal(step_at(1), DM_QUORUM_QUEUED);
}

static void begin_passing(void)
{
    dm_quorum_begin(&quorum, DM_QUORUM_PASS, true, 0);
    assert_int_equal(send_all(0), 3);
}

static void say_queued(void)
{
    answer(0, DM_QUORUM_QUEUE, 0, (struct dm_answer){ .verdict = DM_SAYS_QUEUED, .position = 1 });
}

/* H8: the holder at the first server has no majority, so it is passed over. */
static void test_an_attempt_owns_by_the_others_when_it_passes_the_first_server(void **state)
{
    (void)state;
    begin_passing();
    say_queued();
    assert_int_equal(dm_quorum_step(&quorum, true, at(1)), DM_QUORUM_OPEN);
    own(1, 0, 5);
    assert_int_equal(dm_quorum_step(&quorum, true, at(1)), DM_QUORUM_OPEN);
    own(2, 0, 5);
    assert_int_equal(dm_quorum_step(&quorum, true, at(1)), DM_QUORUM_OWNED);
}

/* A holder with a majority is not passed; nor is a silent server waited for longer than patience allows. */
static void test_an_attempt_waits_on_when_it_cannot_pass(void **state)
{
    (void)state;
    begin_passing();
    say_queued();
    say(1, DM_SAYS_BUSY);
    say(2, DM_SAYS_BUSY);
    assert_int_equal(step_at(1), DM_QUORUM_QUEUED);
    begin_passing();
    say_queued();
    own(1, 0, 5);
    assert_int_equal(step_at(1), DM_QUORUM_QUEUED);
}

static void test_an_attempt_that_passes_owns_when_the_first_server_is_silent(void **state)
{
    (void)state;
    begin_passing();
    own(1, 0, 5);
    own(2, 0, 5);
    assert_int_equal(dm_quorum_step(&quorum, true, at(1)), DM_QUORUM_OPEN);
    assert_int_equal(step_at(1), DM_QUORUM_OWNED);
}

/* One queue that is full is no refusal of the group: turns are taken elsewhere. */
static void test_a_turn_goes_elsewhere_when_the_queue_is_full(void **state)
{
    (void)state;
    dm_quorum_begin(&quorum, DM_QUORUM_TURN, true, 0);
    send_all(0);
    answer(0, DM_QUORUM_QUEUE, 0, (struct dm_answer){ .verdict = DM_SAYS_FULL });
    assert_int_equal(step_at(1), DM_QUORUM_BEHIND);
}

/* ---- silent servers ---------------------------------------------------------------------- */

static void mark_late(bool is_first)
{
    dm_quorum_mark_late(&quorum, is_first, at(1));
}

/* Its answer counts if it comes. */
static void test_a_dash_waits_for_a_silent_server_until_the_others_decide(void **state)
{
    (void)state;
    dash(1, false);
    mark_late(true);
    assert_int_equal(step_at(1), DM_QUORUM_OPEN); /* one of three decides nothing */
    say(1, DM_SAYS_BUSY);
    assert_int_equal(step_at(1), DM_QUORUM_OPEN);
    mark_late(true);
    assert_int_equal(step_at(1), DM_QUORUM_REFUSED);
    own(2, 0, 7);
    assert_int_equal(step_at(1), DM_QUORUM_OWNED);
}

static void test_a_lock_goes_after_others_when_the_first_server_of_a_dash_is_silent(void **state)
{
    (void)state;
    dm_quorum_begin(&quorum, DM_QUORUM_DASH, true, 0);
    send_all(0);
    own(1, 0, 7);
    say(2, DM_SAYS_BUSY);
    mark_late(false);
    assert_int_equal(step_at(1), DM_QUORUM_OPEN);
    mark_late(true);
    assert_int_equal(step_at(1), DM_QUORUM_BEHIND);
}

static void test_a_turn_goes_elsewhere_when_the_first_server_is_silent(void **state)
{
    (void)state;
    dm_quorum_begin(&quorum, DM_QUORUM_TURN, true, 0);
    send_all(0);
    mark_late(false);
    assert_int_equal(step_at(1), DM_QUORUM_OPEN);
    mark_late(true);
    assert_int_equal(step_at(1), DM_QUORUM_BEHIND);
}

/* The silent server is not asked again in the meantime. */
static void test_a_turn_asks_the_busy_server_again_when_another_is_silent(void **state)
{
    (void)state;
    dm_quorum_begin(&quorum, DM_QUORUM_CONFIRM, true, 0);
    assert_int_equal(send_all(0), 3);
    answer(0, DM_QUORUM_QUEUE, 0, (struct dm_answer){ .verdict = DM_SAYS_OWNED, .token = 5 });
    say(1, DM_SAYS_BUSY);
    assert_int_equal(step_at(1), DM_QUORUM_OPEN);
    mark_late(false);
    assert_int_equal(step_at(1), DM_QUORUM_MORE);
    dm_quorum_ask_more(&quorum, at(1));
    assert_int_equal(send_all(1), 1);
    own(1, 1, 6);
    assert_int_equal(step_at(1), DM_QUORUM_OWNED);
}

static void test_a_round_is_silent_when_two_do_not_answer(void **state)
{
    (void)state;
    dash(1, true);
    dm_quorum_take(&quorum, 1, DM_QUORUM_TRY, at(0), NULL);
    assert_int_equal(step_at(1), DM_QUORUM_OPEN);
    dm_quorum_take(&quorum, 2, DM_QUORUM_TRY, at(0), NULL);
    assert_int_equal(step_at(1), DM_QUORUM_SILENT);
}

/* The server does not know the script: the same question, which sends the text. */
static void test_a_server_that_has_done_nothing_is_asked_again(void **state)
{
    (void)state;
    dash(1, false);
    say(1, DM_SAYS_AGAIN);
    assert_int_equal(dm_quorum_ask(&quorum, 1, at(1)), DM_QUORUM_TRY);
    assert_int_equal(dm_quorum_ask(&quorum, 2, at(1)), DM_QUORUM_NONE);
}

/* With that one it never ends: the attempt continues without this server. */
static void test_a_server_has_no_answer_when_it_does_nothing_again_and_again(void **state)
{
    int asked = 0;

    (void)state;
    dm_quorum_begin(&quorum, DM_QUORUM_TURN, true, 0);
    while (send_all(0) && asked < 100) {
        answer(0, DM_QUORUM_QUEUE, 0, (struct dm_answer){ .verdict = DM_SAYS_AGAIN });
        asked++;
    }
    assert_true(asked >= 2 && asked <= 10);
    assert_int_equal(step_at(1), DM_QUORUM_SILENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        THREE(test_an_attempt_owns_when_a_majority_has_answered),
        FIVE(test_five_servers_need_three),
        THREE(test_a_hold_is_certain_by_the_second_latest_of_three),
        FIVE(test_a_hold_of_five_is_certain_by_the_third_latest),
        THREE(test_an_older_answer_shortens_nothing),
        THREE(test_a_hold_is_lost_when_less_than_a_majority_is_left),
        THREE(test_an_answer_from_before_a_loss_is_no_news),
        THREE(test_a_break_by_force_at_one_server_leaves_a_majority),
        THREE(test_a_try_fails_when_two_are_busy),
        THREE(test_a_lock_goes_after_others_when_two_are_busy),
        THREE(test_a_dash_does_not_overtake_the_attempt_whose_turn_it_is),
        THREE(test_a_dash_owns_without_the_first_server_when_that_has_no_turns),
        THREE(test_a_dash_owns_when_the_first_server_is_slow),
        THREE(test_a_turn_asks_the_first_server_alone),
        THREE(test_a_turn_asks_the_others_when_the_first_server_is_owned),
        THREE(test_a_confirmation_waits_when_the_first_server_says_queued),
        THREE(test_an_attempt_owns_by_the_others_when_it_passes_the_first_server),
        THREE(test_an_attempt_waits_on_when_it_cannot_pass),
        THREE(test_an_attempt_that_passes_owns_when_the_first_server_is_silent),
        THREE(test_a_turn_goes_elsewhere_when_the_queue_is_full),
        THREE(test_a_dash_waits_for_a_silent_server_until_the_others_decide),
        THREE(test_a_lock_goes_after_others_when_the_first_server_of_a_dash_is_silent),
        THREE(test_a_turn_goes_elsewhere_when_the_first_server_is_silent),
        THREE(test_a_turn_asks_the_busy_server_again_when_another_is_silent),
        THREE(test_a_round_is_silent_when_two_do_not_answer),
        THREE(test_a_server_that_has_done_nothing_is_asked_again),
        THREE(test_a_server_has_no_answer_when_it_does_nothing_again_and_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

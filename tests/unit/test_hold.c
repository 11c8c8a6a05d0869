/* SPDX-License-Identifier: BSD-2-Clause */
/* core/hold, from the first request to the hold: which answers and messages count, and when the store is asked. */
#include "hold_clock.h"

/* ---- "you own it" ------------------------------------------------------------------------ */

/* Certainty counts from the sending of the request, also if the answer is read late. */
static void test_hold_is_certain_from_the_sending_when_answered_late(void **state)
{
    uint64_t request = send_at(0);

    (void)state;
    assert_int_equal(say(DM_SAYS_OWNED, request, 600), DM_DO_WAKE);
    assert_int_equal(hold.phase, DM_HELD);
    assert_int_equal(hold.depth, 1);
    assert_int_equal(hold.token, 100);
    assert_certain_until(CERTAIN_MS);
}

/* Failure 20: an answer read after the end of the certainty that the answer proves is a hint to ask again. */
static void test_hold_asks_again_when_the_answer_is_older_than_its_lease(void **state)
{
    uint64_t request = send_at(0);

    (void)state;
    assert_int_equal(say(DM_SAYS_OWNED, request, CERTAIN_MS), DM_DO_WAKE);
    assert_int_equal(hold.phase, DM_ASKING);
    assert_false(dm_hold_is_certain(&hold, at(CERTAIN_MS)));
}

/* An answer read in the last nanosecond of the certainty that the answer proves still makes a hold. */
static void test_hold_enters_when_the_answer_is_read_just_in_time(void **state)
{
    struct dm_answer owned = { .verdict = DM_SAYS_OWNED, .token = 5 };
    struct dm_event event = { .kind = DM_EV_ANSWER, .request = send_at(0), .answer = &owned };

    (void)state;
    assert_int_equal(dm_hold_step(&hold, &event, at(CERTAIN_MS) - 1), DM_DO_WAKE);
    assert_int_equal(hold.phase, DM_HELD);
    assert_certain_until(CERTAIN_MS);
}

/* An answer to no request, or to a request never sent, proves nothing. */
static void test_hold_asks_again_when_the_request_was_never_sent(void **state)
{
    (void)state;
    send_at(0);
    assert_int_equal(say(DM_SAYS_OWNED, 0, 1), DM_DO_WAKE);
    assert_int_equal(hold.phase, DM_ASKING);
    assert_int_equal(say(DM_SAYS_OWNED, 2, 1), DM_DO_WAKE);
    assert_int_equal(hold.phase, DM_ASKING);
}

/* The next attempt learns of an owner's death, by answer and by message alike. */
static void test_hold_learns_of_a_death_when_it_becomes_the_owner(void **state)
{
    struct dm_answer owned = { .verdict = DM_SAYS_OWNED, .token = 5, .is_owner_dead = true };

    (void)state;
    step(DM_EV_ANSWER, send_at(0), &owned, 1);
    assert_true(hold.is_owner_dead);
    begin(LEASE_MS, 0);
    step(DM_EV_GRANTED, send_at(0), &owned, 1);
    assert_true(hold.is_owner_dead);
}

/* ---- messages ---------------------------------------------------------------------------- */

/* A grant counts from the sending of the request named in the grant, not of the newest request. */
static void test_hold_is_certain_from_the_named_request_when_granted(void **state)
{
    uint64_t first = send_at(0);

    (void)state;
    say_queued(first, 1, 200, 1);
    send_at(300);
    assert_int_equal(grant(first, 400), DM_DO_WAKE);
    assert_int_equal(hold.phase, DM_HELD);
    assert_certain_until(CERTAIN_MS);
}

/* A grant with the number of a forgotten request is only a hint. */
static void test_hold_asks_again_when_a_grant_names_a_forgotten_request(void **state)
{
    uint64_t first = send_at(0);

    (void)state;
    say_queued(first, 1, 200, 1);
    for (int i = 0; i < DM_REQUESTS_REMEMBERED; i++)
        send_at(2 + i);
    assert_int_equal(grant(first, 10), DM_DO_WAKE);
    assert_int_equal(hold.phase, DM_ASKING);
}

/* As many requests are remembered as can still be certain: a grant that names the oldest request makes a hold. */
static void test_hold_enters_when_a_grant_names_the_oldest_request(void **state)
{
    uint64_t first = send_at(0);

    (void)state;
    say_queued(first, 1, 200, 1);
    for (int i = 1; i < DM_REQUESTS_REMEMBERED; i++)
        send_at(i);
    assert_int_equal(grant(first, 10), DM_DO_WAKE);
    assert_int_equal(hold.phase, DM_HELD);
    assert_certain_until(CERTAIN_MS);
}

/* A grant read after the end of the certainty that the grant proves is only a hint. */
static void test_hold_asks_again_when_a_grant_is_read_too_late(void **state)
{
    uint64_t request = send_at(0);

    (void)state;
    say_queued(request, 1, 200, 1);
    assert_int_equal(grant(request, CERTAIN_MS), DM_DO_WAKE);
    assert_int_equal(hold.phase, DM_ASKING);
}

/* Finding 67: the answer to the question that is under way may be older than a hint; a poll follows the answer. */
static void test_hold_polls_at_once_when_a_hint_comes_during_a_question(void **state)
{
    uint64_t request = send_at(0);

    (void)state;
    assert_int_equal(grant(0, 10), 0);
    say_queued(request, 1, 9000, 20);
    assert_int_equal(hold.phase, DM_QUEUED);
    assert_int_equal(pass_time(20), DM_WANTS_POLL);
}

/* Finding 110: the answer to a poll may be older than the hint that has woken the thread. */
static void test_hold_asks_when_a_poll_is_answered_after_a_hint(void **state)
{
    (void)state;
    say_queued(send_at(0), 1, 200, 10);
    pass_time(THIRD_MS);
    send_due_at(THIRD_MS);
    assert_int_equal(grant(0, THIRD_MS + 10), DM_DO_WAKE);
    assert_int_equal(polled(DM_SAYS_QUEUED, hold.last_request, THIRD_MS + 20), 0);
    assert_int_equal(hold.phase, DM_ASKING);
    assert_int_equal(polled(DM_SAYS_WAITING, hold.last_request, THIRD_MS + 30), 0);
    assert_int_equal(hold.phase, DM_ASKING);
}

/* A grant may be read before the answer "queued": the attempt holds, and stays holding. */
static void test_hold_stays_held_when_the_grant_overtakes_the_answer(void **state)
{
    uint64_t request = send_at(0);

    (void)state;
    assert_int_equal(grant(request, 1), DM_DO_WAKE);
    assert_int_equal(say_queued(request, 1, 200, 2), 0);
    assert_int_equal(hold.phase, DM_HELD);
    assert_certain_until(CERTAIN_MS);
}

/* A second message of the same grant changes nothing. */
static void test_hold_stays_as_it_is_when_granted_twice(void **state)
{
    uint64_t request = send_at(0);

    (void)state;
    grant(request, 1);
    dm_hold_set_depth(&hold, 3);
    assert_int_equal(grant(request, 2), 0);
    assert_int_equal(hold.depth, 3);
    assert_certain_until(CERTAIN_MS);
}

/* The answer to a poll that crossed the grant confirms the hold from the poll's sending on. */
static void test_hold_is_certain_for_longer_when_a_newer_poll_says_owned(void **state)
{
    uint64_t first = send_at(0), second;

    (void)state;
    say_queued(first, 1, 200, 1);
    second = send_at(100);
    grant(first, 150);
    assert_int_equal(say(DM_SAYS_OWNED, second, 160), 0);
    assert_certain_until(100 + CERTAIN_MS);
}

/* ---- waiting ----------------------------------------------------------------------------- */

/* The head polls just after the owner's lease can end; the waiters after it poll a little later, one by one. */
static void test_hold_polls_after_the_owners_lease_when_queued(void **state)
{
    static const struct {
        uint64_t position;
        int64_t remaining_ms, poll_ms;
    } cases[] = { { 1, 200, 201 }, { 2, 200, 240 }, { 3, 200, 260 },  { 4, 200, 280 },
                  { 9, 200, 280 }, { 1, 0, 10 },    { 1, 9000, 300 }, { 1000, 9000, 300 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(LEASE_MS, 0);
        assert_int_equal(say_queued(send_at(0), cases[i].position, cases[i].remaining_ms, 0), 0);
        assert_int_equal(next_ns(), at(cases[i].poll_ms));
        assert_int_equal(pass_time(cases[i].poll_ms - 1), DM_WANTS_NOTHING);
        assert_int_equal(pass_time(cases[i].poll_ms), DM_WANTS_POLL);
    }
}

/* A poll under way is not sent again before the answer. */
static void test_hold_polls_once_when_no_answer_has_come(void **state)
{
    (void)state;
    say_queued(send_at(0), 1, 200, 0);
    assert_int_equal(pass_time(201), DM_WANTS_POLL);
    send_due_at(201);
    assert_int_equal(pass_time(5000), DM_WANTS_NOTHING);
    assert_int_equal(next_ns(), DM_NEVER);
}

/* Each step asks for a due poll until the poll is sent: a caller that lets time pass may leave polls to others. */
static void test_hold_goes_on_asking_for_a_poll_when_none_was_sent(void **state)
{
    (void)state;
    say_queued(send_at(0), 1, 200, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pass_time(201 + i), DM_WANTS_POLL);
        assert_int_equal(next_ns(), at(201));
    }
}

/* A failed poll is repeated after max(lease/20, 50 ms). */
static void test_hold_polls_again_soon_when_a_poll_failed(void **state)
{
    static const struct {
        uint32_t lease_ms;
        int64_t retry_ms;
    } cases[] = { { 300, 50 }, { 1000, 50 }, { 2000, 100 }, { 10000, 500 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(cases[i].lease_ms, 0);
        say_queued(send_at(0), 1, 40, 0);
        assert_int_equal(pass_time(41), DM_WANTS_POLL);
        assert_int_equal(say(DM_SAYS_NOTHING, send_due_at(41), 45), 0);
        assert_int_equal(hold.phase, DM_QUEUED);
        assert_int_equal(next_ns(), at(45 + cases[i].retry_ms));
    }
}

/* A poll that was not executed may go out again at once; the place in the queue stands. */
static void test_hold_polls_at_once_when_the_store_says_again(void **state)
{
    (void)state;
    say_queued(send_at(0), 1, 40, 0);
    assert_int_equal(pass_time(41), DM_WANTS_POLL);
    assert_int_equal(say(DM_SAYS_AGAIN, send_due_at(41), 45), 0);
    assert_int_equal(hold.phase, DM_QUEUED);
    assert_int_equal(pass_time(45), DM_WANTS_POLL);
}

/* Nodes that send a poll on to each other in a circle are asked five times more at once, then after a pause. */
static void test_hold_polls_with_pauses_when_the_store_says_again_and_again(void **state)
{
    int64_t now_ms = 41;

    (void)state;
    say_queued(send_at(0), 1, 40, 0);
    for (int i = 1; i <= 12; i++) {
        assert_int_equal(pass_time(now_ms), DM_WANTS_POLL);
        assert_int_equal(say(DM_SAYS_AGAIN, send_due_at(now_ms), now_ms), 0);
        now_ms += i % 6 ? 0 : 50;
        assert_int_equal(next_ns(), at(now_ms));
    }
}

/* A waiter that gets the message to ask, or was deaf for a while, polls at once. */
static void test_hold_polls_at_once_when_told_to_ask(void **state)
{
    (void)state;
    say_queued(send_at(0), 1, 9000, 0);
    assert_int_equal(event_at(DM_EV_TOLD_ASK, 20), 0);
    assert_int_equal(next_ns(), at(20));
    assert_int_equal(pass_time(20), DM_WANTS_POLL);
}

/* A message "ask" that overtakes the answer "queued" counts: the attempt polls at once when queued. */
static void test_hold_polls_at_once_when_told_to_ask_before_it_is_queued(void **state)
{
    uint64_t request = send_at(0);

    (void)state;
    assert_int_equal(event_at(DM_EV_TOLD_ASK, 10), 0);
    say_queued(request, 1, 9000, 20);
    assert_int_equal(pass_time(20), DM_WANTS_POLL);
}

/* A holder that must ask, as after a break of the connection, renews at once. */
static void test_hold_renews_at_once_when_told_to_ask(void **state)
{
    (void)state;
    own();
    assert_int_equal(event_at(DM_EV_TOLD_ASK, 20), 0);
    assert_int_equal(next_ns(), at(20));
    assert_int_equal(pass_time(20), DM_WANTS_RENEW);
    assert_certain_until(CERTAIN_MS);
}

/* An attempt that neither waits nor holds plans nothing when it is asked to ask. */
static void test_hold_ignores_being_told_to_ask_when_it_is_over(void **state)
{
    (void)state;
    assert_int_equal(event_at(DM_EV_TOLD_ASK, 0), 0);
    assert_int_equal(next_ns(), DM_NEVER);
    event_at(DM_EV_CLOSED, 10);
    assert_int_equal(event_at(DM_EV_TOLD_ASK, 20), 0);
    assert_int_equal(next_ns(), DM_NEVER);
}

/* A waiter that the store has forgotten asks again under another serial, and keeps its place in the queue. */
static void test_hold_takes_a_new_serial_and_keeps_its_place_when_unknown(void **state)
{
    uint64_t old = send_at(0);

    (void)state;
    say_queued(old, 3, 200, 1);
    assert_int_equal(say(DM_SAYS_UNKNOWN, send_at(100), 110), DM_DO_WAKE | DM_DO_NEW_SERIAL);
    assert_int_equal(hold.phase, DM_ASKING);
    dm_hold_rename(&hold, SERIAL + 1);
    assert_int_equal(hold.serial, SERIAL + 1);
    assert_int_equal(hold.arrival, 55);
    assert_int_equal(grant(old, 120), DM_DO_WAKE);
    assert_int_equal(hold.phase, DM_ASKING);
}

/*
 * A timed waiter sent the end of its wait after the poll, and got no answer: the claim continues for the next thread of
 * the line, which would wait forever without a poll.
 */
static void test_hold_polls_again_when_unknown_crosses_a_later_request(void **state)
{
    uint64_t poll;

    (void)state;
    say_queued(send_at(0), 3, 200, 1);
    poll = send_due_at(300);
    dm_hold_send(&hold, DM_WANTS_NOTHING, at(301));
    assert_int_equal(say(DM_SAYS_UNKNOWN, poll, 302), 0);
    assert_int_equal(hold.phase, DM_QUEUED);
    assert_int_equal(next_ns(), at(302 + RETRY_MS));
    assert_int_equal(say(DM_SAYS_UNKNOWN, send_due_at(302 + RETRY_MS), 400), DM_DO_WAKE | DM_DO_NEW_SERIAL);
}

/* "Unknown" says nothing to an attempt that does not wait: a grant that crossed the request may be under way. */
static void test_hold_ignores_unknown_when_it_is_not_queued(void **state)
{
    uint64_t request = own();

    (void)state;
    assert_int_equal(say(DM_SAYS_UNKNOWN, request, 10), 0);
    assert_int_equal(hold.phase, DM_HELD);
    begin(LEASE_MS, 0);
    assert_int_equal(say(DM_SAYS_UNKNOWN, send_at(0), 10), 0);
    assert_int_equal(hold.phase, DM_ASKING);
}

/* The attempt keeps asking if there is no answer to the first request. */
static void test_hold_goes_on_asking_when_there_is_no_answer(void **state)
{
    (void)state;
    assert_int_equal(say(DM_SAYS_NOTHING, send_at(0), 10), 0);
    assert_int_equal(hold.phase, DM_ASKING);
}

/* ---- refusals ---------------------------------------------------------------------------- */

/* A refusal ends the attempt and is kept for the thread; no later message makes the attempt hold (I4). */
static void test_hold_stays_over_when_refused(void **state)
{
    static const enum dm_verdict refusals[] = { DM_SAYS_REFUSED, DM_SAYS_NO_MEMORY, DM_SAYS_BUSY, DM_SAYS_FULL,
                                                DM_SAYS_NOT_RECOVERABLE };

    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        uint64_t request;

        begin(LEASE_MS, 0);
        request = send_at(0);
        assert_true(say(refusals[i], request, 1) & DM_DO_WAKE);
        assert_int_equal(hold.phase, DM_OVER);
        assert_int_equal(hold.refusal, refusals[i]);
        assert_int_equal(next_ns(), DM_NEVER);
        assert_int_equal(grant(request, 2), 0);
        assert_int_equal(wants(2), DM_WANTS_RELEASE);
        assert_int_equal(hold.phase, DM_RETURNING);
    }
}

/* A refusal that crosses a grant comes too late to end the hold. */
static void test_hold_stays_held_when_a_refusal_comes_late(void **state)
{
    uint64_t request = own();

    (void)state;
    assert_int_equal(say(DM_SAYS_FULL, request, 5), 0);
    assert_int_equal(hold.phase, DM_HELD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        USUAL(test_hold_is_certain_from_the_sending_when_answered_late),
        USUAL(test_hold_asks_again_when_the_answer_is_older_than_its_lease),
        USUAL(test_hold_enters_when_the_answer_is_read_just_in_time),
        USUAL(test_hold_asks_again_when_the_request_was_never_sent),
        USUAL(test_hold_learns_of_a_death_when_it_becomes_the_owner),
        USUAL(test_hold_is_certain_from_the_named_request_when_granted),
        USUAL(test_hold_asks_again_when_a_grant_names_a_forgotten_request),
        USUAL(test_hold_enters_when_a_grant_names_the_oldest_request),
        USUAL(test_hold_asks_again_when_a_grant_is_read_too_late),
        USUAL(test_hold_polls_at_once_when_a_hint_comes_during_a_question),
        USUAL(test_hold_asks_when_a_poll_is_answered_after_a_hint),
        USUAL(test_hold_stays_held_when_the_grant_overtakes_the_answer),
        USUAL(test_hold_stays_as_it_is_when_granted_twice),
        USUAL(test_hold_is_certain_for_longer_when_a_newer_poll_says_owned),
        USUAL(test_hold_polls_after_the_owners_lease_when_queued),
        USUAL(test_hold_polls_once_when_no_answer_has_come),
        USUAL(test_hold_goes_on_asking_for_a_poll_when_none_was_sent),
        USUAL(test_hold_polls_again_soon_when_a_poll_failed),
        USUAL(test_hold_polls_at_once_when_the_store_says_again),
        USUAL(test_hold_polls_with_pauses_when_the_store_says_again_and_again),
        USUAL(test_hold_polls_at_once_when_told_to_ask),
        USUAL(test_hold_polls_at_once_when_told_to_ask_before_it_is_queued),
        USUAL(test_hold_renews_at_once_when_told_to_ask),
        USUAL(test_hold_ignores_being_told_to_ask_when_it_is_over),
        USUAL(test_hold_takes_a_new_serial_and_keeps_its_place_when_unknown),
        USUAL(test_hold_polls_again_when_unknown_crosses_a_later_request),
        USUAL(test_hold_ignores_unknown_when_it_is_not_queued),
        USUAL(test_hold_goes_on_asking_when_there_is_no_answer),
        USUAL(test_hold_stays_over_when_refused),
        USUAL(test_hold_stays_held_when_a_refusal_comes_late),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

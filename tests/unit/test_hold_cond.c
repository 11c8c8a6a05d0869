/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * core/hold on a condition: the waiting attempt (WAITING, SIGNALLED), and the hold that the thread gives up for
 * the wait (LEAVING, STAY).
 */
#include <string.h>

#include "hold_clock.h"

/* Waits on the condition by a request sent at 0, answered at 1. */
static uint64_t wait_on_condition(void)
{
    uint64_t request = send_at(0);

    assert_int_equal(say(DM_SAYS_WAITING, request, 1), 0);
    assert_int_equal(hold.phase, DM_WAITING);
    return request;
}

static unsigned signalled(uint64_t position, int64_t remaining_ms, int64_t ms)
{
    struct dm_answer answer = { .position = position, .remaining_ms = remaining_ms };

    return step(DM_EV_SIGNALLED, 0, &answer, ms);
}

/* Makes the attempt hold the lock since 0, and the thread about to wait at `ms`. */
static void leave_at(int64_t ms)
{
    own();
    assert_int_equal(event_at(DM_EV_LEAVE, ms), 0);
    assert_int_equal(hold.phase, DM_LEAVING);
}

/* ---- waiting ----------------------------------------------------------------------------- */

/* A waiter on a condition polls every third of the lease, and the answers do not wake the thread. */
static void test_hold_polls_every_third_of_its_lease_when_it_waits(void **state)
{
    int64_t now_ms = 1;

    (void)state;
    wait_on_condition();
    assert_true(dm_hold_is_waiting(&hold));
    assert_false(dm_hold_is_certain(&hold, at(2)));
    for (int polls = 0; polls < 4; polls++) {
        assert_int_equal(next_ns(), at(now_ms + THIRD_MS));
        assert_int_equal(pass_time(now_ms + THIRD_MS - 1), DM_WANTS_NOTHING);
        now_ms += THIRD_MS;
        assert_int_equal(pass_time(now_ms), DM_WANTS_POLL);
        assert_int_equal(say(DM_SAYS_WAITING, send_due_at(now_ms), now_ms + 10), 0);
        now_ms += 10;
    }
    assert_int_equal(hold.phase, DM_WAITING);
}

/* A poll under way is not sent again; a failed poll is repeated soon. */
static void test_hold_polls_again_soon_when_a_poll_failed_while_it_waits(void **state)
{
    uint64_t request;

    (void)state;
    wait_on_condition();
    assert_int_equal(pass_time(301), DM_WANTS_POLL);
    request = send_due_at(301);
    assert_int_equal(pass_time(5000), DM_WANTS_NOTHING);
    assert_int_equal(next_ns(), DM_NEVER);
    assert_int_equal(say(DM_SAYS_NOTHING, request, 5000), 0);
    assert_int_equal(hold.phase, DM_WAITING);
    assert_int_equal(next_ns(), at(5000 + RETRY_MS));
}

/* The answer to a repeated wait delays no poll: the earlier plan stays. */
static void test_hold_polls_no_later_when_told_again_that_it_waits(void **state)
{
    uint64_t request = wait_on_condition();

    (void)state;
    assert_int_equal(say(DM_SAYS_WAITING, request, 200), 0);
    assert_int_equal(next_ns(), at(1 + THIRD_MS));
}

/* A waiter on a condition that must ask polls at once: after a new subscription, or if nobody can own the mutex. */
static void test_hold_polls_at_once_when_told_to_ask_while_it_waits(void **state)
{
    uint64_t request = wait_on_condition();

    (void)state;
    assert_int_equal(event_at(DM_EV_TOLD_ASK, 50), 0);
    assert_int_equal(next_ns(), at(50));
    assert_int_equal(say(DM_SAYS_WAITING, request, 51), 0); /* answered before the message */
    assert_int_equal(pass_time(51), DM_WANTS_POLL);
}

/* A waiter that the store has forgotten comes back under another serial: a spurious wake-up. */
static void test_hold_takes_a_new_serial_when_unknown_while_it_waits(void **state)
{
    (void)state;
    wait_on_condition();
    pass_time(301);
    assert_int_equal(say(DM_SAYS_UNKNOWN, send_due_at(301), 302), DM_DO_WAKE | DM_DO_NEW_SERIAL);
    assert_int_equal(hold.phase, DM_ASKING);
    assert_int_equal(next_ns(), DM_NEVER);
    dm_hold_rename(&hold, SERIAL + 1);
    say(DM_SAYS_OWNED, send_at(310), 311);
    assert_int_equal(hold.phase, DM_HELD);
}

/*
 * A signal overtook the answer to the wait, and the store has forgotten the attempt since: the question that is under
 * way names the serial, so the serial stays until the answer.
 */
static void test_hold_keeps_its_serial_when_unknown_while_its_question_is_under_way(void **state)
{
    uint64_t question = send_at(0);

    (void)state;
    assert_int_equal(signalled(1, 200, 1), 0);
    assert_int_equal(hold.phase, DM_QUEUED);
    assert_int_equal(pass_time(202), DM_WANTS_POLL);
    assert_int_equal(polled(DM_SAYS_UNKNOWN, send_due_at(202), 203), 0);
    assert_int_equal(hold.phase, DM_QUEUED);
    assert_int_equal(next_ns(), at(203 + RETRY_MS));
    assert_int_equal(say(DM_SAYS_NOTHING, question, 210), 0);
    assert_int_equal(pass_time(210 + RETRY_MS), DM_WANTS_POLL);
    assert_int_equal(polled(DM_SAYS_UNKNOWN, send_due_at(300), 301), DM_DO_WAKE | DM_DO_NEW_SERIAL);
}

/* "Unknown" to an older request, sent before the wait, does not end the wait. */
static void test_hold_waits_on_when_unknown_answers_an_older_request(void **state)
{
    uint64_t older = send_at(0);

    (void)state;
    assert_int_equal(say(DM_SAYS_WAITING, send_at(5), 6), 0);
    assert_int_equal(say(DM_SAYS_UNKNOWN, older, 7), 0);
    assert_int_equal(hold.phase, DM_WAITING);
}

/* A refusal, or a mutex that nobody can own any more, ends the wait and wakes the thread. */
static void test_hold_is_over_when_refused_while_it_waits(void **state)
{
    static const enum dm_verdict verdicts[] = { DM_SAYS_NOT_RECOVERABLE, DM_SAYS_REFUSED };

    (void)state;
    for (size_t i = 0; i < sizeof verdicts / sizeof verdicts[0]; i++) {
        begin(LEASE_MS, 0);
        wait_on_condition();
        assert_int_equal(say(verdicts[i], send_due_at(301), 302), DM_DO_WAKE);
        assert_int_equal(hold.phase, DM_OVER);
        assert_int_equal(hold.refusal, verdicts[i]);
        assert_int_equal(next_ns(), DM_NEVER);
    }
}

/* I4: an attempt given back during a wait is over; late messages make it neither wait nor hold. */
static void test_hold_is_over_when_given_back_while_it_waits(void **state)
{
    uint64_t request = wait_on_condition();

    (void)state;
    assert_int_equal(give_back(10), DM_WANTS_RELEASE);
    assert_int_equal(next_ns(), at(10));
    released(DM_SAYS_DONE, 10);
    assert_int_equal(next_ns(), DM_NEVER);
    assert_int_equal(say(DM_SAYS_WAITING, request, 11), 0);
    assert_int_equal(signalled(1, 100, 12), 0);
    assert_int_equal(say(DM_SAYS_UNKNOWN, request, 13), 0);
    assert_int_equal(grant(request, 14), 0);
    assert_int_equal(wants(14), DM_WANTS_RELEASE);
    assert_int_equal(hold.phase, DM_RETURNING);
    assert_int_equal(pass_time(5000), DM_WANTS_NOTHING);
}

/* ---- signalled --------------------------------------------------------------------------- */

/* A signal puts the attempt into the mutex's queue: the thread sleeps on, and the attempt polls as a waiter there. */
static void test_hold_is_queued_and_not_woken_when_signalled(void **state)
{
    static const struct {
        uint64_t position;
        int64_t remaining_ms, poll_ms;
    } cases[] = { { 1, 100, 101 }, { 2, 100, 140 }, { 9, 100, 180 }, { 1, 5000, THIRD_MS } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(LEASE_MS, 0);
        wait_on_condition();
        assert_int_equal(signalled(cases[i].position, cases[i].remaining_ms, 200), 0);
        assert_int_equal(hold.phase, DM_QUEUED);
        assert_int_equal(next_ns(), at(200 + cases[i].poll_ms));
        assert_int_equal(pass_time(200 + cases[i].poll_ms - 1), DM_WANTS_NOTHING);
        assert_int_equal(pass_time(200 + cases[i].poll_ms), DM_WANTS_POLL);
    }
}

/* A signal that overtakes the answer "waiting" stands, and so does the signal's plan of a poll. */
static void test_hold_stays_queued_when_the_signal_overtakes_the_answer(void **state)
{
    uint64_t request = send_at(0);

    (void)state;
    assert_int_equal(signalled(1, 100, 5), 0);
    assert_int_equal(hold.phase, DM_QUEUED);
    assert_int_equal(say(DM_SAYS_WAITING, request, 6), 0);
    assert_int_equal(hold.phase, DM_QUEUED);
    assert_int_equal(next_ns(), at(5 + 101));
}

/* After a lost message "signalled", the answer "queued" to a poll puts the attempt into the queue. */
static void test_hold_is_queued_when_an_answer_says_so(void **state)
{
    (void)state;
    wait_on_condition();
    assert_int_equal(say_queued(send_due_at(301), 1, 100, 302), 0);
    assert_int_equal(hold.phase, DM_QUEUED);
    assert_int_equal(next_ns(), at(302 + 101));
}

/* A waiter that must ask and is then signalled still polls at once. */
static void test_hold_asks_at_once_when_signalled_after_being_told_to_ask(void **state)
{
    (void)state;
    wait_on_condition();
    event_at(DM_EV_TOLD_ASK, 50);
    assert_int_equal(signalled(1, 100, 51), 0);
    assert_int_equal(pass_time(51), DM_WANTS_POLL);
}

/* A hold granted after a signal is certain from the request named in the grant, a poll of the wait. */
static void test_hold_is_certain_from_the_named_poll_when_granted_after_a_signal(void **state)
{
    uint64_t poll;

    (void)state;
    wait_on_condition();
    poll = send_due_at(301);
    assert_int_equal(say(DM_SAYS_WAITING, poll, 302), 0);
    signalled(1, 0, 600);
    assert_int_equal(grant(poll, 601), DM_DO_WAKE);
    assert_int_equal(hold.phase, DM_HELD);
    assert_int_equal(hold.depth, 1);
    assert_certain_until(301 + CERTAIN_MS);
}

/* A message "signalled" that comes after the grant changes nothing. */
static void test_hold_stays_held_when_the_signal_comes_late(void **state)
{
    uint64_t request = wait_on_condition();

    (void)state;
    assert_int_equal(grant(request, 10), DM_DO_WAKE);
    assert_int_equal(hold.phase, DM_HELD);
    assert_int_equal(signalled(1, 100, 11), 0);
    assert_int_equal(say(DM_SAYS_WAITING, request, 12), 0);
    assert_int_equal(hold.phase, DM_HELD);
    assert_certain_until(CERTAIN_MS);
    assert_int_equal(next_ns(), at(THIRD_MS));
}

/* A grant after a signal, read after the end of the certainty, is a hint; the thread asks. */
static void test_hold_asks_when_the_grant_after_a_signal_is_read_too_late(void **state)
{
    uint64_t request = wait_on_condition();

    (void)state;
    say(DM_SAYS_WAITING, send_due_at(301), 302);
    assert_int_equal(grant(request, CERTAIN_MS), DM_DO_WAKE);
    assert_int_equal(hold.phase, DM_ASKING);
    assert_false(dm_hold_is_certain(&hold, at(CERTAIN_MS)));
}

/* A signal to a lost attempt, and a late answer "waiting", change nothing. */
static void test_hold_ignores_a_signal_when_it_is_lost(void **state)
{
    (void)state;
    own();
    pass_time(CERTAIN_MS);
    assert_int_equal(signalled(1, 100, CERTAIN_MS + 1), 0);
    assert_int_equal(say(DM_SAYS_WAITING, send_at(CERTAIN_MS + 2), CERTAIN_MS + 3), 0);
    assert_int_equal(hold.phase, DM_LOST);
    assert_int_equal(wants(CERTAIN_MS + 3), DM_WANTS_TELL);
}

/* ---- leaving ----------------------------------------------------------------------------- */

/* A hold that a wait gives up is not renewed, and is not certain. */
static void test_hold_is_not_renewed_when_it_leaves(void **state)
{
    (void)state;
    leave_at(10);
    assert_false(dm_hold_is_certain(&hold, at(11)));
    assert_int_equal(next_ns(), DM_NEVER);
    assert_int_equal(pass_time(THIRD_MS), DM_WANTS_NOTHING);
    assert_int_equal(event_at(DM_EV_TOLD_ASK, THIRD_MS), 0);
    assert_int_equal(pass_time(THIRD_MS + 1), DM_WANTS_NOTHING);
    assert_int_equal(hold.phase, DM_LEAVING);
}

/* The end of certainty, of the max-hold or of the server's hold is no loss while a wait gives the hold up. */
static void test_hold_loses_nothing_when_it_leaves(void **state)
{
    uint64_t request;

    (void)state;
    begin(LEASE_MS, 500);
    own();
    request = send_due_at(THIRD_MS);
    event_at(DM_EV_LEAVE, THIRD_MS + 1);
    assert_int_equal(renewed(DM_SAYS_UNKNOWN, request, THIRD_MS + 2), 0);
    assert_int_equal(event_at(DM_EV_TOLD_LOST, THIRD_MS + 3), 0);
    assert_int_equal(pass_time(500), DM_WANTS_NOTHING);
    assert_int_equal(pass_time(CERTAIN_MS), DM_WANTS_NOTHING);
    assert_int_equal(hold.phase, DM_LEAVING);
}

/* Late answers to the hold's requests change nothing while a wait gives the hold up. */
static void test_hold_ignores_late_answers_when_it_leaves(void **state)
{
    struct dm_hold before;
    uint64_t request;

    (void)state;
    own();
    request = send_due_at(THIRD_MS);
    event_at(DM_EV_LEAVE, THIRD_MS + 1);
    memcpy(&before, &hold, sizeof before);
    assert_int_equal(renewed(DM_SAYS_OWNED, request, THIRD_MS + 2), 0);
    assert_int_equal(renewed(DM_SAYS_NOTHING, request, THIRD_MS + 2), 0);
    assert_int_equal(say(DM_SAYS_OWNED, request, THIRD_MS + 3), 0);
    assert_int_equal(grant(request, THIRD_MS + 4), 0);
    assert_int_equal(say_queued(request, 1, 100, THIRD_MS + 5), 0);
    assert_int_equal(say(DM_SAYS_WAITING, request, THIRD_MS + 5), 0);
    assert_int_equal(say(DM_SAYS_UNKNOWN, request, THIRD_MS + 6), 0);
    assert_int_equal(say(DM_SAYS_REFUSED, request, THIRD_MS + 7), 0);
    assert_int_equal(signalled(1, 100, THIRD_MS + 8), 0);
    assert_memory_equal(&hold, &before, sizeof hold);
}

/* After a refused wait the hold is as before, and a renewal is due at once. */
static void test_hold_is_held_as_before_when_it_stays(void **state)
{
    struct dm_answer owned = { .verdict = DM_SAYS_OWNED, .token = 100, .is_owner_dead = true };

    (void)state;
    step(DM_EV_ANSWER, send_at(0), &owned, 1);
    event_at(DM_EV_ENTERED, 1);
    dm_hold_set_depth(&hold, 3);
    event_at(DM_EV_LEAVE, 10);
    event_at(DM_EV_STAY, 20);
    assert_int_equal(wants(20), DM_WANTS_RENEW);
    assert_int_equal(hold.phase, DM_HELD);
    assert_int_equal(hold.depth, 3);
    assert_int_equal(hold.token, 100);
    assert_true(hold.is_owner_dead);
    assert_int_equal(next_ns(), at(20));
    assert_int_equal(pass_time(21), DM_WANTS_RENEW);
    renewed(DM_SAYS_OWNED, send_due_at(21), 22);
    assert_certain_until(21 + CERTAIN_MS);
}

/* A renewal under way during a refused wait counts from the renewal's sending, as ever. */
static void test_hold_is_certain_for_longer_when_a_renewal_is_answered_after_it_stays(void **state)
{
    uint64_t request;

    (void)state;
    own();
    request = send_due_at(THIRD_MS);
    event_at(DM_EV_LEAVE, THIRD_MS + 1);
    event_at(DM_EV_STAY, THIRD_MS + 2);
    assert_certain_until(CERTAIN_MS);
    assert_int_equal(renewed(DM_SAYS_OWNED, request, THIRD_MS + 3), 0);
    assert_certain_until(THIRD_MS + CERTAIN_MS);
}

/* A wait refused after the end of certainty, or of the max-hold, has lost the hold. */
static void test_hold_is_lost_when_it_stays_too_late(void **state)
{
    (void)state;
    leave_at(10);
    event_at(DM_EV_STAY, CERTAIN_MS - 1);
    assert_int_equal(wants(CERTAIN_MS - 1), DM_WANTS_RENEW);
    begin(LEASE_MS, 0);
    leave_at(10);
    assert_int_equal(event_at(DM_EV_STAY, CERTAIN_MS), 0);
    assert_int_equal(wants(CERTAIN_MS), DM_WANTS_TELL);
    assert_int_equal(hold.phase, DM_LOST);
    begin(LEASE_MS, 500);
    leave_at(10);
    assert_int_equal(event_at(DM_EV_STAY, 501), 0);
    assert_int_equal(wants(501), DM_WANTS_TELL);
    assert_int_equal(hold.phase, DM_LOST);
}

/* After an executed wait the hold is over, and no later event brings the hold back. */
static void test_hold_is_over_when_the_wait_has_ended_it(void **state)
{
    uint64_t request;

    (void)state;
    leave_at(10);
    request = hold.last_request;
    event_at(DM_EV_CLOSED, 20);
    assert_int_equal(hold.phase, DM_OVER);
    assert_true(dm_hold_is_done(&hold));
    assert_int_equal(event_at(DM_EV_STAY, 21), 0);
    assert_int_equal(hold.phase, DM_OVER);
    assert_int_equal(grant(request, 22), 0);
    assert_int_equal(wants(22), DM_WANTS_RELEASE);
    assert_int_equal(hold.phase, DM_RETURNING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        USUAL(test_hold_polls_every_third_of_its_lease_when_it_waits),
        USUAL(test_hold_polls_again_soon_when_a_poll_failed_while_it_waits),
        USUAL(test_hold_polls_no_later_when_told_again_that_it_waits),
        USUAL(test_hold_polls_at_once_when_told_to_ask_while_it_waits),
        USUAL(test_hold_takes_a_new_serial_when_unknown_while_it_waits),
        USUAL(test_hold_keeps_its_serial_when_unknown_while_its_question_is_under_way),
        USUAL(test_hold_waits_on_when_unknown_answers_an_older_request),
        USUAL(test_hold_is_over_when_refused_while_it_waits),
        USUAL(test_hold_is_over_when_given_back_while_it_waits),
        USUAL(test_hold_is_queued_and_not_woken_when_signalled),
        USUAL(test_hold_stays_queued_when_the_signal_overtakes_the_answer),
        USUAL(test_hold_is_queued_when_an_answer_says_so),
        USUAL(test_hold_asks_at_once_when_signalled_after_being_told_to_ask),
        USUAL(test_hold_is_certain_from_the_named_poll_when_granted_after_a_signal),
        USUAL(test_hold_stays_held_when_the_signal_comes_late),
        USUAL(test_hold_asks_when_the_grant_after_a_signal_is_read_too_late),
        USUAL(test_hold_ignores_a_signal_when_it_is_lost),
        USUAL(test_hold_is_not_renewed_when_it_leaves),
        USUAL(test_hold_loses_nothing_when_it_leaves),
        USUAL(test_hold_ignores_late_answers_when_it_leaves),
        USUAL(test_hold_is_held_as_before_when_it_stays),
        USUAL(test_hold_is_certain_for_longer_when_a_renewal_is_answered_after_it_stays),
        USUAL(test_hold_is_lost_when_it_stays_too_late),
        USUAL(test_hold_is_over_when_the_wait_has_ended_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

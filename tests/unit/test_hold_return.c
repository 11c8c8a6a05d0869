/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * core/hold, from the end of the hold to the store's confirmation: the release is pending until the store has answered
 * or the lease is over, waits for the thread's question, and follows the report of a loss.
 */
#include "hold_clock.h"

/* Given back here, and when the store's lease has ended: a lease that was granted or renewed until then. */
#define END_MS 10
#define LEASE_ENDS_MS (END_MS + LEASE_MS)

static void send_release(int64_t ms)
{
    assert_int_equal(wants(ms), DM_WANTS_RELEASE);
    dm_hold_send(&hold, DM_WANTS_RELEASE, at(ms));
    assert_int_equal(dm_hold_due_ns(&hold, DM_WANTS_RELEASE), DM_NEVER);
}

static unsigned end(enum dm_end how, int64_t ms)
{
    return dm_hold_step(&hold, &(struct dm_event){ .kind = DM_EV_GIVEN_BACK, .end = how }, at(ms));
}

static unsigned released_by(uint64_t server, enum dm_verdict verdict, int64_t ms)
{
    struct dm_answer answer = { .verdict = verdict };

    return dm_hold_step(&hold, &(struct dm_event){ .kind = DM_EV_RELEASED, .answer = &answer, .server = server },
                        at(ms));
}

/* Queued by a request sent at 0, and granted by a message; then the thread asks again, by a request sent at 2. */
static uint64_t granted_in_question(void)
{
    uint64_t question;

    question = send_at(0);
    assert_int_equal(grant(question, 3), DM_DO_WAKE);
    assert_int_equal(hold.phase, DM_HELD);
    assert_true(dm_hold_is_in_question(&hold));
    return question;
}

/* ---- pending ----------------------------------------------------------------------------- */

/* A release is wanted at once, once, and ends with the store's word. */
static void test_hold_wants_its_release_until_the_store_has_confirmed(void **state)
{
    (void)state;
    own();
    assert_false(dm_hold_is_returning(&hold));
    end(DM_END_UNLOCKED, 10);
    assert_int_equal(hold.phase, DM_RETURNING);
    assert_true(dm_hold_is_returning(&hold));
    send_release(10);
    assert_int_equal(pass_time(20), DM_WANTS_NOTHING);
    assert_int_equal(hold.phase, DM_RETURNING);
    released(DM_SAYS_DONE, 30);
    assert_int_equal(hold.phase, DM_OVER);
    assert_true(dm_hold_is_done(&hold));
}

/* From the grant to the end, however often the release goes out; an attempt that never held has held for no time. */
static void test_hold_says_for_how_long_it_lasted(void **state)
{
    (void)state;
    own(); /* granted at 1 */
    end(DM_END_UNLOCKED, 2010);
    assert_int_equal(hold.back.held_ms, 2009);
    send_release(2010);
    released(DM_SAYS_NOTHING, 2020);
    pass_time(5000);
    assert_int_equal(hold.back.held_ms, 2009);
    begin(LEASE_MS, 0);
    end(DM_END_UNLOCKED, 2010);
    assert_int_equal(hold.back.held_ms, 0);
}

/* Without an answer the release goes out again after max(lease/20, 50 ms). */
static void test_hold_releases_again_soon_when_there_is_no_answer(void **state)
{
    static const struct {
        uint32_t lease_ms;
        int64_t retry_ms;
    } cases[] = { { 300, 50 }, { 2000, 100 }, { 10000, 500 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(cases[i].lease_ms, 0);
        own();
        end(DM_END_UNLOCKED, 10);
        send_release(10);
        released(DM_SAYS_NOTHING, 20);
        assert_int_equal(dm_hold_due_ns(&hold, DM_WANTS_RELEASE), at(20 + cases[i].retry_ms));
        send_release(20 + cases[i].retry_ms);
        released(DM_SAYS_REFUSED, 100);
        assert_int_equal(dm_hold_due_ns(&hold, DM_WANTS_RELEASE), at(100 + cases[i].retry_ms));
    }
}

/* A release that the server did not execute goes out again at once. */
static void test_hold_releases_again_at_once_when_told_so(void **state)
{
    (void)state;
    own();
    end(DM_END_UNLOCKED, 10);
    send_release(10);
    released(DM_SAYS_AGAIN, 20);
    assert_int_equal(wants(20), DM_WANTS_RELEASE);
}

/* The same in a circle: after five more times there is a pause. */
static void test_hold_releases_with_pauses_when_told_so_again_and_again(void **state)
{
    int64_t now_ms = 10;

    (void)state;
    own();
    end(DM_END_UNLOCKED, now_ms);
    for (int i = 1; i <= 12; i++) {
        send_release(now_ms);
        released(DM_SAYS_AGAIN, now_ms);
        now_ms += i % 6 ? 0 : RETRY_MS;
        assert_int_equal(dm_hold_due_ns(&hold, DM_WANTS_RELEASE), at(now_ms));
    }
}

/* After a reconnect a release is due at once; a release on the way gets its own answer. */
static void test_hold_releases_at_once_when_the_connection_is_back(void **state)
{
    (void)state;
    own();
    end(DM_END_UNLOCKED, 10);
    send_release(10);
    event_at(DM_EV_CONNECTED, 15);
    assert_int_equal(wants(15), DM_WANTS_NOTHING);
    released(DM_SAYS_NOTHING, 20);
    assert_int_equal(wants(21), DM_WANTS_NOTHING);
    event_at(DM_EV_CONNECTED, 21);
    assert_int_equal(wants(21), DM_WANTS_RELEASE);
}

/* A release is no longer wanted once the lease has ended the hold, but not before. */
static void test_hold_is_over_when_the_lease_has_ended_before_an_answer(void **state)
{
    (void)state;
    own();
    end(DM_END_UNLOCKED, END_MS);
    send_release(END_MS);
    released(DM_SAYS_NOTHING, 700);
    assert_int_equal(pass_time(LEASE_ENDS_MS - 1), DM_WANTS_RELEASE);
    assert_int_equal(pass_time(LEASE_ENDS_MS), DM_WANTS_NOTHING);
    assert_int_equal(hold.phase, DM_OVER);
    assert_int_equal(released(DM_SAYS_NOT_OWNER, LEASE_ENDS_MS + 1), 0);
    assert_true(dm_hold_is_done(&hold));
}

/* A renewal without an answer may have been executed just now: the release is wanted for the lease of the renewal. */
static void test_hold_wants_its_release_for_longer_when_a_renewal_has_no_answer(void **state)
{
    (void)state;
    own();
    send_due_at(THIRD_MS);
    end(DM_END_UNLOCKED, THIRD_MS + 1);
    assert_int_equal(pass_time(LEASE_ENDS_MS), DM_WANTS_RELEASE);
    assert_int_equal(pass_time(THIRD_MS + LEASE_MS), DM_WANTS_RELEASE);
    assert_int_equal(pass_time(THIRD_MS + 1 + LEASE_MS), DM_WANTS_NOTHING);
}

/* A message grants long after the request was sent: the lease of the grant outlives the lease of the request. */
static void test_hold_wants_its_release_until_the_lease_of_its_grant_is_over(void **state)
{
    uint64_t request = send_at(0);

    (void)state;
    say_queued(request, 1, 700, 1);
    assert_int_equal(grant(request, 700), DM_DO_WAKE);
    event_at(DM_EV_ENTERED, 701);
    end(DM_END_UNLOCKED, 702);
    send_release(702);
    released(DM_SAYS_NOTHING, 703);
    assert_int_equal(pass_time(700 + LEASE_MS), DM_WANTS_RELEASE);
    assert_int_equal(hold.phase, DM_RETURNING);
    assert_int_equal(pass_time(702 + LEASE_MS), DM_WANTS_NOTHING);
    assert_int_equal(hold.phase, DM_OVER);
}

/* The last request of an attempt that never entered may be executed late: two leases from the giving back. */
static void test_hold_wants_its_release_for_two_leases_when_it_never_entered(void **state)
{
    (void)state;
    say_queued(send_at(0), 1, 200, 1);
    end(DM_END_UNLOCKED, 500);
    assert_int_equal(pass_time(500 + 2 * LEASE_MS - 1), DM_WANTS_RELEASE);
    assert_int_equal(pass_time(500 + 2 * LEASE_MS), DM_WANTS_NOTHING);
    assert_int_equal(hold.phase, DM_OVER);
}

/* The record stays for a thread that is in a call, however the release ends. */
static void test_hold_is_done_when_its_thread_has_left_the_call(void **state)
{
    (void)state;
    say_queued(send_at(0), 1, 200, 1);
    end(DM_END_UNLOCKED, 10);
    send_release(10);
    released(DM_SAYS_DONE, 20);
    assert_int_equal(hold.phase, DM_OVER);
    assert_false(dm_hold_is_done(&hold));
    assert_true(dm_hold_is_in_use(&hold));
    event_at(DM_EV_CLOSED, 30);
    assert_true(dm_hold_is_done(&hold));
}

/* ---- lost unnoticed ---------------------------------------------------------------------- */

/* "Not the owner" to the only release: the hold was broken by force, and the application learns of it. */
static void test_hold_wants_a_report_when_its_only_release_is_refused(void **state)
{
    (void)state;
    own();
    end(DM_END_UNLOCKED, 10);
    send_release(10);
    released(DM_SAYS_NOT_OWNER, 20);
    assert_int_equal(hold.phase, DM_OVER);
    assert_int_equal(wants(20), DM_WANTS_TELL);
    assert_false(dm_hold_is_done(&hold));
    event_at(DM_EV_TOLD, 30);
    assert_int_equal(wants(30), DM_WANTS_NOTHING);
    assert_true(dm_hold_is_done(&hold));
}

/* The same answer is no loss if an earlier release, or an acquire that named the release, may have been executed. */
static void test_hold_is_released_when_an_earlier_release_may_have_been_executed(void **state)
{
    (void)state;
    own();
    end(DM_END_UNLOCKED, 10);
    send_release(10);
    released(DM_SAYS_NOTHING, 20);
    send_release(100);
    released(DM_SAYS_NOT_OWNER, 110);
    assert_true(dm_hold_is_done(&hold));

    begin(LEASE_MS, 0);
    own();
    end(DM_END_UNLOCKED, 10);
    assert_true(dm_hold_is_nameable(&hold));
    event_at(DM_EV_NAMED, 10);
    send_release(10);
    released(DM_SAYS_NOT_OWNER, 20);
    assert_true(dm_hold_is_done(&hold));
}

/* Finding 38: a server that did not confirm the hold may not know the hold. */
static void test_hold_is_released_when_another_server_does_not_know_it(void **state)
{
    struct dm_answer owned = { .verdict = DM_SAYS_OWNED, .token = 1 };
    struct dm_event event = { .kind = DM_EV_RENEWED, .answer = &owned, .server = 2 };

    (void)state;
    own();
    end(DM_END_UNLOCKED, 10);
    send_release(10);
    released_by(1, DM_SAYS_NOT_OWNER, 20);
    assert_true(dm_hold_is_done(&hold));

    begin(LEASE_MS, 0);
    own();
    event.request = send_due_at(THIRD_MS);
    dm_hold_step(&hold, &event, at(THIRD_MS + 1));
    end(DM_END_UNLOCKED, THIRD_MS + 2);
    send_release(THIRD_MS + 2);
    released_by(2, DM_SAYS_NOT_OWNER, THIRD_MS + 3);
    assert_int_equal(wants(THIRD_MS + 3), DM_WANTS_TELL);
}

/* ---- a loss ------------------------------------------------------------------------------ */

/* A loss is first reported, then released as a death; an acquire does not name the release before the report. */
static void test_hold_is_released_after_its_loss_is_reported(void **state)
{
    (void)state;
    own();
    assert_int_equal(pass_time(CERTAIN_MS), DM_WANTS_TELL);
    assert_true(dm_hold_is_returning(&hold));
    assert_false(dm_hold_is_nameable(&hold));
    assert_int_equal(dm_hold_due_ns(&hold, DM_WANTS_RELEASE), DM_NEVER);
    event_at(DM_EV_TOLD, CERTAIN_MS + 1);
    assert_true(dm_hold_is_nameable(&hold));
    assert_int_equal(hold.back.end, DM_END_DIED);
    send_release(CERTAIN_MS + 1);
    released(DM_SAYS_NOT_OWNER, CERTAIN_MS + 2);
    assert_int_equal(hold.phase, DM_LOST);
    assert_int_equal(wants(CERTAIN_MS + 2), DM_WANTS_NOTHING);
    event_at(DM_EV_CLOSED, CERTAIN_MS + 3);
    assert_int_equal(hold.phase, DM_OVER);
    assert_true(dm_hold_is_done(&hold));
}

/* A thread that unlocks before the report leaves report and release to the loop. */
static void test_hold_is_reported_and_released_when_its_thread_acknowledges_first(void **state)
{
    (void)state;
    own();
    pass_time(CERTAIN_MS);
    event_at(DM_EV_CLOSED, CERTAIN_MS);
    assert_int_equal(hold.phase, DM_RETURNING);
    assert_int_equal(wants(CERTAIN_MS), DM_WANTS_TELL);
    event_at(DM_EV_TOLD, CERTAIN_MS + 1);
    send_release(CERTAIN_MS + 1);
    released(DM_SAYS_DONE, CERTAIN_MS + 2);
    assert_true(dm_hold_is_done(&hold));
}

/* ---- after the question ------------------------------------------------------------------ */

/* Findings 6 and 19: an attempt lost while the thread asks is released after the answer, not before. */
static void test_hold_is_released_after_the_answer_when_lost_in_question(void **state)
{
    uint64_t question = granted_in_question();

    (void)state;
    assert_int_equal(event_at(DM_EV_TIME, CERTAIN_MS), DM_DO_WAKE);
    assert_int_equal(hold.phase, DM_LOST);
    assert_int_equal(next_ns(), DM_NEVER);
    assert_false(dm_hold_is_nameable(&hold));
    assert_false(dm_hold_is_returning(&hold));
    say_queued(question, 1, 100, 5000);
    assert_int_equal(hold.phase, DM_LOST);
    assert_int_equal(wants(5000), DM_WANTS_RELEASE);
    assert_true(dm_hold_is_nameable(&hold));
    assert_int_equal(hold.back.end, DM_END_UNLOCKED);
    assert_int_equal(pass_time(5000 + 2 * LEASE_MS - 1), DM_WANTS_RELEASE);
}

/* Finding 6: also if the question ends without an answer, and if the answer says "owned". */
static void test_hold_is_released_when_its_question_ends_in_any_way(void **state)
{
    static const enum dm_verdict verdicts[] = { DM_SAYS_NOTHING, DM_SAYS_OWNED, DM_SAYS_BUSY };

    (void)state;
    for (size_t i = 0; i < sizeof verdicts / sizeof verdicts[0]; i++) {
        uint64_t question;

        begin(LEASE_MS, 0);
        question = granted_in_question();
        event_at(DM_EV_TIME, CERTAIN_MS);
        say(verdicts[i], question, 5000);
        assert_int_equal(hold.phase, DM_LOST);
        assert_int_equal(wants(5000), DM_WANTS_RELEASE);
        assert_int_equal(end(DM_END_UNLOCKED, 5001), 0);
        event_at(DM_EV_CLOSED, 5001);
        assert_int_equal(hold.phase, DM_RETURNING);
    }
}

/* The answer to a poll that was sent before says nothing about the question. */
static void test_hold_stays_in_question_when_a_poll_is_answered(void **state)
{
    uint64_t poll;

    (void)state;
    say_queued(send_at(0), 1, 200, 1);
    poll = send_due_at(201);
    grant(0, 202); /* a hint: ask */
    send_at(203);
    assert_true(dm_hold_is_in_question(&hold));
    polled(DM_SAYS_QUEUED, poll, 204);
    assert_true(dm_hold_is_in_question(&hold));
}

/* Finding 103: a thread's renewal is a question, too; the answer to a renewal that was sent before does not end it. */
static void test_hold_is_released_after_the_renewal_of_its_thread(void **state)
{
    struct dm_answer owned = { .verdict = DM_SAYS_OWNED, .token = 100 };
    uint64_t before, question;

    (void)state;
    own();
    before = send_due_at(10);
    question = send_due_at(20);
    dm_hold_ask(&hold);
    renewed(DM_SAYS_OWNED, before, 30);
    assert_true(dm_hold_is_in_question(&hold));
    end(DM_END_UNLOCKED, 40);
    assert_int_equal(wants(40), DM_WANTS_NOTHING);
    step(DM_EV_RENEWED_BY_THREAD, question, &owned, 50);
    assert_int_equal(wants(50), DM_WANTS_RELEASE);
}

/* A wait that the server does not know brings its hold back by a renewal. */
static void test_hold_is_in_question_when_its_thread_renews_and_leaves(void **state)
{
    struct dm_answer owned = { .verdict = DM_SAYS_OWNED, .token = 100 };
    uint64_t question;

    (void)state;
    own();
    event_at(DM_EV_LEAVE, 10);
    question = send_due_at(20);
    dm_hold_ask(&hold);
    assert_true(dm_hold_is_in_question(&hold));
    step(DM_EV_RENEWED_BY_THREAD, question, &owned, 50);
    assert_int_equal(hold.phase, DM_LEAVING);
    assert_false(hold.is_asked);
}

/* Finding 12: nothing is renewed that is not certain, or that its thread has left. */
static void test_hold_may_not_be_renewed_when_it_is_not_certain(void **state)
{
    (void)state;
    assert_false(dm_hold_may_renew(&hold, at(0)));
    own();
    assert_true(dm_hold_may_renew(&hold, at(CERTAIN_MS) - 1));
    assert_false(dm_hold_may_renew(&hold, at(CERTAIN_MS)));
    event_at(DM_EV_LEAVE, 10);
    assert_true(dm_hold_may_renew(&hold, at(20)));
    end(DM_END_DIED, 30);
    assert_false(dm_hold_may_renew(&hold, at(30)));
    begin(LEASE_MS, 0);
    own();
    event_at(DM_EV_TOLD_LOST, 10);
    assert_false(dm_hold_may_renew(&hold, at(10)));
}

/* ---- ends -------------------------------------------------------------------------------- */

/* The end of the thread or process is a death for an entered hold, and no word for a place in the queue. */
static void test_hold_is_given_back_when_its_thread_ends(void **state)
{
    (void)state;
    own();
    event_at(DM_EV_THREAD_ENDS, 10);
    assert_int_equal(hold.phase, DM_RETURNING);
    assert_int_equal(hold.back.end, DM_END_DIED);
    assert_int_equal(wants(10), DM_WANTS_RELEASE);

    begin(LEASE_MS, 0);
    say_queued(send_at(0), 1, 200, 1);
    event_at(DM_EV_THREAD_ENDS, 10);
    assert_int_equal(hold.back.end, DM_END_UNLOCKED);
    send_release(10);
    released(DM_SAYS_DONE, 20);
    assert_true(dm_hold_is_done(&hold));
}

/* exit() may give up a question of another thread, whose record stays. */
static void test_hold_is_given_back_in_question_when_the_process_ends(void **state)
{
    (void)state;
    granted_in_question();
    event_at(DM_EV_PROCESS_ENDS, 10);
    assert_int_equal(hold.phase, DM_RETURNING);
    assert_false(dm_hold_is_in_question(&hold));
    send_release(10);
    released(DM_SAYS_DONE, 20);
    assert_int_equal(hold.phase, DM_OVER);
    assert_false(dm_hold_is_done(&hold));
}

/*
 * exit() waits for the store, so a release that was refused goes out at once, and after 250 ms at most again.  One that
 * is on the way gets its own answer.
 */
static void test_hold_releases_again_soon_when_the_process_ends(void **state)
{
    (void)state;
    begin(DM_LEASE_MAX_MS, 0);
    own();
    end(DM_END_UNLOCKED, 10);
    send_release(10);
    event_at(DM_EV_PROCESS_ENDS, 15);
    assert_int_equal(wants(15), DM_WANTS_NOTHING);
    released(DM_SAYS_REFUSED, 20);
    assert_int_equal(dm_hold_due_ns(&hold, DM_WANTS_RELEASE), at(270));
    event_at(DM_EV_PROCESS_ENDS, 100);
    send_release(100);
    released(DM_SAYS_DONE, 110);
    assert_int_equal(hold.phase, DM_OVER);

    begin(DM_LEASE_MAX_MS, 0);
    own();
    end(DM_END_UNLOCKED, 10);
    send_release(10);
    released(DM_SAYS_REFUSED, 20);
    assert_int_equal(wants(30), DM_WANTS_NOTHING);
    event_at(DM_EV_PROCESS_ENDS, 30);
    assert_int_equal(wants(30), DM_WANTS_RELEASE);
}

/* A thread that ends with a lost hold acknowledges the loss, which is reported nevertheless. */
static void test_hold_is_reported_when_its_thread_ends_after_a_loss(void **state)
{
    (void)state;
    own();
    pass_time(CERTAIN_MS);
    event_at(DM_EV_THREAD_ENDS, CERTAIN_MS + 1);
    assert_int_equal(hold.phase, DM_RETURNING);
    assert_int_equal(wants(CERTAIN_MS + 1), DM_WANTS_TELL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        USUAL(test_hold_wants_its_release_until_the_store_has_confirmed),
        USUAL(test_hold_releases_again_soon_when_there_is_no_answer),
        USUAL(test_hold_releases_again_at_once_when_told_so),
        USUAL(test_hold_releases_with_pauses_when_told_so_again_and_again),
        USUAL(test_hold_releases_at_once_when_the_connection_is_back),
        USUAL(test_hold_is_over_when_the_lease_has_ended_before_an_answer),
        USUAL(test_hold_says_for_how_long_it_lasted),
        USUAL(test_hold_wants_its_release_for_longer_when_a_renewal_has_no_answer),
        USUAL(test_hold_wants_its_release_until_the_lease_of_its_grant_is_over),
        USUAL(test_hold_wants_its_release_for_two_leases_when_it_never_entered),
        USUAL(test_hold_is_done_when_its_thread_has_left_the_call),
        USUAL(test_hold_wants_a_report_when_its_only_release_is_refused),
        USUAL(test_hold_is_released_when_an_earlier_release_may_have_been_executed),
        USUAL(test_hold_is_released_when_another_server_does_not_know_it),
        USUAL(test_hold_is_released_after_its_loss_is_reported),
        USUAL(test_hold_is_reported_and_released_when_its_thread_acknowledges_first),
        USUAL(test_hold_is_released_after_the_answer_when_lost_in_question),
        USUAL(test_hold_is_released_when_its_question_ends_in_any_way),
        USUAL(test_hold_stays_in_question_when_a_poll_is_answered),
        USUAL(test_hold_is_released_after_the_renewal_of_its_thread),
        USUAL(test_hold_is_in_question_when_its_thread_renews_and_leaves),
        USUAL(test_hold_may_not_be_renewed_when_it_is_not_certain),
        USUAL(test_hold_is_given_back_when_its_thread_ends),
        USUAL(test_hold_is_given_back_in_question_when_the_process_ends),
        USUAL(test_hold_releases_again_soon_when_the_process_ends),
        USUAL(test_hold_is_reported_when_its_thread_ends_after_a_loss),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

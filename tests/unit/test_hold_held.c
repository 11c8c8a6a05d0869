/* SPDX-License-Identifier: BSD-2-Clause */
/* core/hold, from the begin of a hold to the end: renewal, loss, max-hold, and late messages. */
#include "hold_clock.h"

/* ---- renewal ----------------------------------------------------------------------------- */

/* A hold is renewed a third of a lease after the sending of the request that proves the hold. */
static void test_hold_renews_after_a_third_of_the_lease_when_held(void **state)
{
    (void)state;
    own();
    assert_int_equal(next_ns(), at(THIRD_MS));
    assert_int_equal(pass_time(THIRD_MS - 1), DM_WANTS_NOTHING);
    assert_int_equal(pass_time(THIRD_MS), DM_WANTS_RENEW);
}

/* A renewal under way is not sent again; the next moment is the end of certainty. */
static void test_hold_renews_once_when_no_answer_has_come(void **state)
{
    (void)state;
    own();
    pass_time(THIRD_MS);
    send_due_at(THIRD_MS);
    assert_int_equal(pass_time(THIRD_MS + 100), DM_WANTS_NOTHING);
    assert_int_equal(next_ns(), at(CERTAIN_MS));
}

/* A confirmed renewal counts from the renewal's sending, for certainty and for the next renewal. */
static void test_hold_is_certain_from_the_renewals_sending_when_confirmed(void **state)
{
    uint64_t request;

    (void)state;
    own();
    pass_time(THIRD_MS);
    request = send_due_at(THIRD_MS);
    assert_int_equal(renewed(DM_SAYS_OWNED, request, 500), 0);
    assert_int_equal(next_ns(), at(2 * THIRD_MS));
    assert_certain_until(THIRD_MS + CERTAIN_MS);
}

/* Failure 5: a failed renewal is repeated every max(lease/20, 50 ms), not every third. */
static void test_hold_renews_again_soon_when_a_renewal_failed(void **state)
{
    static const struct {
        uint32_t lease_ms;
        int64_t third_ms, retry_ms;
    } cases[] = { { 300, 100, 50 }, { 900, 300, 50 }, { 3000, 1000, 150 }, { 9000, 3000, 450 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t now_ms = cases[i].third_ms;

        begin(cases[i].lease_ms, 0);
        own();
        for (int tries = 0; tries < 2; tries++) {
            assert_int_equal(pass_time(now_ms), DM_WANTS_RENEW);
            assert_int_equal(renewed(DM_SAYS_NOTHING, send_due_at(now_ms), now_ms), 0);
            now_ms += cases[i].retry_ms;
            assert_int_equal(next_ns(), at(now_ms));
        }
    }
}

/* Renewals of holds that began together come apart, up to a 24th of the lease before the third, and never later. */
static void test_hold_renews_by_its_number_before_a_third_of_the_lease(void **state)
{
    int64_t first = at(2400), last = 0;

    (void)state;
    for (uint64_t serial = 1; serial <= 1000; serial++) {
        int64_t due_ns;

        dm_hold_init(&hold, serial, THREAD, 2400, 0, true);
        own();
        due_ns = dm_hold_due_ns(&hold, DM_WANTS_RENEW);
        first = due_ns < first ? due_ns : first;
        last = due_ns > last ? due_ns : last;
    }
    assert_within(first, at(700), at(701));
    assert_within(last, at(799), at(800));
}

/* A renewal that was not executed may go out again at once. */
static void test_hold_renews_at_once_when_the_store_says_again(void **state)
{
    (void)state;
    own();
    pass_time(THIRD_MS);
    assert_int_equal(renewed(DM_SAYS_AGAIN, send_due_at(THIRD_MS), 500), 0);
    assert_int_equal(pass_time(500), DM_WANTS_RENEW);
    assert_certain_until(CERTAIN_MS);
}

/* The same in a circle: after five more times there is a pause, and the hold is certain as long as before. */
static void test_hold_renews_with_pauses_when_the_store_says_again_and_again(void **state)
{
    int64_t now_ms = THIRD_MS;

    (void)state;
    own();
    for (int i = 1; i <= 12; i++) {
        assert_int_equal(pass_time(now_ms), DM_WANTS_RENEW);
        assert_int_equal(renewed(DM_SAYS_AGAIN, send_due_at(now_ms), now_ms), 0);
        now_ms += i % 6 ? 0 : RETRY_MS;
        assert_int_equal(dm_hold_due_ns(&hold, DM_WANTS_RENEW), at(now_ms));
    }
    assert_certain_until(CERTAIN_MS);
}

/* Failure 5: the hold continues if a repeated renewal is confirmed in time. */
static void test_hold_goes_on_when_a_later_renewal_is_confirmed(void **state)
{
    (void)state;
    own();
    pass_time(THIRD_MS);
    renewed(DM_SAYS_NOTHING, send_due_at(THIRD_MS), 650);
    assert_int_equal(pass_time(650 + RETRY_MS), DM_WANTS_RENEW);
    assert_int_equal(renewed(DM_SAYS_OWNED, send_due_at(700), 719), 0);
    assert_int_equal(pass_time(CERTAIN_MS), DM_WANTS_NOTHING);
    assert_certain_until(700 + CERTAIN_MS);
}

/* The answer to an older renewal, read after the answer to a newer renewal, does not shorten certainty. */
static void test_hold_keeps_its_certainty_when_an_older_answer_follows(void **state)
{
    uint64_t older, newer;

    (void)state;
    own();
    older = send_at(300);
    newer = send_at(350);
    renewed(DM_SAYS_OWNED, newer, 360);
    renewed(DM_SAYS_OWNED, older, 370);
    assert_certain_until(350 + CERTAIN_MS);
}

/* A confirmation of a forgotten request proves nothing. */
static void test_hold_gains_nothing_when_the_renewal_is_forgotten(void **state)
{
    uint64_t older;

    (void)state;
    own();
    older = send_at(300);
    for (int i = 0; i < DM_REQUESTS_REMEMBERED; i++)
        send_at(310 + i);
    renewed(DM_SAYS_OWNED, older, 320);
    assert_certain_until(CERTAIN_MS);
}

/* ---- wanted ------------------------------------------------------------------------------ */

static unsigned renewed_with_waiter(uint64_t request, int64_t ms)
{
    return step(DM_EV_RENEWED, request, &(struct dm_answer){ .verdict = DM_SAYS_OWNED, .has_waiter = true }, ms);
}

/* A message, or the answer to a renewal, says that another attempt waits; the hold continues. */
static void test_hold_is_wanted_when_the_store_says_so(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        begin(LEASE_MS, 0);
        own();
        assert_false(hold.is_wanted);
        assert_int_equal(way ? event_at(DM_EV_WANTED, 50) : renewed_with_waiter(send_at(40), 50), 0);
        assert_true(hold.is_wanted);
        assert_int_equal(hold.phase, DM_HELD);
    }
}

/* The answer to a renewal that met no waiter does not take back an earlier message. */
static void test_hold_stays_wanted_when_a_renewal_met_no_waiter(void **state)
{
    (void)state;
    own();
    event_at(DM_EV_WANTED, 50);
    renewed(DM_SAYS_OWNED, send_at(60), 70);
    assert_true(hold.is_wanted);
}

/* An unconfirmed renewal says nothing about waiters. */
static void test_hold_is_not_wanted_when_the_renewal_was_not_confirmed(void **state)
{
    struct dm_answer again = { .verdict = DM_SAYS_AGAIN, .has_waiter = true };

    (void)state;
    own();
    step(DM_EV_RENEWED, send_at(40), &again, 50);
    assert_false(hold.is_wanted);
}

/* A waiter gets "wanted" for an earlier hold: the next hold begins without it. */
static void test_hold_begins_unwanted_when_the_message_came_before(void **state)
{
    (void)state;
    event_at(DM_EV_WANTED, 1);
    assert_false(hold.is_wanted);
    hold.is_wanted = true;
    own();
    assert_false(hold.is_wanted);
}

/* ---- loss -------------------------------------------------------------------------------- */

/* Failure 6: an unconfirmed hold is lost exactly at the end of certainty, reported once, and given back. */
static void test_hold_is_lost_exactly_at_its_deadline_when_unconfirmed(void **state)
{
    struct dm_event time = { .kind = DM_EV_TIME };

    (void)state;
    own();
    send_due_at(THIRD_MS);
    assert_int_equal(dm_hold_step(&hold, &time, at(CERTAIN_MS) - 1), 0);
    assert_int_equal(hold.phase, DM_HELD);
    assert_int_equal(dm_hold_step(&hold, &time, at(CERTAIN_MS)), 0);
    assert_int_equal(wants(CERTAIN_MS), DM_WANTS_TELL);
    assert_int_equal(hold.phase, DM_LOST);
    event_at(DM_EV_TOLD, CERTAIN_MS + 1);
    assert_int_equal(pass_time(CERTAIN_MS + 1), DM_WANTS_RELEASE);
    dm_hold_send(&hold, DM_WANTS_RELEASE, at(CERTAIN_MS + 1));
    assert_int_equal(next_ns(), DM_NEVER);
}

/* A loss before the thread has returned from lock wakes the thread; it is not reported, because the hold was not. */
static void test_hold_wakes_its_thread_when_lost_before_it_entered(void **state)
{
    (void)state;
    say(DM_SAYS_OWNED, send_at(0), 1);
    assert_int_equal(event_at(DM_EV_TIME, CERTAIN_MS), DM_DO_WAKE);
    assert_int_equal(wants(CERTAIN_MS), DM_WANTS_RELEASE);
    assert_int_equal(hold.phase, DM_LOST);
}

/* A renewal answered "unknown" ends the hold at once, also before the end of certainty. */
static void test_hold_is_lost_at_once_when_a_renewal_says_so(void **state)
{
    (void)state;
    own();
    assert_int_equal(renewed(DM_SAYS_UNKNOWN, send_at(300), 310), 0);
    assert_int_equal(wants(310), DM_WANTS_TELL);
    assert_int_equal(hold.phase, DM_LOST);
    assert_false(dm_hold_is_certain(&hold, at(311)));
}

/* A hold broken by force is lost when the owner learns of it. */
static void test_hold_is_lost_at_once_when_told_so(void **state)
{
    (void)state;
    own();
    assert_int_equal(event_at(DM_EV_TOLD_LOST, 5), 0);
    assert_int_equal(wants(5), DM_WANTS_TELL);
    assert_int_equal(hold.phase, DM_LOST);
    assert_int_equal(event_at(DM_EV_TOLD_LOST, 6), 0);
}

/* A message "lost" changes nothing if the attempt does not hold. */
static void test_hold_ignores_a_lost_message_when_it_holds_nothing(void **state)
{
    (void)state;
    assert_int_equal(event_at(DM_EV_TOLD_LOST, 1), 0);
    assert_int_equal(hold.phase, DM_ASKING);
    say_queued(send_at(1), 1, 100, 2);
    assert_int_equal(event_at(DM_EV_TOLD_LOST, 3), 0);
    assert_int_equal(hold.phase, DM_QUEUED);
}

/* Two threads may hand out "granted" and "lost" in the other order: then the grant is a hint, and the attempt asks. */
static void test_hold_asks_when_the_loss_is_reported_before_the_grant(void **state)
{
    uint64_t request = send_at(1);

    (void)state;
    say_queued(request, 1, 100, 2);
    assert_int_equal(event_at(DM_EV_TOLD_LOST, 3), 0);
    assert_int_equal(grant(request, 4), DM_DO_WAKE);
    assert_int_equal(hold.phase, DM_ASKING);
    say(DM_SAYS_OWNED, send_at(5), 6);
    assert_int_equal(hold.phase, DM_HELD);
}

/* POSIX scenario 3: a confirmation read after the end of the certainty that the renewal proves does not count. */
static void test_hold_is_not_certain_when_the_renewal_is_read_past_its_own_deadline(void **state)
{
    uint64_t request;

    (void)state;
    own();
    request = send_at(THIRD_MS);
    renewed(DM_SAYS_OWNED, request, THIRD_MS + CERTAIN_MS);
    assert_false(dm_hold_is_certain(&hold, at(THIRD_MS + CERTAIN_MS)));
    assert_int_equal(pass_time(THIRD_MS + CERTAIN_MS), DM_WANTS_TELL);
}

/* I4: a lost attempt never holds again; a late renewal is ignored, and a late grant or "owned" is given back. */
static void test_hold_gives_back_when_owned_after_its_loss(void **state)
{
    (void)state;
    own();
    pass_time(CERTAIN_MS);
    event_at(DM_EV_TOLD, CERTAIN_MS);
    dm_hold_send(&hold, DM_WANTS_RELEASE, at(CERTAIN_MS));
    released(DM_SAYS_DONE, CERTAIN_MS + 1);
    assert_int_equal(renewed(DM_SAYS_OWNED, send_at(CERTAIN_MS), CERTAIN_MS + 1), 0);
    assert_int_equal(hold.phase, DM_LOST);
    assert_int_equal(wants(CERTAIN_MS + 1), DM_WANTS_NOTHING);
    assert_int_equal(grant(hold.last_request, CERTAIN_MS + 2), 0);
    assert_int_equal(wants(CERTAIN_MS + 2), DM_WANTS_RELEASE);
    assert_int_equal(say(DM_SAYS_OWNED, hold.last_request, CERTAIN_MS + 3), 0);
    assert_int_equal(wants(CERTAIN_MS + 3), DM_WANTS_RELEASE);
    assert_int_equal(hold.phase, DM_LOST);
}

/* ---- given back -------------------------------------------------------------------------- */

/* An attempt given back is over, from a hold and from the queue: no poll, no renewal, no deadline. */
static void test_hold_is_over_when_given_back(void **state)
{
    (void)state;
    own();
    assert_int_equal(give_back(10), DM_WANTS_RELEASE);
    assert_int_equal(hold.phase, DM_RETURNING);
    released(DM_SAYS_DONE, 20);
    assert_int_equal(hold.phase, DM_OVER);
    assert_int_equal(pass_time(5000), DM_WANTS_NOTHING);
    assert_int_equal(next_ns(), DM_NEVER);
    begin(LEASE_MS, 0);
    say_queued(send_at(0), 1, 200, 1);
    assert_int_equal(give_back(10), DM_WANTS_RELEASE);
    assert_int_equal(pass_time(5000), DM_WANTS_NOTHING);
}

/* A grant to an attempt that is over is given back, each time the grant comes. */
static void test_hold_gives_back_again_when_granted_after_it_is_over(void **state)
{
    uint64_t request = send_at(0);

    (void)state;
    say_queued(request, 1, 200, 1);
    event_at(DM_EV_GIVEN_BACK, 10);
    for (int i = 0; i < 2; i++) {
        released(DM_SAYS_DONE, 11);
        assert_int_equal(hold.phase, DM_OVER);
        assert_int_equal(wants(11), DM_WANTS_NOTHING);
        assert_int_equal(grant(request, 12), 0);
        assert_int_equal(say(DM_SAYS_OWNED, request, 13), 0);
        assert_int_equal(wants(13), DM_WANTS_RELEASE);
        assert_int_equal(hold.phase, DM_RETURNING);
    }
}

/* Other late answers change nothing in an attempt that is over. */
static void test_hold_ignores_late_answers_when_over(void **state)
{
    uint64_t request = own();

    (void)state;
    event_at(DM_EV_GIVEN_BACK, 10);
    released(DM_SAYS_DONE, 10);
    assert_int_equal(renewed(DM_SAYS_OWNED, request, 11), 0);
    assert_int_equal(renewed(DM_SAYS_UNKNOWN, request, 12), 0);
    assert_int_equal(say_queued(request, 1, 10, 13), 0);
    assert_int_equal(say(DM_SAYS_UNKNOWN, request, 14), 0);
    assert_int_equal(say(DM_SAYS_BUSY, request, 15), 0);
    assert_int_equal(say(DM_SAYS_NOTHING, request, 16), 0);
    assert_int_equal(hold.phase, DM_OVER);
    assert_int_equal(hold.refusal, DM_SAYS_NOTHING);
}

/* ---- max-hold and leases ----------------------------------------------------------------- */

/* A hold ends at the max-hold, also if all renewals are confirmed. */
static void test_hold_is_lost_at_max_hold_when_renewed_all_the_time(void **state)
{
    int64_t now_ms = 1;

    (void)state;
    begin(LEASE_MS, 2000);
    own();
    while (now_ms + 10 < 2001) {
        now_ms += 10;
        assert_int_not_equal(pass_time(now_ms), DM_WANTS_TELL);
        renewed(DM_SAYS_OWNED, send_due_at(now_ms), now_ms);
        assert_true(next_ns() <= at(2001));
    }
    assert_certain_until(2001);
    assert_int_equal(pass_time(2001), DM_WANTS_TELL);
    assert_int_equal(hold.phase, DM_LOST);
}

/* With a max-hold shorter than the lease, every request asks for a lease just long enough for the max-hold. */
static void test_hold_asks_for_a_short_lease_when_max_hold_is_shorter(void **state)
{
    (void)state;
    begin(10000, 400);
    assert_within(hold.lease_ms, 500, 501);
    say(DM_SAYS_OWNED, send_at(0), 0);
    event_at(DM_EV_ENTERED, 0);
    assert_certain_until(400);
}

/* All requests of an attempt ask for the same lease: a late request must not undercut a newer request. */
static void test_hold_asks_for_the_same_lease_when_max_hold_nears(void **state)
{
    uint32_t lease_ms;

    (void)state;
    begin(LEASE_MS, 1000);
    lease_ms = hold.lease_ms;
    own();
    renewed(DM_SAYS_OWNED, send_due_at(600), 601);
    assert_int_equal(hold.lease_ms, lease_ms);
    assert_certain_until(1001);
}

/* Attack C15: a max-hold of a millisecond asks for the shortest lease, because answers come too late for less. */
static void test_hold_asks_for_the_shortest_lease_when_max_hold_is_very_short(void **state)
{
    (void)state;
    begin(10000, 1);
    assert_int_equal(hold.lease_ms, DM_LEASE_MIN_MS);
}

/* Attack C15: a grant is not lost to the max-hold before the thread has woken up; the max-hold counts from then. */
static void test_hold_stays_held_when_its_thread_wakes_up_after_max_hold(void **state)
{
    (void)state;
    begin(10000, 1);
    say(DM_SAYS_OWNED, send_at(0), 0);
    pass_time(50);
    assert_int_equal(hold.phase, DM_HELD);
    event_at(DM_EV_ENTERED, 50);
    assert_true(dm_hold_is_certain(&hold, at(50)));
    assert_false(dm_hold_is_certain(&hold, at(51)));
}

/* A waiter polls by the lease that the store knows: a shorter lease asks for more polls. */
static void test_hold_polls_by_the_short_lease_when_max_hold_is_shorter(void **state)
{
    (void)state;
    begin(10000, 240);
    say_queued(send_at(0), 1, 9000, 0);
    assert_int_equal(next_ns(), at(100));
}

/* dmutex_renew_np(): the max-hold starts again, and renewals count again. */
static void test_hold_lasts_longer_when_max_hold_is_restarted(void **state)
{
    (void)state;
    begin(LEASE_MS, 1000);
    own();
    renewed(DM_SAYS_OWNED, send_at(600), 600);
    dm_hold_restart_maxhold(&hold, at(900));
    renewed(DM_SAYS_OWNED, send_due_at(900), 901);
    assert_int_not_equal(pass_time(1500), DM_WANTS_TELL);
    assert_certain_until(900 + CERTAIN_MS);
}

/* A restart of the max-hold changes nothing without a max-hold. */
static void test_hold_has_no_end_when_there_is_no_max_hold(void **state)
{
    (void)state;
    own();
    dm_hold_restart_maxhold(&hold, at(5));
    assert_int_equal(hold.hold_ends_ns, DM_NEVER);
    assert_int_equal(hold.lease_ms, LEASE_MS);
}

/* A lease of 0 is the default of ten seconds. */
static void test_hold_has_the_default_lease_when_none_is_given(void **state)
{
    (void)state;
    begin(0, 0);
    assert_int_equal(hold.lease_ms, 10000);
    say(DM_SAYS_OWNED, send_at(0), 0);
    assert_certain_until(8000);
}

/* The longest lease and max-hold overflow nothing. */
static void test_hold_is_certain_when_lease_and_max_hold_are_the_longest(void **state)
{
    (void)state;
    begin(DM_LEASE_MAX_MS, UINT32_MAX - 1);
    assert_int_equal(hold.lease_ms, DM_LEASE_MAX_MS);
    say(DM_SAYS_OWNED, send_at(0), 0);
    assert_certain_until(DM_LEASE_MAX_MS * INT64_C(8) / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        USUAL(test_hold_renews_after_a_third_of_the_lease_when_held),
        USUAL(test_hold_renews_once_when_no_answer_has_come),
        USUAL(test_hold_is_certain_from_the_renewals_sending_when_confirmed),
        USUAL(test_hold_renews_again_soon_when_a_renewal_failed),
        USUAL(test_hold_renews_by_its_number_before_a_third_of_the_lease),
        USUAL(test_hold_renews_at_once_when_the_store_says_again),
        USUAL(test_hold_renews_with_pauses_when_the_store_says_again_and_again),
        USUAL(test_hold_goes_on_when_a_later_renewal_is_confirmed),
        USUAL(test_hold_keeps_its_certainty_when_an_older_answer_follows),
        USUAL(test_hold_gains_nothing_when_the_renewal_is_forgotten),
        USUAL(test_hold_is_wanted_when_the_store_says_so),
        USUAL(test_hold_stays_wanted_when_a_renewal_met_no_waiter),
        USUAL(test_hold_is_not_wanted_when_the_renewal_was_not_confirmed),
        USUAL(test_hold_begins_unwanted_when_the_message_came_before),
        USUAL(test_hold_is_lost_exactly_at_its_deadline_when_unconfirmed),
        USUAL(test_hold_wakes_its_thread_when_lost_before_it_entered),
        USUAL(test_hold_is_lost_at_once_when_a_renewal_says_so),
        USUAL(test_hold_is_lost_at_once_when_told_so),
        USUAL(test_hold_ignores_a_lost_message_when_it_holds_nothing),
        USUAL(test_hold_asks_when_the_loss_is_reported_before_the_grant),
        USUAL(test_hold_is_not_certain_when_the_renewal_is_read_past_its_own_deadline),
        USUAL(test_hold_gives_back_when_owned_after_its_loss),
        USUAL(test_hold_is_over_when_given_back),
        USUAL(test_hold_gives_back_again_when_granted_after_it_is_over),
        USUAL(test_hold_ignores_late_answers_when_over),
        USUAL(test_hold_is_lost_at_max_hold_when_renewed_all_the_time),
        USUAL(test_hold_asks_for_a_short_lease_when_max_hold_is_shorter),
        USUAL(test_hold_asks_for_the_same_lease_when_max_hold_nears),
        USUAL(test_hold_asks_for_the_shortest_lease_when_max_hold_is_very_short),
        USUAL(test_hold_stays_held_when_its_thread_wakes_up_after_max_hold),
        USUAL(test_hold_polls_by_the_short_lease_when_max_hold_is_shorter),
        USUAL(test_hold_lasts_longer_when_max_hold_is_restarted),
        USUAL(test_hold_has_no_end_when_there_is_no_max_hold),
        USUAL(test_hold_has_the_default_lease_when_none_is_given),
        USUAL(test_hold_is_certain_when_lease_and_max_hold_are_the_longest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

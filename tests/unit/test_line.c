/* SPDX-License-Identifier: BSD-2-Clause */
/* core/line: what a thread does that wants a mutex of its process, and what becomes of the hold at an unlock. */
#include "core/line.h"

#include "base/units.h"
#include "hold_clock.h"

#define LINGER_MS 100

static struct dm_tenure tenure;
static struct dm_line line;
static struct dm_seat seats[3];

/* A line without threads, whose claim is to ask. */
static int begin_line(void **state)
{
    (void)state;
    dm_hold_init(&hold, SERIAL, THREAD, LEASE_MS, 0, false);
    dm_tenure_init(&tenure, &hold, "nname", 1, 0);
    line = (struct dm_line){ .tenure = &tenure };
    for (int i = 0; i < 3; i++)
        seats[i] = (struct dm_seat){ .since_ns = at(0) };
    return 0;
}

/* The same, and a thread is inside. */
static int begin_inside(void **state)
{
    begin_line(state);
    own();
    return 0;
}

/* The same, and the thread has left. */
static int begin_idle(void **state)
{
    begin_inside(state);
    event_at(DM_EV_LEFT, 1);
    return 0;
}

static void sit(int count)
{
    for (int i = 0; i < count; i++)
        dm_line_sit_down(&line, &seats[i]);
}

static void enter_times(uint32_t times)
{
    tenure.number += times;
}

static struct dm_settling settle(int64_t ms)
{
    return dm_line_settle(&line, &tenure, true, at(ms));
}

static enum dm_next leave(int64_t ms)
{
    return dm_line_leave(&line, true, at(ms));
}

/* ---- seats ------------------------------------------------------------------------------- */

/* A seat leaves from any place, and the others keep theirs. */
static void test_seats_keep_their_order_when_one_stands_up(void **state)
{
    static const int others[3][2] = { { 1, 2 }, { 0, 2 }, { 0, 1 } };

    for (int i = 0; i < 3; i++) {
        begin_line(state);
        sit(3);
        dm_line_stand_up(&line, &seats[i]);
        assert_ptr_equal(line.first, &seats[others[i][0]]);
        assert_ptr_equal(line.first->next, &seats[others[i][1]]);
        assert_ptr_equal(line.last, &seats[others[i][1]]);
        assert_null(line.last->next);
    }
    dm_line_stand_up(&line, &seats[0]);
    dm_line_stand_up(&line, &seats[1]);
    assert_null(line.first);
    assert_null(line.last);
}

/* Woken in vain once a millisecond has passed; not a seat that was not woken, nor one behind the first. */
static void test_first_seat_starves_when_woken_in_vain_after_a_millisecond(void **state)
{
    static const struct {
        int seat, ms;
        bool is_awake, is_starving;
    } cases[] = { { 0, 1, true, true }, { 0, 0, true, false }, { 0, 1, false, false }, { 1, 1, true, false } };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin_inside(state);
        sit(2);
        seats[cases[i].seat].is_awake = cases[i].is_awake;
        dm_line_sit_on(&line, &seats[cases[i].seat], at(cases[i].ms));
        assert_int_equal(line.is_starving, cases[i].is_starving);
        assert_false(seats[cases[i].seat].is_awake);
    }
}

/* The next seat has not starved; and the end of another seat helps no starving one. */
static void test_starving_ends_when_the_first_seat_stands_up(void **state)
{
    (void)state;
    sit(3);
    line.is_starving = true;
    dm_line_stand_up(&line, &seats[1]);
    assert_true(line.is_starving);
    dm_line_stand_up(&line, &seats[0]);
    assert_false(line.is_starving);
}

/* Only a place in the queue can be left to another thread. */
static void test_first_seat_is_heir_when_the_claim_is_queued(void **state)
{
    (void)state;
    sit(1);
    assert_false(dm_line_has_heir(&line, &tenure));
    say_queued(send_at(0), 1, 100, 1);
    assert_true(dm_line_has_heir(&line, &tenure));
    assert_false(dm_line_has_heir(&line, NULL));
    line.tenure = NULL;
    assert_false(dm_line_has_heir(&line, &tenure));
    line.tenure = &tenure;
    dm_line_stand_up(&line, &seats[0]);
    assert_false(dm_line_has_heir(&line, &tenure));
}

/* ---- looking ----------------------------------------------------------------------------- */

enum who { NOBODY_ASKED, ASKS, IS_INSIDE, IS_IDLE };

static void begin_as(enum who who)
{
    static int (*const begins[])(void **) = { begin_line, begin_line, begin_inside, begin_idle };

    begins[who](NULL);
    if (who == NOBODY_ASKED)
        line.tenure = NULL;
}

/* A thread that comes; "starves": a seat before it was woken in vain. */
static void test_newcomer_does_what_the_line_allows(void **state)
{
    static const struct {
        enum who who;
        bool is_equal, may_wait, starves, is_over;
        enum dm_next next;
    } cases[] = {
        { NOBODY_ASKED, false, true, false, false, DM_NEXT_ASK },
        { ASKS, false, true, false, false, DM_NEXT_ASK },
        { IS_INSIDE, false, true, false, false, DM_NEXT_ASK },
        { IS_IDLE, false, true, false, false, DM_NEXT_GIVE_BACK },
        { IS_IDLE, false, true, true, false, DM_NEXT_ASK },
        { IS_IDLE, true, true, false, false, DM_NEXT_ENTER },
        { IS_IDLE, true, false, false, false, DM_NEXT_ENTER },
        { IS_IDLE, true, true, false, true, DM_NEXT_GIVE_BACK },
        { IS_IDLE, true, true, true, false, DM_NEXT_SIT },
        { IS_IDLE, true, false, true, false, DM_NEXT_ASK },
        { IS_INSIDE, true, true, false, false, DM_NEXT_SIT },
        { IS_INSIDE, true, false, false, false, DM_NEXT_FAIL },
        { ASKS, true, true, false, false, DM_NEXT_SIT },
        { ASKS, true, false, false, false, DM_NEXT_ASK },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin_as(cases[i].who);
        sit(cases[i].starves);
        line.is_starving = cases[i].starves;
        if (cases[i].is_over)
            enter_times(DM_TENURE_NUMBER_MAX);
        assert_int_equal(dm_line_look(&line, NULL, cases[i].is_equal, cases[i].may_wait, at(2)), cases[i].next);
    }
}

/* A seat that need not sit any more is out of the line, and does not count as one that uses the hold. */
static void test_seat_stands_up_unless_it_goes_on_sitting(void **state)
{
    static const struct {
        enum who who;
        bool is_equal;
        enum dm_next next;
    } cases[] = {
        { NOBODY_ASKED, false, DM_NEXT_ASK },
        { IS_INSIDE, true, DM_NEXT_SIT },
        { IS_IDLE, true, DM_NEXT_ENTER },
        { IS_IDLE, false, DM_NEXT_GIVE_BACK },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin_as(cases[i].who);
        sit(1);
        line.is_starving = true; /* the seat itself */
        assert_int_equal(dm_line_look(&line, &seats[0], cases[i].is_equal, true, at(2)), cases[i].next);
        assert_ptr_equal(line.first, cases[i].next == DM_NEXT_SIT ? &seats[0] : NULL);
    }
}

/* ---- leaving ----------------------------------------------------------------------------- */

/* The table of doc/design/lines.md. */
static void test_unlock_passes_leaves_open_keeps_or_gives_back(void **state)
{
    static const struct {
        bool has_seat, is_robust, is_starving, is_wanted, lingers, is_told, is_backing_off, is_over;
        enum dm_next next;
    } cases[] = {
        { .is_told = true, .next = DM_NEXT_GIVE_BACK },
        { .has_seat = true, .is_told = true, .next = DM_NEXT_STAY },
        { .has_seat = true, .is_told = true, .is_wanted = true, .next = DM_NEXT_STAY },
        { .has_seat = true, .is_told = true, .is_robust = true, .next = DM_NEXT_PASS },
        { .has_seat = true, .is_told = true, .is_starving = true, .next = DM_NEXT_PASS },
        { .has_seat = true, .is_told = true, .is_over = true, .next = DM_NEXT_GIVE_BACK },
        { .has_seat = true, .next = DM_NEXT_STAY },
        { .lingers = true, .is_told = true, .next = DM_NEXT_STAY },
        { .lingers = true, .next = DM_NEXT_GIVE_BACK },
        { .lingers = true, .is_told = true, .is_robust = true, .next = DM_NEXT_GIVE_BACK },
        { .lingers = true, .is_told = true, .is_wanted = true, .next = DM_NEXT_GIVE_BACK },
        { .lingers = true, .is_told = true, .is_backing_off = true, .next = DM_NEXT_GIVE_BACK },
        { .lingers = true, .is_told = true, .is_over = true, .next = DM_NEXT_GIVE_BACK },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin_inside(state);
        sit(cases[i].has_seat);
        hold.is_robust = cases[i].is_robust;
        line.is_starving = cases[i].is_starving;
        line.skip = cases[i].is_backing_off;
        if (cases[i].is_wanted)
            event_at(DM_EV_WANTED, 1);
        if (cases[i].lingers)
            dm_line_linger(&line, LINGER_MS);
        if (cases[i].is_over)
            enter_times(DM_TENURE_NUMBER_MAX);
        assert_int_equal(dm_line_leave(&line, cases[i].is_told, at(2)), cases[i].next);
        assert_int_equal(hold.is_marked, cases[i].next != DM_NEXT_GIVE_BACK);
    }
}

/* The longest time that any thread's object has asked for. */
static void test_linger_time_grows_when_threads_ask_for_more(void **state)
{
    (void)state;
    dm_line_linger(&line, 10);
    dm_line_linger(&line, 30);
    dm_line_linger(&line, 20);
    assert_int_equal(tenure.linger_ms, 30);
}

/* I13: where no message can tell of a waiter, the process behaves as if one came with the first unlock. */
static void test_bound_runs_when_no_message_can_tell_of_a_waiter(void **state)
{
    (void)state;
    assert_int_equal(dm_line_leave(&line, false, at(2)), DM_NEXT_GIVE_BACK);
    assert_int_equal(tenure.bound_ns, DM_NEVER);
    sit(1);
    assert_int_equal(dm_line_leave(&line, true, at(2)), DM_NEXT_STAY);
    assert_int_equal(tenure.bound_ns, DM_NEVER);
    assert_int_equal(dm_line_leave(&line, false, at(2)), DM_NEXT_STAY);
    assert_int_equal(tenure.bound_ns, at(12));
}

/* Keeps the hold, lets it be used again, and has it asked back. */
static void keep_and_use(uint32_t relocks, int64_t ms)
{
    assert_int_equal(leave(ms), DM_NEXT_STAY);
    enter_times(relocks);
    event_at(DM_EV_WANTED, ms);
    assert_int_equal(leave(ms), DM_NEXT_GIVE_BACK);
    hold.is_wanted = false;
    dm_tenure_init(&tenure, &hold, "nname", 1, 0);
    dm_line_linger(&line, LINGER_MS);
}

/* 1, 3, 7 ... 63 unlocks give back at once, until a lease was worth keeping. */
static void test_unlocks_back_off_when_kept_leases_are_asked_back(void **state)
{
    (void)state;
    dm_line_linger(&line, LINGER_MS);
    for (unsigned i = 0, skipped = 1; i < 8; i++, skipped = skipped < 63 ? 2 * skipped + 1 : 63) {
        keep_and_use(1, i);
        for (unsigned j = 0; j < skipped; j++)
            assert_int_equal(leave(i), DM_NEXT_GIVE_BACK);
    }
    keep_and_use(2, 10);
    keep_and_use(1, 10);
    assert_int_equal(line.skip, 1);
}

/* Of several times that a hold was kept, the first counts; one that was never kept says nothing, asked back or not. */
static void test_back_off_counts_from_the_first_keeping(void **state)
{
    (void)state;
    assert_int_equal(leave(1), DM_NEXT_GIVE_BACK);
    event_at(DM_EV_WANTED, 1);
    assert_int_equal(leave(1), DM_NEXT_GIVE_BACK);
    assert_int_equal(line.skip, 0);
    hold.is_wanted = false;
    dm_line_linger(&line, LINGER_MS);
    assert_int_equal(leave(2), DM_NEXT_STAY);
    enter_times(1);
    keep_and_use(1, 3);
    assert_int_equal(line.skip, 0);
}

/* An unlock plans a check at the end of the linger time; the last thread to leave counts, also by the fast path. */
static void test_kept_hold_goes_back_when_its_linger_time_is_over(void **state)
{
    (void)state;
    dm_line_linger(&line, LINGER_MS);
    assert_int_equal(leave(2), DM_NEXT_STAY);
    event_at(DM_EV_LEFT, 2);
    assert_int_equal(hold.look_ns, at(2 + LINGER_MS));
    assert_int_equal(tenure.left_ns, at(2));
    tenure.left_ns = at(50);
    assert_int_equal(dm_line_check(&line, &tenure, at(2 + LINGER_MS)), DM_NEXT_STAY);
    assert_int_equal(hold.look_ns, at(50 + LINGER_MS));
    assert_int_equal(dm_line_check(&line, &tenure, at(50 + LINGER_MS)), DM_NEXT_GIVE_BACK);
}

/* A hold in use is checked again a linger time later. */
static void test_check_is_repeated_when_the_hold_is_in_use(void **state)
{
    static const enum who whos[] = { IS_INSIDE, IS_IDLE, IS_IDLE };

    (void)state;
    for (int i = 0; i < 3; i++) {
        begin_as(whos[i]);
        dm_line_linger(&line, LINGER_MS);
        tenure.left_ns = at(1);
        sit(i == 1);
        if (i == 2)
            line.tenure = NULL;
        assert_int_equal(dm_line_check(&line, &tenure, at(300)), DM_NEXT_STAY);
        assert_int_equal(hold.look_ns, at(300 + LINGER_MS));
    }
}

/* ---- the end of a section ---------------------------------------------------------------- */

/* Threads may enter and leave by a swap while no rule asks for the state lock. */
static void test_word_is_open_while_nothing_asks_for_the_state_lock(void **state)
{
    static const struct {
        bool is_idle, is_marked, is_wanted, is_robust, has_maxhold, is_owner_dead, is_starving, is_shut;
        unsigned bits;
    } cases[] = {
        { .is_marked = true, .bits = DM_TENURE_OPEN },
        { .is_marked = true, .is_idle = true, .bits = DM_TENURE_OPEN },
        { .bits = DM_TENURE_OPEN | DM_TENURE_LOOK },
        { .is_marked = true, .is_wanted = true, .bits = DM_TENURE_OPEN | DM_TENURE_LOOK },
        { .is_robust = true },
        { .has_maxhold = true },
        { .is_owner_dead = true },
        { .is_starving = true },
        { .is_shut = true },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dm_settling settling;

        (cases[i].is_idle ? begin_idle : begin_inside)(state);
        sit(1);
        seats[0].is_awake = true;
        hold.is_marked = cases[i].is_marked;
        hold.is_robust = cases[i].is_robust;
        hold.maxhold_ms = cases[i].has_maxhold;
        hold.is_owner_dead = cases[i].is_owner_dead;
        line.is_starving = cases[i].is_starving;
        if (cases[i].is_wanted)
            event_at(DM_EV_WANTED, 1);
        settling = dm_line_settle(&line, &tenure, !cases[i].is_shut, at(2));
        assert_int_equal(settling.next, DM_NEXT_STAY);
        assert_int_equal(settling.bits, cases[i].bits);
        assert_int_equal(settling.until_ns, !cases[i].bits ? 0 : at(cases[i].is_wanted ? 12 : CERTAIN_MS));
        assert_null(settling.wake);
    }
}

/* The thread inside wakes a seat that sleeps; and while the process keeps, a check is planned. */
static void test_thread_inside_must_look_when_a_seat_sleeps_or_no_check_is_planned(void **state)
{
    (void)state;
    hold.is_marked = true;
    assert_int_equal(settle(2).bits, DM_TENURE_OPEN | DM_TENURE_LOOK);
    dm_hold_look_at(&hold, at(100));
    assert_int_equal(settle(2).bits, DM_TENURE_OPEN);
    sit(1);
    assert_int_equal(settle(2).bits, DM_TENURE_OPEN | DM_TENURE_LOOK);
    seats[0].is_awake = true;
    assert_int_equal(settle(2).bits, DM_TENURE_OPEN);
}

/* A thread whose grant has come is still in its call. */
static void test_word_is_closed_until_the_asker_enters(void **state)
{
    (void)state;
    assert_int_equal(settle(0).bits, 0);
    say(DM_SAYS_OWNED, send_at(0), 1);
    assert_int_equal(settle(1).bits, 0);
    event_at(DM_EV_ENTERED, 1);
    assert_int_equal(settle(1).bits, DM_TENURE_OPEN | DM_TENURE_LOOK);
}

/* I6: once, until its thread has looked. */
static void test_first_seat_is_woken_when_the_hold_is_idle(void **state)
{
    (void)state;
    sit(2);
    assert_ptr_equal(settle(2).wake, &seats[0]);
    assert_true(seats[0].is_awake);
    assert_null(settle(2).wake);
}

/* No hold is forgotten: the last section that finds an idle hold without use or thread gives it back. */
static void test_idle_hold_goes_back_when_nobody_is_going_to_use_it(void **state)
{
    static const struct {
        bool has_seat, lingers, is_wanted;
        enum dm_next next;
    } cases[] = {
        { false, false, false, DM_NEXT_GIVE_BACK }, { false, true, false, DM_NEXT_STAY },
        { false, true, true, DM_NEXT_GIVE_BACK },   { true, false, false, DM_NEXT_STAY },
        { true, false, true, DM_NEXT_STAY },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin_idle(state);
        sit(cases[i].has_seat);
        if (cases[i].lingers)
            dm_line_linger(&line, LINGER_MS);
        if (cases[i].is_wanted)
            event_at(DM_EV_WANTED, 1);
        assert_int_equal(settle(2).next, cases[i].next);
    }
}

/* The message that asks a kept lease back ends its keeping, and the back-off begins. */
static void test_back_off_begins_when_an_idle_hold_is_asked_back(void **state)
{
    (void)state;
    dm_line_linger(&line, LINGER_MS);
    assert_int_equal(leave(2), DM_NEXT_STAY);
    event_at(DM_EV_LEFT, 2);
    assert_int_equal(settle(2).next, DM_NEXT_STAY);
    assert_int_equal(line.skip, 0);
    event_at(DM_EV_WANTED, 3);
    assert_int_equal(settle(3).next, DM_NEXT_GIVE_BACK);
    assert_int_equal(line.skip, 1);
}

/* Rule 5: the first seat makes another claim, and the old one's word stays closed. */
static void test_claim_leaves_the_line_when_its_hold_ends(void **state)
{
    struct dm_settling settling;

    (void)state;
    sit(1);
    assert_ptr_equal(line.tenure, &tenure);
    event_at(DM_EV_TOLD_LOST, 2);
    settling = settle(2);
    assert_null(line.tenure);
    assert_ptr_equal(settling.wake, &seats[0]);
    assert_int_equal(settling.bits, 0);
    assert_int_equal(settling.until_ns, 0);
}

/* A claim that waits in the store's queue stays the line's; one that waits on a condition does not. */
static void test_claim_stays_in_the_line_while_it_asks_or_is_queued(void **state)
{
    (void)state;
    settle(0);
    assert_ptr_equal(line.tenure, &tenure);
    say_queued(send_at(0), 1, 100, 1);
    settle(1);
    assert_ptr_equal(line.tenure, &tenure);
    hold.phase = DM_WAITING;
    settle(1);
    assert_null(line.tenure);
}

/* A claim that ends after another has become the line's takes nothing with it. */
static void test_line_keeps_its_claim_when_another_ends(void **state)
{
    struct dm_tenure other;

    (void)state;
    dm_tenure_init(&other, &hold, "nname", 1, 0);
    line.tenure = &other;
    sit(1);
    assert_null(dm_line_part(&line, &tenure));
    assert_false(dm_line_is_unused(&line, &tenure));
    assert_int_equal(settle(2).bits, 0);
    assert_false(seats[0].is_awake);
    assert_ptr_equal(line.tenure, &other);
    assert_ptr_equal(dm_line_part(&line, &other), &seats[0]);
    assert_null(line.tenure);
}

#define IN_LINE(test) cmocka_unit_test_setup(test, begin_line)
#define INSIDE(test) cmocka_unit_test_setup(test, begin_inside)
#define IDLE(test) cmocka_unit_test_setup(test, begin_idle)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_LINE(test_seats_keep_their_order_when_one_stands_up),
        IN_LINE(test_first_seat_starves_when_woken_in_vain_after_a_millisecond),
        IN_LINE(test_starving_ends_when_the_first_seat_stands_up),
        IN_LINE(test_first_seat_is_heir_when_the_claim_is_queued),
        IN_LINE(test_newcomer_does_what_the_line_allows),
        IN_LINE(test_seat_stands_up_unless_it_goes_on_sitting),
        IN_LINE(test_unlock_passes_leaves_open_keeps_or_gives_back),
        IN_LINE(test_linger_time_grows_when_threads_ask_for_more),
        INSIDE(test_bound_runs_when_no_message_can_tell_of_a_waiter),
        INSIDE(test_unlocks_back_off_when_kept_leases_are_asked_back),
        INSIDE(test_back_off_counts_from_the_first_keeping),
        INSIDE(test_kept_hold_goes_back_when_its_linger_time_is_over),
        IN_LINE(test_check_is_repeated_when_the_hold_is_in_use),
        IN_LINE(test_word_is_open_while_nothing_asks_for_the_state_lock),
        INSIDE(test_thread_inside_must_look_when_a_seat_sleeps_or_no_check_is_planned),
        IN_LINE(test_word_is_closed_until_the_asker_enters),
        IDLE(test_first_seat_is_woken_when_the_hold_is_idle),
        IN_LINE(test_idle_hold_goes_back_when_nobody_is_going_to_use_it),
        INSIDE(test_back_off_begins_when_an_idle_hold_is_asked_back),
        INSIDE(test_claim_leaves_the_line_when_its_hold_ends),
        IN_LINE(test_claim_stays_in_the_line_while_it_asks_or_is_queued),
        IDLE(test_line_keeps_its_claim_when_another_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

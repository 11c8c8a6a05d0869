/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * core/hold: each event in each phase.  The table has the phase that follows; an event that changes an attempt in a
 * surprising phase fails here.
 */
#include <string.h>

#include "hold_clock.h"

#define PHASES (DM_OVER + 1)
#define EVENTS (DM_EV_PROCESS_ENDS + 1)

/* Not asked: the thread cannot do so in this phase, and DM_BUG() says so. */
#define NEVER (-1)

static const struct dm_answer owned = { .verdict = DM_SAYS_OWNED, .token = 100 };
static const struct dm_answer queued = { .verdict = DM_SAYS_QUEUED, .position = 1, .remaining_ms = 100 };
static const struct dm_answer waiting = { .verdict = DM_SAYS_WAITING };
static const struct dm_answer unknown = { .verdict = DM_SAYS_UNKNOWN };
static const struct dm_answer full = { .verdict = DM_SAYS_FULL };
static const struct dm_answer nothing = { .verdict = DM_SAYS_NOTHING };
static const struct dm_answer again = { .verdict = DM_SAYS_AGAIN };
static const struct dm_answer done = { .verdict = DM_SAYS_DONE };

/* ---- each phase -------------------------------------------------------------------------- */

static void make_asking(void)
{
    send_at(0);
}

static void make_waiting(void)
{
    say(DM_SAYS_WAITING, send_at(0), 1);
}

static void make_queued(void)
{
    say_queued(send_at(0), 1, 200, 1);
}

static void make_held(void)
{
    own();
}

static void make_leaving(void)
{
    own();
    event_at(DM_EV_LEAVE, 1);
}

static void make_lost(void)
{
    own();
    event_at(DM_EV_TOLD_LOST, 1);
    event_at(DM_EV_TOLD, 1);
}

static void make_returning(void)
{
    own();
    event_at(DM_EV_GIVEN_BACK, 1);
}

static void make_over(void)
{
    say(DM_SAYS_FULL, send_at(0), 1);
}

static void (*const make[PHASES])(void) = {
    [DM_ASKING] = make_asking,   [DM_WAITING] = make_waiting, [DM_QUEUED] = make_queued,       [DM_HELD] = make_held,
    [DM_LEAVING] = make_leaving, [DM_LOST] = make_lost,       [DM_RETURNING] = make_returning, [DM_OVER] = make_over,
};

/* ---- the table --------------------------------------------------------------------------- */

/* clang-format off */
#define ASK DM_ASKING
#define WAI DM_WAITING
#define QUE DM_QUEUED
#define HEL DM_HELD
#define LEA DM_LEAVING
#define LOS DM_LOST
#define RET DM_RETURNING
#define OVR DM_OVER

static const struct {
    enum dm_event_kind kind;
    const struct dm_answer *answer;
    int then[PHASES]; /* in the order of enum dm_phase: ASKING WAITING QUEUED HELD LEAVING LOST RETURNING OVER */
} table[] = {
    { DM_EV_ANSWER, &owned,       { HEL, HEL, HEL, HEL, LEA, LOS, RET, RET } },
    { DM_EV_ANSWER, &queued,      { QUE, QUE, QUE, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_ANSWER, &waiting,     { WAI, WAI, QUE, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_ANSWER, &unknown,     { ASK, ASK, ASK, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_ANSWER, &full,        { OVR, OVR, OVR, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_ANSWER, &nothing,     { ASK, WAI, QUE, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_ANSWER, &again,       { ASK, WAI, QUE, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_POLLED, &owned,       { HEL, HEL, HEL, HEL, LEA, LOS, RET, RET } },
    { DM_EV_POLLED, &queued,      { ASK, QUE, QUE, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_POLLED, &waiting,     { ASK, WAI, QUE, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_POLLED, &unknown,     { ASK, ASK, ASK, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_POLLED, &full,        { OVR, OVR, OVR, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_POLLED, &nothing,     { ASK, WAI, QUE, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_RENEWED, &owned,      { ASK, WAI, QUE, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_RENEWED, &unknown,    { ASK, WAI, QUE, LOS, LEA, LOS, RET, OVR } },
    { DM_EV_RENEWED, &nothing,    { ASK, WAI, QUE, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_RENEWED, &again,      { ASK, WAI, QUE, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_RENEWED_BY_THREAD, &owned, { ASK, WAI, QUE, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_RENEWED_BY_THREAD, &unknown, { ASK, WAI, QUE, LOS, LEA, LOS, RET, OVR } },
    { DM_EV_RELEASED, &done,      { ASK, WAI, QUE, HEL, LEA, LOS, OVR, OVR } },
    { DM_EV_RELEASED, &nothing,   { ASK, WAI, QUE, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_RELEASED, &again,     { ASK, WAI, QUE, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_GRANTED, &owned,      { HEL, HEL, HEL, HEL, LEA, LOS, RET, RET } },
    { DM_EV_SIGNALLED, &queued,   { QUE, QUE, QUE, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_TOLD_LOST, NULL,      { ASK, WAI, QUE, LOS, LEA, LOS, RET, OVR } },
    { DM_EV_TOLD_ASK, NULL,       { ASK, WAI, QUE, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_WANTED, NULL,         { ASK, WAI, QUE, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_CONNECTED, NULL,      { ASK, WAI, QUE, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_SUBSCRIBED, NULL,     { ASK, WAI, QUE, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_TIME, NULL,           { ASK, WAI, QUE, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_NAMED, NULL,          { NEVER, NEVER, NEVER, NEVER, NEVER, LOS, RET, NEVER } },
    { DM_EV_TOLD, NULL,           { ASK, WAI, QUE, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_ENTERED, NULL,        { NEVER, NEVER, NEVER, NEVER, NEVER, NEVER, NEVER, NEVER } },
    { DM_EV_LEFT, NULL,           { NEVER, NEVER, NEVER, HEL, NEVER, NEVER, NEVER, NEVER } },
    { DM_EV_MENDED, NULL,         { ASK, WAI, QUE, HEL, LEA, LOS, RET, OVR } },
    { DM_EV_LEAVE, NULL,          { NEVER, NEVER, NEVER, LEA, NEVER, NEVER, NEVER, NEVER } },
    { DM_EV_STAY, NULL,           { ASK, WAI, QUE, HEL, HEL, LOS, RET, OVR } },
    { DM_EV_GIVEN_BACK, NULL,     { RET, RET, RET, RET, RET, RET, RET, RET } },
    { DM_EV_CLOSED, NULL,         { OVR, OVR, OVR, NEVER, OVR, RET, RET, OVR } },
    { DM_EV_THREAD_ENDS, NULL,    { RET, RET, RET, RET, RET, RET, RET, OVR } },
    { DM_EV_PROCESS_ENDS, NULL,   { RET, RET, RET, RET, RET, RET, RET, OVR } },
};
/* clang-format on */

/* An answer to the newest request, which is young enough to prove certainty. */
static void test_hold_goes_to_the_phase_of_the_table_on_each_event(void **state)
{
    (void)state;
    for (size_t row = 0; row < sizeof table / sizeof table[0]; row++) {
        for (enum dm_phase phase = 0; phase < PHASES; phase++) {
            if (table[row].then[phase] == NEVER)
                continue;
            begin(LEASE_MS, 0);
            make[phase]();
            assert_int_equal(hold.phase, phase);
            step(table[row].kind, hold.last_request, table[row].answer, 10);
            if ((int)hold.phase != table[row].then[phase])
                fail_msg("row %zu: event %d in phase %d leads to %d, not %d", row, (int)table[row].kind, (int)phase,
                         (int)hold.phase, table[row].then[phase]);
        }
    }
}

/* The end of certainty loses a hold, and changes no other phase but the end of a pending release. */
static void test_hold_is_lost_or_over_when_all_times_are_past(void **state)
{
    static const enum dm_phase then[PHASES] = { ASK, WAI, QUE, LOS, LEA, LOS, OVR, OVR };

    (void)state;
    for (enum dm_phase phase = 0; phase < PHASES; phase++) {
        begin(LEASE_MS, 0);
        make[phase]();
        event_at(DM_EV_TIME, 10 * LEASE_MS);
        assert_int_equal(hold.phase, then[phase]);
    }
}

/* Each phase wants one thing at most, and names its moment. */
static void test_hold_wants_what_its_phase_needs(void **state)
{
    static const struct {
        enum dm_want want;
        int64_t due_ms;
    } wanted[PHASES] = {
        [DM_ASKING] = { DM_WANTS_NOTHING, 0 },    [DM_WAITING] = { DM_WANTS_POLL, 1 + THIRD_MS },
        [DM_QUEUED] = { DM_WANTS_POLL, 202 },     [DM_HELD] = { DM_WANTS_RENEW, THIRD_MS },
        [DM_LEAVING] = { DM_WANTS_NOTHING, 0 },   [DM_LOST] = { DM_WANTS_RELEASE, 1 },
        [DM_RETURNING] = { DM_WANTS_RELEASE, 1 }, [DM_OVER] = { DM_WANTS_NOTHING, 0 },
    };

    (void)state;
    begin(LEASE_MS, 0);
    assert_int_equal(wants(0), DM_WANTS_ACQUIRE);
    for (enum dm_phase phase = 0; phase < PHASES; phase++) {
        begin(LEASE_MS, 0);
        make[phase]();
        for (enum dm_want want = 0; want < DM_WANTS_NOTHING; want++) {
            if (want == DM_WANTS_TIME && phase == DM_HELD)
                assert_int_equal(dm_hold_due_ns(&hold, want), at(CERTAIN_MS));
            else
                assert_int_equal(dm_hold_due_ns(&hold, want),
                                 want == wanted[phase].want ? at(wanted[phase].due_ms) : DM_NEVER);
        }
        if (wanted[phase].want != DM_WANTS_NOTHING)
            assert_int_equal(wants(wanted[phase].due_ms), wanted[phase].want);
    }
}

/* The table has each event; an event that is added without a row fails here. */
static void test_the_table_has_each_event(void **state)
{
    bool has_row[EVENTS] = { false };

    (void)state;
    for (size_t row = 0; row < sizeof table / sizeof table[0]; row++)
        has_row[table[row].kind] = true;
    for (int kind = 0; kind < EVENTS; kind++)
        assert_true(has_row[kind]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        USUAL(test_hold_goes_to_the_phase_of_the_table_on_each_event),
        USUAL(test_hold_is_lost_or_over_when_all_times_are_past),
        USUAL(test_hold_wants_what_its_phase_needs),
        USUAL(test_the_table_has_each_event),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* registers/session: when a session is certain, what it sends, when it is over.  session.h has the rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/units.h"
#include "registers/session.h"

#define BEGINNING_NS (INT64_C(1000000) * DM_NS_PER_S)
#define LEASE_MS 900
#define CERTAIN_MS 720
#define THIRD_MS 300
#define RETRY_MS 50

static const struct dm_reg_session_id id = { .uuid = { 0x0f, 2 }, .serial = 3, .lease_ms = LEASE_MS };
static struct dm_reg_session session;

static int64_t at(int64_t ms)
{
    return BEGINNING_NS + ms * DM_NS_PER_MS;
}

static struct dm_reg_version version(uint8_t number)
{
    return (struct dm_reg_version){ .bytes = { number } };
}

static void step(enum dm_reg_session_event_kind kind, uint8_t number, int64_t ms)
{
    dm_reg_session_step(&session, &(struct dm_reg_session_event){ .kind = kind, .version = version(number) }, at(ms));
}

/* A read shows a living session with this beat. */
static void find(uint64_t beat, uint8_t number, int64_t ms)
{
    const struct dm_reg_session_value value = { .version = version(number), .beat = beat, .lease_ms = LEASE_MS };

    dm_reg_session_step(&session, &(struct dm_reg_session_event){ DM_REG_SESSION_EV_FOUND, .value = &value }, at(ms));
}

static void find_dead(uint8_t number, int64_t ms)
{
    const struct dm_reg_session_value value = {
        .version = version(number), .is_dead = true, .dead_us = 1, .beat = session.proved
    };

    dm_reg_session_step(&session, &(struct dm_reg_session_event){ DM_REG_SESSION_EV_FOUND, .value = &value }, at(ms));
}

static enum dm_reg_session_want wants(int64_t ms)
{
    return dm_reg_session_wants(&session, at(ms));
}

/* Sends what is wanted, which must be this. */
static void send(enum dm_reg_session_want want, int64_t ms)
{
    assert_int_equal(wants(ms), want);
    dm_reg_session_send(&session, want, at(ms));
    assert_int_equal(wants(ms), DM_REG_SESSION_NOTHING);
}

static bool is_certain(int64_t ms)
{
    return dm_reg_session_is_certain(&session, at(ms));
}

/* A session whose creation is sent at 0 and known at 10. */
static int begin_live(void **state)
{
    (void)state;
    dm_reg_session_init(&session, &id, 0);
    step(DM_REG_SESSION_EV_NEEDED, 0, 0);
    send(DM_REG_SESSION_CREATE, 0);
    step(DM_REG_SESSION_EV_DONE, 1, 10);
    assert_int_equal(session.phase, DM_REG_SESSION_LIVE);
    return 0;
}

/* One that is needed, and not made yet. */
static int begin_unmade(void **state)
{
    (void)state;
    dm_reg_session_init(&session, &id, 0);
    step(DM_REG_SESSION_EV_NEEDED, 0, 0);
    return 0;
}

/* ---- S1 ---------------------------------------------------------------------------------- */

/* S1: the answer comes 600 ms after the sending, and only 120 ms of certainty are left. */
static void test_beat_counts_from_its_sending(void **state)
{
    (void)state;
    dm_reg_session_refer(&session, 1, 0);
    send(DM_REG_SESSION_BEAT, THIRD_MS);
    step(DM_REG_SESSION_EV_DONE, 2, THIRD_MS + 600);
    assert_true(is_certain(THIRD_MS + CERTAIN_MS - 1));
    assert_false(is_certain(THIRD_MS + CERTAIN_MS));
}

/* S1: a beat goes out every third of the lease, from the version that the owner knows. */
static void test_beat_is_wanted_every_third_of_a_lease(void **state)
{
    const struct dm_reg_version second = version(2);

    (void)state;
    dm_reg_session_refer(&session, 1, 0);
    assert_int_equal(dm_reg_session_due_ns(&session), at(THIRD_MS));
    send(DM_REG_SESSION_BEAT, THIRD_MS);
    step(DM_REG_SESSION_EV_DONE, 2, THIRD_MS + 5);
    assert_true(dm_reg_version_equals(&session.version, &second));
    assert_int_equal(wants(2 * THIRD_MS - 1), DM_REG_SESSION_NOTHING);
    send(DM_REG_SESSION_BEAT, 2 * THIRD_MS);
}

/* S1: a beat that was sent before somebody asked proves too little; all that asked before the next one await it. */
static void test_awaited_beat_is_sent_at_once(void **state)
{
    (void)state;
    dm_reg_session_refer(&session, 1, 0);
    dm_reg_session_await_beat(&session, at(20), at(20));
    send(DM_REG_SESSION_BEAT, 20);
    dm_reg_session_await_beat(&session, at(21), at(21));
    dm_reg_session_await_beat(&session, at(22), at(22));
    step(DM_REG_SESSION_EV_DONE, 2, 30);
    send(DM_REG_SESSION_BEAT, 30);
    step(DM_REG_SESSION_EV_DONE, 3, 40);
    assert_int_equal(wants(30 + THIRD_MS - 1), DM_REG_SESSION_NOTHING);
    dm_reg_session_await_beat(&session, at(10000), at(50));
    send(DM_REG_SESSION_BEAT, 50);
    step(DM_REG_SESSION_EV_DONE, 4, 60);
    assert_int_equal(wants(60), DM_REG_SESSION_NOTHING);
}

/* ---- S4 ---------------------------------------------------------------------------------- */

/* S4: a creation without an answer is read, and never sent again. */
static void test_session_is_over_when_its_creation_is_not_found(void **state)
{
    (void)state;
    send(DM_REG_SESSION_CREATE, 0);
    step(DM_REG_SESSION_EV_UNKNOWN, 0, 100);
    send(DM_REG_SESSION_READ, 100);
    step(DM_REG_SESSION_EV_ABSENT, 0, 110);
    assert_int_equal(session.phase, DM_REG_SESSION_OVER);
    assert_int_equal(wants(2000), DM_REG_SESSION_NOTHING);
}

/* S4: the same where the store says that nothing has changed since the key was absent. */
static void test_session_is_over_when_its_key_is_still_absent(void **state)
{
    (void)state;
    send(DM_REG_SESSION_CREATE, 0);
    step(DM_REG_SESSION_EV_UNKNOWN, 0, 100);
    send(DM_REG_SESSION_READ, 100);
    step(DM_REG_SESSION_EV_SAME, 0, 110);
    assert_int_equal(session.phase, DM_REG_SESSION_OVER);
}

/* S4: a session that is there already is another's, say of a copy of this machine, and its beat proves nothing here. */
static void test_session_is_over_when_its_key_is_taken(void **state)
{
    (void)state;
    send(DM_REG_SESSION_CREATE, 0);
    step(DM_REG_SESSION_EV_CONFLICT, 0, 10);
    assert_int_equal(session.phase, DM_REG_SESSION_OVER);
    assert_int_equal(wants(2000), DM_REG_SESSION_NOTHING);
}

/* S6, S1: a creation that is found counts from its sending. */
static void test_session_lives_when_its_creation_is_found(void **state)
{
    (void)state;
    send(DM_REG_SESSION_CREATE, 0);
    step(DM_REG_SESSION_EV_UNKNOWN, 0, 100);
    send(DM_REG_SESSION_READ, 100);
    find(1, 1, 110);
    assert_int_equal(session.phase, DM_REG_SESSION_LIVE);
    assert_true(is_certain(CERTAIN_MS - 1));
    assert_false(is_certain(CERTAIN_MS));
}

/* S8: no reference before the creation is known; S10: and none when the certainty is over. */
static void test_reference_is_sent_only_while_the_session_is_certain(void **state)
{
    (void)state;
    assert_false(dm_reg_session_may_refer(&session, at(0)));
    send(DM_REG_SESSION_CREATE, 0);
    assert_false(dm_reg_session_may_refer(&session, at(1)));
    step(DM_REG_SESSION_EV_DONE, 1, 10);
    assert_true(dm_reg_session_may_refer(&session, at(10)));
    assert_true(dm_reg_session_may_refer(&session, at(CERTAIN_MS - 1)));
    assert_false(dm_reg_session_may_refer(&session, at(CERTAIN_MS)));
}

/* ---- S6 ---------------------------------------------------------------------------------- */

/* S6: a beat without an answer proves nothing, and the owner reads at once. */
static void test_beat_without_an_answer_proves_nothing(void **state)
{
    (void)state;
    dm_reg_session_refer(&session, 1, 0);
    send(DM_REG_SESSION_BEAT, THIRD_MS);
    step(DM_REG_SESSION_EV_UNKNOWN, 0, THIRD_MS + 100);
    assert_false(is_certain(CERTAIN_MS));
    send(DM_REG_SESSION_READ, THIRD_MS + 100);
    step(DM_REG_SESSION_EV_SAME, 0, THIRD_MS + 110);
    assert_false(is_certain(CERTAIN_MS));
    send(DM_REG_SESSION_BEAT, THIRD_MS + 110);
}

/* S6: a conflict is read, too; a note of somebody else leaves the beat as it is. */
static void test_note_costs_the_owner_a_read(void **state)
{
    const struct dm_reg_version noted = version(9);

    (void)state;
    dm_reg_session_refer(&session, 1, 0);
    send(DM_REG_SESSION_BEAT, THIRD_MS);
    step(DM_REG_SESSION_EV_CONFLICT, 0, THIRD_MS + 10);
    send(DM_REG_SESSION_READ, THIRD_MS + 10);
    find(1, 9, THIRD_MS + 20);
    assert_int_equal(session.phase, DM_REG_SESSION_LIVE);
    assert_true(dm_reg_version_equals(&session.version, &noted));
    assert_false(is_certain(CERTAIN_MS));
    send(DM_REG_SESSION_BEAT, THIRD_MS + 20);
}

/* S6: a late beat is proved from its own sending, not from that of the beat which met it. */
static void test_late_beat_is_proved_from_its_sending(void **state)
{
    (void)state;
    dm_reg_session_refer(&session, 1, 0);
    send(DM_REG_SESSION_BEAT, THIRD_MS);
    step(DM_REG_SESSION_EV_UNKNOWN, 0, THIRD_MS + 100);
    send(DM_REG_SESSION_READ, THIRD_MS + 100);
    step(DM_REG_SESSION_EV_SAME, 0, THIRD_MS + 110);
    send(DM_REG_SESSION_BEAT, THIRD_MS + 110);
    step(DM_REG_SESSION_EV_CONFLICT, 0, THIRD_MS + 120);
    send(DM_REG_SESSION_READ, THIRD_MS + 120);
    find(2, 2, THIRD_MS + 130);
    assert_true(is_certain(THIRD_MS + CERTAIN_MS - 1));
    assert_false(is_certain(THIRD_MS + CERTAIN_MS));
}

/* S6: a beat that is so old that its sending is forgotten makes nothing certain. */
static void test_forgotten_beat_makes_nothing_certain(void **state)
{
    int64_t ms = THIRD_MS;

    (void)state;
    dm_reg_session_refer(&session, 1, 0);
    for (int i = 0; i < DM_REG_FLIGHTS + 1; i++) {
        send(DM_REG_SESSION_BEAT, ms);
        step(DM_REG_SESSION_EV_UNKNOWN, 0, ms + 1);
        send(DM_REG_SESSION_READ, ms + 1);
        step(DM_REG_SESSION_EV_SAME, 0, ms + 2);
        ms += RETRY_MS;
    }
    send(DM_REG_SESSION_BEAT, ms);
    step(DM_REG_SESSION_EV_CONFLICT, 0, ms + 1);
    send(DM_REG_SESSION_READ, ms + 1);
    find(2, 2, ms + 2);
    assert_int_equal(session.phase, DM_REG_SESSION_LIVE);
    assert_false(is_certain(CERTAIN_MS));
}

/* S6: what a read can show of a session that is lost. */
static void test_session_is_over_when_found_dead_absent_older_or_strange(void **state)
{
    for (int i = 0; i < 5; i++) {
        begin_live(state);
        dm_reg_session_refer(&session, 1, 1);
        send(DM_REG_SESSION_BEAT, THIRD_MS);
        step(DM_REG_SESSION_EV_DONE, 2, THIRD_MS + 10);
        send(DM_REG_SESSION_BEAT, 2 * THIRD_MS);
        step(DM_REG_SESSION_EV_CONFLICT, 0, 2 * THIRD_MS + 10);
        send(DM_REG_SESSION_READ, 2 * THIRD_MS + 10);
        if (i == 0)
            find_dead(7, 2 * THIRD_MS + 20);
        if (i == 1)
            step(DM_REG_SESSION_EV_ABSENT, 0, 2 * THIRD_MS + 20);
        if (i == 2)
            find(1, 1, 2 * THIRD_MS + 20);
        if (i == 3)
            find(9, 7, 2 * THIRD_MS + 20); /* a beat that was never sent */
        if (i == 4)
            step(DM_REG_SESSION_EV_FOUND, 7, 2 * THIRD_MS + 20); /* no session */
        assert_int_equal(session.phase, DM_REG_SESSION_OVER);
        assert_false(is_certain(2 * THIRD_MS + 20));
        assert_true(session.is_lost);
        assert_true(session.is_proof); /* D7 */
    }
}

/* D7: a session that was silent for so long that others may have killed it proves nothing. */
static void test_kill_after_certainty_is_no_proof_of_lost_data(void **state)
{
    (void)state;
    dm_reg_session_refer(&session, 1, 0);
    send(DM_REG_SESSION_BEAT, CERTAIN_MS);
    step(DM_REG_SESSION_EV_CONFLICT, 0, CERTAIN_MS + 10);
    send(DM_REG_SESSION_READ, CERTAIN_MS + 10);
    find_dead(7, CERTAIN_MS + 20);
    assert_int_equal(session.phase, DM_REG_SESSION_OVER);
    assert_false(session.is_proof);
}

/* ---- S7 ---------------------------------------------------------------------------------- */

/* S7: certainty ends with a hold inside: one write ends all, and a beat that comes back late changes nothing. */
static void test_session_ends_itself_when_certainty_ends_with_a_hold(void **state)
{
    (void)state;
    dm_reg_session_refer(&session, 2, 1);
    send(DM_REG_SESSION_BEAT, THIRD_MS);
    assert_int_equal(dm_reg_session_due_ns(&session), at(CERTAIN_MS));
    step(DM_REG_SESSION_EV_TIME, 0, CERTAIN_MS - 1);
    assert_int_equal(session.phase, DM_REG_SESSION_LIVE);
    step(DM_REG_SESSION_EV_TIME, 0, CERTAIN_MS);
    assert_int_equal(session.phase, DM_REG_SESSION_ENDING);
    assert_true(session.is_lost);
    step(DM_REG_SESSION_EV_DONE, 2, CERTAIN_MS + 1);
    assert_int_equal(session.phase, DM_REG_SESSION_ENDING);
    assert_false(is_certain(CERTAIN_MS + 1));
    send(DM_REG_SESSION_END, CERTAIN_MS + 1);
    assert_false(session.may_delete);
    step(DM_REG_SESSION_EV_DONE, 3, CERTAIN_MS + 5);
    assert_int_equal(session.phase, DM_REG_SESSION_OVER);
}

/* S7: without a hold inside, a beat revives the places in queues. */
static void test_beat_revives_a_session_without_holds(void **state)
{
    (void)state;
    dm_reg_session_refer(&session, 1, 0);
    step(DM_REG_SESSION_EV_TIME, 0, 5000);
    assert_int_equal(session.phase, DM_REG_SESSION_LIVE);
    send(DM_REG_SESSION_BEAT, 5000);
    step(DM_REG_SESSION_EV_DONE, 2, 5010);
    assert_true(is_certain(5000 + CERTAIN_MS - 1));
}

/* S7: an end without an answer is read, and sent again if the session is still there. */
static void test_end_is_repeated_until_the_session_is_dead(void **state)
{
    (void)state;
    dm_reg_session_refer(&session, 1, 1);
    step(DM_REG_SESSION_EV_TIME, 0, CERTAIN_MS);
    send(DM_REG_SESSION_END, CERTAIN_MS);
    step(DM_REG_SESSION_EV_UNKNOWN, 0, CERTAIN_MS + 10);
    send(DM_REG_SESSION_READ, CERTAIN_MS + 10);
    step(DM_REG_SESSION_EV_SAME, 0, CERTAIN_MS + 20);
    assert_int_equal(wants(CERTAIN_MS + 20), DM_REG_SESSION_NOTHING); /* a store that takes no ends is left alone */
    send(DM_REG_SESSION_END, CERTAIN_MS + RETRY_MS);
    step(DM_REG_SESSION_EV_CONFLICT, 0, CERTAIN_MS + RETRY_MS + 10);
    send(DM_REG_SESSION_READ, CERTAIN_MS + RETRY_MS + 10);
    find_dead(8, CERTAIN_MS + RETRY_MS + 20);
    assert_int_equal(session.phase, DM_REG_SESSION_OVER);
}

/* ---- S9, S10 ----------------------------------------------------------------------------- */

/* S9: the key may go at the end only if nothing can come late. */
static void test_closed_session_is_deleted_if_nothing_is_unsettled(void **state)
{
    for (int may_delete = 0; may_delete < 2; may_delete++) {
        begin_live(state);
        dm_reg_session_step(
            &session, &(struct dm_reg_session_event){ .kind = DM_REG_SESSION_EV_CLOSED, .may_delete = may_delete },
            at(20));
        assert_int_equal(session.may_delete, may_delete);
        send(DM_REG_SESSION_END, 60);
        step(DM_REG_SESSION_EV_DONE, 2, 70);
        assert_int_equal(session.phase, DM_REG_SESSION_OVER);
    }
}

/* S9: a session that was never sent needs no end; one whose creation has no answer is read first. */
static void test_closed_session_that_was_not_made(void **state)
{
    step(DM_REG_SESSION_EV_CLOSED, 0, 0);
    assert_int_equal(session.phase, DM_REG_SESSION_OVER);
    begin_unmade(state);
    send(DM_REG_SESSION_CREATE, 0);
    step(DM_REG_SESSION_EV_CLOSED, 0, 1);
    step(DM_REG_SESSION_EV_UNKNOWN, 0, 2);
    send(DM_REG_SESSION_READ, 2);
    find(1, 1, 3);
    send(DM_REG_SESSION_END, 3);
}

/* S10: nothing refers to the session, so it is silent; a reference makes it beat again, at once if it is late. */
static void test_idle_session_is_silent(void **state)
{
    (void)state;
    assert_int_equal(dm_reg_session_due_ns(&session), DM_NEVER);
    assert_int_equal(wants(5000), DM_REG_SESSION_NOTHING);
    dm_reg_session_refer(&session, 1, 0);
    assert_int_equal(wants(THIRD_MS - 1), DM_REG_SESSION_NOTHING);
    assert_int_equal(wants(THIRD_MS), DM_REG_SESSION_BEAT);
    dm_reg_session_refer(&session, -1, 0);
    assert_int_equal(wants(THIRD_MS), DM_REG_SESSION_NOTHING);
}

/* S10: a session that somebody needs beats first, once. */
static void test_needed_session_beats_first(void **state)
{
    (void)state;
    step(DM_REG_SESSION_EV_NEEDED, 0, 100);
    assert_int_equal(wants(100), DM_REG_SESSION_NOTHING); /* still certain */
    step(DM_REG_SESSION_EV_NEEDED, 0, 5000);
    send(DM_REG_SESSION_BEAT, 5000);
    step(DM_REG_SESSION_EV_DONE, 2, 5010);
    assert_true(dm_reg_session_may_refer(&session, at(5010)));
    assert_int_equal(wants(9000), DM_REG_SESSION_NOTHING);
}

/* ---- D3 ---------------------------------------------------------------------------------- */

/* D3, D4: other data: nothing more is sent, holds are certain as before, and for no longer. */
static void test_session_of_lost_data_is_certain_for_no_longer(void **state)
{
    (void)state;
    dm_reg_session_refer(&session, 1, 1);
    send(DM_REG_SESSION_BEAT, THIRD_MS);
    step(DM_REG_SESSION_EV_MOVED, 0, THIRD_MS + 10);
    assert_int_equal(session.phase, DM_REG_SESSION_PAST);
    assert_int_equal(wants(THIRD_MS + 20), DM_REG_SESSION_NOTHING);
    step(DM_REG_SESSION_EV_DONE, 2, THIRD_MS + 20); /* of a driver that is late */
    assert_true(is_certain(CERTAIN_MS - 1));
    assert_false(is_certain(CERTAIN_MS));
    assert_false(dm_reg_session_may_refer(&session, at(CERTAIN_MS - 1)));
    step(DM_REG_SESSION_EV_TIME, 0, CERTAIN_MS);
    assert_int_equal(session.phase, DM_REG_SESSION_OVER);
    assert_true(session.is_lost);
}

/* Two losses in a row: a hold that has not been claimed meanwhile is as certain as before, and its end is told. */
static void test_session_is_as_certain_when_data_are_lost_twice(void **state)
{
    (void)state;
    dm_reg_session_refer(&session, 1, 1);
    step(DM_REG_SESSION_EV_MOVED, 0, THIRD_MS);
    step(DM_REG_SESSION_EV_MOVED, 0, THIRD_MS + 10);
    assert_true(is_certain(CERTAIN_MS - 1));
    assert_int_equal(dm_reg_session_due_ns(&session), at(CERTAIN_MS));
    step(DM_REG_SESSION_EV_TIME, 0, CERTAIN_MS);
    assert_int_equal(session.phase, DM_REG_SESSION_OVER);
    assert_true(session.is_lost);
}

/* D3: what the owner had to read there is not read here. */
static void test_session_of_lost_data_is_not_read(void **state)
{
    (void)state;
    dm_reg_session_refer(&session, 1, 0);
    send(DM_REG_SESSION_BEAT, THIRD_MS);
    step(DM_REG_SESSION_EV_UNKNOWN, 0, THIRD_MS + 10);
    step(DM_REG_SESSION_EV_MOVED, 0, THIRD_MS + 20);
    assert_int_equal(wants(THIRD_MS + 20), DM_REG_SESSION_NOTHING);
}

/* ---- pace -------------------------------------------------------------------------------- */

/* A store that answers nothing is asked again after a pause. */
static void test_reads_pause_while_there_are_no_answers(void **state)
{
    (void)state;
    dm_reg_session_refer(&session, 1, 0);
    send(DM_REG_SESSION_BEAT, THIRD_MS);
    step(DM_REG_SESSION_EV_UNKNOWN, 0, THIRD_MS + 1);
    send(DM_REG_SESSION_READ, THIRD_MS + 1);
    step(DM_REG_SESSION_EV_UNKNOWN, 0, THIRD_MS + 2);
    assert_int_equal(wants(THIRD_MS + RETRY_MS), DM_REG_SESSION_NOTHING);
    assert_int_equal(dm_reg_session_due_ns(&session), at(THIRD_MS + 1 + RETRY_MS));
    send(DM_REG_SESSION_READ, THIRD_MS + 1 + RETRY_MS);
}

/* ---- keys -------------------------------------------------------------------------------- */

static void test_key_is_read_back_and_nothing_else(void **state)
{
    static const char *const wrong[] = {
        "",
        "s/",
        "s/0f020000000000000000000000000000.3",
        "s/0f020000000000000000000000000000.0/900",
        "s/0f020000000000000000000000000000.3/0",
        "s/0f020000000000000000000000000000.3/99",
        "s/0f020000000000000000000000000000.3/900x",
        "s/0f020000000000000000000000000000.03/900",
        "n/0f020000000000000000000000000000.3/900",
        "s/0F020000000000000000000000000000.3/900",
        "s/0f02000000000000000000000000000.3/900",
    };
    struct dm_reg_session_id again;
    char key[DM_REG_SESSION_KEY_ROOM];

    (void)state;
    dm_reg_session_key(&id, key);
    assert_string_equal(key, "s/0f020000000000000000000000000000.3/900");
    assert_true(dm_reg_session_parse_key(key, 0, &again));
    assert_true(dm_reg_session_id_equals(&id, &again));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(dm_reg_session_parse_key(wrong[i], 0, &again));
}

#define LIVE(test) cmocka_unit_test_setup(test, begin_live)
#define UNMADE(test) cmocka_unit_test_setup(test, begin_unmade)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LIVE(test_beat_counts_from_its_sending),
        LIVE(test_beat_is_wanted_every_third_of_a_lease),
        LIVE(test_awaited_beat_is_sent_at_once),
        UNMADE(test_session_is_over_when_its_creation_is_not_found),
        UNMADE(test_session_is_over_when_its_key_is_still_absent),
        UNMADE(test_session_is_over_when_its_key_is_taken),
        UNMADE(test_session_lives_when_its_creation_is_found),
        UNMADE(test_reference_is_sent_only_while_the_session_is_certain),
        LIVE(test_beat_without_an_answer_proves_nothing),
        LIVE(test_note_costs_the_owner_a_read),
        LIVE(test_late_beat_is_proved_from_its_sending),
        LIVE(test_forgotten_beat_makes_nothing_certain),
        cmocka_unit_test(test_session_is_over_when_found_dead_absent_older_or_strange),
        LIVE(test_kill_after_certainty_is_no_proof_of_lost_data),
        LIVE(test_session_ends_itself_when_certainty_ends_with_a_hold),
        LIVE(test_beat_revives_a_session_without_holds),
        LIVE(test_end_is_repeated_until_the_session_is_dead),
        cmocka_unit_test(test_closed_session_is_deleted_if_nothing_is_unsettled),
        UNMADE(test_closed_session_that_was_not_made),
        LIVE(test_idle_session_is_silent),
        LIVE(test_needed_session_beats_first),
        LIVE(test_session_of_lost_data_is_certain_for_no_longer),
        LIVE(test_session_is_as_certain_when_data_are_lost_twice),
        LIVE(test_session_of_lost_data_is_not_read),
        LIVE(test_reads_pause_while_there_are_no_answers),
        cmocka_unit_test(test_key_is_read_back_and_nothing_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

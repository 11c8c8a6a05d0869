/* SPDX-License-Identifier: BSD-2-Clause */
/* registers/watch: when a session of another process may be killed, and which ones a waiter watches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/units.h"
#include "registers/watch.h"

#define BEGINNING_NS (INT64_C(1000000) * DM_NS_PER_S)
#define LEASE_MS 900
#define THIRD_MS 300

static struct dm_reg_watch watch;
static struct dm_reg_watched *watched;

static int64_t at(int64_t ms)
{
    return BEGINNING_NS + ms * DM_NS_PER_MS;
}

static struct dm_reg_session_id id(unsigned number)
{
    return (struct dm_reg_session_id){ .uuid = { (uint8_t)number }, .serial = 1, .lease_ms = LEASE_MS };
}

static bool step_of(struct dm_reg_watched *which, enum dm_reg_watch_event_kind kind, uint8_t version, int64_t age_ms,
                    int64_t ms)
{
    return dm_reg_watch_step(
        &watch, which,
        &(struct dm_reg_watch_event){ .kind = kind, .version = { .bytes = { version } }, .age_ms = age_ms }, at(ms));
}

static bool step(enum dm_reg_watch_event_kind kind, uint8_t version, int64_t ms)
{
    return step_of(watched, kind, version, -1, ms);
}

static enum dm_reg_watch_want wants(int64_t ms)
{
    return dm_reg_watch_wants(watched, at(ms));
}

static void send(enum dm_reg_watch_want want, int64_t ms)
{
    assert_int_equal(wants(ms), want);
    dm_reg_watch_send(watched, want);
    assert_int_equal(wants(ms + 100000), DM_REG_WATCH_NOTHING);
}

/* One watched session; the read is sent at 0, and returns version 1 at 50. */
static int begin(void **state)
{
    const struct dm_reg_session_id first = id(1);

    (void)state;
    dm_reg_watch_init(&watch, false);
    watched = dm_reg_watch_add(&watch, &first, at(0));
    assert_ptr_equal(dm_reg_watch_add(&watch, &first, at(0)), watched);
    send(DM_REG_WATCH_READ, 0);
    step(DM_REG_WATCH_EV_FOUND, 1, 50);
    return 0;
}

static int end(void **state)
{
    (void)state;
    dm_reg_watch_clear(&watch);
    assert_int_equal(watch.count, 0);
    return 0;
}

/* ---- S2 ---------------------------------------------------------------------------------- */

/* S2: a lease after the return of the first read, and not a moment before; the swap expects the version seen. */
static void test_session_may_be_killed_after_a_lease_with_one_version(void **state)
{
    (void)state;
    for (int64_t ms = 50 + THIRD_MS; ms < 50 + LEASE_MS; ms += THIRD_MS) {
        send(DM_REG_WATCH_READ, ms);
        step(DM_REG_WATCH_EV_SAME, 0, ms);
    }
    assert_int_equal(dm_reg_watch_due_ns(watched), at(50 + LEASE_MS));
    send(DM_REG_WATCH_READ, 50 + LEASE_MS);
    step(DM_REG_WATCH_EV_SAME, 0, 50 + LEASE_MS);
    send(DM_REG_WATCH_KILL, 50 + LEASE_MS);
    assert_int_equal(watched->version.bytes[0], 1);
    assert_false(watched->is_dead);
    assert_true(step(DM_REG_WATCH_EV_KILLED, 0, 60 + LEASE_MS));
    assert_true(watched->is_dead);
}

/* S2: the read was sent at 0, so a lease counted from there would be over at 900. */
static void test_lease_counts_from_the_return_of_the_read(void **state)
{
    (void)state;
    send(DM_REG_WATCH_READ, 50 + THIRD_MS);
    step(DM_REG_WATCH_EV_SAME, 0, LEASE_MS + 49);
    assert_int_equal(wants(LEASE_MS + 49), DM_REG_WATCH_NOTHING);
}

/* S2: a beat begins the lease again. */
static void test_lease_begins_again_with_each_version(void **state)
{
    (void)state;
    send(DM_REG_WATCH_READ, 600);
    step(DM_REG_WATCH_EV_FOUND, 2, 600);
    send(DM_REG_WATCH_READ, 50 + LEASE_MS);
    step(DM_REG_WATCH_EV_SAME, 0, 50 + LEASE_MS);
    assert_int_equal(wants(50 + LEASE_MS), DM_REG_WATCH_NOTHING);
    send(DM_REG_WATCH_READ, 600 + LEASE_MS);
    step(DM_REG_WATCH_EV_SAME, 0, 600 + LEASE_MS);
    send(DM_REG_WATCH_KILL, 600 + LEASE_MS);
}

/* S2: the store's clock says that the version is a lease old: no need to watch. */
static void test_session_may_be_killed_at_once_when_its_version_is_old(void **state)
{
    (void)state;
    send(DM_REG_WATCH_READ, 350);
    step_of(watched, DM_REG_WATCH_EV_SAME, 0, LEASE_MS - 20, 350);
    assert_int_equal(wants(350), DM_REG_WATCH_NOTHING);
    assert_int_equal(dm_reg_watch_due_ns(watched), at(370));
    send(DM_REG_WATCH_READ, 370);
    step_of(watched, DM_REG_WATCH_EV_SAME, 0, LEASE_MS, 370);
    send(DM_REG_WATCH_KILL, 370);
}

/* S2: a kill that fails, or has no answer, proves nothing: look again. */
static void test_session_is_read_again_when_the_kill_is_not_known_to_be_done(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        send(DM_REG_WATCH_READ, 10000 * (i + 1));
        step(DM_REG_WATCH_EV_SAME, 0, 10000 * (i + 1));
        send(DM_REG_WATCH_KILL, 10000 * (i + 1));
        assert_false(step(i ? DM_REG_WATCH_EV_UNKNOWN : DM_REG_WATCH_EV_CONFLICT, 0, 10000 * (i + 1)));
        assert_false(watched->is_dead);
        assert_int_equal(dm_reg_watch_due_ns(watched), at(10000 * (i + 1) + (i ? LEASE_MS / 20 : 0)));
    }
}

/* S2: dead is what the value says, and nothing is read any more. */
static void test_session_is_dead_when_its_value_says_so(void **state)
{
    const struct dm_reg_watch_event found = { DM_REG_WATCH_EV_FOUND, .is_dead = true, .age_ms = -1 };

    (void)state;
    assert_true(dm_reg_watch_step(&watch, watched, &found, at(400)));
    assert_false(dm_reg_watch_step(&watch, watched, &found, at(401))); /* no news */
    assert_int_equal(dm_reg_watch_due_ns(watched), DM_NEVER);
}

/* ---- S3 ---------------------------------------------------------------------------------- */

/* S3: an absent session is watched for a lease like any other version. */
static void test_absent_session_is_not_dead(void **state)
{
    (void)state;
    assert_false(step(DM_REG_WATCH_EV_ABSENT, 0, 400));
    assert_false(watched->is_dead);
    send(DM_REG_WATCH_READ, 400 + LEASE_MS - 1);
    step(DM_REG_WATCH_EV_SAME, 0, 400 + LEASE_MS - 1);
    assert_int_equal(wants(400 + LEASE_MS - 1), DM_REG_WATCH_NOTHING);
    send(DM_REG_WATCH_READ, 400 + LEASE_MS);
    step(DM_REG_WATCH_EV_ABSENT, 0, 400 + LEASE_MS);
    send(DM_REG_WATCH_KILL, 400 + LEASE_MS);
    assert_true(dm_reg_version_is_absent(&watched->version));
}

/* S3: where sessions expire by themselves, an absent one has not been renewed for three leases. */
static void test_absent_session_may_be_killed_at_once_where_sessions_expire(void **state)
{
    (void)state;
    watch.expires = true;
    step(DM_REG_WATCH_EV_SAME, 0, 300);
    assert_int_equal(wants(300), DM_REG_WATCH_NOTHING);
    step(DM_REG_WATCH_EV_ABSENT, 0, 400);
    send(DM_REG_WATCH_KILL, 400);
}

/* ---- the look of a try ------------------------------------------------------------------- */

/* A version that is younger than its lease belongs to a living session, so nothing need be read until it is as old. */
static void test_try_believes_in_a_young_session_without_a_read(void **state)
{
    (void)state;
    step_of(watched, DM_REG_WATCH_EV_SAME, 0, 100, 200);
    assert_true(dm_reg_watch_has_looked(watched, at(300), at(300)));
    assert_true(dm_reg_watch_has_looked(watched, at(999), at(999)));
    assert_false(dm_reg_watch_has_looked(watched, at(1000), at(1000)));
    send(DM_REG_WATCH_READ, 1000);
}

/* An old one is read at once, and the try waits until it is known to be dead, or to live. */
static void test_try_waits_until_an_old_session_is_judged(void **state)
{
    (void)state;
    assert_false(dm_reg_watch_has_looked(watched, at(60), at(60)));
    send(DM_REG_WATCH_READ, 60);
    assert_false(dm_reg_watch_has_looked(watched, at(60), at(70)));
    step_of(watched, DM_REG_WATCH_EV_SAME, 0, LEASE_MS, 80);
    assert_false(dm_reg_watch_has_looked(watched, at(60), at(80)));
    send(DM_REG_WATCH_KILL, 80);
    assert_false(dm_reg_watch_has_looked(watched, at(60), at(85)));
    step(DM_REG_WATCH_EV_CONFLICT, 0, 90);
    assert_true(dm_reg_watch_has_looked(watched, at(60), at(90)));
    assert_false(dm_reg_watch_has_looked(watched, at(91), at(91)));
    send(DM_REG_WATCH_READ, 91);
    step_of(watched, DM_REG_WATCH_EV_FOUND, 2, LEASE_MS, 92);
    send(DM_REG_WATCH_KILL, 92);
    step(DM_REG_WATCH_EV_KILLED, 0, 93);
    assert_false(dm_reg_watch_has_looked(watched, at(91), at(93))); /* it is dead: the try does its step again */
}

/* A read without an age, or without an answer, shows all that there is to know now. */
static void test_try_waits_for_one_answer_of_any_kind(void **state)
{
    (void)state;
    assert_false(dm_reg_watch_has_looked(watched, at(60), at(60)));
    send(DM_REG_WATCH_READ, 60);
    step(DM_REG_WATCH_EV_UNKNOWN, 0, 70);
    assert_true(dm_reg_watch_has_looked(watched, at(60), at(70)));
    assert_false(dm_reg_watch_has_looked(watched, at(71), at(71)));
    send(DM_REG_WATCH_READ, 71);
    step(DM_REG_WATCH_EV_ABSENT, 0, 72);
    assert_true(dm_reg_watch_has_looked(watched, at(71), at(72)));
}

/* ---- N9 ---------------------------------------------------------------------------------- */

#define CROWD 16

/* Sessions 10, 11 ... stand before the waiter; each watched one of them beats at this moment if it is alive. */
static void beat_all(unsigned alive_from, uint8_t version, int64_t ms)
{
    for (unsigned i = 0; i < CROWD; i++) {
        const struct dm_reg_session_id which = id(10 + i);
        struct dm_reg_watched *one = dm_reg_watch_find(&watch, &which);

        if (one)
            step_of(one, DM_REG_WATCH_EV_FOUND, i >= alive_from ? version : 1, -1, ms);
    }
}

static unsigned count_watched(void)
{
    unsigned count = 0;

    for (unsigned i = 0; i < CROWD; i++) {
        const struct dm_reg_session_id which = id(10 + i);

        count += dm_reg_watch_find(&watch, &which) != NULL;
    }
    return count;
}

static void look(struct dm_reg_looks *looks, int64_t ms)
{
    struct dm_reg_session_id before[CROWD];

    for (unsigned i = 0; i < CROWD; i++)
        before[i] = id(10 + i);
    assert_true(dm_reg_watch_look(&watch, looks, before, CROWD, at(ms)));
}

/* N9: in a healthy queue one session is watched, however long the queue is. */
static void test_waiter_watches_one_session_in_a_healthy_queue(void **state)
{
    struct dm_reg_looks looks = { 0 };

    (void)state;
    for (int i = 0; i < 20; i++) {
        look(&looks, i * THIRD_MS);
        beat_all(0, (uint8_t)(i + 1), i * THIRD_MS + 100);
    }
    assert_int_equal(count_watched(), 2); /* two at the second look, which came before the first beat was seen */
    assert_int_equal(looks.most, 1);
}

/* N9: among dead ones twice as many at each look, back to the first that lives. */
static void test_waiter_watches_twice_as_many_while_none_beats(void **state)
{
    struct dm_reg_looks looks = { 0 };

    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        look(&looks, i * THIRD_MS);
        assert_int_equal(count_watched(), i < 4 ? 1u << i : CROWD);
        beat_all(CROWD, 1, i * THIRD_MS + 100);
    }
}

/* N9: a known dead one stands in nobody's light. */
static void test_look_passes_over_the_dead(void **state)
{
    const struct dm_reg_watch_event found = { DM_REG_WATCH_EV_FOUND, .is_dead = true, .age_ms = -1 };
    const struct dm_reg_session_id last = id(10 + CROWD - 1), before_last = id(10 + CROWD - 2);
    struct dm_reg_looks looks = { 0 };

    (void)state;
    dm_reg_watch_step(&watch, dm_reg_watch_add(&watch, &last, at(0)), &found, at(0));
    look(&looks, 10);
    assert_non_null(dm_reg_watch_find(&watch, &before_last));
    assert_int_equal(count_watched(), 2);
}

/* ---- the table --------------------------------------------------------------------------- */

/* A session that nobody asks for is forgotten, unless a request about it is under way. */
static void test_session_is_forgotten_when_nobody_asks_for_it(void **state)
{
    const struct dm_reg_session_id first = id(1), second = id(2);

    (void)state;
    dm_reg_watch_add(&watch, &second, at(500));
    dm_reg_watch_send(watched, DM_REG_WATCH_READ);
    dm_reg_watch_forget(&watch, at(400));
    assert_int_equal(watch.count, 2);
    step(DM_REG_WATCH_EV_SAME, 0, 450);
    dm_reg_watch_forget(&watch, at(400));
    assert_null(dm_reg_watch_find(&watch, &first));
    assert_false(dm_reg_watch_is_dead(&watch, &first));
    assert_non_null(dm_reg_watch_find(&watch, &second));
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_session_may_be_killed_after_a_lease_with_one_version),
        TEST(test_lease_counts_from_the_return_of_the_read),
        TEST(test_lease_begins_again_with_each_version),
        TEST(test_session_may_be_killed_at_once_when_its_version_is_old),
        TEST(test_session_is_read_again_when_the_kill_is_not_known_to_be_done),
        TEST(test_session_is_dead_when_its_value_says_so),
        TEST(test_absent_session_is_not_dead),
        TEST(test_absent_session_may_be_killed_at_once_where_sessions_expire),
        TEST(test_try_believes_in_a_young_session_without_a_read),
        TEST(test_try_waits_until_an_old_session_is_judged),
        TEST(test_try_waits_for_one_answer_of_any_kind),
        TEST(test_waiter_watches_one_session_in_a_healthy_queue),
        TEST(test_waiter_watches_twice_as_many_while_none_beats),
        TEST(test_look_passes_over_the_dead),
        TEST(test_session_is_forgotten_when_nobody_asks_for_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* registers/mark: when data that may have been lost are believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/units.h"
#include "registers/mark.h"

#define BEGINNING_NS (INT64_C(1000000) * DM_NS_PER_S)
#define LEASE_MS 900

static struct dm_reg_mark_watch mark;

static int64_t at(int64_t ms)
{
    return BEGINNING_NS + ms * DM_NS_PER_MS;
}

static void step(enum dm_reg_mark_event_kind kind, uint8_t version, int64_t ms)
{
    dm_reg_mark_step(&mark, &(struct dm_reg_mark_event){ .kind = kind, .version = { .bytes = { version } } }, at(ms));
}

static void find(const char *identity, uint64_t quiet_ms, uint8_t version, int64_t ms)
{
    dm_reg_mark_step(&mark,
                     &(struct dm_reg_mark_event){ .kind = DM_REG_MARK_EV_FOUND,
                                                  .version = { .bytes = { version } },
                                                  .identity = identity,
                                                  .quiet_ms = quiet_ms },
                     at(ms));
}

static enum dm_reg_mark_want wants(int64_t ms)
{
    return dm_reg_mark_wants(&mark, at(ms));
}

static uint64_t send(enum dm_reg_mark_want want, int64_t ms)
{
    assert_int_equal(wants(ms), want);
    return dm_reg_mark_send(&mark, want, at(ms));
}

/* A connection to the data "mine", whose mark has not been read. */
static int begin(void **state)
{
    (void)state;
    memset(&mark, 0, sizeof mark);
    assert_int_equal(dm_reg_mark_due_ns(&mark), DM_NEVER);
    dm_reg_mark_begin(&mark, "mine");
    assert_false(dm_reg_mark_is_ready(&mark));
    return 0;
}

/* D2: no mark, or that of other data: ours begins with no quiet at all. */
static void test_mark_begins_at_nothing_for_data_that_have_none(void **state)
{
    for (int i = 0; i < 2; i++) {
        begin(state);
        send(DM_REG_MARK_READ, 0);
        if (i)
            find("other", 5000, 1, 10);
        else
            step(DM_REG_MARK_EV_ABSENT, 0, 10);
        assert_false(dm_reg_mark_is_ready(&mark));
        assert_int_equal(dm_reg_mark_quiet_ms(&mark), 0);
        assert_int_equal(send(DM_REG_MARK_SWAP, 5000), 0);
        step(DM_REG_MARK_EV_DONE, 2, 5010);
        assert_true(dm_reg_mark_is_ready(&mark));
        assert_int_equal(dm_reg_mark_quiet_ms(&mark), 0);
    }
}

/* D2: nobody waits when the mark of these data has been quiet for long. */
static void test_mark_of_these_data_is_believed(void **state)
{
    (void)state;
    send(DM_REG_MARK_READ, 0);
    find("mine", 5000, 1, 10);
    assert_true(dm_reg_mark_is_ready(&mark));
    assert_int_equal(dm_reg_mark_quiet_ms(&mark), 5000);
    dm_reg_mark_doubt(&mark, LEASE_MS);
    assert_int_equal(dm_reg_mark_due_ns(&mark), DM_NEVER);
}

/* D2: the time counts from the return of the first read that showed this version. */
static void test_mark_becomes_quiet_after_a_lease_with_one_version(void **state)
{
    (void)state;
    send(DM_REG_MARK_READ, 0);
    find("mine", 0, 1, 50);
    assert_int_equal(dm_reg_mark_due_ns(&mark), DM_NEVER); /* nobody is in doubt */
    dm_reg_mark_doubt(&mark, LEASE_MS);
    assert_int_equal(dm_reg_mark_due_ns(&mark), at(50 + LEASE_MS));
    assert_int_equal(send(DM_REG_MARK_SWAP, 50 + LEASE_MS), LEASE_MS);
    assert_int_equal(dm_reg_mark_quiet_ms(&mark), 0); /* not before it is written */
    step(DM_REG_MARK_EV_DONE, 2, 60 + LEASE_MS);
    assert_int_equal(dm_reg_mark_quiet_ms(&mark), LEASE_MS);
    dm_reg_mark_doubt(&mark, 2 * LEASE_MS);
    assert_int_equal(dm_reg_mark_due_ns(&mark), at(50 + 2 * LEASE_MS));
}

/* D2: with grace=off new data count as quiet for any lease, on every connection. */
static void test_mark_of_trusted_data_is_quiet_at_once(void **state)
{
    (void)state;
    mark.is_trusting = true;
    dm_reg_mark_begin(&mark, "mine");
    dm_reg_mark_doubt(&mark, LEASE_MS);
    send(DM_REG_MARK_READ, 0);
    find("other", 0, 1, 10);
    assert_int_equal(dm_reg_mark_quiet_ms(&mark), 0);
    send(DM_REG_MARK_SWAP, 10);
    step(DM_REG_MARK_EV_DONE, 2, 20);
    assert_true(dm_reg_mark_quiet_ms(&mark) > UINT32_MAX);
    assert_int_equal(dm_reg_mark_due_ns(&mark), DM_NEVER);
}

/* D2: the same where others have written the mark, who do not trust the data. */
static void test_mark_of_others_is_quiet_at_once_for_whoever_trusts(void **state)
{
    (void)state;
    mark.is_trusting = true;
    dm_reg_mark_begin(&mark, "mine");
    send(DM_REG_MARK_READ, 0);
    find("mine", LEASE_MS - 1, 1, 10);
    assert_int_equal(dm_reg_mark_due_ns(&mark), DM_NEVER);
    dm_reg_mark_doubt(&mark, LEASE_MS);
    send(DM_REG_MARK_SWAP, 10);
    step(DM_REG_MARK_EV_DONE, 2, 20);
    assert_true(dm_reg_mark_quiet_ms(&mark) > UINT32_MAX);
}

/* D2: the mark that others have made anew, after a loss of all data under the same identity, counts from now. */
static void test_mark_with_another_version_counts_from_now(void **state)
{
    (void)state;
    send(DM_REG_MARK_READ, 0);
    find("mine", 0, 1, 50);
    dm_reg_mark_has_read(&mark, dm_reg_mark_next_read(&mark));
    send(DM_REG_MARK_READ, 800);
    find("mine", 0, 9, 800);
    dm_reg_mark_doubt(&mark, LEASE_MS);
    assert_int_equal(dm_reg_mark_due_ns(&mark), at(800 + LEASE_MS));
}

/* D2: so does a mark that we make anew ourselves. */
static void test_mark_that_was_gone_counts_from_now(void **state)
{
    (void)state;
    send(DM_REG_MARK_READ, 0);
    find("mine", 5000, 1, 50);
    dm_reg_mark_has_read(&mark, dm_reg_mark_next_read(&mark));
    send(DM_REG_MARK_READ, 800);
    step(DM_REG_MARK_EV_ABSENT, 0, 810);
    assert_int_equal(dm_reg_mark_quiet_ms(&mark), 0);
    assert_int_equal(send(DM_REG_MARK_SWAP, 810), 0);
    step(DM_REG_MARK_EV_DONE, 2, 820);
    dm_reg_mark_doubt(&mark, LEASE_MS);
    assert_int_equal(dm_reg_mark_due_ns(&mark), at(820 + LEASE_MS));
}

/* D2: a read that was sent before does not count. */
static void test_doubt_needs_a_read_that_was_sent_afterwards(void **state)
{
    uint64_t reads;

    (void)state;
    send(DM_REG_MARK_READ, 0);
    reads = dm_reg_mark_next_read(&mark);
    find("mine", 5000, 1, 10);
    assert_false(dm_reg_mark_has_read(&mark, reads));
    send(DM_REG_MARK_READ, 10);
    step(DM_REG_MARK_EV_SAME, 0, 20);
    assert_true(dm_reg_mark_has_read(&mark, reads));
    assert_int_equal(wants(100000), DM_REG_MARK_NOTHING);
    assert_int_equal(dm_reg_mark_quiet_ms(&mark), 5000);
}

/* Somebody else was faster: what he wrote is read. */
static void test_conflict_is_read(void **state)
{
    (void)state;
    send(DM_REG_MARK_READ, 0);
    step(DM_REG_MARK_EV_ABSENT, 0, 10);
    send(DM_REG_MARK_SWAP, 10);
    step(DM_REG_MARK_EV_CONFLICT, 0, 20);
    assert_false(dm_reg_mark_is_ready(&mark));
    send(DM_REG_MARK_READ, 20);
    find("mine", 100, 3, 30);
    assert_int_equal(dm_reg_mark_quiet_ms(&mark), 100);
}

/* No answer says nothing, and the request is repeated after a pause. */
static void test_request_without_an_answer_is_repeated_later(void **state)
{
    (void)state;
    send(DM_REG_MARK_READ, 0);
    step(DM_REG_MARK_EV_UNKNOWN, 0, 10);
    assert_int_equal(wants(10), DM_REG_MARK_NOTHING);
    assert_int_equal(dm_reg_mark_due_ns(&mark), at(60));
    send(DM_REG_MARK_READ, 60);
    step(DM_REG_MARK_EV_ABSENT, 0, 70);
    send(DM_REG_MARK_SWAP, 70);
    step(DM_REG_MARK_EV_UNKNOWN, 0, 80);
    assert_int_equal(dm_reg_mark_quiet_ms(&mark), 0);
    send(DM_REG_MARK_READ, 130); /* it may have been executed */
}

/* A new connection knows nothing, but what somebody waits for is still wanted. */
static void test_new_connection_reads_the_mark(void **state)
{
    (void)state;
    send(DM_REG_MARK_READ, 0);
    find("mine", 5000, 1, 10);
    dm_reg_mark_doubt(&mark, 2 * LEASE_MS);
    dm_reg_mark_begin(&mark, "another");
    assert_false(dm_reg_mark_is_ready(&mark));
    assert_int_equal(mark.wanted_ms, 2 * LEASE_MS);
    send(DM_REG_MARK_READ, 20);
    find("mine", 5000, 1, 30);
    assert_int_equal(send(DM_REG_MARK_SWAP, 30), 0);
}

#define TEST(test) cmocka_unit_test_setup(test, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mark_begins_at_nothing_for_data_that_have_none),
        TEST(test_mark_of_these_data_is_believed),
        TEST(test_mark_becomes_quiet_after_a_lease_with_one_version),
        TEST(test_mark_of_trusted_data_is_quiet_at_once),
        TEST(test_mark_of_others_is_quiet_at_once_for_whoever_trusts),
        TEST(test_mark_with_another_version_counts_from_now),
        TEST(test_mark_that_was_gone_counts_from_now),
        TEST(test_doubt_needs_a_read_that_was_sent_afterwards),
        TEST(test_conflict_is_read),
        TEST(test_request_without_an_answer_is_repeated_later),
        TEST(test_new_connection_reads_the_mark),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

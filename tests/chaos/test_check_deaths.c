/* SPDX-License-Identifier: BSD-2-Clause */
/* The judge of histories knows which deaths must be reported, and which need not where leases are kept. */
#include <errno.h>

#include "written.h"

/* The thread of the track is killed after its last call. */
static void kill_track(unsigned track)
{
    history->tracks[track].killed_ns = ++now_ns;
    now_ns += 2 * LEASE;
}

/* ---- right histories --------------------------------------------------------------------- */

static void test_nothing_is_found_when_a_death_is_reported(void **state)
{
    (void)state;
    lock(0, NAME_TABLE, 10);
    kill_track(0);
    add(1, OP_LOCK, NAME_TABLE, EOWNERDEAD, 11, 1);
    add(1, OP_CONSISTENT, NAME_TABLE, 0, 11, 1);
    unlock(1, NAME_TABLE);
    lock(2, NAME_TABLE, 12);
    unlock(2, NAME_TABLE);
    assert_int_equal(judge(), 0);
    assert_int_equal(verdict.dead_owners, 1);
    assert_int_equal(verdict.reported_deaths, 1);
}

/* An unlock without a return may have released the mutex, and a wait likewise: no death. */
static void test_nothing_is_found_when_one_was_killed_in_a_call_that_gives_back(void **state)
{
    static const enum op_kind calls[] = { OP_UNLOCK, OP_WAIT, OP_TIMEDWAIT };

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        lock(i, NAME_TABLE, 10 + 2 * i);
        add(i, calls[i], NAME_TABLE, 0, 0, 0)->ended_ns = 0;
        kill_track(i);
    }
    assert_int_equal(judge(), 0);
}

/* A lost hold was a death, which another holder learned of before the kill. */
static void test_nothing_is_found_when_the_loss_was_reported_before_the_kill(void **state)
{
    (void)state;
    lock(0, NAME_TABLE, 10);
    now_ns += 2 * LEASE;
    add(1, OP_LOCK, NAME_TABLE, EOWNERDEAD, 11, 1);
    add(1, OP_CONSISTENT, NAME_TABLE, 0, 11, 1);
    kill_track(0);
    unlock(1, NAME_TABLE);
    lock(2, NAME_TABLE, 12);
    unlock(2, NAME_TABLE);
    assert_int_equal(judge(), 0);
}

/* A mutex that is not robust reports no death. */
static void test_nothing_is_found_when_the_mutex_is_not_robust(void **state)
{
    (void)state;
    lock(0, NAME_NORMAL, 10);
    kill_track(0);
    lock(1, NAME_NORMAL, 11);
    unlock(1, NAME_NORMAL);
    assert_int_equal(judge(), 0);
}

/*
 * Rule 8 of kept leases: a holder by an object that is not robust may die without a word to a robust object of the
 * same name.
 */
static void test_nothing_is_found_when_one_object_of_the_name_is_not_robust(void **state)
{
    (void)state;
    history->tracks[0].not_robust = 1u << NAME_APART;
    lock(0, NAME_APART, 10);
    kill_track(0);
    lock(1, NAME_APART, 11);
    unlock(1, NAME_APART);
    assert_int_equal(judge(), 0);
}

/* A server that has lost its data knows of no death. */
static void test_nothing_is_found_when_the_server_may_forget(void **state)
{
    (void)state;
    history->may_forget = true;
    lock(0, NAME_TABLE, 10);
    kill_track(0);
    lock(1, NAME_TABLE, 11);
    unlock(1, NAME_TABLE);
    assert_int_equal(judge(), 0);
}

/* A hold that was lost before its token was known has no place in the order of tokens. */
static void test_nothing_is_found_when_a_token_may_be_missing(void **state)
{
    (void)state;
    history->may_be_untold = true;
    lock(0, NAME_TABLE, 10);
    kill_track(0);
    add(1, OP_LOCK, NAME_TABLE, EOWNERDEAD, 0, 1)->certain_ns = now_ns + 2 * MS;
    now_ns += 4 * MS;
    add(1, OP_UNLOCK, NAME_TABLE, EPERM, 0, 0);
    lock(2, NAME_TABLE, 12);
    unlock(2, NAME_TABLE);
    assert_int_equal(judge(), 0);
}

/* Holds by one grant of the server have the grant's token, and numbers that rise. */
static void test_nothing_is_found_when_threads_hand_a_hold_on(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        lock(i, NAME_NORMAL, 4096 + i);
        unlock(i, NAME_NORMAL);
    }
    assert_int_equal(judge(), 0);
    assert_int_equal(verdict.local_holds, 2);
}

/* ---- corrupted histories ----------------------------------------------------------------- */

static void test_a_death_is_found_that_nobody_learned_of(void **state)
{
    (void)state;
    lock(0, NAME_TABLE, 10);
    kill_track(0);
    lock(1, NAME_TABLE, 11);
    unlock(1, NAME_TABLE);
    assert_found(FOUND_UNTOLD);
}

/* The next holder by the token counts, not the next call that returned. */
static void test_a_death_is_found_that_the_next_holder_did_not_learn_of(void **state)
{
    (void)state;
    lock(0, NAME_TABLE, 10);
    kill_track(0);
    lock(1, NAME_TABLE, 11);
    unlock(1, NAME_TABLE);
    add(2, OP_LOCK, NAME_TABLE, EOWNERDEAD, 12, 1);
    unlock(2, NAME_TABLE);
    assert_found(FOUND_UNTOLD);
}

/* The death of a thread inside is reported even if the hold was handed on within the process before. */
static void test_a_death_is_found_of_a_hold_that_was_handed_on(void **state)
{
    (void)state;
    lock(0, NAME_TABLE, 4096);
    unlock(0, NAME_TABLE);
    lock(1, NAME_TABLE, 4097);
    kill_track(1);
    lock(2, NAME_TABLE, 8192);
    unlock(2, NAME_TABLE);
    assert_found(FOUND_UNTOLD);
}

/* An object that is not robust must report no death, although the table calls the name robust. */
static void test_a_death_is_found_that_an_object_reports_which_is_not_robust(void **state)
{
    (void)state;
    history->tracks[0].not_robust = 1u << NAME_APART;
    add(0, OP_LOCK, NAME_APART, EOWNERDEAD, 10, 1);
    assert_found(FOUND_RESULT);
}

/* Two threads of a process with holds by one grant, both inside. */
static void test_two_owners_are_found_that_one_grant_let_in(void **state)
{
    (void)state;
    lock(0, NAME_NORMAL, 4096);
    lock(1, NAME_NORMAL, 4097);
    unlock(0, NAME_NORMAL);
    unlock(1, NAME_NORMAL);
    assert_found(FOUND_OVERLAP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(test_nothing_is_found_when_a_death_is_reported),
        test(test_nothing_is_found_when_one_was_killed_in_a_call_that_gives_back),
        test(test_nothing_is_found_when_the_loss_was_reported_before_the_kill),
        test(test_nothing_is_found_when_the_mutex_is_not_robust),
        test(test_nothing_is_found_when_one_object_of_the_name_is_not_robust),
        test(test_nothing_is_found_when_the_server_may_forget),
        test(test_nothing_is_found_when_a_token_may_be_missing),
        test(test_nothing_is_found_when_threads_hand_a_hold_on),
        test(test_a_death_is_found_that_nobody_learned_of),
        test(test_a_death_is_found_that_the_next_holder_did_not_learn_of),
        test(test_a_death_is_found_of_a_hold_that_was_handed_on),
        test(test_a_death_is_found_that_an_object_reports_which_is_not_robust),
        test(test_two_owners_are_found_that_one_grant_let_in),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The judge finds nothing in a right history, and finds each kind of error in a corrupted history. */
#include <errno.h>
#include <string.h>

#include "../lib/testlib.h"
#include "written.h"

/* Writes allowed calls of two threads; times in the order of the calls. */
static void write_right_history(void)
{
    lock(0, NAME_NORMAL, 10);
    add(1, OP_TRYLOCK, NAME_NORMAL, EBUSY, 0, 0);
    add(1, OP_TIMEDLOCK, NAME_NORMAL, ETIMEDOUT, 0, 0)->left_ns = -1;
    add(0, OP_TRYLOCK, NAME_NORMAL, EBUSY, 10, 1);
    add(0, OP_TOUCH, NAME_NORMAL, 0, 10, 1);
    unlock(0, NAME_NORMAL);
    lock(1, NAME_NORMAL, 11);
    unlock(1, NAME_NORMAL);

    lock(0, NAME_RECURSIVE, 10);
    add(0, OP_LOCK, NAME_RECURSIVE, 0, 10, 2);
    add(0, OP_UNLOCK, NAME_RECURSIVE, 0, 10, 1);
    unlock(0, NAME_RECURSIVE);
    add(0, OP_UNLOCK, NAME_RECURSIVE, EPERM, 0, 0);

    lock(0, NAME_CHECKED, 20);
    add(0, OP_LOCK, NAME_CHECKED, EDEADLK, 20, 1);
    unlock(0, NAME_CHECKED);

    add(1, OP_LOCK, NAME_TABLE, EOWNERDEAD, 30, 1);
    add(1, OP_CONSISTENT, NAME_TABLE, 0, 30, 1);
    add(1, OP_TIMEDWAIT, NAME_TABLE, ETIMEDOUT, 31, 1);
    add(1, OP_SIGNAL, NAME_TABLE, 0, 31, 1);
    unlock(1, NAME_TABLE);
}

/* Writes a hold with an ended lease, another thread's hold, and the results of the first thread's calls then. */
static void write_loss(void)
{
    lock(0, NAME_NORMAL, 40);
    now_ns += 2 * LEASE;
    lock(1, NAME_NORMAL, 41);
    add(0, OP_TOUCH, NAME_NORMAL, EACCES, 40, 0);
    add(0, OP_UNLOCK, NAME_NORMAL, EPERM, 0, 0);
    unlock(1, NAME_NORMAL);
}

/* ---- right histories --------------------------------------------------------------------- */

static void test_nothing_is_found_in_a_right_history(void **state)
{
    (void)state;
    write_right_history();
    assert_int_equal(judge(), 0);
    assert_int_equal(verdict.holds, 6);
    assert_int_equal(verdict.certain_holds, 6);
    assert_int_equal(verdict.reported_deaths, 1);
    assert_int_equal(verdict.waits, 1);
}

static void test_nothing_is_found_when_a_hold_was_lost_after_its_time(void **state)
{
    (void)state;
    write_loss();
    assert_int_equal(judge(), 0);
    assert_int_equal(verdict.losses, 1);
    assert_int_equal(verdict.stale, 1);
}

/* A thread killed in the middle of a call holds nothing from the kill on: the next hold is no overlap. */
static void test_nothing_is_found_when_an_owner_was_killed(void **state)
{
    (void)state;
    lock(0, NAME_NORMAL, 10);
    add(0, OP_TOUCH, NAME_NORMAL, 0, 10, 1)->ended_ns = 0;
    history->tracks[0].killed_ns = now_ns;
    lock(1, NAME_NORMAL, 11);
    unlock(1, NAME_NORMAL);
    assert_int_equal(judge(), 0);
    assert_int_equal(verdict.dead_owners, 1);
}

/* An unlock without a return may have released the mutex: another thread's hold before the kill is no overlap. */
static void test_nothing_is_found_when_one_was_killed_while_it_gave_back(void **state)
{
    struct op *other;

    (void)state;
    lock(0, NAME_NORMAL, 10);
    unlock(0, NAME_NORMAL)->ended_ns = 0;
    other = lock(1, NAME_NORMAL, 11);
    history->tracks[0].killed_ns = other->ended_ns + MS;
    unlock(1, NAME_NORMAL);
    assert_int_equal(judge(), 0);
}

/* A thread locks a mutex again after a loss: the hold is fresh, and no finding. */
static void test_nothing_is_found_when_a_lost_mutex_is_locked_again(void **state)
{
    (void)state;
    lock(0, NAME_NORMAL, 10);
    now_ns += 2 * LEASE;
    lock(0, NAME_NORMAL, 11);
    unlock(0, NAME_NORMAL);
    add(0, OP_UNLOCK, NAME_NORMAL, EPERM, 0, 0);
    assert_int_equal(judge(), 0);
}

/* After the loss of a recursive mutex every lock says EPERM until an unlock says EPERM; the next lock is fresh. */
static void test_nothing_is_found_when_a_lost_recursive_mutex_refuses_until_unlock(void **state)
{
    (void)state;
    lose(0, NAME_RECURSIVE);
    add(0, OP_LOCK, NAME_RECURSIVE, EPERM, 10, 0);
    add(0, OP_TRYLOCK, NAME_RECURSIVE, EPERM, 10, 0);
    add(0, OP_TIMEDLOCK, NAME_RECURSIVE, EPERM, 10, 0);
    add(0, OP_UNLOCK, NAME_RECURSIVE, EPERM, 0, 0);
    lock(0, NAME_RECURSIVE, 11);
    unlock(0, NAME_RECURSIVE);
    assert_int_equal(judge(), 0);
    assert_int_equal(verdict.losses, 1);
}

/* A wait, perhaps without an answer, gives a hold up by EPERM: the thread owns nothing from the call on. */
static void test_nothing_is_found_when_a_wait_gives_a_hold_up(void **state)
{
    struct op *wait;

    (void)state;
    lock(0, NAME_TABLE, 10);
    wait = add(0, OP_WAIT, NAME_TABLE, EPERM, 0, 0);
    lock(1, NAME_TABLE, 11);
    wait->ended_ns = now_ns + MS;
    assert_int_equal(judge(), 0);
    assert_int_equal(verdict.given_up, 1);
}

/* ---- corrupted histories ----------------------------------------------------------------- */

static void test_two_owners_are_found(void **state)
{
    (void)state;
    lock(0, NAME_NORMAL, 10);
    lock(1, NAME_NORMAL, 11);
    unlock(1, NAME_NORMAL);
    unlock(0, NAME_NORMAL);
    assert_found(FOUND_OVERLAP);
}

/* Two holds overlap if the first is certain for one nanosecond of the second; the last nanosecond counts. */
static void test_two_owners_are_found_when_a_token_may_be_missing(void **state)
{
    (void)state;
    history->may_be_untold = true;
    lock(0, NAME_NORMAL, 10);
    lock(1, NAME_NORMAL, 0);
    unlock(1, NAME_NORMAL);
    unlock(0, NAME_NORMAL);
    assert_found(FOUND_OVERLAP);
}

static void test_a_token_is_found_that_nobody_can_know(void **state)
{
    (void)state;
    lock(0, NAME_NORMAL, 10);
    unlock(0, NAME_NORMAL);
    lock(1, NAME_NORMAL, 0);
    unlock(1, NAME_NORMAL);
    assert_found(FOUND_TOKEN);
}

static void test_two_owners_are_found_when_the_first_is_certain_for_a_moment_more(void **state)
{
    struct op *first, *second;

    (void)state;
    first = lock(0, NAME_NORMAL, 10);
    now_ns += LEASE;
    second = lock(1, NAME_NORMAL, 11);
    unlock(1, NAME_NORMAL);
    first->certain_ns = second->ended_ns;
    assert_int_equal(judge(), 0);
    first->certain_ns = second->ended_ns + 1;
    assert_found(FOUND_OVERLAP);
}

/*
 * Two holds overlap if a later call of the first owner has reported a later end of certainty; the later promise counts.
 */
static void test_two_owners_are_found_when_the_first_was_confirmed(void **state)
{
    struct op *first;

    (void)state;
    first = lock(0, NAME_NORMAL, 10);
    add(0, OP_TOUCH, NAME_NORMAL, 0, 10, 1);
    first->certain_ns = first->ended_ns + 1;
    lock(1, NAME_NORMAL, 11);
    unlock(1, NAME_NORMAL);
    unlock(0, NAME_NORMAL);
    assert_found(FOUND_OVERLAP);
}

static void test_two_owners_are_found_when_one_comes_after_a_wait(void **state)
{
    (void)state;
    lock(0, NAME_TABLE, 10);
    add(0, OP_WAIT, NAME_TABLE, 0, 11, 1);
    lock(1, NAME_TABLE, 12);
    unlock(1, NAME_TABLE);
    unlock(0, NAME_TABLE);
    assert_found(FOUND_OVERLAP);
}

/* A long certain hold is not forgotten after a short one: both later holds overlap with it. */
static void test_two_owners_are_found_when_a_third_was_there_in_between(void **state)
{
    struct op *killed;

    (void)state;
    lock(0, NAME_NORMAL, 10);
    killed = lock(1, NAME_NORMAL, 11);
    history->tracks[1].killed_ns = killed->ended_ns + 1;
    lock(2, NAME_NORMAL, 12);
    unlock(2, NAME_NORMAL);
    unlock(0, NAME_NORMAL);
    assert_found(FOUND_OVERLAP);
    assert_int_equal(verdict.found[FOUND_OVERLAP], 2);
}

static void test_a_token_is_found_that_is_the_same_again(void **state)
{
    (void)state;
    lock(0, NAME_NORMAL, 10);
    unlock(0, NAME_NORMAL);
    lock(1, NAME_NORMAL, 10);
    unlock(1, NAME_NORMAL);
    assert_found(FOUND_TOKEN);
}

static void test_a_token_is_found_that_is_lower(void **state)
{
    (void)state;
    lock(0, NAME_NORMAL, 10);
    unlock(0, NAME_NORMAL);
    lock(1, NAME_NORMAL, 9);
    unlock(1, NAME_NORMAL);
    assert_found(FOUND_TOKEN);
}

/* A lower token is found also if the hold was never certain. */
static void test_a_lower_token_is_found_of_a_hold_that_came_too_late(void **state)
{
    (void)state;
    lock(0, NAME_NORMAL, 10);
    unlock(0, NAME_NORMAL);
    lock(1, NAME_NORMAL, 9)->certain_ns = 0;
    assert_found(FOUND_TOKEN);
}

/* A hold that is lost as soon as the lock returns is found; one that was asked about a lease later is not. */
static void test_a_hold_is_found_that_is_lost_at_once(void **state)
{
    struct op *op = add(0, OP_LOCK, NAME_NORMAL, 0, 4096, 0);

    (void)state;
    assert_found(FOUND_DEPTH);
    op->told_ns += LEASE;
    assert_int_equal(judge(), 0);
}

static void test_a_token_is_found_that_is_lower_than_in_the_history_before(void **state)
{
    (void)state;
    lock(0, NAME_NORMAL, 10);
    unlock(0, NAME_NORMAL);
    memset(&verdict, 0, sizeof verdict);
    verdict.highest[NAME_NORMAL] = 10;
    check_history(history, &verdict);
    assert_int_equal(verdict.found[FOUND_TOKEN], 1);
}

static void test_a_token_is_found_that_did_not_rise_by_a_wait(void **state)
{
    (void)state;
    lock(0, NAME_TABLE, 10);
    add(0, OP_WAIT, NAME_TABLE, 0, 10, 1);
    unlock(0, NAME_TABLE);
    judge();
    assert_true(verdict.found[FOUND_TOKEN] > 0);
}

static void test_a_wrong_depth_is_found(void **state)
{
    (void)state;
    lock(0, NAME_RECURSIVE, 10);
    add(0, OP_LOCK, NAME_RECURSIVE, 0, 10, 1);
    assert_found(FOUND_DEPTH);
}

static void test_a_depth_is_found_that_an_unlock_did_not_lower(void **state)
{
    (void)state;
    lock(0, NAME_RECURSIVE, 10);
    add(0, OP_UNLOCK, NAME_RECURSIVE, 0, 10, 1);
    assert_found(FOUND_DEPTH);
}

static void test_a_relock_is_found_that_has_another_token(void **state)
{
    (void)state;
    lock(0, NAME_RECURSIVE, 10);
    add(0, OP_LOCK, NAME_RECURSIVE, 0, 11, 1);
    assert_found(FOUND_RELOCK);
}

/* An inner lock of a recursive mutex must not begin a new hold, although the hold was lost. */
static void test_a_relock_is_found_of_a_lost_recursive_mutex(void **state)
{
    (void)state;
    lose(0, NAME_RECURSIVE);
    lock(0, NAME_RECURSIVE, 11);
    assert_found(FOUND_RELOCK);
}

/* A lost hold of a recursive mutex must not come back after a lock has said EPERM. */
static void test_a_relock_is_found_when_the_lock_before_had_reported_the_loss(void **state)
{
    (void)state;
    lose(0, NAME_RECURSIVE);
    add(0, OP_LOCK, NAME_RECURSIVE, EPERM, 10, 0);
    lock(0, NAME_RECURSIVE, 10)->certain_ns = 0;
    judge();
    assert_true(verdict.found[FOUND_RELOCK] > 0);
}

/* A thread may lock a mutex that is not recursive again only after a loss. */
static void test_a_relock_is_found_that_should_not_succeed(void **state)
{
    (void)state;
    lock(0, NAME_NORMAL, 10);
    add(0, OP_TRYLOCK, NAME_NORMAL, 0, 11, 1);
    assert_found(FOUND_RELOCK);
}

static void test_an_unlock_is_found_of_who_owned_nothing(void **state)
{
    (void)state;
    lock(0, NAME_NORMAL, 10);
    unlock(1, NAME_NORMAL);
    assert_found(FOUND_NOT_OWNER);
}

/* An unlock must say EPERM if a lock before has said EPERM. */
static void test_an_unlock_is_found_of_a_hold_whose_loss_was_reported(void **state)
{
    (void)state;
    lose(0, NAME_RECURSIVE);
    add(0, OP_LOCK, NAME_RECURSIVE, EPERM, 10, 0);
    unlock(0, NAME_RECURSIVE);
    assert_found(FOUND_NOT_OWNER);
}

static void test_a_repair_is_found_when_nobody_died(void **state)
{
    (void)state;
    lock(0, NAME_TABLE, 10);
    add(0, OP_CONSISTENT, NAME_TABLE, 0, 10, 1);
    assert_found(FOUND_NOT_OWNER);
}

static void test_a_loss_is_found_that_came_within_the_promised_time(void **state)
{
    (void)state;
    lock(0, NAME_CHECKED, 10);
    add(0, OP_UNLOCK, NAME_CHECKED, EPERM, 0, 0);
    assert_found(FOUND_LOST);
}

/* A lock of a recursive mutex must not say EPERM while the hold is certain, as an unlock must not. */
static void test_a_loss_is_found_that_a_lock_reported_within_the_promised_time(void **state)
{
    (void)state;
    lock(0, NAME_RECURSIVE, 10);
    add(0, OP_LOCK, NAME_RECURSIVE, EPERM, 10, 0);
    assert_found(FOUND_LOST);
}

static void test_a_stale_token_is_found_of_who_is_certain(void **state)
{
    (void)state;
    lock(0, NAME_NORMAL, 10);
    add(0, OP_TOUCH, NAME_NORMAL, EACCES, 10, 1);
    assert_found(FOUND_STALE);
}

/* A result is found that the call may not return. */
static void test_wrong_results_are_found(void **state)
{
    static const struct {
        enum op_kind kind;
        enum name name;
        int result;
    } wrong[] = {
        { OP_LOCK, NAME_NORMAL, EBUSY },          { OP_LOCK, NAME_NORMAL, ETIMEDOUT },
        { OP_LOCK, NAME_NORMAL, ENOLCK },         { OP_LOCK, NAME_CHECKED, EDEADLK },
        { OP_LOCK, NAME_TABLE, ENOTRECOVERABLE }, { OP_TRYLOCK, NAME_NORMAL, EINVAL },
        { OP_TIMEDLOCK, NAME_NORMAL, EBUSY },     { OP_UNLOCK, NAME_NORMAL, ENOLCK },
        { OP_CONSISTENT, NAME_TABLE, EPERM },     { OP_WAIT, NAME_TABLE, ETIMEDOUT },
        { OP_WAIT, NAME_TABLE, ENOTRECOVERABLE }, { OP_SIGNAL, NAME_TABLE, EPERM },
        { OP_LOCK, NAME_RECURSIVE, EPERM },       { OP_TRYLOCK, NAME_RECURSIVE, EPERM },
        { OP_TIMEDLOCK, NAME_RECURSIVE, EPERM },  { OP_LOCK, NAME_NORMAL, EPERM },
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        begin_test(state);
        add(0, wrong[i].kind, wrong[i].name, wrong[i].result, 0, 0);
        assert_found(FOUND_RESULT);
        if (i + 1 < sizeof wrong / sizeof wrong[0])
            end_test(state);
    }
}

/* Only a lock of a recursive mutex may say EPERM. */
static void test_a_refusal_is_found_of_a_lost_mutex_that_is_not_recursive(void **state)
{
    (void)state;
    lose(0, NAME_CHECKED);
    add(0, OP_LOCK, NAME_CHECKED, EPERM, 10, 0);
    assert_found(FOUND_RESULT);
}

/* A lock may say EPERM to the thread that lost the hold, not to another thread. */
static void test_a_refusal_is_found_of_a_thread_that_lost_nothing(void **state)
{
    (void)state;
    lose(0, NAME_RECURSIVE);
    add(1, OP_LOCK, NAME_RECURSIVE, EPERM, 0, 0);
    assert_found(FOUND_RESULT);
}

/* A lock must not say EPERM after an unlock has said EPERM, because the loss ends there. */
static void test_a_refusal_is_found_after_the_unlock_of_a_lost_hold(void **state)
{
    (void)state;
    lose(0, NAME_RECURSIVE);
    add(0, OP_UNLOCK, NAME_RECURSIVE, EPERM, 0, 0);
    add(0, OP_LOCK, NAME_RECURSIVE, EPERM, 0, 0);
    assert_found(FOUND_RESULT);
}

/* A thread with a recursive mutex must not wait for the same mutex, lost or not: a timeout is wrong. */
static void test_a_timeout_is_found_of_a_recursive_mutex_that_is_not_unlocked(void **state)
{
    (void)state;
    lose(0, NAME_RECURSIVE);
    add(0, OP_TIMEDLOCK, NAME_RECURSIVE, ETIMEDOUT, 10, 0);
    assert_found(FOUND_RESULT);
}

/* A loss clears all depths: depth 1 together with EPERM is wrong. */
static void test_a_depth_is_found_of_a_lost_recursive_mutex(void **state)
{
    (void)state;
    lose(0, NAME_RECURSIVE);
    add(0, OP_LOCK, NAME_RECURSIVE, EPERM, 10, 1);
    assert_found(FOUND_DEPTH);
}

static void test_a_death_is_found_that_a_mutex_reports_which_is_not_robust(void **state)
{
    (void)state;
    add(0, OP_LOCK, NAME_NORMAL, EOWNERDEAD, 10, 1);
    assert_found(FOUND_RESULT);
}

static void test_a_timeout_is_found_that_came_early(void **state)
{
    (void)state;
    add(0, OP_TIMEDLOCK, NAME_NORMAL, ETIMEDOUT, 0, 0)->left_ns = 1;
    assert_found(FOUND_EARLY);
}

/* A call that does not return, of a living thread, is a lost wake-up. */
static void test_a_wait_is_found_that_does_not_return(void **state)
{
    (void)state;
    lock(0, NAME_TABLE, 10);
    add(0, OP_WAIT, NAME_TABLE, 0, 0, 0)->ended_ns = 0;
    assert_found(FOUND_UNFINISHED);
}

static void test_a_call_is_found_that_began_before_another_had_ended(void **state)
{
    (void)state;
    add(0, OP_LOCK, NAME_NORMAL, 0, 10, 1)->ended_ns = 0;
    lock(0, NAME_NORMAL, 11);
    history->tracks[0].killed_ns = now_ns;
    assert_found(FOUND_UNFINISHED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(test_nothing_is_found_in_a_right_history),
        test(test_nothing_is_found_when_a_hold_was_lost_after_its_time),
        test(test_nothing_is_found_when_an_owner_was_killed),
        test(test_nothing_is_found_when_one_was_killed_while_it_gave_back),
        test(test_nothing_is_found_when_a_lost_mutex_is_locked_again),
        test(test_nothing_is_found_when_a_lost_recursive_mutex_refuses_until_unlock),
        test(test_nothing_is_found_when_a_wait_gives_a_hold_up),
        test(test_two_owners_are_found),
        test(test_two_owners_are_found_when_a_token_may_be_missing),
        test(test_a_token_is_found_that_nobody_can_know),
        test(test_two_owners_are_found_when_the_first_is_certain_for_a_moment_more),
        test(test_two_owners_are_found_when_the_first_was_confirmed),
        test(test_two_owners_are_found_when_one_comes_after_a_wait),
        test(test_two_owners_are_found_when_a_third_was_there_in_between),
        test(test_a_token_is_found_that_is_the_same_again),
        test(test_a_hold_is_found_that_is_lost_at_once),
        test(test_a_token_is_found_that_is_lower),
        test(test_a_lower_token_is_found_of_a_hold_that_came_too_late),
        test(test_a_token_is_found_that_is_lower_than_in_the_history_before),
        test(test_a_token_is_found_that_did_not_rise_by_a_wait),
        test(test_a_wrong_depth_is_found),
        test(test_a_depth_is_found_that_an_unlock_did_not_lower),
        test(test_a_relock_is_found_that_has_another_token),
        test(test_a_relock_is_found_of_a_lost_recursive_mutex),
        test(test_a_relock_is_found_when_the_lock_before_had_reported_the_loss),
        test(test_a_relock_is_found_that_should_not_succeed),
        test(test_an_unlock_is_found_of_who_owned_nothing),
        test(test_an_unlock_is_found_of_a_hold_whose_loss_was_reported),
        test(test_a_repair_is_found_when_nobody_died),
        test(test_a_loss_is_found_that_came_within_the_promised_time),
        test(test_a_loss_is_found_that_a_lock_reported_within_the_promised_time),
        test(test_a_stale_token_is_found_of_who_is_certain),
        test(test_wrong_results_are_found),
        test(test_a_refusal_is_found_of_a_lost_mutex_that_is_not_recursive),
        test(test_a_refusal_is_found_of_a_thread_that_lost_nothing),
        test(test_a_refusal_is_found_after_the_unlock_of_a_lost_hold),
        test(test_a_timeout_is_found_of_a_recursive_mutex_that_is_not_unlocked),
        test(test_a_depth_is_found_of_a_lost_recursive_mutex),
        test(test_a_death_is_found_that_a_mutex_reports_which_is_not_robust),
        test(test_a_timeout_is_found_that_came_early),
        test(test_a_wait_is_found_that_does_not_return),
        test(test_a_call_is_found_that_began_before_another_had_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The store on registers with real threads and the real clock, on the store in memory.  A process here is a store with
 * a loop thread of its own.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/testlib.h"
#include "base/self.h"
#include "base/units.h"
#include "process.h"

/* ---- tests -------------------------------------------------------------------------------- */

/* The first lock of a store waits until the mark has been quiet for a lease; then tokens rise. */
static void test_lock_goes_from_process_to_process(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);
    struct dm_answer first = process_acquire(one, process_next_attempt(one)), second;

    (void)state;
    assert_int_equal(first.verdict, DM_SAYS_OWNED);
    assert_int_equal(process_try(other, process_next_attempt(other)).verdict, DM_SAYS_BUSY);
    assert_int_equal(process_release(one, 1), DM_SAYS_DONE);
    assert_int_equal(process_release(one, 1), DM_SAYS_NOT_OWNER);
    second = process_acquire(other, process_next_attempt(other));
    assert_int_equal(second.verdict, DM_SAYS_OWNED);
    assert_true(second.token > first.token);
    assert_false(second.is_owner_dead);
}

/* Without a loop thread: threads read for each other. */
static void test_threads_need_no_loop_thread_for_answers(void **state)
{
    struct process *one = process_start(0, false);

    (void)state;
    assert_int_equal(process_acquire(one, process_next_attempt(one)).verdict, DM_SAYS_OWNED);
    assert_int_equal(process_release(one, 1), DM_SAYS_DONE);
}

#define ROUNDS 60
#define CROWD 3

static int inside, entered;
static uint64_t last_token;

static void *crowd(void *user)
{
    struct process *process = user;

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t attempt = process_next_attempt(process);
        struct dm_answer answer = process_acquire(process, attempt);

        if (answer.verdict != DM_SAYS_OWNED || __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) != 1 ||
            answer.token <= last_token)
            return (void *)"not alone inside";
        last_token = answer.token;
        entered++;
        __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
        if (process_release(process, attempt) != DM_SAYS_DONE)
            return (void *)"not released";
    }
    return NULL;
}

/* Threads of four processes: one inside at a time, tokens rise, and all come home. */
static void test_threads_of_processes_exclude_each_other(void **state)
{
    pthread_t threads[4][CROWD];
    void *fault;

    (void)state;
    inside = entered = 0;
    last_token = 0;
    for (int i = 0; i < 4; i++) {
        struct process *process = process_start(i, true);

        for (int j = 0; j < CROWD; j++)
            assert_int_equal(pthread_create(&threads[i][j], NULL, crowd, process), 0);
    }
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < CROWD; j++) {
            pthread_join(threads[i][j], &fault);
            assert_null(fault);
        }
    }
    assert_int_equal(entered, 4 * CROWD * ROUNDS);
}

/* A renewal costs no request of its own, and proves certainty from a moment after it was asked for. */
static void test_renewal_is_answered_by_the_next_beat(void **state)
{
    struct process *one = process_start(0, true);
    struct dm_question question;
    struct dm_answer answer;
    uint64_t attempt = process_next_attempt(one), token = process_acquire(one, attempt).token;

    (void)state;
    for (int i = 0; i < 5; i++) {
        question = process_question(one, DM_OP_RENEW, attempt);
        question.renew.token = token;
        answer = process_ask(one, &question);
        assert_int_equal(answer.verdict, DM_SAYS_OWNED);
        assert_true(answer.from_ns >= question.request.sent_ns);
        assert_true(answer.token == token);
    }
    process_release(one, attempt);
    answer = process_ask(one, &question);
    assert_int_equal(answer.verdict, DM_SAYS_UNKNOWN);
}

/* A killed process gives nothing back: a waiter watches its session for a lease, and is told of the death. */
static void test_waiter_takes_over_from_a_killed_process(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);
    struct dm_answer first = process_acquire(one, process_next_attempt(one)), second;

    (void)state;
    assert_int_equal(first.verdict, DM_SAYS_OWNED);
    process_kill(one);
    second = process_acquire(other, process_next_attempt(other));
    assert_int_equal(second.verdict, DM_SAYS_OWNED);
    assert_true(second.is_owner_dead);
    assert_true(second.token > first.token);
}

/* The store knows how old the holder's last beat is, so the first try takes the lock, and says that its owner died. */
static void test_first_try_takes_the_lock_of_a_dead_holder(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);
    struct dm_answer first = process_acquire(one, process_next_attempt(one)), second;

    (void)state;
    assert_int_equal(first.verdict, DM_SAYS_OWNED);
    process_kill(one);
    process_jump(2 * PROCESS_LEASE_MS * DM_NS_PER_MS);
    second = process_try(other, process_next_attempt(other));
    assert_int_equal(second.verdict, DM_SAYS_OWNED);
    assert_true(second.is_owner_dead);
    assert_true(second.token > first.token);
}

/* Without ages the first try only begins to watch; a later one takes the lock. */
static void test_later_try_takes_the_lock_where_ages_are_not_known(void **state)
{
    struct dm_deadline patience = dm_deadline_in_ms(PROCESS_PATIENCE_MS);
    struct process *one, *other;
    struct dm_answer answer;

    (void)state;
    memory_faults(process_memory)->has_no_ages = true;
    one = process_start(0, true);
    other = process_start(1, true);
    assert_int_equal(process_acquire(one, process_next_attempt(one)).verdict, DM_SAYS_OWNED);
    process_kill(one);
    assert_int_equal(process_try(other, process_next_attempt(other)).verdict, DM_SAYS_BUSY);
    do
        answer = process_try(other, process_next_attempt(other));
    while (answer.verdict == DM_SAYS_BUSY && dm_deadline_left_ns(&patience) > 0);
    assert_int_equal(answer.verdict, DM_SAYS_OWNED);
    assert_true(answer.is_owner_dead);
}

/* A release that was asked for while the connection was broken is done when it is back. */
static void test_release_is_owed_over_a_broken_connection(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);
    struct dm_deadline at_once = dm_deadline_in_ms(0);
    struct dm_question question;
    char reason[DM_REASON_ROOM] = "";

    (void)state;
    assert_int_equal(process_acquire(one, process_next_attempt(one)).verdict, DM_SAYS_OWNED);
    memory_cut(process_memory, NULL);
    question = process_question(one, DM_OP_RELEASE, 1);
    dm_store_ask(one->store, &question, &at_once, reason);
    assert_false(process_acquire(other, process_next_attempt(other)).is_owner_dead);
}

/* A thread that leads is cancelled in its sleep: another one leads, and answers come. */
static void *sleep_for_ever(void *user)
{
    struct process *process = user;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    for (;;)
        dm_store_sleep(process->store, process->place, DM_TELLS, &dm_deadline_endless, PTHREAD_CANCEL_ENABLE);
    return NULL;
}

/*
 * After a cancellation in ppoll() the thread sanitizer overlooks the mutexes that the cleanup handlers lock, and
 * reports races on what these guard: a program with ppoll(), a mutex and a number shows this, too.
 */
static void test_cancelled_leader_leaves_the_others_working(void **state)
{
    struct process *one;
    pthread_t leaders[3];

    (void)state;
    if (IS_THREAD_SANITIZED)
        return; /* a thread is cancelled */
    one = process_start(0, false);
    assert_int_equal(process_acquire(one, process_next_attempt(one)).verdict, DM_SAYS_OWNED);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&leaders[i], NULL, sleep_for_ever, one), 0);
    assert_int_equal(process_release(one, 1), DM_SAYS_DONE);
    for (int i = 0; i < 3; i++) {
        uint64_t attempt = process_next_attempt(one);

        pthread_cancel(leaders[i]);
        pthread_join(leaders[i], NULL);
        assert_int_equal(process_acquire(one, attempt).verdict, DM_SAYS_OWNED);
        assert_int_equal(process_release(one, attempt), DM_SAYS_DONE);
    }
}

/* What is left of a process that has ended in order: nothing. */
static void count_keys(void *user, const char *key, const void *value, size_t size)
{
    (void)value;
    (void)size;
    *(int *)user += strncmp(key, "s/", 2) == 0;
}

static void test_leave_ends_the_sessions_that_nothing_refers_to(void **state)
{
    struct process *one = process_start(0, true);
    struct dm_deadline deadline = dm_deadline_in_ms(PROCESS_PATIENCE_MS);
    uint64_t attempt = process_next_attempt(one);
    int sessions = 0;

    (void)state;
    assert_int_equal(process_acquire(one, attempt).verdict, DM_SAYS_OWNED);
    dm_store_leave(one->store, &deadline);
    memory_each(process_memory, count_keys, &sessions);
    assert_int_equal(sessions, 1); /* the lock is held */
    assert_int_equal(process_release(one, attempt), DM_SAYS_DONE);
    dm_store_leave(one->store, &deadline);
    sessions = 0;
    memory_each(process_memory, count_keys, &sessions);
    assert_int_equal(sessions, 0);
}

static bool is_lost(struct process *process, const struct process_waiter *waiter)
{
    bool is;

    pthread_mutex_lock(&process->lock);
    is = waiter->is_lost;
    pthread_mutex_unlock(&process->lock);
    return is;
}

/* `by` breaks the hold of `process`, whose owner is told. */
static void break_hold(struct process *process, struct process *by)
{
    struct dm_deadline patience = dm_deadline_in_ms(PROCESS_PATIENCE_MS);
    uint64_t attempt = process_next_attempt(process), token = process_acquire(process, attempt).token;
    struct process_waiter me = { .attempt = attempt };
    struct dm_question question = process_question(by, DM_OP_FORCE, 0);
    struct dm_answer next;

    process_enter_list(process, &me);
    assert_int_equal(process_ask(by, &question).verdict, DM_SAYS_DONE);
    while (!is_lost(process, &me) && dm_deadline_left_ns(&patience) > 0)
        dm_self_sleep(me.self, &patience);
    assert_true(is_lost(process, &me));
    process_leave_list(process, &me);
    next = process_try(by, process_next_attempt(by));
    assert_int_equal(next.verdict, DM_SAYS_OWNED);
    assert_true(next.is_owner_dead);
    assert_true(next.token > token + 1); /* people see the gap */
    assert_int_equal(process_ask(by, &question).verdict, DM_SAYS_DONE);
    assert_int_equal(process_ask(by, &question).verdict, DM_SAYS_DONE); /* nobody holds */
}

/* All notices are lost: the owner finds the note at its next beat. */
static void test_force_tells_the_owner_that_it_breaks(void **state)
{
    struct process *one = process_start(0, true), *other = process_start(1, true);

    (void)state;
    memory_faults(process_memory)->tell_lost = 1;
    break_hold(one, other);
}

static void test_force_breaks_a_hold_of_its_own_process(void **state)
{
    struct process *one = process_start(0, true);

    (void)state;
    break_hold(one, one);
}

/* A table changed by hand is nobody's to repair. */
static void test_foreign_value_is_refused_with_a_reason(void **state)
{
    struct process *one = process_start(0, true);
    struct dm_deadline deadline = dm_deadline_in_ms(PROCESS_PATIENCE_MS);
    struct dm_question question = process_question(one, DM_OP_ACQUIRE, process_next_attempt(one));
    char reason[DM_REASON_ROOM] = "";

    (void)state;
    memory_put(process_memory, "n/group/leaf", "a value that is nobody's, and longer than a version", 50);
    assert_int_equal(dm_store_ask(one->store, &question, &deadline, reason).verdict, DM_SAYS_REFUSED);
    assert_true(strlen(reason) > 0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, process_begin, process_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_lock_goes_from_process_to_process),
        TEST(test_threads_need_no_loop_thread_for_answers),
        TEST(test_threads_of_processes_exclude_each_other),
        TEST(test_renewal_is_answered_by_the_next_beat),
        TEST(test_waiter_takes_over_from_a_killed_process),
        TEST(test_first_try_takes_the_lock_of_a_dead_holder),
        TEST(test_later_try_takes_the_lock_where_ages_are_not_known),
        TEST(test_release_is_owed_over_a_broken_connection),
        TEST(test_cancelled_leader_leaves_the_others_working),
        TEST(test_leave_ends_the_sessions_that_nothing_refers_to),
        TEST(test_foreign_value_is_refused_with_a_reason),
        TEST(test_force_tells_the_owner_that_it_breaks),
        TEST(test_force_breaks_a_hold_of_its_own_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

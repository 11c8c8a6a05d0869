/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conditions whose mutex is kept: by the waiter, by the process that signals, by another; and waits that are refused.
 */
#include <pthread.h>
#include <stdio.h>

#include "kept.h"

#define SEATS 2

static dmutex_t mutex; /* kept by this process */
static dcond_t cond;
static struct errand errands[SEATS];
static bool is_told; /* under the mutex */
static int waiting;  /* likewise */

static int64_t on_condition(const char *name)
{
    return side_int(the_server->side, "ZCARD %s", key_of("cond", name));
}

/* The actor holds, and waits on the condition with the mutex's name. */
static void begin_wait(struct actor *actor, const char *name)
{
    int64_t before = on_condition(name);

    actor_do(actor, "0", "lock %s", name);
    actor_send(actor, "wait %s %s", name, name);
    wait_until(on_condition(name) == before + 1);
}

static void assert_back(struct actor *actor, const char *name)
{
    actor_expect(actor, "0");
    assert_kept();
    assert_int_equal(actor_value(actor, "holdcount %s", name), 1);
}

/* ---- the waiter keeps -------------------------------------------------------------------- */

/* A relock of a kept lease is given up for a wait.  The process keeps again from the unlock after the wait. */
static void test_a_wait_gives_up_a_relocked_lease_and_keeps_again(void **state)
{
    const char *name = "cond/waiter";
    int64_t before;

    (void)state;
    kept_begin(NULL, name, LONG_LEASE);
    for (int i = 0; i < 5; i++) {
        begin_wait(keeper, name);
        assert_false(kept_is_locked(name));
        kept_use(other, name);
        actor_do(other, "0", "lock %s", name);
        actor_do(other, "0", "signal %s", name);
        promise_within(AT_ONCE);
        actor_do(other, "0", "unlock %s", name);
        assert_back(keeper, name);
        actor_do(keeper, "0", "unlock %s", name); /* the line has adopted the waiter's hold */
        assert_true(kept_is_locked(name));
        wait_until(kept_is_marked(name));
        before = client_commands();
        kept_use(keeper, name);
        kept_use(keeper, name);
        assert_int_equal(client_commands(), before);
    }
    kept_end();
}

/* A wait that times out gets a mutex that another process keeps by then: the keeper is asked back. */
static void test_a_wait_that_times_out_gets_the_mutex_of_a_keeper(void **state)
{
    const char *name = "cond/time";

    (void)state;
    kept_begin(NULL, name, LONG_LEASE);
    actor_do(other, "0", "lock %s", name);
    actor_send(other, "timedwait %s %s 300", name, name);
    wait_until(on_condition(name) == 1 || !actor_is_silent(other));
    kept_use(keeper, name);
    promise_within(AT_ONCE);
    actor_expect(other, "ETIMEDOUT");
    assert_kept();
    actor_do(other, "0", "unlock %s", name);
    kept_end();
}

/* All waiters of a broadcast come back one after the other, though the process that signals keeps the mutex. */
static void test_a_broadcast_by_a_keeper_wakes_all(void **state)
{
    const char *name = "cond/all";
    struct actor *third = actor_start(the_server);

    (void)state;
    kept_begin(NULL, name, LONG_LEASE);
    actor_do(third, "0", "init %s lease=%d linger=%d", name, LONG_LEASE, LONG_LEASE);
    begin_wait(other, name);
    begin_wait(third, name);
    for (int i = 0; i < 3; i++)
        kept_use(keeper, name);
    promise_within(AT_ONCE);
    actor_do(keeper, "0", "broadcast %s", name);
    actor_expect(other, "0");
    actor_do(other, "0", "unlock %s", name);
    actor_expect(third, "0");
    assert_kept();
    actor_do(third, "0", "unlock %s", name);
    actor_end(third);
    kept_end();
}

/* ---- waiter and keeper in one process ---------------------------------------------------- */

static void begin(const char *mutex_name, const char *cond_name)
{
    is_told = false;
    waiting = 0;
    make_handed(&mutex, mutex_name, &kinds[0], LONG_LEASE, LONG_LEASE);
    assert_result(dcond_init_np(&cond, cond_name, NULL), 0);
}

static int wait_to_be_told(dmutex_t *at)
{
    int result = dmutex_lock(at);

    waiting++;
    while (!result && !is_told)
        result = dcond_wait(&cond, at);
    return result ? result : dmutex_unlock(at);
}

static int waiting_now(void)
{
    int count;

    assert_result(dmutex_lock(&mutex), 0);
    count = waiting;
    assert_result(dmutex_unlock(&mutex), 0);
    return count;
}

/* A waiter is on the server even if a thread of its own process keeps the mutex: a signal asks the process back. */
static void test_waiters_come_back_when_their_own_process_keeps(void **state)
{
    int64_t before;

    (void)state;
    begin("cond/own", "cond/own");
    for (int is_inside = 0; is_inside < 2; is_inside++) {
        is_told = false;
        waiting = 0;
        for (int i = 0; i < SEATS; i++)
            errand_begin(&errands[i], wait_to_be_told, &mutex);
        wait_until(waiting_now() == SEATS && on_condition("cond/own") == SEATS);
        assert_result(dmutex_lock(&mutex), 0);
        is_told = true;
        assert_result(dmutex_unlock(&mutex), 0);
        wait_until(kept_is_marked("cond/own"));
        before = client_commands();
        assert_result(dmutex_lock(&mutex), 0);
        if (!is_inside)
            assert_result(dmutex_unlock(&mutex), 0);
        assert_int_equal(client_commands(), before); /* the process keeps while its threads wait */
        promise_within(AT_ONCE);
        assert_result(dcond_broadcast(&cond), 0);
        if (is_inside)
            assert_result(dmutex_unlock(&mutex), 0);
        for (int i = 0; i < SEATS; i++)
            assert_result(errand_join(&errands[i]), 0);
        assert_kept();
    }
    assert_result(dmutex_destroy(&mutex), 0);
}

/*
 * A wait that is refused leaves the hold as it was: with its token, outside the line, whose next thread asks the server
 * and gets in after the unlock.
 */
static void test_a_refused_wait_leaves_the_hold(void **state)
{
    struct actor *waiter = actor_start(the_server);
    uint64_t token;

    (void)state;
    begin("cond/stay", "cond/busy");
    begin_wait(waiter, "cond/busy"); /* the condition is bound to another mutex */
    assert_result(lock_and_unlock(&mutex), 0);
    for (int seats = 0; seats < 2; seats++) {
        assert_result(dmutex_lock(&mutex), 0);
        token = token_of(&mutex);
        if (seats) {
            errand_begin(&errands[0], lock_and_unlock, &mutex);
            errand_await_sleep(&errands[0]);
        }
        assert_result(dcond_wait(&cond, &mutex), EINVAL);
        assert_int_equal(holdcount_of(&mutex), 1);
        assert_true(token_of(&mutex) == token);
        assert_int_equal(in_thread(dmutex_trylock, &mutex), EBUSY);
        promise_within(AT_ONCE);
        assert_result(dmutex_unlock(&mutex), 0);
        if (seats)
            assert_result(errand_join(&errands[0]), 0);
        assert_kept();
        assert_result(dmutex_unlock(&mutex), EPERM);
    }
    assert_result(dmutex_destroy(&mutex), 0);
    assert_false(kept_is_locked("cond/stay"));
    other = actor_start(the_server);
    actor_do(other, "0", "signal cond/busy");
    actor_expect(waiter, "0");
    actor_do(waiter, "0", "unlock cond/busy");
    actor_end(waiter);
    actor_end(other);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_wait_gives_up_a_relocked_lease_and_keeps_again),
        cmocka_unit_test(test_a_wait_that_times_out_gets_the_mutex_of_a_keeper),
        cmocka_unit_test(test_a_broadcast_by_a_keeper_wakes_all),
        cmocka_unit_test(test_waiters_come_back_when_their_own_process_keeps),
        cmocka_unit_test(test_a_refused_wait_leaves_the_hold),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits that end by cancellation or at a deadline, just when a signal comes: the waiter or another waiter has the
 * signal.
 */
#include <stdlib.h>

#include "pair.h"

#define DEPTH 3

/* A thread that waits, and is cancelled or not. */
struct victim {
    pthread_t thread;
    int depth;      /* number of locks by the thread */
    int timeout_us; /* 0: none */
    int result;     /* of the wait, -1: did not return */
    unsigned found; /* depth in the cleanup handler */
    bool is_kept;   /* the handler keeps the mutex until allowed to give it back */
    bool is_in_handler, may_leave;
    int unlocked; /* the result of giving back */
};

static void give_back(void *user)
{
    struct victim *victim = user;

    dmutex_holdcount_np(&mutex, &victim->found);
    __atomic_store_n(&victim->is_in_handler, true, __ATOMIC_RELEASE);
    while (victim->is_kept && !__atomic_load_n(&victim->may_leave, __ATOMIC_ACQUIRE))
        wait_nap();
    for (int i = 0; i < victim->depth; i++)
        victim->unlocked |= dmutex_unlock(&mutex);
}

static struct timespec in_us(int us)
{
    struct timespec time = wait_time_in_ms(CLOCK_REALTIME, us / 1000);

    time.tv_nsec += us % 1000 * 1000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static void *suffer(void *user)
{
    struct victim *victim = user;
    struct timespec until = in_us(victim->timeout_us);

    for (int i = 0; i < victim->depth; i++)
        dmutex_lock(&mutex);
    pthread_cleanup_push(give_back, victim);
    victim->result = victim->timeout_us ? dcond_timedwait(&cond, &mutex, &until) : dcond_wait(&cond, &mutex);
    pthread_cleanup_pop(1);
    return NULL;
}

static bool is_back(struct victim *victim)
{
    return __atomic_load_n(&victim->is_in_handler, __ATOMIC_ACQUIRE);
}

/* At the return the victim waits, or has come back at its deadline; no other thread waits. */
static void begin_victim(struct victim *victim, int depth, int timeout_us)
{
    *victim = (struct victim){ .depth = depth, .timeout_us = timeout_us, .result = -1 };
    assert_int_equal(pthread_create(&victim->thread, NULL, suffer, victim), 0);
    wait_until(on_condition() == 1 || is_back(victim));
}

/* The other actor waits after the victim, unless the victim has come back by then. */
static void begin_second(struct actor *other, struct victim *victim)
{
    actor_do(other, "0", "lock %s", mutex_name);
    actor_send(other, "wait %s %s", cond_name, mutex_name);
    wait_until((is_back(victim) && on_condition() == 1) || on_condition() == 2);
}

/* True if the victim was cancelled; owned the mutex at the victim's depth either way. */
static bool end_victim(struct victim *victim)
{
    void *end;

    wait_until(is_back(victim));
    assert_int_equal(pthread_join(victim->thread, &end), 0);
    assert_int_equal(victim->found, victim->depth);
    assert_result(victim->unlocked, 0);
    return end == PTHREAD_CANCELED;
}

/* POSIX scenario 35: the cleanup handlers run with the mutex owned, at the previous depth. */
static void test_cleanup_handlers_own_the_mutex_when_a_waiter_is_cancelled(void **state)
{
    struct actor *other;
    struct victim victim;

    (void)state;
    make_both("cleanup", &recursive, LONG_LEASE);
    other = start_actor(&recursive, LONG_LEASE);
    begin_victim(&victim, DEPTH, 0);
    actor_do(other, "0", "lock %s", mutex_name);
    __atomic_store_n(&victim.is_kept, true, __ATOMIC_RELEASE);
    pthread_cancel(victim.thread);
    wait_until(in_queue() == 1); /* not before the victim owns the mutex */
    assert_false(is_back(&victim));
    actor_do(other, "0", "unlock %s", mutex_name);
    wait_until(is_back(&victim));
    actor_do(other, "EBUSY", "trylock %s", mutex_name);
    __atomic_store_n(&victim.may_leave, true, __ATOMIC_RELEASE);
    assert_true(end_victim(&victim));
    actor_do(other, "0", "lock %s", mutex_name);
    actor_do(other, "0", "unlock %s", mutex_name);
    assert_int_equal(on_condition() + in_queue(), 0);
    actor_end(other);
}

/* If a signal has reached a waiter that is then cancelled, the other waiter gets it. */
static void test_a_signal_passes_on_when_its_receiver_is_cancelled(void **state)
{
    struct actor *other;
    struct victim victim;

    (void)state;
    make_both("passes", &normal, LONG_LEASE);
    other = start_actor(&normal, LONG_LEASE);
    for (int i = 0; i < repetitions(20); i++) {
        begin_victim(&victim, 1, 0);
        begin_wait(other);
        assert_result(dmutex_lock(&mutex), 0);
        assert_result(dcond_signal(&cond), 0);
        assert_int_equal(in_queue(), 1); /* the victim, which cannot own the mutex yet */
        pthread_cancel(victim.thread);
        assert_result(dmutex_unlock(&mutex), 0);
        promise_within(AT_ONCE);
        if (!end_victim(&victim)) /* the victim had left the sleep: the signal was the victim's */
            assert_result(dcond_signal(&cond), 0);
        assert_back(other, "0");
        assert_kept();
    }
    actor_end(other);
}

/*
 * POSIX scenario 35: a signal and a cancellation come at about the same time, from two processes.
 * If the waiter was cancelled the other one has the signal, else the waiter.
 */
static void test_one_waiter_gets_the_signal_when_another_is_cancelled_at_the_same_time(void **state)
{
    struct actor *other, *caller;
    int cancelled = 0, rounds = repetitions(200);

    (void)state;
    make_both("race", &normal, LONG_LEASE);
    other = start_actor(&normal, LONG_LEASE);
    caller = start_actor(&normal, LONG_LEASE);
    for (int i = 0; i < rounds; i++) {
        struct victim victim;

        begin_victim(&victim, 1, 0);
        begin_wait(other);
        if (i % 3 == 0)
            pthread_cancel(victim.thread);
        actor_send(caller, "signal %s", cond_name);
        if (i % 3 == 1)
            actor_expect(caller, "0");
        if (i % 3 != 0)
            pthread_cancel(victim.thread);
        if (i % 3 != 1)
            actor_expect(caller, "0");
        if (end_victim(&victim)) {
            cancelled++;
        } else {
            assert_true(actor_is_silent(other));
            assert_int_equal(on_condition(), 1);
            assert_result(dcond_signal(&cond), 0);
        }
        assert_back(other, "0");
    }
    assert_within(cancelled, rounds / 3, rounds);
    actor_end(other);
    actor_end(caller);
}

/*
 * POSIX scenario 30: the same with a deadline, which is moved to the moment of the signal by and by; a waiter that says
 * ETIMEDOUT has eaten no signal.
 */
static void test_one_waiter_gets_the_signal_when_a_deadline_comes_at_the_same_time(void **state)
{
    int timeout_us = 3000, signalled = 0, rounds = repetitions(200);
    struct actor *other;

    (void)state;
    make_both("deadline", &normal, LONG_LEASE);
    other = start_actor(&normal, LONG_LEASE);
    for (int i = 0; i < rounds; i++) {
        struct victim victim;

        begin_victim(&victim, 1, timeout_us);
        begin_second(other, &victim);
        assert_result(dcond_signal(&cond), 0);
        end_victim(&victim);
        if (victim.result == 0) {
            assert_true(actor_is_silent(other));
            assert_int_equal(on_condition(), 1);
            assert_result(dcond_signal(&cond), 0);
            timeout_us -= timeout_us / 16;
            signalled++;
        } else {
            assert_result(victim.result, ETIMEDOUT);
            timeout_us += timeout_us / 16;
        }
        assert_back(other, "0");
    }
    assert_within(signalled, 1, rounds - 1);
    actor_end(other);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cleanup_handlers_own_the_mutex_when_a_waiter_is_cancelled),
        cmocka_unit_test(test_a_signal_passes_on_when_its_receiver_is_cancelled),
        cmocka_unit_test(test_one_waiter_gets_the_signal_when_another_is_cancelled_at_the_same_time),
        cmocka_unit_test(test_one_waiter_gets_the_signal_when_a_deadline_comes_at_the_same_time),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The remains of very many locks, relocks, and threads that were cancelled: nothing. */
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "../lib/testlib.h"

#define LEASE lease_ms
#define THREADS 4

static dmutex_t mutex;
static int lease_ms; /* short: an owner that is still renewed, or a waiter that still waits, is soon noticed */

static int stretch_lease(void **state)
{
    (void)state;
    lease_ms = late_stretched_ms(150);
    return 0;
}

static bool is_silent_for_some_leases(void)
{
    int64_t before = client_commands();

    let_pass(4 * LEASE);
    return client_commands() == before;
}

/* Nothing is renewed, polled or sent again. A message on the way when the lock became free may come late. */
static void check_silence(void)
{
    wait_until(!is_locked(&mutex) && waiters_of(&mutex) == 0);
    wait_until(is_silent_for_some_leases());
}

/* ---- cancelled threads ------------------------------------------------------------------- */

struct victim {
    pthread_t thread;
    unsigned seed;
    int rounds, wrong; /* the thread's own until the thread has ended */
};

/* Locks until cancelled, at one of three places: with the lock, without it, or just after a call. */
static void *lock_until_cancelled(void *user)
{
    struct victim *victim = user;

    for (;;) {
        struct timespec soon = wait_time_in_ms(CLOCK_MONOTONIC, rand_r(&victim->seed) % 3);
        int result = rand_r(&victim->seed) % 2 ? dmutex_lock(&mutex) : dmutex_clocklock(&mutex, CLOCK_MONOTONIC, &soon);

        if (result == EOWNERDEAD)
            victim->wrong += dmutex_consistent(&mutex) != 0;
        else
            victim->wrong += result != 0 && result != ETIMEDOUT;
        if (rand_r(&victim->seed) % 8 == 0)
            pthread_testcancel();
        if (result != ETIMEDOUT)
            victim->wrong += dmutex_unlock(&mutex) != 0;
        victim->rounds++;
        pthread_testcancel();
    }
    return NULL;
}

static void do_nothing(int number)
{
    (void)number;
}

static void catch_signals(void)
{
    struct sigaction action = { .sa_handler = do_nothing }; /* no SA_RESTART */

    sigemptyset(&action.sa_mask);
    assert_return_code(sigaction(SIGUSR1, &action, NULL), errno);
}

/* Bounded by the clock: if other programs spin, one sched_yield() may take as long as all of them otherwise. */
static void interrupt_until(const struct victim *victims, int first, int64_t until_us)
{
    for (int n = 0; wait_now_us() < until_us; n++) {
        if (n % 16 == 0)
            pthread_kill(victims[n / 16 % THREADS < first ? first : n / 16 % THREADS].thread, SIGUSR1);
        sched_yield();
    }
}

/* Some threads fight for the lock, are interrupted and then cancelled, at random. */
static int cancel_some(unsigned *seed)
{
    struct victim victims[THREADS];
    int rounds = 0;

    for (int i = 0; i < THREADS; i++) {
        victims[i] = (struct victim){ .seed = (unsigned)rand_r(seed) };
        assert_int_equal(pthread_create(&victims[i].thread, NULL, lock_until_cancelled, &victims[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        interrupt_until(victims, i, wait_now_us() + rand_r(seed) % 2000);
        assert_int_equal(pthread_cancel(victims[i].thread), 0);
        assert_int_equal(pthread_join(victims[i].thread, NULL), 0);
        assert_int_equal(victims[i].wrong, 0);
        rounds += victims[i].rounds;
    }
    return rounds;
}

/*
 * Failure 7: threads that are cancelled and interrupted at random places leave no key, no hold that is still renewed,
 * and no place in a queue. Each death is reported, and the mutex is usable.
 */
static void cancel_again_and_again(const struct kind *kind, const char *name)
{
    unsigned seed = 7;
    int rounds = 0, result;

    catch_signals();
    make_mutex(&mutex, name, kind, LEASE);
    for (int i = 0; i < repetitions(40) || rounds <= 100; i++)
        rounds += cancel_some(&seed);
    result = dmutex_lock(&mutex);
    if (result == EOWNERDEAD)
        result = dmutex_consistent(&mutex);
    assert_result(result, 0);
    assert_result(dmutex_unlock(&mutex), 0);
    check_silence();
    assert_int_equal(side_int(the_server->side, "EXISTS %s %s %s", key_of("lock", name), key_of("queue", name),
                              key_of("waiter", name)),
                     0);
}

static void test_nothing_is_renewed_when_threads_were_cancelled(void **state)
{
    (void)state;
    cancel_again_and_again(&kinds[0], "leftovers/cancelled");
}

static void test_nothing_is_renewed_when_robust_owners_were_cancelled(void **state)
{
    (void)state;
    cancel_again_and_again(&kinds[4], "leftovers/robust");
}

/* ---- memory ------------------------------------------------------------------------------ */

/* Bytes in use by malloc(); a sanitizer's own malloc() says 0 always. */
static size_t used(void)
{
    return mallinfo2().uordblks;
}

/* Failure 9: relocks take no memory, and the last unlock ends the renewal. */
static void test_nothing_grows_when_locked_recursively_for_long(void **state)
{
    size_t before;

    (void)state;
    make_recursive(&mutex, "leftovers/deep", LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    before = used();
    for (int i = 0; i < repetitions(20000); i++) {
        for (int depth = 0; depth < 5; depth++)
            assert_int_equal(dmutex_lock(&mutex), 0);
        for (int depth = 0; depth < 5; depth++)
            assert_int_equal(dmutex_unlock(&mutex), 0);
    }
    /* Less than a byte per relock; the answer when the server is checked sometimes takes some KiB. */
    assert_true(used() <= before + 32 * 1024);
    let_pass(3 * LEASE);
    assert_true(remaining_of(&mutex) > 0);
    assert_result(dmutex_unlock(&mutex), 0);
    check_silence();
}

/* Failure 9: locks and unlocks leave nothing either, of one name or an object each, by threads that end. */
static void test_nothing_grows_when_locked_again_and_again(void **state)
{
    size_t after[3];

    (void)state;
    for (int round = 0; round < 3; round++) {
        make_normal(&mutex, "leftovers/again", LEASE);
        for (int i = 0; i < repetitions(1500); i++) {
            dmutex_t object = DMUTEX_ANONYMOUS_INITIALIZER;

            assert_result(dmutex_lock(&mutex), 0);
            assert_result(dmutex_unlock(&mutex), 0);
            if (i % 10 == 0) {
                assert_result(dmutex_lock(&object), 0);
                assert_result(dmutex_unlock(&object), 0);
                assert_result(dmutex_destroy(&object), 0);
                assert_result(in_thread(dmutex_lock, &mutex), 0); /* the hold's thread ends */
            }
        }
        check_silence();
        after[round] = used();
    }
    assert_true(after[2] <= after[1] + 8192);
    assert_int_equal(side_count_keys(the_server->side, "*{~*"), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_nothing_is_renewed_when_threads_were_cancelled, stretch_lease),
        cmocka_unit_test_setup(test_nothing_is_renewed_when_robust_owners_were_cancelled, stretch_lease),
        cmocka_unit_test_setup(test_nothing_grows_when_locked_recursively_for_long, stretch_lease),
        cmocka_unit_test_setup(test_nothing_grows_when_locked_again_and_again, stretch_lease),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

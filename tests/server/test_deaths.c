/* SPDX-License-Identifier: BSD-2-Clause */
/* Owners that die, in every way, and the answers for the next owners, with their times. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define LEASE 500 /* of owners that die without a word; the end of a LONG_LEASE saves nobody */
#define SLACK 1000

static void mend_and_unlock(void)
{
    assert_result(dmutex_consistent(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* The lease that a dead owner has left is over. */
static void await_end_of_lease(const char *name)
{
    wait_until(side_int(the_server->side, "EXISTS %s", key_of("lock", name)) == 0);
}

/* ---- processes that die ------------------------------------------------------------------ */

/* POSIX scenario 38: a blocked lock says EOWNERDEAD once the killed owner's lease has ended. */
static void test_a_blocked_lock_says_ownerdead_when_the_owner_is_killed(void **state)
{
    struct actor *a = start_holder("death/blocked", LEASE), *c;
    struct errand b;

    (void)state;
    make_robust(&mutex, "death/blocked", LEASE);
    errand_begin(&b, dmutex_lock, &mutex);
    wait_until(waiters_of(&mutex) == 1);
    promise_within(LEASE + SLACK);
    actor_kill(a);
    actor_end(a);
    assert_result(errand_join(&b), EOWNERDEAD);
    assert_kept();
    c = actor_start(the_server);
    actor_do(c, "0", "init death/blocked robust");
    actor_do(c, "EOWNERDEAD", "lock death/blocked"); /* the errand's thread has ended, holding */
    actor_do(c, "0", "consistent death/blocked");
    actor_do(c, "0", "unlock death/blocked");
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    actor_end(c);
}

/* POSIX scenario 44: any end of the process is a death and no unlock. */
static void test_lock_says_ownerdead_when_the_owners_process_ends(void **state)
{
    static const char *const ends[] = { "exit 0", "_exit 0", "abort", "segv" };

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct actor *a = start_holder("death/ends", LEASE);

        make_robust(&mutex, "death/ends", LEASE);
        promise_within(LEASE + SLACK);
        actor_send(a, "%s", ends[i]);
        assert_result(dmutex_lock(&mutex), EOWNERDEAD);
        assert_kept();
        mend_and_unlock();
        actor_await(a);
    }
}

/* POSIX scenario 44: exit() reports the death at once, not when the lease ends. */
static void test_lock_says_ownerdead_at_once_when_the_owner_exits(void **state)
{
    struct actor *a = start_holder("death/exit", LONG_LEASE);

    (void)state;
    make_robust(&mutex, "death/exit", LONG_LEASE);
    promise_within(AT_ONCE);
    actor_send(a, "exit 0");
    assert_result(dmutex_lock(&mutex), EOWNERDEAD);
    assert_kept();
    mend_and_unlock();
    assert_int_equal(actor_await(a), 0);
}

/* POSIX scenario 44: the program that exec() begins is another owner; the lease ends the hold. */
static void test_lock_says_ownerdead_when_the_owner_executes_another_program(void **state)
{
    struct actor *a = start_holder("death/exec", LEASE);

    (void)state;
    make_robust(&mutex, "death/exec", LEASE);
    promise_within(LEASE + SLACK);
    actor_do(a, "ready", "exec");
    actor_do(a, "EPERM", "unlock death/exec");
    assert_result(dmutex_lock(&mutex), EOWNERDEAD);
    assert_kept();
    mend_and_unlock();
    actor_end(a);
}

/* A mutex that is not robust reports nothing: the next owner gets the lock, and a higher token. */
static void test_lock_is_acquired_when_a_dead_owner_was_not_robust(void **state)
{
    struct actor *a = actor_start(the_server);
    long long token;

    (void)state;
    make_normal(&mutex, "death/stalled", LEASE);
    actor_do(a, "0", "init death/stalled lease=%d", LEASE);
    actor_do(a, "0", "lock death/stalled");
    token = actor_value(a, "token death/stalled");
    promise_within(LEASE + SLACK);
    actor_kill(a);
    actor_end(a);
    assert_result(dmutex_lock(&mutex), 0);
    assert_kept();
    assert_true(token_of(&mutex) > (uint64_t)token);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* POSIX scenario 43: every way to lock an orphan says EOWNERDEAD, and the depth begins at one. */
static void test_every_lock_call_says_ownerdead_when_the_lock_is_an_orphan(void **state)
{
    (void)state;
    for (int i = 0; i < WAY_COUNT; i++) {
        struct actor *a = actor_start(the_server);

        actor_do(a, "0", "init death/orphan robust recursive lease=100");
        actor_do(a, "0", "lock death/orphan");
        actor_do(a, "0", "lock death/orphan");
        actor_kill(a);
        actor_end(a);
        await_end_of_lease("death/orphan");
        make_mutex(&mutex, "death/orphan", &(struct kind){ PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ROBUST, "" }, LEASE);
        assert_result(ways_to_lock[i].lock(&mutex), EOWNERDEAD);
        assert_int_equal(holdcount_of(&mutex), 1);
        mend_and_unlock();
    }
}

/* POSIX scenario 39: an owner that dies before calling consistent leaves the death to the next owner. */
static void test_lock_says_ownerdead_again_when_the_repairer_dies(void **state)
{
    struct actor *a = start_holder("death/again", LEASE), *b = actor_start(the_server);

    (void)state;
    make_robust(&mutex, "death/again", LEASE);
    actor_do(b, "0", "init death/again robust lease=%d", LEASE);
    actor_send(b, "lock death/again");
    wait_until(waiters_of(&mutex) == 1);
    actor_kill(a);
    actor_expect(b, "EOWNERDEAD");
    promise_within(LEASE + SLACK);
    actor_kill(b);
    assert_result(dmutex_lock(&mutex), EOWNERDEAD);
    assert_kept();
    mend_and_unlock();
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    actor_end(a);
    actor_end(b);
}

/* ---- not made consistent ----------------------------------------------------------------- */

/* POSIX scenario 38: unlocked without consistent, the mutex fails at once for all waiters and newcomers. */
static void test_all_waiters_fail_when_the_lock_is_not_recoverable(void **state)
{
    struct actor *a = start_holder("death/never", LEASE), *waiters[3];

    (void)state;
    make_robust(&mutex, "death/never", LONG_LEASE);
    actor_kill(a);
    actor_end(a);
    assert_result(dmutex_lock(&mutex), EOWNERDEAD);
    for (int i = 0; i < 3; i++)
        waiters[i] = start_waiter("death/never", LONG_LEASE, i + 1);
    promise_within(AT_ONCE);
    assert_result(dmutex_unlock(&mutex), 0);
    for (int i = 0; i < 3; i++)
        actor_expect(waiters[i], "ENOTRECOVERABLE");
    assert_kept();
    for (int i = 0; i < WAY_COUNT; i++)
        assert_result(ways_to_lock[i].lock(&mutex), ENOTRECOVERABLE);
    assert_result(dmutex_destroy(&mutex), 0);
    make_robust(&mutex, "death/never", LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    for (int i = 0; i < 3; i++)
        actor_end(waiters[i]);
}

/* POSIX scenario 40: only the owner that got the death can call consistent, and only once. */
static void test_consistent_is_refused_when_there_is_nothing_to_repair(void **state)
{
    struct actor *a = start_holder("death/mend", LEASE);
    dmutex_t stalled;

    (void)state;
    make_robust(&mutex, "death/mend", LEASE);
    make_normal(&stalled, "death/mend-stalled", LEASE);
    assert_result(dmutex_consistent(&mutex), EINVAL);
    actor_do(a, "EINVAL", "consistent death/mend");
    actor_kill(a);
    actor_end(a);
    assert_result(dmutex_lock(&mutex), EOWNERDEAD);
    assert_result(in_thread(dmutex_consistent, &mutex), EINVAL);
    assert_result(dmutex_consistent(&mutex), 0);
    assert_result(dmutex_consistent(&mutex), EINVAL);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_lock(&stalled), 0);
    assert_result(dmutex_consistent(&stalled), EINVAL);
    assert_result(dmutex_unlock(&stalled), 0);
}

/* ---- threads that end -------------------------------------------------------------------- */

/* POSIX scenario 41, failure 8: the end of a thread is reported at once, and the hold is no longer renewed. */
static void test_lock_says_ownerdead_at_once_when_the_owners_thread_ends(void **state)
{
    struct actor *a = actor_start(the_server);

    (void)state;
    make_robust(&mutex, "death/thread", LONG_LEASE);
    actor_do(a, "0", "init death/thread robust lease=%d", LONG_LEASE);
    promise_within(AT_ONCE);
    actor_do(a, "0", "in-thread lock death/thread");
    assert_result(dmutex_lock(&mutex), EOWNERDEAD);
    assert_kept();
    mend_and_unlock();
    actor_end(a);
}

/* Failure 8: the same in one's own process, and of a mutex that is not robust. */
static void test_lock_is_acquired_at_once_when_the_owners_thread_has_ended(void **state)
{
    (void)state;
    promise_within(AT_ONCE);
    make_normal(&mutex, "death/own-thread", LONG_LEASE);
    assert_result(in_thread(dmutex_lock, &mutex), 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    make_robust(&mutex, "death/own-robust", LONG_LEASE);
    assert_result(in_thread(dmutex_lock, &mutex), 0);
    assert_result(dmutex_lock(&mutex), EOWNERDEAD);
    mend_and_unlock();
    assert_kept();
}

static bool has_locked;

static void *lock_and_wait_to_be_cancelled(void *user)
{
    (void)user;
    if (dmutex_lock(&mutex) == 0)
        __atomic_store_n(&has_locked, true, __ATOMIC_RELEASE);
    for (;;) { /* pause() is a cancellation point, too, and makes the race detector lose the thread */
        pthread_testcancel();
        sched_yield();
    }
    return NULL;
}

/* POSIX scenario 41: a detached thread that is cancelled dies as any other. */
static void test_lock_says_ownerdead_at_once_when_a_detached_thread_is_cancelled(void **state)
{
    pthread_t thread;

    (void)state;
    make_robust(&mutex, "death/cancelled", LONG_LEASE);
    assert_int_equal(pthread_create(&thread, NULL, lock_and_wait_to_be_cancelled, NULL), 0);
    wait_until(__atomic_load_n(&has_locked, __ATOMIC_ACQUIRE));
    promise_within(AT_ONCE);
    assert_int_equal(pthread_detach(thread), 0);
    assert_int_equal(pthread_cancel(thread), 0);
    assert_result(dmutex_lock(&mutex), EOWNERDEAD);
    assert_kept();
    mend_and_unlock();
}

static pthread_t thread_of_death;

static void *lock_and_end(void *user)
{
    (void)user;
    thread_of_death = pthread_self();
    return (void *)(intptr_t)dmutex_lock(&mutex);
}

static void *lock_if_the_same(void *user)
{
    (void)user;
    if (!pthread_equal(pthread_self(), thread_of_death))
        return (void *)(intptr_t)-1;
    return (void *)(intptr_t)dmutex_lock(&mutex);
}

static int run_thread(void *(*run)(void *))
{
    pthread_t thread;
    void *result;

    assert_int_equal(pthread_create(&thread, NULL, run, NULL), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    return (int)(intptr_t)result;
}

/* POSIX scenario 9, failure 22: a thread with the dead thread's pthread_t is another owner. */
static void test_a_new_thread_is_no_owner_when_it_has_the_dead_ones_id(void **state)
{
    int result;

    (void)state;
    make_mutex(&mutex, "death/reused", &(struct kind){ PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ROBUST, "" },
               LONG_LEASE);
    assert_int_equal(run_thread(lock_and_end), 0);
    wait_until((result = run_thread(lock_if_the_same)) != -1);
    assert_result(result, EOWNERDEAD);
    assert_result(dmutex_lock(&mutex), EOWNERDEAD);
    mend_and_unlock();
}

/* exit() while another thread of the process waits in lock: the process ends, and leaves no waiter. */
static void test_exit_does_not_hang_when_a_thread_waits(void **state)
{
    struct actor *a = actor_start(the_server);

    (void)state;
    make_normal(&mutex, "death/waiting", LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    actor_do(a, "0", "start lock death/waiting");
    wait_until(waiters_of(&mutex) == 1);
    promise_within(AT_ONCE);
    actor_send(a, "exit 7");
    assert_int_equal(WEXITSTATUS(actor_await(a)), 7);
    assert_kept();
    assert_result(dmutex_unlock(&mutex), 0);
    wait_until(!is_locked(&mutex));
    assert_kept();
    side_text(the_server->side, "DEL %s %s", key_of("queue", "death/waiting"),
              key_of("waiter", "death/waiting")); /* the dead waiter's, for two leases */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_blocked_lock_says_ownerdead_when_the_owner_is_killed),
        cmocka_unit_test(test_lock_says_ownerdead_when_the_owners_process_ends),
        cmocka_unit_test(test_lock_says_ownerdead_at_once_when_the_owner_exits),
        cmocka_unit_test(test_lock_says_ownerdead_when_the_owner_executes_another_program),
        cmocka_unit_test(test_lock_is_acquired_when_a_dead_owner_was_not_robust),
        cmocka_unit_test(test_every_lock_call_says_ownerdead_when_the_lock_is_an_orphan),
        cmocka_unit_test(test_lock_says_ownerdead_again_when_the_repairer_dies),
        cmocka_unit_test(test_all_waiters_fail_when_the_lock_is_not_recoverable),
        cmocka_unit_test(test_consistent_is_refused_when_there_is_nothing_to_repair),
        cmocka_unit_test(test_lock_says_ownerdead_at_once_when_the_owners_thread_ends),
        cmocka_unit_test(test_lock_is_acquired_at_once_when_the_owners_thread_has_ended),
        cmocka_unit_test(test_lock_says_ownerdead_at_once_when_a_detached_thread_is_cancelled),
        cmocka_unit_test(test_a_new_thread_is_no_owner_when_it_has_the_dead_ones_id),
        cmocka_unit_test(test_exit_does_not_hang_when_a_thread_waits),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends of processes and threads, seen by waiters with a deadline, and just after an unlock. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "pair.h"

#define LEASE 500
#define SLACK 1000
#define FAR 600 /* seconds; no deadline of a wait here is ever reached */

/* An actor that waits by timedlock or clocklock, as the `place`-th. */
static struct actor *start_timed_waiter(const char *way, const char *name, int place)
{
    struct actor *waiter = actor_start(the_server);

    actor_do(waiter, "0", "init %s robust lease=%d", name, LONG_LEASE);
    actor_send(waiter, "%s %s %d", way, name, FAR * 1000);
    wait_until(waiters_of(&mutex) == place);
    return waiter;
}

static const char *const timed_ways[] = { "timedlock", "clocklock" };

/* POSIX scenario 43: a waiter with a deadline gets the death when the lease ends. */
static void test_a_blocked_timedlock_says_ownerdead_when_the_owner_is_killed(void **state)
{
    (void)state;
    make_robust(&mutex, "end/timed", LONG_LEASE);
    for (int i = 0; i < 2; i++) {
        struct actor *a = start_holder("end/timed", LEASE);
        struct actor *b = start_timed_waiter(timed_ways[i], "end/timed", 1);

        promise_within(LEASE + SLACK);
        actor_kill(a);
        actor_end(a);
        actor_expect(b, "EOWNERDEAD");
        assert_kept();
        assert_int_equal(actor_value(b, "holdcount end/timed"), 1);
        actor_do(b, "0", "consistent end/timed");
        actor_do(b, "0", "unlock end/timed");
        actor_end(b);
    }
}

/* POSIX scenario 38: a waiter with a deadline learns at once that no thread can own the mutex any more. */
static void test_a_blocked_timedlock_says_notrecoverable_when_not_made_consistent(void **state)
{
    struct actor *waiters[2];

    (void)state;
    make_robust(&mutex, "end/never", LONG_LEASE);
    assert_result(in_thread(dmutex_lock, &mutex), 0);
    assert_result(dmutex_lock(&mutex), EOWNERDEAD);
    for (int i = 0; i < 2; i++)
        waiters[i] = start_timed_waiter(timed_ways[i], "end/never", i + 1);
    promise_within(AT_ONCE);
    assert_result(dmutex_unlock(&mutex), 0);
    for (int i = 0; i < 2; i++)
        actor_expect(waiters[i], "ENOTRECOVERABLE");
    assert_kept();
    for (int i = 0; i < 2; i++) {
        actor_do(waiters[i], "EPERM", "unlock end/never");
        actor_end(waiters[i]);
    }
    assert_result(dmutex_destroy(&mutex), 0);
}

static void *lock_and_leave(void *user)
{
    int *result = user;

    __atomic_store_n(result, dmutex_lock(&mutex), __ATOMIC_RELEASE);
    pthread_exit(NULL);
}

/* POSIX scenario 41: a detached thread that leaves by pthread_exit() dies as any other. */
static void test_lock_says_ownerdead_at_once_when_a_detached_thread_exits(void **state)
{
    static int result = -1;
    pthread_attr_t detached;
    pthread_t thread;

    (void)state;
    make_robust(&mutex, "end/detached", LONG_LEASE);
    promise_within(AT_ONCE);
    assert_int_equal(pthread_attr_init(&detached), 0);
    assert_int_equal(pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED), 0);
    assert_int_equal(pthread_create(&thread, &detached, lock_and_leave, &result), 0);
    assert_int_equal(pthread_attr_destroy(&detached), 0);
    wait_until(__atomic_load_n(&result, __ATOMIC_ACQUIRE) == 0);
    wait_until(side_int(the_server->side, "HGET %s health", key_of("state", "end/detached")) == 1);
    assert_result(dmutex_lock(&mutex), EOWNERDEAD);
    assert_kept();
    assert_result(dmutex_consistent(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* The deaths of two mutexes of one process are both reported, each when its own lease ends. */
static void test_each_mutex_of_a_killed_owner_is_acquired_after_its_own_lease(void **state)
{
    struct actor *a = start_holder("end/short", LEASE);

    (void)state;
    actor_do(a, "0", "init end/long robust lease=%d", 4 * LEASE);
    actor_do(a, "0", "lock end/long");
    actor_kill(a);
    actor_end(a);
    make_robust(&mutex, "end/short", LONG_LEASE);
    promise_within(LEASE + SLACK);
    assert_result(dmutex_lock(&mutex), EOWNERDEAD);
    assert_kept();
    assert_result(dmutex_consistent(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    make_robust(&mutex, "end/long", LONG_LEASE);
    promise_within(4 * LEASE + SLACK);
    assert_result(dmutex_lock(&mutex), EOWNERDEAD);
    assert_kept();
    assert_result(dmutex_consistent(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* ---- just after an unlock ---------------------------------------------------------------- */

/*
 * The server has executed an unlock that has returned, so a process may be killed right after the unlock.
 */
static void test_the_lock_is_free_when_the_process_is_killed_straight_after_unlock(void **state)
{
    (void)state;
    make_normal(&mutex, "end/unlocked", LONG_LEASE);
    for (int i = 0; i < repetitions(20); i++) {
        struct actor *a = actor_start(the_server);

        actor_do(a, "0", "init end/unlocked lease=%d", LONG_LEASE);
        actor_do(a, "0", "lock end/unlocked");
        actor_do(a, "0", "unlock end/unlocked");
        actor_kill(a);
        assert_false(is_locked(&mutex));
        actor_end(a);
    }
}

/* The same when another program is executed straight after. */
static void test_the_lock_is_free_when_the_process_executes_straight_after_unlock(void **state)
{
    (void)state;
    make_normal(&mutex, "end/exec", LONG_LEASE);
    for (int i = 0; i < repetitions(10); i++) {
        struct actor *a = actor_start(the_server);

        actor_do(a, "0", "init end/exec lease=%d", LONG_LEASE);
        actor_do(a, "0", "lock end/exec");
        promise_within(AT_ONCE);
        actor_do(a, "0", "unlock end/exec");
        actor_do(a, "ready", "exec");
        wait_until(!is_locked(&mutex));
        assert_kept();
        actor_do(a, "0", "lock end/exec");
        actor_do(a, "0", "unlock end/exec");
        actor_end(a);
    }
}

/* An awaited unlock of a robust mutex is done at the return, whatever ends the process then. */
static void test_a_robust_lock_is_free_when_the_process_is_killed_after_unlock(void **state)
{
    (void)state;
    make_robust(&mutex, "end/awaited", LONG_LEASE);
    for (int i = 0; i < repetitions(10); i++) {
        struct actor *a = start_holder("end/awaited", LONG_LEASE);

        actor_do(a, "0", "unlock end/awaited");
        actor_kill(a);
        assert_result(dmutex_trylock(&mutex), 0); /* no death */
        assert_result(dmutex_unlock(&mutex), 0);
        actor_end(a);
    }
}

/* ---- the end of the library -------------------------------------------------------------- */

/* Process level: dlclose() does not take the code away under the library's own thread. */
static void test_the_library_cannot_be_unloaded(void **state)
{
    void *library = dlopen("libdmutex.so.0", RTLD_NOW | RTLD_NOLOAD);
    struct link_map *map = NULL;
    bool is_kept = false;

    (void)state;
    assert_non_null(library);
    assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++)
        is_kept |= entry->d_tag == DT_FLAGS_1 && (entry->d_un.d_val & DF_1_NODELETE);
    assert_int_equal(dlclose(library), 0);
    assert_true(is_kept);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_blocked_timedlock_says_ownerdead_when_the_owner_is_killed),
        cmocka_unit_test(test_a_blocked_timedlock_says_notrecoverable_when_not_made_consistent),
        cmocka_unit_test(test_lock_says_ownerdead_at_once_when_a_detached_thread_exits),
        cmocka_unit_test(test_each_mutex_of_a_killed_owner_is_acquired_after_its_own_lease),
        cmocka_unit_test(test_the_lock_is_free_when_the_process_is_killed_straight_after_unlock),
        cmocka_unit_test(test_the_lock_is_free_when_the_process_executes_straight_after_unlock),
        cmocka_unit_test(test_a_robust_lock_is_free_when_the_process_is_killed_after_unlock),
        cmocka_unit_test(test_the_library_cannot_be_unloaded),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The process goes to another server, and back, while its threads are inside calls. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <dmutex/testing.h>

#include "../lib/testlib.h"

#define THREADS 4

/* A thread that uses mutexes all the time, and the first result that no call may return. */
struct user {
    pthread_t thread;
    int number;
    const char *call; /* NULL: all is well */
    int result;
    bool has_locked;
};

static bool is_over;

static bool is_one_of(int result, int one, int other, int third)
{
    return result == one || result == other || result == third;
}

static void blame(struct user *user, const char *call, int result)
{
    user->call = call;
    user->result = result;
}

/* Until the server is changed a call may find the other server, or none. */
static void use(struct user *user, dmutex_t *mutex)
{
    int locked, result = dmutex_trylock(mutex);

    if (!is_one_of(result, 0, EBUSY, ENOLCK))
        blame(user, "trylock", result);
    if (result == 0) {
        user->has_locked = true;
        result = dmutex_unlock(mutex);
        if (result != 0)
            blame(user, "unlock", result);
    }
    result = dmutex_islocked_np(mutex, &locked);
    if (!is_one_of(result, 0, ENOLCK, 0))
        blame(user, "islocked", result);
    result = timedlock_soon(mutex);
    if (!is_one_of(result, 0, ETIMEDOUT, ENOLCK))
        blame(user, "timedlock", result);
    if (result == 0)
        dmutex_unlock(mutex);
}

/* Rests longer than the use has lasted, also on a busy machine: else somebody would hold or wait at every moment. */
static void use_and_rest(struct user *user, dmutex_t *mutex)
{
    int64_t began_us = wait_now_us(), rest_us;

    use(user, mutex);
    rest_us = 1000 + 2 * (wait_now_us() - began_us);
    nanosleep(&(struct timespec){ .tv_sec = rest_us / 1000000, .tv_nsec = rest_us % 1000000 * 1000 }, NULL);
}

static void *use_all_the_time(void *argument)
{
    struct user *user = argument;
    dmutex_t shared = DMUTEX_INITIALIZER("switch/shared"), own;
    char name[32];

    snprintf(name, sizeof name, "switch/own%d", user->number);
    dmutex_init_np(&own, name, NULL);
    while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE) && !user->call) {
        use_and_rest(user, &own);
        use_and_rest(user, &shared);
    }
    return NULL;
}

static void begin_users(struct user *users)
{
    __atomic_store_n(&is_over, false, __ATOMIC_RELEASE);
    for (int i = 0; i < THREADS; i++) {
        users[i] = (struct user){ .number = i };
        assert_int_equal(pthread_create(&users[i].thread, NULL, use_all_the_time, &users[i]), 0);
    }
}

static void end_users(struct user *users)
{
    __atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(users[i].thread, NULL), 0);
        if (users[i].call)
            fail_msg("%s: %s", users[i].call, result_name(users[i].result));
        assert_true(users[i].has_locked);
    }
}

/* EBUSY as long as one of the threads holds or waits just now. */
static bool is_started(dmutex_test_server_t **ret_server)
{
    int result = dmutex_test_server_start(ret_server);

    assert_true(result == 0 || result == EBUSY);
    return result == 0;
}

static bool is_stopped(dmutex_test_server_t *server)
{
    int result = dmutex_test_server_stop(server);

    assert_true(result == 0 || result == EBUSY);
    return result == 0;
}

/* Calls of other threads end soon and with allowed results, at any moment of the change. */
static void test_calls_end_properly_when_the_server_changes_during_them(void **state)
{
    dmutex_test_server_t *server;
    struct user users[THREADS];

    (void)state;
    begin_users(users);
    for (int round = 0; round < repetitions(6); round++) {
        wait_until(is_started(&server));
        wait_until(is_stopped(server));
    }
    end_users(users);
}

/* The same with the server failing in between. */
static void test_calls_end_properly_when_the_servers_fail_during_them(void **state)
{
    dmutex_test_server_t *server;
    struct user users[THREADS];

    (void)state;
    begin_users(users);
    for (int round = 0; round < repetitions(2); round++) {
        wait_until(is_started(&server));
        assert_result(dmutex_test_server_kill(server), 0);
        assert_result(dmutex_test_server_restart(server), 0);
        wait_until(is_stopped(server));
    }
    end_users(users);
}

/* All unlocked mutexes are free when another server is used. */
static void test_unlocks_are_done_when_the_server_changes(void **state)
{
    struct actor *other = actor_start_at(dmutex_test_server_url(*state));
    dmutex_test_server_t *server;
    char name[32];
    dmutex_t mutex;

    for (int i = 0; i < repetitions(5); i++) {
        for (int j = 0; j < 20; j++) {
            snprintf(name, sizeof name, "switch/unlocked%d", j);
            assert_result(dmutex_init_np(&mutex, name, NULL), 0);
            assert_result(lock_and_unlock(&mutex), 0);
        }
        assert_result(dmutex_test_server_start(&server), 0);
        for (int j = 0; j < 20; j++) {
            actor_do(other, "0", "trylock switch/unlocked%d", j);
            actor_do(other, "0", "unlock switch/unlocked%d", j);
        }
        assert_result(dmutex_test_server_stop(server), 0);
    }
    actor_end(other);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unlocks_are_done_when_the_server_changes),
        cmocka_unit_test(test_calls_end_properly_when_the_server_changes_during_them),
        cmocka_unit_test(test_calls_end_properly_when_the_servers_fail_during_them),
    };

    test_begin(argc, argv);
    test_put_server_into_path();
    return cmocka_run_group_tests(tests, dmutex_test_group_setup, dmutex_test_group_teardown);
}

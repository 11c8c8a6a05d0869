/* SPDX-License-Identifier: BSD-2-Clause */
/* The errors of the mutex rows that depend on the arguments and the object, and errno. */
#include <string.h>

#include "../lib/testlib.h"

/* Every function with a mutex argument, as a call without further arguments. */

static int call_getprioceiling(dmutex_t *mutex)
{
    int ceiling;

    return dmutex_getprioceiling(mutex, &ceiling);
}

static int call_setprioceiling(dmutex_t *mutex)
{
    int ceiling;

    return dmutex_setprioceiling(mutex, 1, &ceiling);
}

static int call_getname(dmutex_t *mutex)
{
    char name[8];

    return dmutex_getname_np(mutex, name, sizeof name);
}

static int call_token(dmutex_t *mutex)
{
    uint64_t token;

    return dmutex_token_np(mutex, &token);
}

static int call_remaining(dmutex_t *mutex)
{
    int64_t left_ms;

    return dmutex_remaining_np(mutex, &left_ms);
}

static int call_holdcount(dmutex_t *mutex)
{
    unsigned count;

    return dmutex_holdcount_np(mutex, &count);
}

static int call_islocked(dmutex_t *mutex)
{
    int locked;

    return dmutex_islocked_np(mutex, &locked);
}

static int call_getinfo(dmutex_t *mutex)
{
    dmutex_info_t info = { .struct_size = sizeof info };

    return dmutex_getinfo_np(mutex, &info);
}

static const struct {
    const char *name;
    mutex_call call;
    int when_free; /* the function's result for a free, healthy, named, stalled mutex */
} calls[] = {
    { "unlock", dmutex_unlock, EPERM },
    { "consistent", dmutex_consistent, EINVAL },
    { "getprioceiling", call_getprioceiling, EINVAL },
    { "setprioceiling", call_setprioceiling, EINVAL },
    { "getname", call_getname, 0 },
    { "renew", dmutex_renew_np, EPERM },
    { "token", call_token, EPERM },
    { "remaining", call_remaining, EPERM },
    { "holdcount", call_holdcount, 0 },
    { "islocked", call_islocked, 0 },
    { "getinfo", call_getinfo, 0 },
    { "forceunlock", dmutex_forceunlock_np, 0 },
    { "trylock", dmutex_trylock, 0 },
    { "unlock", dmutex_unlock, 0 },
    { "lock", dmutex_lock, 0 },
    { "unlock", dmutex_unlock, 0 },
    { "timedlock", timedlock_soon, 0 },
    { "unlock", dmutex_unlock, 0 },
    { "clocklock", clocklock_soon, 0 },
    { "unlock", dmutex_unlock, 0 },
    { "destroy", dmutex_destroy, 0 },
};
#define CALLS (sizeof calls / sizeof calls[0])

/* Each function returns the expected result and leaves errno unchanged. */
static void check_all(dmutex_t *mutex, int wanted, bool is_free)
{
    for (size_t i = 0; i < CALLS; i++) {
        int result;

        errno = 4711;
        result = calls[i].call(mutex);
        if (errno != 4711 || result != (is_free ? calls[i].when_free : wanted))
            fail_msg("%s: %s, errno %d", calls[i].name, result_name(result), errno);
    }
}

/* NULL is EINVAL to every function, errno stays. */
static void test_call_refuses_when_mutex_is_null(void **state)
{
    (void)state;
    check_all(NULL, EINVAL, false);
    assert_result(dmutex_init(NULL, NULL), EINVAL);
    assert_result(dmutex_init_np(NULL, "t/x", NULL), EINVAL);
}

/* Rec: a destroyed object is EINVAL to every function. */
static void test_call_refuses_when_mutex_is_destroyed(void **state)
{
    dmutex_t named = DMUTEX_INITIALIZER("errors/destroyed");
    dmutex_t anonymous = DMUTEX_ANONYMOUS_INITIALIZER;

    (void)state;
    assert_result(dmutex_destroy(&named), 0);
    check_all(&named, EINVAL, false);
    assert_result(dmutex_lock(&anonymous), 0);
    assert_result(dmutex_unlock(&anonymous), 0);
    assert_result(dmutex_destroy(&anonymous), 0);
    check_all(&anonymous, EINVAL, false);
}

/* Bytes that never were a mutex are EINVAL to every function. */
static void test_call_refuses_when_object_is_garbage(void **state)
{
    dmutex_t mutex;

    (void)state;
    memset(&mutex, 0xff, sizeof mutex);
    check_all(&mutex, EINVAL, false);
    memset(&mutex, 'x', sizeof mutex);
    check_all(&mutex, EINVAL, false);
}

/* Every function keeps errno, on success and on failure. */
static void test_call_keeps_errno_when_it_succeeds_or_fails(void **state)
{
    dmutex_t mutex;

    (void)state;
    errno = 4711;
    assert_result(dmutex_init_np(&mutex, "errors", NULL), 0);
    assert_int_equal(errno, 4711);
    check_all(&mutex, 0, true);
}

/* The same while another holds the mutex: EBUSY and ETIMEDOUT leave errno unchanged, too. */
static void test_call_keeps_errno_when_mutex_is_held(void **state)
{
    struct actor *a = actor_start(the_server);
    dmutex_t mutex = DMUTEX_INITIALIZER("errors/held");

    (void)state;
    actor_do(a, "0", "lock errors/held");
    for (int i = 1; i < WAY_COUNT; i++) {
        errno = 4711;
        assert_result(ways_to_lock[i].lock(&mutex), ways_to_lock[i].is_try ? EBUSY : ETIMEDOUT);
        assert_int_equal(errno, 4711);
    }
    errno = 4711;
    assert_result(dmutex_unlock(&mutex), EPERM);
    assert_int_equal(errno, 4711);
    actor_end(a);
}

/* A NULL place for the answer is EINVAL; nothing else happens. */
static void test_call_refuses_when_answer_is_null(void **state)
{
    dmutex_t mutex = DMUTEX_INITIALIZER("errors/null");

    (void)state;
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_token_np(&mutex, NULL), EINVAL);
    assert_result(dmutex_remaining_np(&mutex, NULL), EINVAL);
    assert_result(dmutex_holdcount_np(&mutex, NULL), EINVAL);
    assert_result(dmutex_islocked_np(&mutex, NULL), EINVAL);
    assert_result(dmutex_getinfo_np(&mutex, NULL), EINVAL);
    assert_result(dmutex_getname_np(&mutex, NULL, 99), EINVAL);
    assert_result(dmutex_timedlock(&mutex, NULL), EINVAL);
    assert_result(dmutex_clocklock(&mutex, CLOCK_REALTIME, NULL), EINVAL);
    assert_int_equal(holdcount_of(&mutex), 1);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_init_np(&mutex, NULL, NULL), EINVAL);
    assert_result(dmutex_configure_np(NULL), EINVAL);
}

/* A library that does not know this size of the answer must not write the answer. */
static void test_getinfo_refuses_when_size_is_unknown(void **state)
{
    dmutex_t mutex = DMUTEX_INITIALIZER("errors/info");
    dmutex_info_t info, before;

    (void)state;
    memset(&info, 0x11, sizeof info);
    for (uint32_t size = 0; size < sizeof info; size += 40) {
        info.struct_size = size;
        before = info;
        assert_result(dmutex_getinfo_np(&mutex, &info), EINVAL);
        assert_memory_equal(&info, &before, sizeof info);
    }
}

/* getprioceiling and setprioceiling: EINVAL, for protocol is PTHREAD_PRIO_NONE. */
static void test_prioceiling_is_refused_when_mutex_is_held_or_free(void **state)
{
    dmutex_t mutex = DMUTEX_INITIALIZER("errors/ceiling");
    int ceiling = 77;

    (void)state;
    assert_result(dmutex_getprioceiling(&mutex, &ceiling), EINVAL);
    assert_result(dmutex_setprioceiling(&mutex, 5, &ceiling), EINVAL);
    assert_int_equal(is_locked(&mutex), 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_setprioceiling(&mutex, 5, &ceiling), EINVAL);
    assert_int_equal(ceiling, 77);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* Shall: consistent fails with EINVAL on a mutex that is not robust or not inconsistent, even for non-owners. */
static void test_consistent_refuses_when_there_is_nothing_to_repair(void **state)
{
    dmutex_t stalled = DMUTEX_INITIALIZER("errors/stalled");
    dmutex_t robust = DMUTEX_ROBUST_INITIALIZER("errors/robust");

    (void)state;
    assert_result(dmutex_lock(&stalled), 0);
    assert_result(dmutex_consistent(&stalled), EINVAL);
    assert_result(dmutex_unlock(&stalled), 0);
    assert_result(dmutex_lock(&robust), 0);
    assert_result(dmutex_consistent(&robust), EINVAL);
    assert_result(in_thread(dmutex_consistent, &robust), EINVAL);
    assert_result(dmutex_unlock(&robust), 0);
    assert_result(dmutex_consistent(&robust), EINVAL);
}

/* Shall: EOWNERDEAD with the lock after the owner's thread ended while holding, by every way to lock. */
static void test_lock_reports_owner_dead_by_each_way(void **state)
{
    dmutex_t mutex = DMUTEX_ROBUST_INITIALIZER("errors/dead");

    (void)state;
    for (int i = 0; i < WAY_COUNT; i++) {
        assert_result(in_thread(dmutex_lock, &mutex), 0);
        wait_until(!is_locked(&mutex));
        assert_result(ways_to_lock[i].lock(&mutex), EOWNERDEAD);
        assert_int_equal(holdcount_of(&mutex), 1);
        assert_result(dmutex_consistent(&mutex), 0);
        assert_result(dmutex_consistent(&mutex), EINVAL);
        assert_result(dmutex_unlock(&mutex), 0);
    }
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* Shall: ENOTRECOVERABLE without the lock after an unlock that was not preceded by consistent. */
static void test_lock_reports_not_recoverable_by_each_way(void **state)
{
    dmutex_t mutex = DMUTEX_ROBUST_INITIALIZER("errors/lost");

    (void)state;
    assert_result(in_thread(dmutex_lock, &mutex), 0);
    wait_until(!is_locked(&mutex));
    assert_result(dmutex_lock(&mutex), EOWNERDEAD);
    assert_result(dmutex_unlock(&mutex), 0);
    for (int i = 0; i < WAY_COUNT; i++) {
        assert_result(ways_to_lock[i].lock(&mutex), ENOTRECOVERABLE);
        assert_int_equal(holdcount_of(&mutex), 0);
        assert_result(dmutex_unlock(&mutex), EPERM);
    }
    assert_result(dmutex_destroy(&mutex), 0);
    make_robust(&mutex, "errors/lost", 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* Attributes are copied: later changes of the attributes do not reach the mutex. */
static void test_mutex_keeps_attributes_when_attr_changes_later(void **state)
{
    dmutex_t mutex;
    dmutexattr_t attr;
    char name[32];

    (void)state;
    assert_result(dmutexattr_init(&attr), 0);
    assert_result(dmutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE), 0);
    assert_result(dmutexattr_setname_np(&attr, "errors/copied"), 0);
    assert_result(dmutexattr_setlease_np(&attr, 60000), 0);
    assert_result(dmutex_init(&mutex, &attr), 0);
    assert_result(dmutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK), 0);
    assert_result(dmutexattr_setname_np(&attr, "errors/other"), 0);
    assert_result(dmutexattr_setlease_np(&attr, 100), 0);
    assert_result(dmutexattr_destroy(&attr), 0);
    memset(&attr, 0xff, sizeof attr);

    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_getname_np(&mutex, name, sizeof name), 0);
    assert_string_equal(name, "errors/copied");
    assert_within(side_int(the_server->side, "PTTL %s", key_of("lock", name)), 10001, 60000);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_refuses_when_mutex_is_null),
        cmocka_unit_test(test_call_refuses_when_mutex_is_destroyed),
        cmocka_unit_test(test_call_refuses_when_object_is_garbage),
        cmocka_unit_test(test_call_keeps_errno_when_it_succeeds_or_fails),
        cmocka_unit_test(test_call_keeps_errno_when_mutex_is_held),
        cmocka_unit_test(test_call_refuses_when_answer_is_null),
        cmocka_unit_test(test_getinfo_refuses_when_size_is_unknown),
        cmocka_unit_test(test_prioceiling_is_refused_when_mutex_is_held_or_free),
        cmocka_unit_test(test_consistent_refuses_when_there_is_nothing_to_repair),
        cmocka_unit_test(test_lock_reports_owner_dead_by_each_way),
        cmocka_unit_test(test_lock_reports_not_recoverable_by_each_way),
        cmocka_unit_test(test_mutex_keeps_attributes_when_attr_changes_later),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

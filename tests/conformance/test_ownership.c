/* SPDX-License-Identifier: BSD-2-Clause */
/* Types and robustness: which thread may unlock, and the result of a relock: scenarios 5 to 9. */
#include "../lib/testlib.h"

static const struct timespec past = { .tv_sec = 1 };

static int timedlock_past(dmutex_t *mutex)
{
    return dmutex_timedlock(mutex, &past);
}

static int clocklock_past(dmutex_t *mutex)
{
    return dmutex_clocklock(mutex, CLOCK_MONOTONIC, &past);
}

static int timedlock_bad_nsec(dmutex_t *mutex)
{
    return dmutex_timedlock(mutex, &(struct timespec){ .tv_nsec = 1000000000 });
}

/* A call that must not succeed; on success the lock is given back so that the thread does not die as an owner. */
static int refused_in_thread(dmutex_t *mutex)
{
    int result = dmutex_trylock(mutex);

    if (result == 0)
        dmutex_unlock(mutex);
    return result;
}

/* The name of one kind's mutex in one test. */
static const char *name_of(const char *test, int kind)
{
    static char name[64];

    snprintf(name, sizeof name, "ownership/%s-%d", test, kind);
    return name;
}

/* ---- scenario 5 -------------------------------------------------------------------------- */

/* POSIX scenario 5: three holds are renewed as one for many leases, and the server learns the count. */
static void test_recursive_hold_is_renewed_when_locked_three_times(void **state)
{
    const char *name = "ownership/renewed";
    dmutex_t mutex;
    uint64_t token;

    (void)state;
    make_recursive(&mutex, name, 300);
    for (int i = 0; i < 3; i++)
        assert_result(dmutex_lock(&mutex), 0);
    token = token_of(&mutex);
    side_set_control(the_server->side, "renewed", 3 * 300);
    side_await_control(the_server->side, "renewed");
    assert_within(side_int(the_server->side, "PTTL %s", key_of("lock", name)), 1, 300);
    assert_int_equal(side_int(the_server->side, "HGET %s depth", key_of("state", name)), 3); /* "3 <token>" */
    assert_true(token_of(&mutex) == token);
    for (unsigned left = 3; left > 0; left--) {
        assert_int_equal(holdcount_of(&mutex), left);
        assert_result(in_thread(refused_in_thread, &mutex), EBUSY);
        assert_result(dmutex_unlock(&mutex), 0);
    }
    assert_result(dmutex_unlock(&mutex), EPERM);
    assert_int_equal(holdcount_of(&mutex), 0);
    wait_until(!is_locked(&mutex));
}

/* POSIX scenario 5: the 65536th level is EAGAIN by each way to lock, and changes nothing. */
static void test_recursive_lock_refuses_when_count_is_at_its_limit(void **state)
{
    dmutex_t mutex = DMUTEX_RECURSIVE_INITIALIZER("ownership/limit");

    (void)state;
    for (int i = 0; i < 65535; i++) {
        if (dmutex_lock(&mutex) != 0)
            fail_msg("level %d", i + 1);
    }
    for (int i = 0; i < WAY_COUNT; i++)
        assert_result(ways_to_lock[i].lock(&mutex), EAGAIN);
    assert_int_equal(holdcount_of(&mutex), 65535);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_lock(&mutex), 0);
    for (int i = 0; i < 65535; i++) {
        if (dmutex_unlock(&mutex) != 0)
            fail_msg("level %d", 65535 - i);
    }
    assert_result(dmutex_unlock(&mutex), EPERM);
}

/* A relock and the matching unlock are the process's own affair: the server is not asked. */
static void test_recursive_relock_sends_no_command(void **state)
{
    dmutex_t mutex = DMUTEX_RECURSIVE_INITIALIZER("ownership/silent");
    int64_t before;

    (void)state;
    assert_result(dmutex_lock(&mutex), 0);
    before = client_commands();
    for (int i = 0; i < 1000; i++)
        assert_result(ways_to_lock[i % WAY_COUNT].lock(&mutex), 0);
    for (int i = 0; i < 1000; i++)
        assert_result(dmutex_unlock(&mutex), 0);
    assert_int_equal(client_commands(), before);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* ---- scenario 6 -------------------------------------------------------------------------- */

/* The owner's hold is unchanged, on both sides. */
static void check_held(dmutex_t *mutex, uint64_t token, struct actor *other, const char *name)
{
    assert_int_equal(holdcount_of(mutex), 1);
    assert_true(token_of(mutex) == token);
    assert_true(is_locked(mutex));
    actor_do(other, "EBUSY", "trylock %s", name);
}

/*
 * POSIX scenario 6: unlock by another thread or process is EPERM for each kind, and changes
 * nothing.
 */
static void test_unlock_refuses_when_another_owns(void **state)
{
    struct actor *other = actor_start(the_server);

    (void)state;
    for (int i = 0; i < KIND_COUNT; i++) {
        const char *name = name_of("foreign", i);
        dmutex_t mutex;
        uint64_t token;

        make_mutex(&mutex, name, &kinds[i], 0);
        actor_do(other, "0", "init %s%s", name, kinds[i].words);
        assert_result(dmutex_lock(&mutex), 0);
        token = token_of(&mutex);
        assert_result(in_thread(dmutex_unlock, &mutex), EPERM);
        check_held(&mutex, token, other, name);
        actor_do(other, "EPERM", "unlock %s", name);
        check_held(&mutex, token, other, name);
        assert_result(dmutex_unlock(&mutex), 0);
        actor_do(other, "0", "lock %s", name);
        assert_result(dmutex_unlock(&mutex), EPERM);
        assert_result(in_thread(dmutex_unlock, &mutex), EPERM);
        assert_int_equal(actor_value(other, "holdcount %s", name), 1);
        actor_do(other, "0", "unlock %s", name);
    }
    actor_end(other);
}

/* POSIX scenario 6: unlock of a mutex without an owner is EPERM for each kind, before and after use. */
static void test_unlock_refuses_when_nobody_owns(void **state)
{
    (void)state;
    for (int i = 0; i < KIND_COUNT; i++) {
        const char *name = name_of("nobody", i);
        dmutex_t mutex;

        make_mutex(&mutex, name, &kinds[i], 0);
        assert_result(dmutex_unlock(&mutex), EPERM);
        assert_result(dmutex_lock(&mutex), 0);
        assert_result(dmutex_unlock(&mutex), 0);
        assert_result(dmutex_unlock(&mutex), EPERM);
        assert_result(in_thread(dmutex_unlock, &mutex), EPERM);
        assert_result(dmutex_trylock(&mutex), 0);
        assert_result(dmutex_unlock(&mutex), 0);
    }
}

/* ---- scenario 7, 8 ----------------------------------------------------------------------- */

struct relock {
    const char *name;
    mutex_call lock;
    int of_normal, of_errorcheck, of_recursive; /* the results of a relock */
};

static const struct relock relocks[] = {
    { "trylock", dmutex_trylock, EBUSY, EBUSY, 0 },
    { "timedlock", timedlock_soon, ETIMEDOUT, EDEADLK, 0 },
    { "clocklock", clocklock_soon, ETIMEDOUT, EDEADLK, 0 },
    { "timedlock, past", timedlock_past, ETIMEDOUT, EDEADLK, 0 },
    { "clocklock, past", clocklock_past, ETIMEDOUT, EDEADLK, 0 },
    { "timedlock, bad nsec", timedlock_bad_nsec, EINVAL, EDEADLK, 0 },
};
#define RELOCKS (sizeof relocks / sizeof relocks[0])

static int wanted_of(const struct relock *relock, int type)
{
    if (type == PTHREAD_MUTEX_ERRORCHECK)
        return relock->of_errorcheck;
    return type == PTHREAD_MUTEX_RECURSIVE ? relock->of_recursive : relock->of_normal;
}

/*
 * POSIX scenarios 7 and 8: a relock by each way, for each kind: EDEADLK comes before the time is checked, a normal
 * mutex times out, a recursive one counts.
 */
static void test_relock_answers_by_type(void **state)
{
    (void)state;
    for (int i = 0; i < KIND_COUNT; i++) {
        dmutex_t mutex;
        unsigned depth = 1;

        make_mutex(&mutex, name_of("relock", i), &kinds[i], 0);
        assert_result(dmutex_lock(&mutex), 0);
        if (kinds[i].type == PTHREAD_MUTEX_ERRORCHECK)
            assert_result(dmutex_lock(&mutex), EDEADLK);
        for (size_t r = 0; r < RELOCKS; r++) {
            int wanted = wanted_of(&relocks[r], kinds[i].type);
            int result = relocks[r].lock(&mutex);

            if (result != wanted)
                fail_msg("%s,%s: %s", relocks[r].name, kinds[i].words, result_name(result));
            depth += result == 0;
            assert_int_equal(holdcount_of(&mutex), depth);
        }
        for (; depth > 0; depth--)
            assert_result(dmutex_unlock(&mutex), 0);
        assert_result(dmutex_unlock(&mutex), EPERM);
    }
}

/*
 * POSIX scenario 8: a thread that locks its own normal mutex again waits forever: for more than 3 leases the hold is
 * renewed and not granted to the waiting owner. Others get the mutex once the process is gone.
 */
static void test_normal_relock_blocks_forever(void **state)
{
    struct actor *a = actor_start(the_server);
    dmutex_t mutex;

    (void)state;
    make_robust(&mutex, "ownership/self", 300);
    actor_do(a, "0", "init ownership/self lease=300 fair");
    actor_do(a, "0", "lock ownership/self");
    actor_send(a, "lock ownership/self");
    wait_until(waiters_of(&mutex) == 1);
    side_set_bound(the_server->side, "self", 4 * 300);
    side_await_control(the_server->side, "self");
    assert_true(actor_is_silent(a));
    assert_true(is_locked(&mutex));
    assert_int_equal(waiters_of(&mutex), 1);
    assert_result(dmutex_trylock(&mutex), EBUSY);

    actor_kill(a);
    side_set_bound(the_server->side, "self", 300 + 1000);
    assert_result(dmutex_lock(&mutex), EOWNERDEAD);
    assert_false(side_is_control_over(the_server->side, "self"));
    assert_result(dmutex_consistent(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    actor_end(a);
}

/* ---- scenario 9 -------------------------------------------------------------------------- */

/* One thread of a pair: locks, and reports its id and the result. */
struct heir {
    dmutex_t *mutex;
    pthread_t self;
    int locked, depth, unlocked;
};

static void *lock_and_end(void *user)
{
    struct heir *heir = user;

    heir->self = pthread_self();
    heir->locked = dmutex_lock(heir->mutex);
    return NULL;
}

static void *lock_and_give_back(void *user)
{
    struct heir *heir = user;
    unsigned depth = 0;

    heir->self = pthread_self();
    heir->locked = dmutex_lock(heir->mutex);
    dmutex_holdcount_np(heir->mutex, &depth);
    heir->depth = (int)depth;
    if (heir->locked == EOWNERDEAD)
        dmutex_consistent(heir->mutex);
    heir->unlocked = dmutex_unlock(heir->mutex);
    return NULL;
}

static void run_heir(struct heir *heir, dmutex_t *mutex, void *(*life)(void *))
{
    pthread_t thread;

    *heir = (struct heir){ .mutex = mutex };
    assert_int_equal(pthread_create(&thread, NULL, life, heir), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/*
 * POSIX scenario 9: a thread ends while it owns the mutex, and a new thread has the same pthread_t. No kind of mutex
 * takes the new thread for the owner; a robust mutex reports the death to it.
 */
static void test_new_thread_is_not_the_owner_when_its_id_is_reused(void **state)
{
    int reused = 0;

    (void)state;
    for (int i = 0; i < KIND_COUNT; i++) {
        struct heir dead, heir;
        dmutex_t mutex;

        make_mutex(&mutex, name_of("reuse", i), &kinds[i], 0);
        for (int round = 0; round < 5; round++) {
            run_heir(&dead, &mutex, lock_and_end);
            assert_result(dead.locked, 0);
            run_heir(&heir, &mutex, lock_and_give_back);
            reused += pthread_equal(dead.self, heir.self) != 0;
            assert_result(heir.locked, kinds[i].robust ? EOWNERDEAD : 0);
            assert_int_equal(heir.depth, 1);
            assert_result(heir.unlocked, 0);
        }
    }
    assert_true(reused > 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recursive_hold_is_renewed_when_locked_three_times),
        cmocka_unit_test(test_recursive_lock_refuses_when_count_is_at_its_limit),
        cmocka_unit_test(test_recursive_relock_sends_no_command),
        cmocka_unit_test(test_unlock_refuses_when_another_owns),
        cmocka_unit_test(test_unlock_refuses_when_nobody_owns),
        cmocka_unit_test(test_relock_answers_by_type),
        cmocka_unit_test(test_normal_relock_blocks_forever),
        cmocka_unit_test(test_new_thread_is_not_the_owner_when_its_id_is_reused),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

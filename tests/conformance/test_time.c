/* SPDX-License-Identifier: BSD-2-Clause */
/* timedlock and clocklock: scenarios 18, 19, 21, 22. */
#include <limits.h>
#include <stdlib.h>

#include "../lib/testlib.h"

static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC };

/* The largest time_t, of any width. */
#define TIME_MAX ((time_t)((1ULL << (sizeof(time_t) * 8 - 1)) - 1))

struct moment {
    struct timespec time;
    int when_held; /* the answer of a lock until then when another process holds the mutex */
};

static const struct moment moments[] = {
    { { .tv_sec = 0, .tv_nsec = 0 }, ETIMEDOUT },
    { { .tv_sec = 1, .tv_nsec = 999999999 }, ETIMEDOUT },
    { { .tv_sec = -1, .tv_nsec = 0 }, ETIMEDOUT },
    { { .tv_sec = -TIME_MAX - 1, .tv_nsec = 0 }, ETIMEDOUT },
    { { .tv_sec = 0, .tv_nsec = -1 }, EINVAL },
    { { .tv_sec = 0, .tv_nsec = 1000000000 }, EINVAL },
    { { .tv_sec = -1, .tv_nsec = LONG_MIN }, EINVAL },
    { { .tv_sec = TIME_MAX, .tv_nsec = -1 }, EINVAL },
    { { .tv_sec = TIME_MAX, .tv_nsec = LONG_MAX }, EINVAL },
};
#define MOMENTS (sizeof moments / sizeof moments[0])

#define TRIES 100

/* A real try takes 50 ms at most, which a busy machine may not keep once; always is a fault. */
static void lock_free(dmutex_t *mutex, const clockid_t *clock, const struct timespec *time)
{
    int result = ETIMEDOUT;

    for (int i = 0; i < TRIES && result == ETIMEDOUT; i++)
        result = clock ? dmutex_clocklock(mutex, *clock, time) : dmutex_timedlock(mutex, time);
    assert_result(result, 0);
    assert_result(dmutex_unlock(mutex), 0);
}

/* POSIX scenario 18: a free mutex is locked for any deadline, even an impossible time. */
static void test_timedlock_succeeds_when_free_whatever_the_time(void **state)
{
    dmutex_t mutex = DMUTEX_INITIALIZER("time/free");

    (void)state;
    for (size_t i = 0; i < MOMENTS; i++) {
        lock_free(&mutex, NULL, &moments[i].time);
        for (int c = 0; c < 2; c++)
            lock_free(&mutex, &clocks[c], &moments[i].time);
    }
}

/* POSIX scenario 18: held by another: ETIMEDOUT for the past, EINVAL for a bad tv_nsec, at once. */
static void test_timedlock_answers_at_once_when_held_and_past(void **state)
{
    struct actor *holder = actor_start_holder(the_server, "time/held", "");
    dmutex_t mutex = DMUTEX_INITIALIZER("time/held");

    (void)state;
    side_set_bound(the_server->side, "held", 2000);
    for (size_t i = 0; i < MOMENTS; i++) {
        assert_result(dmutex_timedlock(&mutex, &moments[i].time), moments[i].when_held);
        for (int c = 0; c < 2; c++)
            assert_result(dmutex_clocklock(&mutex, clocks[c], &moments[i].time), moments[i].when_held);
    }
    assert_false(side_is_control_over(the_server->side, "held"));
    assert_int_equal(holdcount_of(&mutex), 0);
    assert_int_equal(waiters_of(&mutex), 0);
    actor_do(holder, "0", "unlock time/held");
    actor_end(holder);
}

/* POSIX scenario 19: ETIMEDOUT never comes before the time, by either clock, to the nanosecond. */
static void test_timedlock_is_never_early(void **state)
{
    struct actor *holder = actor_start_holder(the_server, "time/early", "");
    dmutex_t mutex = DMUTEX_INITIALIZER("time/early");
    unsigned seed = 19;

    (void)state;
    for (int i = 0; i < repetitions(150); i++) {
        clockid_t clock = clocks[i % 2];
        struct timespec until = wait_time_in_ms(clock, rand_r(&seed) % 8);

        until.tv_nsec = (until.tv_nsec / 1000000 * 1000000 + rand_r(&seed) % 1000000) % 1000000000;
        assert_result(dmutex_clocklock(&mutex, clock, &until), ETIMEDOUT);
        assert_true(wait_is_reached(clock, &until));
    }
    assert_int_equal(waiters_of(&mutex), 0);
    actor_do(holder, "0", "unlock time/early");
    actor_end(holder);
}

/*
 * POSIX scenario 19, the other side: not before 200 ms, and before a control of 200 + 1000 ms is
 * over.
 */
static void test_timedlock_ends_soon_after_its_time(void **state)
{
    struct actor *holder = actor_start_holder(the_server, "time/late", "");
    dmutex_t mutex = DMUTEX_INITIALIZER("time/late");

    (void)state;
    for (int c = 0; c < 2; c++) {
        struct timespec until;

        side_set_bound(the_server->side, "late", 200 + 1000);
        until = wait_time_in_ms(clocks[c], 200);
        assert_result(dmutex_clocklock(&mutex, clocks[c], &until), ETIMEDOUT);
        assert_true(wait_is_reached(clocks[c], &until));
        assert_false(side_is_control_over(the_server->side, "late"));
    }
    actor_do(holder, "0", "unlock time/late");
    actor_end(holder);
}

/* A lock that is given back before the deadline is had then, not at the deadline. */
static void test_timedlock_succeeds_when_unlocked_before_its_time(void **state)
{
    struct actor *holder = actor_start_holder(the_server, "time/given", "");
    dmutex_t mutex = DMUTEX_INITIALIZER("time/given");

    (void)state;
    for (int c = 0; c < 2; c++) {
        struct actor *waiter = actor_start(the_server);

        actor_send(waiter, "%s time/given 600000", c ? "clocklock" : "timedlock");
        wait_until(waiters_of(&mutex) == 1);
        actor_do(holder, "0", "unlock time/given");
        actor_expect(waiter, "0");
        actor_do(waiter, "0", "unlock time/given");
        actor_do(holder, "0", "lock time/given");
        actor_end(waiter);
    }
    actor_do(holder, "0", "unlock time/given");
    actor_end(holder);
}

/* A waiter that timed out no longer waits: the next unlock goes to one that still does. */
static void test_unlock_passes_over_who_timed_out(void **state)
{
    struct actor *holder = actor_start_holder(the_server, "time/over", ""), *waiter = actor_start(the_server);
    dmutex_t mutex = DMUTEX_INITIALIZER("time/over");
    struct errand errand;

    (void)state;
    errand_begin(&errand, timedlock_soon, &mutex);
    assert_result(errand_join(&errand), ETIMEDOUT);
    assert_int_equal(waiters_of(&mutex), 0);
    actor_send(waiter, "lock time/over");
    wait_until(waiters_of(&mutex) == 1);
    side_set_bound(the_server->side, "over", 1000);
    actor_do(holder, "0", "unlock time/over");
    actor_expect(waiter, "0");
    assert_false(side_is_control_over(the_server->side, "over"));
    actor_do(waiter, "0", "unlock time/over");
    actor_end(waiter);
    actor_end(holder);
}

/*
 * Timeouts that race with grants: each ends with 0 and the lock or with ETIMEDOUT without it, and no grant is left: the
 * mutex is free afterwards.
 */
static void test_timedlock_owns_or_not_when_grant_and_timeout_race(void **state)
{
    struct actor *other = actor_start(the_server);
    dmutex_t mutex = DMUTEX_INITIALIZER("time/race");
    unsigned seed = 7;
    int owned = 0;

    (void)state;
    actor_send(other, "count %s/race 2000 time/race 2", the_server->folder);
    for (int i = 0; i < repetitions(300); i++) {
        struct timespec until = wait_time_in_ms(CLOCK_MONOTONIC, 0);
        int result;

        until.tv_nsec = (until.tv_nsec + rand_r(&seed) % 1000000) % 1000000000;
        result = dmutex_clocklock(&mutex, CLOCK_MONOTONIC, &until);
        assert_int_equal(holdcount_of(&mutex), result == 0);
        if (result == 0)
            assert_result(dmutex_unlock(&mutex), 0);
        else
            assert_result(result, ETIMEDOUT);
        owned += result == 0;
    }
    actor_expect(other, "0");
    wait_until(!is_locked(&mutex));
    side_set_bound(the_server->side, "race", 1000);
    assert_result(dmutex_lock(&mutex), 0);
    assert_false(side_is_control_over(the_server->side, "race"));
    assert_result(dmutex_unlock(&mutex), 0);
    assert_true(owned > 0);
    actor_end(other);
}

/* POSIX scenario 21: clocks that cannot time a wait are EINVAL, free or held; nothing changes. */
static void test_clocklock_refuses_when_the_clock_is_unsuitable(void **state)
{
    const clockid_t bad[] = { CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, 9999,     -1,
                              CLOCK_BOOTTIME,           CLOCK_REALTIME_COARSE,   CLOCK_TAI };
    dmutex_t mutex;

    (void)state;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        make_fair(&mutex, "time/clock", &kinds[kind], 0); /* a kept mutex counts as locked */
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            struct timespec far = { .tv_sec = TIME_MAX }, past = { .tv_sec = 0 };

            assert_result(dmutex_clocklock(&mutex, bad[i], &far), EINVAL);
            assert_int_equal(is_locked(&mutex), 0);
            assert_result(dmutex_lock(&mutex), 0);
            assert_result(dmutex_clocklock(&mutex, bad[i], &past), EINVAL);
            assert_int_equal(holdcount_of(&mutex), 1);
            assert_result(dmutex_unlock(&mutex), 0);
        }
    }
}

/* POSIX scenario 22: the end of time is not past: the lock waits, and is granted. */
static void test_timedlock_waits_when_the_time_is_very_far(void **state)
{
    const struct timespec far[] = { { TIME_MAX, 999999999 },
                                    { TIME_MAX, 0 },
                                    { TIME_MAX - 1, 0 },
                                    { TIME_MAX / 1000, 0 },
                                    { TIME_MAX / 1000000000 + 1, 999999999 } };
    dmutex_t mutex = DMUTEX_INITIALIZER("time/far");
    struct actor *holder = actor_start_holder(the_server, "time/far", "");

    (void)state;
    for (size_t i = 0; i < 2 * sizeof far / sizeof far[0]; i++) {
        struct errand errand;

        errand_begin_until(&errand, &mutex, clocks[i % 2], &far[i / 2]);
        wait_until(waiters_of(&mutex) == 1);
        assert_false(errand_is_over(&errand));
        actor_do(holder, "0", "unlock time/far");
        assert_result(errand_join(&errand), 0);
        actor_do(holder, "0", "lock time/far"); /* the hold's thread has ended */
    }
    actor_do(holder, "0", "unlock time/far");
    actor_end(holder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timedlock_succeeds_when_free_whatever_the_time),
        cmocka_unit_test(test_timedlock_answers_at_once_when_held_and_past),
        cmocka_unit_test(test_timedlock_is_never_early),
        cmocka_unit_test(test_timedlock_ends_soon_after_its_time),
        cmocka_unit_test(test_timedlock_succeeds_when_unlocked_before_its_time),
        cmocka_unit_test(test_unlock_passes_over_who_timed_out),
        cmocka_unit_test(test_timedlock_owns_or_not_when_grant_and_timeout_race),
        cmocka_unit_test(test_clocklock_refuses_when_the_clock_is_unsuitable),
        cmocka_unit_test(test_timedlock_waits_when_the_time_is_very_far),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

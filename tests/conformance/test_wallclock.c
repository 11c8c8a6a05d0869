/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine's wall clock is set while locks are held and waited for: scenario 20.
 *
 * The clock itself is not changed: this program replaces the two functions through which a process gets the time,
 * clock_gettime() and sem_clockwait(), and lets CLOCK_REALTIME jump there. As in the kernel, a wait ends if the clock
 * jumps past its deadline.
 */
#include <dlfcn.h>
#include <semaphore.h>

#include "../lib/testlib.h"

static time_t jumped_s; /* by how much CLOCK_REALTIME is ahead */
static int waits;       /* waits for a semaphore by CLOCK_REALTIME so far */

static void jump(time_t s)
{
    __atomic_add_fetch(&jumped_s, s, __ATOMIC_SEQ_CST);
}

static int (*real_gettime)(clockid_t, struct timespec *);
static int (*real_wait)(sem_t *, clockid_t, const struct timespec *);

__attribute__((__constructor__)) static void find_real_functions(void)
{
    *(void **)&real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    *(void **)&real_wait = dlsym(RTLD_NEXT, "sem_clockwait");
}

/* Seen by the library instead of libc's. */
int clock_gettime(clockid_t clock, struct timespec *ret_now)
{
    int result;

    if (!real_gettime)
        find_real_functions();
    result = real_gettime(clock, ret_now);
    if (result == 0 && clock == CLOCK_REALTIME)
        ret_now->tv_sec += __atomic_load_n(&jumped_s, __ATOMIC_SEQ_CST);
    return result;
}

/* Looks every 5 ms at the clock that jumps. */
int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
    if (clock != CLOCK_REALTIME)
        return real_wait(semaphore, clock, until);
    __atomic_add_fetch(&waits, 1, __ATOMIC_SEQ_CST);
    for (;;) {
        struct timespec soon = wait_time_in_ms(CLOCK_MONOTONIC, 5);

        if (real_wait(semaphore, CLOCK_MONOTONIC, &soon) == 0)
            return 0;
        if (errno != ETIMEDOUT || wait_is_reached(CLOCK_REALTIME, until))
            return -1;
    }
}

/* POSIX scenario 20: the wall clock goes an hour forward: a wait until in half an hour is over. */
static void test_timedlock_ends_when_the_wall_clock_jumps_beyond_its_time(void **state)
{
    dmutex_t mutex = DMUTEX_INITIALIZER("wallclock/timed");
    struct actor *holder = actor_start(the_server);
    struct timespec until = wait_time_in_ms(CLOCK_REALTIME, 1800 * 1000);
    struct errand waiter;

    (void)state;
    actor_do(holder, "0", "lock wallclock/timed");
    errand_begin_until(&waiter, &mutex, CLOCK_REALTIME, &until);
    wait_until(waiters_of(&mutex) == 1);
    assert_false(errand_is_over(&waiter));
    side_set_bound(the_server->side, "timed", 2000);
    jump(3600);
    assert_result(errand_join(&waiter), ETIMEDOUT);
    assert_false(side_is_control_over(the_server->side, "timed"));
    assert_true(waits > 0);
    jump(-3600);
    actor_do(holder, "0", "unlock wallclock/timed");
    actor_end(holder);
}

/* POSIX scenario 20: the wall clock goes back: a wait by the wall clock lasts, and is granted nevertheless. */
static void test_timedlock_goes_on_when_the_wall_clock_jumps_back(void **state)
{
    dmutex_t mutex = DMUTEX_INITIALIZER("wallclock/back");
    struct actor *holder = actor_start(the_server);
    struct timespec until = wait_time_in_ms(CLOCK_REALTIME, 300);
    struct errand waiter;

    (void)state;
    actor_do(holder, "0", "lock wallclock/back");
    jump(-3600);
    errand_begin_until(&waiter, &mutex, CLOCK_REALTIME, &until);
    side_set_control(the_server->side, "back", 600);
    side_await_control(the_server->side, "back");
    assert_false(errand_is_over(&waiter));
    actor_do(holder, "0", "unlock wallclock/back");
    assert_result(errand_join(&waiter), 0);
    jump(3600);
    actor_end(holder);
}

/* POSIX scenario 20: a wait on CLOCK_MONOTONIC does not change when the wall clock jumps, forward or back. */
static void test_clocklock_keeps_its_time_when_the_wall_clock_jumps(void **state)
{
    dmutex_t mutex = DMUTEX_INITIALIZER("wallclock/clock");
    struct actor *holder = actor_start(the_server);
    struct timespec until = wait_time_in_ms(CLOCK_MONOTONIC, 300);
    struct errand waiter;

    (void)state;
    actor_do(holder, "0", "lock wallclock/clock");
    side_set_bound(the_server->side, "clock", 300 + 1000);
    errand_begin_until(&waiter, &mutex, CLOCK_MONOTONIC, &until);
    wait_until(waiters_of(&mutex) == 1 || errand_is_over(&waiter));
    jump(3600);
    jump(-7200);
    assert_result(errand_join(&waiter), ETIMEDOUT);
    assert_true(wait_is_reached(CLOCK_MONOTONIC, &until));
    assert_false(side_is_control_over(the_server->side, "clock"));
    jump(3600);
    actor_do(holder, "0", "unlock wallclock/clock");
    actor_end(holder);
}

/* POSIX scenario 20: a hold is renewed and certain for any jump of the wall clock. */
static void test_hold_goes_on_when_the_wall_clock_jumps(void **state)
{
    const time_t jumps[] = { 3600, -7200, 86400 * 365, -86400 * 365 + 3600 };
    dmutex_t mutex;
    uint64_t token;

    (void)state;
    make_normal(&mutex, "wallclock/hold", 300);
    assert_result(dmutex_lock(&mutex), 0);
    token = token_of(&mutex);
    for (size_t i = 0; i < sizeof jumps / sizeof jumps[0]; i++) {
        jump(jumps[i]);
        assert_within(remaining_of(&mutex), 1, 300);
        side_set_control(the_server->side, "hold", 350);
        side_await_control(the_server->side, "hold");
        assert_within(remaining_of(&mutex), 1, 300);
        assert_int_equal(holdcount_of(&mutex), 1);
        assert_true(is_locked(&mutex));
    }
    assert_int_equal(jumped_s, 0);
    assert_true(token_of(&mutex) == token);
    assert_result(dmutex_unlock(&mutex), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timedlock_ends_when_the_wall_clock_jumps_beyond_its_time),
        cmocka_unit_test(test_timedlock_goes_on_when_the_wall_clock_jumps_back),
        cmocka_unit_test(test_clocklock_keeps_its_time_when_the_wall_clock_jumps),
        cmocka_unit_test(test_hold_goes_on_when_the_wall_clock_jumps),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

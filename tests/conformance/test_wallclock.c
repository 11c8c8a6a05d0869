/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine's wall clock is set while locks are held and waited for (scenario 20), and hosts whose wall clocks are
 * twenty minutes apart share a mutex as if the clocks agreed (failure 18).
 *
 * No clock is changed: this program replaces the two functions through which a process gets the time, clock_gettime()
 * and sem_clockwait().  CLOCK_REALTIME is ahead as the test says, or by the value in an actor's environment;
 * CLOCK_BOOTTIME can be made to jump, as if the server's clock had been set.  As in the kernel, a wait ends if the
 * clock jumps past its deadline.
 */
#include <dlfcn.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/testlib.h"

#define AHEAD "TEST_WALL_AHEAD"
#define LEASE 300
#define MANY_LEASES (4 * LEASE)
#define SLACK 1000

static time_t wall_ahead_s, boot_ahead_s; /* atomic */
static int waits;                         /* waits for a semaphore by CLOCK_REALTIME so far */

static void jump(time_t s)
{
    __atomic_add_fetch(&wall_ahead_s, s, __ATOMIC_SEQ_CST);
}

static int (*real_gettime)(clockid_t, struct timespec *);
static int (*real_wait)(sem_t *, clockid_t, const struct timespec *);

__attribute__((__constructor__)) static void find_real_functions(void)
{
    const char *ahead = getenv(AHEAD);

    *(void **)&real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    *(void **)&real_wait = dlsym(RTLD_NEXT, "sem_clockwait");
    wall_ahead_s = ahead ? strtol(ahead, NULL, 10) : 0;
}

/* Seen by the library instead of libc's. */
int clock_gettime(clockid_t clock, struct timespec *ret_now)
{
    int result;

    if (!real_gettime)
        find_real_functions();
    result = real_gettime(clock, ret_now);
    if (result == 0 && clock == CLOCK_REALTIME)
        ret_now->tv_sec += __atomic_load_n(&wall_ahead_s, __ATOMIC_SEQ_CST);
    if (result == 0 && clock == CLOCK_BOOTTIME)
        ret_now->tv_sec += __atomic_load_n(&boot_ahead_s, __ATOMIC_SEQ_CST);
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

/* ---- the clock jumps --------------------------------------------------------------------- */

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
    assert_int_equal(wall_ahead_s, 0);
    assert_true(token_of(&mutex) == token);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* ---- the clocks differ ------------------------------------------------------------------- */

static dmutex_t mutex;

/* A host whose clock is ten minutes fast, one whose clock is ten minutes slow, and one with the right time. */
#define HOSTS 3
static struct actor *hosts[HOSTS];

static int begin_test(void **state)
{
    static const char *const ahead[HOSTS] = { AHEAD "=600", AHEAD "=-600", AHEAD "=0" };

    (void)state;
    for (int i = 0; i < HOSTS; i++)
        hosts[i] = actor_start_with(the_server, ahead[i], NULL);
    return 0;
}

static int end_test(void **state)
{
    (void)state;
    for (int i = 0; i < HOSTS; i++)
        actor_end(hosts[i]);
    return 0;
}

static void init_all(const char *name)
{
    make_robust(&mutex, name, LEASE);
    for (int i = 0; i < HOSTS; i++)
        actor_do(hosts[i], "0", "init %s robust lease=%d", name, LEASE);
}

/* Failure 18: a hold is valid for its lease and renewed, neither over at once nor immortal. */
static void test_a_hold_goes_on_when_the_clock_is_wrong(void **state)
{
    (void)state;
    init_all("apart/hold");
    for (int i = 0; i < HOSTS; i++) {
        actor_do(hosts[i], "0", "lock apart/hold");
        let_pass(MANY_LEASES);
        assert_within(actor_value(hosts[i], "remaining apart/hold"), 1, LEASE);
        assert_within(side_int(the_server->side, "PTTL %s", key_of("lock", "apart/hold")), 1, LEASE);
        actor_do(hosts[i], "0 0", "lost");
        actor_do(hosts[i], "0", "unlock apart/hold");
        wait_until(!is_locked(&mutex));
    }
}

/* Failure 18: nobody is taken for dead, or comes too early, because of another's clock. */
static void test_waiters_keep_their_order_when_their_clocks_differ(void **state)
{
    (void)state;
    init_all("apart/order");
    assert_result(dmutex_lock(&mutex), 0);
    for (int i = 0; i < HOSTS; i++) {
        actor_send(hosts[i], "lock apart/order");
        wait_until(waiters_of(&mutex) == i + 1);
    }
    let_pass(MANY_LEASES);
    assert_int_equal(waiters_of(&mutex), HOSTS);
    assert_true(remaining_of(&mutex) > 0);
    assert_result(dmutex_unlock(&mutex), 0);
    for (int i = 0; i < HOSTS; i++) {
        actor_expect(hosts[i], "0");
        for (int later = i + 1; later < HOSTS; later++)
            assert_true(actor_is_silent(hosts[later]));
        actor_do(hosts[i], "0", "unlock apart/order");
    }
}

/* Failure 18: a killed owner's lease ends on time, for any clocks of both. */
static void test_a_dead_owners_lock_is_acquired_in_time_when_the_clocks_differ(void **state)
{
    (void)state;
    init_all("apart/dead");
    for (int i = 0; i < HOSTS; i++) {
        struct actor *next = hosts[(i + 1) % HOSTS];

        actor_do(hosts[i], "0", "lock apart/dead");
        actor_send(next, "lock apart/dead");
        wait_until(waiters_of(&mutex) == 1);
        assert_true(actor_is_silent(next));
        promise_within(LEASE + SLACK);
        actor_stop(hosts[i]);
        actor_expect(next, "EOWNERDEAD");
        assert_kept();
        actor_cont(hosts[i]);
        actor_do(next, "0", "consistent apart/dead");
        actor_do(next, "0", "unlock apart/dead");
        actor_do(hosts[i], "EPERM", "unlock apart/dead");
    }
}

/* A timed lock uses its own host's clock. */
static void test_timedlock_ends_by_its_own_clock_when_the_clocks_differ(void **state)
{
    (void)state;
    init_all("apart/timed");
    assert_result(dmutex_lock(&mutex), 0);
    for (int i = 0; i < HOSTS; i++) {
        struct timespec until = wait_time_in_ms(CLOCK_MONOTONIC, 200);

        promise_within(200 + SLACK);
        actor_do(hosts[i], "ETIMEDOUT", "timedlock apart/timed 200");
        assert_true(wait_is_reached(CLOCK_MONOTONIC, &until));
        assert_kept();
    }
    assert_result(dmutex_unlock(&mutex), 0);
}

/* POSIX scenario 4: tokens rise from host to host. */
static void test_tokens_rise_when_the_clocks_differ(void **state)
{
    long long last = 0;

    (void)state;
    init_all("apart/token");
    for (int i = 0; i < 4 * HOSTS; i++) {
        long long token;

        actor_do(hosts[i % HOSTS], "0", "lock apart/token");
        token = actor_value(hosts[i % HOSTS], "token apart/token");
        assert_true(token > last);
        last = token;
        actor_do(hosts[i % HOSTS], "0", "unlock apart/token");
    }
}

static int steps_logged;

static void note_step(int level, const char *message, void *user)
{
    (void)user;
    if (level == DMUTEX_LOG_WARN && strstr(message, "clock was stepped"))
        __atomic_add_fetch(&steps_logged, 1, __ATOMIC_RELEASE);
}

static void lock_and_unlock_often(int times)
{
    for (int i = 0; i < times; i++)
        assert_result(lock_and_unlock(&mutex), 0);
}

/* A step of the server's clock against ours is logged, and the usual drift is not. */
static void test_a_step_of_the_servers_clock_is_logged(void **state)
{
    (void)state;
    make_fair(&mutex, "apart/step", &kinds[0], 60000); /* each lock hears the server's clock */
    assert_result(dmutex_setlog_np(note_step, NULL), 0);
    lock_and_unlock_often(20);
    assert_int_equal(__atomic_load_n(&steps_logged, __ATOMIC_ACQUIRE), 0);
    __atomic_store_n(&boot_ahead_s, 5, __ATOMIC_SEQ_CST);
    lock_and_unlock_often(1);
    wait_until(__atomic_load_n(&steps_logged, __ATOMIC_ACQUIRE) == 1);
    lock_and_unlock_often(20);
    assert_int_equal(__atomic_load_n(&steps_logged, __ATOMIC_ACQUIRE), 1);
    assert_result(dmutex_setlog_np(NULL, NULL), 0);
}

#define APART_TEST(test) cmocka_unit_test_setup_teardown(test, begin_test, end_test)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timedlock_ends_when_the_wall_clock_jumps_beyond_its_time),
        cmocka_unit_test(test_timedlock_goes_on_when_the_wall_clock_jumps_back),
        cmocka_unit_test(test_clocklock_keeps_its_time_when_the_wall_clock_jumps),
        cmocka_unit_test(test_hold_goes_on_when_the_wall_clock_jumps),
        APART_TEST(test_a_hold_goes_on_when_the_clock_is_wrong),
        APART_TEST(test_waiters_keep_their_order_when_their_clocks_differ),
        APART_TEST(test_a_dead_owners_lock_is_acquired_in_time_when_the_clocks_differ),
        APART_TEST(test_timedlock_ends_by_its_own_clock_when_the_clocks_differ),
        APART_TEST(test_tokens_rise_when_the_clocks_differ),
        cmocka_unit_test(test_a_step_of_the_servers_clock_is_logged),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

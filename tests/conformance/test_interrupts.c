/* SPDX-License-Identifier: BSD-2-Clause */
/* Signals and cancellation: scenarios 36, 47, and the mutex part of 35. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "../lib/testlib.h"

/* ---- a storm of signals ------------------------------------------------------------------ */

static int alarms_seen; /* by any thread's handler */

static void count_alarm(int number)
{
    (void)number;
    __atomic_add_fetch(&alarms_seen, 1, __ATOMIC_RELAXED);
}

static int alarms(void)
{
    return __atomic_load_n(&alarms_seen, __ATOMIC_RELAXED);
}

static void forget_alarms(void)
{
    __atomic_store_n(&alarms_seen, 0, __ATOMIC_RELAXED);
}

static void handle(int number, void (*handler)(int))
{
    struct sigaction action = { .sa_handler = handler }; /* no SA_RESTART */

    sigemptyset(&action.sa_mask);
    assert_return_code(sigaction(number, &action, NULL), errno);
}

/* SIGALRM a thousand times a second, to any thread. */
static void begin_storm(void)
{
    const struct itimerval often = { { 0, 1000 }, { 0, 1000 } };

    forget_alarms();
    handle(SIGALRM, count_alarm);
    assert_return_code(setitimer(ITIMER_REAL, &often, NULL), errno);
}

/* The calling thread is spared, or not. */
static void spare_me(int how)
{
    sigset_t alarm_only;

    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    assert_int_equal(pthread_sigmask(how, &alarm_only, NULL), 0);
}

static void end_storm(void)
{
    const struct itimerval never = { { 0, 0 }, { 0, 0 } };

    assert_return_code(setitimer(ITIMER_REAL, &never, NULL), errno);
    handle(SIGALRM, SIG_DFL);
}

/* CPU time of the whole process, in ms. */
static int64_t cpu_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* POSIX scenario 36: lock and unlock in a storm of signals work as without. */
static void test_lock_works_when_signals_storm(void **state)
{
    struct actor *other = actor_start(the_server);
    dmutex_t mutex = DMUTEX_INITIALIZER("interrupts/storm");
    int rounds = 0;

    (void)state;
    actor_send(other, "count %s/storm 300 interrupts/storm 2", the_server->folder);
    begin_storm();
    do {
        assert_result(dmutex_lock(&mutex), 0);
        assert_result(dmutex_unlock(&mutex), 0);
        assert_result(dmutex_unlock(&mutex), EPERM);
        rounds++;
    } while (actor_is_silent(other) || alarms() < 100);
    end_storm();
    actor_expect(other, "0");
    assert_true(rounds > 0);
    actor_end(other);
}

/*
 * POSIX scenario 36: in a storm of signals, a waiter neither returns EINTR, nor is early, nor much later than without,
 * nor busy: it waits 400 ms, a control lasts 400 + 1000 ms, and less than half of that is spent computing.
 */
static void test_timedlock_keeps_its_time_when_signals_storm(void **state)
{
    const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC };
    struct actor *holder = actor_start(the_server);
    dmutex_t mutex = DMUTEX_INITIALIZER("interrupts/timed");

    (void)state;
    actor_do(holder, "0", "lock interrupts/timed");
    begin_storm();
    for (int c = 0; c < 2; c++) {
        struct timespec until = wait_time_in_ms(clocks[c], 400);
        int64_t before_ms = cpu_ms();

        side_set_bound(the_server->side, "timed", 400 + 1000);
        assert_result(dmutex_clocklock(&mutex, clocks[c], &until), ETIMEDOUT);
        assert_true(wait_is_reached(clocks[c], &until));
        assert_false(side_is_control_over(the_server->side, "timed"));
        assert_true(cpu_ms() - before_ms < 200);
    }
    end_storm();
    assert_true(alarms() > 100);
    actor_do(holder, "0", "unlock interrupts/timed");
    actor_end(holder);
}

/*
 * POSIX scenario 36: a waiter in a storm of signals is granted the mutex, and sends nothing more.
 */
static void test_waiter_is_granted_when_signals_storm(void **state)
{
    struct actor *holder = actor_start(the_server);
    dmutex_t mutex = DMUTEX_INITIALIZER("interrupts/granted");
    struct errand waiter;
    int64_t before;

    (void)state;
    actor_do(holder, "0", "lock interrupts/granted");
    begin_storm();
    errand_begin(&waiter, dmutex_lock, &mutex);
    spare_me(SIG_BLOCK);
    wait_until(waiters_at(the_server->side, "interrupts/granted") == 1);
    before = client_commands();
    forget_alarms();
    wait_until(alarms() >= 300);
    spare_me(SIG_UNBLOCK);
    assert_within(client_commands(), before, before + 3);
    actor_do(holder, "0", "unlock interrupts/granted");
    assert_result(errand_join(&waiter), 0);
    end_storm();
    actor_end(holder);
}

/* ---- a handler that locks ---------------------------------------------------------------- */

static dmutex_t inner = DMUTEX_INITIALIZER("interrupts/inner");

/*
 * The thread sanitizer reports each malloc() in a handler. Here the handlers interrupt a thread that sleeps, which is
 * no danger.
 */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "report_signal_unsafe=0";
}

/* The result of the handler's call on `inner`; -1: no result yet. */
static int inner_result = -1;

static int result_of_handler(void)
{
    return __atomic_load_n(&inner_result, __ATOMIC_ACQUIRE);
}

static void set_result(int result)
{
    __atomic_store_n(&inner_result, result, __ATOMIC_RELEASE);
}

static void lock_inner(int number)
{
    int kept = errno;

    (void)number;
    set_result(dmutex_lock(&inner));
    errno = kept;
}

/*
 * POSIX scenario 47: a handler that interrupts a waiting lock and locks another mutex gets it, and the wait continues.
 * (Inside a lock that does not wait a handler must not lock: it may hang.)
 */
static void test_handler_locks_another_when_it_interrupts_a_wait(void **state)
{
    struct actor *holder = actor_start(the_server);
    dmutex_t outer = DMUTEX_INITIALIZER("interrupts/outer");
    struct errand waiter;

    (void)state;
    set_result(-1);
    handle(SIGUSR1, lock_inner);
    actor_do(holder, "0", "lock interrupts/outer");
    errand_begin(&waiter, dmutex_lock, &outer);
    wait_until(waiters_of(&outer) == 1);
    errand_await_sleep(&waiter);
    assert_int_equal(pthread_kill(waiter.thread, SIGUSR1), 0);
    wait_until(result_of_handler() != -1);
    assert_result(result_of_handler(), 0);
    assert_true(is_locked(&inner));
    assert_false(errand_is_over(&waiter));
    actor_do(holder, "0", "unlock interrupts/outer");
    assert_result(errand_join(&waiter), 0);
    handle(SIGUSR1, SIG_DFL);
    wait_until(!is_locked(&inner) && !is_locked(&outer)); /* the thread has ended with both */
    actor_end(holder);
}

/* A handler that tries the very mutex that the thread waits for gets EBUSY. */
static void try_inner(int number)
{
    int kept = errno;

    (void)number;
    set_result(dmutex_trylock(&inner));
    errno = kept;
}

static void test_handler_tries_the_same_when_it_interrupts_a_wait(void **state)
{
    struct actor *holder = actor_start(the_server);
    struct errand waiter;

    (void)state;
    set_result(-1);
    handle(SIGUSR1, try_inner);
    actor_do(holder, "0", "lock interrupts/inner");
    errand_begin(&waiter, dmutex_lock, &inner);
    wait_until(waiters_of(&inner) == 1);
    errand_await_sleep(&waiter);
    assert_int_equal(pthread_kill(waiter.thread, SIGUSR1), 0);
    wait_until(result_of_handler() != -1);
    assert_result(result_of_handler(), EBUSY);
    assert_int_equal(waiters_of(&inner), 1);
    actor_do(holder, "0", "unlock interrupts/inner");
    assert_result(errand_join(&waiter), 0);
    handle(SIGUSR1, SIG_DFL);
    wait_until(!is_locked(&inner));
    actor_end(holder);
}

/* ---- cancellation ------------------------------------------------------------------------ */

/* A thread that is cancelled during, or before, a lock call. */
struct victim {
    dmutex_t *mutex;
    mutex_call call;
    bool is_lock; /* then the thread unlocks afterwards */
    pthread_t thread;
    int result;
    bool is_begun, may_go_on, is_over;
    int state_after;
};

static bool is_set(const bool *flag)
{
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static void set(bool *flag)
{
    __atomic_store_n(flag, true, __ATOMIC_RELEASE);
}

static void *suffer(void *user)
{
    struct victim *victim = user;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    set(&victim->is_begun);
    while (!is_set(&victim->may_go_on))
        wait_nap();
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    victim->result = victim->call(victim->mutex);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &victim->state_after);
    if (victim->is_lock && victim->result == 0)
        victim->result = dmutex_unlock(victim->mutex);
    set(&victim->is_over);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    pthread_testcancel();
    return NULL;
}

static void begin_victim(struct victim *victim, mutex_call call, bool is_lock, dmutex_t *mutex)
{
    *victim = (struct victim){ .mutex = mutex, .call = call, .is_lock = is_lock, .result = -1 };
    assert_int_equal(pthread_create(&victim->thread, NULL, suffer, victim), 0);
    wait_until(is_set(&victim->is_begun));
}

static void join_victim(struct victim *victim)
{
    void *end;

    wait_until(is_set(&victim->is_over));
    assert_int_equal(pthread_join(victim->thread, &end), 0);
    assert_ptr_equal(end, PTHREAD_CANCELED);
    assert_int_equal(victim->state_after, PTHREAD_CANCEL_ENABLE);
}

/* POSIX scenario 35: a thread that waits in lock is not cancelled before getting the mutex. */
static void test_waiting_lock_is_no_cancellation_point(void **state)
{
    struct actor *holder = actor_start(the_server);
    dmutex_t mutex = DMUTEX_INITIALIZER("interrupts/cancelled");
    struct victim victim;

    (void)state;
    actor_do(holder, "0", "lock interrupts/cancelled");
    begin_victim(&victim, dmutex_lock, true, &mutex);
    set(&victim.may_go_on);
    wait_until(waiters_of(&mutex) == 1);
    assert_int_equal(pthread_cancel(victim.thread), 0);
    for (int i = 0; i < 50; i++)
        wait_nap(); /* a chance to go wrong, nothing is waited for */
    assert_false(is_set(&victim.is_over));
    assert_int_equal(waiters_of(&mutex), 1);
    actor_do(holder, "0", "unlock interrupts/cancelled");
    join_victim(&victim);
    assert_result(victim.result, 0);
    wait_until(!is_locked(&mutex));
    actor_end(holder);
}

/* No call is a cancellation point, also not for a request that was pending before. */
static void test_call_is_no_cancellation_point_when_cancel_is_pending(void **state)
{
    const struct {
        mutex_call call;
        bool is_lock;
        int wanted;
    } calls[] = {
        { dmutex_lock, true, 0 },          { dmutex_trylock, true, 0 },         { timedlock_soon, true, 0 },
        { clocklock_soon, true, 0 },       { dmutex_unlock, false, EPERM },     { dmutex_consistent, false, EINVAL },
        { dmutex_renew_np, false, EPERM }, { dmutex_forceunlock_np, false, 0 }, { dmutex_destroy, false, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct victim victim;
        dmutex_t mutex;

        make_normal(&mutex, "interrupts/pending", 0);
        begin_victim(&victim, calls[i].call, calls[i].is_lock, &mutex);
        assert_int_equal(pthread_cancel(victim.thread), 0);
        set(&victim.may_go_on);
        join_victim(&victim);
        assert_result(victim.result, calls[i].wanted);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lock_works_when_signals_storm),
        cmocka_unit_test(test_timedlock_keeps_its_time_when_signals_storm),
        cmocka_unit_test(test_waiter_is_granted_when_signals_storm),
        cmocka_unit_test(test_handler_locks_another_when_it_interrupts_a_wait),
        cmocka_unit_test(test_handler_tries_the_same_when_it_interrupts_a_wait),
        cmocka_unit_test(test_waiting_lock_is_no_cancellation_point),
        cmocka_unit_test(test_call_is_no_cancellation_point_when_cancel_is_pending),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

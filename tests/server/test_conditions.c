/* SPDX-License-Identifier: BSD-2-Clause */
/* Conditions on a server: between processes, when waiters die, and when the server does. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define SHORT_LEASE 300
#define LONG_LEASE 60000
#define CROWD 40
#define CYCLES 200

static dmutex_t mutex, other;
static dcond_t cond = DCOND_INITIALIZER("cond/c");
static int woken; /* guarded by `mutex` */
static int turn;  /* guarded by `mutex` */

static int64_t waiters(const char *kind, const char *leaf)
{
    return side_int(the_server->side, "ZCARD dmutex:{cond}:%s:%s", kind, leaf);
}

/* Locks, waits, notes the ownership, and gives the mutex back; the result of the wait. */
static int wait_once(dmutex_t *guard)
{
    int result;

    if (dmutex_lock(guard))
        return ENOLCK;
    result = dcond_wait(&cond, guard);
    woken++;
    return dmutex_unlock(guard) ? ENOLCK : result;
}

static void begin_waits(struct errand *errands, int count)
{
    int64_t before = waiters("cond", "c");

    for (int i = 0; i < count; i++) {
        errand_begin(&errands[i], wait_once, &mutex);
        wait_until(waiters("cond", "c") == before + i + 1);
    }
}

static pid_t start_child(int (*work)(void))
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(work());
    return pid;
}

static int end_child(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int child_waits(void)
{
    return wait_once(&mutex);
}

static int child_signals(void)
{
    return dcond_signal(&cond);
}

static int wait_with_other(dmutex_t *guard)
{
    int result;

    if (dmutex_lock(guard))
        return ENOLCK;
    result = dcond_wait(&cond, guard);
    return dmutex_unlock(guard) ? ENOLCK : result;
}

/* POSIX scenario 32: a second mutex at one time is refused, and still owned; later the second mutex is as good. */
static void test_wait_refuses_another_mutex_when_somebody_waits(void **state)
{
    struct errand first, second;

    (void)state;
    make_normal(&mutex, "cond/m", LONG_LEASE);
    make_normal(&other, "cond/other", LONG_LEASE);
    begin_waits(&first, 1);
    assert_result(in_thread(wait_with_other, &other), EINVAL);
    assert_result(dcond_broadcast(&cond), 0);
    assert_result(errand_join(&first), 0);
    errand_begin(&second, wait_with_other, &other);
    wait_until(waiters("cond", "c") == 1);
    assert_result(dcond_signal(&cond), 0);
    assert_result(errand_join(&second), 0);
}

/* A named condition works with mutexes of the condition's group only. */
static void test_wait_refuses_a_mutex_of_another_group(void **state)
{
    dmutex_t stranger = DMUTEX_INITIALIZER("stranger/m");

    (void)state;
    assert_result(dmutex_lock(&stranger), 0);
    assert_result(dcond_wait(&cond, &stranger), EINVAL);
    assert_true(is_locked(&stranger));
    assert_result(dmutex_unlock(&stranger), 0);
}

/* A signal from a process that never waited finds the mutex without help. */
static void test_a_signal_wakes_when_its_process_never_waited(void **state)
{
    struct errand waiter;

    (void)state;
    begin_waits(&waiter, 1);
    assert_int_equal(end_child(start_child(child_signals)), 0);
    assert_result(errand_join(&waiter), 0);
}

/* POSIX scenario 25: a signal without a waiter is not kept. */
static void test_a_signal_is_not_kept_when_nobody_waits(void **state)
{
    struct timespec soon = wait_time_in_ms(CLOCK_REALTIME, 50);

    (void)state;
    assert_result(dcond_signal(&cond), 0);
    assert_result(dcond_broadcast(&cond), 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dcond_timedwait(&cond, &mutex, &soon), ETIMEDOUT);
    assert_true(wait_is_reached(CLOCK_REALTIME, &soon));
    assert_true(remaining_of(&mutex) > 0);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* POSIX scenario 37: a signal does not go to a waiter of a process that was killed before. */
static void test_a_signal_reaches_a_live_waiter_when_the_first_was_killed(void **state)
{
    struct errand waiter;
    pid_t child = start_child(child_waits);

    (void)state;
    wait_until(waiters("cond", "c") == 1);
    begin_waits(&waiter, 1);
    kill(child, SIGKILL);
    end_child(child);
    wait_until(side_count_channels(the_server->side) == 1);
    assert_result(dcond_signal(&cond), 0);
    assert_result(errand_join(&waiter), 0);
    assert_result(dcond_broadcast(&cond), 0);
}

/* A signal to a receiver that is killed before owning the mutex goes to the next waiter. */
static void test_a_signal_goes_on_when_its_receiver_is_killed(void **state)
{
    struct errand waiter;
    pid_t child;

    (void)state;
    make_normal(&mutex, "cond/short", SHORT_LEASE);
    child = start_child(child_waits);
    wait_until(waiters("cond", "c") == 1);
    begin_waits(&waiter, 1);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dcond_signal(&cond), 0);
    assert_int_equal(waiters("queue", "short"), 1);
    kill(child, SIGKILL);
    end_child(child);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(errand_join(&waiter), 0);
    make_normal(&mutex, "cond/m", LONG_LEASE);
}

/* POSIX scenario 33: a broadcast wakes each waiter once, one after the other, by few commands. */
static void test_a_broadcast_wakes_all_when_many_wait(void **state)
{
    struct errand crowd[CROWD];
    int64_t before;

    (void)state;
    woken = 0;
    begin_waits(crowd, CROWD);
    before = client_commands();
    assert_result(dcond_broadcast(&cond), 0);
    for (int i = 0; i < CROWD; i++)
        assert_result(errand_join(&crowd[i]), 0);
    assert_int_equal(woken, CROWD);
    assert_within(client_commands() - before, 1, 2 * CROWD);
}

static int alternate(dmutex_t *guard)
{
    int result = dmutex_lock(guard);

    for (int i = 0; i < CYCLES && !result; i++) {
        while (turn != 1 && !result)
            result = dcond_wait(&cond, guard);
        turn = 0;
        result = result ? result : dcond_broadcast(&cond);
    }
    return dmutex_unlock(guard) ? ENOLCK : result;
}

/* POSIX scenario 23: no signal is lost between two that take turns; a turn costs three commands at most. */
static void test_no_signal_is_lost_when_two_take_turns(void **state)
{
    struct errand partner;
    int64_t before;

    (void)state;
    turn = 0;
    assert_result(dmutex_lock(&mutex), 0);
    before = client_commands();
    errand_begin(&partner, alternate, &mutex);
    for (int i = 0; i < CYCLES; i++) {
        turn = 1;
        assert_result(dcond_broadcast(&cond), 0);
        while (turn != 0)
            assert_result(dcond_wait(&cond, &mutex), 0);
    }
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(errand_join(&partner), 0);
    assert_within(client_commands() - before, CYCLES, 2 * 3 * CYCLES);
}

/* The connection that hears signals is cut: the connection comes back, and the next signal arrives. */
static void test_a_signal_arrives_when_the_inbox_was_cut(void **state)
{
    struct errand waiter;

    (void)state;
    begin_waits(&waiter, 1);
    side_int(the_server->side, "CLIENT KILL TYPE pubsub");
    assert_result(dcond_signal(&cond), 0);
    assert_result(errand_join(&waiter), 0);
}

/* A server that comes back empty has forgotten the waiters: each wakes, and owns the mutex. */
static void test_all_wake_when_the_server_has_forgotten_them(void **state)
{
    struct errand crowd[CROWD];

    (void)state;
    woken = 0;
    begin_waits(crowd, CROWD);
    server_kill(the_server);
    server_restart(the_server);
    for (int i = 0; i < CROWD; i++)
        assert_result(errand_join(&crowd[i]), 0);
    assert_int_equal(woken, CROWD);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wait_refuses_another_mutex_when_somebody_waits),
        cmocka_unit_test(test_wait_refuses_a_mutex_of_another_group),
        cmocka_unit_test(test_a_signal_wakes_when_its_process_never_waited),
        cmocka_unit_test(test_a_signal_is_not_kept_when_nobody_waits),
        cmocka_unit_test(test_a_signal_reaches_a_live_waiter_when_the_first_was_killed),
        cmocka_unit_test(test_a_signal_goes_on_when_its_receiver_is_killed),
        cmocka_unit_test(test_a_broadcast_wakes_all_when_many_wait),
        cmocka_unit_test(test_no_signal_is_lost_when_two_take_turns),
        cmocka_unit_test(test_a_signal_arrives_when_the_inbox_was_cut),
        cmocka_unit_test(test_all_wake_when_the_server_has_forgotten_them),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

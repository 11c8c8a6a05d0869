/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork(): the child is another owner, has nothing of the parent's, and disturbs nothing of it.
 * Left out under the thread sanitizer.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dmutex/testing.h>

#include "../lib/testlib.h"

#define LONG_LEASE 60000
#define AT_ONCE 5000

static dmutex_t mutex;

/* 0 if all calls of a child answered as they should; else the number of the first wrong call. */
static int judge(const bool *answers, int count)
{
    for (int i = 0; i < count; i++) {
        if (!answers[i])
            return i + 1;
    }
    return 0;
}

static int run_child(int (*run)(void))
{
    pid_t pid = keeper_fork();

    if (pid == 0)
        _exit(run());
    return WEXITSTATUS(keeper_reap(pid));
}

/* ---- what the child owns ----------------------------------------------------------------- */

static int try_all_that_needs_a_hold(void)
{
    struct timespec past = { .tv_sec = 0 };
    unsigned count = 9;
    uint64_t token;
    int64_t left_ms;
    const bool answers[] = {
        dmutex_unlock(&mutex) == EPERM,
        dmutex_trylock(&mutex) == EBUSY,
        dmutex_renew_np(&mutex) == EPERM,
        dmutex_token_np(&mutex, &token) == EPERM,
        dmutex_remaining_np(&mutex, &left_ms) == EPERM,
        dmutex_holdcount_np(&mutex, &count) == 0 && count == 0,
        dmutex_timedlock(&mutex, &past) == ETIMEDOUT,
        dmutex_consistent(&mutex) != 0,
    };

    return judge(answers, sizeof answers / sizeof answers[0]);
}

/*
 * POSIX scenario 45: the child of an owner owns nothing, of any kind; the child's end changes nothing.  The timed lock
 * may give up before the server has answered; exit() takes its place in the queue back, and _exit() could not.
 */
static void test_the_child_owns_nothing_when_the_parent_holds(void **state)
{
    (void)state;
    for (int i = 0; i < KIND_COUNT; i++) {
        uint64_t token;
        pid_t pid;

        make_mutex(&mutex, "fork/nothing", &kinds[i], 0);
        assert_result(dmutex_lock(&mutex), 0);
        token = token_of(&mutex);
        pid = keeper_fork();
        if (pid == 0)
            exit(try_all_that_needs_a_hold());
        assert_int_equal(WEXITSTATUS(keeper_reap(pid)), 0);
        assert_true(token_of(&mutex) == token);
        assert_int_equal(holdcount_of(&mutex), 1);
        assert_result(dmutex_renew_np(&mutex), 0);
        assert_result(dmutex_unlock(&mutex), 0);
    }
}

/* POSIX scenario 45, failure 21: a child that ends by exit() orphans nothing of the parent's. */
static void test_the_parents_hold_goes_on_when_the_child_exits(void **state)
{
    pid_t pid;

    (void)state;
    make_robust(&mutex, "fork/exits", 1000);
    assert_result(dmutex_lock(&mutex), 0);
    pid = keeper_fork();
    if (pid == 0)
        exit(0);
    assert_int_equal(keeper_reap(pid), 0);
    side_set_control(the_server->side, "leases", 2500);
    side_await_control(the_server->side, "leases");
    assert_true(remaining_of(&mutex) > 0);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
}

static int lock_for_good(void)
{
    return dmutex_lock(&mutex);
}

/* POSIX scenario 45: the child waits for the parent's unlock as any other process does. */
static void test_the_child_owns_when_the_parent_unlocks(void **state)
{
    pid_t pid;

    (void)state;
    make_robust(&mutex, "fork/waits", (unsigned)late_stretched_ms(400));
    assert_result(dmutex_lock(&mutex), 0);
    pid = keeper_fork();
    if (pid == 0)
        _exit(lock_for_good());
    wait_until(waiters_of(&mutex) == 1);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_int_equal(WEXITSTATUS(keeper_reap(pid)), 0);
    assert_result(dmutex_lock(&mutex), EOWNERDEAD); /* the child died holding */
    assert_result(dmutex_consistent(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* Waits in the queue, so that the inbox is open, leaves a child, and is killed. */
static int leave_a_child(volatile pid_t *ret_child)
{
    int result = lock_and_unlock(&mutex);
    pid_t child = fork();

    while (child == 0) {
        alarm(WAIT_LIMIT_MS / 1000); /* no process may be left to end the child */
        pause();
    }
    __atomic_store_n(ret_child, result == 0 ? child : -1, __ATOMIC_RELEASE);
    return pause();
}

/* Failure 16: a forked child keeps no socket of a killed parent alive. */
static void test_the_parents_inbox_ends_with_the_parent_when_a_child_lives_on(void **state)
{
    int channels = side_count_channels(the_server->side);
    volatile pid_t *child = mmap(NULL, sizeof *child, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t parent;

    (void)state;
    make_normal(&mutex, "fork/inbox", LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    parent = keeper_fork();
    if (parent == 0)
        _exit(leave_a_child(child));
    wait_until(waiters_of(&mutex) == 1);
    assert_result(dmutex_unlock(&mutex), 0);
    wait_until(__atomic_load_n(child, __ATOMIC_ACQUIRE) != 0);
    assert_true(*child > 0);
    assert_int_equal(side_count_channels(the_server->side), channels + 1);
    wait_until(!is_locked(&mutex));
    promise_within(AT_ONCE);
    assert_int_equal(kill(parent, SIGKILL), 0);
    keeper_reap(parent);
    wait_until(side_count_channels(the_server->side) == channels);
    assert_kept();
    assert_int_equal(kill(*child, SIGKILL), 0);
    munmap((void *)child, sizeof *child);
}

/* ---- fork in the middle of things -------------------------------------------------------- */

static struct {
    bool is_over;
    int result;
    long rounds;
    char name[32];
} workers[4];

static void *work(void *user)
{
    dmutex_t own;
    int index = (int)(intptr_t)user, result = 0;

    dmutex_init_np(&own, workers[index].name, NULL);
    while (!result && !__atomic_load_n(&workers[index].is_over, __ATOMIC_ACQUIRE)) {
        result = lock_and_unlock(&own);
        workers[index].rounds++;
    }
    workers[index].result = result;
    return NULL;
}

/* The child's own first use, and the first use of the grandchild. */
static int use_in_two_generations(void)
{
    dmutex_t own = DMUTEX_INITIALIZER("fork/child");
    int result = lock_and_unlock(&own);
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(result ? result : lock_and_unlock(&own));
    if (waitpid(pid, &status, 0) != pid)
        return errno;
    return result ? result : WEXITSTATUS(status);
}

/* POSIX scenario 46: forks while other threads are in the middle of requests harm neither side. */
static void test_fork_is_harmless_when_other_threads_are_busy(void **state)
{
    pthread_t threads[4];

    (void)state;
    for (int i = 0; i < 4; i++) {
        /* two workers on one mutex: there are waiters, too */
        snprintf(workers[i].name, sizeof workers[i].name, "fork/busy%d", i / 2);
        workers[i].is_over = false;
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i), 0);
    }
    for (int forks = 0; forks < repetitions(40); forks++)
        assert_int_equal(run_child(use_in_two_generations), 0);
    for (int i = 0; i < 4; i++)
        __atomic_store_n(&workers[i].is_over, true, __ATOMIC_RELEASE);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_result(workers[i].result, 0);
        assert_true(workers[i].rounds > 0);
    }
}

/* POSIX scenario 46: vfork() and exec() touch nothing. */
static void test_the_parent_goes_on_when_a_vfork_child_executes(void **state)
{
    struct actor *a = actor_start(the_server);

    (void)state;
    make_normal(&mutex, "fork/vfork", 0);
    actor_do(a, "0", "lock fork/vfork");
    for (int i = 0; i < 10; i++)
        actor_do(a, "0", "in-vfork-exec");
    actor_do(a, "0", "renew fork/vfork");
    actor_do(a, "0", "unlock fork/vfork");
    actor_end(a);
}

static volatile bool has_forked;
static int child_result = -1;

static void fork_when_lost(const char *name, uint64_t token, void *user)
{
    pid_t pid;
    int status;

    (void)name;
    (void)token;
    (void)user;
    pid = fork();
    if (pid == 0) {
        dmutex_t other = DMUTEX_INITIALIZER("fork/from-callback");

        _exit(lock_and_unlock(&other));
    }
    if (waitpid(pid, &status, 0) == pid)
        child_result = WEXITSTATUS(status);
    __atomic_store_n(&has_forked, true, __ATOMIC_RELEASE);
}

/* Failure 21: a fork inside the lost callback, in the library's own thread, is a fork like any
 * other. */
static void test_fork_is_harmless_when_done_in_the_lost_callback(void **state)
{
    (void)state;
    make_normal(&mutex, "fork/callback", 200);
    assert_result(dmutex_setlost_np(fork_when_lost, NULL), 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    wait_until(__atomic_load_n(&has_forked, __ATOMIC_ACQUIRE));
    assert_result(dmutex_setlost_np(NULL, NULL), 0);
    assert_int_equal(child_result, 0);
    assert_result(dmutex_unlock(&mutex), EPERM);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* ---- the end of a process ---------------------------------------------------------------- */

static int use_mutex(void)
{
    return lock_and_unlock(&mutex);
}

/* The server has executed an unlock that has returned: _exit() at once loses nothing. */
static void test_the_lock_is_free_when_the_process_ends_straight_after_unlock(void **state)
{
    (void)state;
    make_normal(&mutex, "fork/unlocked", LONG_LEASE);
    for (int i = 0; i < repetitions(100); i++) {
        assert_int_equal(run_child(use_mutex), 0);
        assert_false(is_locked(&mutex));
    }
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
}

static int lock_many_and_unlock(void)
{
    dmutex_t many[20];
    int result = 0;

    for (int i = 0; i < 20; i++) {
        char name[32];

        snprintf(name, sizeof name, "fork/many%d", i);
        dmutex_init_np(&many[i], name, NULL);
        result = result ? result : dmutex_lock(&many[i]);
    }
    for (int i = 0; i < 20; i++)
        result = result ? result : dmutex_unlock(&many[i]);
    return result;
}

/* Of twenty unlocks in a row none is lost either when exit() ends the process. */
static void test_all_locks_are_free_when_the_process_exits_after_many_unlocks(void **state)
{
    (void)state;
    for (int i = 0; i < repetitions(20); i++) {
        pid_t pid;

        promise_within(AT_ONCE);
        pid = keeper_fork();
        if (pid == 0)
            exit(lock_many_and_unlock());
        assert_int_equal(WEXITSTATUS(keeper_reap(pid)), 0);
        assert_int_equal(side_count_keys(the_server->side, "*:lock:many*"), 0);
        assert_kept();
    }
}

/* ---- a server of <dmutex/testing.h> ------------------------------------------------------ */

static int use_test_server(dmutex_test_server_t *server)
{
    dmutex_t own = DMUTEX_INITIALIZER("fork/own");
    dmutex_test_server_t *inner;

    if (dmutex_trylock(&mutex) != EBUSY || dmutex_lock(&own) != 0 || dmutex_unlock(&own) != 0)
        return 1;
    if (dmutex_test_server_stop(server) != EPERM || dmutex_test_server_kill(server) != EPERM)
        return 2;
    if (dmutex_test_server_start(&inner) != 0 || dmutex_trylock(&mutex) != 0 || dmutex_unlock(&mutex) != 0)
        return 3;
    if (dmutex_test_server_stop(inner) != 0 || dmutex_trylock(&mutex) != EBUSY)
        return 4;
    return 0;
}

/* The child leaves that server to the parent, and may start its own. */
static void test_the_child_uses_the_test_server_when_the_parent_does(void **state)
{
    dmutex_test_server_t *server;
    pid_t pid;

    (void)state;
    assert_result(dmutex_test_server_start(&server), 0);
    make_normal(&mutex, "fork/parent", 0);
    assert_result(dmutex_lock(&mutex), 0);
    pid = keeper_fork();
    if (pid == 0)
        _exit(use_test_server(server));
    assert_int_equal(WEXITSTATUS(keeper_reap(pid)), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_test_server_stop(server), 0);
}

/*
 * A child of fork() has none of the leases that its parent keeps, and asks the server; the parent's lease is
 * unaffected.
 */
static void test_child_asks_the_server_when_its_parent_keeps_the_lease(void **state)
{
    struct actor *keeper = actor_start(the_server);
    dmutex_t same;

    (void)state;
    make_normal(&same, "fork/kept", 60000);
    actor_do(keeper, "0", "init fork/kept lease=60000 linger=60000");
    actor_open_inbox(keeper); /* after that the lease is kept */
    actor_do(keeper, "0", "lock fork/kept");
    actor_do(keeper, "0", "unlock fork/kept");
    assert_true(is_locked(&same));
    promise_within(8000);
    actor_do(keeper, "0", "in-child-exit lock fork/kept");
    assert_kept();
    actor_do(keeper, "0", "lock fork/kept");
    actor_do(keeper, "0", "unlock fork/kept");
    actor_end(keeper);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_child_owns_nothing_when_the_parent_holds),
        cmocka_unit_test(test_the_parents_hold_goes_on_when_the_child_exits),
        cmocka_unit_test(test_the_child_owns_when_the_parent_unlocks),
        cmocka_unit_test(test_the_parents_inbox_ends_with_the_parent_when_a_child_lives_on),
        cmocka_unit_test(test_fork_is_harmless_when_other_threads_are_busy),
        cmocka_unit_test(test_the_parent_goes_on_when_a_vfork_child_executes),
        cmocka_unit_test(test_fork_is_harmless_when_done_in_the_lost_callback),
        cmocka_unit_test(test_the_lock_is_free_when_the_process_ends_straight_after_unlock),
        cmocka_unit_test(test_all_locks_are_free_when_the_process_exits_after_many_unlocks),
        cmocka_unit_test(test_the_child_uses_the_test_server_when_the_parent_does),
        cmocka_unit_test(test_child_asks_the_server_when_its_parent_keeps_the_lease),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    test_put_server_into_path();
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

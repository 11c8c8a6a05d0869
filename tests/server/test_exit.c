/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exit() and quick_exit() while threads are in lock, in wait and in critical sections: all claims are given back at
 * once, nobody gets a false death, and no call of another thread returns after that.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define LONG_LEASE 60000
#define AT_ONCE 5000
#define MOST_THREADS 4

static dmutex_t mutex;
static dcond_t cond = DCOND_INITIALIZER("exit/cond");

enum place { OUTSIDE, LOCKING, INSIDE, UNLOCKING };

/* What test and child tell each other; other tests count from 0. */
enum { IS_CONNECTED, IS_AWAY, IS_IN_HANDLER, IS_BACK, AT_END, WORDS };

/* What a child's threads report, in memory shared with the test. */
static struct shared {
    volatile enum place places[MOST_THREADS];
    volatile long returned; /* calls that came back */
    volatile pid_t tids[MOST_THREADS];
    volatile bool is_told[WORDS];
} * shared;

static int begin_group(void **state)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? -1 : test_group_setup(state);
}

static void begin(const char *name)
{
    memset((void *)shared, 0, sizeof *shared);
    make_robust(&mutex, name, LONG_LEASE);
}

static void tell(int what)
{
    __atomic_store_n(&shared->is_told[what], true, __ATOMIC_RELEASE);
}

static bool is_told(int what)
{
    return __atomic_load_n(&shared->is_told[what], __ATOMIC_ACQUIRE);
}

/* In a child, where no test can fail. */
static void await_told(int what)
{
    while (!is_told(what))
        wait_nap();
}

/* ---- a child's threads ------------------------------------------------------------------- */

static void *lock_again_and_again(void *user)
{
    int index = (int)(intptr_t)user;

    shared->tids[index] = (pid_t)syscall(SYS_gettid);
    for (;;) {
        shared->places[index] = LOCKING;
        if (dmutex_lock(&mutex) == EOWNERDEAD)
            dmutex_consistent(&mutex);
        shared->places[index] = INSIDE;
        shared->returned++;
        shared->places[index] = UNLOCKING;
        dmutex_unlock(&mutex);
        shared->places[index] = OUTSIDE;
    }
    return NULL;
}

static void *lock_once(void *user)
{
    shared->tids[(intptr_t)user] = (pid_t)syscall(SYS_gettid);
    dmutex_lock(&mutex);
    __atomic_add_fetch(&shared->returned, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void *lock_twice(void *user)
{
    dmutex_lock(&mutex);
    return lock_once(user);
}

static void *wait_once(void *user)
{
    (void)user;
    dmutex_lock(&mutex);
    dcond_wait(&cond, &mutex);
    __atomic_add_fetch(&shared->returned, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static pthread_t start(void *(*run)(void *), int index)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, run, (void *)(intptr_t)index) != 0)
        abort();
    return thread;
}

/* Awake in user space: the first sleep after the return is the library's. */
static void stay_in_handler(int signal)
{
    (void)signal;
    tell(IS_IN_HANDLER);
    while (!is_told(AT_END))
        continue;
}

static void await_asleep(int index)
{
    while (!shared->tids[index] || proc_state(shared->tids[index]) != 'S')
        wait_nap();
}

static void end_by(void (*end)(int))
{
    end(0);
}

/*
 * exit() flushes streams last, after all destructors: by then no thread of the test is in user space.  A thread sleeps
 * where the library has parked it, or with a question that has no answer. quick_exit() flushes none.
 */
static ssize_t let_threads_come_to_rest(void *user, const char *bytes, size_t count)
{
    (void)user;
    (void)bytes;
    tell(AT_END);
    for (int i = 0; i < MOST_THREADS; i++) {
        while (shared->tids[i] && proc_state(shared->tids[i]) != 'S')
            sched_yield();
    }
    return (ssize_t)count;
}

static void await_rest_at_end(void)
{
    fputs("for exit()", fopencookie(NULL, "w", (cookie_io_functions_t){ .write = let_threads_come_to_rest }));
}

static void (*const ways_to_end[])(int) = { exit, quick_exit };
#define ENDS 2

/* The child has ended on its own, with status 0. */
static void reap(pid_t pid)
{
    assert_int_equal(keeper_reap(pid), 0);
}

/* The next process has the mutex at once, and gets only true deaths. */
static void assert_free(bool may_be_dead)
{
    int result;

    promise_within(AT_ONCE);
    result = dmutex_lock(&mutex);
    assert_kept();
    if (may_be_dead && result == EOWNERDEAD)
        result = dmutex_consistent(&mutex);
    assert_result(result, 0);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* ---- while threads lock ------------------------------------------------------------------ */

static void exit_beside_lockers(void (*end)(int), int rounds)
{
    await_rest_at_end();
    for (int i = 0; i < MOST_THREADS; i++)
        start(lock_again_and_again, i);
    while (shared->returned < rounds)
        wait_nap();
    end_by(end);
}

/* A thread that quick_exit() met after the return of lock may not have said so. */
static bool was_any_inside(bool is_at_rest)
{
    bool is_any = false;

    for (int i = 0; i < MOST_THREADS; i++)
        is_any |= shared->places[i] == INSIDE || shared->places[i] == UNLOCKING ||
                  (shared->places[i] == LOCKING && !is_at_rest);
    return is_any;
}

/* Attack C4: no process waits for the lease, in any step of the threads. */
static void test_the_next_process_owns_at_once_when_one_exits_among_lockers(void **state)
{
    (void)state;
    for (int i = 0; i < repetitions(20); i++) {
        pid_t pid;

        begin("exit/lockers");
        pid = keeper_fork();
        if (pid == 0)
            exit_beside_lockers(ways_to_end[i % ENDS], 1 + i);
        reap(pid);
        assert_free(was_any_inside(is_told(AT_END)));
    }
}

/* ---- while threads wait ------------------------------------------------------------------ */

/* The child's main thread owns, others wait: many, so that a grant would be noticed before the end. */
static void exit_as_owner(void (*end)(int))
{
    dmutex_lock(&mutex);
    for (int i = 0; i < MOST_THREADS; i++)
        start(lock_once, i);
    while (waiters_of(&mutex) < MOST_THREADS)
        wait_nap();
    end_by(end);
}

/* A true death, reported once; the server grants nothing to threads of the dying process. */
static void test_waiting_threads_stay_in_lock_when_the_owner_exits(void **state)
{
    (void)state;
    for (int i = 0; i < repetitions(10); i++) {
        pid_t pid;

        begin("exit/waiters");
        pid = keeper_fork();
        if (pid == 0)
            exit_as_owner(ways_to_end[i % ENDS]);
        reap(pid);
        assert_int_equal(shared->returned, 0);
        assert_int_equal(waiters_of(&mutex), 0);
        promise_within(AT_ONCE);
        assert_result(dmutex_lock(&mutex), EOWNERDEAD);
        assert_kept();
        assert_result(dmutex_consistent(&mutex), 0);
        assert_result(dmutex_unlock(&mutex), 0);
    }
}

static void exit_beside_a_relocker(void (*end)(int))
{
    start(lock_twice, 0);
    while (waiters_of(&mutex) < 1)
        wait_nap();
    end_by(end);
}

/* A second lock of a normal mutex by the holder does not "return" while the process ends. */
static void test_a_thread_that_waits_for_itself_stays_in_lock_when_the_process_exits(void **state)
{
    (void)state;
    for (int i = 0; i < repetitions(10); i++) {
        pid_t pid;

        begin("exit/itself");
        make_normal(&mutex, "exit/itself", LONG_LEASE);
        pid = keeper_fork();
        if (pid == 0)
            exit_beside_a_relocker(ways_to_end[i % ENDS]);
        reap(pid);
        assert_int_equal(shared->returned, 0);
        assert_free(false);
    }
}

/* Another process owns: the places in the queue are free at once. */
static void exit_as_waiter(void (*end)(int))
{
    for (int i = 0; i < MOST_THREADS; i++)
        start(lock_once, i);
    while (waiters_of(&mutex) < MOST_THREADS)
        wait_nap();
    end_by(end);
}

static void test_the_queue_is_empty_at_once_when_a_waiting_process_exits(void **state)
{
    (void)state;
    for (int i = 0; i < repetitions(4); i++) {
        pid_t pid;

        begin("exit/queue");
        assert_result(dmutex_lock(&mutex), 0);
        pid = keeper_fork();
        if (pid == 0)
            exit_as_waiter(ways_to_end[i % ENDS]);
        reap(pid);
        assert_int_equal(waiters_of(&mutex), 0);
        assert_result(dmutex_unlock(&mutex), 0);
        assert_int_equal(shared->returned, 0);
        assert_free(false);
    }
}

static void exit_on_condition(void (*end)(int))
{
    start(wait_once, 0);
    await_told(0);
    end_by(end);
}

/* A wait on a condition is no hold: the wait's end is no death, the place is free at once. */
static void test_nobody_waits_on_the_condition_when_a_waiting_process_exits(void **state)
{
    (void)state;
    for (int i = 0; i < repetitions(4); i++) {
        pid_t pid;

        begin("exit/mutex");
        pid = keeper_fork();
        if (pid == 0)
            exit_on_condition(ways_to_end[i % ENDS]);
        wait_until(side_int(the_server->side, "ZCARD %s", key_of("cond", "exit/cond")) == 1);
        tell(0);
        reap(pid);
        assert_int_equal(side_int(the_server->side, "ZCARD %s", key_of("cond", "exit/cond")), 0);
        assert_int_equal(shared->returned, 0);
        assert_free(false);
    }
}

/* ---- during a question ------------------------------------------------------------------- */

static void exit_while_asking(void (*end)(int))
{
    dmutex_trylock(&mutex); /* the connection is there */
    dmutex_unlock(&mutex);
    tell(0);
    await_told(1);
    start(lock_once, 0);
    tell(2);
    await_told(3);
    shared->tids[1] = (pid_t)syscall(SYS_gettid); /* no nap is between this line and the end */
    end_by(end);
}

/* The question reaches the server before the release, and is granted: the grant is given back. */
static void test_a_late_answer_is_given_back_when_the_process_exits_before_it(void **state)
{
    (void)state;
    for (int i = 0; i < repetitions(4); i++) {
        pid_t pid;

        begin("exit/asking");
        pid = keeper_fork();
        if (pid == 0)
            exit_while_asking(ways_to_end[i % ENDS]);
        wait_until(is_told(0));
        server_stop(the_server);
        tell(1);
        wait_until(is_told(2) && shared->tids[0] && proc_state(shared->tids[0]) == 'S');
        tell(3);
        wait_until(shared->tids[1] && proc_state(pid) == 'S');
        server_cont(the_server);
        reap(pid);
        assert_int_equal(shared->returned, 0);
        assert_free(false);
    }
}

/* ---- with a hold that was passed --------------------------------------------------------- */

/* The thread is on its seat, and a handler keeps it there; a robust mutex is passed to the seat. */
static void exit_behind_a_pass(void (*end)(int))
{
    pthread_t thread;

    signal(SIGUSR1, stay_in_handler);
    await_rest_at_end();
    dmutex_lock(&mutex);
    thread = start(lock_once, 0);
    await_asleep(0);
    pthread_kill(thread, SIGUSR1);
    await_told(IS_IN_HANDLER);
    dmutex_unlock(&mutex);
    end_by(end);
}

/* Finding 98: the thread never returns from lock, so its end is no death. */
static void test_no_death_is_reported_when_the_holder_was_on_its_seat_at_exit(void **state)
{
    (void)state;
    for (int i = 0; i < ENDS; i++) {
        pid_t pid;

        begin("exit/passed");
        make_handed(&mutex, "exit/passed", &(struct kind){ PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, "robust" },
                    LONG_LEASE, 0);
        pid = keeper_fork();
        if (pid == 0)
            exit_behind_a_pass(ways_to_end[i]);
        reap(pid);
        assert_int_equal(shared->returned, 0);
        assert_free(false);
    }
}

/* ---- after a question that is given up --------------------------------------------------- */

static void *lock_when_away(void *user)
{
    if (dmutex_trylock(&mutex) != 0 || dmutex_unlock(&mutex) != 0)
        abort();
    tell(IS_CONNECTED);
    await_told(IS_AWAY);
    return lock_once(user);
}

static void *renew_when_away(void *user)
{
    if (dmutex_trylock(&mutex) != 0)
        abort();
    tell(IS_CONNECTED);
    await_told(IS_AWAY);
    shared->tids[(intptr_t)user] = (pid_t)syscall(SYS_gettid);
    dmutex_renew_np(&mutex);
    __atomic_add_fetch(&shared->returned, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void exit_with_a_question_given_up(void *(*ask)(void *))
{
    char url[sizeof the_server->url + 32];
    pthread_t thread;

    snprintf(url, sizeof url, "%s&command_timeout=500", the_server->url);
    if (dmutex_configure_np(url) != 0)
        abort();
    signal(SIGUSR1, stay_in_handler);
    await_rest_at_end();
    thread = start(ask, 0);
    await_told(IS_AWAY);
    await_asleep(0);
    pthread_kill(thread, SIGUSR1);
    await_told(IS_BACK);
    exit(0);
}

/*
 * The server is away when a thread asks, and a signal handler keeps the thread from sending its question until exit()
 * has given the question up.
 */
static void have_a_question_given_up(void *(*ask)(void *))
{
    pid_t pid = keeper_fork();

    if (pid == 0)
        exit_with_a_question_given_up(ask);
    wait_until(is_told(IS_CONNECTED));
    server_kill(the_server);
    tell(IS_AWAY);
    wait_until(is_told(IS_IN_HANDLER));
    server_restart(the_server);
    tell(IS_BACK);
    reap(pid);
    side_text(the_server->side, "PING"); /* the server has read before the answer what the process has sent */
}

/* Finding 97: the question must not follow the release: nobody would have the lock. */
static void test_a_question_is_not_sent_when_exit_has_given_it_up(void **state)
{
    (void)state;
    begin("exit/given-up");
    have_a_question_given_up(lock_when_away);
    assert_int_equal(side_int(the_server->side, "EXISTS %s", key_of("state", "exit/given-up")), 0);
}

/* Finding 103: the same of a renewal, which would bring the hold back. */
static void test_a_renewal_is_not_sent_when_exit_has_given_it_up(void **state)
{
    (void)state;
    begin("exit/renewal");
    have_a_question_given_up(renew_when_away);
    assert_int_equal(side_int(the_server->side, "EXISTS %s", key_of("lock", "exit/renewal")), 0);
}

/* ---- handlers ---------------------------------------------------------------------------- */

static pthread_t worker;
static volatile bool must_stop;

static void *lock_until_told(void *user)
{
    (void)user;
    while (!must_stop) {
        dmutex_lock(&mutex);
        shared->returned++;
        dmutex_unlock(&mutex);
    }
    return NULL;
}

/* As the destructor of a pool of threads does. */
static void stop_worker(void)
{
    must_stop = true;
    if (pthread_join(worker, NULL) == 0)
        tell(0);
    if (dmutex_lock(&mutex) == 0 && dmutex_unlock(&mutex) == 0)
        tell(1);
}

static void exit_with_a_joining_handler(void)
{
    atexit(stop_worker);
    worker = start(lock_until_told, 0);
    while (shared->returned < 10)
        wait_nap();
    exit(0);
}

/* A handler may lock, and may stop and join locking threads, as with libc's mutexes. */
static void test_a_handler_joins_a_thread_that_locks_when_the_process_exits(void **state)
{
    pid_t pid;

    (void)state;
    begin("exit/handler");
    pid = keeper_fork();
    if (pid == 0)
        exit_with_a_joining_handler();
    reap(pid);
    assert_true(is_told(0));
    assert_true(is_told(1));
    assert_free(false);
}

/* Ends with a hold and waiters; slowly, because a handler locks another mutex many times. */
static dmutex_t other = DMUTEX_INITIALIZER("exit/other");

static void take_long(void)
{
    for (int i = 0; i < 200; i++) {
        if (dmutex_lock(&other) != 0 || dmutex_unlock(&other) != 0)
            return;
    }
    tell(0);
}

static void exit_slowly(void)
{
    atexit(take_long);
    exit_as_owner(exit);
}

static void test_waiting_threads_stay_in_lock_when_handlers_take_long(void **state)
{
    pid_t pid;

    (void)state;
    begin("exit/slow");
    pid = keeper_fork();
    if (pid == 0)
        exit_slowly();
    reap(pid);
    assert_true(is_told(0));
    assert_int_equal(shared->returned, 0);
    assert_result(dmutex_lock(&mutex), EOWNERDEAD);
    assert_result(dmutex_consistent(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_next_process_owns_at_once_when_one_exits_among_lockers),
        cmocka_unit_test(test_waiting_threads_stay_in_lock_when_the_owner_exits),
        cmocka_unit_test(test_a_thread_that_waits_for_itself_stays_in_lock_when_the_process_exits),
        cmocka_unit_test(test_the_queue_is_empty_at_once_when_a_waiting_process_exits),
        cmocka_unit_test(test_nobody_waits_on_the_condition_when_a_waiting_process_exits),
        cmocka_unit_test(test_a_late_answer_is_given_back_when_the_process_exits_before_it),
        cmocka_unit_test(test_no_death_is_reported_when_the_holder_was_on_its_seat_at_exit),
        cmocka_unit_test(test_a_question_is_not_sent_when_exit_has_given_it_up),
        cmocka_unit_test(test_a_renewal_is_not_sent_when_exit_has_given_it_up),
        cmocka_unit_test(test_a_handler_joins_a_thread_that_locks_when_the_process_exits),
        cmocka_unit_test(test_waiting_threads_stay_in_lock_when_handlers_take_long),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, test_group_teardown);
}

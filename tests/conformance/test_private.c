/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private mutexes without a name are libc's own. shalls/ compares them with libc's clause by clause. Here: no server,
 * thread or connection; the functions that only dmutex_t has; condition variables with mutexes of both kinds.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define RUNS 200

/* ---- a separate process ------------------------------------------------------------------ */

static dmutex_t zeroed, five[4];
static dcond_t zeroed_cond;

/* All calls of a program; the number of the first failure. */
static int use_all(void)
{
    const struct timespec past = { 0, 0 };
    dmutex_t made;

    if (dmutex_lock(&zeroed) || dmutex_trylock(&zeroed) != EBUSY || dmutex_timedlock(&zeroed, &past) != ETIMEDOUT)
        return 1;
    if (dcond_timedwait(&zeroed_cond, &zeroed, &past) != ETIMEDOUT || dcond_signal(&zeroed_cond))
        return 2;
    if (dcond_broadcast(&zeroed_cond) || dmutex_unlock(&zeroed) || dcond_destroy(&zeroed_cond))
        return 3;
    for (int i = 0; i < 4; i++)
        if (dmutex_lock(&five[i]) || dmutex_unlock(&five[i]))
            return 4;
    if (dmutex_init(&made, NULL) || dmutex_lock(&made) || dmutex_unlock(&made) || dmutex_destroy(&made))
        return 5;
    return 0;
}

static int entries_in(const char *folder)
{
    DIR *open = opendir(folder);
    int count = 0;

    while (readdir(open))
        count++;
    closedir(open);
    return count;
}

/* `program --five`: uses five mutexes, and has no more descriptors and threads than before. */
static int run_five(void)
{
    int descriptors = entries_in("/proc/self/fd"), threads = entries_in("/proc/self/task"), failed = use_all();

    if (failed)
        return failed;
    if (entries_in("/proc/self/fd") != descriptors)
        return 6;
    return entries_in("/proc/self/task") != threads ? 7 : 0;
}

static int execute_five(void)
{
    pid_t pid = keeper_fork();

    if (pid == 0) {
        execl(program_path, program_path, "--five", NULL);
        _exit(127);
    }
    return keeper_reap(pid);
}

/* A process with private mutexes only starts no thread, opens no descriptor and needs no server. */
static void test_private_mutex_needs_no_thread_and_no_server(void **state)
{
    (void)state;
    setenv("DMUTEX_URL", "unix:///nonexistent/socket", 1);
    assert_int_equal(execute_five(), 0);
    setenv("DMUTEX_URL", "no url", 1);
    assert_int_equal(execute_five(), 0);
    setenv("DMUTEX_URL", the_server->url, 1);
}

/* 200 runs of a program with five private mutexes leave no key and make no connection. */
static void test_private_mutexes_leave_no_key_when_a_program_runs_again_and_again(void **state)
{
    int64_t connections = side_calls(the_server->side, "hello"), keys = side_int(the_server->side, "DBSIZE");

    (void)state;
    for (int i = 0; i < RUNS; i++)
        assert_int_equal(execute_five(), 0);
    assert_int_equal(side_int(the_server->side, "DBSIZE"), keys);
    assert_int_equal(side_calls(the_server->side, "hello"), connections);
}

/* ---- functions that only dmutex_t has ---------------------------------------------------- */

/* Token and force need a server: ENOTSUP. */
static void test_private_mutex_has_no_token_and_no_force(void **state)
{
    dmutex_t mutex = DMUTEX_ANONYMOUS_INITIALIZER;
    uint64_t token = 77;

    (void)state;
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_token_np(&mutex, &token), ENOTSUP);
    assert_int_equal(token, 77);
    assert_result(dmutex_forceunlock_np(&mutex), ENOTSUP);
    assert_non_null(strstr(dmutex_strerror_np(), "give it a name"));
    assert_result(dmutex_unlock(&mutex), 0);
}

static int remaining_np(dmutex_t *mutex)
{
    int64_t left_ms;

    return dmutex_remaining_np(mutex, &left_ms);
}

static int holdcount_np(dmutex_t *mutex)
{
    return (int)holdcount_of(mutex);
}

/* The holder's time is endless, and other threads are no holders. */
static void test_private_hold_is_certain_while_it_lasts(void **state)
{
    (void)state;
    for (int i = 0; i < KIND_COUNT; i++) {
        dmutex_t mutex;

        make_mutex(&mutex, NULL, &kinds[i], 0);
        assert_result(dmutex_renew_np(&mutex), EPERM);
        assert_result(remaining_np(&mutex), EPERM);
        assert_int_equal(holdcount_of(&mutex), 0);
        assert_result(dmutex_lock(&mutex), 0);
        assert_result(dmutex_renew_np(&mutex), 0);
        assert_true(remaining_of(&mutex) == INT64_MAX);
        assert_int_equal(holdcount_of(&mutex), 1);
        assert_result(in_thread(dmutex_renew_np, &mutex), EPERM);
        assert_result(in_thread(remaining_np, &mutex), EPERM);
        assert_int_equal(in_thread(holdcount_np, &mutex), 0);
        assert_result(dmutex_unlock(&mutex), 0);
        assert_int_equal(holdcount_of(&mutex), 0);
        assert_result(dmutex_destroy(&mutex), 0);
    }
}

/* The count is the depth; a wait restores the depth; a forked child holds nothing. */
static void test_private_holdcount_is_the_depth(void **state)
{
    struct timespec soon = wait_time_in_ms(CLOCK_REALTIME, 5);
    dcond_t cond = DCOND_ANONYMOUS_INITIALIZER;
    dmutex_t mutex;
    pid_t pid;

    (void)state;
    make_recursive(&mutex, NULL, 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dcond_timedwait(&cond, &mutex, &soon), ETIMEDOUT);
    assert_int_equal(holdcount_of(&mutex), 1);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_trylock(&mutex), 0);
    assert_int_equal(holdcount_of(&mutex), 3);
    pid = keeper_fork();
    if (pid == 0)
        _exit(holdcount_np(&mutex));
    assert_int_equal(keeper_reap(pid), 0);
    for (int depth = 2; depth >= 0; depth--) {
        assert_result(dmutex_unlock(&mutex), 0);
        assert_int_equal(holdcount_of(&mutex), depth);
    }
    assert_result(dmutex_unlock(&mutex), EPERM);
}

static dmutex_info_t info_of(dmutex_t *mutex)
{
    dmutex_info_t info = { .struct_size = sizeof info };
    int locked = -1;

    assert_result(dmutex_getinfo_np(mutex, &info), 0);
    assert_result(dmutex_islocked_np(mutex, &locked), 0);
    assert_int_equal(info.locked, locked);
    return info;
}

/* getinfo reports this process, and the thread's number as the kernel knows it. */
static void test_private_info_shows_this_process(void **state)
{
    dmutex_t mutex = DMUTEX_ANONYMOUS_INITIALIZER;
    dmutex_info_t info = info_of(&mutex);

    (void)state;
    assert_int_equal(info.locked, 0);
    assert_string_equal(info.host, "");
    assert_result(dmutex_lock(&mutex), 0);
    info = info_of(&mutex);
    assert_int_equal(info.locked, 1);
    assert_true(info.remaining_ms == INT64_MAX);
    assert_int_equal(info.hold_count, 1);
    assert_int_equal(info.pid, getpid());
    assert_int_equal(info.thread, gettid());
    assert_string_equal(info.program, "test_private");
    assert_true(info.host[0] != '\0');
    assert_result(dmutex_unlock(&mutex), 0);
    assert_int_equal(info_of(&mutex).locked, 0);
}

/* The name of this host is the one that others see: that of the variable, else of dmutex.conf. */
static void test_private_info_has_the_host_of_the_configuration(void **state)
{
    dmutex_t mutex = DMUTEX_ANONYMOUS_INITIALIZER;

    (void)state;
    setenv("XDG_CONFIG_HOME", the_server->folder, 1);
    command_run("mkdir $XDG_CONFIG_HOME/dmutex && cd $XDG_CONFIG_HOME/dmutex && printf '[defaults]\\nHost=web-7\\n' "
                ">dmutex.conf && chmod 0600 dmutex.conf");
    assert_status(0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_string_equal(info_of(&mutex).host, "web-7");
    setenv("DMUTEX_HOST", "web-8", 1);
    assert_string_equal(info_of(&mutex).host, "web-8");
    assert_result(dmutex_unlock(&mutex), 0);
    unsetenv("DMUTEX_HOST");
    unsetenv("XDG_CONFIG_HOME");
}

/* A dead thread's robust mutex: EOWNERDEAD at once, consistent or not, and getinfo reports its health. */
static void test_private_robust_mutex_reports_a_thread_that_died(void **state)
{
    dmutex_t mutex;

    (void)state;
    for (int mends = 0; mends < 2; mends++) {
        make_robust(&mutex, NULL, 0);
        assert_result(in_thread(dmutex_lock, &mutex), 0);
        assert_int_equal(info_of(&mutex).locked, 0);
        assert_int_equal(info_of(&mutex).health, 1);
        assert_result(dmutex_trylock(&mutex), EOWNERDEAD);
        assert_int_equal(info_of(&mutex).health, 1);
        assert_int_equal(holdcount_of(&mutex), 1);
        if (mends)
            assert_result(dmutex_consistent(&mutex), 0);
        assert_result(dmutex_consistent(&mutex), mends ? EINVAL : 0);
        assert_result(dmutex_unlock(&mutex), 0);
        assert_int_equal(info_of(&mutex).health, 0);
        assert_result(dmutex_destroy(&mutex), 0);
    }
    make_robust(&mutex, NULL, 0);
    assert_result(in_thread(dmutex_lock, &mutex), 0);
    assert_result(dmutex_lock(&mutex), EOWNERDEAD);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_lock(&mutex), ENOTRECOVERABLE);
    assert_int_equal(info_of(&mutex).health, 2);
    assert_result(dmutex_destroy(&mutex), 0);
}

/* Each refusal leaves a sentence. */
static void test_private_call_leaves_a_sentence_when_it_fails(void **state)
{
    dmutex_t mutex = DMUTEX_ANONYMOUS_INITIALIZER, checking;

    (void)state;
    make_errorcheck(&checking, NULL, 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_trylock(&mutex), EBUSY);
    assert_non_null(strstr(dmutex_strerror_np(), "owned by another"));
    assert_result(timedlock_soon(&mutex), ETIMEDOUT);
    assert_non_null(strstr(dmutex_strerror_np(), "Timed out"));
    assert_result(dmutex_destroy(&mutex), EBUSY);
    assert_non_null(strstr(dmutex_strerror_np(), "unlock it before"));
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_unlock(&checking), EPERM);
    assert_non_null(strstr(dmutex_strerror_np(), "does not own"));
}

/* libc's protocols and ceilings are had for private mutexes. */
static void test_private_mutex_takes_a_protocol(void **state)
{
    dmutexattr_t attr;
    dmutex_t mutex;
    int ceiling = 77;

    (void)state;
    assert_result(dmutexattr_init(&attr), 0);
    assert_result(dmutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT), 0);
    assert_result(dmutex_init(&mutex, &attr), 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_int_equal(holdcount_of(&mutex), 1);
    assert_int_equal(info_of(&mutex).locked, 1);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_getprioceiling(&mutex, &ceiling), EINVAL);
    assert_result(dmutex_destroy(&mutex), 0);
    assert_result(dmutexattr_setprotocol(&attr, PTHREAD_PRIO_PROTECT), 0);
    assert_result(dmutexattr_setprioceiling(&attr, 10), 0);
    assert_result(dmutex_init(&mutex, &attr), 0);
    assert_result(dmutex_getprioceiling(&mutex, &ceiling), 0);
    assert_int_equal(ceiling, 10);
    assert_result(dmutex_destroy(&mutex), 0);
}

/* ---- cancellation ------------------------------------------------------------------------ */

static int lock_asynchronously(dmutex_t *mutex)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    return dmutex_lock(mutex);
}

/* As with libc: a waiting thread with asynchronous cancellation is cancelled. */
static void test_private_lock_is_cancelled_when_cancellation_is_asynchronous(void **state)
{
    dmutex_t mutex = DMUTEX_ANONYMOUS_INITIALIZER;
    struct errand errand;
    void *result;

    (void)state;
    if (IS_THREAD_SANITIZED)
        return; /* a thread is cancelled */
    assert_result(dmutex_lock(&mutex), 0);
    errand_begin(&errand, lock_asynchronously, &mutex);
    errand_await_sleep(&errand);
    assert_int_equal(pthread_cancel(errand.thread), 0);
    assert_int_equal(pthread_join(errand.thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(in_thread(dmutex_lock, &mutex), 0);
}

/* ---- conditions, which follow the mutex -------------------------------------------------- */

struct meeting {
    dmutex_t *mutex;
    dcond_t *cond;
    bool is_waiting, is_woken;
};

static struct meeting meeting;

static int await_meeting(dmutex_t *mutex)
{
    int result = dmutex_lock(mutex);

    meeting.is_waiting = true;
    while (!result && !meeting.is_woken)
        result = dcond_wait(meeting.cond, mutex);
    return result ? result : dmutex_unlock(mutex);
}

static bool has_a_waiter(void)
{
    bool is_waiting;

    assert_result(dmutex_lock(meeting.mutex), 0);
    is_waiting = meeting.is_waiting;
    assert_result(dmutex_unlock(meeting.mutex), 0);
    return is_waiting;
}

/* A thread waits, and one call wakes the thread. */
static void check_meeting(dmutex_t *mutex, dcond_t *cond, int (*call)(dcond_t *))
{
    struct errand waiter;

    meeting = (struct meeting){ .mutex = mutex, .cond = cond };
    errand_begin(&waiter, await_meeting, mutex);
    wait_until(has_a_waiter());
    assert_result(dmutex_lock(mutex), 0);
    meeting.is_woken = true;
    assert_result(dmutex_unlock(mutex), 0);
    assert_result(call(cond), 0);
    assert_result(errand_join(&waiter), 0);
}

static void make_shared_cond(dcond_t *cond)
{
    dcondattr_t attr;

    assert_result(dcondattr_init(&attr), 0);
    assert_result(dcondattr_setpshared(&attr, PTHREAD_PROCESS_SHARED), 0);
    assert_result(dcond_init(cond, &attr), 0);
}

/* A condition of any kind works with a local mutex, then with a mutex of the server, and again. */
static void test_cond_follows_its_mutex_whatever_its_name(void **state)
{
    dmutex_t local = DMUTEX_ANONYMOUS_INITIALIZER, named = DMUTEX_INITIALIZER("private/m");
    dcond_t conds[3] = { DCOND_ANONYMOUS_INITIALIZER, DCOND_INITIALIZER("private/c") };

    (void)state;
    make_shared_cond(&conds[2]);
    for (int i = 0; i < 3; i++) {
        for (int round = 0; round < 2; round++) {
            check_meeting(&local, &conds[i], dcond_signal);
            check_meeting(&local, &conds[i], dcond_broadcast);
            check_meeting(&named, &conds[i], dcond_signal);
            check_meeting(&named, &conds[i], dcond_broadcast);
        }
        assert_result(dcond_destroy(&conds[i]), 0);
    }
}

/* A shared mutex without a name has no group of a named condition: refused, nothing done. */
static void test_cond_refuses_when_a_shared_mutex_has_no_group(void **state)
{
    dcond_t cond = DCOND_INITIALIZER("private/c");
    dmutexattr_t attr;
    dmutex_t mutex;

    (void)state;
    assert_result(dmutexattr_init(&attr), 0);
    assert_result(dmutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED), 0);
    assert_result(dmutex_init(&mutex, &attr), 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dcond_wait(&cond, &mutex), EINVAL);
    assert_int_equal(holdcount_of(&mutex), 1);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_destroy(&mutex), 0);
}

/* Names `length` bytes long, with a group of `group` bytes; without a leaf if both are equal. */
static void make_long(dmutex_t *mutex, size_t length, size_t group)
{
    char name[DMUTEX_NAME_MAX_NP + 1];

    memset(name, 'g', length);
    name[length] = '\0';
    if (group < length)
        name[group] = '/';
    make_normal(mutex, name, 0);
}

/* An anonymous condition keeps the mutex's name, or only the group; a group without room is refused. */
static void test_anonymous_cond_takes_long_names_but_for_their_groups(void **state)
{
    dcond_t cond = DCOND_ANONYMOUS_INITIALIZER;
    dmutex_t mutex;

    (void)state;
    make_long(&mutex, 200, 10);
    check_meeting(&mutex, &cond, dcond_signal);
    make_long(&mutex, 200, 179);
    check_meeting(&mutex, &cond, dcond_broadcast);
    make_long(&mutex, 179, 179);
    check_meeting(&mutex, &cond, dcond_signal);
    make_long(&mutex, 180, 180);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dcond_wait(&cond, &mutex), EINVAL);
    assert_non_null(strstr(dmutex_strerror_np(), "give the condition variable a name"));
    assert_int_equal(holdcount_of(&mutex), 1);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dcond_destroy(&cond), 0);
}

/* A condition that was waited on with local mutexes only is not the server's business. */
static void test_signal_asks_nobody_when_the_condition_is_private(void **state)
{
    dmutex_t local = DMUTEX_ANONYMOUS_INITIALIZER;
    dcond_t cond = DCOND_ANONYMOUS_INITIALIZER;
    int64_t commands = client_commands();

    (void)state;
    check_meeting(&local, &cond, dcond_signal);
    check_meeting(&local, &cond, dcond_broadcast);
    assert_int_equal(client_commands(), commands);
    assert_result(dcond_destroy(&cond), 0);
}

/* The clock of the attributes counts for local waits, too. */
static void test_local_wait_ends_by_the_conditions_clock(void **state)
{
    struct timespec past = wait_time_in_ms(CLOCK_MONOTONIC, 5);
    dmutex_t local = DMUTEX_ANONYMOUS_INITIALIZER;
    dcondattr_t attr;
    dcond_t cond;

    (void)state;
    assert_result(dcondattr_init(&attr), 0);
    assert_result(dcondattr_setclock(&attr, CLOCK_MONOTONIC), 0);
    assert_result(dcond_init(&cond, &attr), 0);
    assert_result(dmutex_lock(&local), 0);
    assert_result(dcond_timedwait(&cond, &local, &past), ETIMEDOUT);
    assert_true(wait_is_reached(CLOCK_MONOTONIC, &past));
    past = wait_time_in_ms(CLOCK_REALTIME, 5);
    assert_result(dcond_clockwait(&cond, &local, CLOCK_REALTIME, &past), ETIMEDOUT);
    assert_true(wait_is_reached(CLOCK_REALTIME, &past));
    assert_result(dmutex_unlock(&local), 0);
    assert_result(dcond_destroy(&cond), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_private_mutex_needs_no_thread_and_no_server),
        cmocka_unit_test(test_private_mutexes_leave_no_key_when_a_program_runs_again_and_again),
        cmocka_unit_test(test_private_mutex_has_no_token_and_no_force),
        cmocka_unit_test(test_private_hold_is_certain_while_it_lasts),
        cmocka_unit_test(test_private_holdcount_is_the_depth),
        cmocka_unit_test(test_private_info_shows_this_process),
        cmocka_unit_test(test_private_info_has_the_host_of_the_configuration),
        cmocka_unit_test(test_private_robust_mutex_reports_a_thread_that_died),
        cmocka_unit_test(test_private_call_leaves_a_sentence_when_it_fails),
        cmocka_unit_test(test_private_mutex_takes_a_protocol),
        cmocka_unit_test(test_private_lock_is_cancelled_when_cancellation_is_asynchronous),
        cmocka_unit_test(test_cond_follows_its_mutex_whatever_its_name),
        cmocka_unit_test(test_cond_refuses_when_a_shared_mutex_has_no_group),
        cmocka_unit_test(test_anonymous_cond_takes_long_names_but_for_their_groups),
        cmocka_unit_test(test_signal_asks_nobody_when_the_condition_is_private),
        cmocka_unit_test(test_local_wait_ends_by_the_conditions_clock),
        cmocka_unit_test(test_nothing_is_left),
    };

    if (argc > 1 && strcmp(argv[1], "--five") == 0)
        return run_five();
    setenv("DMUTEX_PRIVATE", "libc", 1);
    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork() in a signal handler, at any instruction of the library.  Left out under the thread sanitizer.
 *
 * glibc's own fork() waits forever if its handler has interrupted malloc() in the same thread.  So in most tests the
 * handler forks only if the interrupted instruction is the library's own, or GLib's.  The usual calls use no malloc()
 * once they are warm: there the handler forks anywhere.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "pair.h"
#include "trio.h"

#define FORKS 100
#define WARM_UP 100
#define PATIENT "command_timeout=100000"

struct range {
    uintptr_t from, to;
};
static struct range ranges[8];
static int range_count;
static volatile sig_atomic_t *forks; /* shared with the test's children */
static volatile sig_atomic_t failures, is_copy;
static bool may_fork_anywhere;

static uintptr_t interrupted_at(const void *context)
{
    const ucontext_t *at = context;

#if defined(__x86_64__)
    return (uintptr_t)at->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)at->uc_mcontext.pc;
#else
#error "say where this processor keeps the address of the interrupted instruction"
#endif
}

/* The code of libdmutex and of GLib, as the kernel has mapped the code. */
static void find_ranges(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];

    while (maps && range_count < 8 && fgets(line, sizeof line, maps)) {
        struct range *range = &ranges[range_count];
        char rights[8];

        if ((strstr(line, "/libdmutex.so") || strstr(line, "/libglib-2.0.so")) &&
            sscanf(line, "%zx-%zx %7s", &range->from, &range->to, rights) == 3 && rights[2] == 'x')
            range_count++;
    }
    if (maps)
        fclose(maps);
}

static bool is_in_library(uintptr_t address)
{
    for (int i = 0; i < range_count; i++) {
        if (address >= ranges[i].from && address < ranges[i].to)
            return true;
    }
    return false;
}

/* The next signal comes after another while, so that each instruction has its turn. */
static void set_timer(void)
{
    struct itimerval timer = { .it_value = { .tv_usec = 50 + rand() % 500 } };

    setitimer(ITIMER_REAL, &timer, NULL);
}

/* True if the child has ended, and well; a child that neither ends nor forks is killed. */
static bool has_ended_well(pid_t pid)
{
    int64_t until_ms = wait_now_ms() + WAIT_LIMIT_MS;
    int status = -1, seen = *forks;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (*forks != seen)
            until_ms = wait_now_ms() + WAIT_LIMIT_MS;
        seen = *forks;
        if (wait_now_ms() > until_ms)
            kill(pid, SIGKILL);
        wait_nap();
    }
    return status == 0;
}

static void fork_here(int number, siginfo_t *info, void *context)
{
    int kept = errno;
    pid_t pid;

    (void)number;
    (void)info;
    if (may_fork_anywhere || is_in_library(interrupted_at(context))) {
        pid = fork();
        is_copy = pid == 0;
        failures += !is_copy && !has_ended_well(pid);
        *forks += !is_copy;
    }
    if (!is_copy)
        set_timer();
    errno = kept;
}

/* In a copy the interrupted call ends: with the answer that it had, without one, or as for a lock of the parent's. */
static int end_copy(int result)
{
    return result == 0 || result == ENOLCK || result == EPERM ? 0 : 1;
}

/*
 * A child of the test, so that a deadlock does not stop the test: 0 if all was well.  A copy that waits for the server
 * would wait longer than this process waits for the copy.
 */
static int lock_while_handlers_fork(const char *url)
{
    struct sigaction action = { .sa_sigaction = fork_here, .sa_flags = SA_SIGINFO | SA_RESTART };
    int result = 0;

    *forks = 0;
    find_ranges();
    if (range_count < 2 || dmutex_configure_np(url) != 0)
        return 2;
    make_normal(&mutex, "fork/handler", 0);
    for (int i = 0; i < WARM_UP && result == 0; i++)
        result = lock_and_unlock(&mutex);
    sigaction(SIGALRM, &action, NULL);
    set_timer();
    while (result == 0 && !is_copy && !failures && *forks < repetitions(may_fork_anywhere ? 5 * FORKS : FORKS)) {
        result = dmutex_lock(&mutex);
        if (result == 0 && !is_copy)
            result = dmutex_unlock(&mutex);
    }
    if (is_copy) {
        dmutex_unlock(&mutex); /* the copy's own, if it was made before the call had begun */
        return end_copy(result);
    }
    return failures ? 4 : result ? 3 : 0;
}

/*
 * Attack C7: the handler has interrupted a section of the library in the same thread.  Fork and handler come back here,
 * and the interrupted call ends in the copy.
 */
static void assert_handlers_can_fork(const char *url)
{
    pid_t pid = keeper_fork();

    if (pid == 0)
        _exit(lock_while_handlers_fork(url));
    assert_int_equal(keeper_reap(pid), 0);
}

static void test_a_call_goes_on_here_and_ends_in_the_copy_when_a_handler_forks(void **state)
{
    char url[sizeof the_server->url + 32];

    (void)state;
    snprintf(url, sizeof url, "%s&" PATIENT, the_server->url);
    assert_handlers_can_fork(url);
    make_normal(&mutex, "fork/handler", 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* Attack K5: libc's fork() waits for the lock of malloc(), which its own thread would have. */
static void test_fork_comes_back_when_its_handler_has_interrupted_any_instruction(void **state)
{
    char url[sizeof the_server->url + 32];
    pid_t pid;

    (void)state;
    snprintf(url, sizeof url, "%s&" PATIENT, the_server->url);
    pid = keeper_fork();
    if (pid == 0) {
        may_fork_anywhere = true;
        _exit(lock_while_handlers_fork(url));
    }
    assert_true(has_ended_well(pid));
}

/* The same by three servers: answers that were under way at the fork come to nobody in the copy. */
static void test_a_call_by_a_quorum_ends_in_the_copy_when_a_handler_forks(void **state)
{
    struct server *single = the_server;

    trio_begin_group(state);
    assert_handlers_can_fork(trio_url("?grace=off&" PATIENT));
    trio_end_group(state);
    the_server = single;
}

/* The same in a Cluster, where a call waits in slices, because another node may serve the name by then. */
static void test_a_call_in_a_cluster_ends_in_the_copy_when_a_handler_forks(void **state)
{
    struct cluster cluster;

    (void)state;
    cluster_start(&cluster, 3, false, CLUSTER_CALM_MS);
    assert_handlers_can_fork(cluster_url(&cluster, "?grace=off&switch=100000&" PATIENT));
    cluster_end(&cluster);
}

/* ---- a sleep that is interrupted --------------------------------------------------------- */

static pid_t copy; /* of the child, made by the handler; 0 in the copy itself */

static void fork_once(int number)
{
    int kept = errno;

    (void)number;
    copy = fork();
    errno = kept;
}

static int wait_in_lock(void)
{
    return lock_and_unlock(&mutex);
}

static int wait_on_condition(void)
{
    int result = dmutex_lock(&mutex);

    if (result == 0)
        result = dcond_wait(&cond, &mutex);
    return result ? result : dmutex_unlock(&mutex);
}

/* In a child of the test: 0 if the call has waited, and ended in the copy. */
static int wait_while_the_handler_forks(int (*call)(void))
{
    struct sigaction action = { .sa_handler = fork_once };
    int result;

    copy = -1;
    sigaction(SIGUSR1, &action, NULL);
    result = call();
    if (copy == 0)
        _exit(result == ENOLCK ? 0 : 1);
    if (result != 0 || copy < 0)
        return 2;
    return has_ended_well(copy) ? 0 : 3;
}

static pid_t start_child(int (*call)(void))
{
    pid_t pid = keeper_fork();

    if (pid == 0)
        _exit(wait_while_the_handler_forks(call));
    return pid;
}

static void interrupt(pid_t pid)
{
    wait_until(proc_state(pid) == 'S');
    assert_return_code(kill(pid, SIGUSR1), errno);
}

/* Finding 52: a handler's fork() leaves the child in the middle of a lock, which fails there, and continues here. */
static void test_a_waiting_lock_ends_in_the_child_when_a_handler_forks(void **state)
{
    pid_t pid;

    (void)state;
    make_both("forked", &normal, LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    pid = start_child(wait_in_lock);
    wait_until(in_queue() == 1);
    interrupt(pid);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_int_equal(keeper_reap(pid), 0);
}

/* Finding 52: the same in a wait on a condition. */
static void test_a_wait_on_a_condition_ends_in_the_child_when_a_handler_forks(void **state)
{
    pid_t pid;

    (void)state;
    make_both("parted", &normal, LONG_LEASE);
    pid = start_child(wait_on_condition);
    wait_until(on_condition() == 1);
    interrupt(pid);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dcond_signal(&cond), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_int_equal(keeper_reap(pid), 0);
}

/* ---- a first use that is interrupted ------------------------------------------------------ */

static bool is_thread_noisy; /* the next thread's beginning raises a signal */

/* Replaces libc's for the whole program.  The library blocks signals around it, so the handler runs after it. */
int pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes, void *(*run)(void *), void *user)
{
    static int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int result;

    if (!create)
        *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    result = create(ret_thread, attributes, run, user);
    if (is_thread_noisy) {
        is_thread_noisy = false;
        raise(SIGUSR1);
    }
    return result;
}

/* The copy has the parent's uuid until its first call has failed, and then its own. */
static int lock_first(void)
{
    int result = dmutex_lock(&mutex);

    if (copy == 0 && result == ENOLCK)
        return dmutex_lock(&mutex) || dmutex_unlock(&mutex) ? EIO : ENOLCK;
    return result ? result : dmutex_unlock(&mutex);
}

/* Finding 138: parent and child would hold the mutex by one identity, and both own the mutex. */
static void test_a_first_use_ends_in_the_child_when_a_handler_forks(void **state)
{
    pid_t pid;

    (void)state;
    make_both("first", &normal, LONG_LEASE);
    is_thread_noisy = true;
    pid = start_child(lock_first);
    is_thread_noisy = false;
    assert_int_equal(keeper_reap(pid), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_call_goes_on_here_and_ends_in_the_copy_when_a_handler_forks),
        cmocka_unit_test(test_fork_comes_back_when_its_handler_has_interrupted_any_instruction),
        cmocka_unit_test(test_a_call_by_a_quorum_ends_in_the_copy_when_a_handler_forks),
        cmocka_unit_test(test_a_call_in_a_cluster_ends_in_the_copy_when_a_handler_forks),
        cmocka_unit_test(test_a_waiting_lock_ends_in_the_child_when_a_handler_forks),
        cmocka_unit_test(test_a_wait_on_a_condition_ends_in_the_child_when_a_handler_forks),
        cmocka_unit_test(test_a_first_use_ends_in_the_child_when_a_handler_forks),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    forks = mmap(NULL, sizeof *forks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

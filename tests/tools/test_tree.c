/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/tree: sends a signal to the descendants of a process, and to nobody else. */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../tools/tree.h"
#include "../lib/filter.h"
#include "../lib/testlib.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* All processes here block it, so it stays pending wherever it arrives. */
#define SENT SIGUSR1

static void block_sent(void)
{
    sigset_t only;

    sigemptyset(&only);
    sigaddset(&only, SENT);
    sigprocmask(SIG_BLOCK, &only, NULL);
}

static pid_t make_sleeper(void)
{
    pid_t pid = fork();

    while (pid == 0)
        pause();
    return pid;
}

/* ---- a pid that is used again ------------------------------------------------------------ */

/* Makes a child and reports its pid; reports again when it has reaped the child. */
static _Noreturn void be_root(int out)
{
    pid_t child = make_sleeper();

    if (write(out, &child, sizeof child) != sizeof child)
        _exit(1);
    waitpid(child, NULL, 0);
    if (write(out, &child, sizeof child) != sizeof child)
        _exit(1);
    for (;;)
        pause();
}

/* Lets a traced process run until it makes this system call, or kill(), with this pid or process descriptor. */
static bool run_to_call(pid_t traced, unsigned long call, pid_t pid)
{
    struct __ptrace_syscall_info info;
    int status;

    while (waitpid(traced, &status, 0) == traced && WIFSTOPPED(status)) {
        memset(&info, 0, sizeof info);
        if (WSTOPSIG(status) == SIGSTOP)
            ptrace(PTRACE_SETOPTIONS, traced, NULL, PTRACE_O_TRACESYSGOOD);
        else if (ptrace(PTRACE_GET_SYSCALL_INFO, traced, sizeof info, &info) < 0)
            return false;
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY && (info.entry.nr == call || info.entry.nr == SYS_kill) &&
            (call == SYS_pidfd_send_signal || info.entry.args[0] == (unsigned long)pid))
            return true;
        ptrace(PTRACE_SYSCALL, traced, NULL, NULL);
    }
    return false;
}

static unsigned long long start_of(pid_t pid)
{
    unsigned long long start = 0;
    char path[40];
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    if (!file)
        return 0;
    if (fscanf(file, "%*d (%*[^)]) %*c%*d%*d%*d%*d%*d%*u%*u%*u%*u%*u%*u%*u%*d%*d%*d%*d%*d%*d%llu", &start) != 1)
        start = 0;
    fclose(file);
    return start;
}

/* Makes a process with a pid that was used before, in a later clock tick: the kernel records start times in ticks. */
static pid_t make_again(pid_t pid, unsigned long long start)
{
    for (;;) {
        FILE *last = fopen("/proc/sys/kernel/ns_last_pid", "w");
        pid_t again;

        if (!last || fprintf(last, "%d", (int)pid - 1) < 0 || fclose(last) != 0)
            return -1;
        again = make_sleeper();
        if (again != pid || start_of(again) != start)
            return again;
        kill(again, SIGKILL);
        waitpid(again, NULL, 0);
    }
}

/*
 * Runs in a pid namespace, where nobody else takes a pid: the child of `root` ends just before the sender's call, and a
 * stranger gets its pid.  Returns 0 if the stranger got no signal, 1 if it did, else the step that failed.
 */
static int signal_a_stranger(unsigned long call)
{
    pid_t root, child, sender, stranger, forbidden;
    unsigned long long start;
    int told[2], status;

    block_sent();
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || mount("proc", "/proc", "proc", 0, NULL) != 0)
        return 2;
    if (pipe(told) != 0 || (root = fork()) < 0)
        return 3;
    if (root == 0)
        be_root(told[1]);
    if (read(told[0], &child, sizeof child) != sizeof child || !(start = start_of(child)))
        return 4;
    sender = fork();
    if (sender == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        _exit(tree_signal(root, SENT, &forbidden) ? 0 : 1);
    }
    if (!run_to_call(sender, call, child))
        return 5;
    if (kill(child, SIGKILL) != 0 || read(told[0], &child, sizeof child) != sizeof child)
        return 6;
    stranger = make_again(child, start);
    if (stranger != child)
        return 7;
    ptrace(PTRACE_DETACH, sender, NULL, NULL);
    if (waitpid(sender, &status, 0) != sender || status != 0)
        return 8;
    return proc_has_pending(stranger, SENT);
}

/* The first process of the namespace: all others end with it. */
static int in_namespace(unsigned long call)
{
    pid_t first;
    int status;

    if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0)
        return 9;
    first = fork();
    if (first == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(signal_a_stranger(call));
    }
    return waitpid(first, &status, 0) == first && WIFEXITED(status) ? WEXITSTATUS(status) : 10;
}

static void test_a_stranger_gets_no_signal_when_it_has_the_pid_of_a_descendant(void **state)
{
    static const unsigned long calls[] = { SYS_pidfd_open, SYS_pidfd_send_signal };

    (void)state;
    if (geteuid() != 0)
        return;
    for (size_t i = 0; i < COUNT(calls); i++) {
        pid_t pid = keeper_fork();

        if (pid == 0)
            _exit(in_namespace(calls[i]));
        assert_int_equal(keeper_reap(pid), 0);
    }
}

/* ---- others ------------------------------------------------------------------------------ */

static void test_all_descendants_get_the_signal(void **state)
{
    pid_t pid = keeper_fork();

    (void)state;
    if (pid == 0) {
        pid_t child, forbidden;
        bool is_good;
        int told[2];

        block_sent();
        if (pipe(told) != 0)
            _exit(2);
        child = fork();
        if (child == 0)
            be_root(told[1]);
        if (read(told[0], &pid, sizeof pid) != sizeof pid || !tree_signal(getpid(), SENT, &forbidden) || forbidden)
            _exit(3);
        is_good = proc_has_pending(child, SENT) && proc_has_pending(pid, SENT) && !proc_has_pending(getpid(), SENT);
        kill(pid, SIGKILL);
        kill(child, SIGKILL);
        _exit(is_good ? 0 : 1);
    }
    assert_int_equal(keeper_reap(pid), 0);
}

/* From here on this process sees a kernel before Linux 5.3. */
static bool age_kernel(void)
{
    return filter_refuse(SYS_pidfd_open, ENOSYS);
}

/* A pid alone may belong to anybody: the caller gets false, and signals the child that it has not reaped. */
static void test_nobody_gets_a_signal_when_the_kernel_has_no_descriptors_of_processes(void **state)
{
    pid_t pid = keeper_fork();

    (void)state;
    if (pid == 0) {
        pid_t child, forbidden;
        bool is_good;

        block_sent();
        child = make_sleeper();
        is_good = age_kernel() && !tree_signal(getpid(), SENT, &forbidden) && !proc_has_pending(child, SENT);
        kill(child, SIGKILL);
        _exit(is_good ? 0 : 1);
    }
    assert_int_equal(keeper_reap(pid), 0);
}

/*
 * A container may have the host's /proc, where all processes have other numbers: nobody there is taken for a
 * descendant, and the caller gets false.
 */
static void test_nobody_gets_a_signal_when_proc_is_of_another_namespace(void **state)
{
    pid_t pid, first;
    int status;

    (void)state;
    if (geteuid() != 0)
        return;
    pid = keeper_fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWPID) != 0 || (first = fork()) < 0)
            _exit(2);
        if (first == 0) {
            pid_t forbidden;

            make_sleeper(); /* ends with this process */
            _exit(tree_signal(getpid(), SENT, &forbidden) ? 1 : 0);
        }
        _exit(waitpid(first, &status, 0) == first && WIFEXITED(status) ? WEXITSTATUS(status) : 3);
    }
    assert_int_equal(keeper_reap(pid), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stranger_gets_no_signal_when_it_has_the_pid_of_a_descendant),
        cmocka_unit_test(test_all_descendants_get_the_signal),
        cmocka_unit_test(test_nobody_gets_a_signal_when_the_kernel_has_no_descriptors_of_processes),
        cmocka_unit_test(test_nobody_gets_a_signal_when_proc_is_of_another_namespace),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

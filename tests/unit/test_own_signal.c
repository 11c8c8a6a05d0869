/* SPDX-License-Identifier: BSD-2-Clause */
/* base/own_signal.h: a signal ends any process, also process 1 of a pid namespace, which the kernel spares. */
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/testlib.h"
#include "base/attrs.h"
#include "base/own_signal.h"

static void handle(int number)
{
    _exit(number + 1);
}

/* Ends with the number and 1 if the signal can be awaited afterwards. */
static _Noreturn void await(int number)
{
    const struct timespec none = { 0 };
    sigset_t only;

    sigemptyset(&only);
    sigaddset(&only, number);
    sigprocmask(SIG_BLOCK, &only, NULL);
    dm_own_signal(number);
    _exit(sigtimedwait(&only, NULL, &none) == number ? number + 1 : 0);
}

enum wish { BY_DEFAULT, HANDLED, IGNORED, AWAITED };

static _Noreturn void take(int number, enum wish wish)
{
    if (wish == AWAITED)
        await(number);
    if (wish != BY_DEFAULT)
        signal(number, wish == HANDLED ? handle : SIG_IGN);
    dm_own_signal(number);
    _exit(0);
}

/* The wait status of a process that gets the signal, in a new pid namespace as its first process. */
static int end_of(int number, enum wish wish, bool is_first)
{
    pid_t pid = keeper_fork(), first;
    int status = 0;

    if (pid != 0)
        return keeper_reap(pid);
    if (!is_first)
        take(number, wish);
    if (unshare(CLONE_NEWPID) != 0 || (first = fork()) < 0)
        _exit(99);
    if (first == 0)
        take(number, wish);
    waitpid(first, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
}

static void assert_exit(int status, int number)
{
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), number);
}

static void test_a_signal_ends_a_process(void **state)
{
    static const int numbers[] = { SIGTERM, SIGKILL, SIGUSR1 };

    (void)state;
    for (size_t i = 0; i < DM_COUNT(numbers); i++) {
        int status = end_of(numbers[i], BY_DEFAULT, false);

        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), numbers[i]);
        if (geteuid() == 0)
            assert_exit(end_of(numbers[i], BY_DEFAULT, true), 128 + numbers[i]);
    }
}

/* What a program has asked for itself is not the end, whatever process it is. */
static void test_a_signal_does_what_the_program_has_chosen(void **state)
{
    (void)state;
    for (int is_first = 0; is_first <= (geteuid() == 0); is_first++) {
        assert_exit(end_of(SIGTERM, HANDLED, is_first), SIGTERM + 1);
        assert_exit(end_of(SIGTERM, AWAITED, is_first), SIGTERM + 1);
        assert_exit(end_of(SIGTERM, IGNORED, is_first), 0);
        assert_exit(end_of(SIGWINCH, BY_DEFAULT, is_first), 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_signal_ends_a_process),
        cmocka_unit_test(test_a_signal_does_what_the_program_has_chosen),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

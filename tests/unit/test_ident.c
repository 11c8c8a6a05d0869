/* SPDX-License-Identifier: BSD-2-Clause */
/* base/ident: random words where a filter of system calls forbids the usual way. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/ident.h"
#include "base/log.h"

#include "../lib/filter.h"

#define WORDS 4

static int lines;

static void note(int level, const char *message, void *user)
{
    (void)level;
    (void)user;
    lines += strstr(message, "no random numbers") != NULL;
}

/* How many lines about it a process logs without the two calls; WORDS + 1 if its words are bad, too. */
static int lines_without(unsigned one, unsigned other)
{
    uint64_t words[WORDS] = { 0 };
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        dm_log_set(note, NULL);
        if (!filter_refuse(one, EPERM) || !filter_refuse(other, EPERM))
            _exit(99);
        for (int i = 0; i < WORDS; i++)
            dm_ident_random(&words[i], 1);
        dm_log_deliver();
        for (int i = 0; i < WORDS; i++)
            if (words[i] == 0)
                _exit(WORDS + 1);
        _exit(lines);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The kernel's device has random numbers, too. */
static void test_nothing_is_said_when_the_device_can_be_read(void **state)
{
    (void)state;
    assert_int_equal(lines_without(SYS_getrandom, SYS_getrandom), 0);
}

/* Words that others can guess are reported, once. */
static void test_the_log_says_it_when_there_are_no_random_numbers(void **state)
{
    (void)state;
    assert_int_equal(lines_without(SYS_getrandom, SYS_openat), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_said_when_the_device_can_be_read),
        cmocka_unit_test(test_the_log_says_it_when_there_are_no_random_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

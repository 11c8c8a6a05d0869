/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of /proc/locks and /proc/PID/fdinfo. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "shared/kernel_lock.h"
#include "shared/text.h"

/* Reads a line of a lock, writes the lock as `wanted`, and parses the text again. */
static void assert_read(const char *line, const char *wanted, bool is_exclusive)
{
    struct kernel_lock lock, again;
    char room[100];
    struct text text = text_in(room, sizeof room);

    assert_true(kernel_lock_read(line, &lock));
    assert_int_equal(lock.is_exclusive, is_exclusive);
    kernel_lock_write(&lock, &text);
    assert_string_equal(room, wanted);
    assert_true(kernel_lock_parse(room, &again));
    assert_int_equal(again.kind, lock.kind);
    assert_int_equal(again.pid, lock.pid);
    assert_string_equal(again.inode, lock.inode);
}

static void test_a_line_is_read_when_it_describes_a_lock(void **state)
{
    (void)state;
    assert_read("1: FLOCK  ADVISORY  WRITE 4711 fe:00:99 0 EOF\nmore", "FLOCK 4711 fe:00:99", true);
    assert_read("lock:\t12: FLOCK  ADVISORY  WRITE 0 fe:00:99 0 EOF\n", "FLOCK 0 fe:00:99", true);
    assert_read("2: POSIX  ADVISORY  READ 7 00:2a:18446744073709551615 0 EOF", "POSIX 7 00:2a:18446744073709551615",
                false);
    assert_read("3: OFDLCK ADVISORY  WRITE -1 fe:00:99 10 14\n", "OFDLCK -1 fe:00:99", true);
    assert_read("4: POSIX  MANDATORY WRITE 7 fe:00:99 0 EOF\n", "POSIX 7 fe:00:99", true);
}

static void test_a_line_is_not_read_when_it_is_something_else(void **state)
{
    static const char *const lines[] = {
        "",
        "\n",
        "pos:\t0\n",
        "1: -> FLOCK  ADVISORY  WRITE 4711 fe:00:99 0 EOF\n",
        "1: LEASE  ACTIVE    READ 4711 fe:00:99 0 EOF\n",
        "1: FLOCK  ADVISORY  WRITE 47x1 fe:00:99 0 EOF\n",
        "1: FLOCK  ADVISORY  WRITE\n 4711 fe:00:99 0 EOF\n",
        "FLOCK  ADVISORY  WRITE 4711 fe:00:99 0 EOF\n",
        "1: FLOCK  ADVISORY  WRITE 99999999999 fe:00:99 0 EOF\n",
        "1: FLOCK  ADVISORY  WRITE 1 fe:00:9999999999999999999999999999999999999999999 0 EOF\n",
    };
    struct kernel_lock lock;

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        assert_false(kernel_lock_read(lines[i], &lock));
}

static void test_a_text_is_not_parsed_when_it_is_something_else(void **state)
{
    struct kernel_lock lock;

    (void)state;
    assert_false(kernel_lock_parse("", &lock));
    assert_false(kernel_lock_parse("FLOCK 1", &lock));
    assert_false(kernel_lock_parse("FLOCK 1 a:b:1 more", &lock));
    assert_false(kernel_lock_parse("LEASE 1 a:b:1", &lock));
}

/* The kernel's lock of a descriptor is found, if the lock is exclusive and of the right kind. */
static void test_the_lock_of_a_descriptor_is_found(void **state)
{
    char path[] = "/tmp/dmt-kernel-XXXXXX", number[12];
    int file = mkstemp(path), folder = open("/proc/self", O_PATH | O_DIRECTORY);
    struct kernel_lock lock;

    (void)state;
    assert_true(file >= 0 && folder >= 0);
    unlink(path);
    snprintf(number, sizeof number, "%d", file);
    assert_false(kernel_lock_of_descriptor(folder, number, LOCK_OF_FLOCK, &lock));
    assert_int_equal(flock(file, LOCK_SH), 0);
    assert_false(kernel_lock_of_descriptor(folder, number, LOCK_OF_FLOCK, &lock));
    assert_int_equal(flock(file, LOCK_EX), 0);
    assert_true(kernel_lock_of_descriptor(folder, number, LOCK_OF_FLOCK, &lock));
    assert_int_equal(lock.pid, getpid());
    assert_false(kernel_lock_of_descriptor(folder, number, LOCK_OF_PROCESS, &lock));
    assert_int_equal(lockf(file, F_LOCK, 0), 0);
    assert_true(kernel_lock_of_descriptor(folder, number, LOCK_OF_PROCESS, &lock));
    assert_false(kernel_lock_of_descriptor(folder, "9999", LOCK_OF_PROCESS, &lock));
    close(file);
    close(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_is_read_when_it_describes_a_lock),
        cmocka_unit_test(test_a_line_is_not_read_when_it_is_something_else),
        cmocka_unit_test(test_a_text_is_not_parsed_when_it_is_something_else),
        cmocka_unit_test(test_the_lock_of_a_descriptor_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* base/file: files that the user names. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

static char folder[] = "/tmp/dmt-file-XXXXXX";
static char path[64];

static const char *in_folder(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int begin(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    unlink(in_folder("fifo"));
    unlink(in_folder("text"));
    return rmdir(folder);
}

static void write_text(const char *text)
{
    FILE *file = fopen(in_folder("text"), "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void test_a_file_is_read(void **state)
{
    static const char *const texts[] = { "", "a", "two\nlines\n" };
    size_t length = 0;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char *bytes;

        write_text(texts[i]);
        bytes = dm_file_read(in_folder("text"), 10, &length);
        assert_non_null(bytes);
        assert_int_equal(length, strlen(texts[i]));
        assert_string_equal(bytes, texts[i]);
        free(bytes);
    }
}

/* A size of 0 says nothing about a file of /proc, of /sys, or of a file system in user space. */
static void test_a_file_is_read_when_its_size_is_not_known(void **state)
{
    char name[20];
    size_t length = 0;
    char *bytes = dm_file_read("/proc/self/comm", 15 + 1, &length);

    (void)state;
    prctl(PR_GET_NAME, name);
    assert_non_null(bytes);
    assert_string_equal(bytes, strcat(name, "\n"));
    free(bytes);
    assert_null(dm_file_read("/proc/self/comm", 3, &length));
    assert_int_equal(errno, EFBIG);
}

static void test_a_file_is_refused_when_it_is_longer_than_the_most(void **state)
{
    size_t length;

    (void)state;
    write_text("0123456789");
    assert_null(dm_file_read(in_folder("text"), 9, &length));
    assert_int_equal(errno, EFBIG);
}

/* Nothing waits for the other end; a file that is not there is another failure. */
static void test_a_file_is_refused_when_it_is_not_regular(void **state)
{
    size_t length;

    (void)state;
    assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
    assert_null(dm_file_read(path, 10, &length));
    assert_string_equal(dm_file_reason(errno), "it is not a regular file");
    assert_null(dm_file_read(folder, 10, &length));
    assert_string_equal(dm_file_reason(errno), "it is not a regular file");
    assert_null(dm_file_read("/dev/zero", 10, &length));
    assert_string_equal(dm_file_reason(errno), "it is not a regular file");
    assert_null(dm_file_read(in_folder("gone"), 10, &length));
    assert_string_equal(dm_file_reason(errno), "No such file or directory");
}

#define STRANGER 61234

static void give(const char *name, uid_t owner)
{
    assert_return_code(lchown(in_folder(name), owner, owner), errno);
}

static void assert_refused(const char *name)
{
    size_t length;

    assert_null(dm_file_read(in_folder(name), 10, &length));
    assert_int_equal(errno, EPERM);
    assert_false(dm_file_is_safe(path));
}

static void assert_read(const char *name)
{
    size_t length;
    char *bytes = dm_file_read(in_folder(name), 10, &length);

    assert_non_null(bytes);
    free(bytes);
}

/*
 * Root reads by no link of another user, which may lead to a secret of root's, and from no folder or file that another
 * user can change.  As another user than root: all is read that can be.
 */
static void test_root_reads_nothing_that_a_stranger_can_exchange(void **state)
{
    bool is_root = geteuid() == 0;

    (void)state;
    write_text("secret");
    assert_int_equal(mkdir(in_folder("folder"), 0700), 0);
    assert_int_equal(symlink("../text", in_folder("folder/own")), 0);
    assert_int_equal(symlink("../text", in_folder("folder/strange")), 0);
    assert_read("folder/own");
    if (is_root) {
        give("folder/strange", STRANGER);
        assert_refused("folder/strange");
        give("folder", STRANGER);
        assert_refused("folder/own");
        give("folder", 0);
        give("text", STRANGER);
        assert_refused("text");
        give("text", 0);
        assert_int_equal(chmod(in_folder("text"), 0606), 0);
        assert_refused("text");
        assert_int_equal(chmod(in_folder("text"), 0600), 0);
        assert_int_equal(chmod(in_folder("folder"), 0777), 0);
        assert_refused("folder/own");
        assert_int_equal(chmod(in_folder("folder"), 01777), 0);
        assert_read("folder/own");
        assert_refused("folder/strange");
    }
    unlink(in_folder("folder/own"));
    unlink(in_folder("folder/strange"));
    rmdir(in_folder("folder"));
}

/* Another thread may fork and exec at any moment. */
static void test_the_descriptor_does_not_outlive_an_exec(void **state)
{
    int fd;

    (void)state;
    write_text("text");
    fd = dm_file_open(in_folder("text"));
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_file_is_read),
        cmocka_unit_test(test_a_file_is_read_when_its_size_is_not_known),
        cmocka_unit_test(test_a_file_is_refused_when_it_is_longer_than_the_most),
        cmocka_unit_test(test_a_file_is_refused_when_it_is_not_regular),
        cmocka_unit_test(test_root_reads_nothing_that_a_stranger_can_exchange),
        cmocka_unit_test(test_the_descriptor_does_not_outlive_an_exec),
    };

    return cmocka_run_group_tests(tests, begin, end);
}

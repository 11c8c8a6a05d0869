/* SPDX-License-Identifier: BSD-2-Clause */
/* base/log and base/date: a line of DMUTEX_LOG has a time, a name and a level, and is one line. */
#include "../lib/testlib.h"

#include <fcntl.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/date.h"
#include "base/log.h"
#include "base/rank.h"

static char path[] = "/tmp/dmutex-log-XXXXXX";

/* Before the first line, because the environment is read once. */
static int open_log(void **state)
{
    char variable[64];
    int fd = mkstemp(path);

    (void)state;
    snprintf(variable, sizeof variable, "info:%s", path);
    return fd < 0 || close(fd) != 0 || setenv("DMUTEX_LOG", variable, 1) != 0 ? -1 : 0;
}

static int remove_log(void **state)
{
    (void)state;
    return unlink(path);
}

/* What was logged since the last call. */
static const char *take_log(void)
{
    static char text[4096];
    FILE *file = fopen(path, "r");
    size_t length;

    assert_non_null(file);
    length = fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    fclose(file);
    assert_return_code(truncate(path, 0), errno);
    return text;
}

static void assert_matches(const char *text, const char *pattern)
{
    regex_t regex;

    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    if (regexec(&regex, text, 0, NULL, 0) != 0)
        fail_msg("\"%s\" does not match %s", text, pattern);
    regfree(&regex);
}

/*
 * As /etc/dmutex/dmutex.conf may name a log that is root's: the programs of all other users would talk about it.  First
 * of all tests, because the environment is read once.
 */
static void test_nothing_is_said_when_the_log_of_a_file_is_for_others(void **state)
{
    char value[64], said[200] = "";
    int ends[2], status;
    pid_t pid;

    (void)state;
    snprintf(value, sizeof value, "info:%s", path);
    assert_return_code(chmod(path, 0), errno);
    assert_return_code(pipe2(ends, O_CLOEXEC), errno);
    pid = fork();
    if (pid == 0) {
        unsetenv("DMUTEX_LOG");
        if (dup2(ends[1], STDERR_FILENO) < 0 || (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0))
            _exit(2);
        dm_log_set_default(value, "Log of dmutex.conf");
        dm_log_warn("anything");
        _exit(access(path, W_OK) == 0);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], said, sizeof said - 1), 0);
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_return_code(chmod(path, 0600), errno);
}

/* ---- standard error ---------------------------------------------------------------------- */

/* What a child writes to the file that it has as standard error; "" for nothing. */
static const char *say_in_place_of_stderr(int fd, int read_end)
{
    static char said[4096];
    int status;
    ssize_t length;
    pid_t pid = fork();

    if (pid == 0) {
        close(STDERR_FILENO);
        unsetenv("DMUTEX_LOG");
        if (fcntl(fd, F_DUPFD, 0) != STDERR_FILENO)
            _exit(2);
        dm_log_alarm("a loss");
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(fd);
    length = read(read_end, said, sizeof said - 1);
    said[length > 0 ? length : 0] = '\0';
    close(read_end);
    return said;
}

static const char *say_in_place_of_file(int flags)
{
    static char file[] = "/tmp/dmutex-data-XXXXXX";
    const char *said;
    int other = mkstemp(file), fd = open(file, flags | O_CLOEXEC);

    assert_return_code(other, errno);
    assert_return_code(fd, errno);
    assert_return_code(unlink(file), errno);
    said = say_in_place_of_stderr(fd, other);
    strcpy(file, "/tmp/dmutex-data-XXXXXX");
    return said;
}

/*
 * R8: a program has closed 2, and the next file or connection that it opens gets the number.  These tests come before
 * the first line, because the environment is read once.
 */
static void test_nothing_is_said_to_a_file_of_data_in_the_place_of_standard_error(void **state)
{
    int ends[2];

    (void)state;
    assert_string_equal(say_in_place_of_file(O_RDWR), "");
    assert_string_equal(say_in_place_of_file(O_RDWR | O_APPEND), "");
    assert_string_equal(say_in_place_of_file(O_WRONLY), "");
    assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), errno);
    assert_string_equal(say_in_place_of_stderr(ends[1], ends[0]), "");
}

/* A program that replaces standard error with its own log, or with a pipe, gets the lines there. */
static void test_a_line_reaches_the_log_that_a_program_puts_in_the_place_of_standard_error(void **state)
{
    int ends[2];

    (void)state;
    assert_non_null(strstr(say_in_place_of_file(O_WRONLY | O_APPEND), "error: a loss\n"));
    assert_return_code(pipe2(ends, O_CLOEXEC), errno);
    assert_non_null(strstr(say_in_place_of_stderr(ends[1], ends[0]), "error: a loss\n"));
}

#define TIME "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z"

/* Each level has its word; a lower level than DMUTEX_LOG's is not written. */
static void test_line_has_time_name_and_level(void **state)
{
    (void)state;
    dm_log_warn("the words of %d", 1);
    assert_matches(take_log(), "^" TIME " libdmutex\\[[0-9]+\\]: warning: the words of 1\n$");
    dm_log_error("two");
    assert_matches(take_log(), "^" TIME " libdmutex\\[[0-9]+\\]: error: two\n$");
    dm_log_info("three");
    assert_matches(take_log(), "^" TIME " libdmutex\\[[0-9]+\\]: info: three\n$");
    dm_log_debug("four");
    assert_string_equal(take_log(), "");
}

static char heard[256]; /* by the callback, one word after another */
static int kept;

static void hear(int level, const char *message, void *user)
{
    (void)level;
    (void)user;
    strcat(strcat(heard, message), " ");
}

static void count_kept(void)
{
    kept++;
}

/* The callback may take long, or fork: it runs outside all locks, and an unlock calls nothing. */
static void test_lines_wait_for_the_callback_when_a_lock_is_held(void **state)
{
    static struct dm_mutex lock = DM_MUTEX_INITIALIZER(DM_RANK_CONN);

    (void)state;
    dm_log_set(hear, NULL);
    dm_log_on_kept(count_kept);
    dm_mutex_lock(&lock);
    dm_log_warn("one");
    dm_log_deliver();
    assert_true(dm_log_has_kept());
    assert_int_equal(kept, 1);
    dm_mutex_unlock(&lock);
    assert_string_equal(heard, "");
    dm_log_warn("two");
    assert_string_equal(heard, "one two ");
    dm_mutex_lock(&lock);
    dm_log_warn("three");
    dm_mutex_unlock(&lock);
    dm_log_deliver();
    assert_string_equal(heard, "one two three ");
    assert_false(dm_log_has_kept());
    dm_log_on_kept(NULL);
    dm_log_set(NULL, NULL);
    take_log();
}

/* A server's words may have ends of lines, and controls of a terminal: the line stays one line, without these. */
static void test_line_is_one_line_whatever_a_server_says(void **state)
{
    (void)state;
    dm_log_warn("%s", "one\ntwo\r\nthree\x1b[31m\x9b four\xe2\x80\xa8 \x07");
    assert_matches(take_log(),
                   "^" TIME " libdmutex\\[[0-9]+\\]: warning: one\\?two\\?\\?three\\?\\[31m\\? four\\?+ \\?\n$");
}

/* A text without an end is cut, and the end of the line stays. */
static void test_line_ends_when_the_text_is_long(void **state)
{
    static char words[3000];
    const char *line;

    (void)state;
    memset(words, 'x', sizeof words - 1);
    dm_log_warn("%s", words);
    line = take_log();
    assert_matches(line, "^" TIME " libdmutex\\[[0-9]+\\]: warning: x+\n$");
    assert_true(strlen(line) < 1000);
}

/* Each day from 1970 to 2500, as libc says it. */
static void test_date_is_libcs_on_each_day(void **state)
{
    char text[DM_DATE_ROOM], wanted[DM_DATE_ROOM + 8];

    (void)state;
    for (int64_t day = 0; day < 193600; day++) {
        struct timespec moment = { .tv_sec = day * 86400 + day % 86400, .tv_nsec = 7000000 };
        struct tm parts;

        assert_non_null(gmtime_r(&moment.tv_sec, &parts));
        strftime(wanted, sizeof wanted, "%Y-%m-%dT%H:%M:%S.007Z", &parts);
        dm_date_write(&moment, text);
        assert_string_equal(text, wanted);
    }
}

/* A clock that was never set, or is set to nonsense, does no harm. */
static void test_date_is_written_when_the_clock_is_wrong(void **state)
{
    char text[DM_DATE_ROOM];

    (void)state;
    dm_date_write(&(struct timespec){ .tv_sec = -5 }, text);
    assert_string_equal(text, "1970-01-01T00:00:00.000Z");
    dm_date_write(&(struct timespec){ .tv_sec = INT64_MAX, .tv_nsec = 999999999 }, text);
    assert_matches(text, "^[0-9]+-12-[0-9]{2}T[0-9:]{8}\\.999Z$");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_said_when_the_log_of_a_file_is_for_others),
        cmocka_unit_test(test_nothing_is_said_to_a_file_of_data_in_the_place_of_standard_error),
        cmocka_unit_test(test_a_line_reaches_the_log_that_a_program_puts_in_the_place_of_standard_error),
        cmocka_unit_test(test_line_has_time_name_and_level),
        cmocka_unit_test(test_lines_wait_for_the_callback_when_a_lock_is_held),
        cmocka_unit_test(test_line_is_one_line_whatever_a_server_says),
        cmocka_unit_test(test_line_ends_when_the_text_is_long),
        cmocka_unit_test(test_date_is_libcs_on_each_day),
        cmocka_unit_test(test_date_is_written_when_the_clock_is_wrong),
    };

    return cmocka_run_group_tests(tests, open_log, remove_log);
}

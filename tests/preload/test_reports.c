/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports: the counts of a program for each name, in a file that no other user can lead elsewhere. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "naming.h"

#define test_of_program(test) cmocka_unit_test_setup(test, forget_said)

static const char rules[] = "sym:legacy:static_lock => t/x; sym:legacy:recursive_lock => t/r;"
                            "sym:legacy:errorcheck_lock => t/e; sym:legacy:adaptive_lock => t/a;"
                            "sym:legacy:made_lock => t/m; sym:legacy:c11_lock => t/c11";

static int build_legacy(void **state)
{
    if (programs_setup(state) != 0)
        return -1;
    build("legacy", LEGACY, "");
    return 0;
}

static char report[16384];

/* Reads and removes all reports in the folder. */
static void read_reports(void)
{
    command_run("cd %s && cat report.* && rm report.*", folder);
    assert_status(0);
    strcpy(report, ran.output);
}

static long long value_of(const char *name, const char *key)
{
    char line[100];
    const char *at;

    snprintf(line, sizeof line, "%s locks=", name);
    at = strstr(report, line);
    assert_non_null(at);
    snprintf(line, sizeof line, " %s=", key);
    at = strstr(at, line);
    assert_non_null(at);
    return strtoll(at + strlen(line), NULL, 10);
}

static struct actor *start_reporting(void)
{
    char variable[100];

    snprintf(variable, sizeof variable, "DMUTEX_REPORT=%s/report.%%p", folder);
    return start_program("legacy", rules, variable, NULL);
}

/* A report has a line for each name that was locked, with the number of locks and waits. */
static void test_a_report_says_what_was_done_with_each_name(void **state)
{
    struct actor *actor = start_reporting();
    char path[100];

    (void)state;
    snprintf(path, sizeof path, "%s/report.%d", folder, (int)actor_pid(actor));
    for (int i = 0; i < 3; i++) {
        actor_do(actor, "0", "lock static_lock");
        actor_do(actor, "0", "unlock static_lock");
    }
    check_waits(actor, "t/x", "lock static_lock");
    actor_do(actor, "0", "unlock static_lock");
    actor_do(actor, "0", "trylock errorcheck_lock");
    actor_do(actor, "EDEADLK", "lock errorcheck_lock");
    actor_do(actor, "0", "unlock errorcheck_lock");
    actor_do(actor, "0", "lock other_lock");
    actor_end(actor);
    assert_int_equal(access(path, R_OK), 0);
    read_reports();
    assert_int_equal(value_of("t/x", "locks"), 4);
    assert_int_equal(value_of("t/x", "waits"), 1);
    assert_true(value_of("t/x", "wait_us") > 0);
    assert_true(value_of("t/x", "hold_us") > 0);
    assert_int_equal(value_of("t/x", "losses"), 0);
    assert_int_equal(value_of("t/e", "locks"), 1);
    assert_int_equal(value_of("t/e", "waits"), 0);
    assert_null(strstr(report, "t/r "));
    assert_null(strstr(report, "other"));
}

/* Each process has a separate report; a process without locks, as this child, has none. */
static void test_a_report_is_of_one_process_when_it_forks(void **state)
{
    struct actor *actor = start_reporting(), *idle = start_reporting();

    (void)state;
    actor_do(actor, "0", "lock static_lock");
    actor_do(actor, "0", "unlock static_lock");
    actor_do(actor, "ECHILD", "child exit 0");
    actor_end(actor);
    actor_end(idle);
    read_reports();
    assert_int_equal(value_of("t/x", "locks"), 1);
    assert_null(strstr(strstr(report, "t/x") + 1, "t/x"));
}

/* A report has one line for a name of several objects; a hold lasts until the last unlock. */
static void test_a_report_adds_up_when_objects_have_one_name(void **state)
{
    char variable[100];
    struct actor *actor;

    (void)state;
    snprintf(variable, sizeof variable, "DMUTEX_REPORT=%s/report.%%p", folder);
    actor = start_program("legacy", "sym:legacy:static_lock => t/x; sym:legacy:recursive_lock => t/x", variable, NULL);
    actor_do(actor, "0", "lock static_lock");
    actor_do(actor, "0", "unlock static_lock");
    actor_do(actor, "0", "lock recursive_lock");
    actor_do(actor, "0", "lock recursive_lock");
    actor_do(actor, "0", "unlock recursive_lock");
    actor_do(actor, "0", "unlock recursive_lock");
    actor_end(actor);
    read_reports();
    assert_int_equal(value_of("t/x", "locks"), 3);
    assert_null(strstr(strstr(report, "t/x") + 1, "t/x"));
}

/* A report that cannot be written is a sentence, and the program ends as without a report. */
static void test_a_sentence_is_said_when_the_report_cannot_be_written(void **state)
{
    struct actor *actor = start_program("legacy", rules, "DMUTEX_REPORT=/no/such/folder/report", NULL);

    (void)state;
    actor_do(actor, "0", "lock static_lock");
    actor_do(actor, "0", "unlock static_lock");
    actor_end(actor);
    assert_said("dmutex: the report cannot be written to /no/such/folder/report: No such file or directory\n");
}

/* The same if files may not grow, which the kernel reports by a signal. */
static void test_the_program_goes_on_when_the_report_may_not_grow(void **state)
{
    struct rlimit before, none;
    struct actor *actor;
    char variable[100];

    (void)state;
    snprintf(variable, sizeof variable, "DMUTEX_REPORT=%s/limited", folder);
    assert_return_code(getrlimit(RLIMIT_FSIZE, &before), errno);
    none = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
    assert_return_code(setrlimit(RLIMIT_FSIZE, &none), errno);
    actor = start_program("legacy", rules, variable, NULL);
    assert_return_code(setrlimit(RLIMIT_FSIZE, &before), errno);
    actor_do(actor, "0", "lock static_lock");
    actor_do(actor, "0", "unlock static_lock");
    actor_end(actor);
}

/* Asserts that no report is written to the path, with the reason. */
static void check_no_report_to(const char *path, const char *why)
{
    char variable[100], sentence[200];
    struct actor *actor;

    snprintf(variable, sizeof variable, "DMUTEX_REPORT=%s", path);
    snprintf(sentence, sizeof sentence, "dmutex: the report cannot be written to %s: %s\n", path, why);
    actor = start_program("legacy", rules, variable, NULL);
    actor_do(actor, "0", "lock static_lock");
    actor_do(actor, "0", "unlock static_lock");
    actor_end(actor);
    assert_said(sentence);
}

/* No report is written through a link: a stranger may have made the link, to a file of the program's user. */
static void test_no_report_is_written_when_its_path_is_a_link(void **state)
{
    char victim[100], path[100], line[10] = "";
    FILE *file;

    (void)state;
    snprintf(victim, sizeof victim, "%s/victim", folder);
    snprintf(path, sizeof path, "%s/linked", folder);
    file = fopen(victim, "w");
    assert_true(fputs("precious", file) > 0);
    assert_int_equal(fclose(file), 0);
    assert_return_code(symlink(victim, path), errno);
    check_no_report_to(path, "it is a symbolic link");
    assert_return_code(unlink(path), errno);
    assert_return_code(link(victim, path), errno);
    check_no_report_to(path, "it is no file of this user alone");
    file = fopen(victim, "r");
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    assert_string_equal(line, "precious");
}

/* No report is written to a FIFO, with or without a reader, and the program's end does not wait for a reader. */
static void test_no_report_is_written_when_its_path_is_a_fifo(void **state)
{
    char path[100];
    int reader;

    (void)state;
    snprintf(path, sizeof path, "%s/fifo", folder);
    assert_return_code(mkfifo(path, 0600), errno);
    check_no_report_to(path, strerror(ENXIO));
    reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    check_no_report_to(path, "it is no file of this user alone");
    close(reader);
}

/* No report is written in a folder that everybody may change, because the report could be led elsewhere. */
static void test_no_report_is_written_when_others_can_change_the_folder(void **state)
{
    char place[100], path[120];

    (void)state;
    snprintf(place, sizeof place, "%s/wide", folder);
    snprintf(path, sizeof path, "%s/report", place);
    assert_return_code(mkdir(place, 0700), errno);
    assert_return_code(chmod(place, 0777), errno);
    check_no_report_to(path, "other users can change a folder above it");
    assert_int_equal(access(path, F_OK), -1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        test_of_program(test_a_report_says_what_was_done_with_each_name),
        test_of_program(test_a_report_is_of_one_process_when_it_forks),
        test_of_program(test_a_report_adds_up_when_objects_have_one_name),
        test_of_program(test_a_sentence_is_said_when_the_report_cannot_be_written),
        test_of_program(test_the_program_goes_on_when_the_report_may_not_grow),
        test_of_program(test_no_report_is_written_when_its_path_is_a_link),
        test_of_program(test_no_report_is_written_when_its_path_is_a_fifo),
        test_of_program(test_no_report_is_written_when_others_can_change_the_folder),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, build_legacy, programs_teardown);
}

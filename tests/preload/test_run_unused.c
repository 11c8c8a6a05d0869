/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules without a match have no effect: the command says so at the end, and only there, if no rule matches, or for each
 * rule of the command line, which is meant for the command, that does not match.
 */
#include "run.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOTHING \
    "dmutex: no rule has matched anything, so nothing was distributed: dmutex-run --list shows what the program uses\n"

/* True if the process has made a segment of System V's shared memory that still exists. */
static bool has_memory_of(pid_t pid)
{
    FILE *file = fopen("/proc/sysvipc/shm", "r");
    char line[300];
    bool is_any = false;
    int creator;

    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        is_any |= sscanf(line, "%*s %*s %*s %*s %d", &creator) == 1 && creator == pid;
    fclose(file);
    return is_any;
}

/* Runs a command in the folder, with a rule of the command line. */
static void run_with(const char *rule, const char *command)
{
    command_run("cd %s && exec %s -e '%s' %s", folder, dmutex_run, rule, command);
    assert_status(0);
}

/* A line is said if no rule matches, here because of a wrong path; an only rule is named; with -q nothing is said. */
static void test_a_line_is_said_when_no_rule_matches(void **state)
{
    (void)state;
    run_with("flock:/run/lok/x => a", "flock x.lock true");
    assert_string_equal(ran.errors,
                        "dmutex: the rule flock:/run/lok/x => a has matched nothing, so nothing was distributed: "
                        "dmutex-run --list shows what the program uses\n");
    run_with("flock:/run/lok/x => a; flock:/run/lok/y => b", "flock x.lock true");
    assert_string_equal(ran.errors, NOTHING);
    command_run("cd %s && exec %s -q -e 'flock:/run/lok/x => a' flock x.lock true", folder, dmutex_run);
    assert_string_equal(ran.errors, "");
}

/* Each rule of the command line that matches nothing is reported, even if another rule matches. */
static void test_each_rule_of_the_command_line_is_reported_when_it_matches_nothing(void **state)
{
    char rules[300];

    (void)state;
    snprintf(rules, sizeof rules, "flock:%s/*.lock => f/%%b; sym:flock:nothing => b required=no; fcntl:/none => c",
             folder);
    command_run("cd %s && exec %s -e '%s' flock x.lock true", folder, dmutex_run, rules);
    assert_status(0);
    assert_errors("dmutex: the rule sym:flock:nothing => b has matched nothing: dmutex-run --list shows ");
    assert_errors("dmutex: the rule fcntl:/none => c has matched nothing: ");
    assert_null(strstr(ran.errors, "f/%b"));
}

/* Nothing is said if only a child has used the rule, because a command may only wait for a child. */
static void test_nothing_is_said_when_a_child_has_used_the_rule(void **state)
{
    char rule[200];

    (void)state;
    snprintf(rule, sizeof rule, "flock:%s/*.lock => f/%%b", folder);
    run_with(rule, "timeout 60 flock x.lock true");
    assert_string_equal(ran.errors, "");
}

/*
 * A rule of a file is not reported if another rule matches, because a system's configuration has rules for many
 * programs.
 */
static void test_a_rule_of_a_file_is_not_reported_when_another_matches(void **state)
{
    const char *path = write_file("many.conf", 0644,
                                  "[lock f/%%b]\nMatch=flock:%s/*.lock\n[lock other]\nMatch=flock:/other\n", folder);

    (void)state;
    command_run("cd %s && exec %s --config %s flock x.lock true", folder, dmutex_run, path);
    assert_status(0);
    assert_string_equal(ran.errors, "");
    command_run("cd %s && exec %s --config %s flock x.other true", folder, dmutex_run, path);
    assert_string_equal(ran.errors, NOTHING);
}

static bool is_nothing_held(void)
{
    command_run("exec %s --holders", dmutex_run);
    assert_status(0);
    return ran.output[0] == '\0';
}

/*
 * --holders names the job: the server knows the keeper as the holder, the host knows the job. With flock -o, a single
 * process has the file open.
 */
static void test_the_job_is_named_when_the_holders_are_asked_for(void **state)
{
    char wanted[300];
    pid_t pid;

    (void)state;
    wait_until(is_nothing_held()); /* the keeper finds out that the jobs of the tests before have ended */
    pid = command_start("cd %s && exec %s -e 'flock:%s/*.lock => f/%%b' flock -o y.lock sh -c '%s --holders; true'",
                        folder, dmutex_run, folder, dmutex_run);
    command_await(pid);
    assert_status(0);
    snprintf(wanted, sizeof wanted, "f/y.lock %s/y.lock %d flock\n", folder, (int)pid);
    assert_string_equal(ran.output, wanted);
}

/* No shared memory is left after any end of the command, and when the command becomes another program. */
static void test_no_memory_is_left_when_the_command_has_ended(void **state)
{
    static const char *const commands[] = { "sh -c 'kill -KILL $$'", "env true", "true", "env -u LD_PRELOAD true" };

    (void)state;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        pid_t pid = command_start("exec %s -e 'flock:/x => a' %s", dmutex_run, commands[i]);

        command_await(pid);
        assert_false(has_memory_of(pid));
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_is_said_when_no_rule_matches),
        cmocka_unit_test(test_each_rule_of_the_command_line_is_reported_when_it_matches_nothing),
        cmocka_unit_test(test_nothing_is_said_when_a_child_has_used_the_rule),
        cmocka_unit_test(test_a_rule_of_a_file_is_not_reported_when_another_matches),
        cmocka_unit_test(test_the_job_is_named_when_the_holders_are_asked_for),
        cmocka_unit_test(test_no_memory_is_left_when_the_command_has_ended),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, run_server_setup, run_server_teardown);
}

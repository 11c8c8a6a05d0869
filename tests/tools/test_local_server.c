/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex local, and dmutex names. */
#include "tool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Puts the private server's folder below the test server's, which is deleted at the end. */
static int setup(void **state)
{
    char path[100];

    tool_setup(state);
    snprintf(path, sizeof path, "%s/local", the_server->folder);
    setenv("DMUTEX_LOCAL_DIR", path, 1);
    return 0;
}

/* Ends whatever a test has left running. */
static int teardown(void **state)
{
    command_run("$dmutex local stop --force");
    unsetenv("DMUTEX_LOCAL_DIR");
    return tool_teardown(state);
}

static void test_local_starts_and_stops_the_server_when_told(void **state)
{
    long pid;

    (void)state;
    command_run("exec $dmutex local status");
    assert_status(1);
    assert_output("not running at ");
    command_run("exec $dmutex local start");
    assert_status(0);
    assert_output("running at ");
    assert_output("/local/s: process ");
    pid = atol(strstr(ran.output, "process ") + 8);
    assert_true(proc_is_alive((pid_t)pid));
    command_run("exec $dmutex local start --json");
    assert_status(0);
    tool_check_json();
    assert_output("{\"running\":true,\"socket\":\"");
    assert_int_equal(atol(strstr(ran.output, "\"pid\":") + 6), pid);
    command_run("DMUTEX_URL=local: exec $dmutex token t/x");
    assert_status(0);
    command_run("exec $dmutex local stop");
    assert_status(0);
    assert_output("not running at ");
    wait_until(!proc_is_alive((pid_t)pid));
    command_run("exec $dmutex local stop --json");
    assert_status(0);
    assert_output("{\"running\":false,");
}

/*
 * A server started because the command of dmutex run needed it first serves other programs, too.  It outlives the
 * command, and a loss of the command's lock.
 */
static void test_the_server_is_none_of_the_processes_of_run_when_its_command_has_started_it(void **state)
{
    pid_t pid;

    (void)state;
    command_run("exec $dmutex run t/first -- env DMUTEX_URL=local: $dmutex run t/x true");
    assert_status(0);
    command_run("exec $dmutex local status");
    assert_status(0);
    command_run("exec $dmutex local stop");
    pid = tool_start("exec $dmutex run --on-lost KILL t/second -- sh -c 'DMUTEX_URL=local: $dmutex run t/x true; "
                     "echo >$F/begun; read go <$F/go'");
    wait_until(tool_has("begun"));
    command_run("exec $dmutex break -y t/second");
    assert_int_equal(tool_await(pid), 76);
    command_run("exec $dmutex local status");
    assert_status(0);
    command_run("exec $dmutex local stop");
    assert_status(0);
}

/* The message says what is missing, and not that no server is installed. */
static void test_the_sentence_names_what_is_missing_in_a_container(void **state)
{
    (void)state;
    if (geteuid() != 0)
        return;
    command_run("exec unshare -m sh -c 'mount -t tmpfs none /dev; DMUTEX_URL=local: exec $dmutex run t/x true'");
    assert_status(69);
    assert_errors("the local server cannot be started without /dev/null");
    command_run("exec unshare -m sh -c 'mount -t tmpfs none /proc; DMUTEX_URL=local: exec $dmutex run t/x true'");
    assert_status(69);
    assert_errors("/proc (needed to find a socket safely) cannot be used for the local server");
}

/* The holders would go on as if they had the locks. */
static void test_local_stops_no_server_when_locks_are_held(void **state)
{
    pid_t pid;

    (void)state;
    command_run("rm -f $F/begun");
    pid = tool_start("DMUTEX_URL=local: exec $dmutex run t/x -- sh -c 'echo >$F/begun; read go <$F/go'");
    wait_until(tool_has("begun"));
    command_run("exec $dmutex local stop");
    assert_status(1);
    assert_errors("1 lock is held there");
    command_run("exec $dmutex local status");
    assert_status(0);
    tool_go();
    assert_int_equal(tool_await(pid), 0);
    command_run("exec $dmutex local stop");
    assert_status(0);
}

/* Locks of another prefix count, too. */
static void test_local_stops_no_server_when_locks_of_another_prefix_are_held(void **state)
{
    pid_t pid;

    (void)state;
    command_run("rm -f $F/begun");
    pid = tool_start("DMUTEX_URL=local:?prefix=other exec $dmutex run t/x -- sh -c 'echo >$F/begun; read go <$F/go'");
    wait_until(tool_has("begun"));
    command_run("exec $dmutex local stop");
    assert_status(1);
    assert_errors("1 lock is held there");
    tool_go();
    assert_int_equal(tool_await(pid), 0);
}

/*
 * If nothing was held when a server was stopped, there is nobody to wait for: the next server grants at once, even
 * though a process that used the previous one is still there.  After --force it does not.
 */
static void test_local_has_no_grace_after_a_stop_when_nothing_was_held(void **state)
{
    struct actor *user, *other;

    (void)state;
    user = actor_start_with(NULL, "DMUTEX_URL=local:", NULL);
    actor_do(user, "0", "lock t/idle");
    actor_do(user, "0", "unlock t/idle");
    command_run("exec $dmutex local stop");
    assert_status(0);
    other = actor_start_with(NULL, "DMUTEX_URL=local:", NULL);
    actor_do(other, "0", "trylock t/idle");
    command_run("exec $dmutex local stop --force");
    assert_status(0);
    command_run("DMUTEX_URL=local: exec $dmutex run -n t/idle true");
    assert_status(75);
    actor_end(user);
    actor_end(other);
}

/* A folder that other users can change is not safe for a server. */
static void test_local_refuses_when_the_folder_is_not_private(void **state)
{
    (void)state;
    command_run("mkdir -m 0777 $F/open && DMUTEX_LOCAL_DIR=$F/open exec $dmutex local start");
    assert_status(69);
    assert_errors("/open");
    command_run("DMUTEX_LOCAL_DIR=here exec $dmutex local start");
    assert_status(78);
}

static void test_local_refuses_when_the_usage_is_wrong(void **state)
{
    static const char *const bad[] = { "", "nonsense", "start stop", "--nonsense start" };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        command_run("exec $dmutex local %s", bad[i]);
        assert_status(64);
    }
}

/* ---- names ------------------------------------------------------------------------------- */

/* The output is that of dmutex-names; tests/tools/test_dmutex_names.sh has all cases. */
static void test_names_lists_the_names_of_a_program(void **state)
{
    char counter[4096];

    (void)state;
    test_build_path(counter, sizeof counter, "examples/counter");
    command_run("exec $dmutex names %s", counter);
    assert_status(0);
    assert_output("billing/ledger\tmutex\t");
    assert_output("/examples/counter\tledger\n");
    command_run("exec $dmutex names --json %s", counter);
    assert_status(0);
    tool_check_json();
    assert_output(
        "[{\"name\":\"billing/ledger\",\"encoded\":\"billing/ledger\",\"kind\":\"mutex\",\"automatic\":false,");
    command_run("exec $dmutex names --json %s $F/nothing", counter);
    assert_status(66);
    tool_check_json();
    command_run("exec $dmutex names");
    assert_status(64);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_local_starts_and_stops_the_server_when_told),
        cmocka_unit_test(test_the_server_is_none_of_the_processes_of_run_when_its_command_has_started_it),
        cmocka_unit_test(test_the_sentence_names_what_is_missing_in_a_container),
        cmocka_unit_test(test_local_stops_no_server_when_locks_are_held),
        cmocka_unit_test(test_local_stops_no_server_when_locks_of_another_prefix_are_held),
        cmocka_unit_test(test_local_has_no_grace_after_a_stop_when_nothing_was_held),
        cmocka_unit_test(test_local_refuses_when_the_folder_is_not_private),
        cmocka_unit_test(test_local_refuses_when_the_usage_is_wrong),
        cmocka_unit_test(test_names_lists_the_names_of_a_program),
    };

    test_begin(argc, argv);
    test_tell_asan("detect_leaks=0"); /* it needs /proc for that */
    return cmocka_run_group_tests(tests, setup, teardown);
}

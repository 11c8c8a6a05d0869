/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex run: the lock, the command's environment and end, and the exit statuses. */
#include "tool.h"

#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the command ------------------------------------------------------------------------- */

static void test_run_gives_the_command_name_and_token_when_it_has_the_lock(void **state)
{
    long long first;

    (void)state;
    command_run("exec $dmutex run t/env -- sh -c 'echo $DMUTEX_NAME $DMUTEX_TOKEN'");
    assert_status(0);
    assert_int_equal(sscanf(ran.output, "t/env %lld", &first), 1);
    command_run("exec $dmutex run t/env sh -c 'echo $DMUTEX_TOKEN'");
    assert_true(atoll(ran.output) > first);
    assert_string_equal(ran.errors, "");
    assert_false(tool_is_held("t/env"));
}

static void test_run_ends_as_the_command_when_it_ends(void **state)
{
    static const struct {
        const char *command;
        int status;
    } cases[] = { { "true", 0 },
                  { "sh -c 'exit 7'", 7 },
                  { "sh -c 'kill -TERM $$'", 143 },
                  { "sh -c 'kill -KILL $$'", 137 },
                  { "/nonexistent/program", 127 },
                  { "no-such-program-anywhere", 127 },
                  { "/etc", 126 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        command_run("exec $dmutex run t/end -- %s", cases[i].command);
        assert_status(cases[i].status);
        assert_false(tool_is_held("t/end"));
    }
}

/*
 * The file of counters is written at the end, after the lock was released: it includes the time that the lock was held.
 */
static void test_run_writes_its_counters_when_the_command_has_ended(void **state)
{
    static const char *const commands[] = { "true", "sh -c 'kill -TERM $$'" };

    (void)state;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        command_run("DMUTEX_METRICS=$F/run.prom exec $dmutex run t/metrics -- %s", commands[i]);
        command_run("grep '^dmutex_hold_seconds_count' $F/run.prom | sed 's/.*} //'; rm $F/run.prom*; ls $F/*.tmp");
        assert_string_equal(ran.output, "1\n");
    }
}

/* Options after the name belong to the command. */
static void test_run_leaves_arguments_alone_when_they_look_like_options(void **state)
{
    (void)state;
    command_run("exec $dmutex run -n t/args -- printf '[%%s]' -n --lease '' 'a b' --");
    assert_status(0);
    assert_string_equal(ran.output, "[-n][--lease][][a b][--]");
    command_run("exec $dmutex run t/args printf '[%%s]' -w -E");
    assert_string_equal(ran.output, "[-w][-E]");
}

/* ---- refusals ---------------------------------------------------------------------------- */

static void test_run_refuses_when_the_usage_is_wrong(void **state)
{
    static const char *const bad[] = { "",
                                       "t/x",
                                       "t/x --",
                                       "-w t/x true",
                                       "-w -1 t/x touch $F/ran",
                                       "-w nan t/x touch $F/ran",
                                       "-E 256 t/x touch $F/ran",
                                       "-E x t/x touch $F/ran",
                                       "--lease 99 t/x touch $F/ran",
                                       "--lease 1s t/x touch $F/ran",
                                       "--on-lost NONSENSE t/x touch $F/ran",
                                       "--nonsense t/x touch $F/ran",
                                       "/x touch $F/ran",
                                       "'' touch $F/ran" };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        command_run("exec $dmutex run %s", bad[i]);
        assert_status(64);
        assert_string_not_equal(ran.errors, "");
    }
    assert_false(tool_has("ran"));
}

static void test_run_refuses_when_the_configuration_is_wrong(void **state)
{
    (void)state;
    command_run("unset DMUTEX_URL; exec $dmutex run t/x true");
    assert_status(78);
    assert_errors("no server is configured");
    command_run("DMUTEX_URL='redis://u:s3cret@h:0' exec $dmutex run t/x true");
    assert_status(78);
    assert_null(strstr(ran.errors, "s3cret"));
}

static void test_run_says_why_when_the_server_cannot_be_used(void **state)
{
    (void)state;
    command_run("DMUTEX_URL='unix://'$F'/nobody?connect_timeout=100&command_timeout=100' "
                "exec $dmutex run t/x touch $F/ran");
    assert_status(69);
    assert_errors("/nobody");
    command_run("DMUTEX_URL='unix://'$F'/a%%20NOPERM%%20b?connect_timeout=100&command_timeout=100' "
                "exec $dmutex run t/x touch $F/ran");
    assert_status(69); /* the word is in the path, and no server has said it */
    command_run("DMUTEX_URL='unix://app:wrong@%s' exec $dmutex run t/x touch $F/ran", the_server->path);
    assert_status(77);
    assert_errors("the password or user is refused");
    assert_null(strstr(ran.errors, "wrong@"));
    command_run("DMUTEX_URL='%s' exec $dmutex run t/x touch $F/ran", tool_user("-zadd"));
    assert_status(77);
    assert_errors("ZADD");
    assert_false(tool_has("ran"));
}

static void test_run_needs_no_more_than_the_documented_rights(void **state)
{
    (void)state;
    command_run("DMUTEX_URL='%s' exec $dmutex run t/x true", tool_user(""));
    assert_status(0);
    assert_string_equal(ran.errors, "");
}

static void test_run_ends_when_the_server_does_not_answer(void **state)
{
    (void)state;
    server_stop(the_server);
    command_run("DMUTEX_URL=\"$DMUTEX_URL&command_timeout=200&connect_timeout=200\" exec $dmutex run t/x true");
    server_cont(the_server);
    assert_status(69);
}

/* R5: the time limit covers waiting for the server as well as for the lock, but not what the server refuses. */
static void test_run_waits_for_the_server_when_it_has_time(void **state)
{
    pid_t pid;

    (void)state;
    server_kill(the_server);
    pid = tool_start("DMUTEX_URL=\"$DMUTEX_URL&connect_timeout=100&command_timeout=100\" DMUTEX_LOG=info "
                     "exec $dmutex run -w 1000 t/patient touch $F/patient");
    wait_until(tool_has_said("cannot be opened"));
    command_run("DMUTEX_URL=\"$DMUTEX_URL&connect_timeout=100&command_timeout=100\" "
                "exec $dmutex run -w 3 t/x touch $F/ran");
    assert_status(69);
    server_restart(the_server);
    assert_int_equal(tool_await(pid), 0);
    assert_true(tool_has("patient"));
    command_run("DMUTEX_URL='unix://app:wrong@%s' exec $dmutex run -w 1000 t/x touch $F/ran", the_server->path);
    assert_status(77);
    command_run("DMUTEX_URL='unix://app:wrong@%s' exec $dmutex run -w 0.3 t/x touch $F/ran", the_server->path);
    assert_status(77);
    assert_false(tool_has("ran"));
}

/* A server without memory grants the lock to nobody.  That is not the same as a lock that another holds. */
static void test_run_says_why_when_the_server_has_no_memory(void **state)
{
    static const char *const options[] = { "-n -E 0", "-n", "-w 1 -E 0", "" };

    (void)state;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        side_text(the_server->side, "CONFIG SET maxmemory 1");
        command_run("exec $dmutex run %s t/memory touch $F/ran", options[i]);
        side_text(the_server->side, "CONFIG SET maxmemory 0");
        assert_status(69);
        assert_errors("The lock server is out of memory: raise its maxmemory");
    }
    assert_false(tool_has("ran"));
}

/* ---- held by another --------------------------------------------------------------------- */

static void test_run_gives_up_when_the_lock_is_held(void **state)
{
    static const struct {
        const char *options;
        int status;
        bool tells;
    } cases[] = {
        { "-n", 75, false },      { "-n -E 3", 3, false },
        { "--nb -x", 75, false }, { "-w 0", 75, false },
        { "-w 0.5", 75, true },   { "--wait 0.5 -E 0", 0, true },
        { "-qw 0.5", 75, false }, { "--quiet --timeout 0.5 -E 0", 0, false },
        { "-en", 75, false },     { "--exclusive --nonblock --conflict-exit-code 4", 4, false },
    };
    struct actor *holder = actor_start_holder(the_server, "t/held", "");
    char held_by[60];

    (void)state;
    snprintf(held_by, sizeof held_by, " s by test_run_lock (process %d) on ", (int)actor_pid(holder));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        command_run("exec $dmutex run %s t/held touch $F/ran", cases[i].options);
        assert_status(cases[i].status);
        if (!cases[i].tells) {
            assert_string_equal(ran.errors, "");
            continue;
        }
        assert_errors("dmutex: t/held: not acquired within 0.5 s: held for ");
        assert_errors(held_by);
    }
    assert_false(tool_has("ran"));
    actor_end(holder);
}

/* A server in its grace grants nothing.  -n is not silent then, because perhaps nobody runs the job. */
static void test_run_says_why_when_the_server_is_in_its_grace(void **state)
{
    struct server *server = server_start();

    (void)state;
    command_run("DMUTEX_URL='unix://%s' exec $dmutex token t/x", server->path);
    assert_status(0);
    side_text(server->side, "HSET dmutex:server since %lld",
              (long long)side_int(server->side, "EVAL %s 0", "return redis.call('TIME')[1] * 1000000"));
    command_run("DMUTEX_URL='unix://%s' exec $dmutex run -n --lease 3600000 t/x touch $F/ran", server->path);
    assert_status(75);
    assert_errors("the server has just started");
    command_run("DMUTEX_URL='unix://%s' exec $dmutex run -w 2 --lease 3600000 t/x touch $F/ran", server->path);
    assert_status(75);
    assert_errors("dmutex: t/x: Timed out waiting for the mutex: the server has just started and grants nothing");
    command_run("DMUTEX_URL='unix://%s' exec $dmutex run -nq --lease 3600000 t/x touch $F/ran", server->path);
    assert_status(75);
    assert_string_equal(ran.errors, "");
    assert_false(tool_has("ran"));
    server_end(server);
}

/* As in flock(1): a single argument is a line for the shell. */
static void test_run_gives_the_shell_a_line_when_it_is_asked_to(void **state)
{
    (void)state;
    command_run("SHELL=/bin/sh exec $dmutex run t/line -c 'echo $DMUTEX_NAME; exit 3'");
    assert_status(3);
    assert_string_equal(ran.output, "t/line\n");
    command_run("unset SHELL; exec $dmutex run -n t/line --command 'exit 4'");
    assert_status(4);
    command_run("exec $dmutex run t/line -c touch $F/ran");
    assert_status(64);
    assert_errors("quote it");
    command_run("exec $dmutex run -s t/line touch $F/ran");
    assert_status(64);
    assert_errors("there are no shared locks");
    assert_false(tool_has("ran"));
}

/* Other options of flock(1) have no meaning here, and the message names the ones that have. */
static void test_run_refuses_options_of_flock_when_they_have_no_meaning(void **state)
{
    static const struct {
        const char *option, *says;
    } cases[] = {
        { "-s", "there are no shared locks" },
        { "--shared", "there are no shared locks" },
        { "-F", "this process renews the lock" },
        { "--no-fork", "this process renews the lock" },
        { "-u", "the lock is released when the command ends" },
        { "--unlock", "the lock is released when the command ends" },
        { "--fcntl", "this lock has a name and no file" },
        { "--verbose", "DMUTEX_LOG=info" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        command_run("exec $dmutex run %s t/option touch $F/ran", cases[i].option);
        assert_status(64);
        assert_errors(cases[i].says);
    }
    assert_false(tool_has("ran"));
}

static void test_run_waits_for_its_turn_when_the_lock_is_held(void **state)
{
    struct actor *holder = actor_start_holder(the_server, "t/turn", "");
    dmutex_t mutex;
    pid_t pid;

    (void)state;
    assert_result(dmutex_init_np(&mutex, "t/turn", NULL), 0);
    pid = tool_start("exec $dmutex run -w 1000 t/turn touch $F/turned");
    wait_until(waiters_of(&mutex) == 1);
    assert_false(tool_has("turned"));
    actor_do(holder, "0", "unlock t/turn");
    assert_int_equal(tool_await(pid), 0);
    assert_true(tool_has("turned"));
    assert_false(tool_has_said("waiting"));
    actor_end(holder);
}

/* A signal ends a waiter like any program, and its place in the queue is gone at once. */
static void test_run_ends_by_a_signal_when_it_waits(void **state)
{
    struct actor *holder = actor_start_holder(the_server, "t/sigint", "");
    dmutex_t mutex;
    pid_t pid;

    (void)state;
    assert_result(dmutex_init_np(&mutex, "t/sigint", NULL), 0);
    pid = tool_start("exec $dmutex run t/sigint touch $F/ran");
    wait_until(waiters_of(&mutex) == 1);
    kill(pid, SIGTERM);
    assert_int_equal(tool_await(pid), 143);
    assert_int_equal(waiters_of(&mutex), 0);
    actor_do(holder, "0", "unlock t/sigint");
    command_run("exec $dmutex run t/sigint true");
    assert_status(0);
    assert_false(tool_has("ran"));
    actor_end(holder);
}

static pid_t child_of(pid_t pid)
{
    char path[64];
    FILE *file;
    int child = 0;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &child), 1);
    fclose(file);
    return child;
}

/*
 * In a container without an init, dmutex may be the first process, which the kernel lets no signal end.  So it exits
 * itself.
 */
static void test_run_ends_by_a_signal_when_it_waits_as_process_1(void **state)
{
    struct actor *holder = actor_start_holder(the_server, "t/first", "");
    dmutex_t mutex;
    pid_t pid;

    (void)state;
    if (geteuid() != 0)
        return;
    assert_result(dmutex_init_np(&mutex, "t/first", NULL), 0);
    pid = tool_start("exec unshare -p -f $dmutex run t/first true");
    wait_until(waiters_of(&mutex) == 1);
    kill(child_of(pid), SIGTERM);
    assert_int_equal(tool_await(pid), 143);
    assert_int_equal(waiters_of(&mutex), 0);
    actor_end(holder);
}

/* ---- on a terminal ----------------------------------------------------------------------- */

static char screen[COMMAND_ROOM]; /* what the program on the terminal has written */

/* Runs a line in a shell on a terminal of this width. */
static pid_t start_on_terminal(unsigned short columns, const char *line, int *ret_terminal)
{
    struct winsize size = { .ws_row = 24, .ws_col = columns };
    pid_t pid = forkpty(ret_terminal, NULL, NULL, &size);

    if (pid == 0) {
        setenv("TERM", "xterm", 1);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    keeper_watch(pid);
    screen[0] = '\0';
    return pid;
}

/* Reads the terminal until the text has come.  False if the program ends first. */
static bool read_until(int terminal, const char *text)
{
    size_t length = strlen(screen);
    ssize_t got;

    while (!strstr(screen, text)) {
        got = read(terminal, screen + length, sizeof screen - 1 - length);
        if (got <= 0)
            return false;
        length += (size_t)got;
        screen[length] = '\0';
    }
    return true;
}

static void test_run_shows_place_and_holder_when_it_waits_on_a_terminal(void **state)
{
    struct actor *holder = actor_start_holder(the_server, "t/shown", "");
    char held_by[60];
    int terminal, status;
    pid_t pid = start_on_terminal(160, "exec $dmutex run t/shown echo is run", &terminal);

    (void)state;
    snprintf(held_by, sizeof held_by, "(process %d)", (int)actor_pid(holder));
    assert_true(read_until(terminal, "waiting for t/shown for "));
    assert_true(read_until(terminal, "place 1 of 1: held for "));
    assert_true(read_until(terminal, held_by));
    actor_do(holder, "0", "unlock t/shown");
    assert_true(read_until(terminal, "\r\033[K"));
    assert_true(read_until(terminal, "is run"));
    status = keeper_reap(pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(terminal);
    actor_end(holder);
}

/* Place, time of the hold and holder fit into 80 columns, however long the name. */
static void test_run_shows_how_long_the_lock_is_held_when_the_terminal_is_narrow(void **state)
{
    struct actor *holder = actor_start_holder(the_server, "t/a-name-that-is-longer-than-usual", "");
    char held_by[60];
    int terminal;
    pid_t pid = start_on_terminal(80, "exec $dmutex run -w 20 t/a-name-that-is-longer-than-usual true", &terminal);

    (void)state;
    snprintf(held_by, sizeof held_by, " s by test_run_lock (process %d)", (int)actor_pid(holder));
    assert_true(read_until(terminal, "waiting, place 1 of 1: held for "));
    assert_true(read_until(terminal, held_by));
    actor_do(holder, "0", "unlock t/a-name-that-is-longer-than-usual");
    assert_int_equal(tool_await(pid), 0);
    close(terminal);
    actor_end(holder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_gives_the_command_name_and_token_when_it_has_the_lock),
        cmocka_unit_test(test_run_ends_as_the_command_when_it_ends),
        cmocka_unit_test(test_run_writes_its_counters_when_the_command_has_ended),
        cmocka_unit_test(test_run_leaves_arguments_alone_when_they_look_like_options),
        cmocka_unit_test(test_run_refuses_when_the_usage_is_wrong),
        cmocka_unit_test(test_run_refuses_when_the_configuration_is_wrong),
        cmocka_unit_test(test_run_says_why_when_the_server_cannot_be_used),
        cmocka_unit_test(test_run_needs_no_more_than_the_documented_rights),
        cmocka_unit_test(test_run_ends_when_the_server_does_not_answer),
        cmocka_unit_test(test_run_waits_for_the_server_when_it_has_time),
        cmocka_unit_test(test_run_says_why_when_the_server_has_no_memory),
        cmocka_unit_test(test_run_gives_up_when_the_lock_is_held),
        cmocka_unit_test(test_run_says_why_when_the_server_is_in_its_grace),
        cmocka_unit_test(test_run_gives_the_shell_a_line_when_it_is_asked_to),
        cmocka_unit_test(test_run_refuses_options_of_flock_when_they_have_no_meaning),
        cmocka_unit_test(test_run_waits_for_its_turn_when_the_lock_is_held),
        cmocka_unit_test(test_run_ends_by_a_signal_when_it_waits),
        cmocka_unit_test(test_run_ends_by_a_signal_when_it_waits_as_process_1),
        cmocka_unit_test(test_run_shows_place_and_holder_when_it_waits_on_a_terminal),
        cmocka_unit_test(test_run_shows_how_long_the_lock_is_held_when_the_terminal_is_narrow),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, tool_setup, tool_teardown);
}

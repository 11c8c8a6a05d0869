/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex break: asks, breaks, and leaves a line in the system log. */
#include "tool.h"

#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Replaces the system log: the lines of syslog(3) go to $F/syslog. */
static const char log_source[] =
    "#define _GNU_SOURCE\n"
    "#include <stdarg.h>\n"
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "static void take(int priority, const char *format, va_list args)\n"
    "{\n"
    "    char path[300];\n"
    "    FILE *file;\n"
    "    snprintf(path, sizeof path, \"%s/syslog\", getenv(\"F\"));\n"
    "    file = fopen(path, \"a\");\n"
    "    fprintf(file, \"<%d> \", priority);\n"
    "    vfprintf(file, format, args);\n"
    "    fputc('\\n', file);\n"
    "    fclose(file);\n"
    "}\n"
    "void syslog(int priority, const char *format, ...);\n"
    "void __syslog_chk(int priority, int flag, const char *format, ...);\n"
    "void syslog(int priority, const char *format, ...)\n"
    "{ va_list args; va_start(args, format); take(priority, format, args); va_end(args); }\n"
    "void __syslog_chk(int priority, int flag, const char *format, ...)\n"
    "{ va_list args; (void)flag; va_start(args, format); take(priority, format, args); va_end(args); }\n";

static int setup(void **state)
{
    char path[200];
    FILE *file;

    tool_setup(state);
    test_tell_asan("verify_asan_link_order=0"); /* the replacement is loaded before the sanitizer */
    snprintf(path, sizeof path, "%s/log.c", the_server->folder);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(log_source, file);
    fclose(file);
    command_run("%s -shared -fPIC -o $F/log.so $F/log.c", test_compiler());
    assert_status(0);
    return 0;
}

static void test_break_takes_the_lock_away_when_sure(void **state)
{
    struct actor *holder = actor_start_holder(the_server, "t/sure", "");
    char words[120];

    (void)state;
    command_run("LD_PRELOAD=$F/log.so exec $dmutex break --yes t/sure");
    assert_status(0);
    assert_false(tool_is_held("t/sure"));
    wait_until(actor_losses(holder) == 1);
    snprintf(words, sizeof words, "broke \"t/sure\", held by test_break (process %d) on ", (int)actor_pid(holder));
    assert_errors(words);
    command_run("cat $F/syslog");
    assert_output(words);
    assert_output("<37> user "); /* LOG_AUTH, LOG_NOTICE */
    assert_output(", token ");
    actor_do(holder, "EPERM", "unlock t/sure");
    actor_end(holder);
}

static void test_break_gives_the_lock_to_the_next_waiter(void **state)
{
    struct actor *holder = actor_start_holder(the_server, "t/next", ""), *waiter = actor_start(the_server);
    dmutex_t mutex;

    (void)state;
    assert_result(dmutex_init_np(&mutex, "t/next", NULL), 0);
    actor_send(waiter, "lock t/next");
    wait_until(waiters_of(&mutex) == 1);
    command_run("exec $dmutex break -y --json t/next");
    assert_status(0);
    tool_check_json();
    assert_output("{\"broken\":true,\"before\":{\"name\":\"t/next\"");
    actor_expect(waiter, "0");
    actor_end(waiter);
    actor_end(holder);
}

static void test_break_changes_nothing_when_the_lock_is_free(void **state)
{
    (void)state;
    command_run("rm -f $F/syslog; LD_PRELOAD=$F/log.so exec $dmutex break --yes --json t/free");
    assert_status(1);
    assert_output("\"broken\":false");
    assert_errors("nobody holds this lock");
    assert_false(tool_has("syslog"));
}

/* Without a person to ask and without --yes nothing is broken, for example in a script that forgot the option. */
static void test_break_refuses_when_it_cannot_ask(void **state)
{
    struct actor *holder = actor_start_holder(the_server, "t/ask", "");

    (void)state;
    command_run("exec $dmutex break t/ask </dev/null");
    assert_status(64);
    assert_errors("--yes");
    command_run("echo y | $dmutex break t/ask");
    assert_status(64);
    assert_true(tool_is_held("t/ask"));
    actor_end(holder);
}

/* Runs break on a terminal and types the answer when asked.  Returns the exit status. */
static int answer(const char *name, const char *typed)
{
    char screen[2048] = "";
    size_t length = 0;
    int terminal, status;
    ssize_t got;
    pid_t pid;

    pid = forkpty(&terminal, NULL, NULL, NULL);
    if (pid == 0) {
        setenv("name", name, 1);
        execl("/bin/sh", "sh", "-c", "exec $dmutex break \"$name\"", (char *)NULL);
        _exit(127);
    }
    keeper_watch(pid);
    while (!strstr(screen, "[y/N]") && (got = read(terminal, screen + length, sizeof screen - 1 - length)) > 0) {
        length += (size_t)got;
        screen[length] = '\0';
    }
    assert_non_null(strstr(screen, "[y/N]"));
    assert_non_null(strstr(screen, name));
    assert_true(write(terminal, typed, strlen(typed)) > 0);
    while (read(terminal, screen, sizeof screen) > 0)
        continue;
    status = keeper_reap(pid);
    close(terminal);
    return WEXITSTATUS(status);
}

static void test_break_goes_by_the_answer_when_it_asks(void **state)
{
    struct actor *holder = actor_start_holder(the_server, "t/answer", "");

    (void)state;
    assert_int_equal(answer("t/answer", "\n"), 1);
    assert_int_equal(answer("t/answer", "n\n"), 1);
    assert_int_equal(answer("t/answer", "\x04"), 1);
    assert_true(tool_is_held("t/answer"));
    assert_int_equal(answer("t/answer", "y\n"), 0);
    assert_false(tool_is_held("t/answer"));
    actor_end(holder);
}

static void test_break_says_why_when_the_server_cannot_be_used(void **state)
{
    (void)state;
    command_run("DMUTEX_URL='unix://'$F'/nobody?connect_timeout=50&command_timeout=50' exec $dmutex break -y t/x");
    assert_status(69);
    assert_errors("/nobody");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_break_takes_the_lock_away_when_sure),
        cmocka_unit_test(test_break_gives_the_lock_to_the_next_waiter),
        cmocka_unit_test(test_break_changes_nothing_when_the_lock_is_free),
        cmocka_unit_test(test_break_refuses_when_it_cannot_ask),
        cmocka_unit_test(test_break_goes_by_the_answer_when_it_asks),
        cmocka_unit_test(test_break_says_why_when_the_server_cannot_be_used),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, setup, tool_teardown);
}

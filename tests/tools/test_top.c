/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex top: the busiest locks, deadlocks between processes, and the screen. */
#include "tool.h"

#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Starts to lock in the other process, and waits until it is in the queue. */
static void begin_to_lock(struct actor *actor, const char *name, int waiters)
{
    dmutex_t mutex;

    assert_result(dmutex_init_np(&mutex, name, NULL), 0);
    actor_send(actor, "lock %s", name);
    wait_until(waiters_of(&mutex) == waiters);
}

static void test_top_shows_the_most_wanted_lock_first(void **state)
{
    struct actor *holder = actor_start(the_server), *one = actor_start(the_server), *two = actor_start(the_server);

    (void)state;
    actor_do(holder, "0", "lock tt/quiet");
    actor_do(holder, "0", "lock tt/wanted");
    begin_to_lock(one, "tt/wanted", 1);
    begin_to_lock(two, "tt/wanted", 2);
    command_run("exec $dmutex top");
    assert_status(0);
    assert_output("2 held, 2 waiting\n");
    assert_output("tt/quiet");
    assert_true(strstr(ran.output, "tt/wanted") < strstr(ran.output, "tt/quiet"));
    assert_null(strchr(ran.output, '\x1b'));
    assert_null(strstr(ran.output, "deadlock"));
    command_run("exec $dmutex top --json");
    assert_status(0);
    tool_check_json();
    assert_output("{\"held\":2,\"waiting\":2,\"silent\":0,\"locks\":[{\"name\":\"tt/wanted\"");
    assert_output("\"deadlocks\":[],\"waits\":[{\"program\":\"test_top\",\"pid\":");
    actor_kill(two);
    actor_kill(one);
    actor_end(two);
    actor_end(one);
    actor_end(holder);
}

/* A name too long for its column is cut, never inside a character, and marked. */
static void test_top_marks_a_name_that_is_cut(void **state)
{
    struct actor *holder = actor_start(the_server);

    (void)state;
    actor_do(holder, "0", "lock tt/%057d", 0);
    actor_do(holder, "0", "lock tt/%058d", 0);
    actor_do(holder, "0", "lock tt/%055d\xc3\xbc\xc3\xbc\xc3\xbc", 0);
    command_run("$dmutex top | tail -n +3 | cut -d' ' -f1 | LC_ALL=C sort");
    assert_string_equal(ran.output, "tt/000000000000000000000000000000000000000000000000000000000\n"
                                    "tt/00000000000000000000000000000000000000000000000000000000~\n"
                                    "tt/0000000000000000000000000000000000000000000000000000000\xc3\xbc~\n");
    actor_end(holder);
}

/* Three processes wait in a circle.  A fourth waits for one of them, but is in no circle. */
static void test_top_names_a_deadlock_when_processes_wait_for_each_other(void **state)
{
    static const char *const names[] = { "td/a", "td/b", "td/c" };
    struct actor *actors[3], *other = actor_start(the_server);

    (void)state;
    for (int i = 0; i < 3; i++) {
        actors[i] = actor_start(the_server);
        actor_do(actors[i], "0", "lock %s", names[i]);
    }
    actor_do(other, "0", "lock td/d");
    begin_to_lock(other, "td/a", 1);
    begin_to_lock(actors[0], "td/b", 1);
    begin_to_lock(actors[1], "td/c", 1);
    command_run("exec $dmutex top --json");
    assert_output("\"deadlocks\":[],");
    begin_to_lock(actors[2], "td/a", 2);
    command_run("exec $dmutex top --json");
    tool_check_json();
    assert_output("\"deadlocks\":[[\"td/a\",\"td/b\",\"td/c\"]],");
    command_run("exec $dmutex top --once");
    assert_output("deadlock: test_top (process ");
    assert_output(" has td/a and waits for td/b\n");
    assert_output(" has td/c and waits for td/a\n");
    assert_output(", in a deadlock\n");
    for (int i = 0; i < 3; i++) {
        actor_kill(actors[i]);
        actor_end(actors[i]);
    }
    actor_kill(other);
    actor_end(other);
}

static dmutex_t here, there;
static pthread_barrier_t both_hold;

static void *lock_there_then_here(void *unused)
{
    (void)unused;
    dmutex_lock(&there);
    pthread_barrier_wait(&both_hold);
    dmutex_lock(&here);
    return NULL;
}

/* Two threads of one process that wait for each other until the process is killed. */
static pid_t start_deadlock(void)
{
    pid_t pid = keeper_fork();
    pthread_t thread;

    if (pid)
        return pid;
    make_handed(&here, "to/a", &kinds[0], 1000, 0);
    make_handed(&there, "to/b", &kinds[0], 1000, 0);
    pthread_barrier_init(&both_hold, NULL, 2);
    dmutex_lock(&here);
    pthread_create(&thread, NULL, lock_there_then_here, NULL);
    pthread_barrier_wait(&both_hold);
    dmutex_lock(&there);
    _exit(1);
}

static bool has_deadlock(void)
{
    command_run("exec $dmutex top --json");
    return strstr(ran.output, "\"deadlocks\":[[\"to/a\",\"to/b\"]]") || strstr(ran.output, "[[\"to/b\",\"to/a\"]]");
}

/* A process's renewals name those of its threads that wait for its own lock, by their kernel thread ids. */
static void test_top_names_a_deadlock_when_two_threads_of_one_process_wait_for_each_other(void **state)
{
    pid_t pid = start_deadlock();

    (void)state;
    wait_until(has_deadlock());
    command_run("exec $dmutex show to/a");
    assert_output("waiting   1");
    command_run(
        "test -d /proc/%d/task/$($dmutex show --json to/a | grep -o '\"thread\":[0-9]*' | head -n 1 | cut -d: -f2)",
        (int)pid);
    assert_status(0);
    kill(pid, SIGKILL);
    keeper_reap(pid);
}

/* Asserts that the JSON has the holder in the form of a waiter, with process and thread. */
static void check_holder(const char *name, struct actor *holder)
{
    char wanted[200];

    snprintf(wanted, sizeof wanted,
             "{\"name\":\"%s\",\"encoded\":\"%s\",\"holder\":{\"program\":\"test_top\",\"pid\":%d,\"host\":\"", name,
             name, (int)actor_pid(holder));
    assert_output(wanted);
    snprintf(wanted, sizeof wanted, "\"thread\":%d}", (int)actor_pid(holder)); /* an actor's main thread locks */
    assert_output(wanted);
}

static int count_lines(const char *text, const char *part)
{
    int count = 0;

    for (; (text = strstr(text, part)) != NULL; text++)
        count++;
    return count;
}

/* The third process waits for the second, which waits for the first.  The longest wait comes first. */
static void test_top_shows_who_waits_for_whom_when_holders_wait(void **state)
{
    struct actor *first = actor_start(the_server), *second = actor_start(the_server), *third = actor_start(the_server);
    char line[200];

    (void)state;
    actor_do(first, "0", "lock tw/a");
    actor_do(second, "0", "lock tw/b");
    begin_to_lock(second, "tw/a", 1);
    begin_to_lock(third, "tw/b", 1);
    command_run("exec $dmutex top");
    assert_output("THE LONGEST WAITS\ntest_top (process ");
    snprintf(line, sizeof line, " for tw/a: held by test_top (process %d) on ", (int)actor_pid(first));
    assert_int_equal(count_lines(ran.output, line), 2);
    snprintf(line, sizeof line, " for tw/b: held by test_top (process %d) on ", (int)actor_pid(second));
    assert_int_equal(count_lines(ran.output, line), 1);
    assert_true(strstr(ran.output, "for tw/a: held") < strstr(ran.output, line));
    snprintf(line, sizeof line, "\n    which waits for tw/a: held by test_top (process %d) on ", (int)actor_pid(first));
    assert_output(line);
    assert_int_equal(count_lines(ran.output, ", thread "), 5);
    assert_null(strstr(ran.output, "deadlock"));
    command_run("exec $dmutex top --json");
    tool_check_json();
    check_holder("tw/a", first);
    check_holder("tw/b", second);
    assert_int_equal(count_lines(strstr(ran.output, "\"waits\""), "\"deadlock\":false}"), 2);
    actor_kill(third);
    actor_kill(second);
    actor_end(third);
    actor_end(second);
    actor_end(first);
}

/* At most half of the screen's lines are for the waits, and no line wraps. */
static void test_top_fits_the_screen_when_many_wait(void **state)
{
    struct winsize size = { .ws_row = 13, .ws_col = 130 };
    struct actor *holder = actor_start(the_server), *waiters[6];
    char screen[1 << 16];
    size_t length = 0;
    int terminal;
    ssize_t got;
    pid_t pid;

    (void)state;
    actor_do(holder, "0", "lock tm/a");
    for (int i = 0; i < 6; i++) {
        waiters[i] = actor_start(the_server);
        begin_to_lock(waiters[i], "tm/a", i + 1);
    }
    pid = forkpty(&terminal, NULL, NULL, &size);
    if (pid == 0) {
        setenv("TERM", "xterm", 1);
        execl("/bin/sh", "sh", "-c", "exec $dmutex top -d 1000", (char *)NULL);
        _exit(127);
    }
    keeper_watch(pid);
    do {
        got = read(terminal, screen + length, sizeof screen - 1 - length);
        length += got > 0 ? (size_t)got : 0;
        screen[length] = '\0';
    } while (got > 0 && !strstr(screen, "\033[?7h"));
    assert_memory_equal(screen, "\033[?7l\033[H", 8);
    assert_int_equal(count_lines(screen, "held by test_top"), 4);
    assert_int_equal(count_lines(screen, "\n"), 8);
    kill(pid, SIGINT);
    assert_int_equal(tool_await(pid), 130);
    close(terminal);
    for (int i = 0; i < 6; i++)
        actor_kill(waiters[i]);
    for (int i = 0; i < 6; i++)
        actor_end(waiters[i]);
    actor_end(holder);
}

/* The screen is redrawn until a signal comes. */
static void test_top_draws_again_when_on_a_terminal(void **state)
{
    struct winsize size = { .ws_row = 24, .ws_col = 120 };
    char screen[4096];
    int terminal, draws = 0;
    bool has_rate = false;
    ssize_t got;
    pid_t pid;

    (void)state;
    pid = forkpty(&terminal, NULL, NULL, &size);
    if (pid == 0) {
        setenv("TERM", "xterm", 1);
        execl("/bin/sh", "sh", "-c", "exec $dmutex top -d 0.1", (char *)NULL);
        _exit(127);
    }
    keeper_watch(pid);
    while ((draws < 3 || !has_rate) && (got = read(terminal, screen, sizeof screen - 1)) > 0) {
        screen[got] = '\0';
        for (const char *at = screen; (at = strstr(at, "\033[H")) != NULL; at++)
            draws++;
        has_rate |= strstr(screen, "grants a second") != NULL;
    }
    assert_true(draws >= 3 && has_rate);
    kill(pid, SIGINT);
    assert_int_equal(tool_await(pid), 130);
    close(terminal);
}

/*
 * A stopped waiter is shown but not counted, because it may be dead.  The holder is stopped, too, and the keys of the
 * queue are made permanent: otherwise a renewal, or the end of three leases, would remove the waiter.
 */
static void test_top_marks_silent_waiters(void **state)
{
    struct actor *holder = actor_start(the_server), *waiter = actor_start(the_server);

    (void)state;
    actor_do(holder, "0", "init ts/a lease=600000");
    actor_do(holder, "0", "lock ts/a");
    actor_do(waiter, "0", "init ts/a lease=2000");
    begin_to_lock(waiter, "ts/a", 1);
    kill(actor_pid(holder), SIGSTOP);
    kill(actor_pid(waiter), SIGSTOP);
    side_text(the_server->side, "PERSIST dmutex:{ts}:queue:a");
    side_text(the_server->side, "PERSIST dmutex:{ts}:waiter:a");
    do
        command_run("exec $dmutex top");
    while (strncmp(ran.output, "1 held, 0 waiting, 1 silent\n", 28) != 0);
    assert_null(strstr(ran.output, "THE LONGEST WAITS"));
    command_run("exec $dmutex top --json");
    tool_check_json();
    assert_output("{\"held\":1,\"waiting\":0,\"silent\":1,");
    command_run("exec $dmutex show ts/a");
    assert_output(" s, silent for ");
    assert_output(" s: dead, stopped or cut off\n");
    actor_kill(waiter);
    actor_kill(holder);
    actor_end(waiter);
    actor_end(holder);
}

static void test_top_says_why_when_the_server_refuses(void **state)
{
    (void)state;
    command_run("DMUTEX_URL='%s' exec $dmutex top", tool_user(""));
    assert_status(77);
    assert_errors("+scan");
    command_run("exec $dmutex top -d 0");
    assert_status(64);
    command_run("exec $dmutex top x");
    assert_status(64);
}

/* Waiters that a test has killed would show up in the next test until their leases end. */
static int forget_all(void **state)
{
    (void)state;
    side_text(the_server->side, "FLUSHALL");
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_top_shows_the_most_wanted_lock_first, forget_all),
        cmocka_unit_test_setup(test_top_marks_a_name_that_is_cut, forget_all),
        cmocka_unit_test_setup(test_top_names_a_deadlock_when_processes_wait_for_each_other, forget_all),
        cmocka_unit_test_setup(test_top_names_a_deadlock_when_two_threads_of_one_process_wait_for_each_other,
                               forget_all),
        cmocka_unit_test_setup(test_top_shows_who_waits_for_whom_when_holders_wait, forget_all),
        cmocka_unit_test_setup(test_top_fits_the_screen_when_many_wait, forget_all),
        cmocka_unit_test_setup(test_top_marks_silent_waiters, forget_all),
        cmocka_unit_test(test_top_draws_again_when_on_a_terminal),
        cmocka_unit_test(test_top_says_why_when_the_server_refuses),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, tool_setup, tool_teardown);
}

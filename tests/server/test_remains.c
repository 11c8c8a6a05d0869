/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything that dmutex_test_server_start() has made is gone soon after the calling program, however that ends and in
 * any state of the server: no process, no socket, no directory.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dmutex/testing.h>

#include "../lib/testlib.h"

/* The processes of one victim, and the server's place. */
struct remains {
    pid_t reaper, server;
    pid_t child; /* of the victim, living on; 0: none */
    char socket[128];
};

/* ---- looking ----------------------------------------------------------------------------- */

/* The child of a process that is not `except`. */
static pid_t child_of(pid_t parent, pid_t except)
{
    DIR *folder = opendir("/proc");
    pid_t found = 0;
    struct dirent *entry;

    while ((entry = readdir(folder))) {
        pid_t pid = (pid_t)atoi(entry->d_name);

        if (pid > 0 && pid != except && proc_parent(pid) == parent)
            found = pid;
    }
    closedir(folder);
    return found;
}

/* ---- the victim -------------------------------------------------------------------------- */

enum mood { RUNNING, PAUSED, KILLED };

typedef void (*way_to_end)(void);

static void send_remains(int fd, const dmutex_test_server_t *server, pid_t child)
{
    struct remains remains = { .child = child };

    remains.reaper = child_of(getpid(), child);
    remains.server = child_of(remains.reaper, 0);
    if (sscanf(dmutex_test_server_url(server), "unix://%107[^?]", remains.socket) != 1)
        _exit(8);
    if (write(fd, &remains, sizeof remains) != (ssize_t)sizeof remains)
        _exit(9);
}

/* A child that lives on, with all inherited descriptors. */
static pid_t leave_child(void)
{
    pid_t pid = fork();

    while (pid == 0)
        pause();
    return pid;
}

static void live_and_end(int fd, enum mood mood, bool has_child, way_to_end end)
{
    dmutex_t mutex = DMUTEX_INITIALIZER("remains/held");
    dmutex_test_server_t *server;

    if (dmutex_test_server_start(&server) != 0 || dmutex_lock(&mutex) != 0)
        _exit(9);
    send_remains(fd, server, has_child ? leave_child() : 0);
    if (mood == PAUSED)
        dmutex_test_server_pause(server);
    if (mood == KILLED)
        dmutex_test_server_kill(server);
    end();
    _exit(9);
}

static void expect_nothing_left(enum mood mood, bool has_child, way_to_end end)
{
    struct remains remains;
    char directory[128];
    int ends[2], status;
    pid_t pid;

    assert_return_code(pipe(ends), errno);
    pid = keeper_fork();
    if (pid == 0)
        live_and_end(ends[1], mood, has_child, end);
    close(ends[1]);
    assert_int_equal(read(ends[0], &remains, sizeof remains), sizeof remains);
    close(ends[0]);
    if (remains.child)
        keeper_watch(remains.child);
    status = keeper_reap(pid);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 9);
    assert_true(remains.reaper > 0 && remains.server > 0);

    snprintf(directory, sizeof directory, "%.*s", (int)(strrchr(remains.socket, '/') - remains.socket), remains.socket);
    wait_until(!proc_is_alive(remains.reaper));
    assert_false(proc_is_alive(remains.server));
    assert_int_equal(access(remains.socket, F_OK), -1);
    assert_int_equal(access(directory, F_OK), -1);
    if (remains.child) {
        assert_true(proc_is_alive(remains.child));
        kill(remains.child, SIGKILL);
        keeper_forget(remains.child);
    }
}

/* ---- ways to end ------------------------------------------------------------------------- */

static void end_by_abort(void)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    signal(SIGABRT, SIG_DFL);
    abort();
}

static void end_by_sigkill(void)
{
    raise(SIGKILL);
}

static void end_by_exit(void)
{
    exit(0);
}

static void end_at_once(void)
{
    _exit(0);
}

static void end_by_exec(void)
{
    execl("/bin/true", "true", (char *)NULL);
}

/* Does as a terminal's ^C, and then some. */
static void end_with_process_group(void)
{
    setpgid(0, 0);
    kill(0, SIGINT);
    kill(0, SIGTERM);
    kill(0, SIGKILL);
}

static void *wait_for_ever(void *user)
{
    for (;;)
        pause();
    return user;
}

/* The thread that started the server ends long before the process does. */
static void end_in_another_thread(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, wait_for_ever, NULL);
    alarm(1);
    pthread_exit(NULL);
}

/* ---- tests ------------------------------------------------------------------------------- */

static void test_nothing_is_left_when_the_program_aborts(void **state)
{
    (void)state;
    expect_nothing_left(RUNNING, false, end_by_abort);
    expect_nothing_left(PAUSED, false, end_by_abort);
}

static void test_nothing_is_left_when_the_program_is_killed(void **state)
{
    (void)state;
    expect_nothing_left(RUNNING, false, end_by_sigkill);
    expect_nothing_left(PAUSED, false, end_by_sigkill);
    expect_nothing_left(KILLED, false, end_by_sigkill);
}

static void test_nothing_is_left_when_the_process_group_is_killed(void **state)
{
    (void)state;
    expect_nothing_left(RUNNING, false, end_with_process_group);
}

static void test_nothing_is_left_when_the_program_ends_without_stop(void **state)
{
    (void)state;
    expect_nothing_left(RUNNING, false, end_by_exit);
    expect_nothing_left(RUNNING, false, end_at_once);
    expect_nothing_left(KILLED, false, end_at_once);
}

static void test_nothing_is_left_when_the_program_executes_another(void **state)
{
    (void)state;
    expect_nothing_left(RUNNING, false, end_by_exec);
}

/* By the pidfd: the child keeps the conversation with the reaper open. */
static void test_nothing_is_left_when_a_child_lives_on(void **state)
{
    (void)state;
    expect_nothing_left(RUNNING, true, end_by_sigkill);
    expect_nothing_left(PAUSED, true, end_at_once);
}

static void test_nothing_is_left_when_the_starting_thread_ends_first(void **state)
{
    (void)state;
    expect_nothing_left(RUNNING, false, end_in_another_thread);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_left_when_the_program_aborts),
        cmocka_unit_test(test_nothing_is_left_when_the_program_is_killed),
        cmocka_unit_test(test_nothing_is_left_when_the_process_group_is_killed),
        cmocka_unit_test(test_nothing_is_left_when_the_program_ends_without_stop),
        cmocka_unit_test(test_nothing_is_left_when_the_program_executes_another),
        cmocka_unit_test(test_nothing_is_left_when_a_child_lives_on),
        cmocka_unit_test(test_nothing_is_left_when_the_starting_thread_ends_first),
    };

    test_begin(argc, argv);
    test_put_server_into_path();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMUTEX_LOG=level:path: a path that is no file makes no process wait and is not followed; the log goes to standard
 * error then, and says why.
 *
 * This program executes itself with --lock: locks and unlocks once; with --try: tries to lock.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/lines.h"
#include "../lib/testlib.h"

static int lock_once(void)
{
    dmutex_t mutex = DMUTEX_INITIALIZER("logs/x");

    return lock_and_unlock(&mutex);
}

static int try_once(void)
{
    dmutex_t mutex = DMUTEX_INITIALIZER("logs/x");

    return dmutex_trylock(&mutex);
}

/* Locks once at a server that is not there, so that there is a line to log. */
static void lock_with_log(const char *log)
{
    command_run("DMUTEX_URL='unix:///nowhere?command_timeout=200' DMUTEX_ONDOWN=fail DMUTEX_LOG='%s' exec %s --lock",
                log, program_path);
    assert_status(ENOLCK);
}

static void lock_with_log_at(const char *name)
{
    char log[160];

    snprintf(log, sizeof log, "warn:%s", server_file(the_server, name));
    lock_with_log(log);
}

/* A file is made, appended to, and closed to others. */
static void test_the_log_is_a_file_when_it_can_be(void **state)
{
    struct stat status;

    (void)state;
    lock_with_log_at("plain");
    lock_with_log_at("plain");
    assert_string_equal(ran.errors, "");
    assert_return_code(stat(server_file(the_server, "plain"), &status), errno);
    assert_int_equal(status.st_mode & 07777, 0600);
    command_run("test $(grep -c 'the connection to /nowhere' %s) -eq 2", server_file(the_server, "plain"));
    assert_status(0);
}

/* Security: a link may lead to a file that the program's user may write and the link's maker may not. */
static void test_the_log_is_not_written_when_its_path_is_a_link(void **state)
{
    (void)state;
    assert_return_code(symlink("target", server_file(the_server, "link")), errno);
    lock_with_log_at("link");
    assert_errors("is a symbolic link: the log goes to standard error");
    assert_errors("the connection to /nowhere");
    assert_int_equal(access(server_file(the_server, "target"), F_OK), -1);
}

#define STRANGER 61234

/*
 * Security: another user makes a link to a folder, and root's programs would make files there.  Nor is a folder used
 * that all may change, nor a file of another user or one with a second name.  The sticky bit makes a folder safe, and
 * the folder may be another user's.
 */
static void test_root_writes_no_log_that_a_stranger_leads_elsewhere(void **state)
{
    const char *folder = the_server->folder;

    (void)state;
    if (geteuid() != 0)
        return; /* only root can make the files of a stranger */
    command_run("cd %s && mkdir rooted strange all && ln -s rooted way && chown -h %d way strange && chmod 777 all",
                folder, STRANGER);
    assert_status(0);
    lock_with_log_at("way/log");
    assert_errors("is behind another user's link: the log goes to standard error");
    assert_errors("the connection to /nowhere");
    lock_with_log_at("all/log");
    assert_errors("is in a folder that all may change: the log goes to standard error");
    command_run("cd %s && find rooted all -type f", folder);
    assert_string_equal(ran.output, "");
    command_run("cd %s && chmod 1777 all && echo kept >rooted/kept && ln rooted/kept all/second && "
                "touch all/theirs && chown %d all/theirs",
                folder, STRANGER);
    assert_status(0);
    lock_with_log_at("all/second");
    assert_errors("is a file of another user, or has a second name: the log goes to standard error");
    lock_with_log_at("all/theirs");
    assert_errors("is a file of another user, or has a second name: the log goes to standard error");
    command_run("cd %s && cat rooted/kept all/theirs", folder);
    assert_string_equal(ran.output, "kept\n");
    lock_with_log_at("all/log");
    assert_string_equal(ran.errors, "");
    lock_with_log_at("strange/log");
    assert_string_equal(ran.errors, "");
}

/* No process reads from the FIFO, or a process has the FIFO open and does not read: the program ends all the same. */
static void test_nobody_waits_when_the_log_is_a_fifo(void **state)
{
    int reader;

    (void)state;
    assert_return_code(mkfifo(server_file(the_server, "fifo"), 0600), errno);
    lock_with_log_at("fifo");
    assert_errors("is a FIFO or a socket: the log goes to standard error");
    reader = open(server_file(the_server, "fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    lock_with_log_at("fifo");
    assert_errors("is neither a file nor a device: the log goes to standard error");
    close(reader);
}

/* Lines for a full pipe are dropped; a blocking write would stop the renewals. */
static void test_nobody_waits_when_standard_error_is_full(void **state)
{
    char bytes[4096] = "";
    int ends[2], status;
    pid_t pid;

    (void)state;
    assert_return_code(pipe(ends), errno);
    assert_return_code(fcntl(ends[1], F_SETFL, O_NONBLOCK), errno);
    while (write(ends[1], bytes, sizeof bytes) > 0)
        continue;
    assert_return_code(fcntl(ends[1], F_SETFL, 0), errno);
    pid = keeper_fork();
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        setenv("DMUTEX_URL", "unix:///nowhere?command_timeout=200", 1);
        setenv("DMUTEX_ONDOWN", "fail", 1);
        setenv("DMUTEX_LOG", "debug", 1);
        execl(program_path, program_path, "--lock", (char *)NULL);
        _exit(127);
    }
    wait_until(waitpid(pid, &status, WNOHANG) == pid);
    assert_int_equal(WEXITSTATUS(status), ENOLCK);
    close(ends[0]);
    close(ends[1]);
}

/* A reader of standard error that has gone is no reason to end: the program has not written the line. */
static void test_a_program_goes_on_when_nobody_reads_its_log(void **state)
{
    int ends[2], status;
    pid_t pid;

    (void)state;
    assert_return_code(pipe(ends), errno);
    close(ends[0]);
    pid = keeper_fork();
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGPIPE, SIG_DFL);
        setenv("DMUTEX_URL", "unix:///nowhere?command_timeout=200", 1);
        setenv("DMUTEX_ONDOWN", "nonsense", 1); /* a line of the calling thread */
        execl(program_path, program_path, "--try", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    status = keeper_reap(pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), ENOLCK);
}

/* Nor is a limit on file sizes, or a full disk. */
static void test_a_program_goes_on_when_its_log_may_not_grow(void **state)
{
    (void)state;
    command_run("ulimit -f 0; DMUTEX_URL='unix:///nowhere?command_timeout=200' DMUTEX_ONDOWN=nonsense "
                "DMUTEX_LOG='warn:%s' exec %s --try",
                server_file(the_server, "limited"), program_path);
    assert_status(ENOLCK);
}

/* An invalid level is reported, and not taken for silence. */
static void test_the_log_says_so_when_its_level_is_none(void **state)
{
    (void)state;
    lock_with_log("verbose");
    assert_errors("DMUTEX_LOG: \"verbose\" is not warn, info or debug");
    assert_errors("the connection to /nowhere");
}

/* R8: a server, or a proxy, that ends idle connections again and again.  Idle is a connection after a second. */
static void test_the_log_has_no_warning_when_an_idle_connection_ends(void **state)
{
    struct server *server = server_start();
    char log[160];
    struct actor *a;

    (void)state;
    snprintf(log, sizeof log, "DMUTEX_LOG=info:%s", server_file(server, "idle"));
    a = actor_start_with(server, log, NULL);
    for (int i = 1; i <= 2; i++) {
        actor_do(a, "0", "lock logs/idle");
        actor_do(a, "0", "unlock logs/idle");
        side_set_control(server->side, "idle", 1500);
        wait_until(side_is_control_over(server->side, "idle"));
        side_text(server->side, "CLIENT KILL TYPE normal");
        wait_until(lines_with(server_file(server, "idle"), "by a proxy, while idle") == i);
    }
    actor_do(a, "0", "lock logs/idle");
    actor_end(a);
    assert_int_equal(lines_with(server_file(server, "idle"), "warning"), 0);
    server_end(server);
}

/* A process may have several connections. */
static void test_the_log_names_the_connection_that_is_back(void **state)
{
    struct server *server = server_start();
    char log[160], back[160];
    struct actor *a;

    (void)state;
    snprintf(log, sizeof log, "DMUTEX_LOG=info:%s", server_file(server, "back"));
    snprintf(back, sizeof back, "the connection to %s is back", server->path);
    a = actor_start_with(server, log, NULL);
    actor_do(a, "0", "lock logs/back");
    actor_do(a, "0", "unlock logs/back");
    server_kill(server);
    server_restart(server);
    do {
        actor_do(a, "0", "lock logs/back");
        actor_do(a, "0", "unlock logs/back");
    } while (lines_with(server_file(server, "back"), back) == 0);
    actor_end(a);
    server_end(server);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_log_is_a_file_when_it_can_be),
        cmocka_unit_test(test_the_log_is_not_written_when_its_path_is_a_link),
        cmocka_unit_test(test_nobody_waits_when_the_log_is_a_fifo),
        cmocka_unit_test(test_root_writes_no_log_that_a_stranger_leads_elsewhere),
        cmocka_unit_test(test_nobody_waits_when_standard_error_is_full),
        cmocka_unit_test(test_a_program_goes_on_when_nobody_reads_its_log),
        cmocka_unit_test(test_a_program_goes_on_when_its_log_may_not_grow),
        cmocka_unit_test(test_the_log_says_so_when_its_level_is_none),
        cmocka_unit_test(test_the_log_has_no_warning_when_an_idle_connection_ends),
        cmocka_unit_test(test_the_log_names_the_connection_that_is_back),
        cmocka_unit_test(test_nothing_is_left),
    };

    if (argc > 1 && strcmp(argv[1], "--lock") == 0)
        return lock_once();
    if (argc > 1 && strcmp(argv[1], "--try") == 0)
        return try_once();
    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock file whose lock is lost: the job gets a message on its standard error if that is a terminal, a pipe or a local
 * socket; otherwise syslog does. Nothing else is written to.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../lib/range.h"
#include "../lib/stranger.h"
#include "host.h"

#define WORDS "dmutex: the lease of f/x.lock has ended while "
#define ON_SYSLOG "others may have it from now on"
#define LINE_ROOM 2048
#define FILES 300
#define TEXT(number) #number
#define STRING(number) TEXT(number)

static struct host *c; /* a host of each test's own, so that the test's first job starts the keeper */
static int syslog_fd;  /* /dev/log of that job */

static int begin(void **state, const char *settings)
{
    static char name[] = "c@";
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    host_begin_test(state);
    name[1]++;
    c = host_make(name, settings);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/%s/syslog", the_server->folder, name);
    syslog_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_return_code(bind(syslog_fd, (const struct sockaddr *)&address, sizeof address), errno);
    return 0;
}

static int begin_test(void **state)
{
    return begin(state, "lease=1s");
}

static int begin_crowd_test(void **state)
{
    return begin(state, "lease=9s onlost=signal:TERM");
}

static int end_test(void **state)
{
    (void)state;
    host_end(c);
    close(syslog_fd);
    return 0;
}

#define loss_test(test) cmocka_unit_test_setup_teardown(test, begin_test, end_test)
#define crowd_test(test) cmocka_unit_test_setup_teardown(test, begin_crowd_test, end_test)

/* Starts a script with its own /dev, where /dev/log is the test's; the script contains no single quotes. */
static struct job *start(const char *script)
{
    char whole[1024];

    snprintf(whole, sizeof whole,
             "exec unshare -m sh -c 'mkdir dev && mount -t tmpfs dev dev && : >dev/null && "
             "mount --bind /dev/null dev/null && ln -s $PWD/syslog dev/log && mount --move dev /dev && "
             "eval \"$1\"' - '%s'",
             script);
    return host_start(c, whole);
}

static void read_syslog(char ret_line[LINE_ROOM])
{
    ssize_t length;

    assert_true(await_readable(syslog_fd));
    length = recv(syslog_fd, ret_line, LINE_ROOM - 1, 0);
    assert_true(length > 0);
    ret_line[length] = '\0';
}

/* Awaits the alert in syslog, and checks the form: priority, sender, job, words. */
static void expect_alert(const char *program)
{
    char line[LINE_ROOM], head[64];

    read_syslog(line);
    assert_memory_equal(line, "<25>", 4); /* LOG_DAEMON, LOG_ALERT */
    assert_int_equal(line[7], ' ');       /* `Nov 28 04:05:06 ` */
    assert_int_equal(line[19], ' ');
    assert_memory_equal(line + 20, "dmutex-keeper[", 14);
    snprintf(head, sizeof head, "]: %s (process ", program);
    assert_non_null(strstr(line, head));
    assert_non_null(strstr(line, WORDS));
    assert_non_null(strstr(line, ON_SYSLOG));
}

/* Nothing comes to syslog: the keeper's end, which has been awaited, comes after all its messages. */
static void assert_no_alert(void)
{
    int keeper = host_open_keeper(c);

    if (keeper >= 0)
        assert_true(await_readable(keeper));
    if (keeper >= 0)
        close(keeper);
    assert_false(wait_readable(syslog_fd, 0));
}

/* A socket, which a service of systemd has as its standard error, gets the line; syslog does not. */
static void test_a_job_gets_the_reason_when_its_standard_error_is_a_socket(void **state)
{
    struct job *job = start("flock x.lock sh -c \"echo has; read go\" 2>&1");

    (void)state;
    job_expect(job, "has");
    lose("x.lock");
    assert_memory_equal(job_line(job), WORDS, strlen(WORDS));
    job_finish(job);
    assert_no_alert();
}

/* A pipe gets the line, also after the end of the process that took the lock: once for several processes. */
static void test_a_job_gets_the_reason_when_its_standard_error_is_a_pipe(void **state)
{
    struct job *job = start("(flock 9; sleep 1000 & echo has >&3; read go; kill $!) 9>x.lock "
                            "3>&1 2>&1 >/dev/null | cat");

    (void)state;
    job_expect(job, "has");
    lose("x.lock");
    assert_memory_equal(job_line(job), WORDS, strlen(WORDS));
    job_go(job);
    assert_string_equal(job_rest(job), "");
    assert_int_equal(job_end(job), 0);
    assert_no_alert();
}

/* The reader of a pipe sees its end when the process that took the lock ends, although the lock lasts. */
static void test_a_pipe_ends_while_the_lock_goes_on(void **state)
{
    struct job *job = start("exec 9>x.lock; said=$(flock 9 2>&1); echo \"has$said\"; read go");

    (void)state;
    job_expect(job, "has");
    assert_true(is_held("x.lock"));
    job_finish(job);
}

/* So does the reader of a socket, which the keeper inevitably uses until it sees that the process has ended. */
static void test_a_socket_ends_while_the_lock_goes_on(void **state)
{
    struct job *job = start("exec $LOCKER x.lock flock quiet pause 2>&1");

    (void)state;
    job_expect(job, "flock 0");
    assert_string_equal(job_rest(job), "");
    assert_true(is_held("x.lock"));
    job_signal(job, SIGTERM);
    assert_int_equal(job_end(job), 128 + SIGTERM);
}

/*
 * A pipe of another user, as cron gives its jobs, which the keeper may not open, gets the line from the descriptor that
 * the job has handed over.
 */
static void test_a_job_gets_the_reason_when_its_standard_error_is_a_pipe_of_another_user(void **state)
{
    struct job *job = start("chmod 711 ..; chmod 777 ../s; chown 61234 .; "
                            "{ setpriv --reuid 61234 --regid 61234 --clear-groups "
                            "flock x.lock sh -c \"echo has >&3; read go\"; } 3>&1 2>&1 >/dev/null | cat");

    (void)state;
    job_expect(job, "has");
    lose("x.lock");
    assert_memory_equal(job_line(job), WORDS, strlen(WORDS));
    job_finish(job);
    assert_no_alert();
}

/* A file gets no line, whatever the mode: it may be data, and a log's next line would be written over ours. */
static void test_syslog_gets_the_line_when_standard_error_is_a_file(void **state)
{
    struct job *job = start("exec 2>>data; echo before >&2; flock x.lock sh -c \"echo has; read go\"");

    (void)state;
    job_expect(job, "has");
    lose("x.lock");
    expect_alert("flock");
    job_finish(job);
    assert_int_equal(host_run(c, "test \"$(cat data)\" = before"), 0);
}

/* A closed standard error, whose number a data file has got, gets no line. */
static void test_syslog_gets_the_line_when_standard_error_is_closed(void **state)
{
    struct job *job = start("flock x.lock sh -c \"echo has; read go\" 2>&-");

    (void)state;
    job_expect(job, "has");
    lose("x.lock");
    expect_alert("flock");
    job_finish(job);
}

/* A process of another user that has the lock, too, cannot have root's keeper write to the file that it has open. */
static void test_a_file_of_root_is_not_written_to_when_a_stranger_has_it_as_standard_error(void **state)
{
    struct job *job = start("echo before >data; exec flock x.lock setpriv --reuid 61234 --regid 61234 --clear-groups "
                            "sh -c \"exec 2<data; echo has; read go\"");

    (void)state;
    assert_int_equal(host_run(c, "chmod 755 . .."), 0);
    job_expect(job, "has");
    lose("x.lock");
    expect_alert("flock");
    job_finish(job);
    assert_int_equal(host_run(c, "test \"$(cat data)\" = before"), 0);
}

/* A pipe that is open for reading gets no line. */
static void test_syslog_gets_the_line_when_standard_error_is_read_only(void **state)
{
    struct job *job = start("mkfifo p; exec 8<>p; exec flock x.lock sh -c \"echo has; read go\" 2<p");

    (void)state;
    job_expect(job, "has");
    lose("x.lock");
    expect_alert("flock");
    assert_int_equal(host_run(c, "echo after >p & head -n 1 p >first; wait; test $(cat first) = after"), 0);
    job_finish(job);
}

/* All locks of the job are lost at once. Returns how often the keeper has read until syslog has a line for each. */
static long lose_many(const char *words)
{
    pid_t keeper = host_keeper(c);
    long reads = host_reads(c);
    char line[LINE_ROOM];

    assert_return_code(kill(keeper, SIGSTOP), errno);
    for (int i = 0; i < FILES; i++) {
        snprintf(line, sizeof line, "%d.lock", i);
        lose(line);
    }
    assert_return_code(kill(keeper, SIGCONT), errno);
    for (int i = 0; i < FILES; i++) {
        read_syslog(line);
        assert_non_null(strstr(line, words));
    }
    return host_reads(c) - reads;
}

/* The keeper searches all processes once, and not for each lock, to name a process that has inherited the locks. */
static void test_syslog_names_the_job_when_hundreds_of_inherited_locks_are_lost(void **state)
{
    struct job *job = start("exec $LOCKER x.lock term many " STRING(FILES) " fork say has wait say ends 2>/dev/null");

    (void)state;
    job_expect(job, "has");
    assert_within(lose_many("]: locker (process "), 1, 2 * FILES * FILES);
    job_go(job);
    job_expect(job, "ends");
    assert_int_equal(job_end(job), 0);
}

/* Nor does it search for each lock if the process that has them all cannot be seen. */
static void test_syslog_has_each_line_when_hundreds_are_lost_out_of_sight(void **state)
{
    struct job *job = start("exec setpriv --bounding-set -sys_ptrace $LOCKER x.lock many " STRING(
        FILES) " drop say has wait say ends 2>/dev/null");

    (void)state;
    job_expect(job, "drop 0");
    job_expect(job, "has");
    assert_within(lose_many("]: dmutex: the lease of f/"), 1, 2 * FILES * FILES);
    job_go(job);
    job_expect(job, "ends");
    assert_int_equal(job_end(job), 0);
}

/* It has locks of others: OnLost of dmutex.conf is for programs. */
static void test_the_keeper_lives_on_when_dmutex_conf_ends_programs_at_a_loss(void **state)
{
    struct job *job = start("mkdir -p conf/dmutex; "
                            "printf \"[defaults]\\nOnLost=signal:KILL\\n\" >conf/dmutex/dmutex.conf; "
                            "export XDG_CONFIG_HOME=$PWD/conf; flock y.lock flock x.lock "
                            "sh -c \"echo has; read go; flock z.lock true; echo again; read go\" 2>&1");
    int keeper;

    (void)state;
    job_expect(job, "has");
    keeper = host_open_keeper(c);
    assert_true(keeper >= 0);
    lose("x.lock");
    assert_memory_equal(job_line(job), WORDS, strlen(WORDS));
    job_go(job);
    job_expect(job, "again");
    assert_false(wait_readable(keeper, 0));
    assert_true(is_held("y.lock"));
    close(keeper);
    job_finish(job);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        loss_test(test_a_job_gets_the_reason_when_its_standard_error_is_a_socket),
        loss_test(test_a_job_gets_the_reason_when_its_standard_error_is_a_pipe),
        loss_test(test_a_pipe_ends_while_the_lock_goes_on),
        loss_test(test_a_socket_ends_while_the_lock_goes_on),
        loss_test(test_syslog_gets_the_line_when_standard_error_is_a_file),
        loss_test(test_syslog_gets_the_line_when_standard_error_is_closed),
        loss_test(test_a_file_of_root_is_not_written_to_when_a_stranger_has_it_as_standard_error),
        loss_test(test_a_job_gets_the_reason_when_its_standard_error_is_a_pipe_of_another_user),
        loss_test(test_syslog_gets_the_line_when_standard_error_is_read_only),
        crowd_test(test_syslog_names_the_job_when_hundreds_of_inherited_locks_are_lost),
        crowd_test(test_syslog_has_each_line_when_hundreds_are_lost_out_of_sight),
        loss_test(test_the_keeper_lives_on_when_dmutex_conf_ends_programs_at_a_loss),
    };

    test_begin(argc, argv);
    stranger_require();
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The keeper of lock files: the start, which no program notices, the life and the ends. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

#define AT_ONCE 5000 /* far below the usual lease */
#define SHORT_LEASE "1s"
#define SHORT_LEASE_MS 1000
#define SURE_LEASE "3s" /* which a busy machine keeps */
#define SURE_LEASE_MS 3000
#define SLACK 2000

static void await_no_keeper(struct host *host)
{
    wait_until(host_keeper(host) == 0);
}

/* ---- the start --------------------------------------------------------------------------- */

/* The program that starts the keeper gets no SIGCHLD, and wait() finds no child. */
static void test_the_program_that_starts_it_has_no_child(void **state)
{
    struct job *job;

    (void)state;
    await_no_keeper(a);
    job = host_start(a, "$LOCKER x.lock flock children flock-un children");
    job_expect(job, "flock 0");
    job_expect(job, "children 0 none");
    job_expect(job, "flock-un 0");
    job_expect(job, "children 0 none");
    assert_int_equal(job_end(job), 0);
}

static void assert_link(pid_t pid, const char *name, const char *wanted)
{
    char path[64], target[256];
    ssize_t length;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    length = readlink(path, target, sizeof target - 1);
    assert_true(length > 0);
    target[length] = '\0';
    assert_string_equal(target, wanted);
}

/* True for a descriptor by O_PATH, which neither keeps a lock nor writes to a pipe. */
static bool is_by_path(pid_t pid, const char *fd)
{
    char path[64], line[128];
    unsigned long flags = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/fdinfo/%.10s", (int)pid, fd);
    file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        sscanf(line, "flags: %lo", &flags);
    fclose(file);
    return flags & O_PATH;
}

/* Asserts that no open descriptor is the program's: no lock file, no other file, no pipe. */
static void assert_descriptors_are_its_own(pid_t pid)
{
    char path[64], target[4096];
    struct dirent *entry;
    DIR *folder;

    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    folder = opendir(path);
    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);

        target[length > 0 ? length : 0] = '\0';
        if (strstr(target, ".lock") || strstr(target, "pipe:"))
            assert_true(is_by_path(pid, entry->d_name));
        assert_null(strstr(target, "somefile"));
    }
    closedir(folder);
}

static char *content_of(pid_t pid, const char *name, size_t *ret_length)
{
    static char content[65536];
    char path[64];
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    file = fopen(path, "r");
    assert_non_null(file);
    *ret_length = fread(content, 1, sizeof content - 1, file);
    fclose(file);
    content[*ret_length] = '\0';
    return content;
}

/* The keeper inherits nothing of the program: descriptors, session, folder, ignored signals, environment, preload. */
static void test_it_keeps_nothing_of_the_program(void **state)
{
    struct job *holder;
    size_t length;
    char *content;
    pid_t pid;

    (void)state;
    await_no_keeper(a);
    holder = host_start(a, "trap '' ALRM; exec 7>somefile; mkdir -p sub; cd sub; "
                           "(flock 9; echo has; read go; true) 9>../x.lock | cat");
    job_expect(holder, "has");
    pid = host_keeper(a);
    assert_int_not_equal(pid, 0);
    for (int fd = 0; fd < 3; fd++) {
        char name[16];

        snprintf(name, sizeof name, "fd/%d", fd);
        assert_link(pid, name, "/dev/null");
    }
    assert_descriptors_are_its_own(pid);
    assert_link(pid, "cwd", "/");
    assert_int_not_equal(getsid(pid), getsid(0));
    content = content_of(pid, "comm", &length);
    assert_string_equal(content, "dmutex-keeper\n");
    content = content_of(pid, "environ", &length);
    assert_null(memmem(content, length, "LD_PRELOAD=", 11));
    assert_null(memmem(content, length, "DMUTEX_MAP=", 11));
    assert_non_null(memmem(content, length, "DMUTEX_URL=", 11));
    content = content_of(pid, "maps", &length);
    assert_null(strstr(content, "libdmutex-preload"));
    content = strstr(content_of(pid, "status", &length), "SigIgn:");
    assert_non_null(content);
    assert_int_equal(strtoull(content + 7, NULL, 16) & (1ULL << (SIGALRM - 1)), 0);
    job_finish(holder);
}

static void assert_line_of(pid_t pid, const char *name, const char *line)
{
    size_t length;

    if (!strstr(content_of(pid, name, &length), line))
        fail_msg("/proc/PID/%s lacks \"%s\":\n%s", name, line, content_of(pid, name, &length));
}

static void assert_soft_limit_is_hard(pid_t pid, __rlimit_resource_t resource)
{
    struct rlimit limit;

    assert_return_code(prlimit(pid, resource, NULL, &limit), errno);
    assert_int_equal(limit.rlim_cur, limit.rlim_max);
}

/* The keeper has none of the limits of the program that has started it, nor its signal mask or its low priority. */
static void test_it_has_no_limits_of_the_program(void **state)
{
    struct job *holder;
    pid_t pid;

    (void)state;
    await_no_keeper(a);
    holder = host_start(a, "ulimit -S -t 100; ulimit -S -f 1; ulimit -S -v 999999; ulimit -S -n 30; umask 0; "
                           "echo 500 >/proc/self/oom_score_adj; echo 500 >/proc/$$/oom_score_adj; "
                           "exec nice -n 5 chrt --batch 0 taskset 1 flock x.lock sh -c 'echo has; read go'");
    job_expect(holder, "has");
    pid = host_keeper(a);
    assert_int_not_equal(pid, 0);
    assert_soft_limit_is_hard(pid, RLIMIT_CPU);
    assert_soft_limit_is_hard(pid, RLIMIT_FSIZE);
    assert_soft_limit_is_hard(pid, RLIMIT_AS);
    assert_soft_limit_is_hard(pid, RLIMIT_NOFILE);
    assert_line_of(pid, "status", "Umask:\t0077");
    assert_line_of(pid, "oom_score_adj", "0\n");
    assert_int_equal(getpriority(PRIO_PROCESS, (id_t)pid), 0);
    assert_int_equal(sched_getscheduler(pid), SCHED_OTHER);
    job_finish(holder);
}

/* Nor capabilities that the program's children inherit: programs without them give the keeper orders. */
static void test_it_has_no_capabilities_of_the_program(void **state)
{
    struct job *holder;

    (void)state;
    await_no_keeper(a);
    holder = host_start(a, "exec setpriv --inh-caps +chown --ambient-caps +chown flock x.lock sh -c "
                           "'grep CapAmb /proc/self/status; read go'");
    job_expect(holder, "CapAmb:\t0000000000000001");
    assert_line_of(host_keeper(a), "status", "CapAmb:\t0000000000000000");
    job_finish(holder);
}

/* The number of keepers that can be called. */
static int count_sockets(struct host *host)
{
    struct job *job = host_start(host, "ls keeper | grep -c '^keeper-'");
    int count = atoi(job_rest(job));

    job_end(job);
    return count;
}

/* Many programs at once start one keeper, and each program has its lock. */
static void test_many_programs_at_once_start_one_keeper(void **state)
{
    struct job *jobs[16];
    char script[80];

    (void)state;
    await_no_keeper(a);
    for (int i = 0; i < 16; i++) {
        snprintf(script, sizeof script, "flock many%d.lock sh -c 'echo has; read go'", i);
        jobs[i] = host_start(a, script);
    }
    for (int i = 0; i < 16; i++)
        job_expect(jobs[i], "has");
    assert_int_equal(count_sockets(a), 1);
    assert_int_equal(host_run(a, "test $(grep -c 'listening' log) -ge 1 && "
                                 "test $(tail -n 17 log | grep -c 'is locked') = 16"),
                     0);
    for (int i = 0; i < 16; i++)
        job_finish(jobs[i]);
}

/* Each server has a separate keeper, and so has each network namespace. */
static void test_another_server_and_another_network_have_another_keeper(void **state)
{
    struct job *holder, *other;

    (void)state;
    await_no_keeper(a);
    holder = host_start_holder(a);
    other = host_start(a, "DMUTEX_URL=\"$DMUTEX_URL&connect_timeout=1999\" flock y.lock sh -c 'echo has; read go'");
    job_expect(other, "has");
    assert_int_equal(count_sockets(a), 2);
    job_finish(other);
    if (host_can_unshare(a, "-n")) {
        wait_until(count_sockets(a) == 1); /* the other keeper has ended */
        other = host_start(a, "unshare -r -n flock z.lock sh -c 'echo has; read go'");
        job_expect(other, "has");
        assert_int_equal(count_sockets(a), 2);
        job_finish(other);
    }
    job_finish(holder);
}

/* If the keeper's program is missing or fails, a lock fails with a reason, and leaves nothing locked. */
static void test_a_lock_fails_with_a_reason_when_it_cannot_be_started(void **state)
{
    (void)state;
    await_no_keeper(b);
    assert_int_equal(host_run(b, "DMUTEX_KEEPER=/nowhere/keeper $LOCKER x.lock flock >said.out; "
                                 "test \"$(cat said.out)\" = 'flock ENOLCK'"),
                     0);
    assert_true(host_has_said(b, "/nowhere/keeper: No such file"));
    assert_int_equal(host_run(b, "DMUTEX_KEEPER=/bin/false $LOCKER x.lock flock >said.out; "
                                 "test \"$(cat said.out)\" = 'flock ENOLCK'"),
                     0);
    assert_true(host_has_said(b, "ends without an answer"));
    assert_int_equal(host_run(b, "DMUTEX_MAP= $LOCKER x.lock flock-try | grep -q 'flock-try 0'"), 0);
}

/* R8: the reason is not written to a file of data, which has the number of a closed standard error. */
static void test_no_reason_is_written_to_a_file_of_data_in_the_place_of_standard_error(void **state)
{
    (void)state;
    await_no_keeper(b);
    assert_int_equal(host_run(b,
                              "printf data >data; DMUTEX_KEEPER=/nowhere/keeper $LOCKER x.lock data flock >said.out; "
                              "test \"$(cat said.out) $(cat data)\" = 'flock ENOLCK data'"),
                     0);
}

/* A lock fails if the keeper's folder is open to others, because a stranger's keeper could answer there. */
static void test_a_lock_fails_when_the_folder_is_open_to_others(void **state)
{
    (void)state;
    await_no_keeper(a);
    assert_int_equal(host_run(a, "chmod 755 keeper; $LOCKER x.lock flock >said.out; chmod 700 keeper; "
                                 "test \"$(cat said.out)\" = 'flock ENOLCK'"),
                     0);
    assert_true(host_has_said(a, "is open to others"));
}

/* ---- the life ---------------------------------------------------------------------------- */

/* The keeper ends soon after the last lock, and leaves no socket. */
static void test_it_ends_soon_after_its_last_lock(void **state)
{
    struct job *holder = host_start_holder(a);
    int keeper = host_open_keeper(a);

    (void)state;
    assert_true(keeper >= 0);
    promise_within(AT_ONCE);
    job_finish(holder);
    assert_true(await_readable(keeper));
    assert_kept();
    close(keeper);
    assert_int_equal(count_sockets(a), 0);
}

/* The keeper ends if its folder was deleted, because no program can find it any more. */
static void test_it_ends_when_its_folder_was_deleted(void **state)
{
    struct job *holder = host_start_holder(a);
    int keeper = host_open_keeper(a);

    (void)state;
    assert_true(keeper >= 0);
    assert_int_equal(host_run(a, "rm -r keeper"), 0);
    job_finish(holder);
    assert_true(await_readable(keeper));
    close(keeper);
}

/* The keeper lives as long as a lock, although other locks end. */
static void test_it_lives_as_long_as_a_lock(void **state)
{
    struct job *holder = host_start_holder(a);
    int keeper = host_open_keeper(a);

    (void)state;
    promise_within(1500); /* three times as long as a keeper without locks lives */
    while (!side_is_control_over(the_server->side, "bound"))
        assert_int_equal(host_run(a, "flock y.lock true"), 0);
    assert_int_equal(poll(&(struct pollfd){ .fd = keeper, .events = POLLIN }, 1, 0), 0);
    assert_int_equal(host_run(b, "flock -n -E 9 x.lock true"), 9);
    close(keeper);
    job_finish(holder);
}

/* A program that locks while the keeper is about to end gets the lock. */
static void test_no_caller_is_lost_when_it_is_about_to_end(void **state)
{
    struct timespec pause = { 0 };

    (void)state;
    for (int i = 0; i < repetitions(8); i++) {
        int keeper;

        assert_int_equal(host_run(a, "flock x.lock true"), 0);
        keeper = host_open_keeper(a);
        pause.tv_nsec = 480000000 + i % 8 * 6000000; /* a guess: the moment of the keeper's end */
        nanosleep(&pause, NULL);
        assert_int_equal(host_run(a, "flock x.lock true"), 0);
        if (keeper >= 0)
            close(keeper);
    }
    assert_false(host_has_said(a, "ends without an answer"));
}

/* The keeper checks for closed files by itself, because nothing reports the close of a renamed file. */
static void test_a_lock_ends_when_its_file_was_renamed_while_it_was_waited_for(void **state)
{
    struct job *holder = host_start_holder(b), *waiter = host_start(a, "exec $LOCKER x.lock flock wait");

    (void)state;
    wait_until(waiters_for("x.lock") == 1);
    assert_int_equal(host_run(a, "mv x.lock y.lock"), 0);
    job_finish(holder);
    job_expect(waiter, "flock 0");
    promise_within(AT_ONCE);
    job_finish(waiter);
    assert_int_equal(host_run(b, "flock x.lock true"), 0);
    assert_kept();
}

/* The signals that end a service or a session do not end the keeper while a lock is held. */
static void test_it_ignores_signals_that_ask_it_to_end(void **state)
{
    struct job *holder = host_start_holder(a);
    pid_t pid = host_keeper(a);

    (void)state;
    assert_return_code(kill(pid, SIGTERM), errno);
    assert_return_code(kill(pid, SIGINT), errno);
    assert_return_code(kill(pid, SIGHUP), errno);
    assert_int_equal(host_run(b, "flock -n -E 9 x.lock true"), 9);
    assert_int_equal(host_keeper(a), pid);
    job_finish(holder);
}

/* ---- the death --------------------------------------------------------------------------- */

/* If the keeper is killed, its locks end with their leases, and another host has the lock. */
static void test_its_locks_end_with_their_leases_when_it_is_killed(void **state)
{
    struct host *c = host_make("c", "lease=" SHORT_LEASE);
    struct job *holder = host_start_holder(c), *waiter;

    (void)state;
    assert_int_equal(host_run(b, "flock -n -E 9 x.lock true"), 9);
    assert_return_code(kill(host_keeper(c), SIGKILL), errno);
    promise_within(SHORT_LEASE_MS + SLACK);
    waiter = host_start(b, "flock x.lock echo has");
    job_expect(waiter, "has");
    assert_kept();
    assert_int_equal(job_end(waiter), 0);
    job_finish(holder);
    host_end(c);
}

/* If the keeper is killed, the next program that locks on the host starts another keeper. */
static void test_another_is_started_when_it_was_killed(void **state)
{
    struct host *c = host_make("d", "lease=" SHORT_LEASE);
    struct job *holder = host_start_holder(c);

    (void)state;
    assert_return_code(kill(host_keeper(c), SIGKILL), errno);
    assert_int_equal(host_run(c, "flock y.lock true"), 0);
    job_finish(holder);
    assert_int_equal(host_run(c, "flock x.lock true"), 0);
    host_end(c);
}

/* ---- who adopts orphans ------------------------------------------------------------------ */

/* The children of this process that are ended keepers; the last one's pid. */
static int count_ended_keepers(pid_t *ret_pid)
{
    char path[64], name[32];
    FILE *children;
    int count = 0, pid;

    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    assert_non_null(children = fopen(path, "r"));
    while (fscanf(children, "%d", &pid) == 1) {
        FILE *comm;

        snprintf(path, sizeof path, "/proc/%d/comm", pid);
        comm = fopen(path, "r");
        if (comm && fgets(name, sizeof name, comm) && strcmp(name, "dmutex-keeper\n") == 0 && proc_state(pid) == 'Z') {
            count++;
            *ret_pid = pid;
        }
        if (comm)
            fclose(comm);
    }
    fclose(children);
    return count;
}

/*
 * R7: if pid 1 of a container only waits for its own children, as this process does here, each burst of locks used to
 * leave a zombie.  Now one is left; the keeper after it stays, and ends once the zombie was reaped.
 */
static void test_it_lives_on_when_ended_keepers_are_not_reaped(void **state)
{
    pid_t ended = 0, pid;

    (void)state;
    await_no_keeper(a);
    assert_return_code(prctl(PR_SET_CHILD_SUBREAPER, 1), errno);
    assert_int_equal(host_run(a, "rm -f log; flock x.lock true"), 0);
    await_no_keeper(a);
    assert_int_equal(count_ended_keepers(&ended), 1);
    assert_int_equal(host_run(a, "flock x.lock true"), 0);
    wait_until(host_keeper(a) == 0 || host_run(a, "grep -q 'does not reap ended keepers' log") == 0);
    assert_int_equal(count_ended_keepers(&ended), 1);
    assert_true((pid = host_keeper(a)) > 0);
    assert_int_equal(host_run(a, "flock x.lock true"), 0);
    assert_int_equal(host_keeper(a), pid);
    assert_int_equal(waitpid(ended, NULL, __WALL), ended);
    await_no_keeper(a);
    assert_int_equal(waitpid(pid, NULL, __WALL), pid);
    assert_return_code(prctl(PR_SET_CHILD_SUBREAPER, 0), errno);
}

/* ---- the server -------------------------------------------------------------------------- */

/* Makes a host that waits for the server's answer for a short time only. */
static struct host *make_impatient(const char *name, const char *settings)
{
    struct host *host = host_make(name, settings);
    char string[160];

    snprintf(string, sizeof string, "DMUTEX_URL=%s&command_timeout=300", the_server->url);
    host_put(host, string);
    return host;
}

static int run_without_server(struct host *host, const char *script)
{
    int status;

    server_stop(the_server);
    status = host_run(host, script);
    server_cont(the_server);
    return status;
}

/* With OnDown=fail, the default, a lock without the server's answer is ENOLCK, and nothing is locked. */
static void test_a_lock_fails_when_the_server_does_not_answer(void **state)
{
    struct host *c = make_impatient("e", "");

    (void)state;
    assert_int_equal(run_without_server(c, "$LOCKER x.lock flock setlkw >said.out; cat said.out >&2; "
                                           "test \"$(cat said.out)\" = \"$(printf 'flock ENOLCK\\nsetlkw ENOLCK')\" && "
                                           "DMUTEX_MAP= flock -n x.lock true"),
                     0);
    assert_true(host_has_said(c, "x.lock (f/x.lock): The lock server"));
    host_end(c);
}

/*
 * A process whose children are of another pid namespace starts no keeper: as process 1 there, and gone at once, it
 * would leave the program without children.
 */
static void test_no_keeper_is_started_when_children_are_of_another_pid_namespace(void **state)
{
    struct host *c = host_make("o", "");
    struct job *job;

    (void)state;
    if (geteuid() == 0) {
        job = host_start(c, "exec unshare -p $LOCKER x.lock flock fork-wait say here");
        job_expect(job, "flock ENOLCK");
        job_expect(job, "here");
        job_expect(job, "here");
        assert_int_equal(job_end(job), 0);
        assert_true(host_has_said(c, "by a process that has left its pid namespace: fork first"));
    }
    host_end(c);
}

/* A keeper with the program's few descriptors would serve nobody, and keep the others from starting one. */
static void test_no_keeper_is_started_that_can_open_nothing(void **state)
{
    (void)state;
    await_no_keeper(a);
    assert_int_not_equal(host_run(a, "ulimit -n 31; flock x.lock true"), 0);
    assert_true(host_has_said(a, "less than 32 descriptors: raise the hard limit"));
    assert_int_equal(host_keeper(a), 0);
    assert_int_equal(host_run(a, "ulimit -n 32; flock x.lock true"), 0);
}

/* With and without a keeper that runs. */
static void test_the_sentence_says_so_when_a_program_may_make_no_unix_socket(void **state)
{
    struct job *holder = NULL;

    (void)state;
    await_no_keeper(a);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(host_run(a, "$LOCKER x.lock plain flock >said.out; ! grep -q 'flock 0' said.out"), 0);
        assert_true(host_has_said(a, "this program may make no unix socket: allow AF_UNIX"));
        if (i == 0)
            holder = host_start(a, "exec $LOCKER y.lock flock pause");
        wait_until(host_keeper(a) != 0);
    }
    job_signal(holder, SIGKILL);
    job_end(holder);
}

/* A folder that cannot be written: the sentence names it, and the way out. */
static void test_the_sentence_says_what_to_do_when_the_keepers_folder_is_read_only(void **state)
{
    struct host *c = host_make("n", "");

    (void)state;
    if (geteuid() == 0) {
        assert_int_equal(host_run(c,
                                  "mkdir -m 0700 keeper; exec unshare -m sh -c 'mount --bind keeper keeper && mount -o "
                                  "remount,bind,ro keeper && exec $LOCKER x.lock flock | grep -q ENOLCK'"),
                         0);
        assert_true(host_has_said(c, "/keeper: Read-only file system: set DMUTEX_LOCAL_DIR to a folder that can be"));
    }
    host_end(c);
}

/* With OnDown=local, a lock without the server's answer is the kernel's only. */
static void test_a_lock_is_local_when_the_rule_says_so_and_the_server_does_not_answer(void **state)
{
    struct host *c = make_impatient("g", "ondown=local");

    (void)state;
    assert_int_equal(run_without_server(c, "flock x.lock flock -n -E 9 x.lock true"), 9);
    host_end(c);
}

/* With OnDown=block, a lock waits for the server. */
static void test_a_lock_waits_when_the_rule_says_so_and_the_server_does_not_answer(void **state)
{
    struct host *c = host_make("h", "ondown=block");
    struct job *waiter;

    (void)state;
    server_stop(the_server);
    waiter = host_start(c, "exec flock x.lock echo has");
    wait_until(host_keeper(c) != 0);
    assert_int_equal(host_run(c, "DMUTEX_MAP= flock -w 0.5 -E 9 y.lock true"), 0);
    assert_false(job_has_spoken(waiter));
    server_cont(the_server);
    job_expect(waiter, "has");
    assert_int_equal(job_end(waiter), 0);
    host_end(c);
}

/* With OnLost=kill, all processes with the locked file open are killed before another host has the lock. */
static void test_the_holders_are_killed_when_the_lock_is_lost(void **state)
{
    struct host *c = host_make("i", "lease=" SHORT_LEASE " onlost=kill"), *d = host_make("j", "");
    struct job *holder = host_start(c, "exec 9>x.lock; flock 9; (echo has; exec cat >/dev/null) & exec cat");
    dmutex_t mutex = DMUTEX_INITIALIZER("f/x.lock");

    (void)state;
    job_expect(holder, "has");
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    assert_string_equal(job_rest(holder), ""); /* the socket has no other end: both processes are dead */
    assert_int_equal(job_end(holder), 128 + SIGKILL);
    assert_int_equal(host_run(d, "flock x.lock true"), 0);
    assert_int_equal(host_run(c, "grep -q 'was lost' log"), 0);
    host_end(c);
    host_end(d);
}

/* The same if the first thread of the process has ended. */
static void test_the_holders_are_killed_when_their_first_threads_have_ended(void **state)
{
    struct host *c = host_make("q", "lease=" SHORT_LEASE " onlost=kill");
    struct job *holder = host_start(c, "exec $LOCKER x.lock flock thread say has pause");
    dmutex_t mutex = DMUTEX_INITIALIZER("f/x.lock");

    (void)state;
    job_expect(holder, "flock 0");
    job_expect(holder, "has");
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    assert_int_equal(job_end(holder), 128 + SIGKILL);
    host_end(c);
}

/* The same where the kernel's best way to signal a process is forbidden, as by filters that do not know the call. */
static void test_the_holders_are_killed_when_a_filter_forbids_the_best_way(void **state)
{
    struct host *c = host_make("l", "lease=" SHORT_LEASE " onlost=kill");
    struct job *holder = host_start(c, "exec $LOCKER x.lock filter flock pause");
    dmutex_t mutex = DMUTEX_INITIALIZER("f/x.lock");

    (void)state;
    job_expect(holder, "flock 0");
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    assert_int_equal(job_end(holder), 128 + SIGKILL);
    host_end(c);
}

/* The first process of a container cannot be killed from inside: the log says so, and does not count it. */
static void test_the_log_says_that_process_1_of_a_container_is_spared(void **state)
{
    struct host *c = host_make("m", "lease=" SHORT_LEASE " onlost=kill");
    dmutex_t mutex = DMUTEX_INITIALIZER("f/x.lock");
    struct job *holder;

    (void)state;
    if (!host_can_unshare(c, "-p -f --mount-proc")) {
        host_end(c);
        return;
    }
    holder =
        host_start(c, "exec unshare -r -p -f --mount-proc sh -c 'exec 9>x.lock; flock 9; echo has; read go; true'");
    job_expect(holder, "has");
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    wait_until(host_run(c, "grep -q 'process 1 goes on without the lock of .*x.lock' log") == 0);
    assert_int_equal(host_run(c, "grep -q '0 processes were sent signal 9' log"), 0);
    job_finish(holder);
    host_end(c);
}

/* ---- the log ----------------------------------------------------------------------------- */

/* Bytes of a file's name that a terminal would obey are not in the log. */
static void test_the_log_shows_no_controls_of_a_name(void **state)
{
    (void)state;
    assert_int_equal(host_run(a, "flock \"$(printf 'red\\033[31m.lock')\" true"), 0);
    assert_int_equal(host_run(a, "grep -q 'red?.31m.lock (f/red?.31m.lock) is locked for process' log && "
                                 "! grep -q \"$(printf '\\033')\" log"),
                     0);
}

/* Security: root's keeper makes no log where another user's link leads. */
static void test_the_log_is_not_made_through_a_strangers_link(void **state)
{
    (void)state;
    if (geteuid() != 0)
        return; /* only root can make a stranger's link */
    await_no_keeper(a);
    assert_int_equal(host_run(a, "mkdir rooted; ln -s rooted way; chown -h 61234 way; "
                                 "DMUTEX_LOG=info:$PWD/way/log flock x.lock true && ! ls rooted | grep ."),
                     0);
}

/* ---- another pid namespace --------------------------------------------------------------- */

/*
 * A subshell in another pid namespace keeps the lock of the shell's idiom, although the kernel does not list a lock
 * there after the end of flock()'s caller: it is held on after a lease. The keeper is killed with the namespace, so the
 * lock ends with the lease.
 */
static void test_a_subshell_in_another_pid_namespace_keeps_its_lock(void **state)
{
    struct host *c = host_make("k", "lease=" SURE_LEASE);
    struct job *holder;

    (void)state;
    if (!host_can_unshare(c, "-p -f --mount-proc")) {
        host_end(c);
        return;
    }
    holder = host_start(c, "unshare -r -p -f --mount-proc sh -c '(flock 9; echo has; read go; true) 9>x.lock'");
    job_expect(holder, "has");
    for (int i = 0; i < 8; i++) {
        let_pass(SURE_LEASE_MS / 6);
        assert_int_equal(host_run(b, "flock -n -E 9 x.lock true"), 9);
    }
    promise_within(SURE_LEASE_MS + SLACK);
    job_finish(holder);
    assert_int_equal(host_run(b, "flock x.lock true"), 0);
    assert_kept();
    host_end(c);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        host_test(test_the_program_that_starts_it_has_no_child),
        host_test(test_it_keeps_nothing_of_the_program),
        host_test(test_it_has_no_limits_of_the_program),
        host_test(test_it_has_no_capabilities_of_the_program),
        host_test(test_many_programs_at_once_start_one_keeper),
        host_test(test_another_server_and_another_network_have_another_keeper),
        host_test(test_a_lock_fails_with_a_reason_when_it_cannot_be_started),
        host_test(test_no_reason_is_written_to_a_file_of_data_in_the_place_of_standard_error),
        host_test(test_a_lock_fails_when_the_folder_is_open_to_others),
        host_test(test_it_ends_soon_after_its_last_lock),
        host_test(test_it_ends_when_its_folder_was_deleted),
        host_test(test_it_lives_as_long_as_a_lock),
        host_test(test_no_caller_is_lost_when_it_is_about_to_end),
        host_test(test_a_lock_ends_when_its_file_was_renamed_while_it_was_waited_for),
        host_test(test_it_ignores_signals_that_ask_it_to_end),
        host_test(test_its_locks_end_with_their_leases_when_it_is_killed),
        host_test(test_another_is_started_when_it_was_killed),
        host_test(test_it_lives_on_when_ended_keepers_are_not_reaped),
        host_test(test_a_lock_fails_when_the_server_does_not_answer),
        host_test(test_no_keeper_is_started_when_children_are_of_another_pid_namespace),
        host_test(test_no_keeper_is_started_that_can_open_nothing),
        host_test(test_the_sentence_says_so_when_a_program_may_make_no_unix_socket),
        host_test(test_the_sentence_says_what_to_do_when_the_keepers_folder_is_read_only),
        host_test(test_a_lock_is_local_when_the_rule_says_so_and_the_server_does_not_answer),
        host_test(test_a_lock_waits_when_the_rule_says_so_and_the_server_does_not_answer),
        host_test(test_the_holders_are_killed_when_the_lock_is_lost),
        host_test(test_the_holders_are_killed_when_their_first_threads_have_ended),
        host_test(test_the_holders_are_killed_when_a_filter_forbids_the_best_way),
        host_test(test_the_log_says_that_process_1_of_a_container_is_spared),
        host_test(test_the_log_shows_no_controls_of_a_name),
        host_test(test_the_log_is_not_made_through_a_strangers_link),
        host_test(test_a_subshell_in_another_pid_namespace_keeps_its_lock),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, host_pair_setup, host_pair_teardown);
}

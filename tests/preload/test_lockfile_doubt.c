/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lock files in containers, where the keeper cannot inspect every process: doubt is never taken for the end of a lock,
 * but a lock that has ended is still given back.
 *
 * A container is a pid namespace with its own /proc. Its first process is root's shell, which stays; the shell's child
 * takes x.lock, and becomes another user, as setpriv, gosu and su do.
 */
#include <stdlib.h>
#include <string.h>

#include "../lib/stranger.h"
#include "host.h"

#define NO_PTRACE "setpriv --bounding-set -sys_ptrace "
#define JOB "sh -c \"echo has; read go\""
#define AS_STRANGER "setpriv --reuid 61234 --regid 61234 --clear-groups " JOB
#define LOCKED_BY(way, job) "(exec 9>x.lock; " way "; exec " job ")"
#define LOOKS 11 /* as many as the keeper needs to give a lock up */

static struct host *c;

/*
 * The job that is the container: the first process awaits its child, says "gone", and awaits a line more. A child in
 * the background has the shell's input by another number only.
 */
static struct job *start_container(const char *way_in, const char *child)
{
    char script[1024];

    snprintf(script, sizeof script, "exec %s sh -c 'exec 8<&0; %s <&8 8<&- & wait; echo gone; read go; true'", way_in,
             child);
    return host_start(c, script);
}

/* The container's first process is the only child of `unshare -f`. */
static int first_process(const struct job *container)
{
    char path[64];
    FILE *file;
    int pid = 0;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)job_pid(container), (int)job_pid(container));
    file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    return pid;
}

/*
 * The end of another lock of the same keeper makes it check all its locks. -r is for a chroot, where the root of the
 * mount namespace is another folder.
 */
static void make_keeper_look(const struct job *container)
{
    char script[128];

    snprintf(script, sizeof script, "nsenter -t %d -p -m -r flock \"$PWD/y.lock\" true", first_process(container));
    for (int i = 0; i < LOOKS; i++) {
        assert_int_equal(host_run(c, script), 0);
        wait_until(!is_held("y.lock"));
    }
}

/* Asserts that x.lock lasts as long as the child does, and no longer. */
static void assert_locked_until_the_end(struct job *container)
{
    job_expect(container, "has");
    make_keeper_look(container);
    assert_true(is_held("x.lock"));
    assert_int_equal(host_run(b, "flock -n -E 9 x.lock true"), 9);
    job_go(container);
    job_expect(container, "gone");
    wait_until(!is_held("x.lock"));
    job_finish(container);
}

/* A lock lasts when its process has become another user, whom root may not inspect without CAP_SYS_PTRACE. */
static void test_a_lock_goes_on_when_its_process_cannot_be_looked_into(void **state)
{
    (void)state;
    assert_locked_until_the_end(
        start_container("unshare -p -f --mount-proc " NO_PTRACE, LOCKED_BY("flock 9", AS_STRANGER)));
}

/* The same for a lock of an open file. */
static void test_a_lock_by_fcntl_goes_on_when_its_process_cannot_be_looked_into(void **state)
{
    struct job *container =
        start_container("unshare -p -f --mount-proc " NO_PTRACE, "$LOCKER x.lock ofd-setlkw drop say has wait");

    (void)state;
    job_expect(container, "ofd-setlkw 0");
    job_expect(container, "drop 0");
    assert_locked_until_the_end(container);
}

/* With CAP_SYS_PTRACE root looks into all processes. */
static void test_a_lock_goes_on_when_its_process_can_be_looked_into(void **state)
{
    (void)state;
    assert_locked_until_the_end(start_container("unshare -p -f --mount-proc", LOCKED_BY("flock 9", AS_STRANGER)));
}

/* The same if the process's first thread has ended: /proc only shows its descriptors at the other threads. */
static void test_a_lock_goes_on_when_the_first_thread_has_ended(void **state)
{
    (void)state;
    assert_locked_until_the_end(
        start_container("unshare -p -f --mount-proc", LOCKED_BY("flock 9", "$LOCKER y.lock thread say has wait")));
}

/* With hidepid=invisible /proc does not even show the process. */
static void test_a_lock_goes_on_when_its_process_is_hidden(void **state)
{
    (void)state;
    assert_locked_until_the_end(start_container(
        "unshare -p -f --mount-proc sh -c \"mount -t proc -o hidepid=2 proc /proc; exec \\\"\\$@\\\"\" - " NO_PTRACE,
        LOCKED_BY("flock 9", AS_STRANGER)));
}

/* The job has changed its user twice. */
static void test_a_lock_goes_on_when_the_user_changes_twice(void **state)
{
    (void)state;
    assert_locked_until_the_end(start_container(
        "unshare -p -f --mount-proc " NO_PTRACE,
        LOCKED_BY("flock 9", "setpriv --reuid 61235 --regid 61235 --clear-groups --inh-caps +setuid,+setgid "
                             "--ambient-caps +setuid,+setgid " AS_STRANGER)));
}

/* The job was started by su, which stays root's. */
static void test_a_lock_goes_on_when_the_job_runs_under_su(void **state)
{
    (void)state;
    assert_locked_until_the_end(start_container("unshare -p -f --mount-proc " NO_PTRACE,
                                                LOCKED_BY("flock 9", "su -s /bin/sh nobody -c \"echo has; read go\"")));
}

/* An empty file over /proc/locks, as runtimes of containers hide files of /proc, is no list without locks. */
static void test_a_lock_goes_on_when_the_list_of_locks_is_hidden(void **state)
{
    (void)state;
    assert_locked_until_the_end(start_container(
        "unshare -m -f sh -c \"mount --bind /dev/null /proc/locks; exec \\\"\\$@\\\"\" - ", LOCKED_BY("flock 9", JOB)));
}

/* The file is mapped, and no descriptor has it: in a /proc without the list of locks, only the mapping shows it. */
static void test_a_lock_goes_on_when_the_file_is_mapped_and_closed(void **state)
{
    struct job *container =
        start_container("unshare -p -f -m sh -c \"mount -t proc -o subset=pid proc /proc; exec \\\"\\$@\\\"\" - ",
                        "$LOCKER x.lock flock map say has wait");

    (void)state;
    job_expect(container, "flock 0");
    assert_locked_until_the_end(container);
}

/* Without /proc nobody knows which file it is, and a lock of this host only would be taken for one of all hosts. */
static void test_a_lock_is_refused_without_proc(void **state)
{
    static const char *const lines[] = { "flock ENOLCK", "setlk ENOLCK", "ofd-setlkw ENOLCK",
                                         "tlock ENOLCK", "get ENOLCK",   "flock-un 0",
                                         "unlck 0" };
    struct job *job = host_start(c, "exec unshare -m sh -c 'mount -t tmpfs none /proc; exec $LOCKER x.lock flock setlk "
                                    "ofd-setlkw tlock get flock-un unlck'");

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        job_expect(job, lines[i]);
    assert_int_equal(job_end(job), 0);
    assert_true(host_has_said(c, "mount /proc where the program runs"));
}

/* A container whose first process says "ready", and ends after a line. */
static struct job *start_empty_container(void)
{
    struct job *container = host_start(c, "exec unshare -p -f --mount-proc sh -c 'echo ready; read go; true'");

    job_expect(container, "ready");
    return container;
}

/* x.lock lasts until the holder has got a line. */
static void assert_locked_by(struct job *holder, const struct job *container)
{
    job_expect(holder, "has");
    make_keeper_look(container);
    assert_true(is_held("x.lock"));
    assert_int_equal(host_run(b, "flock -n -E 9 x.lock true"), 9);
    job_go(holder);
    job_expect(holder, "closed");
    wait_until(!is_held("x.lock"));
}

/* A process in a container takes the lock for a process outside, which the container's keeper cannot see. */
static void test_a_lock_goes_on_when_a_process_outside_has_it(void **state)
{
    struct job *container = start_empty_container(), *holder;
    char script[160];

    (void)state;
    snprintf(script, sizeof script,
             "exec 9>x.lock; nsenter -t %d -p -m -r flock 9; echo has; read go; exec 9<&-; echo closed; read go; true",
             first_process(container));
    holder = host_start(c, script);
    assert_locked_by(holder, container);
    job_finish(holder);
    job_finish(container);
}

/* The reverse: a process outside takes the lock, and a process in the container has it from then on. */
static void test_a_lock_goes_on_when_a_process_inside_has_it(void **state)
{
    struct job *container = start_empty_container(), *holder;
    char script[240];

    (void)state;
    snprintf(script, sizeof script,
             "mkfifo end; exec 8<&0 9>x.lock; flock 9; nsenter -F -t %d -p sh -c '(echo has; read go; exec 9<&-; echo "
             "closed; read go; echo >end) <&8 &'; exec 9<&-; read end <end; true",
             first_process(container));
    holder = host_start(c, script);
    assert_locked_by(holder, container);
    job_finish(holder);
    job_finish(container);
}

static void write_map(int pid, const char *name)
{
    char path[64];
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fprintf(file, "0 0 65536\n") > 0);
    assert_return_code(fclose(file), errno);
}

/* A lock lasts in a user namespace, whose root has no rights outside. */
static void test_a_lock_goes_on_in_a_user_namespace(void **state)
{
    struct job *namespace;
    char way_in[128];

    (void)state;
    if (!host_can_unshare(c, "-p -f --mount-proc"))
        return;
    namespace = host_start(c, "exec unshare -U sh -c 'echo ready; read go; true'");
    job_expect(namespace, "ready");
    write_map(job_pid(namespace), "uid_map");
    write_map(job_pid(namespace), "gid_map");
    snprintf(way_in, sizeof way_in, "nsenter -U -t %d unshare -p -f --mount-proc " NO_PTRACE, (int)job_pid(namespace));
    assert_locked_until_the_end(start_container(way_in, LOCKED_BY("flock 9", AS_STRANGER)));
    job_finish(namespace);
}

/*
 * If the keeper must not even open the file, because it is a FIFO, the lock lasts, and the log says why. It ends when
 * the keeper can inspect all processes again.
 */
static void test_a_lock_goes_on_when_neither_processes_nor_file_can_be_looked_at(void **state)
{
    (void)state;
    assert_int_equal(host_run(c, "rm -f x.lock; mkfifo x.lock"), 0);
    assert_locked_until_the_end(
        start_container("unshare -p -f --mount-proc " NO_PTRACE, "(exec 9<>x.lock; flock 9; exec " AS_STRANGER ")"));
    assert_int_equal(host_run(c, "rm x.lock; grep -q 'x.lock may be locked or not' log"), 0);
}

static int begin(void **state)
{
    host_pair_setup(state);
    c = host_make("c", "lease=60s");
    return 0;
}

static int end(void **state)
{
    host_end(c);
    return host_pair_teardown(state);
}

/*
 * Two lock files in a folder whose inodes come from two file systems: the kernel's list calls both the same. The shell
 * has x.lock locked, and then other.lock as well, until it has read a line for each.
 */
static struct job *start_twins(void)
{
    return host_start(c, "exec unshare -m sh -c 'mkdir -p one two both && mount -t tmpfs none one && "
                         "mount -t tmpfs none two && : >one/x.lock && : >two/other.lock && "
                         "mount -t overlay -o lowerdir=one:two,xino=off none both || { echo forbidden; exit; }; "
                         "cd both; export DMUTEX_MAP=\"flock:$PWD/*.lock => f/%b lease=60s\"; "
                         "exec 8<other.lock 9<x.lock; flock 9; echo $(stat -c %i *.lock); read go; "
                         "flock 8; echo both; read go; exec 9<&-; echo one; read go; true'");
}

/* The lock of one file neither ends the lock of the other nor prolongs it. */
static void test_a_lock_goes_on_when_another_file_has_the_same_identity(void **state)
{
    struct job *job = start_twins();
    const char *numbers = job_line(job);
    int one, other;

    (void)state;
    if (strcmp(numbers, "forbidden") == 0) {
        print_message("# overlayfs is forbidden here: not looked at\n");
        job_end(job);
        return;
    }
    assert_int_equal(sscanf(numbers, "%d %d", &one, &other), 2);
    assert_int_equal(one, other);
    job_go(job);
    job_expect(job, "both");
    assert_true(is_held("x.lock"));
    assert_true(is_held("other.lock"));
    job_go(job);
    job_expect(job, "one");
    wait_until(!is_held("x.lock"));
    assert_true(is_held("other.lock"));
    job_finish(job);
    wait_until(!is_held("other.lock"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        host_test(test_a_lock_goes_on_when_its_process_cannot_be_looked_into),
        host_test(test_a_lock_by_fcntl_goes_on_when_its_process_cannot_be_looked_into),
        host_test(test_a_lock_goes_on_when_its_process_can_be_looked_into),
        host_test(test_a_lock_goes_on_when_the_first_thread_has_ended),
        host_test(test_a_lock_goes_on_when_its_process_is_hidden),
        host_test(test_a_lock_goes_on_when_the_user_changes_twice),
        host_test(test_a_lock_goes_on_when_the_job_runs_under_su),
        host_test(test_a_lock_goes_on_when_the_list_of_locks_is_hidden),
        host_test(test_a_lock_goes_on_when_the_file_is_mapped_and_closed),
        host_test(test_a_lock_is_refused_without_proc),
        host_test(test_a_lock_goes_on_when_a_process_outside_has_it),
        host_test(test_a_lock_goes_on_when_a_process_inside_has_it),
        host_test(test_a_lock_goes_on_in_a_user_namespace),
        host_test(test_a_lock_goes_on_when_neither_processes_nor_file_can_be_looked_at),
        host_test(test_a_lock_goes_on_when_another_file_has_the_same_identity),
    };

    test_begin(argc, argv);
    stranger_require();
    return cmocka_run_group_tests(tests, begin, end);
}

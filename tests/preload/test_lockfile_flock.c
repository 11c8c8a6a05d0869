/* SPDX-License-Identifier: BSD-2-Clause */
/* flock(1) and flock() on two hosts: the holder, and the end of the hold. */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host.h"

#define AT_ONCE 5000 /* far below the lease */
#define CHURNERS 2
#define CHURN_LOCKS 1000

static void promise_at_once(void)
{
    side_set_bound(the_server->side, "bound", AT_ONCE);
}

/* ---- flock(1) ---------------------------------------------------------------------------- */

/* `flock -n FILE COMMAND` runs nothing while another host has the lock. */
static void test_flock_n_fails_while_another_host_has_the_lock(void **state)
{
    struct job *holder = host_start_holder(a);

    (void)state;
    assert_int_equal(host_run(b, "flock -n -E 9 x.lock true"), 9);
    job_finish(holder);
    wait_until(!is_held("x.lock"));
    assert_int_equal(host_run(b, "flock -n x.lock true"), 0);
}

/*
 * Keeps making and ending locks, so many that /proc/locks is read in pieces. The kernel lists a processor's newest
 * locks first, so the new locks precede all older ones.
 */
static void churn(int processor)
{
    int file = memfd_create("churn", MFD_CLOEXEC);
    cpu_set_t processors;

    CPU_ZERO(&processors);
    CPU_SET(processor, &processors);
    sched_setaffinity(0, sizeof processors, &processors);
    for (unsigned turn = 0;; turn++) {
        struct flock lock = { .l_type = turn / CHURN_LOCKS % 2 ? F_UNLCK : F_WRLCK,
                              .l_whence = SEEK_SET,
                              .l_start = turn % CHURN_LOCKS * 2,
                              .l_len = 1 };

        if (fcntl(file, F_SETLK, &lock) != 0)
            _exit(1);
    }
}

/*
 * A lock stays although the keeper's reading of /proc/locks may then miss the lock; the keeper reads again with each
 * closed file.
 */
static void test_a_lock_stays_while_thousands_of_others_come_and_go(void **state)
{
    struct job *holder = host_start_holder(a);
    pid_t churners[CHURNERS];

    (void)state;
    for (int i = 0; i < CHURNERS; i++) {
        churners[i] = keeper_fork();
        if (churners[i] == 0)
            churn(i);
    }
    for (int i = 0; i < 40; i++) {
        assert_int_equal(host_run(a, "for i in 1 2 3 4 5; do : < x.lock; sleep 0.01; done"), 0);
        assert_int_equal(host_run(b, "flock -n -E 9 x.lock true"), 9);
    }
    for (int i = 0; i < CHURNERS; i++) {
        kill(churners[i], SIGKILL);
        keeper_reap(churners[i]);
    }
    job_finish(holder);
}

/* `flock -n` also fails between two programs of one host, because of the kernel's lock alone. */
static void test_flock_n_fails_while_another_program_of_the_host_has_the_lock(void **state)
{
    struct job *holder = host_start_holder(a);

    (void)state;
    assert_int_equal(host_run(a, "flock -n -E 9 x.lock true"), 9);
    job_finish(holder);
}

/* `flock -n` succeeds when programs of one host lock one directly after the other. */
static void test_flock_n_succeeds_at_once_after_another_program_of_the_host(void **state)
{
    (void)state;
    for (int i = 0; i < repetitions(20); i++)
        assert_int_equal(host_run(a, "flock -n x.lock true && flock -n x.lock true && flock -n x.lock true"), 0);
}

/* The job has opened a socket after x.lock: its first try has failed, and it asks the keeper. */
static bool asks_keeper(const struct job *job)
{
    char path[32], target[128];
    struct dirent *entry;
    bool is_open = false, asks = false;
    DIR *folder;

    snprintf(path, sizeof path, "/proc/%d/fd", (int)job_pid(job));
    folder = opendir(path);
    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);

        target[length > 0 ? length : 0] = '\0';
        is_open |= strstr(target, "/x.lock") != NULL;
        asks |= is_open && strstr(target, "socket:") == target;
    }
    closedir(folder);
    return asks;
}

/* Locks x.lock in both ways, as a look of the keeper may: for a moment, and in the way of who does not wait. */
static int open_as_look(struct host *host)
{
    struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
    char path[128];
    int file;

    snprintf(path, sizeof path, "%s/x.lock", host_folder(host));
    file = open(path, O_RDONLY | O_CLOEXEC | O_CREAT, 0600);
    assert_return_code(file, errno);
    assert_return_code(flock(file, LOCK_SH), errno);
    assert_return_code(fcntl(file, F_OFD_SETLK, &lock), errno);
    return file;
}

/* The keeper stands still in the middle of a look. A program that finds the lock taken tries again after the look. */
static void assert_tried_again_after_a_look(const char *script, const char *said)
{
    struct job *other = host_start(a, "flock other.lock sh -c 'echo has; read go'"), *job;
    pid_t keeper;
    int file;

    job_expect(other, "has");
    keeper = host_keeper(a);
    file = open_as_look(a);
    assert_return_code(kill(keeper, SIGSTOP), errno);
    job = host_start(a, script);
    wait_until(job_has_spoken(job) || asks_keeper(job));
    close(file);
    assert_return_code(kill(keeper, SIGCONT), errno);
    job_expect(job, said);
    assert_int_equal(job_end(job), 0);
    job_finish(other);
}

static void test_flock_n_succeeds_when_a_look_of_the_keeper_was_in_the_way(void **state)
{
    (void)state;
    assert_tried_again_after_a_look("exec $LOCKER x.lock flock-try", "flock-try 0");
    assert_tried_again_after_a_look("exec $LOCKER x.lock ofd-setlk", "ofd-setlk 0");
}

/* It fails, at the second try, while a program of the host has the lock; and leaves errno as the kernel has set it. */
static void test_flock_fails_with_ewouldblock_when_no_look_was_in_the_way(void **state)
{
    struct job *holder = host_start_holder(a), *job;

    (void)state;
    job = host_start(a, "exec $LOCKER x.lock flock-try");
    job_expect(job, "flock-try EAGAIN");
    assert_int_equal(job_end(job), 0);
    job_finish(holder);
}

/* `flock FILE COMMAND` waits for the other host, and has the lock soon after the holder's end. */
static void test_flock_waits_for_the_other_host(void **state)
{
    struct job *holder = host_start_holder(a), *waiter = host_start(b, "flock x.lock echo has");

    (void)state;
    wait_until(waiters_for("x.lock") == 1);
    assert_false(job_has_spoken(waiter));
    promise_at_once();
    job_finish(holder);
    job_expect(waiter, "has");
    assert_kept();
    assert_int_equal(job_end(waiter), 0);
}

/* The shell's idiom: the caller of flock() has ended, and the subshell has the lock. */
static void test_a_subshell_has_the_lock_that_flock_took_for_it(void **state)
{
    struct job *holder;

    (void)state;
    wait_until(host_keeper(a) == 0); /* so that a program with the file open starts the keeper */
    holder = host_start(a, "(flock -n 9 || exit 1; echo has; read go; true) 9>x.lock");
    job_expect(holder, "has");
    for (int i = 0; i < 10; i++) /* longer than the keeper's time between two looks */
        assert_int_equal(host_run(b, "(flock -w 0.1 -E 9 9) 9>x.lock"), 9);
    promise_at_once();
    job_go(holder);
    assert_int_equal(job_end(holder), 0);
    assert_int_equal(host_run(b, "(flock 9) 9>x.lock"), 0);
    assert_kept();
}

/* `flock -w` gives up, because the handler of its SIGALRM ends flock() with EINTR, and leaves no waiter. */
static void test_flock_w_gives_up_and_leaves_nothing_behind(void **state)
{
    struct job *holder = host_start_holder(a);

    (void)state;
    assert_int_equal(host_run(b, "flock -w 0.3 -E 9 x.lock true"), 9);
    assert_int_equal(host_run(b, "flock -w 0.3 -E 9 x.lock true"), 9);
    assert_within(waiters_for("x.lock"), 0, 1); /* the second waiter took the place of the first */
    job_finish(holder);
    wait_until(!is_held("x.lock") && waiters_for("x.lock") == 0);
    assert_int_equal(host_run(b, "flock -w 20 x.lock true"), 0);
}

/* `flock -u` unlocks, while the descriptor stays open. */
static void test_flock_u_gives_the_lock_back(void **state)
{
    struct job *holder = host_start(a, "exec 9>x.lock; flock 9; flock -u 9; echo gave; read go");

    (void)state;
    job_expect(holder, "gave");
    promise_at_once();
    assert_int_equal(host_run(b, "flock x.lock true"), 0);
    assert_kept();
    job_finish(holder);
}

/* `x=$(flock ...)` ends with the command: the keeper does not hold the shell's pipe. */
static void test_the_pipe_of_a_command_ends_with_the_command(void **state)
{
    struct job *job;

    (void)state;
    wait_until(host_keeper(a) == 0); /* so that this command starts the keeper */
    job = host_start(a, "x=$(flock x.lock echo has); echo $x; cat");
    job_expect(job, "has");
    assert_int_not_equal(host_keeper(a), 0);
    job_signal(job, SIGKILL);
    job_end(job);
}

/* A shared lock is refused with a reason, and nothing is locked. */
static void test_a_shared_lock_is_refused(void **state)
{
    (void)state;
    assert_int_not_equal(host_run(a, "flock -s new.lock true"), 0);
    assert_true(host_has_said(a, "a shared lock is not distributed"));
    assert_int_equal(host_run(a, "exec 9>new.lock; flock -s 9; DMUTEX_MAP= flock -n new.lock true"), 0);
    assert_false(is_held("new.lock"));
}

/* With shared=exclusive, a shared lock keeps out shared locks, on the same host and elsewhere. */
static void test_a_shared_lock_is_exclusive_when_the_rule_says_so(void **state)
{
    struct host *c = host_make("c", "shared=exclusive"), *d = host_make("d", "shared=exclusive");
    struct job *holder = host_start(c, "flock -s x.lock sh -c 'echo has; read go'");

    (void)state;
    job_expect(holder, "has");
    assert_int_equal(host_run(c, "flock -n -s -E 9 x.lock true"), 9);
    assert_int_equal(host_run(d, "flock -n -s -E 9 x.lock true"), 9);
    job_finish(holder);
    host_end(c);
    host_end(d);
}

/* ---- flock() ----------------------------------------------------------------------------- */

/* A second lock of the same open file changes nothing; the first unlock ends the hold. */
static void test_flock_of_what_is_locked_already_changes_nothing(void **state)
{
    struct job *holder = host_start(a, "$LOCKER x.lock flock flock dup flock-try wait flock-un wait");

    (void)state;
    job_expect(holder, "flock 0");
    job_expect(holder, "flock 0");
    job_expect(holder, "flock-try 0");
    assert_int_equal(host_run(b, "flock -n -E 9 x.lock true"), 9);
    job_go(holder);
    job_expect(holder, "flock-un 0");
    assert_int_equal(host_run(b, "flock x.lock true"), 0);
    job_finish(holder);
}

/* A child of fork() has its parent's lock, and keeps the lock after the parent's end. */
static void test_a_forked_child_keeps_the_lock_of_its_parent(void **state)
{
    struct job *holder = host_start(a, "$LOCKER x.lock flock fork wait say over; read go");

    (void)state;
    job_expect(holder, "flock 0");
    wait_until(is_held("x.lock"));
    assert_int_equal(host_run(b, "flock -w 0.5 -E 9 x.lock true"), 9);
    job_go(holder); /* the child and the shell read one line each */
    job_go(holder);
    assert_int_equal(job_end(holder), 0);
    assert_int_equal(host_run(b, "flock x.lock true"), 0);
}

/* A signal with a handler without SA_RESTART ends flock() by EINTR, and the kernel's lock is free again. */
static void test_flock_fails_with_eintr_when_a_handler_has_run(void **state)
{
    struct job *holder = host_start_holder(a), *waiter = host_start(b, "exec $LOCKER x.lock handle flock wait");

    (void)state;
    wait_until(waiters_for("x.lock") == 1);
    wait_until((job_signal(waiter, SIGALRM), job_has_spoken(waiter)));
    job_expect(waiter, "flock EINTR");
    assert_int_equal(host_run(b, "DMUTEX_MAP= flock -n x.lock true"), 0); /* the kernel's lock is free again */
    job_finish(holder);
    job_finish(waiter);
}

/* A signal with a handler with SA_RESTART does not end the wait. */
static void test_flock_waits_on_when_a_handler_with_restart_has_run(void **state)
{
    struct job *holder = host_start_holder(a), *waiter = host_start(b, "exec $LOCKER x.lock handle-restart flock");

    (void)state;
    wait_until(waiters_for("x.lock") == 1);
    for (int i = 0; i < 50; i++) {
        job_signal(waiter, SIGALRM);
        wait_nap();
    }
    assert_false(job_has_spoken(waiter));
    job_go(holder);
    job_expect(waiter, "flock 0");
    assert_int_equal(job_end(holder), 0);
    assert_int_equal(job_end(waiter), 0);
}

/* flock() locks and unlocks in a signal's handler, where few functions may be called. */
static void test_flock_locks_in_a_signal_handler(void **state)
{
    struct job *holder = host_start(a, "$LOCKER x.lock handler flock wait handler flock-un wait");

    (void)state;
    job_expect(holder, "flock 0");
    assert_int_equal(host_run(b, "flock -n -E 9 x.lock true"), 9);
    job_go(holder);
    job_expect(holder, "flock-un 0");
    assert_int_equal(host_run(b, "flock x.lock true"), 0);
    job_finish(holder);
}

/* flock() is no cancellation point: a cancelled thread waits on, has the lock, and ends then. */
static void test_flock_is_not_cancelled_while_it_waits(void **state)
{
    struct job *holder = host_start_holder(a), *waiter = host_start(b, "$LOCKER x.lock cancel flock wait");

    (void)state;
    wait_until(waiters_for("x.lock") == 1);
    job_go(waiter);
    job_go(holder);
    job_expect(waiter, "flock 0");
    assert_int_equal(job_end(holder), 0);
    wait_until(job_has_spoken(waiter));
    job_go(waiter);
    job_end(waiter);
}

/* DMUTEX_REPORT writes a line for the name, by each process that has locked the file. */
static void test_a_report_shows_a_lock_file(void **state)
{
    struct job *holder, *waiter;

    (void)state;
    wait_until(!is_held("x.lock")); /* a keeper unlocks only after the end of a program */
    assert_int_equal(host_run(a, "DMUTEX_REPORT=report flock x.lock true && grep -q '^f/x.lock locks=1 waits=0 "
                                 "wait_us=0 hold_us=[0-9]* losses=0 handoffs=0$' report"),
                     0);
    holder = host_start_holder(a);
    waiter = host_start(b, "DMUTEX_REPORT=report flock x.lock true && grep -q '^f/x.lock locks=1 waits=1 ' report");
    wait_until(waiters_for("x.lock") == 1);
    job_finish(holder);
    assert_int_equal(job_end(waiter), 0);
    wait_until(!is_held("x.lock"));
    assert_int_equal(host_run(a, "DMUTEX_REPORT=report.%p $LOCKER x.lock flock flock-un flock fork-wait flock-un "
                                 "&& cat report.* | tr -d '\n' | grep -q '^f/x.lock locks=2 waits=0 .*=0$'"),
                     0);
}

/* flock() of a file that no rule names is the kernel's lock only. */
static void test_flock_of_another_file_is_local(void **state)
{
    struct job *holder = host_start(a, "flock other sh -c 'echo has; read go'");

    (void)state;
    job_expect(holder, "has");
    assert_int_equal(host_run(b, "flock -n other true"), 0);
    assert_int_equal(host_run(a, "flock -n -E 9 other true"), 9);
    job_finish(holder);
}

/* flock() of a deleted file is the kernel's lock only. */
static void test_flock_of_a_deleted_file_is_local(void **state)
{
    struct job *holder = host_start(a, "exec 9>gone.lock; rm gone.lock; flock 9; echo has; read go");

    (void)state;
    job_expect(holder, "has");
    assert_false(is_held("gone.lock"));
    job_finish(holder);
}

/* ---- the end of a holder ----------------------------------------------------------------- */

/* The lock of a holder killed by SIGKILL is free before the lease ends, because the kernel reports the end. */
static void test_the_lock_of_a_killed_holder_is_free_before_its_lease_ends(void **state)
{
    struct job *holder = host_start(a, "exec $LOCKER x.lock flock wait"), *waiter;

    (void)state;
    job_expect(holder, "flock 0");
    waiter = host_start(b, "flock x.lock echo has");
    wait_until(waiters_for("x.lock") == 1);
    promise_at_once();
    job_signal(holder, SIGKILL);
    job_expect(waiter, "has");
    assert_kept();
    assert_int_equal(job_end(holder), 128 + SIGKILL);
    assert_int_equal(job_end(waiter), 0);
}

/* A waiter that is killed while waiting never gets the lock. */
static void test_a_waiter_that_is_killed_does_not_keep_the_lock(void **state)
{
    struct job *holder = host_start_holder(a), *waiter = host_start(b, "exec flock -o x.lock sleep 1000");

    (void)state;
    wait_until(waiters_for("x.lock") == 1);
    job_signal(waiter, SIGKILL);
    assert_int_equal(job_end(waiter), 128 + SIGKILL);
    promise_at_once();
    job_finish(holder);
    assert_int_equal(host_run(a, "flock x.lock true"), 0);
    assert_kept();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        host_test(test_flock_n_fails_while_another_host_has_the_lock),
        host_test(test_a_lock_stays_while_thousands_of_others_come_and_go),
        host_test(test_flock_n_fails_while_another_program_of_the_host_has_the_lock),
        host_test(test_flock_n_succeeds_at_once_after_another_program_of_the_host),
        host_test(test_flock_n_succeeds_when_a_look_of_the_keeper_was_in_the_way),
        host_test(test_flock_fails_with_ewouldblock_when_no_look_was_in_the_way),
        host_test(test_flock_waits_for_the_other_host),
        host_test(test_a_subshell_has_the_lock_that_flock_took_for_it),
        host_test(test_flock_w_gives_up_and_leaves_nothing_behind),
        host_test(test_flock_u_gives_the_lock_back),
        host_test(test_the_pipe_of_a_command_ends_with_the_command),
        host_test(test_a_shared_lock_is_refused),
        host_test(test_a_shared_lock_is_exclusive_when_the_rule_says_so),
        host_test(test_flock_of_what_is_locked_already_changes_nothing),
        host_test(test_a_forked_child_keeps_the_lock_of_its_parent),
        host_test(test_flock_fails_with_eintr_when_a_handler_has_run),
        host_test(test_flock_waits_on_when_a_handler_with_restart_has_run),
        host_test(test_flock_locks_in_a_signal_handler),
        host_test(test_flock_is_not_cancelled_while_it_waits),
        host_test(test_a_report_shows_a_lock_file),
        host_test(test_flock_of_another_file_is_local),
        host_test(test_flock_of_a_deleted_file_is_local),
        host_test(test_the_lock_of_a_killed_holder_is_free_before_its_lease_ends),
        host_test(test_a_waiter_that_is_killed_does_not_keep_the_lock),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, host_pair_setup, host_pair_teardown);
}

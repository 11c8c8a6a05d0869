/* SPDX-License-Identifier: BSD-2-Clause */
/* Many programs on two hosts add to a number in a file; and a lock among many others. */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../lib/range.h"
#include "host.h"

#define JOBS 8
#define TIMES 25
#define FILES 300
#define TEXT(number) #number
#define STRING(number) TEXT(number)

static struct host *hosts[2];
static char counter[80];

static int setup(void **state)
{
    static char string[96];

    test_group_setup(state);
    snprintf(counter, sizeof counter, "%s/counter", the_server->folder);
    snprintf(string, sizeof string, "COUNTER=%s", counter);
    for (int i = 0; i < 2; i++) {
        hosts[i] = host_make(i ? "b" : "a", "lease=10s");
        host_put(hosts[i], string);
    }
    return 0;
}

static int teardown(void **state)
{
    host_end(hosts[0]);
    host_end(hosts[1]);
    return test_group_teardown(state);
}

static void set_counter(int number)
{
    FILE *file = fopen(counter, "w");

    assert_non_null(file);
    fprintf(file, "%d\n", number);
    fclose(file);
}

static int get_counter(void)
{
    FILE *file = fopen(counter, "r");
    int number = -1;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &number), 1);
    fclose(file);
    return number;
}

/* Runs the same script in as many jobs on each host. */
static void run_everywhere(const char *script)
{
    struct job *jobs[JOBS];

    for (int i = 0; i < JOBS; i++)
        jobs[i] = host_start(hosts[i % 2], script);
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(job_end(jobs[i]), 0);
}

/* No increment is lost by programs that lock and unlock by flock() again and again. */
static void test_no_increment_is_lost_by_programs_that_lock_and_unlock(void **state)
{
    (void)state;
    for (int i = 0; i < repetitions(1); i++) {
        set_counter(0);
        run_everywhere("exec $LOCKER x.lock count 25");
        assert_int_equal(get_counter(), JOBS * TIMES);
    }
}

/* No increment is lost by flock(1), where every unlock is the end of a process. */
static void test_no_increment_is_lost_by_programs_that_end(void **state)
{
    (void)state;
    set_counter(0);
    run_everywhere("for i in 1 2 3 4 5 6 7 8 9 10; do "
                   "flock x.lock sh -c 'read n <$COUNTER; echo $((n + 1)) >$COUNTER' || exit 1; done");
    assert_int_equal(get_counter(), JOBS * 10);
}

/* No increment is lost by subshells, which hold a lock that another process, flock(1), has taken. */
static void test_no_increment_is_lost_by_subshells(void **state)
{
    (void)state;
    set_counter(0);
    run_everywhere("for i in 1 2 3 4 5 6 7 8 9 10; do "
                   "(flock 9 || exit 1; read n <$COUNTER; echo $((n + 1)) >$COUNTER) 9>x.lock || exit 1; done");
    assert_int_equal(get_counter(), JOBS * 10);
}

/* Locks 40 to 90 files, and ends all these locks at once, again and again, on one core. */
static void crowd(void)
{
    int files[90];
    cpu_set_t core;

    CPU_ZERO(&core);
    CPU_SET(0, &core);
    sched_setaffinity(0, sizeof core, &core);
    for (int count = 40;; count = count < 90 ? count + 1 : 40) {
        for (int i = 0; i < count; i++) {
            files[i] = memfd_create("crowd", MFD_CLOEXEC);
            flock(files[i], LOCK_EX);
        }
        for (int i = 0; i < count; i++)
            close(files[i]);
    }
}

static pid_t start_crowd(void)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        crowd();
    }
    return pid;
}

/*
 * Finding 131: the kernel returns the list of locks in pages, and the last page is missing if enough locks ended in the
 * meantime. Each close of the file makes the keeper check.
 */
static void test_a_lock_stays_when_many_others_end_at_once(void **state)
{
    struct job *holder = host_start(hosts[0], "(flock 9; echo has; read go; true) 9>x.lock");
    pid_t pid = start_crowd();

    (void)state;
    job_expect(holder, "has");
    side_set_control(the_server->side, "crowd", 3000);
    while (!side_is_control_over(the_server->side, "crowd") && is_held("x.lock"))
        host_run(hosts[0], "for i in 1 2 3 4 5 6 7 8 9 10; do : <x.lock; done");
    assert_true(is_held("x.lock"));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    job_finish(holder);
}

/* After a holder is killed at a random moment, the lock is free for programs of both hosts. */
static void test_no_lock_is_stuck_when_programs_are_killed(void **state)
{
    (void)state;
    for (int i = 0; i < repetitions(10); i++) {
        struct job *victim = host_start(hosts[i % 2], "exec $LOCKER x.lock count 1000000");
        struct job *other = host_start(hosts[(i + 1) % 2], "exec $LOCKER x.lock count 10");

        set_counter(0); /* both jobs may find the file empty for a moment, and exit by 3 */
        for (int nap = rand() % 30; nap > 0; nap--)
            wait_nap();
        job_signal(victim, SIGKILL);
        job_end(victim);
        job_end(other);
        assert_int_equal(host_run(hosts[0], "flock x.lock true"), 0);
        assert_int_equal(host_run(hosts[1], "flock x.lock true"), 0);
    }
}

/*
 * One process loses all its locks at once. Signals are merged while one is pending, but each name has a line of its
 * own, and only one. The keeper does not search all descriptors for each lock.
 */
static void test_each_name_has_its_line_when_hundreds_are_lost_at_once(void **state)
{
    struct host *host = host_make("c", "lease=9s onlost=signal:TERM");
    struct job *job = host_start(host, "exec $LOCKER x.lock term many " STRING(FILES) " say has wait say ends 2>&1");
    bool is_told[FILES] = { false };
    int number;
    char name[24];
    pid_t keeper;
    long reads;

    (void)state;
    job_expect(job, "has");
    keeper = host_keeper(host);
    reads = host_reads(host);
    assert_return_code(kill(keeper, SIGSTOP), errno);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "%d.lock", i);
        lose(name);
    }
    assert_return_code(kill(keeper, SIGCONT), errno);
    for (int i = 0; i < FILES; i++) {
        assert_int_equal(sscanf(job_line(job), "dmutex: the lease of f/%d.lock has ended while ", &number), 1);
        assert_within(number, 0, FILES - 1);
        assert_false(is_told[number]);
        is_told[number] = true;
    }
    reads = host_reads(host) - reads;
    assert_within(reads, 1, 3 * FILES * FILES); /* a search for each lock takes four times as many */
    job_go(job);
    job_expect(job, "ends");
    assert_int_equal(job_end(job), 0);
    host_end(host);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        host_test(test_no_increment_is_lost_by_programs_that_lock_and_unlock),
        host_test(test_no_increment_is_lost_by_programs_that_end),
        host_test(test_no_increment_is_lost_by_subshells),
        host_test(test_no_lock_is_stuck_when_programs_are_killed),
        host_test(test_a_lock_stays_when_many_others_end_at_once),
        host_test(test_each_name_has_its_line_when_hundreds_are_lost_at_once),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, setup, teardown);
}

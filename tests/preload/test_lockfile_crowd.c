/* SPDX-License-Identifier: BSD-2-Clause */
/* Many programs on two hosts add to a number in a file. */
#include <signal.h>
#include <stdlib.h>

#include "host.h"

#define JOBS 8
#define TIMES 25

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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        host_test(test_no_increment_is_lost_by_programs_that_lock_and_unlock),
        host_test(test_no_increment_is_lost_by_programs_that_end),
        host_test(test_no_increment_is_lost_by_subshells),
        host_test(test_no_lock_is_stuck_when_programs_are_killed),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock file that passes to a process that the lock's keeper does not serve: another user's, another container's, or
 * one without the module. The former process's lock has ended then, however little the keeper can see; otherwise the
 * next process would wait for the keeper, and the keeper for the next process.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../lib/stranger.h"
#include "host.h"

#define MANY 200    /* locks, whose lines do not fit into one read of the kernel's list */
#define PER_FILE 50 /* this many times more locks, which the keeper does not read to the end unless it must */

/* Bytes: a check that reads the list reads more, namely twice 256 KiB. A keeper that starts reads about 100 000. */
#define TWO_LISTS 500000

#define NO_PTRACE "setpriv --bounding-set -sys_ptrace "
#define HOLD "sh -c 'echo has; read go'"
#define NO_MODULE "exec env -u LD_PRELOAD "
#define AS_STRANGER "setpriv --reuid 61234 --regid 61234 --clear-groups "

static int crowd[MANY];

/* Makes the kernel's list of locks long. */
static void lock_many(void)
{
    for (int i = 0; i < MANY; i++) {
        crowd[i] = memfd_create("crowd", MFD_CLOEXEC);
        assert_return_code(crowd[i], errno);
        assert_return_code(flock(crowd[i], LOCK_EX), errno);
    }
}

static void lock_very_many(void)
{
    lock_many();
    for (int i = 0; i < MANY * PER_FILE; i++) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 2 * (i / MANY), .l_len = 1 };

        assert_return_code(fcntl(crowd[i % MANY], F_SETLK, &lock), errno);
    }
}

static void unlock_many(void)
{
    for (int i = 0; i < MANY; i++)
        close(crowd[i]);
}

/* True if a process waits for the file's lock in the kernel: the kernel's list has a line with `->`. */
static bool is_awaited(struct host *host)
{
    return host_run(host, "grep -q -- \"->.*:$(stat -c %i x.lock) \" /proc/locks") == 0;
}

/*
 * The former job has the lock. `next` waits for the same file in the kernel, and has the file when the job ends. From
 * then on no host but this one's kernel keeps the mutex.
 */
static void assert_mutex_is_free_when_the_file_goes_on(struct host *host, struct job *former, const char *next)
{
    const char *word = strstr(next, "setlkw") ? "setlkw 0" : "has";
    struct job *after;

    job_expect(former, word);
    after = host_start(host, next);
    wait_until(is_awaited(host));
    job_go(former);
    job_expect(after, word);
    wait_until(!is_held("x.lock"));
    job_finish(after);
}

/* root's keeper finds the lock of the next process, but as the lock of another. */
static void test_a_mutex_is_free_when_a_stranger_has_the_file_next(void **state)
{
    struct job *former = host_start(a, "exec flock x.lock " HOLD);

    (void)state;
    lock_many();
    assert_mutex_is_free_when_the_file_goes_on(a, former, NO_MODULE "flock x.lock " HOLD);
    unlock_many();
    assert_int_equal(job_end(former), 0);
}

/* The same for a keeper that may not look into the stranger's process, and asks the kernel by the file. */
static void test_a_mutex_is_free_when_a_stranger_out_of_sight_has_the_file_next(void **state)
{
    struct host *c = host_make("c", "lease=60s");
    struct job *former = host_start(c, "exec " NO_PTRACE "flock x.lock " HOLD);

    (void)state;
    lock_very_many();
    assert_mutex_is_free_when_the_file_goes_on(c, former, NO_MODULE "flock x.lock " AS_STRANGER HOLD);
    unlock_many();
    assert_int_equal(job_end(former), 0);
    host_end(c);
}

/* The same by fcntl(). */
static void test_a_mutex_is_free_when_a_stranger_has_the_file_next_by_fcntl(void **state)
{
    struct host *d = host_make("d", "lease=60s");
    struct job *former = host_start(d, "exec " NO_PTRACE "$LOCKER x.lock setlkw wait");

    (void)state;
    lock_many();
    assert_mutex_is_free_when_the_file_goes_on(d, former, NO_MODULE "$LOCKER x.lock setlkw drop wait");
    unlock_many();
    assert_int_equal(job_end(former), 0);
    host_end(d);
}

/* Two keepers, of two users, say, have locks of the same file: the second process gets the mutex as well. */
static void test_the_next_process_goes_on_when_it_has_another_keeper(void **state)
{
    struct job *former = host_start_holder(a), *next;

    (void)state;
    lock_many();
    next = host_start(b, "cd ../a; export DMUTEX_MAP=\"flock:$PWD/*.lock => f/%b lease=2s\"; exec flock x.lock " HOLD);
    wait_until(is_awaited(a));
    job_finish(former);
    job_expect(next, "has");
    assert_true(is_held("x.lock"));
    unlock_many();
    job_finish(next);
}

/* The bytes that the keeper has read so far. */
static long long bytes_read(struct host *host)
{
    char path[64], word[32];
    long long count = -1;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/io", (int)host_keeper(host));
    file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%31s %lld", word, &count), 2);
    assert_string_equal(word, "rchar:");
    fclose(file);
    return count;
}

/* Each closing of the file makes the keeper look. */
static void make_keeper_look(struct host *host)
{
    for (int i = 0; i < 10; i++)
        assert_int_equal(host_run(host, "exec 9<x.lock"), 0);
}

/*
 * The time to read the list grows with the square of its length, and any user can make it long: it is not read while
 * the process that took the lock has it.
 */
static void test_a_long_list_is_not_read_while_a_process_has_the_lock(void **state)
{
    struct job *holder;

    (void)state;
    lock_very_many();
    holder = host_start_holder(a);
    make_keeper_look(a);
    assert_true(is_held("x.lock"));
    assert_int_equal(host_run(a, "$DMUTEX_RUN --holders"), 0); /* one look at least has ended */
    assert_within(bytes_read(a), 0, TWO_LISTS);
    job_finish(holder);
    wait_until(!is_held("x.lock"));
    unlock_many();
}

/* Listing the holders of many locks does not make the keeper inspect all processes for each. */
static void test_the_list_of_holders_is_no_search_in_all_processes(void **state)
{
    static const char list[] = "test $($DMUTEX_RUN --holders | grep -c ' flock$') = 10";
    struct job *holders[10];
    char script[64];
    long long before;

    (void)state;
    lock_many(); /* descriptors of this process, which a search would read */
    for (int i = 0; i < 10; i++) {
        snprintf(script, sizeof script, "flock %d.lock " HOLD, i);
        holders[i] = host_start(a, script);
        job_expect(holders[i], "has");
    }
    assert_int_equal(host_run(a, list), 0);
    before = bytes_read(a);
    assert_int_equal(host_run(a, list), 0);
    assert_within(bytes_read(a) - before, 0, 100000);
    for (int i = 0; i < 10; i++)
        job_finish(holders[i]);
    unlock_many();
}

/* In a container, the kernel's list leaves the locks of other containers out. */
static void test_a_mutex_is_free_when_a_process_outside_the_container_has_the_file_next(void **state)
{
    struct host *e = host_make("e", "lease=60s");
    struct job *container =
        host_start(e, "exec unshare -p -f --mount-proc sh -c 'exec 8<&0; flock x.lock sh -c \"echo has; read go <&8\"; "
                      "read go <&8; true'");

    (void)state;
    assert_mutex_is_free_when_the_file_goes_on(e, container, NO_MODULE "flock x.lock " HOLD);
    job_finish(container);
    host_end(e);
}

/*
 * The lock itself may be on its way to another process of the container, and then no process has it. Each closing of
 * the file makes the keeper look.
 */
static void test_a_lock_goes_on_when_its_file_is_in_a_socket(void **state)
{
    struct host *g = host_make("g", "lease=60s");
    struct job *container = host_start(g, "mkfifo end; exec unshare -p -f --mount-proc sh -c 'exec 8<&0; "
                                          "$LOCKER x.lock flock send fork say has wait receive say gone <&8 8<&- & "
                                          "wait; read end <end; true'");

    (void)state;
    job_expect(container, "flock 0");
    job_expect(container, "has");
    for (int i = 0; i < 15; i++) {
        assert_int_equal(host_run(g, "exec 9<x.lock"), 0);
        assert_int_equal(host_run(b, "flock -w 0.1 -E 9 x.lock true"), 9);
    }
    job_go(container);
    job_expect(container, "gone");
    wait_until(!is_held("x.lock"));
    assert_int_equal(host_run(g, "echo >end"), 0);
    assert_int_equal(job_end(container), 0);
    host_end(g);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        host_test(test_a_mutex_is_free_when_a_stranger_has_the_file_next),
        host_test(test_a_mutex_is_free_when_a_stranger_out_of_sight_has_the_file_next),
        host_test(test_a_mutex_is_free_when_a_stranger_has_the_file_next_by_fcntl),
        host_test(test_the_next_process_goes_on_when_it_has_another_keeper),
        host_test(test_a_long_list_is_not_read_while_a_process_has_the_lock),
        host_test(test_the_list_of_holders_is_no_search_in_all_processes),
        host_test(test_a_mutex_is_free_when_a_process_outside_the_container_has_the_file_next),
        host_test(test_a_lock_goes_on_when_its_file_is_in_a_socket),
    };

    test_begin(argc, argv);
    stranger_require();
    return cmocka_run_group_tests(tests, host_pair_setup, host_pair_teardown);
}

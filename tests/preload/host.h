/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts on one machine: each host has a folder of lock files, a keeper and a label, and both have the same server,
 * `the_server`. Programs run there under the module.
 *
 *     struct host *a = host_make("a", "lease=60s"), *b = ...;
 *     struct job *holder = host_start(a, "flock x.lock sh -c 'echo has; read go'");
 *
 *     job_expect(holder, "has");
 *     assert_int_equal(host_run(b, "flock -n x.lock true"), 1);
 *     job_go(holder);
 *     assert_int_equal(job_end(holder), 0);
 *
 * A lock file x.lock, locked by flock() or by fcntl(), is the mutex f/x.lock.
 */
#ifndef TEST_HOST_H
#define TEST_HOST_H

#include <stdbool.h>
#include <sys/types.h>

#include "../lib/testlib.h"

struct host;
struct job;

/* A test that begins when all mutexes of the tests before are free. */
#define host_test(test) cmocka_unit_test_setup(test, host_begin_test)
int host_begin_test(void **state);

/*
 * Two hosts for a whole group. A program that gives up and ends leaves a place in the queue for three leases, so
 * programs give up on host b, which has a short lease.
 */
extern struct host *a, *b;
int host_pair_setup(void **state);
int host_pair_teardown(void **state);

/* Makes a host with a keeper's folder and with settings for the rules. */
struct host *host_make(const char *name, const char *settings);

/* The folder of lock files. */
const char *host_folder(const struct host *host);

/* Call after the end of all jobs. Awaits the end of the keeper; fails if a sanitizer has complained of the keeper. */
void host_end(struct host *host);

/* Puts "NAME=value" into the environment of jobs that start from now on. */
void host_put(struct host *host, const char *string);

/*
 * Starts a shell script in the folder of lock files; a socket is the script's input and output. $LOCKER is
 * tests/preload/locker.
 */
struct job *host_start(struct host *host, const char *script);

/* Starts a job that holds x.lock until job_go(). */
struct job *host_start_holder(struct host *host);

/* Runs a script to the end; returns the exit status, as job_end() does. */
int host_run(struct host *host, const char *script);

/* True if unshare(1) works with a user namespace, which a chroot forbids, and some machines; otherwise says so. */
bool host_can_unshare(struct host *host, const char *what);

/* True if the host's programs have written the words to standard error so far. */
bool host_has_said(struct host *host, const char *words);

/* The keeper's pid, or 0; a descriptor that becomes readable at the keeper's end, or -1. */
pid_t host_keeper(struct host *host);
int host_open_keeper(struct host *host);

/* How often the host's keeper has called read() and the like so far. */
long host_reads(struct host *host);

/* Awaits the next line of the job; the line must be equal. */
void job_expect(struct job *job, const char *line);

/* Awaits the next line of the job; the line is valid until the next line is read. */
const char *job_line(struct job *job);

/* True if the job has printed something that was not read yet. */
bool job_has_spoken(struct job *job);

/* The rest of the job's output, to the end of the job. */
const char *job_rest(struct job *job);

/* Sends a line for the job's `read`. */
void job_go(struct job *job);

/* Sends a signal to the job, also after the job has become another program by exec. */
void job_signal(struct job *job, int number);
pid_t job_pid(const struct job *job);

/* Awaits the end of the job and frees the job: the exit status, or 128 and the signal. */
int job_end(struct job *job);

/* Sends a line; the job then ends with status 0. */
void job_finish(struct job *job);

/* True if the descriptor is readable within WAIT_LIMIT_MS. */
bool await_readable(int fd);

/* The server's view: whether the mutex f/FILE is held, and the number of waiters for f/FILE. */
bool is_held(const char *file);
int waiters_for(const char *file);

/* Takes the mutex f/FILE from its holder. */
void lose(const char *file);

#endif

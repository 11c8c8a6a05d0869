/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts on one machine: each has its own folder of lock files, its own keeper, its own label, and
 * the same server, `the_server`.  Programs run there under the module.
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
 * Two hosts for a whole group.  A program that gives up and ends leaves a place in the queue for three leases, so
 * it is host b on which programs give up: it has a short lease.
 */
extern struct host *a, *b;
int host_pair_setup(void **state);
int host_pair_teardown(void **state);

/* With a keeper's folder of its own, and the rules' settings. */
struct host *host_make(const char *name, const char *settings);

/* All jobs have ended.  Awaits the end of the keeper, which must have had nothing to complain of. */
void host_end(struct host *host);

/* In the environment of jobs that start from now on; "NAME=value". */
void host_put(struct host *host, const char *string);

/* A shell script in the folder of lock files, with both ends of a pipe.  $LOCKER is tests/preload/locker. */
struct job *host_start(struct host *host, const char *script);

/* The same to its end: its exit status, as job_end(). */
int host_run(struct host *host, const char *script);

/* What the host's programs have written to standard error so far. */
bool host_has_said(struct host *host, const char *words);

/* The keeper's pid, 0 if there is none; a descriptor that is readable when it has ended. */
pid_t host_keeper(struct host *host);
int host_open_keeper(struct host *host);

/* The next line that the job prints, awaited, must be this one. */
void job_expect(struct job *job, const char *line);

/* That line, valid until the next one is read. */
const char *job_line(struct job *job);

/* Has it printed something that was not read yet? */
bool job_has_spoken(struct job *job);

/* The rest that it prints, to the end of the pipe. */
const char *job_rest(struct job *job);

/* A line for its `read`. */
void job_go(struct job *job);

/* Sends it, or what it has become, a signal. */
void job_signal(struct job *job, int number);
pid_t job_pid(const struct job *job);

/* Awaits its end and frees it: the exit status, or 128 and the signal. */
int job_end(struct job *job);

/* True if the descriptor is readable within WAIT_LIMIT_MS. */
bool await_readable(int fd);

/* The server's view: is the mutex f/FILE held, how many wait for it? */
bool is_held(const char *file);
int waiters_for(const char *file);

#endif

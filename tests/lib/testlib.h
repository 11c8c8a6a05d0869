/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All of tests/lib, and the headers that cmocka wants first. A test program of a server test is
 *
 *     #include "../lib/testlib.h"
 *
 *     // POSIX scenario 4
 *     static void test_token_rises_when_the_lock_changes_hands(void **state) { ... }
 *
 *     int main(int argc, char **argv)
 *     {
 *         const struct CMUnitTest tests[] = {
 *             cmocka_unit_test(test_token_rises_when_the_lock_changes_hands),
 *             cmocka_unit_test(test_nothing_is_left),
 *         };
 *
 *         test_begin(argc, argv);
 *         return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
 *     }
 *
 *   server.h  a private server: start, kill, stop, restart
 *   sentinels.h   a master, replicas and sentinels
 *   clusters.h    a Cluster, slots that move, shards that fail over
 *   side.h    a plain connection to the server: keys, counters, controls for bounds
 *   actor.h   another process that locks and dies as told
 *   crowd.h   many threads in several actors that wait on a condition
 *   proxy.h   a bad network between a process and the server
 *   impostor.h    a program that pretends to be a server
 *   storm.h   a network that is cut all the time, below two actors that count
 *   wait.h    waiting for conditions; times
 *   late.h    how late the machine is, for leases that the machine must keep
 *   mutexes.h mutexes of every kind, and calls in other threads
 *   proc.h    states and memory of processes and threads
 *   filter.h  system calls that the kernel refuses
 *   lines.h   lines of a file, such as a log
 *   range.h   numbers between two others
 *   command.h a shell command, the output and the end
 *   keeper.h  ends everything when the test program ends
 *
 * cmocka's asserts jump out of the test: use them in the test's own thread only, never in threads or forked children,
 * which hand their results back.
 */
#ifndef TEST_TESTLIB_H
#define TEST_TESTLIB_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <dmutex/dmutex.h>

#include "actor.h"
#include "clusters.h"
#include "command.h"
#include "crowd.h"
#include "impostor.h"
#include "keeper.h"
#include "late.h"
#include "mutexes.h"
#include "proc.h"
#include "proxy.h"
#include "range.h"
#include "sentinels.h"
#include "server.h"
#include "side.h"
#include "storm.h"
#include "wait.h"

/*
 * Call it first in main(): this process may be an actor or a proxy; otherwise it starts the keeper.  Private mutexes
 * without a name are on the server, unless DMUTEX_PRIVATE says otherwise.  With an argument, only tests whose names
 * match it run: 'test_another*'.
 */
void test_begin(int argc, char **argv);

/* True if private mutexes without a name are libc's: for tests that run both ways. */
bool private_is_libc(void);

/* Makes dmutex_test_server_start() find $DMUTEX_TEST_SERVER, too. */
void test_put_server_into_path(void);

/* The path of this program, which is executed again with --role. */
extern char *program_path;

/* The path of a file of the build tree, such as "preload/here/dmutex-run".  The file exists. */
void test_build_path(char *ret_path, size_t room, const char *name);

/* $CC, or cc. */
const char *test_compiler(void);

/* Adds an option of the address sanitizer for programs that start from now on. */
void test_tell_asan(const char *option);

/*
 * True under a sanitizer that cannot follow some tests; these then return at once.  The thread sanitizer starts no
 * thread in a forked child, and ends the program when a thread is cancelled in a call that it does not see.  The
 * address sanitizer's allocator stays locked in a child if another thread of the parent was inside it.
 */
#if defined __SANITIZE_THREAD__
#define IS_THREAD_SANITIZED true
#else
#define IS_THREAD_SANITIZED false
#endif
#if defined __SANITIZE_ADDRESS__
#define IS_ADDRESS_SANITIZED true
#else
#define IS_ADDRESS_SANITIZED false
#endif

/* A server for the whole group, `the_server`.  This process is connected when the first test begins. */
int test_group_setup(void **state);
int test_group_teardown(void **state);
extern struct server *the_server;

/* For each test of a group: a proxy in front of `the_server`. */
int test_proxy_setup(void **state);
int test_proxy_teardown(void **state);
extern struct proxy *the_proxy;

/* The commands from clients to `the_server` so far: side_client_commands(). */
int64_t client_commands(void);

/*
 * The last test of a group: this process has no more descriptors than before the first test, and the server no keys
 * except the `state` of named mutexes, for a while the `sleeper` of named conditions, and controls.
 */
void test_nothing_is_left(void **state);

/* The two checks.  Descriptors: soon no more than `before`, not counting those that reserve ports. */
int open_descriptors(void);
void check_descriptors(int before);
void check_keys(struct side *side);

/*
 * Promises that the next steps take at most `ms`, by the clock of `the_server`, plus the lateness of the machine
 * (late.h).  The second checks the promise.
 */
void promise_within(int ms);
void assert_kept(void);

/* Waits for `ms` by the clock of `the_server`, while nothing should happen. */
void let_pass(int ms);

/* 0 or an errno value, as text: "0", "EBUSY". */
const char *result_name(int result);

/* Compares the results of dmutex calls as text: assert_result(dmutex_lock(&m), EBUSY). */
#define assert_result(call, wanted) assert_string_equal(result_name(call), result_name(wanted))

/* How many wait in the queue of a mutex, and whether it is held, as the server sees it. */
int waiters_of(dmutex_t *mutex);
bool is_locked(dmutex_t *mutex);

/* How often a test that depends on luck repeats: `usual`, or ten times that with DMUTEX_TEST_LONG. */
int repetitions(int usual);

/* The value in the environment, else `usual`, or `many` with DMUTEX_TEST_LONG. */
long count_from(const char *variable, long usual, long many);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tools for the tests of programs with libdmutex: a private server in one line, with kill,
 * pause and restart, and dying owners.  Part of libdmutex itself; needs no test library,
 * and fits cmocka (examples/ledger_test.c):
 *
 *     int main(void)
 *     {
 *         return cmocka_run_group_tests(tests, dmutex_test_group_setup, dmutex_test_group_teardown);
 *     }
 *
 * The server is redis-server, or else valkey-server, found by PATH, with a socket in a directory of
 * its own below $TMPDIR (below /tmp if the name of $TMPDIR leaves no room for a socket, or is not absolute).
 * The server has no TCP port and keeps nothing on disk.  A separate process, "dmutex-reaper", looks after the
 * server.  The reaper ends the server and deletes the directory when this process ends, in any way: by exit, abort,
 * SIGKILL or exec, with the server running or stopped, also when children live on.  (Before Linux 5.3, and
 * where pidfd_open() is forbidden: when the last child forked meanwhile has ended.)  Only a kill of the reaper, too,
 * leaves the server behind.
 *
 * Common to all functions of this header, unless said otherwise:
 *
 *   Returns    0 or a positive errno value; never EINTR; errno itself stays unchanged.
 *              dmutex_strerror_np() describes the failure in a sentence.
 *   Threads    Any, but never two threads at once in functions about servers, and no thread reading or
 *              writing the environment while a server starts or stops.
 *   Signals    Not async-signal-safe.  No handler is installed, no SIGCHLD sent; wait() does not see
 *              the processes, so a program waiting for all children finds only its own children.
 *   Cancel     No function here is a cancellation point.
 *   Fork       A child of fork(), and the programs executed by the child, use the server, too, by DMUTEX_URL.
 *              Only the parent controls the server: stop, kill and the like return EPERM in the child.  The
 *              child may start a server of its own.
 *   Since      0.1, every function.
 */
#ifndef DMUTEX_TESTING_H
#define DMUTEX_TESTING_H

#include <dmutex/types.h>

DMUTEX_BEGIN_DECLS

/* A server of this process.  Made by start, freed by stop. */
typedef struct dmutex_test_server dmutex_test_server_t;

/*
 * Starts a private, empty server and waits for its first answer.  From now on this process uses the server, and
 * so do, by DMUTEX_URL, all programs and children started by this process.  An earlier configuration, or a
 * dmutex_configure_np() call meanwhile, takes effect again when the last test server is stopped.  May be called
 * again and again: the process uses the last started server.
 *
 * The library begins anew: this process becomes another owner, with no hold and no waiting
 * thread, and reads the other environment variables again at the next use of a mutex.  Objects stay
 * unchanged; named mutexes are free on the new server, local mutexes (mutex.h) are not affected.
 *
 * Returns 0 and the server in *ret_server
 *   EBUSY    a thread of this process holds a mutex or waits for one, or the lost callback runs
 *   EINVAL   ret_server is NULL
 *   ENOLCK   the server cannot be started: neither program is installed, there is no place for the
 *            directory, the server ends at once or does not answer within 10 s; or this program has more
 *            rights than its caller (set-user-ID)
 *   ENOMEM   out of memory
 *
 * Blocks until the server answers, some milliseconds, and before the start until pending releases are confirmed,
 * 2 s at most.  A thread inside another call of the library meanwhile gets ENOLCK from the other call, or
 * makes dmutex_test_server_start() return EBUSY.
 */
DMUTEX_API int dmutex_test_server_start(dmutex_test_server_t **ret_server);

/*
 * Ends the server, deletes the directory, and undoes the effects of start: this process uses the earlier server
 * again, and DMUTEX_URL has its earlier value.  After a return of 0 nothing of the server is left: no process,
 * file, socket, or memory.  Servers may be stopped in any order.  NULL is allowed.
 *
 * Returns 0; EBUSY when the server is in use and a thread of this process holds a mutex or waits for
 * a mutex, or the lost callback runs (nothing is changed then); EPERM in a forked child of the process that
 * started the server.
 *
 * Does not wait for unlocks, because the server for the unlocks ends.  A lost hold does not count as a
 * hold and does not prevent the stop, once the loss is told.
 */
DMUTEX_API int dmutex_test_server_stop(dmutex_test_server_t *server);

/*
 * Returns the server's URL, unix:///..., for programs other than children of this process, and for redis-cli.
 * The string is memory of the server, valid until the server is stopped; not to be freed.  "" for NULL.  May be
 * called in a forked child.
 */
DMUTEX_API const char *dmutex_test_server_url(const dmutex_test_server_t *server);

/*
 * Kills the server as by SIGKILL, also a paused server, and waits for the end of the server.  Connections break;
 * dmutex(7) tells the return values of calls without a server.  A second kill is no error.
 *
 * Returns 0; EINVAL for NULL; EPERM in a forked child; ENOLCK when the server's reaper process was killed.
 */
DMUTEX_API int dmutex_test_server_kill(dmutex_test_server_t *server);

/*
 * Starts the server again at the same URL, empty: a server after a loss of data.  A running server is killed
 * first.  Live owners put their locks back, if no other owner is quicker.
 *
 * Returns 0 when the server answers; EINVAL, EPERM as above; ENOLCK as start.
 */
DMUTEX_API int dmutex_test_server_restart(dmutex_test_server_t *server);

/*
 * Stops the server as by SIGSTOP: connections stay, and no request is answered.  The server has stopped when
 * the call returns.  A second pause is no error.
 *
 * Returns 0; EINVAL, EPERM as above; ENOLCK when the server does not run.
 */
DMUTEX_API int dmutex_test_server_pause(dmutex_test_server_t *server);

/*
 * Lets a paused server go on; the server then serves the requests sent meanwhile.  Resuming a server that is not
 * paused is no error.
 *
 * Returns 0; EINVAL, EPERM as above; ENOLCK when the server does not run.
 */
DMUTEX_API int dmutex_test_server_resume(dmutex_test_server_t *server);

/*
 * Ends the calling thread's hold as if SIGKILL had killed the process: the caller holds the mutex no longer, at
 * any depth; the server is not told; and the lease is no longer renewed.  When the lease ends, after at most one
 * lease from now, the next owner gets the mutex; the next owner, which may be the caller again, gets EOWNERDEAD
 * if the mutex is robust.  No lost callback runs.  Tests set the lease short: dmutexattr_setlease_np(&attr, 100).
 *
 * Returns 0; EPERM when the caller does not hold the mutex, or lost the hold before; EINVAL for an object
 * that is no mutex; ENOTSUP for a local mutex (mutex.h), because no other process could own it next.
 *
 * Any thread, at any time.  No I/O.
 */
DMUTEX_API int dmutex_test_abandon(dmutex_t *mutex);

/*
 * Group fixtures in the form of cmocka.  Setup starts a server and puts the server into *state; teardown stops
 * the server of *state, and sets *state to NULL.
 *
 * Return 0 or the error of start and stop, which cmocka reports as a failure of the group.  When the
 * thread calling teardown still holds a mutex, as after a failed test, teardown
 * returns EBUSY, but ends the holds and stops the server all the same: the next group begins with
 * nothing held.  If another thread holds a mutex or waits for a mutex, the server stays until the
 * process ends.
 */
DMUTEX_API int dmutex_test_group_setup(void **state);
DMUTEX_API int dmutex_test_group_teardown(void **state);

DMUTEX_END_DECLS

#endif

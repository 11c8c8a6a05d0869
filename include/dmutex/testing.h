/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For the tests of programs that use libdmutex: a private server in one line, with kill, pause and restart, and owners
 * that die.  Part of libdmutex itself.  Needs no test library, and fits cmocka (examples/ledger_test.c):
 *
 *     int main(void)
 *     {
 *         return cmocka_run_group_tests(tests, dmutex_test_group_setup, dmutex_test_group_teardown);
 *     }
 *
 * The server is redis-server, or else valkey-server, found through PATH; or PostgreSQL.  Its socket is in a directory
 * of its own below $TMPDIR, or below /tmp if $TMPDIR is not absolute or too long for the path of a socket.  It has no
 * TCP port and keeps nothing outside this directory.
 *
 * A separate process, "dmutex-reaper", looks after the server.  It ends the server and deletes the directory when this
 * process ends, in whatever way (exit, abort, SIGKILL or exec), whether the server is running or stopped, and even if
 * children live on.  (Before Linux 5.3, and where pidfd_open() is forbidden: when the last child that was forked in
 * between has ended.)  The server is left behind only if the reaper is killed as well.
 *
 * Common to all functions of this header, unless stated otherwise:
 *
 *   Returns    0 or a positive errno value; never EINTR; errno itself stays unchanged.
 *              dmutex_strerror_np() describes the failure in a sentence.
 *   Blocking   Only for the server's process.
 *   Threads    Any thread, but only one at a time in the functions about servers, and no thread may read or write the
 *              environment while a server starts or stops.
 *   Signals    Not async-signal-safe.  No handler is installed and no SIGCHLD is sent.  wait() does not see the
 *              processes, so a program that waits for all children finds only its own.
 *   Cancel     No function here is a cancellation point.
 *   Fork       A child of fork(), and the programs that it executes, also use the server, through DMUTEX_URL.  Only
 *              the parent controls it: stop, kill and the like return EPERM in the child.  The child may start a server
 *              of its own.
 *   Since      0.1, every function.
 *   Source     doc/man/dmutex-testing.7.
 */
#ifndef DMUTEX_TESTING_H
#define DMUTEX_TESTING_H

#include <dmutex/types.h>

DMUTEX_BEGIN_DECLS

/* A server of this process, made by start and freed by stop. */
typedef struct dmutex_test_server dmutex_test_server_t;

/*
 * Starts a private, empty server and waits for its first answer.  From then on this process uses that server, and so
 * do, through DMUTEX_URL, all programs and children that it starts.  An earlier configuration, or a call of
 * dmutex_configure_np() in the meantime, takes effect again when the last test server is stopped.  May be called
 * repeatedly: the process uses the server that was started last.
 *
 * The library starts afresh: this process becomes another owner, with no hold and no waiting thread, and reads the
 * other environment variables again at the next use of a mutex.  Objects stay unchanged: named mutexes are free on the
 * new server, and local mutexes (mutex.h) are not affected.
 *
 * Returns 0, with the server in *ret_server; otherwise nothing has changed:
 *   EBUSY    a thread of this process holds a mutex or waits for one, or the lost callback is running
 *   EINVAL   ret_server is NULL
 *   ENOLCK   the server cannot be started: neither program is installed, there is no room for the directory, the server
 *            ends at once or does not answer within 10 s, or this program has more rights than its caller
 *            (set-user-ID)
 *   ENOMEM   out of memory
 *
 * Blocks until the server answers, some milliseconds; before that, until pending releases are confirmed, at most 2 s.
 * If another thread is inside a call of the library, either that call returns ENOLCK, or this one returns EBUSY.
 */
DMUTEX_API int dmutex_test_server_start(dmutex_test_server_t **ret_server);

/*
 * The same with PostgreSQL: a new cluster of databases, without fsync, for the library's module of PostgreSQL
 * (libdmutex-postgres).  Runs initdb and postgres of the first folder of PATH that has both, or else of the newest
 * version in /usr/lib/postgresql, as Debian installs them.  The other functions of this header work on it as well.  A
 * restart keeps the tables, but not the locks: here, too, owners that are alive put them back, unless another owner is
 * quicker.
 *
 * PostgreSQL refuses to run as root.  For root, the server and its reaper run as the user postgres, or else nobody, and
 * the directory is in /tmp whatever $TMPDIR says.
 *
 * Returns as start; ENOLCK also if the server does not answer within a minute.  Blocks for some seconds, because initdb
 * makes a cluster of 30 MB.
 */
DMUTEX_API int dmutex_test_server_start_postgres(dmutex_test_server_t **ret_server);

/*
 * Ends the server, deletes its directory, and undoes the effects of start: this process uses the earlier server again,
 * and DMUTEX_URL has its earlier value.  After it has returned 0, nothing of the server is left: no process, file,
 * socket or memory.  Servers may be stopped in any order.  NULL is allowed.
 *
 * Returns 0; EBUSY if the server is in use and a thread of this process holds a mutex or waits for one, or the lost
 * callback is running (nothing has changed then); EPERM in a forked child of the process that started the server.
 *
 * Does not wait for unlocks to be confirmed, because their server ends.  A lost hold does not prevent the stop once its
 * loss has been reported.
 */
DMUTEX_API int dmutex_test_server_stop(dmutex_test_server_t *server);

/*
 * Returns the server's URL, unix:///..., for redis-cli and for programs that are not children of this process; "" for
 * NULL.  That of PostgreSQL ends with an option of ours, which psql and libpq do not know: give them what stands before
 * "&dmutex.".  The string belongs to the server and is valid until the server is stopped; it must not be freed.  May be
 * called in a forked child.
 */
DMUTEX_API const char *dmutex_test_server_url(const dmutex_test_server_t *server);

/*
 * Kills the server, which may be paused, as by SIGKILL, and waits for its end.  Connections break; dmutex(7) says what
 * calls return without a server.  Killing it a second time is not an error.
 *
 * Returns 0; EINVAL for NULL; EPERM in a forked child; ENOLCK if the server's reaper process was killed.
 */
DMUTEX_API int dmutex_test_server_kill(dmutex_test_server_t *server);

/*
 * Starts the server again at the same URL, empty, like a server that has lost its data.  A running server is killed
 * first.  Owners that are alive put their locks back, unless another owner is quicker.
 *
 * Returns 0 once the server answers; EINVAL and EPERM as above; ENOLCK as start.  Blocks until the server answers.
 */
DMUTEX_API int dmutex_test_server_restart(dmutex_test_server_t *server);

/*
 * Stops the server as by SIGSTOP: connections stay open, and no request is answered.  The server has stopped when the
 * call returns.  Pausing it a second time is not an error.
 *
 * Returns 0; EINVAL and EPERM as above; ENOLCK if the server is not running.
 */
DMUTEX_API int dmutex_test_server_pause(dmutex_test_server_t *server);

/*
 * Lets a paused server continue; it then serves the requests that were sent during the pause.  Resuming a server that
 * is not paused is not an error.
 *
 * Returns 0; EINVAL and EPERM as above; ENOLCK if the server is not running.
 */
DMUTEX_API int dmutex_test_server_resume(dmutex_test_server_t *server);

/*
 * Ends the calling thread's hold as if SIGKILL had killed the process: the caller no longer holds the mutex, at any
 * depth; the server is not told; and the lease is no longer renewed.  When the lease ends, at most one lease from now,
 * the next owner gets the mutex, and EOWNERDEAD if the mutex is robust; the next owner may be the caller again.  The
 * lost callback does not run.  Tests use a short lease: dmutexattr_setlease_np(&attr, 100).
 *
 * Returns 0; EPERM if the caller does not hold the mutex or had lost the hold before; EINVAL if the object is not a
 * mutex; ENOTSUP for a local mutex (mutex.h), because no other process could own it next.
 *
 * Any thread, at any time.  No I/O, no blocking.
 */
DMUTEX_API int dmutex_test_abandon(dmutex_t *mutex);

/*
 * Group fixtures in the form that cmocka uses.  Setup starts a server and puts it into *state; teardown stops it and
 * sets *state to NULL.
 *
 * Return 0 or the error of start or stop, which cmocka reports as a failure of the group.  If the thread that calls
 * teardown still holds a mutex, for example after a failed test, teardown returns EBUSY, but still ends the holds and
 * stops the server, so that the next group begins with nothing held.  If another thread holds a mutex or waits for one,
 * the server stays until the process ends.
 */
DMUTEX_API int dmutex_test_group_setup(void **state);
DMUTEX_API int dmutex_test_group_teardown(void **state);

DMUTEX_END_DECLS

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For the tests of programs that use libdmutex: a private server in one line, which can be killed,
 * stopped and started again, and owners that die.  Part of libdmutex itself; needs no test library,
 * and fits cmocka (examples/ledger_test.c):
 *
 *     int main(void)
 *     {
 *         return cmocka_run_group_tests(tests, dmutex_test_group_setup, dmutex_test_group_teardown);
 *     }
 *
 * The server is redis-server, or else valkey-server, found by PATH, with a socket in a directory of
 * its own below $TMPDIR (where its name leaves no room for a socket, or is not absolute: /tmp).  It
 * has no TCP port and keeps nothing on disk.  A process of its own looks after it, which ends it and
 * deletes the directory when this process ends, however that happens: by exit, abort, SIGKILL or
 * exec, with the server running or stopped, also when children live on.  (Before Linux 5.3, and
 * where pidfd_open() is forbidden: when the last child has ended that was forked meanwhile.)  Only who
 * kills that process as well, "dmutex-reaper", leaves the server behind.
 *
 * Common to all functions of this header, unless said otherwise:
 *
 *   Returns    0 or a positive errno value; never EINTR; errno itself is left as it was.  What
 *              went wrong is told in a sentence by dmutex_strerror_np().
 *   Threads    Any, but no two of them at once in functions about servers, and none that reads or
 *              writes the environment while a server starts or stops.
 *   Signals    Not async-signal-safe.  No handler is installed, no SIGCHLD sent; wait() does not see
 *              the processes, so a program that waits for all its children finds its own.
 *   Cancel     No function here is a cancellation point.
 *   Fork       A child of fork() and what it executes use the server, too, by DMUTEX_URL, but must
 *              leave it to its parent: stop and the like are EPERM there.  It may start its own.
 *   Since      0.1, each of them.
 */
#ifndef DMUTEX_TESTING_H
#define DMUTEX_TESTING_H

#include <dmutex/types.h>

DMUTEX_BEGIN_DECLS

/* A server of this process.  Made by start, freed by stop. */
typedef struct dmutex_test_server dmutex_test_server_t;

/*
 * Starts a private server, empty, and waits until it answers.  From here on this process uses it,
 * and by DMUTEX_URL all that it forks or executes; whatever was configured before, or is configured
 * by dmutex_configure_np() meanwhile, counts again when the last one is stopped.  May be called
 * again and again: the last one that was started is used.
 *
 * To the library this is a new beginning: this process is another owner, with no hold and no thread
 * that waits, and reads the other environment variables anew at its next use of a mutex.  Objects
 * stay as they are; named ones are free on the new server, local ones (mutex.h) have nothing to do with it.
 *
 * Returns 0 and the server in *ret_server
 *   EBUSY    a thread of this process holds a mutex or waits for one
 *   EINVAL   ret_server is NULL
 *   ENOLCK   the server cannot be started: neither program is installed, there is no place for its
 *            directory, it ends at once, it does not answer within 10 s; or this program has more
 *            rights than its caller (set-user-ID)
 *   ENOMEM   out of memory
 *
 * Blocks until the server answers, some milliseconds, and first for pending releases to be confirmed,
 * 2 s at most.  A thread that is inside another call of the library meanwhile gets ENOLCK there, or
 * lets this one return EBUSY.
 */
DMUTEX_API int dmutex_test_server_start(dmutex_test_server_t **ret_server);

/*
 * Ends the server, deletes its directory, and undoes what start did: this process uses what it used
 * before, DMUTEX_URL is as it was.  When it returns 0 nothing of the server is left: no process,
 * file, socket, or memory.  Servers may be stopped in any order.  NULL is allowed.
 *
 * Returns 0; EBUSY when a thread of this process holds a mutex or waits for one, and this is the
 * server in use (nothing is changed then); EPERM in a forked child of who started it.
 *
 * Does not wait for unlocks: the server that would take them is what ends.  A hold that was lost is
 * none: it keeps nobody from stopping.
 */
DMUTEX_API int dmutex_test_server_stop(dmutex_test_server_t *server);

/*
 * The server's URL, unix:///..., for programs that are not children of this one, and for redis-cli.
 * The server's memory, valid until it is stopped; not to be freed.  "" for NULL.  May be called in a
 * forked child.
 */
DMUTEX_API const char *dmutex_test_server_url(const dmutex_test_server_t *server);

/*
 * Kills the server as by SIGKILL, also a paused one, and waits for its end.  Connections break; what
 * calls return without a server is told in dmutex(7).  Killing it again is no error.
 *
 * Returns 0; EINVAL for NULL; EPERM in a forked child; ENOLCK when the process that looks after the
 * server was killed.
 */
DMUTEX_API int dmutex_test_server_kill(dmutex_test_server_t *server);

/*
 * Starts it again at the same URL, empty: a server that has lost its data.  One that runs is killed
 * first.  Live owners put their locks back, if nobody is quicker.
 *
 * Returns 0 when it answers; EINVAL, EPERM as above; ENOLCK as start.
 */
DMUTEX_API int dmutex_test_server_restart(dmutex_test_server_t *server);

/*
 * Stops it as by SIGSTOP: connections stay, and nothing is answered.  It has stopped when this
 * returns.  Pausing it again is no error.
 *
 * Returns 0; EINVAL, EPERM as above; ENOLCK when it does not run.
 */
DMUTEX_API int dmutex_test_server_pause(dmutex_test_server_t *server);

/*
 * Lets a paused server go on; it does what it was asked meanwhile.  Resuming one that is not paused
 * is no error.
 *
 * Returns 0; EINVAL, EPERM as above; ENOLCK when it does not run.
 */
DMUTEX_API int dmutex_test_server_resume(dmutex_test_server_t *server);

/*
 * The calling thread's hold dies as if its process were killed by SIGKILL: however deep, it is no
 * longer the caller's, the server is not told, and the lease is renewed no more.  When that ends,
 * which is at most one lease from now, the next owner has the mutex; a robust one, which may be the
 * caller itself, gets EOWNERDEAD.  No lost callback runs.  Tests set the lease short:
 * dmutexattr_setlease_np(&attr, 100).
 *
 * Returns 0; EPERM when the caller does not hold it, or lost the hold before; EINVAL for an object
 * that is no mutex; ENOTSUP for a local mutex (mutex.h), which no other process could own next.
 *
 * Any thread, at any time.  No I/O.
 */
DMUTEX_API int dmutex_test_abandon(dmutex_t *mutex);

/*
 * Group fixtures as cmocka calls them.  Setup starts a server and puts it into *state; teardown stops
 * the server of *state, and sets that to NULL.
 *
 * Return 0 or what start and stop return, which cmocka reports as a failure of the group.  When the
 * thread that calls teardown still holds a mutex, as after a test that failed in between, it
 * returns EBUSY, but lets the holds go and stops the server all the same: the next group begins with
 * nothing held.  A mutex that another thread holds or waits for lets the server stay, until the
 * process ends.
 */
DMUTEX_API int dmutex_test_group_setup(void **state);
DMUTEX_API int dmutex_test_group_teardown(void **state);

DMUTEX_END_DECLS

#endif

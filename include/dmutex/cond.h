/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Condition variables: the functions of <pthread.h>, across hosts.
 *
 * Common to all functions of this header, unless stated otherwise:
 *
 *   Returns    0 or a positive errno value; never EINTR; errno itself stays unchanged.
 *              dmutex_strerror_np() describes the failure in a sentence.
 *   Blocking   None.
 *   Threads    Any thread, at any time.
 *   Signals    Not async-signal-safe.  A signal handler that runs during a wait does not end it.
 *   Cancel     The wait functions are cancellation points; the others are not.  A cancelled waiter owns the mutex
 *              again before the thread's cleanup handlers run, and takes no signal from other waiters.
 *   Fork       The child of fork() waits on nothing; a private object without a name is another condition variable
 *              in the child.  A child of vfork() must not call any function here.
 *   Since      0.1, every function.
 *
 * A named condition variable works with mutexes of its own group ("group/leaf").  An anonymous one works with mutexes
 * of any group: the first waiter's mutex determines the group, until no thread waits.  All threads that wait at the
 * same time must use one mutex.
 *
 * The mutex decides the kind of wait.  A wait with a local mutex (mutex.h) is libc's, even if the condition variable
 * has a name: a signal from a thread of the same process ends it.  Signal and broadcast reach both kinds of waiters.
 * They always ask the server about a named condition variable, but about an anonymous one only if a thread has ever
 * waited on it with a mutex of the server.
 *
 * Every function that uses a condition variable may also return:
 *
 *   EINVAL     the object is not a condition variable, was destroyed, or has an empty or too long name; a pointer is
 *              NULL where a value is required
 *   ENOLCK     no server is configured properly, the server refuses permanently, or the library could not be started
 *              for lack of a thread or of descriptors (the sentence says which)
 *   ENOMEM     out of memory
 *   ENOTSUP    from a wait or a signal: a quorum of servers (redis+quorum://) has no condition variables
 *
 * Example (examples/queue.c):
 *
 *     dmutex_lock(&ledger);
 *     while (is_empty())
 *         dcond_wait(&filled, &ledger);     // releases the mutex, sleeps, owns it again
 *     take_one();
 *     dmutex_unlock(&ledger);
 */
#ifndef DMUTEX_COND_H
#define DMUTEX_COND_H

#include <dmutex/types.h>

DMUTEX_BEGIN_DECLS

/*
 * Sets up a condition variable from attributes, which are copied; NULL means the defaults.  Does not talk to the
 * server, and does not read the previous contents of *cond.  No other thread may use the object during the call.
 *
 * Returns 0; EINVAL for a NULL cond or an attribute object that dcondattr_init() has not set up.
 *
 * Source: POSIX pthread_cond_init().
 */
DMUTEX_API int dcond_init(dcond_t *cond, const dcondattr_t *attr);

/*
 * The same with a name, which is copied and replaces that of the attributes.
 *
 * Returns 0; EINVAL as dcond_init(), or for an invalid name, as dmutex_init_np().
 */
DMUTEX_API int dcond_init_np(dcond_t *cond, const char *name, const dcondattr_t *attr);

/*
 * Ends the use of an object.  A named condition variable remains for other objects; an anonymous one is deleted on the
 * server.  Allowed immediately after a broadcast, even before the woken waiters have returned.
 *
 * Returns 0; EBUSY if a thread of this process waits on the object or, for an anonymous object, a thread of any
 * process; EINVAL if the object has already been destroyed.
 *
 * Blocks for at most command_timeout, if it asks the server; a missing answer is not an error.
 *
 * Source: POSIX pthread_cond_destroy().
 */
DMUTEX_API int dcond_destroy(dcond_t *cond);

/* Copies the name and its NUL into buf, which has size bytes.  ENOENT: no name; ERANGE: buf too small, unchanged. */
DMUTEX_API int dcond_getname_np(const dcond_t *cond, char *buf, size_t size);

/*
 * Releases the mutex, whatever its recursion depth, and waits for a signal, in one step: no signal can come in
 * between.  Returns owning the mutex at the same depth.  May return without a signal: call it in a loop that tests the
 * predicate.
 *
 * Returns
 *   0                woken; the caller owns the mutex
 *   EOWNERDEAD       the caller owns the mutex, which is robust, and an owner died during the wait: repair the state
 *                    and call dmutex_consistent()
 *   ENOTRECOVERABLE  not owned: nobody can own the mutex any more
 *   EPERM            the caller does not own the mutex, and nothing was done; or the hold was lost, which also happens
 *                    if a request gets no answer and the server refuses its repetition
 *   EINVAL           other threads wait with another mutex; or the groups differ; or the condition variable has no
 *                    name and the mutex's group is longer than 179 bytes.  Nothing was done, and the caller still owns
 *                    the mutex
 *   EAGAIN           10 000 threads are already waiting, or the server is out of memory; nothing was done
 *   ENOMEM           there is no memory for the wait; nothing was done
 *   ENOLCK           as above, and nothing was done; or DMUTEX_ONDOWN=fail and no answer within command_timeout: then
 *                    the hold is lost, because the server may have executed the wait
 *   ENOTSUP          as above
 *
 * Once the server has queued the waiter, the call blocks until the caller owns the mutex again, however long the
 * server cannot be reached.
 *
 * Afterwards the calling thread's hold has a new fencing token.
 *
 * Source: POSIX pthread_cond_wait(); "Conditions" in doc/design/protocol.md.
 */
DMUTEX_API int dcond_wait(dcond_t *cond, dmutex_t *mutex);

/*
 * Like dcond_wait(), but waits no longer than until the absolute time `abstime` on the condition variable's clock.  A
 * waiter that times out has also released the mutex and acquired it again, which may take longer than `abstime`.
 *
 * Returns as dcond_wait(), or ETIMEDOUT: no signal came, and the caller owns the mutex (EOWNERDEAD takes precedence);
 * or EINVAL, nothing done, if tv_nsec is not in 0..999999999.
 *
 * Source: POSIX pthread_cond_timedwait().
 */
DMUTEX_API int dcond_timedwait(dcond_t *cond, dmutex_t *mutex, const struct timespec *abstime);

/*
 * Like dcond_timedwait(), with CLOCK_REALTIME or CLOCK_MONOTONIC instead of the condition variable's clock.  EINVAL,
 * nothing done, for any other clock.
 *
 * Source: POSIX.1-2024 pthread_cond_clockwait().
 */
DMUTEX_API int dcond_clockwait(dcond_t *cond, dmutex_t *mutex, clockid_t clock_id, const struct timespec *abstime);

/*
 * Wakes one of the threads that are waiting now, which returns once it owns the mutex.  The caller need not own the
 * mutex.
 *
 * Returns 0, also if no thread waits (the signal is not kept for later waiters); ENOLCK if the server does not answer
 * within command_timeout: call again; an extra signal causes a spurious wake-up.
 *
 * Blocks for one round trip, at most command_timeout.
 *
 * Source: POSIX pthread_cond_signal().
 */
DMUTEX_API int dcond_signal(dcond_t *cond);

/*
 * Wakes all threads that are waiting now, which return one after another as they come to own the mutex.
 *
 * Returns as dcond_signal().  Blocks for one round trip for every 256 threads, at most command_timeout.
 *
 * Source: POSIX pthread_cond_broadcast().
 */
DMUTEX_API int dcond_broadcast(dcond_t *cond);

DMUTEX_END_DECLS

#endif

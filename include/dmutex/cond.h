/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Condition variables: the functions of <pthread.h>, across hosts.
 *
 * Common to all functions of this header, unless said otherwise:
 *
 *   Returns    0 or a positive errno value; never EINTR; errno itself stays unchanged.
 *              dmutex_strerror_np() describes the failure in a sentence.
 *   Threads    Any thread, at any time.
 *   Signals    Not async-signal-safe.  A signal handler that runs during a wait does not end the wait.
 *   Cancel     The wait functions are cancellation points, the other functions are not.  A cancelled waiter
 *              owns the mutex again before the thread's cleanup handlers run, and takes no signal from
 *              other waiters.
 *   Fork       The child of fork() waits on nothing; a private object without a name is another
 *              condition variable in the child.
 *   Since      0.1, every function.
 *
 * A named condition variable works with mutexes of the same group ("group/leaf").  An anonymous condition variable
 * works with mutexes of any group: the first waiter's mutex sets the group, until no thread waits.  All threads
 * waiting at one moment must use one mutex.
 *
 * The mutex of a wait decides the kind of wait.  A wait with a local mutex (mutex.h) is libc's wait, whatever
 * name the condition variable has: a signal by a thread of the same process ends it.  Signal and broadcast reach
 * both kinds of waiters.  They always ask the server about a named condition variable; about an anonymous
 * condition variable only if a thread ever waited on it with a mutex of the server.
 *
 * Further errors that every function which uses a condition variable may return:
 *
 *   EINVAL     the object is not a condition variable, was destroyed, or has an empty or too long name
 *   ENOLCK     no server is configured properly, or the server refuses for good (see the sentence)
 *   ENOTSUP    of a wait or a signal: a quorum of servers (redis+quorum://) has no condition variables
 *
 * Example (examples/queue.c):
 *
 *     dmutex_lock(&ledger);
 *     while (is_empty())
 *         dcond_wait(&filled, &ledger);     // gives the mutex back, sleeps, owns it again
 *     take_one();
 *     dmutex_unlock(&ledger);
 */
#ifndef DMUTEX_COND_H
#define DMUTEX_COND_H

#include <dmutex/types.h>

DMUTEX_BEGIN_DECLS

/*
 * Sets up a condition variable from attributes; NULL means the defaults.  Copies the attributes.  Does not talk to
 * the server, and does not read the old bytes of *cond.
 *
 * Returns 0; EINVAL for an attribute object that dcondattr_init() has not set up.
 *
 * Source: POSIX pthread_cond_init().
 */
DMUTEX_API int dcond_init(dcond_t *cond, const dcondattr_t *attr);

/* The same with a name, as dmutex_init_np(). */
DMUTEX_API int dcond_init_np(dcond_t *cond, const char *name, const dcondattr_t *attr);

/*
 * Ends the use of an object.  The named condition variable stays for other objects; an anonymous condition
 * variable is deleted on the server.  Legal at once after a broadcast, even while the woken waiters have not
 * returned yet.
 *
 * Returns 0; EBUSY when a thread of this process waits on the object, or, on an anonymous object, a thread of
 * any process; EINVAL when the object is destroyed already.
 *
 * May ask the server, for at most command_timeout; a missing answer is no error.
 *
 * Source: POSIX pthread_cond_destroy().
 */
DMUTEX_API int dcond_destroy(dcond_t *cond);

/* Copies the name with its NUL into buf.  ENOENT: none; ERANGE: buf is too small, untouched. */
DMUTEX_API int dcond_getname_np(const dcond_t *cond, char *buf, size_t size);

/*
 * Gives the mutex back at any recursion depth and waits for a signal, both in one step: no signal can come
 * between.  Returns owning the mutex at the same depth.  May return without a signal: call dcond_wait() in a
 * loop with a test of the predicate.
 *
 * Returns
 *   0                woken; the caller owns the mutex
 *   EOWNERDEAD       the caller owns the mutex, robust; an owner died meanwhile: mend the state and
 *                    call dmutex_consistent()
 *   ENOTRECOVERABLE  not owned: nobody can own the mutex any more
 *   EPERM            the caller does not own the mutex: nothing was done; or the hold was lost, also when a
 *                    request stays without an answer and the server refuses the repeated request
 *   EINVAL           other threads wait with another mutex, or the groups differ, or the group of the mutex is
 *                    longer than 179 bytes and the condition variable has no name; nothing was done, the
 *                    caller still owns the mutex
 *   EAGAIN           10 000 wait already, or the server is out of memory; nothing was done
 *   ENOMEM           there is no memory for the wait; nothing was done
 *   ENOLCK           as above, nothing was done; or DMUTEX_ONDOWN=fail and no answer within
 *                    command_timeout: then the hold is lost, because the server may have done the wait
 *
 * Once the server has queued the waiter, blocks until the caller owns the mutex again, however long the server
 * cannot be reached.
 *
 * The calling thread's hold has a new fencing token afterwards.
 *
 * Source: POSIX pthread_cond_wait(); "Conditions" in doc/design/protocol.md.
 */
DMUTEX_API int dcond_wait(dcond_t *cond, dmutex_t *mutex);

/*
 * Does as dcond_wait() until the absolute time `abstime` of the condition variable's clock.  A timed out waiter
 * also gives the mutex back and owns it again; `abstime` does not bound the time of owning the mutex again.
 *
 * Returns as dcond_wait(), and ETIMEDOUT: no signal came, the caller owns the mutex (EOWNERDEAD
 * comes first); EINVAL, nothing done, when tv_nsec is not in 0..999999999.
 *
 * Source: POSIX pthread_cond_timedwait().
 */
DMUTEX_API int dcond_timedwait(dcond_t *cond, dmutex_t *mutex, const struct timespec *abstime);

/*
 * Does as dcond_timedwait() by CLOCK_REALTIME or CLOCK_MONOTONIC, whatever clock the condition variable has.  EINVAL,
 * nothing done, for another clock.
 *
 * Source: POSIX.1-2024 pthread_cond_clockwait().
 */
DMUTEX_API int dcond_clockwait(dcond_t *cond, dmutex_t *mutex, clockid_t clock_id, const struct timespec *abstime);

/*
 * Wakes a single thread among the threads waiting now: the woken thread returns once it owns the mutex.  The
 * caller need not own the mutex.  One round trip.
 *
 * Returns 0, also when no thread waits (the signal is not kept for later waiters); ENOLCK when the server does
 * not answer within command_timeout: call again; a signal too many causes a spurious wake-up.
 *
 * Source: POSIX pthread_cond_signal().
 */
DMUTEX_API int dcond_signal(dcond_t *cond);

/*
 * Wakes all threads waiting now: each thread returns when it owns the mutex, one after the other.  One round
 * trip for each 256 threads.  Returns as dcond_signal().
 *
 * Source: POSIX pthread_cond_broadcast().
 */
DMUTEX_API int dcond_broadcast(dcond_t *cond);

DMUTEX_END_DECLS

#endif

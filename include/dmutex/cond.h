/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Condition variables: those of <pthread.h>, across hosts.
 *
 * Common to all functions of this header, unless said otherwise:
 *
 *   Returns    0 or a positive errno value; never EINTR; errno itself is left as it was.  What
 *              went wrong is told in a sentence by dmutex_strerror_np().
 *   Threads    Any thread, at any time.
 *   Signals    Not async-signal-safe.  A signal handler that runs during a wait does not end it.
 *   Cancel     The wait functions are cancellation points, and no other.  A cancelled waiter owns
 *              the mutex again before its cleanup handlers run, and takes no signal from others.
 *   Fork       The child of fork() waits on nothing; a private object without a name is another one in
 *              the child.
 *   Since      0.1, each of them.
 *
 * A named condition variable works with mutexes of its own group ("group/leaf"), an anonymous one
 * with any: the group of the mutex of its first waiter, until nobody waits.  All waiters of one
 * moment must use one mutex.
 *
 * A condition variable follows the mutex that it is waited on with.  A wait with a local mutex (mutex.h) is
 * libc's, whatever name the condition variable has: a signal of a thread of the same process ends it.  Signal
 * and broadcast reach both kinds of waiters, and ask the server about a named condition variable always, about
 * an anonymous one if it was ever waited on with a mutex of the server.
 *
 * Further errors that every function which uses a condition variable may return:
 *
 *   EINVAL     the object is none, was destroyed, or its name is empty or too long
 *   ENOLCK     no server is configured properly, or the server refuses for good (see the sentence)
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
 * Sets up a condition variable by attributes, which may be NULL and are copied.  Does not talk to
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
 * Ends the use of an object.  The condition variable of that name goes on for others; an anonymous
 * one is deleted on the server.  Legal at once after a broadcast, also while those it woke have not
 * returned yet.
 *
 * Returns 0; EBUSY when a thread of this process waits on it, or, on an anonymous one, of any
 * process; EINVAL when it is destroyed already.
 *
 * May ask the server, for command_timeout at most; one that does not answer is no error.
 *
 * Source: POSIX pthread_cond_destroy().
 */
DMUTEX_API int dcond_destroy(dcond_t *cond);

/* Copies the name with its NUL into buf.  ENOENT: none; ERANGE: buf is too small, untouched. */
DMUTEX_API int dcond_getname_np(const dcond_t *cond, char *buf, size_t size);

/*
 * Gives the mutex back, whatever its recursion depth, and waits for a signal, both in one step that
 * no signal can come between; returns owning the mutex at the same depth.  May return without a
 * signal: call it in a loop that looks at the predicate.
 *
 * Returns
 *   0                woken; the caller owns the mutex
 *   EOWNERDEAD       the caller owns the mutex, robust; an owner died meanwhile: mend the state and
 *                    call dmutex_consistent()
 *   ENOTRECOVERABLE  not owned: nobody can own the mutex any more
 *   EPERM            the caller does not own the mutex: nothing was done; or its hold was lost, which
 *                    it also is when a request stays without an answer and its repetition is refused
 *   EINVAL           others wait with another mutex, or the groups differ, or the group of the mutex is longer
 *                    than 179 bytes and the condition variable has no name; nothing was done, the mutex is
 *                    still owned
 *   EAGAIN           10 000 wait already, or the server is out of memory; nothing was done
 *   ENOMEM           there is no memory for the wait; nothing was done
 *   ENOLCK           as above, nothing was done; or DMUTEX_ONDOWN=fail and no answer within
 *                    command_timeout: then the hold is lost, for the wait may have been done
 *
 * Blocks until the caller owns the mutex again, however long the server cannot be reached, once the
 * server has taken the waiter in.
 *
 * The calling thread's hold has a new fencing token afterwards.
 *
 * Source: POSIX pthread_cond_wait(); "Conditions" in doc/design/protocol.md.
 */
DMUTEX_API int dcond_wait(dcond_t *cond, dmutex_t *mutex);

/*
 * The same until the absolute time `abstime` of the condition variable's clock.  The mutex is given
 * back and owned again also when that time is past; owning it again is not bounded by it.
 *
 * Returns as dcond_wait(), and ETIMEDOUT: no signal came, the caller owns the mutex (EOWNERDEAD is
 * told before it); EINVAL, nothing done, when tv_nsec is not in 0..999999999.
 *
 * Source: POSIX pthread_cond_timedwait().
 */
DMUTEX_API int dcond_timedwait(dcond_t *cond, dmutex_t *mutex, const struct timespec *abstime);

/*
 * The same by CLOCK_REALTIME or CLOCK_MONOTONIC, whatever clock the condition variable has.  EINVAL,
 * nothing done, for another clock.
 *
 * Source: POSIX.1-2024 pthread_cond_clockwait().
 */
DMUTEX_API int dcond_clockwait(dcond_t *cond, dmutex_t *mutex, clockid_t clock_id, const struct timespec *abstime);

/*
 * Wakes one thread that waits now, if any does: it returns once it owns the mutex.  The caller need
 * not own the mutex.  One round trip.
 *
 * Returns 0, also when nobody waits (nothing is kept for later waiters); ENOLCK when the server
 * does not answer within command_timeout: call again, a signal too many is a spurious wake-up.
 *
 * Source: POSIX pthread_cond_signal().
 */
DMUTEX_API int dcond_signal(dcond_t *cond);

/*
 * Wakes all threads that wait now: each returns when it owns the mutex, one after the other.  One
 * round trip for each 256 of them.  Returns as dcond_signal().
 *
 * Source: POSIX pthread_cond_broadcast().
 */
DMUTEX_API int dcond_broadcast(dcond_t *cond);

DMUTEX_END_DECLS

#endif

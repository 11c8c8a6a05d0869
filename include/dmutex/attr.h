/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attributes of mutexes and of condition variables.
 *
 * An attribute object belongs to the caller and holds no memory: dmutex_init() and dcond_init() copy it, and later
 * changes do not affect the mutex or condition variable.
 *
 * Common to all functions of this header:
 *
 *   Returns    0 or a positive errno value; errno itself stays unchanged.  On failure nothing is changed.
 *              EINVAL  the object was not set up by its init function, or is destroyed; a value is not among those
 *                      listed; a NULL pointer where a value is required.
 *   Blocking   None.  No I/O.
 *   Threads    Any thread; one at a time for one object.
 *   Signals    Not async-signal-safe.
 *   Cancel     No function here is a cancellation point.
 *   Fork       The child has a copy of the object, which it may use.
 *   Since      0.1, every function.
 *   Source     POSIX pthread_mutexattr_*() and pthread_condattr_*(); for the _np functions: doc/man/dmutexattr.3.
 */
#ifndef DMUTEX_ATTR_H
#define DMUTEX_ATTR_H

#include <dmutex/types.h>

DMUTEX_BEGIN_DECLS

/* Sets all attributes to their defaults: anonymous, normal, stalled, private, a lease of 10 s. */
DMUTEX_API int dmutexattr_init(dmutexattr_t *attr);

/* Ends the use of the object: until it is set up again, every use returns EINVAL. */
DMUTEX_API int dmutexattr_destroy(dmutexattr_t *attr);

/*
 * PTHREAD_MUTEX_NORMAL, _RECURSIVE, _ERRORCHECK or _DEFAULT (which is _NORMAL).  PTHREAD_MUTEX_ADAPTIVE_NP means
 * libc's adaptive type for a local mutex (mutex.h), and _NORMAL for a mutex of the server.
 */
DMUTEX_API int dmutexattr_settype(dmutexattr_t *attr, int type);
DMUTEX_API int dmutexattr_gettype(const dmutexattr_t *attr, int *ret_type);

/*
 * PTHREAD_MUTEX_STALLED (default) or PTHREAD_MUTEX_ROBUST: after an owner has died, the next owner of a robust mutex
 * gets EOWNERDEAD.  Unlike in POSIX, a stalled mutex whose owner died does not stay locked for ever: once the lease
 * has ended, the next owner gets 0 and a higher token.
 */
DMUTEX_API int dmutexattr_setrobust(dmutexattr_t *attr, int robust);
DMUTEX_API int dmutexattr_getrobust(const dmutexattr_t *attr, int *ret_robust);

/* PTHREAD_PROCESS_PRIVATE (default) or _SHARED.  Matters only for anonymous mutexes. */
DMUTEX_API int dmutexattr_setpshared(dmutexattr_t *attr, int pshared);
DMUTEX_API int dmutexattr_getpshared(const dmutexattr_t *attr, int *ret_pshared);

/*
 * PTHREAD_PRIO_NONE (default), _INHERIT or _PROTECT: libc's protocols, for local mutexes.  dmutex_init() returns
 * ENOTSUP for a mutex of the server with a protocol other than _NONE.  If _INHERIT was set through
 * pthread_mutexattr_setprotocol() of <dmutex/pthread.h>, it is a hint for a mutex of the server: it is accepted, is
 * returned by getprotocol, and has no effect.
 */
DMUTEX_API int dmutexattr_setprotocol(dmutexattr_t *attr, int protocol);
DMUTEX_API int dmutexattr_getprotocol(const dmutexattr_t *attr, int *ret_protocol);

/* As in libc, for local mutexes of PTHREAD_PRIO_PROTECT: a priority of SCHED_FIFO.  EINVAL for any other number. */
DMUTEX_API int dmutexattr_setprioceiling(dmutexattr_t *attr, int ceiling);
DMUTEX_API int dmutexattr_getprioceiling(const dmutexattr_t *attr, int *ret_ceiling);

/*
 * The name, which is copied: 1 to DMUTEX_NAME_MAX_NP bytes, "group/leaf" or without a slash.  NULL removes the name.
 * EINVAL if the name is empty or too long, or has an empty group or leaf.
 */
DMUTEX_API int dmutexattr_setname_np(dmutexattr_t *attr, const char *name);

/*
 * Copies the name and its NUL into buf, which has size bytes.
 * ENOENT: there is no name.  ERANGE: buf is too small, and unchanged.
 */
DMUTEX_API int dmutexattr_getname_np(const dmutexattr_t *attr, char *buf, size_t size);

/*
 * The lease: how long the server keeps the mutex after the owner's last message, in milliseconds: 100 to 3 600 000.
 * Default: Lease of dmutex.conf(5), or 10 000; getlease always returns 10 000 for it.  The library renews the lease
 * every third of this time while the owner lives.  If the owner is killed, the mutex is free after at most one lease.
 */
DMUTEX_API int dmutexattr_setlease_np(dmutexattr_t *attr, unsigned ms);
DMUTEX_API int dmutexattr_getlease_np(const dmutexattr_t *attr, unsigned *ret_ms);

/*
 * The longest hold, in milliseconds since the lock or the last dmutex_renew_np(), at most 4 294 967 294; then the hold
 * is lost.  0 (default) means no limit.  For jobs that must not run longer.
 */
DMUTEX_API int dmutexattr_setmaxhold_np(dmutexattr_t *attr, unsigned ms);
DMUTEX_API int dmutexattr_getmaxhold_np(const dmutexattr_t *attr, unsigned *ret_ms);

/*
 * Linger: how long the process keeps the lease after the last unlock unless another process asks for the mutex, in
 * milliseconds, at most 4 294 967 294.  A lock within this time needs no message to the server.  Default 0, or
 * DMUTEX_LINGER.  No effect on a robust mutex.
 *
 * The price: if the process is killed or stopped, others wait until the lease ends, although no thread held the mutex;
 * a trylock in another process finds a kept mutex busy at first, and asks for the lease back for the next try;
 * dmutex_destroy() finds a kept anonymous mutex busy.  Use a lease of 1000 to 2000 ms with linger.
 */
DMUTEX_API int dmutexattr_setlinger_np(dmutexattr_t *attr, unsigned ms);
DMUTEX_API int dmutexattr_getlinger_np(const dmutexattr_t *attr, unsigned *ret_ms);

/*
 * DMUTEX_THROUGHPUT_NP (default): processes are served in the order of their arrival; the threads of one process hand
 * the mutex on to each other without the server, for at most 64 holds and 10 ms while another process waits.
 * DMUTEX_FAIR_NP: FIFO over all threads of all hosts; each lock and unlock is a message to the server.
 */
DMUTEX_API int dmutexattr_setfairness_np(dmutexattr_t *attr, int fairness);
DMUTEX_API int dmutexattr_getfairness_np(const dmutexattr_t *attr, int *ret_fairness);

/* ---- condition variables ----------------------------------------------------------------- */

/* Sets all attributes to their defaults: anonymous, private, CLOCK_REALTIME. */
DMUTEX_API int dcondattr_init(dcondattr_t *attr);

/* Ends the use of the object: until it is set up again, every use returns EINVAL. */
DMUTEX_API int dcondattr_destroy(dcondattr_t *attr);

/* The clock of dcond_timedwait(): CLOCK_REALTIME (default) or CLOCK_MONOTONIC.  EINVAL for any other clock. */
DMUTEX_API int dcondattr_setclock(dcondattr_t *attr, clockid_t clock_id);
DMUTEX_API int dcondattr_getclock(const dcondattr_t *attr, clockid_t *ret_clock);

/* PTHREAD_PROCESS_PRIVATE (default) or _SHARED.  Matters only for anonymous condition variables. */
DMUTEX_API int dcondattr_setpshared(dcondattr_t *attr, int pshared);
DMUTEX_API int dcondattr_getpshared(const dcondattr_t *attr, int *ret_pshared);

/*
 * The name, as for dmutexattr_setname_np() and dmutexattr_getname_np().  Condition variables and mutexes have separate
 * name spaces.
 */
DMUTEX_API int dcondattr_setname_np(dcondattr_t *attr, const char *name);
DMUTEX_API int dcondattr_getname_np(const dcondattr_t *attr, char *buf, size_t size);

DMUTEX_END_DECLS

#endif

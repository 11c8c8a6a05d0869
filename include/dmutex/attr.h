/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attributes of mutexes and of condition variables.
 *
 * An attribute object belongs to the caller alone: dmutex_init() and dcond_init() copy the object, and later
 * changes do not reach the mutex or condition variable.  No function here blocks or does I/O.
 * All functions return 0 or a positive errno value:
 *
 *   EINVAL     the object was not set up by its init function or is destroyed; the value is not
 *              among the named values; a NULL pointer.  Nothing is changed.
 *
 * Since 0.1.  Source: POSIX pthread_mutexattr_*() and pthread_condattr_*(); the _np functions: doc/man/dmutexattr.3.
 */
#ifndef DMUTEX_ATTR_H
#define DMUTEX_ATTR_H

#include <dmutex/types.h>

DMUTEX_BEGIN_DECLS

/* Sets all attributes to their defaults: anonymous, normal, stalled, private, lease 10 s. */
DMUTEX_API int dmutexattr_init(dmutexattr_t *attr);

/* Ends the use of the object: every later use returns EINVAL until the caller sets the object up again. */
DMUTEX_API int dmutexattr_destroy(dmutexattr_t *attr);

/*
 * PTHREAD_MUTEX_NORMAL, _RECURSIVE, _ERRORCHECK or _DEFAULT (which is _NORMAL).  PTHREAD_MUTEX_ADAPTIVE_NP means
 * libc's adaptive type for local mutexes (mutex.h), and _NORMAL for mutexes of the server.
 */
DMUTEX_API int dmutexattr_settype(dmutexattr_t *attr, int type);
DMUTEX_API int dmutexattr_gettype(const dmutexattr_t *attr, int *ret_type);

/*
 * PTHREAD_MUTEX_STALLED (default) or PTHREAD_MUTEX_ROBUST: when a holder died, the next holder of a robust mutex
 * gets EOWNERDEAD.  Unlike POSIX, a stalled mutex of a dead holder is not stuck for ever: the next holder gets 0
 * once the lease has ended, and a higher token.
 */
DMUTEX_API int dmutexattr_setrobust(dmutexattr_t *attr, int robust);
DMUTEX_API int dmutexattr_getrobust(const dmutexattr_t *attr, int *ret_robust);

/* PTHREAD_PROCESS_PRIVATE (default) or _SHARED.  Matters to anonymous mutexes only. */
DMUTEX_API int dmutexattr_setpshared(dmutexattr_t *attr, int pshared);
DMUTEX_API int dmutexattr_getpshared(const dmutexattr_t *attr, int *ret_pshared);

/*
 * PTHREAD_PRIO_NONE (default), _INHERIT or _PROTECT, for local mutexes: libc's protocols.  dmutex_init() returns
 * ENOTSUP for a mutex of the server with a protocol other than _NONE.  If pthread_mutexattr_setprotocol() of
 * <dmutex/pthread.h> sets _INHERIT, the protocol is a hint for a mutex of the server: accepted, told by
 * getprotocol, and without effect.
 */
DMUTEX_API int dmutexattr_setprotocol(dmutexattr_t *attr, int protocol);
DMUTEX_API int dmutexattr_getprotocol(const dmutexattr_t *attr, int *ret_protocol);

/* As libc's, for local mutexes of PTHREAD_PRIO_PROTECT: a priority of SCHED_FIFO; EINVAL for another number. */
DMUTEX_API int dmutexattr_setprioceiling(dmutexattr_t *attr, int ceiling);
DMUTEX_API int dmutexattr_getprioceiling(const dmutexattr_t *attr, int *ret_ceiling);

/*
 * The name, copied: 1 to DMUTEX_NAME_MAX_NP bytes, "group/leaf" or one word.  NULL makes the
 * attributes anonymous again.  EINVAL for an empty or too long name, an empty group or leaf.
 */
DMUTEX_API int dmutexattr_setname_np(dmutexattr_t *attr, const char *name);

/* Copies the name with its NUL into buf.  ENOENT: none; ERANGE: buf is too small, untouched. */
DMUTEX_API int dmutexattr_getname_np(const dmutexattr_t *attr, char *buf, size_t size);

/*
 * The lease: how long the server keeps the lock without a message from the holder, in ms: 100 to 3 600 000,
 * default 10 000.  The library renews the lease every third of the lease time while the holder lives.  The mutex
 * of a killed holder is free after at most one lease.
 */
DMUTEX_API int dmutexattr_setlease_np(dmutexattr_t *attr, unsigned ms);
DMUTEX_API int dmutexattr_getlease_np(const dmutexattr_t *attr, unsigned *ret_ms);

/*
 * The longest hold, in ms, from the acquire or the last dmutex_renew_np(); the hold is then lost.
 * 0 (default): none.  A fixed lease, for jobs that must not run on.
 */
DMUTEX_API int dmutexattr_setmaxhold_np(dmutexattr_t *attr, unsigned ms);
DMUTEX_API int dmutexattr_getmaxhold_np(const dmutexattr_t *attr, unsigned *ret_ms);

/*
 * Linger: how long the process keeps the lease after the last unlock, in ms, unless another process asks.  A lock
 * within this time costs no message to the server.  Default 0, or DMUTEX_LINGER; no effect on a robust mutex.
 *
 * The price: others wait until the lease of a killed or stopped process ends, although no thread held the mutex, and
 * a trylock of another process finds a kept mutex busy at first, and asks the lease back for the next try;
 * dmutex_destroy() finds a kept anonymous mutex busy.  Recommended with linger: a lease of 1000 to 2000 ms.
 */
DMUTEX_API int dmutexattr_setlinger_np(dmutexattr_t *attr, unsigned ms);
DMUTEX_API int dmutexattr_getlinger_np(const dmutexattr_t *attr, unsigned *ret_ms);

/*
 * DMUTEX_THROUGHPUT_NP (default): processes are served in the order of their arrival; the threads of a process hand the
 * mutex on to each other without the server, while another process waits for 64 holds and 10 ms at most.
 * DMUTEX_FAIR_NP: FIFO over all threads of all hosts; each lock and unlock is a message to the server.
 */
DMUTEX_API int dmutexattr_setfairness_np(dmutexattr_t *attr, int fairness);
DMUTEX_API int dmutexattr_getfairness_np(const dmutexattr_t *attr, int *ret_fairness);

/* ---- condition variables ----------------------------------------------------------------- */

/* Sets all attributes to their defaults: anonymous, private, CLOCK_REALTIME. */
DMUTEX_API int dcondattr_init(dcondattr_t *attr);

/* Ends the use of the object: every later use returns EINVAL until the caller sets the object up again. */
DMUTEX_API int dcondattr_destroy(dcondattr_t *attr);

/* The clock of dcond_timedwait(): CLOCK_REALTIME (default) or CLOCK_MONOTONIC; others: EINVAL. */
DMUTEX_API int dcondattr_setclock(dcondattr_t *attr, clockid_t clock_id);
DMUTEX_API int dcondattr_getclock(const dcondattr_t *attr, clockid_t *ret_clock);

/* PTHREAD_PROCESS_PRIVATE (default) or _SHARED.  Matters to anonymous condition variables only. */
DMUTEX_API int dcondattr_setpshared(dcondattr_t *attr, int pshared);
DMUTEX_API int dcondattr_getpshared(const dcondattr_t *attr, int *ret_pshared);

/* The name, as dmutexattr_setname_np().  Condition variables and mutexes have separate name spaces. */
DMUTEX_API int dcondattr_setname_np(dcondattr_t *attr, const char *name);
DMUTEX_API int dcondattr_getname_np(const dcondattr_t *attr, char *buf, size_t size);

DMUTEX_END_DECLS

#endif

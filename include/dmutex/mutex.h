/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mutexes: the functions of <pthread.h>, across hosts, and functions beyond POSIX (_np).
 *
 * Common to all functions of this header, unless said otherwise:
 *
 *   Returns    0 or a positive errno value; never EINTR; errno itself stays unchanged.
 *              dmutex_strerror_np() describes the failure in a sentence.
 *   Threads    Any thread, at any time.
 *   Signals    Not async-signal-safe, as the pthread functions are not.  No signal handler is
 *              installed, no SIGPIPE raised; a handler that runs meanwhile does not end the call.
 *   Cancel     No function here is a cancellation point.
 *   Fork       The child of fork() is another owner and holds none of the parent's mutexes.
 *              A child of vfork() must not call any function here.
 *   Since      0.1, every function.
 *
 * Local mutexes: a mutex without a name that is PTHREAD_PROCESS_PRIVATE, the default and an all-zero
 * object, is libc's own pthread_mutex_t, inside the object.  No server knows a local mutex.  The functions of
 * <pthread.h> do the same as libc's functions, cancellation, fork() and destroy included; the comment of every
 * other function says how the function treats a local mutex.  DMUTEX_PRIVATE=server in the environment, read at
 * the first use, makes such objects anonymous mutexes of the server instead, for tests of the protocol.  All
 * statements below about leases, servers and tokens are about mutexes of the server: mutexes with a name, or
 * PTHREAD_PROCESS_SHARED.
 *
 * Further errors that every function which uses a mutex may return:
 *
 *   EINVAL     the object is not a mutex, was destroyed, or its name is empty or too long
 *   ENOLCK     no server is configured properly, or the server refuses for good (see the sentence)
 */
#ifndef DMUTEX_MUTEX_H
#define DMUTEX_MUTEX_H

#include <dmutex/types.h>

DMUTEX_BEGIN_DECLS

/*
 * Sets up a mutex from attributes; NULL means the defaults.  Copies the attributes.  The mutex is free unless
 * another process holds the same name.  Does not talk to the server, and does not read the old
 * bytes of *mutex.
 *
 * Returns 0; EINVAL for an attribute object that dmutexattr_init() has not set up; ENOTSUP for a mutex
 * of the server with a protocol other than PTHREAD_PRIO_NONE; libc's errors for a local mutex.
 *
 * Source: POSIX pthread_mutex_init().
 */
DMUTEX_API int dmutex_init(dmutex_t *mutex, const dmutexattr_t *attr);

/*
 * Does as dmutex_init() with a name.  Copies the name, in the place of the attributes' name.
 *
 * Returns 0; EINVAL for attributes as above, or a name that is NULL, empty, longer than
 * DMUTEX_NAME_MAX_NP, or has an empty group or leaf ("/x", "x/").
 */
DMUTEX_API int dmutex_init_np(dmutex_t *mutex, const char *name, const dmutexattr_t *attr);

/*
 * Ends the use of an object.  The named mutex stays for other objects; an anonymous mutex is
 * deleted on the server.  Legal at once after the caller's own unlock, even while another thread
 * is still returning from unlock.  A name that is not recoverable, and neither held nor waited
 * for, becomes clean again, if the object is robust or this process has met ENOTRECOVERABLE.
 *
 * Returns 0; EBUSY when a thread of this process holds the mutex or waits for the mutex, or, for an
 * anonymous mutex, a thread of any process, or another process keeps the lease (dmutexattr_setlinger_np());
 * EINVAL when the object is destroyed already.
 *
 * Blocks for the answers to releases that are pending, and for the deletion, each at most
 * command_timeout.  A missing answer is no error: the keys left on the server expire.
 *
 * Source: POSIX pthread_mutex_destroy().
 */
DMUTEX_API int dmutex_destroy(dmutex_t *mutex);

/*
 * Locks the mutex and waits without a time limit.  Uncontended: one round trip.  Contended: the thread sleeps
 * until the owner's release, which makes the thread the owner on the server, or until the owner's lease
 * ends.  While the server cannot be reached the call goes on trying (DMUTEX_ONDOWN=fail: ENOLCK).
 *
 * Returns
 *   0                the caller owns the mutex
 *   EOWNERDEAD       the caller owns the mutex, robust; an owner died, the guarded state may be
 *                    half changed: mend it and call dmutex_consistent() before the unlock
 *   ENOTRECOVERABLE  not owned: an owner unlocked after EOWNERDEAD without dmutex_consistent()
 *   EDEADLK          not owned anew: PTHREAD_MUTEX_ERRORCHECK, and the caller owns the mutex already
 *   EAGAIN           not owned: recursion limit, the server is out of memory, or 10 000 wait
 *   ENOLCK, EINVAL   not owned, see above
 *
 * A PTHREAD_MUTEX_NORMAL mutex that the caller owns already: blocks for ever, as in POSIX.
 * When the caller's earlier hold of the name was lost, this is a fresh acquire.
 *
 * Source: POSIX pthread_mutex_lock(); doc/design/protocol.md.
 */
DMUTEX_API int dmutex_lock(dmutex_t *mutex);

/*
 * Locks if the mutex is free now: one round trip, answered within command_timeout.  Never waits
 * for a lease.  A free mutex with waiters goes to the waiters.
 *
 * Returns as dmutex_lock(), and EBUSY when any thread owns the mutex, the caller included (except for
 * PTHREAD_MUTEX_RECURSIVE); ENOLCK when the server does not answer in time: then nothing is held.
 *
 * Source: POSIX pthread_mutex_trylock().
 */
DMUTEX_API int dmutex_trylock(dmutex_t *mutex);

/*
 * Does as dmutex_lock(), until the absolute time `abstime` of CLOCK_REALTIME.  A free mutex is locked even if abstime
 * is past: the server gets at least 50 ms to answer.
 *
 * Returns as dmutex_lock(), and ETIMEDOUT (not owned, never early), also when the server could not
 * be reached until `abstime`; EINVAL when the call would have to wait and tv_nsec is not in 0..999999999.
 *
 * When the server does not answer about the deadline, the library gives a late grant back: until
 * then, for at most a lease, other threads wait.
 *
 * Source: POSIX pthread_mutex_timedlock().
 */
DMUTEX_API int dmutex_timedlock(dmutex_t *mutex, const struct timespec *abstime);

/*
 * Does as dmutex_timedlock() by CLOCK_REALTIME or CLOCK_MONOTONIC.
 *
 * Returns as dmutex_timedlock(), and EINVAL for another clock, also when the mutex is free.
 *
 * Source: POSIX.1-2024 pthread_mutex_clocklock().
 */
DMUTEX_API int dmutex_clocklock(dmutex_t *mutex, clockid_t clock_id, const struct timespec *abstime);

/*
 * Gives the mutex back, to the first waiter if any.  Touches no byte of *mutex once
 * another thread can own the mutex: the last user may free the object straight after.
 *
 * Returns 0; EPERM when the calling thread does not own the mutex: no acquire before, or the hold was lost.  The
 * same for every type.  0 also when the server does not answer within command_timeout: the hold has ended for
 * the caller, and the release is pending: the library repeats the release until the server confirms; at the
 * latest the end of the lease ends the hold.
 *
 * Blocks until the server has answered, command_timeout at most.  When unlock has returned without a pending
 * release, the mutex is free, or the next owner's: a thread told about the return gets the mutex by trylock,
 * unless another thread was quicker.  No cancellation point.
 *
 * Source: POSIX pthread_mutex_unlock(); "unlock" in doc/design/protocol.md.
 */
DMUTEX_API int dmutex_unlock(dmutex_t *mutex);

/*
 * After EOWNERDEAD: the guarded state is whole again.  The next owner gets 0.
 *
 * Returns 0; EINVAL when the mutex is not robust, the caller did not get EOWNERDEAD for this hold,
 * has called dmutex_consistent() for this hold already, lost the hold, or is not the owner; ENOLCK when the
 * server does not answer within command_timeout (call again).
 *
 * Source: POSIX pthread_mutex_consistent().
 */
DMUTEX_API int dmutex_consistent(dmutex_t *mutex);

/*
 * Do as libc's functions, for local mutexes.  There are no priority ceilings across hosts: for mutexes of the server
 * both return EINVAL, as POSIX asks for the protocol PTHREAD_PRIO_NONE, and touch nothing.
 */
DMUTEX_API int dmutex_getprioceiling(const dmutex_t *mutex, int *ret_ceiling);
DMUTEX_API int dmutex_setprioceiling(dmutex_t *mutex, int ceiling, int *ret_old_ceiling);

/*
 * Copies the name, with its NUL, into buf of size bytes.
 *
 * Returns 0; ENOENT for an anonymous mutex; ERANGE when buf is too small (then untouched).
 */
DMUTEX_API int dmutex_getname_np(const dmutex_t *mutex, char *buf, size_t size);

/*
 * Asks the server now to confirm the caller's hold for a whole lease; a max-hold starts anew.
 *
 * Returns 0 confirmed; EPERM not held or lost; ENOLCK no answer within command_timeout: the hold
 * goes on as long as dmutex_remaining_np() says.  A local mutex: 0 while the caller owns it, no I/O.
 */
DMUTEX_API int dmutex_renew_np(dmutex_t *mutex);

/*
 * Gets the fencing token of the caller's hold: greater than the token of every hold of this name before, on
 * any host.  Give the token to the guarded resource, and let the resource refuse a lower token.  No I/O;
 * only with a quorum of servers the first call of a hold asks the servers, for command_timeout at most.
 *
 * Returns 0; ENOLCK if no majority of a quorum has confirmed the token; EPERM when the caller neither holds the
 * mutex nor has just lost the hold (a lost hold still tells its old token); ENOTSUP for a local mutex.
 */
DMUTEX_API int dmutex_token_np(dmutex_t *mutex, uint64_t *ret_token);

/*
 * Gets the milliseconds for which the caller's hold is certain, by the local CLOCK_BOOTTIME.  No I/O.
 *
 * Returns 0; EPERM when the caller does not hold the mutex; a lost hold returns 0 with *ret_ms = 0.  A held local
 * mutex: INT64_MAX, because such a hold cannot be lost.
 */
DMUTEX_API int dmutex_remaining_np(dmutex_t *mutex, int64_t *ret_ms);

/*
 * Gets the recursion depth of the calling thread, 0 when the thread does not hold the mutex.  No I/O.
 *
 * Returns 0.
 */
DMUTEX_API int dmutex_holdcount_np(dmutex_t *mutex, unsigned *ret_count);

/*
 * Asks the server whether any thread holds the mutex.
 *
 * Returns 0 and 0 or 1 in *ret_locked; ENOLCK when the server does not answer within
 * command_timeout.  A local mutex: looks into the object.
 */
DMUTEX_API int dmutex_islocked_np(dmutex_t *mutex, int *ret_locked);

/*
 * Asks the server for all data about the mutex.  info->struct_size must be sizeof(*info).
 *
 * Returns 0; EINVAL for a wrong struct_size; ENOLCK when the server does not answer within
 * command_timeout.  *info is untouched on failure.  A local mutex: this process, the thread's number as the
 * kernel knows it, no token, no owner's name, no waiters; remaining_ms is INT64_MAX while it is locked.
 */
DMUTEX_API int dmutex_getinfo_np(dmutex_t *mutex, dmutex_info_t *info);

/*
 * Breaks the lock of any holder.  A message tells the owner, or at the latest the owner's next
 * renewal; until then two threads may believe they own the mutex: only a resource with a
 * check of tokens is safe.  The next owner gets a higher token and, if the mutex is robust, EOWNERDEAD.
 *
 * Returns 0, also when the mutex was free; ENOLCK when the server does not answer within command_timeout
 * (the lock may still be broken later); ENOTSUP for a local mutex.
 */
DMUTEX_API int dmutex_forceunlock_np(dmutex_t *mutex);

DMUTEX_END_DECLS

#endif

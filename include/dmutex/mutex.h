/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mutexes: the functions of <pthread.h>, across hosts, and functions beyond POSIX (_np).
 *
 * Common to all functions of this header, unless stated otherwise:
 *
 *   Returns    0 or a positive errno value; never EINTR; errno itself stays unchanged.
 *              dmutex_strerror_np() describes the failure in a sentence.
 *   Blocking   None.
 *   Threads    Any thread, at any time.
 *   Signals    Not async-signal-safe, like the pthread functions.  The library installs no signal handler and raises
 *              no SIGPIPE; a handler that runs during a call does not end it.
 *   Cancel     No function here is a cancellation point.
 *   Fork       The child of fork() is another owner and holds none of the parent's mutexes.
 *              A child of vfork() must not call any function here.
 *   Since      0.1, every function.
 *
 * Local mutexes: a mutex without a name that is PTHREAD_PROCESS_PRIVATE (the default, and what an all-zero object is)
 * is libc's own pthread_mutex_t, inside the object.  No server knows it.  The functions of <pthread.h> are libc's for
 * it, including cancellation, fork() and destroy; the comment of every other function says how it treats a local
 * mutex.  DMUTEX_PRIVATE=server in the environment, read at the first use, makes such objects anonymous mutexes of the
 * server instead, for tests of the protocol.  Everything below about leases, servers and tokens is about mutexes of the
 * server: those that have a name or are PTHREAD_PROCESS_SHARED.
 *
 * Every function that uses a mutex may also return:
 *
 *   EINVAL     the object is not a mutex, was destroyed, or has an empty or too long name; a pointer is NULL where a
 *              value is required
 *   ENOLCK     no server is configured properly, the server refuses permanently, or the library could not be started
 *              for lack of a thread or of descriptors (the sentence says which)
 *   ENOMEM     out of memory
 */
#ifndef DMUTEX_MUTEX_H
#define DMUTEX_MUTEX_H

#include <dmutex/types.h>

DMUTEX_BEGIN_DECLS

/*
 * Sets up a mutex from attributes, which are copied; NULL means the defaults.  The mutex is free unless a thread
 * somewhere holds the same name.  Does not talk to the server, and does not read the previous contents of *mutex.  No
 * other thread may use the object during the call.
 *
 * Returns 0; EINVAL for an attribute object that dmutexattr_init() has not set up; ENOTSUP for a mutex of the server
 * with a protocol other than PTHREAD_PRIO_NONE; libc's errors for a local mutex.
 *
 * Source: POSIX pthread_mutex_init().
 */
DMUTEX_API int dmutex_init(dmutex_t *mutex, const dmutexattr_t *attr);

/*
 * Like dmutex_init(), with a name, which is copied and replaces that of the attributes.
 *
 * Returns as dmutex_init(), and EINVAL if the name is NULL, empty, longer than DMUTEX_NAME_MAX_NP, or has an empty
 * group or leaf ("/x", "x/").
 */
DMUTEX_API int dmutex_init_np(dmutex_t *mutex, const char *name, const dmutexattr_t *attr);

/*
 * Ends the use of an object.  A named mutex remains for other objects; an anonymous mutex is deleted on the server.
 * Allowed immediately after the caller's own unlock, even while another thread is still returning from unlock.  A name
 * that is not recoverable, and neither held nor waited for, becomes clean if the object is robust or this process has
 * met ENOTRECOVERABLE.
 *
 * Returns 0; EBUSY if a thread of this process holds the mutex or waits for it or, for an anonymous mutex, a thread of
 * any process does, or another process keeps the lease (dmutexattr_setlinger_np()); EINVAL if the object has already
 * been destroyed.
 *
 * Blocks for the answers to pending releases, and for the deletion, at most command_timeout each.  A missing answer is
 * not an error: the keys left on the server expire.
 *
 * Source: POSIX pthread_mutex_destroy().
 */
DMUTEX_API int dmutex_destroy(dmutex_t *mutex);

/*
 * Locks the mutex, and waits without a time limit.  Uncontended: one round trip.  Contended: the thread sleeps until
 * the owner's release, which makes it the owner on the server, or until the owner's lease ends.  While the server
 * cannot be reached, the call keeps trying (with DMUTEX_ONDOWN=fail: ENOLCK).
 *
 * Returns
 *   0                the caller owns the mutex
 *   EOWNERDEAD       the caller owns the mutex, which is robust; an owner died and may have left the guarded state
 *                    half changed: repair it and call dmutex_consistent() before the unlock
 *   ENOTRECOVERABLE  not owned: an owner unlocked after EOWNERDEAD without dmutex_consistent()
 *   EDEADLK          PTHREAD_MUTEX_ERRORCHECK, and the caller already owns the mutex; its depth is unchanged
 *   EPERM            not owned: PTHREAD_MUTEX_RECURSIVE, and the caller's hold was lost: unlock first
 *   EAGAIN           not owned: 65 535 levels deep, the server is out of memory, or 10 000 threads are waiting
 *   ENOLCK, ENOMEM, EINVAL  not owned; see above
 *
 * If the caller already owns a PTHREAD_MUTEX_NORMAL mutex, the call blocks for ever, as in POSIX.  If the caller's
 * earlier hold of the name was lost, and the mutex is not recursive, the call begins a new hold.
 *
 * Source: POSIX pthread_mutex_lock(); doc/design/protocol.md.
 */
DMUTEX_API int dmutex_lock(dmutex_t *mutex);

/*
 * Locks the mutex if it is free now.  Never waits for a lease.  A free mutex with waiters goes to the waiters.
 *
 * Returns as dmutex_lock(), except EDEADLK; EBUSY if any thread owns the mutex, the caller included (unless it is
 * PTHREAD_MUTEX_RECURSIVE), if other threads wait for it, or if the server has just started and grants nothing new
 * while earlier owners may come back; ENOLCK if the server does not answer in time: then nothing is held.
 *
 * Blocks for one round trip, at most command_timeout.
 *
 * Source: POSIX pthread_mutex_trylock().
 */
DMUTEX_API int dmutex_trylock(dmutex_t *mutex);

/*
 * Like dmutex_lock(), but waits no longer than until the absolute time `abstime` on CLOCK_REALTIME.  A free mutex is
 * locked even if abstime has passed: the server gets at least 50 ms to answer.
 *
 * Returns as dmutex_lock(); ETIMEDOUT: not owned, never early, perhaps because the server could not be reached until
 * `abstime`; EINVAL if the call would have to wait and tv_nsec is not in 0..999999999.
 *
 * If the server does not answer around the deadline, the library releases a late grant; until then, for at most a
 * lease, other threads wait.
 *
 * Source: POSIX pthread_mutex_timedlock().
 */
DMUTEX_API int dmutex_timedlock(dmutex_t *mutex, const struct timespec *abstime);

/*
 * Like dmutex_timedlock(), with CLOCK_REALTIME or CLOCK_MONOTONIC.
 *
 * Returns as dmutex_timedlock(), and EINVAL for any other clock, even if the mutex is free.
 *
 * Source: POSIX.1-2024 pthread_mutex_clocklock().
 */
DMUTEX_API int dmutex_clocklock(dmutex_t *mutex, clockid_t clock_id, const struct timespec *abstime);

/*
 * Releases the mutex, to the first waiter if there is one.  Touches no byte of *mutex once another thread can own
 * the mutex: the last user may free the object immediately afterwards.
 *
 * Returns 0; EPERM, for every type, if the calling thread does not own the mutex: it has not locked it, or the hold was
 * lost.  Also returns 0 if the server does not answer within command_timeout: the hold has ended for the caller, and
 * the release is pending, which means that the library repeats it until the server confirms it.  At the latest, the end
 * of the lease ends the hold.
 *
 * Blocks until the server has answered, at most command_timeout.  When it has returned and no release is pending, the
 * mutex is free or has its next owner: a thread that learns of the return can get the mutex by trylock unless another
 * thread was quicker.
 *
 * Source: POSIX pthread_mutex_unlock(); "unlock" in doc/design/protocol.md.
 */
DMUTEX_API int dmutex_unlock(dmutex_t *mutex);

/*
 * After EOWNERDEAD: declares that the guarded state is consistent again.  The next owner gets 0.
 *
 * Returns 0; EINVAL if the mutex is not robust, or if the caller did not get EOWNERDEAD for this hold, has already
 * called dmutex_consistent() for it, has lost it, or is not the owner; ENOLCK if the server does not answer within
 * command_timeout (the call may be repeated).
 *
 * Blocks for at most command_timeout.
 *
 * Source: POSIX pthread_mutex_consistent().
 */
DMUTEX_API int dmutex_consistent(dmutex_t *mutex);

/*
 * libc's functions for a local mutex.  There are no priority ceilings across hosts: for a mutex of the server both
 * return EINVAL, as POSIX requires for PTHREAD_PRIO_NONE, and change nothing.
 *
 * Source: POSIX pthread_mutex_getprioceiling() and pthread_mutex_setprioceiling().
 */
DMUTEX_API int dmutex_getprioceiling(const dmutex_t *mutex, int *ret_ceiling);
DMUTEX_API int dmutex_setprioceiling(dmutex_t *mutex, int ceiling, int *ret_old_ceiling);

/*
 * Copies the name and its NUL into buf, which has size bytes.
 *
 * Returns 0; ENOENT for an anonymous mutex; ERANGE if buf is too small, and then unchanged.
 */
DMUTEX_API int dmutex_getname_np(const dmutex_t *mutex, char *buf, size_t size);

/*
 * Asks the server now to confirm the caller's hold for a whole lease.  A max-hold begins again.
 *
 * Returns 0 if it is confirmed; EPERM if the mutex is not held or the hold was lost; ENOLCK if there is no answer
 * within command_timeout: the hold continues for as long as dmutex_remaining_np() says.  For a local mutex: 0 while the
 * caller owns it, without I/O.
 *
 * Blocks for one round trip, at most command_timeout.
 */
DMUTEX_API int dmutex_renew_np(dmutex_t *mutex);

/*
 * Gets the fencing token of the caller's hold, which is greater than the token of every earlier hold of this name on
 * any host.  Send it to the guarded resource, and let the resource refuse a lower one.
 *
 * Returns 0, also after the hold was lost, until the caller unlocks or locks; EPERM if the caller does not hold the
 * mutex; ENOLCK if no majority of a quorum has confirmed the token; ENOTSUP for a local mutex.
 *
 * Does no I/O, except that with a quorum of servers the first call of a hold asks them, and blocks for at most
 * command_timeout.
 */
DMUTEX_API int dmutex_token_np(dmutex_t *mutex, uint64_t *ret_token);

/*
 * Gets the number of milliseconds for which the caller's hold is certain, by the local CLOCK_BOOTTIME.  No I/O.
 *
 * Returns 0; EPERM if the caller does not hold the mutex.  For a lost hold: 0, with *ret_ms = 0.  For a local mutex
 * that the caller holds: INT64_MAX, because such a hold cannot be lost.
 */
DMUTEX_API int dmutex_remaining_np(dmutex_t *mutex, int64_t *ret_ms);

/*
 * Gets the calling thread's recursion depth, 0 if it does not hold the mutex.  No I/O.
 *
 * Returns 0.
 */
DMUTEX_API int dmutex_holdcount_np(dmutex_t *mutex, unsigned *ret_count);

/*
 * Asks the server whether any thread holds the mutex.
 *
 * Returns 0, with 0 or 1 in *ret_locked; ENOLCK if the server does not answer within command_timeout.  For a local
 * mutex, looks at the object.
 *
 * Blocks for one round trip, at most command_timeout.
 */
DMUTEX_API int dmutex_islocked_np(dmutex_t *mutex, int *ret_locked);

/*
 * Asks the server for everything it knows of the mutex.  info->struct_size must be sizeof(*info).
 *
 * Returns 0; EINVAL for a wrong struct_size; ENOLCK if the server does not answer within command_timeout.  *info is
 * unchanged on failure.  For a local mutex, without the server: this process, the thread id, no token, no owner, no
 * waiters; remaining_ms is INT64_MAX while it is locked.
 *
 * Blocks for one round trip, at most command_timeout.
 */
DMUTEX_API int dmutex_getinfo_np(dmutex_t *mutex, dmutex_info_t *info);

/*
 * Breaks the lock of any owner.  The owner learns of it by a message, at the latest with its next renewal; until then
 * two threads may believe that they own the mutex, and only a resource that checks tokens is safe.  The next owner gets
 * a higher token and, if the mutex is robust, EOWNERDEAD.
 *
 * Returns 0, also if the mutex was free; ENOLCK if the server does not answer within command_timeout (the lock may
 * still be broken later); ENOTSUP for a local mutex.
 *
 * Blocks for one round trip, at most command_timeout.
 */
DMUTEX_API int dmutex_forceunlock_np(dmutex_t *mutex);

DMUTEX_END_DECLS

#endif

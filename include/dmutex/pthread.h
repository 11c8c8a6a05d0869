/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drop-in header: the pthread mutexes and condition variables of a translation unit become dmutex's.
 *
 * Include it, or name it on the command line, before anything else that uses pthread:
 *
 *     cc -include dmutex/pthread.h old.c -ldmutex
 *
 * Macros rename the types, static initialisers and functions; the source, C or C++, stays as it is.  Compile in this
 * way all units that are linked together and share a mutex.  Objects made by other libraries, and objects of the C++
 * library (std::mutex), stay unchanged.
 *
 * An object without a name is libc's own mutex or condition variable inside a larger object, and works as before; with
 * PTHREAD_PROCESS_SHARED, it is a mutex of all processes that share the memory.  To exclude other processes and hosts,
 * an object needs a name:
 *
 *   -DDMUTEX_GROUP='"billing"'     The k-th static initialiser of the unit is named "billing/<file>:k", where <file>
 *                                  is its relative path on the compiler's command line: the same build has the same
 *                                  names everywhere.  With absolute paths, add -fmacro-prefix-map=FOLDER/=.
 *   -DDMUTEX_UNIT='"ledger"'       Another string in place of <file>.
 *   dmutexattr_setname_np(&attr, "billing/ledger")
 *                                  A line to add before pthread_mutex_init(): a pthread_mutexattr_t is a dmutexattr_t
 *                                  here.  For condition variables: dcondattr_setname_np().
 *
 * Each automatic name is for one static object.  The compiler refuses a name that is too long.  The library refuses
 * elements of an array with a shared initialiser, two units with one name, objects on the heap, on the stack or local
 * to a thread, and paths that depend on the folder of the build: it says so in a sentence when the program starts or
 * first uses the object, and every call returns EINVAL.  dmutex-names(1) lists the names.
 *
 * Read-write locks, spin locks, barriers and semaphores stay in the process.  The header marks their functions as
 * deprecated, so that the compiler warns; -DDMUTEX_NO_WARNINGS turns this off.
 *
 * <dmutex/mutex.h> and <dmutex/cond.h> say what the functions return and how they behave; dmutex-pthread(7) lists the
 * differences from pthread.  Since 0.1.
 */
#ifndef DMUTEX_PTHREAD_H
#define DMUTEX_PTHREAD_H

/*
 * Defines _GNU_SOURCE if this header comes first on the command line: <pthread.h> below must see it, and a definition
 * in the source comes too late.  Once a header of libc has been read, the definition changes nothing.
 */
#if !defined(_GNU_SOURCE) && !defined(_FEATURES_H)
#define _GNU_SOURCE 1
#define DMUTEX_PRIVATE_GNU_SOURCE
#endif

/*
 * Headers that need libc's meaning of the names below come before the names are redefined.  The C++ library has
 * pthread_mutex_t in classes of its own (a member of std::ofstream in C++98), through <bits/gthr.h>, which
 * <ext/concurrence.h> includes.
 */
#include <pthread.h>
#include <semaphore.h>
#ifdef __cplusplus
#include <memory>
#ifdef __GLIBCXX__
#include <ext/concurrence.h>
#endif
#if __cplusplus >= 201103L
#include <condition_variable>
#include <mutex>
#endif
#endif

#include <dmutex/dmutex.h>

/* Undoes _GNU_SOURCE and what libc derived from it: its headers are read now, and the source may define its own. */
#ifdef DMUTEX_PRIVATE_GNU_SOURCE
#undef DMUTEX_PRIVATE_GNU_SOURCE
#undef _GNU_SOURCE
#undef _DEFAULT_SOURCE
#undef _POSIX_SOURCE
#undef _POSIX_C_SOURCE
#undef _XOPEN_SOURCE
#undef _XOPEN_SOURCE_EXTENDED
#undef _ISOC95_SOURCE
#undef _ISOC99_SOURCE
#undef _ISOC11_SOURCE
#undef _ISOC2X_SOURCE
#undef _ISOC23_SOURCE
#undef _LARGEFILE64_SOURCE
#undef _ATFILE_SOURCE
#undef _DYNAMIC_STACK_SIZE_SOURCE
#endif

/* ---- locks that stay in the process ------------------------------------------------------ */

#if !defined(DMUTEX_NO_WARNINGS) && defined(__GNUC__)
#define DMUTEX_PRIVATE_STAYS(function)                                  \
    extern __typeof__(function) function __attribute__((__deprecated__( \
        "it stays in this process: libdmutex shares mutexes and condition variables only; -DDMUTEX_NO_WARNINGS")))
DMUTEX_BEGIN_DECLS
#if defined(__USE_UNIX98) || defined(__USE_XOPEN2K)
DMUTEX_PRIVATE_STAYS(pthread_rwlock_rdlock);
DMUTEX_PRIVATE_STAYS(pthread_rwlock_tryrdlock);
DMUTEX_PRIVATE_STAYS(pthread_rwlock_wrlock);
DMUTEX_PRIVATE_STAYS(pthread_rwlock_trywrlock);
#endif
#ifdef __USE_XOPEN2K
DMUTEX_PRIVATE_STAYS(pthread_rwlock_timedrdlock);
DMUTEX_PRIVATE_STAYS(pthread_rwlock_timedwrlock);
DMUTEX_PRIVATE_STAYS(pthread_barrier_wait);
DMUTEX_PRIVATE_STAYS(pthread_spin_lock);
DMUTEX_PRIVATE_STAYS(pthread_spin_trylock);
DMUTEX_PRIVATE_STAYS(sem_timedwait);
#endif
DMUTEX_PRIVATE_STAYS(sem_wait);
DMUTEX_PRIVATE_STAYS(sem_trywait);
DMUTEX_END_DECLS
#endif

/* ---- names of static initialisers -------------------------------------------------------- */

#ifdef DMUTEX_GROUP
#ifndef DMUTEX_UNIT
#define DMUTEX_UNIT __BASE_FILE__
#endif
#define DMUTEX_PRIVATE_TEXT_OF(number) #number
#define DMUTEX_PRIVATE_TEXT(number) DMUTEX_PRIVATE_TEXT_OF(number)
#define DMUTEX_PRIVATE_NAMED 2
#define DMUTEX_PRIVATE_NAME DMUTEX_GROUP "/" DMUTEX_UNIT ":" DMUTEX_PRIVATE_TEXT(__COUNTER__)
#define DMUTEX_PRIVATE_NAME_OR(libc_type) DMUTEX_PRIVATE_NAME

/*
 * Lists the named objects of a program or library when it is loaded, before its own code runs.  The function is weak,
 * so that a program without a mutex needs no -ldmutex; all units of a program or library share the variable.
 */
DMUTEX_BEGIN_DECLS
extern int dmutex_readnames_np(char *) __attribute__((__weak__));
extern char dmutex_private_names_are_read;
char dmutex_private_names_are_read __attribute__((__weak__, __visibility__("hidden")));

static void dmutex_private_read_names(void) __attribute__((__constructor__(101), __used__));
static void dmutex_private_read_names(void)
{
    if (dmutex_readnames_np)
        dmutex_readnames_np(&dmutex_private_names_are_read);
}
DMUTEX_END_DECLS
#else
#define DMUTEX_PRIVATE_NAMED 0
#define DMUTEX_PRIVATE_NAME ""
#define DMUTEX_PRIVATE_NAME_OR(libc_type) libc_type
#endif

/* Without a name, the initialiser has the type twice: for libdmutex, and for libc's mutex inside the object. */
#define DMUTEX_PRIVATE_OF_TYPE(type, byte) \
    DMUTEX_PRIVATE_INITIALIZER(type, 0, DMUTEX_PRIVATE_NAMED, DMUTEX_PRIVATE_NAME_OR(DMUTEX_PRIVATE_LIBC_TYPE(byte)))

#undef PTHREAD_MUTEX_INITIALIZER
#undef PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP
#undef PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP
#undef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
#undef PTHREAD_COND_INITIALIZER
#define PTHREAD_MUTEX_INITIALIZER DMUTEX_PRIVATE_INITIALIZER(0, 0, DMUTEX_PRIVATE_NAMED, DMUTEX_PRIVATE_NAME)
#define PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP DMUTEX_PRIVATE_OF_TYPE(1, "\1")
#define PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP DMUTEX_PRIVATE_OF_TYPE(2, "\2")
#define PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP DMUTEX_PRIVATE_OF_TYPE(3, "\3")
#define PTHREAD_COND_INITIALIZER DCOND_PRIVATE_INITIALIZER(DMUTEX_PRIVATE_NAMED, DMUTEX_PRIVATE_NAME)

/* ---- mutexes ----------------------------------------------------------------------------- */

/* Makes _INHERIT a hint for a mutex of the server, because some programs give up without priority inheritance. */
static __inline__ int dmutex_private_setprotocol(dmutexattr_t *attr, int protocol)
{
    int error = dmutexattr_setprotocol(attr, protocol);

    if (!error)
        attr->dm_hint = 1;
    return error;
}

#define pthread_mutex_t dmutex_t
#define pthread_mutex_init dmutex_init
#define pthread_mutex_destroy dmutex_destroy
#define pthread_mutex_lock dmutex_lock
#define pthread_mutex_trylock dmutex_trylock
#define pthread_mutex_timedlock dmutex_timedlock
#define pthread_mutex_clocklock dmutex_clocklock
#define pthread_mutex_unlock dmutex_unlock
#define pthread_mutex_consistent dmutex_consistent
#define pthread_mutex_getprioceiling dmutex_getprioceiling
#define pthread_mutex_setprioceiling dmutex_setprioceiling

#define pthread_mutexattr_t dmutexattr_t
#define pthread_mutexattr_init dmutexattr_init
#define pthread_mutexattr_destroy dmutexattr_destroy
#define pthread_mutexattr_settype dmutexattr_settype
#define pthread_mutexattr_gettype dmutexattr_gettype
#define pthread_mutexattr_setrobust dmutexattr_setrobust
#define pthread_mutexattr_getrobust dmutexattr_getrobust
#define pthread_mutexattr_setpshared dmutexattr_setpshared
#define pthread_mutexattr_getpshared dmutexattr_getpshared
#define pthread_mutexattr_setprotocol dmutex_private_setprotocol
#define pthread_mutexattr_getprotocol dmutexattr_getprotocol
#define pthread_mutexattr_setprioceiling dmutexattr_setprioceiling
#define pthread_mutexattr_getprioceiling dmutexattr_getprioceiling

/* Names that glibc had before POSIX. */
#undef pthread_mutex_consistent_np
#undef pthread_mutexattr_setrobust_np
#undef pthread_mutexattr_getrobust_np
#define pthread_mutex_consistent_np dmutex_consistent
#define pthread_mutexattr_setrobust_np dmutexattr_setrobust
#define pthread_mutexattr_getrobust_np dmutexattr_getrobust

/* ---- condition variables ----------------------------------------------------------------- */

#define pthread_cond_t dcond_t
#define pthread_cond_init dcond_init
#define pthread_cond_destroy dcond_destroy
#define pthread_cond_wait dcond_wait
#define pthread_cond_timedwait dcond_timedwait
#define pthread_cond_clockwait dcond_clockwait
#define pthread_cond_signal dcond_signal
#define pthread_cond_broadcast dcond_broadcast

#define pthread_condattr_t dcondattr_t
#define pthread_condattr_init dcondattr_init
#define pthread_condattr_destroy dcondattr_destroy
#define pthread_condattr_setclock dcondattr_setclock
#define pthread_condattr_getclock dcondattr_getclock
#define pthread_condattr_setpshared dcondattr_setpshared
#define pthread_condattr_getpshared dcondattr_getpshared

#endif

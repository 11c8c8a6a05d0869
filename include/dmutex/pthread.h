/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drop-in: the pthread mutexes and condition variables of a translation unit become dmutex's.
 *
 * Include the header, or give it on the command line, before any other user of pthread:
 *
 *     cc -include dmutex/pthread.h old.c -ldmutex
 *
 * Macros rename the types, static initialisers and functions; the source stays as it is, C and
 * C++ alike.  Compile all units in this way that are linked together and share a mutex.  Objects made by
 * other libraries, and objects of the C++ library (std::mutex), stay unchanged.
 *
 * An object without a name is libc's own mutex or condition variable inside a larger object, as before; or, with
 * PTHREAD_PROCESS_SHARED, a mutex of all processes sharing the memory.  To exclude other processes and hosts an
 * object needs a name:
 *
 *   -DDMUTEX_GROUP='"billing"'     The k-th static initialiser of the unit is "billing/<file>:k",
 *                                  <file> being its relative path on the compiler's command line:
 *                                  the same build has the same names everywhere.  With absolute
 *                                  paths: -fmacro-prefix-map=FOLDER/= as well.
 *   -DDMUTEX_UNIT='"ledger"'       Another word in the place of <file>.
 *   dmutexattr_setname_np(&attr, "billing/ledger")
 *                                  A line to add before pthread_mutex_init(), because a
 *                                  pthread_mutexattr_t is a dmutexattr_t here; dcondattr_setname_np().
 *
 * Each automatic name is for one static object.  The compiler refuses a too long name.  The library refuses
 * elements of an array with a shared initialiser, two units of one name, objects on the heap, on the stack or of a
 * thread, and paths that depend on the folder of the build: with a sentence when the program
 * starts or first uses the object, and EINVAL from every call.  dmutex-names(1) lists the names.
 *
 * Read-write locks, spin locks, barriers and semaphores stay in the process; the header marks their functions as
 * deprecated, so that the compiler warns.  -DDMUTEX_NO_WARNINGS: no warning.
 *
 * The functions return the values described in <dmutex/mutex.h> and <dmutex/cond.h>; dmutex-pthread(7) lists the
 * differences from pthread.  Since 0.1.
 */
#ifndef DMUTEX_PTHREAD_H
#define DMUTEX_PTHREAD_H

/*
 * Define _GNU_SOURCE if this header comes first on the command line: <pthread.h> below must see the macro, and a
 * source's own definition comes too late.  Once a header of libc was read, a definition changes nothing.
 */
#if !defined(_GNU_SOURCE) && !defined(_FEATURES_H)
#define _GNU_SOURCE 1
#define DMUTEX_PRIVATE_GNU_SOURCE
#endif

/*
 * Read the headers that use the names below in their libc meaning before the names are redefined.  The C++ library
 * keeps pthread_mutex_t in classes of its own (std::ofstream has a member in C++98), by <bits/gthr.h>,
 * which <ext/concurrence.h> reads.
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

/* Undo _GNU_SOURCE and the macros libc derived: libc's headers are read now, and the source may define its own. */
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
 * Lists the named objects of a program or library when the module is loaded, before the module's own code runs.
 * Weak, so that a program without a mutex needs no -ldmutex; one variable for all units of a program or library.
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

/* Without a name the initialiser says the type twice: to libdmutex, and to libc's mutex inside the object. */
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

/* Makes _INHERIT a hint for a mutex of the server, because programs give up without priority inheritance. */
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

/* The names of glibc from the time before POSIX. */
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

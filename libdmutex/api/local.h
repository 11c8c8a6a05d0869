/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Local objects: libc's mutexes and condition variables, inside ours.
 *
 * A mutex without a name that is PTHREAD_PROCESS_PRIVATE is libc's: it needs no server, lease, thread or connection.
 * libc's mutex takes the place of the name. libc's condition variable is at the beginning of every dcond_t, because a
 * local mutex may be used to wait on a named condition variable, too.
 *
 * Nothing here disables cancellation: libc's functions are cancellation points, or not, as POSIX says.
 */
#ifndef DM_API_LOCAL_H
#define DM_API_LOCAL_H

#include <stdbool.h>
#include <string.h>

#include "base/real.h"
#include "dmutex/types.h"

/* DMUTEX_PRIVATE=server turns local mutexes into anonymous ones of the server.  Read at the first use. */
enum dm_local_mode { DM_LOCAL_UNREAD, DM_LOCAL_LIBC, DM_LOCAL_SERVER };
extern enum dm_local_mode dm_local_mode;
bool dm_local_read_mode(void) __attribute__((__cold__)); /* true: libc's */

static inline bool dm_local_is_enabled(void)
{
    return __builtin_expect(__atomic_load_n(&dm_local_mode, __ATOMIC_RELAXED) == DM_LOCAL_LIBC, 1) ||
           dm_local_read_mode();
}

/*
 * True if the mutex is libc's.  Reads only two bytes, because every lock and unlock calls it; dmutex_destroy() changes
 * one of them.
 */
static inline bool dm_local_is(const dmutex_t *mutex)
{
    return mutex && !mutex->dm_named && !mutex->dm_pshared && dm_local_is_enabled();
}

/*
 * True if the mutex is libc's, normal, stalled and without a protocol: the eight bytes from dm_type on are zero.  Its
 * lock and unlock cannot fail, and are a jump into libc.  False until the mode has been read, which dm_local_is() does.
 */
static inline bool dm_local_is_plain(const dmutex_t *mutex)
{
    uint64_t kind;

    if (!mutex)
        return false;
    memcpy(&kind, (const char *)mutex + offsetof(dmutex_t, dm_type), sizeof kind);
    return kind == 0 && __atomic_load_n(&dm_local_mode, __ATOMIC_RELAXED) == DM_LOCAL_LIBC;
}

static inline pthread_mutex_t *dm_local_mutex(dmutex_t *mutex)
{
    return (void *)mutex->dm_name;
}

static inline pthread_cond_t *dm_local_cond(dcond_t *cond)
{
    return (void *)cond->dm_own;
}

/* Records an error of libc, and returns it. */
int dm_local_fail(int error) __attribute__((__cold__));
int dm_local_fail_wait(int error);

static inline int dm_local_result(int error)
{
    return __builtin_expect(error, 0) ? dm_local_fail(error) : 0;
}

/* Initialises libc's part of an object whose other bytes are set. attr NULL: the defaults. */
int dm_local_init_mutex(dmutex_t *mutex, const dmutexattr_t *attr);
int dm_local_init_cond(dcond_t *cond, const dcondattr_t *attr);

/* As pthread_mutexattr_setprioceiling() and similar functions of libc. */
int dm_local_set_ceiling(dmutexattr_t *attr, int ceiling);
int dm_local_get_ceiling(const dmutexattr_t *attr, int *ret_ceiling);

/* The calling thread's depth of a local mutex; 0 if the thread does not hold the mutex. */
unsigned dm_local_depth(dmutex_t *mutex);

/* True if any thread holds a local mutex. */
bool dm_local_is_locked(dmutex_t *mutex);

/* Fills in the result of dmutex_getinfo_np() for a local mutex. */
void dm_local_tell(dmutex_t *mutex, dmutex_info_t *ret_info);

#endif

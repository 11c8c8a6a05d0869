/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/local.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/ident.h"
#include "base/log.h"
#include "process/settings.h"

_Static_assert(sizeof(pthread_mutex_t) <= DMUTEX_PRIVATE_NAME_ROOM, "libc's mutex has room in the place of the name");
_Static_assert(offsetof(dmutex_t, dm_name) % _Alignof(pthread_mutex_t) == 0, "libc's mutex is aligned there");
_Static_assert(sizeof(pthread_cond_t) <= sizeof(((dcond_t *)0)->dm_own), "libc's condition variable has room");
_Static_assert(offsetof(dcond_t, dm_own) % _Alignof(pthread_cond_t) == 0, "libc's condition variable is aligned");

_Static_assert(offsetof(dmutex_t, dm_hash) == offsetof(dmutex_t, dm_type) + 8, "a kind is eight bytes");

/* DMUTEX_PRIVATE_LIBC_TYPE() in types.h cannot name the field. */
_Static_assert(offsetof(pthread_mutex_t, __data.__kind) == sizeof DMUTEX_PRIVATE_WORDS_BEFORE_TYPE - 1,
               "the drop-in header's initialisers put the type where libc reads it");
_Static_assert(PTHREAD_MUTEX_RECURSIVE_NP == 1 && PTHREAD_MUTEX_ERRORCHECK_NP == 2 && PTHREAD_MUTEX_ADAPTIVE_NP == 3,
               "the drop-in header's initialisers name the types");

/* ---- the mode ---------------------------------------------------------------------------- */

/*
 * Each lock and unlock reads it, without a lock. It changes only once, from UNREAD: a thread that still reads UNREAD
 * calls dm_local_read_mode(), and never takes the wrong path.
 */
enum dm_local_mode dm_local_mode;

bool dm_local_read_mode(void)
{
    const char *value = secure_getenv("DMUTEX_PRIVATE");
    enum dm_local_mode mode = value && strcmp(value, "server") == 0 ? DM_LOCAL_SERVER : DM_LOCAL_LIBC;
    enum dm_local_mode before = DM_LOCAL_UNREAD;

    /* One thread's result counts for all: a mutex must not become another kind between its lock and its unlock. */
    if (!__atomic_compare_exchange_n(&dm_local_mode, &before, mode, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return before == DM_LOCAL_LIBC;
    if (value && mode == DM_LOCAL_LIBC && strcmp(value, "libc") != 0)
        dm_log_error(
            "DMUTEX_PRIVATE=%s is ignored: it must be libc or server, and private mutexes without a name are libc's",
            value);
    return mode == DM_LOCAL_LIBC;
}

/* ---- libc's errors ----------------------------------------------------------------------- */

/* Records `failure` and returns libc's number, which is the table's except for LOCAL_REFUSED. */
static int note(enum dm_failure failure, int error)
{
    dm_fail(failure, NULL);
    return error;
}

/* Kept out of the path of a lock that succeeds. The number is always libc's; only the sentence is chosen here. */
int dm_local_fail(int error)
{
    switch (error) {
    case EBUSY:
        return note(DM_FAIL_BUSY, error);
    case EDEADLK:
        return note(DM_FAIL_RELOCK, error);
    case EPERM:
        return note(DM_FAIL_NOT_OWNER, error);
    case ETIMEDOUT:
        return note(DM_FAIL_TIMED_OUT, error);
    case EAGAIN:
        return note(DM_FAIL_DEPTH, error);
    case EOWNERDEAD:
        return note(DM_FAIL_OWNER_DEAD, error);
    case ENOTRECOVERABLE:
        return note(DM_FAIL_NOT_RECOVERABLE, error);
    default:
        return note(DM_FAIL_LOCAL_REFUSED, error);
    }
}

int dm_local_fail_wait(int error)
{
    return error == ETIMEDOUT ? note(DM_FAIL_COND_TIMED_OUT, error) : dm_local_fail(error);
}

/* ---- setting up -------------------------------------------------------------------------- */

/*
 * Makes libc's attributes for `attr`; the caller destroys them. Returns 0, or libc's error. A ceiling of 0 is "not
 * set": libc's default stays.
 */
static int translate(const dmutexattr_t *attr, pthread_mutexattr_t *ret_attr)
{
    int error = pthread_mutexattr_init(ret_attr);

    if (error)
        return error;
    error = pthread_mutexattr_settype(ret_attr, attr->dm_type);
    if (!error)
        error = pthread_mutexattr_setrobust(ret_attr, attr->dm_robust);
    if (!error)
        error = pthread_mutexattr_setprotocol(ret_attr, attr->dm_protocol);
    if (!error && attr->dm_ceiling)
        error = pthread_mutexattr_setprioceiling(ret_attr, attr->dm_ceiling);
    if (error)
        pthread_mutexattr_destroy(ret_attr);
    return error;
}

int dm_local_init_mutex(dmutex_t *mutex, const dmutexattr_t *attr)
{
    pthread_mutexattr_t translated;
    int error;

    if (!attr)
        return dm_local_result(dm_real.mutex_init(dm_local_mutex(mutex), NULL));
    error = translate(attr, &translated);
    if (error)
        return dm_local_fail(error);
    error = dm_real.mutex_init(dm_local_mutex(mutex), &translated);
    pthread_mutexattr_destroy(&translated);
    return dm_local_result(error);
}

/*
 * Needed even for a condition with a name or PTHREAD_PROCESS_SHARED, because the mutex decides how a wait is done, and
 * it may be local. libc's variable is private to the process, like the local mutex.
 */
int dm_local_init_cond(dcond_t *cond, const dcondattr_t *attr)
{
    pthread_condattr_t translated;
    int error = pthread_condattr_init(&translated);

    if (error)
        return dm_local_fail(error);
    error = pthread_condattr_setclock(&translated, attr ? (clockid_t)attr->dm_clock : CLOCK_REALTIME);
    if (!error)
        error = dm_real.cond_init(dm_local_cond(cond), &translated);
    pthread_condattr_destroy(&translated);
    return dm_local_result(error);
}

/* Tries the ceiling on attributes of libc, and stores the number in ours. */
int dm_local_set_ceiling(dmutexattr_t *attr, int ceiling)
{
    pthread_mutexattr_t translated;
    int error = translate(attr, &translated);

    if (error)
        return dm_local_fail(error);
    error = pthread_mutexattr_setprioceiling(&translated, ceiling);
    pthread_mutexattr_destroy(&translated);
    if (!error)
        attr->dm_ceiling = ceiling;
    return dm_local_result(error);
}

int dm_local_get_ceiling(const dmutexattr_t *attr, int *ret_ceiling)
{
    pthread_mutexattr_t translated;
    int error = translate(attr, &translated);

    if (error)
        return dm_local_fail(error);
    error = pthread_mutexattr_getprioceiling(&translated, ret_ceiling);
    pthread_mutexattr_destroy(&translated);
    return dm_local_result(error);
}

/* ---- looking inside ---------------------------------------------------------------------- */

/*
 * glibc's bits of a mutex: the kind, and the futex words of the kinds that the kernel knows. No public function returns
 * a mutex's holder. glibc cannot move __kind, whose offset static initialisers have compiled into programs. TID and
 * OWNER_DIED are FUTEX_TID_MASK and FUTEX_OWNER_DIED of <linux/futex.h>.
 */
#define KIND_TYPE 3
#define KIND_ROBUST 0x10
#define KIND_INHERIT 0x20
#define LOCK_TID 0x3fffffff
#define LOCK_OWNER_DIED 0x40000000
#define OWNER_INCONSISTENT INT_MAX
#define OWNER_NOT_RECOVERABLE (INT_MAX - 1)

/*
 * The kernel's id of the thread that holds the mutex; 0: none. Read without the mutex, so it is only a hint about other
 * threads. It is right about the calling thread, unless a dead thread with the same id has left the mutex locked.
 * Robust and inheriting kinds have the id in the futex word; __owner of a robust mutex may say "inconsistent" instead.
 */
static int holder_of(const pthread_mutex_t *mutex)
{
    if (mutex->__data.__kind & (KIND_ROBUST | KIND_INHERIT))
        return __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) & LOCK_TID;
    return __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED);
}

static unsigned depth_of(const pthread_mutex_t *mutex)
{
    if ((mutex->__data.__kind & KIND_TYPE) != PTHREAD_MUTEX_RECURSIVE_NP)
        return 1;
    return __atomic_load_n(&mutex->__data.__count, __ATOMIC_RELAXED);
}

/* After fork() the child's thread has another id: 0, although the child's copy of the mutex is locked. */
unsigned dm_local_depth(dmutex_t *mutex)
{
    const pthread_mutex_t *own = dm_local_mutex(mutex);

    return holder_of(own) == gettid() ? depth_of(own) : 0;
}

static uint32_t health_of(const pthread_mutex_t *mutex)
{
    int owner = __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED);

    if (!(mutex->__data.__kind & KIND_ROBUST))
        return 0;
    if (owner == OWNER_NOT_RECOVERABLE)
        return 2;
    return owner == OWNER_INCONSISTENT || (__atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) & LOCK_OWNER_DIED);
}

bool dm_local_is_locked(dmutex_t *mutex)
{
    return holder_of(dm_local_mutex(mutex)) != 0;
}

/* The holder may change between the loads: this is information for people, not for decisions. */
void dm_local_tell(dmutex_t *mutex, dmutex_info_t *ret_info)
{
    const pthread_mutex_t *own = dm_local_mutex(mutex);
    int holder = holder_of(own);

    memset(ret_info, 0, sizeof *ret_info);
    ret_info->struct_size = sizeof *ret_info;
    ret_info->health = health_of(own);
    if (!holder)
        return;
    ret_info->locked = 1;
    ret_info->remaining_ms = INT64_MAX;
    ret_info->thread = (uint64_t)holder;
    ret_info->hold_count = depth_of(own);
    ret_info->pid = (uint32_t)getpid();
    dm_settings_host(ret_info->host);
    dm_ident_program(ret_info->program);
}

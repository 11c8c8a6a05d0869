/* SPDX-License-Identifier: BSD-2-Clause */
#include "dmutex/attr.h"

#include <errno.h>
#include <string.h>

#include "api/local.h"
#include "api/object.h"
#include "base/error.h"

/*
 * All attribute functions check the object first and the value second: a bad object is reported even if the value is
 * bad, too. Attributes belong to one thread at a time (POSIX leaves the rest undefined), so nothing here is atomic, and
 * no server is asked, so no visit is needed.
 */
static int check(const dmutexattr_t *attr)
{
    if (!attr)
        return dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);
    return attr->dm_state == DM_MARK_ATTR ? 0 : dm_fail(DM_FAIL_BAD_ATTR, NULL);
}

static int check_get(const dmutexattr_t *attr, const void *ret)
{
    int error = check(attr);

    return error || ret ? error : dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);
}

static int check_choice(const dmutexattr_t *attr, int value, int most)
{
    int error = check(attr);

    if (error)
        return error;
    return value >= 0 && value <= most ? 0 : dm_fail(DM_FAIL_BAD_VALUE, "%d is not in 0..%d", value, most);
}

/*
 * All zeros are POSIX's default attributes. A time of 0 means "not set": the default is looked up when the mutex is
 * used, because dmutex.conf(5) may set the lease.
 */
int dmutexattr_init(dmutexattr_t *attr)
{
    if (!attr)
        return dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);
    memset(attr, 0, sizeof *attr);
    attr->dm_state = DM_MARK_ATTR;
    return 0;
}

/* Nothing needs to be freed; changing the mark makes the next use fail with EINVAL instead of being undefined. */
int dmutexattr_destroy(dmutexattr_t *attr)
{
    int error = check(attr);

    if (!error)
        attr->dm_state = DM_MARK_DESTROYED;
    return error;
}

/*
 * A small attribute with values 0..most, kept in one byte. The numbers are POSIX's (asserted in object.c), so a value
 * is passed to libc unchanged. Every protocol is accepted: only dmutex_init() knows whether the mutex is local, and
 * refuses it (ENOTSUP) for a mutex of the server. The fairness is stored, but nothing reads it yet.
 */
#define DEFINE_CHOICE(name, field, most)                         \
    int dmutexattr_set##name(dmutexattr_t *attr, int value)      \
    {                                                            \
        int error = check_choice(attr, value, most);             \
                                                                 \
        if (!error)                                              \
            attr->field = (uint8_t)value;                        \
        return error;                                            \
    }                                                            \
                                                                 \
    int dmutexattr_get##name(const dmutexattr_t *attr, int *ret) \
    {                                                            \
        int error = check_get(attr, ret);                        \
                                                                 \
        if (!error)                                              \
            *ret = attr->field;                                  \
        return error;                                            \
    }

DEFINE_CHOICE(type, dm_type, PTHREAD_MUTEX_ADAPTIVE_NP)
DEFINE_CHOICE(robust, dm_robust, PTHREAD_MUTEX_ROBUST)
DEFINE_CHOICE(pshared, dm_pshared, PTHREAD_PROCESS_SHARED)
DEFINE_CHOICE(fairness_np, dm_fairness, DMUTEX_FAIR_NP)
DEFINE_CHOICE(protocol, dm_protocol, PTHREAD_PRIO_PROTECT)

/*
 * A time in milliseconds, least..most; 0 is returned as `unset`. Both sides of the first comparison are one higher,
 * because compilers warn about `ms < 0`; UINT_MAX becomes 0 there, and is refused. An unset lease is returned as the
 * library's default, because the file's default is known only once there is a runtime. The linger time is returned as
 * stored.
 */
#define DEFINE_TIME(name, field, least, most, unset)                                                               \
    int dmutexattr_set##name(dmutexattr_t *attr, unsigned ms)                                                      \
    {                                                                                                              \
        int error = check(attr);                                                                                   \
                                                                                                                   \
        if (!error && (ms + 1u < (least) + 1u || ms > (most)))                                                     \
            error = dm_fail(DM_FAIL_BAD_VALUE, "%u ms is not in %u..%u", ms, (unsigned)(least), (unsigned)(most)); \
        if (!error)                                                                                                \
            attr->field = ms;                                                                                      \
        return error;                                                                                              \
    }                                                                                                              \
                                                                                                                   \
    int dmutexattr_get##name(const dmutexattr_t *attr, unsigned *ret_ms)                                           \
    {                                                                                                              \
        int error = check_get(attr, ret_ms);                                                                       \
                                                                                                                   \
        if (!error)                                                                                                \
            *ret_ms = attr->field ? attr->field : (unset);                                                         \
        return error;                                                                                              \
    }

DEFINE_TIME(lease_np, dm_lease_ms, DM_LEASE_MIN_MS, DM_LEASE_MAX_MS, DM_LEASE_DEFAULT_MS)
DEFINE_TIME(maxhold_np, dm_maxhold_ms, 0, UINT32_MAX - 1, 0)
DEFINE_TIME(linger_np, dm_linger_ms, 0, UINT32_MAX - 1, 0)

/* libc knows the range of priorities, so it checks the ceiling. */
int dmutexattr_setprioceiling(dmutexattr_t *attr, int ceiling)
{
    int error = check(attr);

    return error ? error : dm_local_set_ceiling(attr, ceiling);
}

int dmutexattr_getprioceiling(const dmutexattr_t *attr, int *ret_ceiling)
{
    int error = check_get(attr, ret_ceiling);

    return error ? error : dm_local_get_ceiling(attr, ret_ceiling);
}

/* NULL removes the name; if a name is refused, the old one stays. */
int dmutexattr_setname_np(dmutexattr_t *attr, const char *name)
{
    int error = check(attr);

    if (error)
        return error;
    if (name)
        error = dm_object_check_name(name, DMUTEX_PRIVATE_NAME_ROOM);
    if (!error)
        dm_object_keep_name(&attr->dm_named, attr->dm_name, sizeof attr->dm_name, name);
    return error;
}

int dmutexattr_getname_np(const dmutexattr_t *attr, char *buf, size_t size)
{
    int error = check(attr);

    return error ? error : dm_object_copy_name(attr->dm_named, attr->dm_name, buf, size);
}

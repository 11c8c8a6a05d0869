/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "api/object.h"
#include "base/error.h"
#include "dmutex/attr.h"

/* As in attr.c: the object is checked first, the value second; one thread at a time. */
static int check(const dcondattr_t *attr)
{
    if (!attr)
        return dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);
    return attr->dm_state == DM_MARK_ATTR ? 0 : dm_fail(DM_FAIL_BAD_ATTR, NULL);
}

static int check_get(const dcondattr_t *attr, const void *ret)
{
    int error = check(attr);

    return error || ret ? error : dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);
}

int dcondattr_init(dcondattr_t *attr)
{
    if (!attr)
        return dm_fail(DM_FAIL_NULL_ARGUMENT, NULL);
    memset(attr, 0, sizeof *attr);
    attr->dm_state = DM_MARK_ATTR;
    return 0;
}

int dcondattr_destroy(dcondattr_t *attr)
{
    int error = check(attr);

    if (!error)
        attr->dm_state = DM_MARK_DESTROYED;
    return error;
}

/*
 * Refused here and not at the wait: libc's condition variable, which each dcond_t has, supports only these two clocks.
 */
int dcondattr_setclock(dcondattr_t *attr, clockid_t clock_id)
{
    int error = check(attr);

    if (error)
        return error;
    if (clock_id != CLOCK_REALTIME && clock_id != CLOCK_MONOTONIC)
        return dm_fail(DM_FAIL_BAD_CLOCK, NULL);
    attr->dm_clock = (uint32_t)clock_id;
    return 0;
}

int dcondattr_getclock(const dcondattr_t *attr, clockid_t *ret_clock)
{
    int error = check_get(attr, ret_clock);

    if (!error)
        *ret_clock = (clockid_t)attr->dm_clock;
    return error;
}

int dcondattr_setpshared(dcondattr_t *attr, int pshared)
{
    int error = check(attr);

    if (error)
        return error;
    if (pshared != PTHREAD_PROCESS_PRIVATE && pshared != PTHREAD_PROCESS_SHARED)
        return dm_fail(DM_FAIL_BAD_VALUE, "%d is not in 0..1", pshared);
    attr->dm_pshared = (uint8_t)pshared;
    return 0;
}

int dcondattr_getpshared(const dcondattr_t *attr, int *ret_pshared)
{
    int error = check_get(attr, ret_pshared);

    if (!error)
        *ret_pshared = attr->dm_pshared;
    return error;
}

/* NULL removes the name; if a name is refused, the old one stays. */
int dcondattr_setname_np(dcondattr_t *attr, const char *name)
{
    int error = check(attr);

    if (!error && name)
        error = dm_object_check_name(name, DMUTEX_PRIVATE_NAME_ROOM);
    if (!error)
        dm_object_keep_name(&attr->dm_named, attr->dm_name, sizeof attr->dm_name, name);
    return error;
}

int dcondattr_getname_np(const dcondattr_t *attr, char *buf, size_t size)
{
    int error = check(attr);

    return error ? error : dm_object_copy_name(attr->dm_named, attr->dm_name, buf, size);
}

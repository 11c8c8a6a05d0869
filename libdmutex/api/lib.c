/* SPDX-License-Identifier: BSD-2-Clause */
/* The library as a whole: the server, the callbacks, the error sentence, the version. */
#include "api/object.h"
#include "base/error.h"
#include "base/log.h"
#include "dmutex/error.h"
#include "dmutex/version.h"
#include "process/life/runtime.h"

/* If another thread is just using a mutex for the first time, this call waits for the lock START, and returns EBUSY. */
int dmutex_configure_np(const char *url)
{
    struct dm_visit visit = dm_visit_begin();

    return dm_visit_end(visit, url ? dm_runtime_configure(url) : dm_fail(DM_FAIL_NULL_ARGUMENT, NULL));
}

int dmutex_setlost_np(dmutex_lost_fn lost, void *user)
{
    dm_runtime_set_lost(lost, user);
    return 0;
}

int dmutex_setlog_np(dmutex_log_fn log, void *user)
{
    dm_log_set(log, user);
    return 0;
}

const char *dmutex_strerror_np(void)
{
    return dm_error_sentence();
}

const char *dmutex_version_np(void)
{
    return DMUTEX_VERSION_STRING;
}

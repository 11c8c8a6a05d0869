/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/verdict.h"

#include "base/error.h"
#include "store/calls.h"

static enum dm_failure failure_of(struct dm_store *store, enum dm_verdict verdict)
{
    switch (verdict) {
    case DM_SAYS_NOTHING:
    case DM_SAYS_AGAIN:
        return dm_store_is_able(store, NULL, DM_ASKS) ? DM_FAIL_NO_ANSWER : DM_FAIL_DOWN;
    case DM_SAYS_NO_MEMORY:
        return DM_FAIL_SERVER_FULL;
    case DM_SAYS_BUSY:
        return DM_FAIL_BUSY;
    case DM_SAYS_FULL:
        return DM_FAIL_QUEUE_FULL;
    case DM_SAYS_BOUND:
        return DM_FAIL_BOUND;
    case DM_SAYS_NOT_RECOVERABLE:
        return DM_FAIL_NOT_RECOVERABLE;
    case DM_SAYS_UNSUPPORTED:
        return DM_FAIL_UNSUPPORTED;
    case DM_SAYS_UNKNOWN:
    case DM_SAYS_NOT_OWNER:
        return DM_FAIL_LOST;
    case DM_SAYS_REFUSED:
    case DM_SAYS_OWNED:
    case DM_SAYS_QUEUED:
    case DM_SAYS_WAITING:
    case DM_SAYS_DONE:
        break;
    }
    return DM_FAIL_REFUSED;
}

/* True if the sentence needs the store's reason. */
static bool has_reason(enum dm_failure failure)
{
    return failure == DM_FAIL_NO_ANSWER || failure == DM_FAIL_DOWN || failure == DM_FAIL_SERVER_FULL ||
           failure == DM_FAIL_REFUSED;
}

int dm_verdict_fail(struct dm_store *store, enum dm_verdict verdict, const char *reason)
{
    enum dm_failure failure = failure_of(store, verdict);

    return has_reason(failure) ? dm_fail(failure, "%s", reason) : dm_fail(failure, NULL);
}

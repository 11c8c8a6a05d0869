/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of this process. */
#include "dmutex/stats.h"

#include "api/object.h"
#include "base/error.h"
#include "process/life/runtime.h"

/*
 * The counters are summed up in a copy, because a failure must leave the caller's structure untouched. Any other
 * struct_size is refused, because no other version of the structure exists yet.
 */
int dmutex_stats_np(dmutex_stats_t *stats)
{
    struct dm_visit visit = dm_visit_begin();
    dmutex_stats_t found;

    if (!stats)
        return dm_visit_end(visit, dm_fail(DM_FAIL_NULL_ARGUMENT, NULL));
    if (stats->struct_size != sizeof *stats)
        return dm_visit_end(visit, dm_fail(DM_FAIL_BAD_VALUE, "struct_size must be sizeof(dmutex_stats_t)"));
    dm_runtime_count(&found);
    *stats = found;
    return dm_visit_end(visit, 0);
}

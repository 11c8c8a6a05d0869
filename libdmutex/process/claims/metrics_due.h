/* SPDX-License-Identifier: BSD-2-Clause */
/* When the file of DMUTEX_METRICS is written next; process/keep/metrics.h writes it. */
#ifndef DM_PROCESS_CLAIMS_METRICS_DUE_H
#define DM_PROCESS_CLAIMS_METRICS_DUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/rank.h"
#include "base/units.h"

struct dm_runtime;

#define DM_METRICS_NS (10 * DM_NS_PER_S)

struct dm_metrics {
    char *path;     /* NULL: no file.  Written when the runtime is made */
    bool has_names; /* DMUTEX_METRICS_NAMES: each name has gauges of its own */
    bool is_asked;  /* by this user, so a failure to write the file is logged */

    /* Guarded by the state lock. */
    bool is_armed;
    int64_t due_ns;   /* when armed */
    int64_t begun_ns; /* of the last writing; 0: none yet */

    /* Of the thread that holds the gate. */
    uint64_t written; /* the sum of all counters and gauges in the file */
};

/* When the loop thread must call dm_metrics_run(); DM_NEVER: not at all.  State lock held. */
static inline int64_t dm_metrics_due_ns(const struct dm_metrics *metrics)
{
    dm_assert_held(DM_RANK_STATE);
    return metrics->is_armed ? metrics->due_ns : DM_NEVER;
}

/* A lock call has ended: its counters must be written in time.  State lock held. */
void dm_metrics_arm(struct dm_runtime *runtime);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/claims/metrics_due.h"

#include "process/claims/alarm.h"
#include "process/claims/process.h"

void dm_metrics_arm(struct dm_runtime *runtime)
{
    struct dm_metrics *metrics = &runtime->metrics;

    dm_assert_held(DM_RANK_STATE);
    if (!metrics->path || metrics->is_armed)
        return;
    metrics->is_armed = true;
    metrics->due_ns = metrics->begun_ns ? metrics->begun_ns + DM_METRICS_NS : dm_clock_boot_ns();
    dm_alarm_set(runtime->alarm, metrics->due_ns);
}

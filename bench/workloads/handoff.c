/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One handoff: from before the unlock in one process to after the lock in the other, which waits. Shows the spread of
 * single handoffs, which a rate does not; the rate shows if they are rare.
 */
#include "bench/crowd.h"
#include "bench/workload.h"

static void run(const struct bench_scene *scene)
{
    static const struct crowd crowds[] = {
        { .name = "library", .processes = 2, .threads = 1, .is_timed = true },
        { .name = "bare grant", .lock = BARE_GRANT, .processes = 2, .threads = 1, .is_timed = true },
    };
    struct crowd_figures medians[BENCH_COUNT(crowds)];

    crowd_compare(scene, crowds, BENCH_COUNT(crowds), medians);
    crowd_report(crowds, 2, medians, CROWD_P50_US, "2 processes", 2, bench_budget(scene, "<= 1.40", "<= 1.50"));
    crowd_report(crowds, 2, medians, CROWD_HANDOFFS, "2 processes", 2, NULL);
    crowd_report(crowds, 2, medians, CROWD_P99_US, "2 processes", 2, NULL);
    crowd_report(crowds, 2, medians, CROWD_MAX_US, "2 processes", 2, NULL);
}

const struct workload workload_handoff = { "handoff", "a name from one process to another: median, p99, longest", run,
                                           true, ON_ALL };

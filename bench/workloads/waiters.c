/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 500 threads of 4 processes that wait for one name, in the order in which they came, compared with a bare lock whose
 * release grants it.  The bare lock's waiters have a connection each.
 */
#include <dmutex/dmutex.h>

#include "bench/crowd.h"
#include "bench/workload.h"

enum { PROCESSES = 4, THREADS = 125 };

static void run(const struct bench_scene *scene)
{
    static const struct crowd crowds[] = {
        { .name = "library", .processes = PROCESSES, .threads = THREADS, .fairness = DMUTEX_FAIR_NP },
        { .name = "bare grant", .lock = BARE_GRANT, .processes = PROCESSES, .threads = THREADS },
    };
    const enum crowd_figure figures[] = { CROWD_PER_SECOND, CROWD_COMMANDS, CROWD_SPREAD };
    struct crowd_figures medians[BENCH_COUNT(crowds)];

    crowd_compare(scene, crowds, BENCH_COUNT(crowds), medians);
    for (size_t i = 0; i < BENCH_COUNT(figures); i++)
        crowd_report(crowds, 2, medians, figures[i], "500 threads", PROCESSES * THREADS, NULL);
    crowd_report(crowds, 2, medians, CROWD_ROWS, "500 threads", PROCESSES * THREADS, "<= 2.20");
}

const struct workload workload_waiters = { "waiters", "500 threads of 4 processes that all want one name", run, false,
                                           ON_ALL };

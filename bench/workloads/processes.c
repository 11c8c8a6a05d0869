/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that all want one name, compared with a bare lock whose release grants it (grant.h), and with a
 * home-made lock that is tried each millisecond.
 *
 * Each process locks and unlocks in a loop and holds the name for no time.  So the name changes hands all the time,
 * however many wait.
 */
#include <stdio.h>

#include "bench/crowd.h"
#include "bench/server.h"
#include "bench/workload.h"

enum { PROCESSES_MAX = 128 };

static void measure(const struct bench_scene *scene, int size)
{
    char when[32], polled[32];
    const struct crowd crowds[] = {
        { .name = "library", .processes = size, .threads = 1 },
        { .name = "bare grant", .lock = BARE_GRANT, .processes = size, .threads = 1 },
        { .name = polled, .lock = BARE_POLL, .processes = size, .threads = 1 },
    };
    struct crowd_figures medians[BENCH_COUNT(crowds)];

    snprintf(polled, sizeof polled, "%s each ms", scene->server->store->bare[BARE_POLL].name);
    snprintf(when, sizeof when, "%d processes", size);
    crowd_compare(scene, crowds, BENCH_COUNT(crowds), medians);
    crowd_report(crowds, 3, medians, CROWD_PER_SECOND, when, size, "flat; >= 0.71 of a bare grant");
    crowd_report(crowds, 3, medians, CROWD_HANDOFFS, when, size, NULL);
    crowd_report(crowds, 3, medians, CROWD_SPREAD, when, size, NULL);
    crowd_report(crowds, 3, medians, CROWD_COMMANDS, when, size, bench_budget(scene, "<= 2.20, and the polls", NULL));
    crowd_report(crowds, 3, medians, CROWD_ROWS, when, size, "<= 2.20");
    crowd_report(crowds, 2, medians, CROWD_MESSAGES, when, size, "1");
    crowd_report(crowds, 2, medians, CROWD_SLEEPS, when, size, NULL);
    crowd_report(crowds, 2, medians, CROWD_SERVER_US, when, size, NULL);
}

static void run(const struct bench_scene *scene)
{
    for (int size = 2; size <= PROCESSES_MAX; size *= 2)
        measure(scene, size);
}

const struct workload workload_processes = { "processes", "2 to 128 processes that all want one name", run, true,
                                             ON_ALL };

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMUTEX_METRICS=PATH: the counters of dmutex_stats_np() as a text file, for the textfile collector of Prometheus'
 * node_exporter; and gauges: what the process holds and waits for at the moment of writing.
 *
 * The loop thread writes the file at the first lock call of the process and, while anything changes, every
 * DM_METRICS_NS; exit() writes the file once more.  While nothing changes and the process has no claim, nobody wakes up
 * for the file: the end of a lock call by the state lock arms the next writing.
 */
#ifndef DM_PROCESS_KEEP_METRICS_H
#define DM_PROCESS_KEEP_METRICS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/units.h"
#include "dmutex/stats.h"
#include "process/claims/process.h"

struct dm_settings;

/* Lines of more names would cost the collector more than they tell. */
#define DM_METRICS_NAMES 1000

/* Holds and waits of this process for one name, or for all. */
struct dm_gauge {
    char *name; /* NULL: all */
    unsigned held, waiting;
    int64_t oldest_ns; /* when the hold that lasts longest began, by the boot clock, as far as known; 0: none */
};

struct dm_gauges {
    bool is_up; /* the server can be asked */
    size_t count;
    struct dm_gauge each[DM_METRICS_NAMES];
};

/* Without memory there is no file. */
void dm_metrics_init(struct dm_metrics *metrics, const struct dm_settings *settings);

/* Writes the file, if due and if anything has changed.  By the loop thread, no lock but the gate held. */
void dm_metrics_run(struct dm_runtime *runtime);

/* Writes the file for the last time, at exit().  No lock held. */
void dm_metrics_end(struct dm_runtime *runtime);

/* Replaces each %p by the process id.  To be freed; NULL without memory. */
char *dm_metrics_path(const char *pattern, int pid);

/* Writes all metrics in the text format of Prometheus.  gauges NULL: none, for want of memory. */
void dm_metrics_write(FILE *file, const dmutex_stats_t *stats, const struct dm_gauges *gauges, const char *program,
                      int pid);

#endif

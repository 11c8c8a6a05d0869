/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMUTEX_METRICS=PATH: the counters of dmutex_stats_np() as a text file, for the textfile collector of Prometheus'
 * node_exporter, and gauges of what the process holds and waits for at the time of writing.
 *
 * The loop thread writes the file at the first lock call of the process and, while anything changes, every
 * DM_METRICS_NS; exit() writes it once more.  While nothing changes and the process has no claim, nobody wakes up for
 * the file: the next lock call that takes the state lock arms it again.
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

/* Lines for more names would cost the collector more than they are worth. */
#define DM_METRICS_NAMES 1000

/* What this process holds and waits for, of one name or of all. */
struct dm_gauge {
    char *name; /* NULL: all */
    unsigned held, waiting;
    int64_t oldest_ns; /* when the longest present hold began, by the boot clock, as far as known; 0: none */
};

struct dm_gauges {
    bool is_up; /* the server can be asked */
    size_t count;
    struct dm_gauge each[DM_METRICS_NAMES];
};

/* Without memory, no file is written. */
void dm_metrics_init(struct dm_metrics *metrics, const struct dm_settings *settings);

/* Writes the file, if due and if anything has changed.  The loop thread, which holds no lock but the gate. */
void dm_metrics_run(struct dm_runtime *runtime);

/* Writes the file for the last time, at exit().  No lock held. */
void dm_metrics_end(struct dm_runtime *runtime);

/* Replaces each %p by the process id.  The caller frees the result; NULL without memory. */
char *dm_metrics_path(const char *pattern, int pid);

/* Writes all metrics in the text format of Prometheus.  gauges NULL: there was no memory for them. */
void dm_metrics_write(FILE *file, const dmutex_stats_t *stats, const struct dm_gauges *gauges, const char *program,
                      int pid);

#endif

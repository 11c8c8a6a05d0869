/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The workloads of dmutex-bench. To add one, write a file in workloads/ and a line here, in workload.c and in local.mk.
 */
#ifndef DM_BENCH_WORKLOAD_H
#define DM_BENCH_WORKLOAD_H

#include <stdbool.h>

#include "bench.h"
#include "report.h"

enum workload_stores { ON_REDIS, ON_ALL, ON_POSTGRES };

struct workload {
    const char *name;  /* on the command line */
    const char *about; /* half a sentence */
    /* Reports the figures. This process does not use the library: bench_apart() makes others that do. */
    void (*run)(const struct bench_scene *scene);
    bool is_placed; /* the figures depend on the cores, so it is measured at each place */
    enum workload_stores stores;
};

/* In the order of --list; NULL ends the list. */
extern const struct workload *const workloads[];

extern const struct workload workload_uncontended, workload_kept, workload_recursive, workload_threads,
    workload_processes, workload_handoff, workload_conditions, workload_broadcast, workload_renewals, workload_names,
    workload_dead, workload_preload, workload_private, workload_memory, workload_tls, workload_quorum, workload_waiters,
    workload_heap;

#endif

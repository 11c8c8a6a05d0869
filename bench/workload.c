/* SPDX-License-Identifier: BSD-2-Clause */
#include "workload.h"

const struct workload *const workloads[] = {
    &workload_uncontended,
    &workload_tls,
    &workload_kept,
    &workload_recursive,
    &workload_threads,
    &workload_processes,
    &workload_waiters,
    &workload_handoff,
    &workload_conditions,
    &workload_broadcast,
    &workload_renewals,
    &workload_names,
    &workload_dead,
    &workload_preload,
    &workload_private,
    &workload_memory,
    &workload_quorum,
    &workload_heap,
    NULL,
};

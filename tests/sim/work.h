/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The work of a run's threads: threads lock, hold and unlock a few names in every way there is, wait for
 * tickets on conditions, and hand tickets out.
 */
#ifndef SIM_WORK_H
#define SIM_WORK_H

#include "process.h"

/* The sizes of a run: from the run's seed. */
struct work_plan {
    int processes, threads, names;
    uint32_t lease_ms; /* about */
    int64_t think_ns, hold_ns;
    int64_t until_ns; /* then no thread begins anything */
    bool has_conditions, has_robust, has_mixed_leases, has_grace;
};

void work_begin(const struct work_plan *plan);

/* Adds a process with threads; the beginning adds the plan's number of processes. */
struct process *work_add_process(void);

/* Counts threads not yet ended, and describes one such thread. */
int work_threads_left(const char **ret_what);

/* When everything is quiet, no thread will hand out tickets any more.  In a separate process. */
void work_close(void);
bool work_is_closed(void);

/* Looks for a lost wake-up: a waiter sleeps although there is a ticket, and no fault is to blame. */
void work_check_sleepers(void);

/* Allows lost signals from here on: a failover has lost data. */
void work_excuse_signals(void);

/* Notes a process that is about to be gone: nobody will send the signals that the process's threads still owe. */
void work_note_end(const struct process *process);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the threads of a run do: they lock, hold and unlock a few names in every way there is, wait for
 * tickets on conditions, and hand tickets out.
 */
#ifndef SIM_WORK_H
#define SIM_WORK_H

#include "process.h"

/* How a run is made up: by its seed. */
struct work_plan {
    int processes, threads, names;
    uint32_t lease_ms;     /* about */
    int64_t think_ns, hold_ns;
    int64_t until_ns;      /* then no thread begins anything */
    bool has_conditions, has_robust, has_mixed_leases, has_grace;
};

void work_begin(const struct work_plan *plan);

/* A process with its threads; the plan's number of them at the beginning. */
struct process *work_add_process(void);

/* Threads that have not ended yet, and one of them in words. */
int work_threads_left(const char **ret_what);

/* When all is quiet: nobody will hand out tickets any more.  In a process of its own. */
void work_close(void);
bool work_is_closed(void);

/* A waiter sleeps although there is a ticket for it, and no fault is to blame: a lost wake-up. */
void work_check_sleepers(void);

/* Signals may be lost from here on: with the data that a failover has lost. */
void work_excuse_signals(void);

/* A process is about to be gone: what its threads have not signalled yet nobody will. */
void work_note_end(const struct process *process);

#endif

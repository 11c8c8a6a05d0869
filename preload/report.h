/* SPDX-License-Identifier: BSD-2-Clause */
/* DMUTEX_REPORT: the use of each named mutex and lock file in this process, written at the process's end. */
#ifndef DM_PRELOAD_REPORT_H
#define DM_PRELOAD_REPORT_H

#include <stdbool.h>

#include "library.h"
#include "objects.h"

bool report_is_wanted(void);

/* Locks as dmutex_lock(), and counts. A wait is preceded by a trial. */
int report_lock(struct object *object, const struct library *library);

/* The calling thread owns the mutex anew, or is about to give the mutex back. */
void report_begin_hold(struct object *object, const struct library *library);
void report_end_hold(struct object *object, const struct library *library, bool is_wait);

/* The counts of a lock file's name; NULL: no report is wanted, or there are too many.  Callable in a handler. */
struct object_counts *report_of_file(const char *name);

/* The process has the lock, after a wait since then (or 0), or has given the lock back. */
void report_file_locked(struct object_counts *counts, uint64_t waiting_since);
void report_file_unlocked(struct object_counts *counts);

/* Called at fork(): the child has locked nothing. */
void report_in_child(void);

#endif

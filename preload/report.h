/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMUTEX_REPORT: what this process did with each named mutex and lock file, written when it ends.
 */
#ifndef DM_PRELOAD_REPORT_H
#define DM_PRELOAD_REPORT_H

#include <stdbool.h>

#include "library.h"
#include "objects.h"

bool report_is_wanted(void);

/* Locks as dmutex_lock(), and counts.  A wait is what a trial comes before. */
int report_lock(struct object *object, const struct library *library);

/* The calling thread owns the mutex anew, or is about to give it back. */
void report_begin_hold(struct object *object, const struct library *library);
void report_end_hold(struct object *object, const struct library *library, bool is_wait);

/* The counts of a lock file's name; NULL: no report is wanted, or there are too many.  Callable in a handler. */
struct object_counts *report_of_file(const char *name);

/* The process has the lock, for which it has waited since then (or 0), or has given it back. */
void report_file_locked(struct object_counts *counts, uint64_t waiting_since);
void report_file_unlocked(struct object_counts *counts);

/* Called at fork(): the child has locked nothing. */
void report_in_child(void);

#endif

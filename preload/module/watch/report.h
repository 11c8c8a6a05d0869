/* SPDX-License-Identifier: BSD-2-Clause */
/* DMUTEX_REPORT: the use of each named mutex and lock file in this process, written at the process's end. */
#ifndef DM_PRELOAD_REPORT_H
#define DM_PRELOAD_REPORT_H

#include <stdbool.h>

#include "module/files/mapped.h"
#include "module/names/library.h"
#include "module/names/objects.h"

bool report_is_wanted(void);

/* Locks as dmutex_lock(), and counts. A wait is preceded by a trial. */
int report_lock(struct object *object, const struct library *library);

/* The calling thread owns the mutex anew, or is about to give the mutex back. */
void report_begin_hold(struct object *object, const struct library *library);
void report_end_hold(struct object *object, const struct library *library, bool is_wait);

/* Lock as mapped_lock() and mapped_unlock(), and count, if a report is wanted. Callable in a signal handler. */
int report_lock_file(const struct mapped *file, bool is_wait);
int report_unlock_file(const struct mapped *file);

/* Called at fork(): the child has locked nothing. */
void report_in_child(void);

#endif

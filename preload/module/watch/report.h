/* SPDX-License-Identifier: BSD-2-Clause */
/* DMUTEX_REPORT: the use of each named mutex and lock file in this process, written when the process ends. */
#ifndef DM_PRELOAD_REPORT_H
#define DM_PRELOAD_REPORT_H

#include <stdbool.h>

#include "module/files/mapped.h"
#include "module/names/library.h"
#include "module/names/objects.h"

bool report_is_wanted(void);

/* Locks like dmutex_lock(), and counts. A try comes before a wait. */
int report_lock(struct object *object, const struct library *library);

/* The calling thread has become the owner, or is about to give the mutex back. */
void report_begin_hold(struct object *object, const struct library *library);
void report_end_hold(struct object *object, const struct library *library, bool is_wait);

/* Lock like mapped_lock() and mapped_unlock(), and count if a report is wanted. May be called in a signal handler. */
int report_lock_file(const struct mapped *file, bool is_wait);
int report_unlock_file(const struct mapped *file);

/* Called at fork(): the child has locked nothing. */
void report_in_child(void);

#endif

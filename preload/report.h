/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMUTEX_REPORT: what this process did with each named mutex, written when it ends.
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

#endif

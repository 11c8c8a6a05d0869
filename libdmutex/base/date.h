/* SPDX-License-Identifier: BSD-2-Clause */
/* A moment as people write it. */
#ifndef DM_BASE_DATE_H
#define DM_BASE_DATE_H

#include <time.h>

#define DM_DATE_ROOM 104

/*
 * Writes a moment of CLOCK_REALTIME as 2026-11-23T01:19:57.123Z, in UTC; a moment before 1970 as 1970.  Not by
 * gmtime(), which takes a lock of libc: the child of fork() may find that lock held by a thread that it does not have.
 */
void dm_date_write(const struct timespec *moment, char ret_text[DM_DATE_ROOM]);

#endif

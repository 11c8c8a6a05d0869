/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats a moment for people. */
#ifndef DM_BASE_DATE_H
#define DM_BASE_DATE_H

#include <time.h>

#define DM_DATE_ROOM 104

/*
 * Writes a moment of CLOCK_REALTIME in UTC, as 2026-11-23T01:19:57.123Z; a moment before 1970 as 1970. gmtime() would
 * not do: it takes a lock of libc, which a forked child may find held by a thread that it does not have.
 */
void dm_date_write(const struct timespec *moment, char ret_text[DM_DATE_ROOM]);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of the keeper and of the library in it: to DMUTEX_LOG or, if that has no path, to syslog, from warnings up.
 * A keeper has no standard error. Any thread.
 */
#ifndef DM_PRELOAD_KEEPER_SAY_H
#define DM_PRELOAD_KEEPER_SAY_H

/* Before the first thread. */
void say_begin(void);

/* level: DMUTEX_LOG_ERROR and so on. */
void say(int level, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));

/* The loss of a lock that the job cannot be told of in any other way: always to syslog, as an alert. */
void say_alert(const char *format, ...) __attribute__((__format__(__printf__, 1, 2)));

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the keeper and the library in it have to say: where DMUTEX_LOG says, and without a path in it
 * to syslog, from warnings on.  A keeper has no standard error.  Any thread.
 */
#ifndef DM_PRELOAD_KEEPER_SAY_H
#define DM_PRELOAD_KEEPER_SAY_H

/* Before the first thread. */
void say_begin(void);

/* level: DMUTEX_LOG_ERROR and so on. */
void say(int level, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));

#endif

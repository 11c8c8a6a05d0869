/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The line on a terminal while dmutex run waits: the place in the queue, the holder, since when.  Nothing is printed if
 * standard error is no terminal.
 */
#ifndef DM_TOOLS_WAITING_H
#define DM_TOOLS_WAITING_H

/* The calling thread begins to wait for the lock `name`. */
void waiting_begin(const char *name);

/* The wait is over: the line is gone at the return. */
void waiting_end(void);

#endif

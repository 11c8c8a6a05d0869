/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The line on the terminal while dmutex run waits: the place in the queue, the holder, and since when it holds.  Prints
 * nothing if standard error is no terminal.
 */
#ifndef DM_TOOLS_WAITING_H
#define DM_TOOLS_WAITING_H

/* The calling thread starts to wait for the lock `name`. */
void waiting_begin(const char *name);

/* The wait is over.  When this returns, the line is gone. */
void waiting_end(void);

#endif

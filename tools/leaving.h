/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A wait that a signal may end: the process gives its place in the queue back, and then ends by the signal.  Without
 * this, the place stays until the lease of the waiter ends.
 */
#ifndef DM_TOOLS_LEAVING_H
#define DM_TOOLS_LEAVING_H

/* From here on SIGINT, SIGTERM and SIGHUP end the process in this way, unless the signal is ignored. */
void leaving_begin(void);

/* The signals are as before.  A signal that came meanwhile has its usual effect. */
void leaving_end(void);

#endif

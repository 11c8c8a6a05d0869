/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A wait that a signal may end: the process first gives up its place in the queue, then ends by the signal.  Otherwise
 * the place would stay until the waiter's lease ends.
 */
#ifndef DM_TOOLS_LEAVING_H
#define DM_TOOLS_LEAVING_H

/* From here on SIGINT, SIGTERM and SIGHUP end the process this way, except a signal that is ignored. */
void leaving_begin(void);

/* Restores the signals.  A signal that came just before has its usual effect. */
void leaving_end(void);

#endif

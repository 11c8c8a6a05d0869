/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of the library's own. */
#ifndef DM_BASE_THREAD_H
#define DM_BASE_THREAD_H

/*
 * Starts a detached thread with all signals blocked.  The stack has at least 256 KiB, because callbacks and look-ups
 * of host names run on the stack.  The thread gets the scheduling of the process, not of the calling thread.  0 or an
 * errno value.
 */
int dm_thread_start(void *(*run)(void *), void *user);

#endif

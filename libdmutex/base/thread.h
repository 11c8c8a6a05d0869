/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of the library's own. */
#ifndef DM_BASE_THREAD_H
#define DM_BASE_THREAD_H

/*
 * Starts a detached thread that takes no signal of the application.  Its stack is never smaller than 256 KiB,
 * whatever the application made the default: callbacks and host name look-ups run there.  Its scheduling is the
 * process's, whatever the calling thread's is.  0 or an errno value.
 */
int dm_thread_start(void *(*run)(void *), void *user);

#endif

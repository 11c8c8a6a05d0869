/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of the library's own, and the stack of any thread. */
#ifndef DM_BASE_THREAD_H
#define DM_BASE_THREAD_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Starts a detached thread with all signals blocked.  The stack has at least 256 KiB, because callbacks and look-ups
 * of host names run on the stack.  The thread gets the scheduling of the process, not of the calling thread.  0 or an
 * errno value.
 */
int dm_thread_start(void *(*run)(void *), void *user);

/*
 * False if the calling thread has fewer bytes of its stack left.  Also true where that cannot be known: on the stack of
 * the first thread, and on a stack that the program has made for itself.
 */
bool dm_thread_has_stack(size_t bytes);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The library's own threads, and the stack of any thread. */
#ifndef DM_BASE_THREAD_H
#define DM_BASE_THREAD_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Starts a detached thread with all signals blocked.  Its stack has at least 256 KiB, because callbacks and host name
 * look-ups run on it.  The thread gets the scheduling of the process, not that of the calling thread.  Returns 0 or an
 * errno value.
 */
int dm_thread_start(void *(*run)(void *), void *user);

/*
 * Called before dlopen().  An allocator that makes threads, as jemalloc does, may let a thread's first allocation wait
 * for a pthread_create(), which waits for each dlopen() of the process.  So the first allocation must not be that of
 * dlopen().
 */
void dm_thread_allocate_first(void);

/*
 * False if the calling thread has less stack left.  True if that is not known: on the stack of the first thread, and on
 * a stack that the program itself has made.
 */
bool dm_thread_has_stack(size_t bytes);

/*
 * What OpenSSL may need to send or receive.  Over twice what was measured: 8 KiB in OpenSSL 3.0, 10 KiB in 3.6 on a
 * processor with AVX-512.
 */
#define DM_OPENSSL_STACK ((size_t)24 * 1024)

#endif

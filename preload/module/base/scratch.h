/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Room for a path, or for lines of /proc, during one call: the calling thread may have a stack of 16 KiB, or run a
 * handler on a smaller one. Without malloc, like memory.h. A handler may take a room while the interrupted call has
 * one.
 */
#ifndef DM_PRELOAD_SCRATCH_H
#define DM_PRELOAD_SCRATCH_H

#include <stddef.h>

/* NULL without memory. */
void *scratch_take(size_t size);

/* NULL is allowed. `size` is the size that was requested. */
void scratch_give(void *room, size_t size);

#endif

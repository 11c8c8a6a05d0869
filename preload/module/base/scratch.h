/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Room for a path, or for lines of /proc, that a call needs for a moment: the calling thread may have a stack of
 * 16 KiB, or run a handler on a smaller one. Without malloc, as memory.h; a handler may take a room within a call that
 * has one.
 */
#ifndef DM_PRELOAD_SCRATCH_H
#define DM_PRELOAD_SCRATCH_H

#include <stddef.h>

/* NULL without memory. */
void *scratch_take(size_t size);

/* NULL is allowed. The size is the one that was asked for. */
void scratch_give(void *room, size_t size);

#endif

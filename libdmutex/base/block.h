/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory for the usual calls, without malloc(): requests, and the server's replies.
 *
 * A handler of a signal may interrupt malloc() in a call of ours, and fork(): glibc's fork() then waits for malloc()'s
 * lock, which its own thread has.  So what each call needs comes from a few blocks of the library's static memory,
 * taken and given back in one atomic step each.  More at once, or longer, comes from malloc().  A block that the
 * forking thread has just taken is lost to the child.
 */
#ifndef DM_BASE_BLOCK_H
#define DM_BASE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

#define DM_BLOCK_ROOM 2048

/* NULL without memory. */
void *dm_block_take(size_t size);

/* A block, memory of malloc(), or NULL. */
void dm_block_give(void *memory);

/* True for a block, whose room is DM_BLOCK_ROOM; false for memory of malloc(). */
bool dm_block_is(const void *memory);

#endif

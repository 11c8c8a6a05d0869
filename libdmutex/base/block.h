/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory for the usual calls, without malloc(): requests, and the server's replies.
 *
 * A signal handler may interrupt malloc() in a call of ours, and fork: glibc's fork() then waits for malloc()'s lock,
 * which its own thread holds.  So the memory of each call comes from a few static blocks of the library, taken and
 * given back in one atomic step each.  If all are taken, or a longer one is needed, it comes from malloc().  A block
 * that the forking thread has just taken is lost to the child.
 */
#ifndef DM_BASE_BLOCK_H
#define DM_BASE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

#define DM_BLOCK_ROOM 2048

/* Returns NULL if there is no memory. */
void *dm_block_take(size_t size);

/* Takes a block, memory of malloc(), or NULL. */
void dm_block_give(void *memory);

/* True for a block, which has DM_BLOCK_ROOM bytes; false for memory of malloc(). */
bool dm_block_is(const void *memory);

#endif

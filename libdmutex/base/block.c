/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/block.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/self.h"

#define BLOCKS 32u

static alignas(64) unsigned char blocks[BLOCKS][DM_BLOCK_ROOM];
static bool is_taken[BLOCKS]; /* atomic */

bool dm_block_is(const void *memory)
{
    return (uintptr_t)memory - (uintptr_t)blocks < sizeof blocks;
}

/* Each thread begins its search at a different block, so that threads seldom collide and each reuses the same few. */
void *dm_block_take(size_t size)
{
    unsigned first = (unsigned)dm_self_fast.serial * 4;

    for (unsigned i = 0; size <= DM_BLOCK_ROOM && i < BLOCKS; i++) {
        unsigned at = (first + i) % BLOCKS;

        if (!__atomic_load_n(&is_taken[at], __ATOMIC_RELAXED) &&
            !__atomic_exchange_n(&is_taken[at], true, __ATOMIC_ACQUIRE))
            return blocks[at];
    }
    return malloc(size);
}

void dm_block_give(void *memory)
{
    if (dm_block_is(memory))
        __atomic_store_n(&is_taken[((uintptr_t)memory - (uintptr_t)blocks) / DM_BLOCK_ROOM], false, __ATOMIC_RELEASE);
    else
        free(memory);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "scratch.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "real.h"

#define ROOMS 8
#define ROOM_SIZE 8448 /* two paths, and what goes with them */

static alignas(64) unsigned char rooms[ROOMS][ROOM_SIZE];
static bool is_taken[ROOMS]; /* atomic; a room that a thread has while it forks is lost in the child */

void *scratch_take(size_t size)
{
    void *mapped;

    for (int i = 0; size <= ROOM_SIZE && i < ROOMS; i++)
        if (!__atomic_exchange_n(&is_taken[i], true, __ATOMIC_ACQUIRE))
            return rooms[i];
    mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

void scratch_give(void *room, size_t size)
{
    size_t at = (uintptr_t)room - (uintptr_t)rooms;

    if (at < sizeof rooms)
        __atomic_store_n(&is_taken[at / ROOM_SIZE], false, __ATOMIC_RELEASE);
    else if (room)
        real_get()->munmap(room, size);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include "shared/text.h"

void *memory_get(size_t size, const char *purpose, int exit_status)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        text_say("no memory for ", purpose, NULL);
        _exit(exit_status);
    }
    return memory;
}

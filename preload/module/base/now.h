/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DM_PRELOAD_NOW_H
#define DM_PRELOAD_NOW_H

#include <stdint.h>
#include <time.h>

/* By CLOCK_MONOTONIC. */
static inline uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The lesser and the greater of two numbers. */
#ifndef DM_BASE_MINMAX_H
#define DM_BASE_MINMAX_H

#include <stdint.h>

static inline int64_t dm_min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t dm_max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif

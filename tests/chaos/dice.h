/* SPDX-License-Identifier: BSD-2-Clause */
/* Random numbers from a seed; each thread has separate dice. */
#ifndef CHAOS_DICE_H
#define CHAOS_DICE_H

#include <stdint.h>

struct dice {
    uint64_t word; /* not 0 */
};

static inline struct dice dice_make(uint64_t seed, unsigned who)
{
    return (struct dice){ ((seed + 1) * UINT64_C(0x2545f4914f6cdd1d) ^ (who + 1) * UINT64_C(0x9e3779b97f4a7c15)) | 1 };
}

/* 0 .. limit - 1 */
static inline unsigned dice_below(struct dice *dice, unsigned limit)
{
    dice->word ^= dice->word << 13;
    dice->word ^= dice->word >> 7;
    dice->word ^= dice->word << 17;
    return (unsigned)((dice->word >> 16) % limit);
}

#endif

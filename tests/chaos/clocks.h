/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replaces the clocks of a process in programs linked with clocks.c: a wrong wall clock, and a CLOCK_BOOTTIME
 * that runs faster or slower.
 */
#ifndef CHAOS_CLOCKS_H
#define CHAOS_CLOCKS_H

#include <stdint.h>

struct clocks {
    int64_t wall_ahead_s;
    double rate; /* of CLOCK_BOOTTIME */
};

/* Sets the clocks of the process from now on.  Call before the first use of the library. */
void clocks_set(const struct clocks *clocks);

/* Returns the true time when `passed_ns` of the process's CLOCK_BOOTTIME will have passed after `from_ns`. */
int64_t clocks_true_ns(int64_t from_ns, int64_t passed_ns);

#endif

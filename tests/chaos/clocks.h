/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clocks that a process is shown, when a program is linked with this: a wall clock that is
 * wrong, and a CLOCK_BOOTTIME that runs faster or slower.
 */
#ifndef CHAOS_CLOCKS_H
#define CHAOS_CLOCKS_H

#include <stdint.h>

struct clocks {
    int64_t wall_ahead_s;
    double rate; /* of CLOCK_BOOTTIME */
};

/* Of this process from now on; before the first use of the library. */
void clocks_set(const struct clocks *clocks);

/* The true time at which as much of this process's CLOCK_BOOTTIME has passed. */
int64_t clocks_true_ns(int64_t from_ns, int64_t passed_ns);

#endif

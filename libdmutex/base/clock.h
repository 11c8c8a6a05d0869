/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time.  Leases and certainty are measured in nanoseconds of CLOCK_BOOTTIME, which also counts while the machine
 * sleeps.  A caller's deadline stays on the caller's clock, so that it follows a step of that clock.
 */
#ifndef DM_BASE_CLOCK_H
#define DM_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/units.h"

/* CLOCK_BOOTTIME now. */
int64_t dm_clock_boot_ns(void);

struct dm_deadline {
    bool is_endless;
    clockid_t clock;
    struct timespec at;
};

extern const struct dm_deadline dm_deadline_endless;

/* The moment `ms` from now, on CLOCK_MONOTONIC. */
struct dm_deadline dm_deadline_in_ms(int64_t ms);

/* Nanoseconds left: 0 once it has passed and never before, DM_NEVER if endless.  Large values are capped. */
int64_t dm_deadline_left_ns(const struct dm_deadline *deadline);

/* The earlier of a deadline and `limit_ns` from now, as a deadline on `deadline`'s own clock. */
struct dm_deadline dm_deadline_sooner(const struct dm_deadline *deadline, int64_t limit_ns);

#endif

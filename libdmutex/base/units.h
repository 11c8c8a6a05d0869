/* SPDX-License-Identifier: BSD-2-Clause */
/* Units of time. Moments are nanoseconds of CLOCK_BOOTTIME. */
#ifndef DM_BASE_UNITS_H
#define DM_BASE_UNITS_H

#include <stdint.h>

#define DM_NS_PER_US INT64_C(1000)
#define DM_NS_PER_MS INT64_C(1000000)
#define DM_NS_PER_S INT64_C(1000000000)

/* Later than every moment. */
#define DM_NEVER INT64_MAX

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DM_PROCESS_CLAIMS_TARGET_H
#define DM_PROCESS_CLAIMS_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "dmutex/types.h"

/* A mutex object, read and checked; the object itself is not touched again. */
struct dm_target {
    char key[DMUTEX_NAME_MAX_NP + 2]; /* as in struct dm_name */
    int type;
    bool is_robust;
    bool is_anonymous;
    bool is_fair;
    uint32_t lease_ms;     /* 0: the default */
    uint32_t own_lease_ms; /* as set in the object */
    uint32_t maxhold_ms;
    uint32_t linger_ms;
};

#endif

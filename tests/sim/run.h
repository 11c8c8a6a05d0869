/* SPDX-License-Identifier: BSD-2-Clause */
/* One run of the simulator, and what is done about one that fails. */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "faults.h"
#include "hooks.h"
#include "scripting.h"

struct run {
    uint64_t seed;
    const uint8_t *bytes; /* or what decides before the seed does */
    size_t length;
    struct scripting *scripting;
    enum core_defect defect;
    bool is_safe;         /* only faults under which every promise holds */
    bool has_losses;      /* always faults that lose data, and a grace behind them */
    bool has_slow_clocks; /* of all processes: as slow as they may be */

    /* Results. */
    char breach[400]; /* "" none */
    uint64_t hash;
    struct fault_plan faults;
};

/* Makes the plan from the seed, and runs it. */
void run_seed(struct run *run);

/* Leaves out faults of a run that failed as long as it still fails; prints what is left. */
void run_shrink(struct run *run);

void counters_print(void);

#endif

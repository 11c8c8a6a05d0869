/* SPDX-License-Identifier: BSD-2-Clause */
/* One run of the simulator, and the shrinking of a failed run. */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "faults.h"
#include "hooks.h"
#include "liar.h"
#include "scripting.h"

struct run {
    uint64_t seed;
    const uint8_t *bytes; /* or bytes that decide before the seed decides */
    size_t length;
    struct scripting *scripting;
    enum core_defect defect;
    bool is_safe;         /* only faults under which every promise holds */
    bool has_losses;      /* always faults that lose data, and a grace after them */
    bool has_copies;      /* no other fault than an older copy, again and again, and conditions */
    bool is_plain;        /* on the plain store, without scripts */
    bool has_registers;   /* on registers in memory */
    bool is_quorum;       /* of three or five servers */
    enum liar liar;       /* and its first server lies */
    bool has_sentinels;   /* and three servers that are a group */
    bool is_cluster;      /* of three masters, whose slots move */
    unsigned wait;        /* for this many of its replicas, without any grace */
    bool has_slow_clocks; /* of all processes: as slow as clocks may be */

    /* Results. */
    char breach[400]; /* "" none */
    uint64_t hash;
    struct fault_plan faults;
};

/* Makes the plan from the seed, and runs the plan. */
void run_seed(struct run *run);

/* Leaves out faults of a failed run as long as the run still fails; prints the faults left. */
void run_shrink(struct run *run);

void counters_print(void);

#endif

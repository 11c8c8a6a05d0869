/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulator by hand: sim [SEED [COUNT]], or DM_SEED=SEED.  With DM_TRACE=1 the trace goes to standard error; with
 * DM_SAFE=1 there are only faults under which every promise holds.  Prints the seed; for a failed run also the broken
 * promise and the necessary faults, and exits with 1.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "run.h"
#include "world.h"

static struct run run;

int main(int argc, char **argv)
{
    const char *given = argc > 1 ? argv[1] : getenv("DM_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 1, count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1,
             failed = 0;

    world_set_reader(getenv("DM_TRACE") != NULL);
    run.scripting = scripting_new(NULL);
    run.is_safe = getenv("DM_SAFE") != NULL;
    run.has_copies = getenv("DM_COPIES") != NULL;
    run.is_plain = getenv("DM_PLAIN") != NULL;
    run.has_registers = getenv("DM_REGISTERS") != NULL;
    run.is_quorum = getenv("DM_QUORUM") != NULL;
    run.liar = getenv("DM_LIAR") ? LIAR_MISLEADS : LIAR_IS_NONE;
    run.has_sentinels = getenv("DM_SENTINELS") != NULL;
    run.is_cluster = getenv("DM_CLUSTER") != NULL;
    run.wait = getenv("DM_WAIT") ? (unsigned)atoi(getenv("DM_WAIT")) : 0;
    run.defect = run.wait ? WORDS_COUNT_FOR_EVER : CORE_IS_WHOLE; /* as in test_sim: no promise needs the words then */
    for (uint64_t i = 0; i < count; i++) {
        run.seed = seed + i;
        run_seed(&run);
        if (count == 1)
            printf("# DM_SEED=%" PRIu64 " hash %016" PRIx64 "\n", run.seed, run.hash);
        if (run.breach[0]) {
            failed++;
            printf("# DM_SEED=%" PRIu64 ": %s\n", run.seed, run.breach);
            if (!getenv("DM_TRACE") && failed <= 3)
                run_shrink(&run);
            fflush(stdout);
        }
    }
    counters_print();
    printf("# %" PRIu64 " of %" PRIu64 " runs failed\n", failed, count);
    return failed > 0;
}

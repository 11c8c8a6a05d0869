/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulator driven by bytes: they decide who runs, what is late and what goes wrong, until they
 * are used up.  For libFuzzer: `make fuzz`, then b/tests/sim/fuzz_sim CORPUS.
 */
#include <stdio.h>
#include <stdlib.h>

#include "run.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);
int __lsan_is_turned_off(void);

/* A process that is killed leaves its memory as it is, here as well. */
int __lsan_is_turned_off(void)
{
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct run run;

    if (!run.scripting)
        run.scripting = scripting_new(NULL);
    run.seed = length;
    run.bytes = bytes;
    run.length = length;
    run_seed(&run);
    if (!run.breach[0])
        return 0;
    fprintf(stderr, "%s\n", run.breach);
    abort();
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulator driven by bytes: the bytes decide which process runs, which message is late and which fault comes,
 * until the bytes are used up.  With DM_TRACE=1 the trace goes to standard error.
 */
#include "../sim/run.h"
#include "../sim/world.h"
#include "fuzz.h"

static const char *const seeds[] = { "", NULL };
static const char *const words[] = { NULL };

const struct fuzzer fuzzer = { "sim", seeds, words, 500, 30000 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct run run;

    if (!run.scripting)
        run.scripting = scripting_new(NULL);
    world_set_reader(getenv("DM_TRACE") != NULL);
    run.seed = length;
    run.bytes = bytes;
    run.length = length;
    run_seed(&run);
    if (!run.breach[0])
        return 0;
    run_shrink(&run);
    fflush(stdout);
    abort();
}

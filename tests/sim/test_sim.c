/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library in the simulator: runs from many seeds keep every promise, and the same seed gives the
 * same run.
 *
 * DM_SIM_OPERATIONS, DM_SIM_FAULTS, DM_SIM_SEEDS: how much; DM_SEED: the first seed.  A run that fails prints its
 * seed; `tests/sim/sim SEED` runs it again, DM_TRACE=1 shows it.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run.h"
#include "world.h"

static struct run run;
static struct scripting *whole;

/* A process that is killed leaves its memory as it is, here as well. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return 1;
}

/* A sanitizer looks for other things, and takes its time for it. */
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
#define SHARE 10
#else
#define SHARE 1
#endif

/* What the environment says, or `usual`, or under `make check-long` `many`. */
static uint64_t count_from(const char *variable, uint64_t usual, uint64_t many)
{
    const char *wanted = getenv(variable), *is_long = getenv("DMUTEX_TEST_LONG");

    if (wanted)
        return strtoull(wanted, NULL, 10);
    return (is_long && *is_long ? many : usual) / SHARE;
}

static uint64_t first_seed(void)
{
    const char *seed = getenv("DM_SEED");

    return seed ? strtoull(seed, NULL, 10) : 1;
}

static void begin(void)
{
    memset(&run, 0, sizeof run);
    run.scripting = whole;
}

static void must_hold(void)
{
    if (!run.breach[0])
        return;
    printf("# DM_SEED=%" PRIu64 ": %s\n", run.seed, run.breach);
    run_shrink(&run);
    fail_msg("DM_SEED=%" PRIu64 ": %s", run.seed, run.breach);
}

/* Every promise of the protocol is kept, whatever goes wrong of what it allows to go wrong. */
static void test_sim_keeps_every_promise_when_things_go_wrong(void **state)
{
    uint64_t operations = count_from("DM_SIM_OPERATIONS", 300000, 50000000);
    uint64_t faults = count_from("DM_SIM_FAULTS", 15000, 2500000);
    uint64_t runs = count_from("DM_SIM_SEEDS", 0, 25000);

    (void)state;
    begin();
    memset(&counters, 0, sizeof counters);
    for (run.seed = first_seed(); counters.operations < operations || counters.faults < faults || counters.runs < runs;
         run.seed++) {
        run_seed(&run);
        must_hold();
    }
    printf("# DM_SEED=%" PRIu64 " to %" PRIu64 "\n", first_seed(), run.seed - 1);
    counters_print();
    assert_true(counters.holds > operations / 10); /* or nothing has been tried */
}

/* Byte for byte: what happens, and when. */
static void test_sim_does_the_same_when_the_seed_is_the_same(void **state)
{
    uint64_t hashes[12];

    (void)state;
    begin();
    for (int i = 0; i < 24; i++) {
        run.seed = first_seed() + (uint64_t)(i % 12);
        run_seed(&run);
        if (i < 12)
            hashes[i] = run.hash;
        else
            assert_int_equal(hashes[i - 12], run.hash);
    }
    assert_true(hashes[0] != hashes[1]);
}

static int group_setup(void **state)
{
    (void)state;
    whole = scripting_new(NULL);
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    scripting_free(whole);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sim_does_the_same_when_the_seed_is_the_same),
        cmocka_unit_test(test_sim_keeps_every_promise_when_things_go_wrong),
    };

    cmocka_set_test_filter(getenv("DM_SIM_TEST")); /* one of them, by hand */
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}

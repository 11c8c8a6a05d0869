/* SPDX-License-Identifier: BSD-2-Clause */
/* A program whose tests are rounds on their own stage; included once by each such program. */
#ifndef CHAOS_RUNS_H
#define CHAOS_RUNS_H

#include <stdio.h>
#include <time.h>

#include "round.h"

static uint64_t seed;
static struct stage stage;
static struct tally tally;

/* Runs the next round of the test; the arguments are those of round_run(). */
static inline void runs_strike(bool hands_on, unsigned faults, int count, int calls)
{
    stage_seed(&stage, seed + (uint64_t)tally.rounds);
    round_run(&stage, &tally, hands_on, faults, count, calls);
}

static inline bool runs_have_two_owners(void)
{
    return tally.verdict.found[FOUND_OVERLAP] > 0;
}

/* For a test that must find two owners. */
static inline void runs_assert_two_owners(void)
{
    tally_print(&tally, &stage);
    assert_true(runs_have_two_owners());
}

/* For a test whose rounds keep all promises, and all end. */
static inline void runs_assert_nothing_found(void)
{
    tally_print(&tally, &stage);
    assert_int_equal(verdict_sum(&tally.verdict), 0);
    assert_int_equal(tally.stuck, 0);
}

static inline int runs_begin(void **state)
{
    (void)state;
    tally = (struct tally){ .rounds = 0 };
    print_message("# DM_SEED=%llu\n", (unsigned long long)seed);
    return 0;
}

static inline int runs_end(void **state)
{
    (void)state;
    stage_end(&stage);
    return 0;
}

#define RUNS_TEST(name) cmocka_unit_test_setup_teardown(name, runs_begin, runs_end)

/* Call first in main(). */
static inline void runs_prepare(int argc, char **argv)
{
    stage_isolate(argc);
    test_begin(argc, argv);
    seed = (uint64_t)count_from("DM_SEED", (long)time(NULL), (long)time(NULL));
}

#endif

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
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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

static bool is_long(void)
{
    const char *wanted = getenv("DMUTEX_TEST_LONG");

    return wanted && *wanted;
}

/* What the environment says, or `usual`, or under `make check-long` `many`. */
static uint64_t count_from(const char *variable, uint64_t usual, uint64_t many)
{
    const char *wanted = getenv(variable);

    if (wanted)
        return strtoull(wanted, NULL, 10);
    return (is_long() ? many : usual) / SHARE;
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

/* A long run has two processes, each with every second seed: one would need a processor for half an hour. */
enum { PROCESSES = 2 };

/* What one of them is to do, and has done: in memory that all of them see. */
struct share {
    uint64_t operations, faults, runs; /* at least */
    uint64_t first, step, last;        /* seeds */
    struct counters done;
};

/* One process's runs; its exit status says whether every promise was kept. */
static int run_share(struct share *share)
{
    begin();
    memset(&counters, 0, sizeof counters);
    for (run.seed = share->first;
         counters.operations < share->operations || counters.faults < share->faults || counters.runs < share->runs;
         run.seed += share->step) {
        run_seed(&run);
        if (run.breach[0]) {
            printf("# DM_SEED=%" PRIu64 ": %s\n", run.seed, run.breach);
            run_shrink(&run);
            return EXIT_FAILURE;
        }
        share->last = run.seed;
    }
    share->done = counters;
    return EXIT_SUCCESS;
}

static pid_t start_share(struct share *share)
{
    pid_t process;

    fflush(stdout);
    process = fork();
    assert_true(process >= 0);
    if (process == 0) {
        int status = run_share(share);

        fflush(stdout);
        _exit(status);
    }
    return process;
}

static void add_counters(struct counters *sum, const struct counters *part)
{
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)part;

    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        to[i] += from[i];
}

/*
 * Every promise of the protocol is kept, whatever goes wrong of what it allows to go wrong.  */
static void test_sim_keeps_every_promise_when_things_go_wrong(void **state)
{
    uint64_t operations = count_from("DM_SIM_OPERATIONS", 300000, 50000000);
    uint64_t faults = count_from("DM_SIM_FAULTS", 15000, 2500000);
    uint64_t runs = count_from("DM_SIM_SEEDS", 0, 25000);
    unsigned count = is_long() ? PROCESSES : 1;
    struct share *shares =
        mmap(NULL, PROCESSES * sizeof *shares, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t processes[PROCESSES];
    int status, failed = 0;

    (void)state;
    assert_true(shares != MAP_FAILED);
    for (unsigned i = 0; i < count; i++) {
        shares[i] = (struct share){.operations = operations / count,
                                   .faults = faults / count,
                                   .runs = runs / count,
                                   .first = first_seed() + i,
                                   .step = count};
        processes[i] = start_share(&shares[i]);
    }
    memset(&counters, 0, sizeof counters);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(waitpid(processes[i], &status, 0), processes[i]);
        failed += status != 0;
        add_counters(&counters, &shares[i].done);
        printf("# DM_SEED=%" PRIu64 " to %" PRIu64 " in steps of %" PRIu64 "\n", shares[i].first, shares[i].last,
               shares[i].step);
    }
    counters_print();
    munmap(shares, PROCESSES * sizeof *shares);
    assert_int_equal(failed, 0);
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

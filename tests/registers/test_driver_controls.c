/* SPDX-License-Identifier: BSD-2-Clause */
/* The suite of drivers finds each defect that the store in memory can have. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "memory_bed.h"

/* True if the suite fails with these defects: it runs in a child, in silence. */
static bool is_found(const struct memory_faults *faults)
{
    int status = 0, failures;
    pid_t child = fork();

    if (child == 0) {
        int null = open("/dev/null", O_WRONLY);

        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        unsetenv("DRIVER_TEST");
        *memory_faults(memory) = *faults;
        memory_faults(memory)->late_most_ns = 1;
        failures = driver_suite(&bed);
        _exit(failures > 0);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

static void test_suite_finds_each_defect(void **state)
{
    static const struct memory_faults defects[] = {
        { .brings_old = true },       { .reads_old = true },     { .tells_always = true },
        { .repeats_versions = true }, { .has_high_ages = true }, { .answers_twice = true },
        { .is_not_atomic = true },    { .folds_keys = true },    { .forgets_epoch = true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof defects / sizeof defects[0]; i++) {
        if (!is_found(&defects[i]))
            fail_msg("the suite does not find defect %zu", i);
    }
}

static void test_suite_finds_nothing_in_a_store_without_defects(void **state)
{
    (void)state;
    assert_false(is_found(&(struct memory_faults){ 0 }));
    /* A driver need not bring the newer value. */
    assert_false(is_found(&(struct memory_faults){ .poor = 1 }));
}

static int begin(void **state)
{
    (void)state;
    memory = memory_new(NULL);
    return 0;
}

static int end(void **state)
{
    (void)state;
    memory_free(memory);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_suite_finds_each_defect),
        cmocka_unit_test(test_suite_finds_nothing_in_a_store_without_defects),
    };

    return cmocka_run_group_tests(tests, begin, end);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* registers/version: versions of values, and the numbers of identities. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "registers/version.h"

#define DRAWN 1000

static void test_version_is_never_given_twice_when_one_writer_draws(void **state)
{
    struct dm_reg_version versions[DRAWN];
    struct dm_reg_writer writer;

    (void)state;
    dm_reg_writer_init(&writer);
    for (int i = 0; i < DRAWN; i++) {
        versions[i] = dm_reg_writer_next(&writer);
        assert_false(dm_reg_version_is_absent(&versions[i]));
        for (int j = 0; j < i; j++)
            assert_false(dm_reg_version_equals(&versions[i], &versions[j]));
    }
}

static void test_version_differs_when_two_writers_count_alike(void **state)
{
    struct dm_reg_version ours, theirs;
    struct dm_reg_writer one, other;

    (void)state;
    dm_reg_writer_init(&one);
    dm_reg_writer_init(&other);
    ours = dm_reg_writer_next(&one);
    theirs = dm_reg_writer_next(&other);
    assert_int_equal(one.count, other.count);
    assert_false(dm_reg_version_equals(&ours, &theirs));
}

static void test_version_is_absent_when_all_is_zero(void **state)
{
    struct dm_reg_version version = { { 0 } };

    (void)state;
    assert_true(dm_reg_version_is_absent(&version));
    version.bytes[DM_REG_VERSION_SIZE - 1] = 1;
    assert_false(dm_reg_version_is_absent(&version));
}

static void test_identity_has_a_number_that_others_lack_when_a_letter_differs(void **state)
{
    (void)state;
    assert_true(dm_reg_identity_number("") != 0);
    assert_true(dm_reg_identity_number("epoch 1") == dm_reg_identity_number("epoch 1"));
    assert_true(dm_reg_identity_number("epoch 1") != dm_reg_identity_number("epoch 2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version_is_never_given_twice_when_one_writer_draws),
        cmocka_unit_test(test_version_differs_when_two_writers_count_alike),
        cmocka_unit_test(test_version_is_absent_when_all_is_zero),
        cmocka_unit_test(test_identity_has_a_number_that_others_lack_when_a_letter_differs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

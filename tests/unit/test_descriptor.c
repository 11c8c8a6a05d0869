/* SPDX-License-Identifier: BSD-2-Clause */
/* base/descriptor: bells in a program that closes all descriptors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/descriptor.h"

#define BELLS 4

/* The rings that a bell has had and nobody has answered. */
static uint64_t rings_of(int bell)
{
    uint64_t rings = 0;

    return read(bell, &rings, sizeof rings) < 0 ? 0 : rings;
}

/*
 * Finding 54: a bell that is reopened does not get the number of another closed bell, whose owner would continue to use
 * that number.
 */
static void test_a_bell_is_answered_by_its_owner_alone_when_all_were_closed(void **state)
{
    int bells[BELLS];

    (void)state;
    for (int i = 0; i < BELLS; i++)
        assert_true((bells[i] = dm_bell_open()) >= 0);
    for (int i = 0; i < BELLS; i++)
        close(bells[i]);
    dm_bell_ring(&bells[BELLS - 1]); /* finds the bell closed, and opens another */
    dm_bell_ring(&bells[BELLS - 1]);
    for (int i = 0; i < BELLS - 1; i++)
        dm_bell_answer(&bells[i]); /* must not take what was rung for the last */
    assert_int_equal(rings_of(bells[BELLS - 1]), 1);
    for (int i = 0; i < BELLS; i++)
        close(bells[i]);
}

/* A bell that its owner has closed rings nowhere, and opens nothing. */
static void test_a_bell_stays_closed_once_its_owner_has_closed_it(void **state)
{
    int bell = DM_BELL_GONE;

    (void)state;
    dm_bell_ring(&bell);
    assert_int_equal(bell, DM_BELL_GONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_bell_is_answered_by_its_owner_alone_when_all_were_closed),
        cmocka_unit_test(test_a_bell_stays_closed_once_its_owner_has_closed_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

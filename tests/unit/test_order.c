/* SPDX-License-Identifier: BSD-2-Clause */
/* base/order: the first moment is the earliest, also after moments were put, moved and taken away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/order.h"
#include "random.h"

#define MOMENTS 100
#define STEPS 50000
#define LATEST 60 /* so few that many are equal */

static int64_t earliest(const struct dm_moment *moments)
{
    int64_t due_ns = INT64_MAX;

    for (int i = 0; i < MOMENTS; i++) {
        if (moments[i].place && moments[i].due_ns < due_ns)
            due_ns = moments[i].due_ns;
    }
    return due_ns;
}

/* The first moment is as early as a walk past all moments finds, after each step of a random sequence. */
static void test_order_names_the_earliest_when_moments_come_and_go(void **state)
{
    struct dm_order order = { 0 };
    static struct dm_moment moments[MOMENTS];

    (void)state;
    assert_null(dm_order_first(&order));
    assert_true(dm_order_reserve(&order, MOMENTS));
    for (int step = 0; step < STEPS; step++) {
        struct dm_moment *moment = &moments[random_below(MOMENTS)];
        const struct dm_moment *first;

        if (random_below(3) == 0)
            dm_order_remove(&order, moment);
        else
            dm_order_put(&order, moment, (int64_t)random_below(LATEST));
        first = dm_order_first(&order);
        assert_int_equal(first ? first->due_ns : INT64_MAX, earliest(moments));
    }
    dm_order_clear(&order);
}

/* Moments taken from the top come out in order, each moment once. */
static void test_order_is_sorted_when_emptied_from_the_top(void **state)
{
    struct dm_order order = { 0 };
    struct dm_moment moments[MOMENTS] = { 0 };
    int64_t before = 0;
    int count = 0;

    (void)state;
    for (size_t i = 0; i < MOMENTS; i++) {
        assert_true(dm_order_reserve(&order, i + 1));
        dm_order_put(&order, &moments[i], (int64_t)random_below(LATEST));
    }
    for (struct dm_moment *first; (first = dm_order_first(&order)) != NULL; count++) {
        assert_true(first->due_ns >= before);
        before = first->due_ns;
        dm_order_remove(&order, first);
        dm_order_remove(&order, first); /* in none: nothing happens */
    }
    assert_int_equal(count, MOMENTS);
    dm_order_clear(&order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_names_the_earliest_when_moments_come_and_go),
        cmocka_unit_test(test_order_is_sorted_when_emptied_from_the_top),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* fork() with a store on the server in memory, of which the child has a copy. */
#include "process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "forks.h"

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(forks_parent_goes_on, process_begin, process_end),
        cmocka_unit_test_setup_teardown(forks_child_closes_descriptors, process_begin, process_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

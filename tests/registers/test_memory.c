/* SPDX-License-Identifier: BSD-2-Clause */
/* The suite of drivers, on the driver in memory. */
#include "memory_bed.h"

int main(void)
{
    int failures;

    memory = memory_new(NULL);
    failures = driver_suite(&bed);
    memory_free(memory);
    return failures;
}

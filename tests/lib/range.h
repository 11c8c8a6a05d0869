/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * assert_within(value, least, most) fails the test unless least <= value <= most.  cmocka's own assert_within compares
 * unsigned numbers, and cmocka 2 warns of it.  Values are of 64 bits at most; unsigned ones below 2^63.
 */
#ifndef TEST_RANGE_H
#define TEST_RANGE_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define assert_within(value, least, most) assert_within_at(value, least, most, __FILE__, __LINE__)

static inline void assert_within_at(int64_t value, int64_t least, int64_t most, const char *file, int line)
{
    if (value >= least && value <= most)
        return;
    print_error("%" PRId64 " is not within %" PRId64 "-%" PRId64 "\n", value, least, most);
    _fail(file, line);
}

#endif

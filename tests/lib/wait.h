/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for a condition, and times.
 *
 * wait_until(expression) fails the test when the expression has not become true within
 * WAIT_LIMIT_MS: a bound against hanging, no measure of speed.  A promised bound is checked against
 * another event, for instance a key on the same server that lives longer (side_set_control()).
 */
#ifndef TEST_WAIT_H
#define TEST_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define WAIT_LIMIT_MS 30000

/* A millisecond's pause between two looks. */
void wait_nap(void);

/* A pause between two looks, which began at the time: a millisecond, and longer the longer they last. */
void wait_pause(int64_t began_ms);

/* CLOCK_MONOTONIC. */
int64_t wait_now_ms(void);
int64_t wait_now_us(void);

#define wait_until(expression)                                 \
    do {                                                       \
        int64_t wait_began_ms = wait_now_ms();                 \
                                                               \
        while (!(expression)) {                                \
            if (wait_now_ms() > wait_began_ms + WAIT_LIMIT_MS) \
                wait_fail(#expression, __FILE__, __LINE__);    \
            wait_pause(wait_began_ms);                         \
        }                                                      \
    } while (0)

/* The absolute time `ms` from now (may be negative) by a clock. */
struct timespec wait_time_in_ms(clockid_t clock, int64_t ms);

/* True if the clock has reached the time, to the nanosecond. */
bool wait_is_reached(clockid_t clock, const struct timespec *time);

/* True if the descriptor has something to read, or its end, within the time. */
bool wait_readable(int fd, int limit_ms);

void wait_fail(const char *expression, const char *file, int line);

#endif

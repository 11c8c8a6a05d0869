/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for a condition, and times.
 *
 * wait_until(expression) fails the test if the expression has not become true within WAIT_LIMIT_MS.  This is a bound
 * against hanging, not a measure of speed.  A promised bound is checked against another event, for example a key on the
 * same server that expires later (side_set_control()).
 */
#ifndef TEST_WAIT_H
#define TEST_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define WAIT_LIMIT_MS 30000

/* Pauses for a millisecond between two checks. */
void wait_nap(void);

/* Pauses between two checks in a wait that began at this time: a millisecond, and more the longer it lasts. */
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

/* The absolute time `ms` from now, which may be negative, on a clock. */
struct timespec wait_time_in_ms(clockid_t clock, int64_t ms);

/* True if the clock has reached the time, to the nanosecond. */
bool wait_is_reached(clockid_t clock, const struct timespec *time);

/* True if the descriptor becomes readable, or ends, within the time. */
bool wait_readable(int fd, int limit_ms);

void wait_fail(const char *expression, const char *file, int line);

#endif

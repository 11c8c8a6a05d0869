/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of core/attempt: one attempt at a time, under the test's clock in milliseconds from a beginning. */
#ifndef TESTS_UNIT_ATTEMPT_CLOCK_H
#define TESTS_UNIT_ATTEMPT_CLOCK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/units.h"
#include "core/attempt.h"

#define BEGINNING_NS (INT64_C(1000000) * DM_NS_PER_S)
#define SERIAL 7
#define THREAD 3

/* Certain for 720 ms, renewed and polled after 300 ms at most, repeated every 50 ms. */
#define LEASE_MS 900
#define CERTAIN_MS 720
#define THIRD_MS 300
#define RETRY_MS 50

static struct dm_attempt attempt;

/* A test that begins with an attempt of LEASE_MS without max-hold. */
#define USUAL(test) cmocka_unit_test_setup(test, begin_usual)

static inline int64_t at(int64_t ms)
{
    return BEGINNING_NS + ms * DM_NS_PER_MS;
}

static inline int begin(uint32_t lease_ms, uint32_t maxhold_ms)
{
    dm_attempt_init(&attempt, SERIAL, THREAD, lease_ms, maxhold_ms, true);
    return 0;
}

static inline int begin_usual(void **state)
{
    (void)state;
    return begin(LEASE_MS, 0);
}

static inline uint64_t send_at(int64_t ms)
{
    return dm_attempt_send(&attempt, at(ms)).serial;
}

/* Sends a poll or renewal that was due. */
static inline uint64_t send_due_at(int64_t ms)
{
    return dm_attempt_send_due(&attempt, at(ms)).serial;
}

static inline unsigned step(enum dm_event_kind kind, uint64_t request, const struct dm_answer *answer, int64_t ms)
{
    return dm_attempt_step(&attempt, &(struct dm_event){ kind, request, answer }, at(ms));
}

static inline unsigned say(enum dm_verdict verdict, uint64_t request, int64_t ms)
{
    return step(DM_EV_ANSWER, request, &(struct dm_answer){ .verdict = verdict, .token = 100 }, ms);
}

static inline unsigned say_queued(uint64_t request, uint64_t position, int64_t remaining_ms, int64_t ms)
{
    struct dm_answer answer = {
        .verdict = DM_SAYS_QUEUED, .position = position, .remaining_ms = remaining_ms, .arrival = 55
    };

    return step(DM_EV_ANSWER, request, &answer, ms);
}

static inline unsigned grant(uint64_t request, int64_t ms)
{
    return step(DM_EV_GRANTED, request, &(struct dm_answer){ .verdict = DM_SAYS_OWNED, .token = 100 }, ms);
}

static inline unsigned renewed(enum dm_verdict verdict, uint64_t request, int64_t ms)
{
    return step(DM_EV_RENEWED, request, &(struct dm_answer){ .verdict = verdict, .token = 100 }, ms);
}

static inline unsigned pass_time(int64_t ms)
{
    return step(DM_EV_TIME, 0, NULL, ms);
}

/* Makes the attempt own the lock by a request sent at 0; the thread has returned from lock. */
static inline uint64_t hold(void)
{
    uint64_t request = send_at(0);

    assert_int_equal(say(DM_SAYS_OWNED, request, 1), DM_DO_WAKE);
    attempt.is_entered = true;
    return request;
}

static inline void assert_certain_until(int64_t ms)
{
    assert_true(dm_attempt_is_certain(&attempt, at(ms) - 1));
    assert_false(dm_attempt_is_certain(&attempt, at(ms)));
}

#endif

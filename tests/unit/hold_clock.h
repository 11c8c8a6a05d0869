/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of core/hold: one attempt at a time, under the test's clock in milliseconds from a beginning. */
#ifndef TESTS_UNIT_HOLD_CLOCK_H
#define TESTS_UNIT_HOLD_CLOCK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../lib/range.h"
#include "base/units.h"
#include "core/hold.h"

#define BEGINNING_NS (INT64_C(1000000) * DM_NS_PER_S)
#define SERIAL 233 /* of no share before the third of a lease: see dm_hold_renewal_ns() */
#define THREAD 3

/* Certain for 720 ms, renewed and polled after 300 ms at most, repeated every 50 ms. */
#define LEASE_MS 900
#define CERTAIN_MS 720
#define THIRD_MS 300
#define RETRY_MS 50

static struct dm_hold hold;

/* A test that begins with an attempt of LEASE_MS without max-hold. */
#define USUAL(test) cmocka_unit_test_setup(test, begin_usual)

static inline int64_t at(int64_t ms)
{
    return BEGINNING_NS + ms * DM_NS_PER_MS;
}

static inline int begin(uint32_t lease_ms, uint32_t maxhold_ms)
{
    dm_hold_init(&hold, SERIAL, THREAD, lease_ms, maxhold_ms, true);
    return 0;
}

static inline int begin_usual(void **state)
{
    (void)state;
    return begin(LEASE_MS, 0);
}

/* The thread's question or, if there is one already or nothing to ask, an additional question. */
static inline uint64_t send_at(int64_t ms)
{
    bool is_wanted = dm_hold_wants(&hold, at(ms)) == DM_WANTS_ACQUIRE;

    return dm_hold_send(&hold, is_wanted ? DM_WANTS_ACQUIRE : DM_WANTS_NOTHING, at(ms)).serial;
}

/* Sends a poll or renewal that was due. */
static inline uint64_t send_due_at(int64_t ms)
{
    return dm_hold_send(&hold, dm_hold_is_waiting(&hold) ? DM_WANTS_POLL : DM_WANTS_RENEW, at(ms)).serial;
}

static inline enum dm_want wants(int64_t ms)
{
    return dm_hold_wants(&hold, at(ms));
}

/* When the hold next wants something that is not the thread's task; DM_NEVER: nothing. */
static inline int64_t next_ns(void)
{
    int64_t next = DM_NEVER;

    for (enum dm_want want = 0; want < DM_WANTS_ACQUIRE; want++)
        next = dm_hold_due_ns(&hold, want) < next ? dm_hold_due_ns(&hold, want) : next;
    return next;
}

static inline unsigned step(enum dm_event_kind kind, uint64_t request, const struct dm_answer *answer, int64_t ms)
{
    return dm_hold_step(&hold, &(struct dm_event){ .kind = kind, .request = request, .answer = answer }, at(ms));
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

static inline unsigned polled(enum dm_verdict verdict, uint64_t request, int64_t ms)
{
    return step(DM_EV_POLLED, request, &(struct dm_answer){ .verdict = verdict, .token = 100 }, ms);
}

static inline unsigned released(enum dm_verdict verdict, int64_t ms)
{
    return step(DM_EV_RELEASED, 0, &(struct dm_answer){ .verdict = verdict }, ms);
}

/* An event of the thread or of the world, without an answer. */
static inline unsigned event_at(enum dm_event_kind kind, int64_t ms)
{
    return step(kind, 0, NULL, ms);
}

/* Lets time pass, as the loop does when time is due, and returns what is wanted then. */
static inline enum dm_want pass_time(int64_t ms)
{
    event_at(DM_EV_TIME, ms);
    return wants(ms);
}

static inline enum dm_want give_back(int64_t ms)
{
    assert_int_equal(event_at(DM_EV_GIVEN_BACK, ms), 0);
    return wants(ms);
}

/* Makes the attempt own the lock by a request sent at 0; the thread has returned from lock. */
static inline uint64_t own(void)
{
    uint64_t request = send_at(0);

    assert_int_equal(say(DM_SAYS_OWNED, request, 1), DM_DO_WAKE);
    assert_int_equal(event_at(DM_EV_ENTERED, 1), 0);
    return request;
}

static inline void assert_certain_until(int64_t ms)
{
    assert_true(dm_hold_is_certain(&hold, at(ms) - 1));
    assert_false(dm_hold_is_certain(&hold, at(ms)));
}

#endif

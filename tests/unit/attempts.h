/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * core/quorum: an attempt on three or five servers, under the test's clock in milliseconds, and the servers' answers.
 * Included once by each program of such tests.
 */
#ifndef UNIT_ATTEMPTS_H
#define UNIT_ATTEMPTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/units.h"
#include "core/hold.h"
#include "core/quorum.h"

#define BEGINNING_NS (INT64_C(1000000) * DM_NS_PER_S)

/* Certain for 800 ms. */
#define LEASE_MS 1000
#define CERTAIN_MS 800

static struct dm_quorum quorum;

static inline int64_t at(int64_t ms)
{
    return BEGINNING_NS + ms * DM_NS_PER_MS;
}

static inline int begin_three(void **state)
{
    (void)state;
    dm_quorum_init(&quorum, 3, LEASE_MS, 100);
    return 0;
}

static inline int begin_five(void **state)
{
    (void)state;
    dm_quorum_init(&quorum, 5, LEASE_MS, 100);
    return 0;
}

/* Sends all questions of the round.  Returns how many. */
static inline int send_all(int64_t ms)
{
    int sent = 0;

    for (int i = 0; i < quorum.count; i++) {
        enum dm_quorum_question question = dm_quorum_ask(&quorum, i, at(ms));

        if (question == DM_QUORUM_NONE)
            continue;
        dm_quorum_send(&quorum, i, question);
        sent++;
    }
    return sent;
}

static inline void answer(int server, enum dm_quorum_question question, int64_t sent_ms, struct dm_answer said)
{
    dm_quorum_take(&quorum, server, question, at(sent_ms), &said);
}

/* A server's clock, whose tokens would be the milliseconds of the test: tokens of some hundred are near enough. */
static inline int64_t clock_us(int64_t ms)
{
    return DM_TOKEN_EPOCH_US + ms * 1000;
}

static inline void own_by_clock(int server, int64_t sent_ms, uint64_t token, int64_t store_us)
{
    answer(server, DM_QUORUM_TRY, sent_ms,
           (struct dm_answer){ .verdict = DM_SAYS_OWNED, .token = token, .store_us = store_us });
}

static inline void own(int server, int64_t sent_ms, uint64_t token)
{
    own_by_clock(server, sent_ms, token, clock_us(sent_ms));
}

static inline void say(int server, enum dm_verdict verdict)
{
    answer(server, DM_QUORUM_TRY, 0, (struct dm_answer){ .verdict = verdict, .remaining_ms = 70 });
}

/* A renewal carries the token of the hold, which is decided now at the latest. */
static inline void renew(int server, int64_t sent_ms, enum dm_verdict verdict)
{
    dm_quorum_settle_token(&quorum, at(sent_ms));
    answer(server, DM_QUORUM_RENEW, sent_ms,
           (struct dm_answer){ .verdict = verdict, .token = dm_quorum_token(&quorum), .store_us = clock_us(sent_ms) });
}

static inline uint64_t settled_at(int64_t ms)
{
    dm_quorum_settle_token(&quorum, at(ms));
    return quorum.token;
}

/* The answer of a server that was born this long ago, by its clock, which shows 2000 s. */
static inline void answer_newly(int server, enum dm_quorum_question question, int64_t sent_ms, enum dm_verdict verdict,
                                int64_t age_ms)
{
    struct dm_answer said = { .verdict = verdict, .token = 1, .store_us = 2000000000 };

    said.since_us = said.store_us - age_ms * 1000;
    dm_quorum_doubt(&quorum, question, &said);
    answer(server, question, sent_ms, said);
}

static inline enum dm_quorum_step step_at(int64_t ms)
{
    return dm_quorum_step(&quorum, false, at(ms));
}

static inline void assert_certain_until(int64_t ms)
{
    assert_true(dm_quorum_is_certain(&quorum, at(ms) - 1));
    assert_false(dm_quorum_is_certain(&quorum, at(ms)));
}

/* A dash to all servers; those of the set own, with tokens 101, 102, ... */
static inline void dash(unsigned owned, bool may_queue)
{
    dm_quorum_begin(&quorum, DM_QUORUM_DASH, may_queue, 0);
    send_all(0);
    for (int i = 0; i < quorum.count; i++) {
        if (owned & 1u << i)
            own(i, 0, 101 + (uint64_t)i);
    }
}

#define THREE(test) cmocka_unit_test_setup(test, begin_three)
#define FIVE(test) cmocka_unit_test_setup(test, begin_five)

#endif

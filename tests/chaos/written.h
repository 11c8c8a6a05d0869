/* SPDX-License-Identifier: BSD-2-Clause */
/* Histories written by hand, for the tests of the judge; included once by each such test. */
#ifndef CHAOS_WRITTEN_H
#define CHAOS_WRITTEN_H

#include <string.h>

#include "../lib/testlib.h"
#include "check.h"

#define MS INT64_C(1000000)
#define LEASE 1000 * MS

static struct history *history;
static struct verdict verdict;

/* The end of the call added last.  A call takes 1 ms; the next call, of any thread, begins a nanosecond later. */
static int64_t now_ns;

static inline struct op *add(unsigned track, enum op_kind kind, enum name name, int result, uint64_t token,
                             unsigned depth)
{
    struct op *op = history_begin(history, track, kind, name);

    assert_non_null(op);
    op->began_ns = ++now_ns;
    now_ns += MS;
    op->ended_ns = op->told_ns = now_ns;
    op->result = result;
    op->token = token;
    op->depth = (uint8_t)depth;
    op->certain_ns = depth ? now_ns + LEASE : 0;
    return op;
}

static inline struct op *lock(unsigned track, enum name name, uint64_t token)
{
    return add(track, OP_LOCK, name, 0, token, 1);
}

static inline struct op *unlock(unsigned track, enum name name)
{
    return add(track, OP_UNLOCK, name, 0, 0, 0);
}

static inline void lose(unsigned track, enum name name)
{
    lock(track, name, 10);
    now_ns += 2 * LEASE;
}

static inline long judge(void)
{
    memset(&verdict, 0, sizeof verdict);
    check_history(history, &verdict);
    return verdict_sum(&verdict);
}

/* Asserts that the judge finds only this kind, and describes it. */
static inline void assert_found(enum finding finding)
{
    judge();
    for (int i = 0; i < FINDINGS; i++) {
        if (i != (int)finding && verdict.found[i])
            fail_msg("%s, not %s: %s", finding_names[i], finding_names[finding], verdict.first[i]);
    }
    assert_true(verdict.found[finding] > 0);
    assert_true(verdict.first[finding][0]);
}

static inline int begin_test(void **state)
{
    (void)state;
    history = history_make();
    history_add_track(history, 1, 0);
    history_add_track(history, 2, 0);
    history_add_track(history, 3, 0);
    now_ns = 1000 * MS;
    return 0;
}

static inline int end_test(void **state)
{
    (void)state;
    history_free(history);
    return 0;
}

#define test(name) cmocka_unit_test_setup_teardown(name, begin_test, end_test)

#endif

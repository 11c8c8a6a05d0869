/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a lock on registers costs a Redis server: the calls of scripts, as the server counts them.  perf stat counts
 * the client's system calls (doc/design/redis-registers.md, "Costs").
 */
#include "redisbed.h"

#include <pthread.h>
#include <string.h>

#include "process.h"

#define PAIRS 2000
#define HANDOFFS 200 /* of each of two processes */

/* Beats, at three in a lease, and a waiter's polls at as many; a machine that is slow needs more of them. */
static int64_t beats_in(int64_t ms)
{
    return 2 * (4 * ms / PROCESS_LEASE_MS + 4);
}

static int64_t script_calls(void)
{
    struct side *side = memory_server(process_memory)->side;

    return side_calls(side, "evalsha") + side_calls(side, "eval");
}

static bool hold_once(struct process *process)
{
    uint64_t attempt = process_next_attempt(process);

    return process_acquire(process, attempt).verdict == DM_SAYS_OWNED &&
           process_release(process, attempt) == DM_SAYS_DONE;
}

/* A pair that nobody disturbs is two swaps of the copy that the process has: two scripts, two round trips. */
static void test_pair_is_two_scripts(void **state)
{
    struct process *process = process_start(0, false);
    int64_t before, began_ms, calls;

    (void)state;
    assert_true(hold_once(process));
    before = script_calls();
    began_ms = wait_now_ms();
    for (int i = 0; i < PAIRS; i++)
        assert_true(hold_once(process));
    calls = script_calls() - before;
    assert_true(calls >= 2 * PAIRS && calls <= 2 * PAIRS + beats_in(wait_now_ms() - began_ms));
}

static void *hand_on(void *user)
{
    for (int i = 0; i < HANDOFFS; i++) {
        if (!hold_once(user))
            return (void *)"not locked";
    }
    return NULL;
}

/*
 * Two processes that take turns.  One stands in line and one gives back: two swaps.  The release often meets a queue
 * that it does not know, and is repeated with the value that the conflict has brought; so is whoever stands in line.
 */
static void test_handoff_is_four_scripts_at_most(void **state)
{
    struct process *one = process_start(0, false), *other = process_start(1, false);
    int64_t before, began_ms, calls;
    pthread_t thread;
    void *fault;

    (void)state;
    assert_true(hold_once(one) && hold_once(other));
    before = script_calls();
    began_ms = wait_now_ms();
    assert_int_equal(pthread_create(&thread, NULL, hand_on, other), 0);
    assert_null(hand_on(one));
    pthread_join(thread, &fault);
    assert_null(fault);
    calls = script_calls() - before;
    print_message("# %.2f scripts for each of %d locks of two processes\n", (double)calls / (2 * HANDOFFS),
                  2 * HANDOFFS);
    assert_true(calls <= 4 * 2 * HANDOFFS + 2 * beats_in(wait_now_ms() - began_ms));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pair_is_two_scripts, process_begin, process_end),
        cmocka_unit_test_setup_teardown(test_handoff_is_four_scripts_at_most, process_begin, process_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

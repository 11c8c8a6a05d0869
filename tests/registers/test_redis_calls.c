/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a lock on registers costs: the calls of scripts, as a Redis server counts them, and the system calls of the
 * process.
 */
#include "redisbed.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/tracer.h"
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

/* Another process: says when it has made a pair, and does the others once it is told to. */
static void make_pairs(int orders, int answers)
{
    struct process *process = process_start(0, true);
    bool is_done = hold_once(process) && write(answers, "", 1) == 1 && read(orders, &(char){ 0 }, 1) == 1;

    for (int i = 0; i < PAIRS && is_done; i++)
        is_done = hold_once(process);
    _exit(is_done && write(answers, "", 1) == 1 ? 0 : 1);
}

static bool has_answered(void *user)
{
    struct pollfd polled = { .fd = *(int *)user, .events = POLLIN };

    return poll(&polled, 1, 0) == 1;
}

/* Returns for how many ms the traced pairs took. */
static int64_t trace_pairs(struct tracer *tracer)
{
    int orders[2], answers[2], status;
    int64_t began_ms;
    pid_t pid;

    assert_int_equal(pipe(orders), 0);
    assert_int_equal(pipe(answers), 0);
    pid = fork();
    if (pid == 0)
        make_pairs(orders[0], answers[1]);
    close(answers[1]);
    assert_int_equal(read(answers[0], &(char){ 0 }, 1), 1);
    tracer_start(tracer, pid);
    began_ms = wait_now_ms();
    assert_int_equal(write(orders[1], "", 1), 1);
    tracer_run(tracer, has_answered, &answers[0]);
    tracer_stop(tracer);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(orders[0]);
    close(orders[1]);
    close(answers[0]);
    return wait_now_ms() - began_ms;
}

/*
 * A thread writes, sleeps until the answer comes, and reads.  On top come the ticks of the loop thread, 20 in a second,
 * beats, and a look at the inbox each millisecond.
 */
static void test_pair_is_six_system_calls(void **state)
{
    struct tracer tracer;
    int64_t took_ms = trace_pairs(&tracer), more = 2 * (took_ms / 50 + 1) + 2 * beats_in(took_ms);

    (void)state;
    print_message("# for %d pairs in %lld ms: %ld sends, %ld reads, %ld sleeps, %ld wake-ups\n", PAIRS,
                  (long long)took_ms, tracer.calls[SYS_sendto], tracer.calls[SYS_recvfrom], tracer.calls[SYS_ppoll],
                  tracer.calls[SYS_futex] + tracer.calls[SYS_write]);
    assert_true(tracer.calls[SYS_sendto] >= 2 * PAIRS && tracer.calls[SYS_sendto] <= 2 * PAIRS + more);
    assert_true(tracer.calls[SYS_recvfrom] <= 2 * PAIRS + took_ms + more);
    assert_true(tracer.calls[SYS_ppoll] <= 2 * PAIRS + more);
    assert_true(tracer.calls[SYS_futex] + tracer.calls[SYS_write] <= PAIRS / 10 + 2 * more);
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
        cmocka_unit_test_setup_teardown(test_pair_is_six_system_calls, process_begin, process_end),
        cmocka_unit_test_setup_teardown(test_handoff_is_four_scripts_at_most, process_begin, process_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

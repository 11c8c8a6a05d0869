/* SPDX-License-Identifier: BSD-2-Clause */
/* What a contended lock asks of the kernel. */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "../lib/testlib.h"
#include "../lib/tracer.h"

#define TURNS 400

/* For each acquisition: two requests, and sometimes a wake-up of the loop or a renewal. */
#define MOST_SENDS 2.5

/* Two answers and one message: at most one sleep for each, of the caller and of the loop. */
#define MOST_SLEEPS 6

/*
 * All calls.  Before a sleep the caller looks for the answer and yields the processor for as long as an answer usually
 * takes; how many looks fit in depends on what else runs.  A loop that never sleeps makes hundreds.
 */
#define MOST_CALLS 30
#define LONG_LEASE 60000

static bool has_answered(void *user)
{
    return !actor_is_silent(user);
}

/* The list ends with -1. */
static double for_each(const struct tracer *tracer, const int *numbers)
{
    long sum = 0;

    for (; *numbers >= 0; numbers++)
        sum += tracer->calls[*numbers];
    return (double)sum / TURNS;
}

static double all_for_each(const struct tracer *tracer)
{
    long sum = 0;

    for (int i = 0; i < TRACER_CALLS; i++) {
        if (i != SYS_pread64 && i != SYS_pwrite64) /* of the actor, which counts in a file */
            sum += tracer->calls[i];
    }
    return (double)sum / TURNS;
}

/*
 * Two processes take a name from each other, turn by turn.  Counts the system calls of one of the two.  The other is
 * killed, perhaps inside.
 */
static void trace_turns(struct tracer *tracer)
{
    struct actor *traced = actor_start(the_server), *other = actor_start(the_server);
    char file[64];

    snprintf(file, sizeof file, "%s/calls", the_server->folder);
    actor_begin_count(file);
    actor_do(traced, "0", "init calls/1 lease=%d", LONG_LEASE);
    actor_do(traced, "0", "count %s 1 calls/1", file);
    actor_do(other, "0", "init calls/1 lease=%d", LONG_LEASE);
    actor_send(other, "count %s %d calls/1", file, 100 * TURNS);
    tracer_start(tracer, actor_pid(traced));
    actor_send(traced, "count %s %d calls/1", file, TURNS);
    tracer_run(tracer, has_answered, traced);
    tracer_stop(tracer);
    actor_expect(traced, "0");
    actor_kill(other);
    actor_end(other);
    actor_end(traced);
}

static void test_a_contended_lock_makes_few_system_calls(void **state)
{
    static const int sends[] = { SYS_sendto, SYS_sendmsg, SYS_write, SYS_writev, -1 };
    static const int sleeps[] = { SYS_futex,       SYS_poll,   SYS_ppoll,           SYS_epoll_wait,
                                  SYS_epoll_pwait, SYS_select, SYS_clock_nanosleep, -1 };
    struct tracer tracer;

    (void)state;
    trace_turns(&tracer);
    print_message("# for an acquisition: %.2f sends, %.2f sleeps and wakeups, %.2f calls\n", for_each(&tracer, sends),
                  for_each(&tracer, sleeps), all_for_each(&tracer));
    assert_true(for_each(&tracer, sends) <= MOST_SENDS);
    assert_true(for_each(&tracer, sleeps) <= MOST_SLEEPS);
    assert_true(all_for_each(&tracer) <= MOST_CALLS);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_contended_lock_makes_few_system_calls),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

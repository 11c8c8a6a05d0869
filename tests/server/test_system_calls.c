/* SPDX-License-Identifier: BSD-2-Clause */
/* What a contended lock asks of the kernel. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "../lib/testlib.h"
#include "../lib/tracer.h"

#define TURNS 400
#define TRIES 5

/* For each acquisition: two requests, two answers, one message. */
#define MOST_CALLS 8

/*
 * The same where other programs want the processors: then the server answers late, and each of the two answers and the
 * message costs a look in vain, a sleep, a look after the sleep, and now and then the loop's turn.
 */
#define MOST_CALLS_OF_BUSY 14
#define LONG_LEASE 60000

static bool has_answered(void *user)
{
    return !actor_is_silent(user);
}

static long calls_of_library(const struct tracer *tracer)
{
    long sum = 0;

    for (int i = 0; i < TRACER_CALLS; i++) {
        if (i != SYS_pread64 && i != SYS_pwrite64) /* of the actor, which counts in a file */
            sum += tracer->calls[i];
    }
    return sum;
}

/*
 * Two processes take a name from each other, turn by turn.  Returns the system calls of one of the two.  The other is
 * killed, perhaps inside, so each round has a name and a file of its own.
 */
static long calls_of_turns(struct actor *traced, int round)
{
    struct actor *other = actor_start(the_server);
    struct tracer tracer;
    char file[64];

    snprintf(file, sizeof file, "%s/calls%d", the_server->folder, round);
    actor_begin_count(file);
    actor_do(traced, "0", "init calls/%d lease=%d", round, LONG_LEASE);
    actor_do(traced, "0", "count %s 1 calls/%d", file, round);
    actor_do(other, "0", "init calls/%d lease=%d", round, LONG_LEASE);
    actor_send(other, "count %s %d calls/%d", file, 100 * TURNS, round);
    tracer_start(&tracer, actor_pid(traced));
    actor_send(traced, "count %s %d calls/%d", file, TURNS, round);
    tracer_run(&tracer, has_answered, traced);
    tracer_stop(&tracer);
    actor_expect(traced, "0");
    actor_kill(other);
    actor_end(other);
    return calls_of_library(&tracer);
}

/* The actors are silent when this looks. */
static long most_calls(void)
{
    return (late_is_busy() ? MOST_CALLS_OF_BUSY : MOST_CALLS) * TURNS;
}

/* All threads together make no more than MOST_CALLS for an acquisition.  Other work of the machine only adds calls. */
static void test_a_contended_lock_makes_few_system_calls(void **state)
{
    struct actor *traced = actor_start(the_server);
    long calls = LONG_MAX, most = 0;

    (void)state;
    for (int i = 0; i < TRIES && calls > most; i++) {
        calls = calls_of_turns(traced, i);
        most = most_calls();
        print_message("# %.2f system calls for an acquisition\n", (double)calls / TURNS);
    }
    assert_within(calls, 1, most);
    actor_end(traced);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_contended_lock_makes_few_system_calls),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

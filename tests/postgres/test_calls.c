/* SPDX-License-Identifier: BSD-2-Clause */
/* What a mutex on PostgreSQL asks of the kernel: each system call of the process is counted, and nothing is timed. */
#include "../lib/testlib.h"

#include <string.h>
#include <sys/syscall.h>

#include "../lib/tracer.h"
#include "../registers/pgserver.h"

#define PAIRS 500

/* No beat of a session in the test, unless it takes 20 s. */
#define LONG "lease=60000"

/* Every 50 ms the loop thread looks whether somebody still polls: one sleep, and a look at what is due. */
#define TICK_MS 50

static struct pgserver *server;
static char url[128];

/* Nothing was held in these data before. */
static int setup(void **state)
{
    (void)state;
    server = pgserver_start();
    snprintf(url, sizeof url, "%s&dmutex.grace=off", server->url);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pgserver_end(server);
    return 0;
}

static bool has_answered(void *user)
{
    return !actor_is_silent(user);
}

/* The list ends with -1. */
static long sum_of(const struct tracer *tracer, const int *numbers)
{
    long sum = 0;

    for (; *numbers >= 0; numbers++)
        sum += tracer->calls[*numbers];
    return sum;
}

/* The first pairs connect, and make the name.  Returns for how many ms the traced pairs took. */
static int64_t trace_pairs(struct tracer *tracer, const char *name)
{
    struct actor *actor = actor_start_at(url);
    int64_t began_ms;
    char file[64];

    snprintf(file, sizeof file, "%s/calls", server->folder);
    actor_begin_count(file);
    actor_do(actor, "0", "init %s " LONG, name);
    actor_do(actor, "0", "count %s 2 %s", file, name);
    tracer_start(tracer, actor_pid(actor));
    began_ms = wait_now_ms();
    actor_send(actor, "count %s %d %s", file, PAIRS, name);
    tracer_run(tracer, has_answered, actor);
    tracer_stop(tracer);
    actor_expect(actor, "0");
    actor_end(actor);
    return wait_now_ms() - began_ms;
}

/*
 * A pair is two round trips: a thread writes, sleeps until the answer comes, and reads, and nobody wakes anybody.  The
 * ticks of the loop thread, and the actor's own command, come on top.
 */
static void test_pair_is_two_round_trips_when_nobody_else_wants_the_mutex(void **state)
{
    static const int sends[] = { SYS_sendto, SYS_sendmsg, -1 }, receives[] = { SYS_recvfrom, SYS_recvmsg, -1 };
    static const int sleeps[] = { SYS_poll, SYS_ppoll, SYS_select, SYS_clock_nanosleep, -1 };
    static const int wakeups[] = { SYS_futex, SYS_write, SYS_writev, -1 };
    static const int checks[] = { SYS_fstat, SYS_newfstatat, SYS_fcntl, -1 };
    struct tracer tracer;
    int64_t took_ms = trace_pairs(&tracer, "pairs");
    long ticks = 2 * (took_ms / TICK_MS + 1);

    (void)state;
    print_message("# for %d pairs in %lld ms: %ld sends, %ld reads, %ld sleeps, %ld wake-ups, %ld checks\n", PAIRS,
                  (long long)took_ms, sum_of(&tracer, sends), sum_of(&tracer, receives), sum_of(&tracer, sleeps),
                  sum_of(&tracer, wakeups), sum_of(&tracer, checks));
    assert_true(sum_of(&tracer, sends) >= 2 * PAIRS);
    assert_true(sum_of(&tracer, sends) <= 2 * PAIRS + ticks);
    assert_true(sum_of(&tracer, receives) <= 2 * PAIRS + ticks);
    assert_true(sum_of(&tracer, sleeps) <= 2 * PAIRS + ticks);
    assert_true(sum_of(&tracer, wakeups) <= PAIRS / 10 + 2 * ticks);
    assert_true(sum_of(&tracer, checks) <= took_ms + ticks);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair_is_two_round_trips_when_nobody_else_wants_the_mutex),
    };

    test_begin(argc, argv);
    if (!pgserver_is_possible()) {
        puts("1..0 # SKIP no PostgreSQL is installed (package postgresql)");
        return 0;
    }
    return cmocka_run_group_tests(tests, setup, teardown);
}

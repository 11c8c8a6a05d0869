/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call that waits for better times rests in between.  We count how often it reads the clock and sleeps in the kernel:
 * a thread that spins reads it thousands of times without a sleep.
 */
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define LOOKS_FOR_A_SLEEP 100

static uint64_t looks;

/* Replaces libc's for the whole program: each bounded wait of the library asks how much time is left. */
int clock_gettime(clockid_t clock, struct timespec *ret_now)
{
    __atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED);
    return (int)syscall(SYS_clock_gettime, clock, ret_now);
}

struct effort {
    uint64_t looks, sleeps;
};

/* Of all threads since the process began. */
static struct effort effort_now(void)
{
    struct rusage usage;

    assert_return_code(getrusage(RUSAGE_SELF, &usage), errno);
    return (struct effort){ __atomic_load_n(&looks, __ATOMIC_RELAXED), (uint64_t)usage.ru_nvcsw };
}

static void assert_rested_since(struct effort before)
{
    struct effort now = effort_now();

    print_message("# %lu looks, %lu sleeps\n", (unsigned long)(now.looks - before.looks),
                  (unsigned long)(now.sleeps - before.sleeps));
    assert_true(now.looks > before.looks);
    assert_true(now.looks - before.looks < LOOKS_FOR_A_SLEEP * (now.sleeps - before.sleeps + 1));
}

static int begin_group(void **state)
{
    static char url[192];

    the_server = server_start();
    snprintf(url, sizeof url, "%s&command_timeout=500", the_server->url);
    setenv("DMUTEX_URL", url, 1);
    *state = the_server;
    return 0;
}

/* The server refuses the release again and again, while nothing is in progress. */
static void test_destroy_rests_while_the_server_refuses_the_release(void **state)
{
    struct effort before;
    dmutex_t mutex;

    (void)state;
    make_normal(&mutex, NULL, 60000);
    assert_result(dmutex_lock(&mutex), 0);
    side_text(the_server->side, "CONFIG SET min-replicas-to-write 1");
    assert_result(dmutex_unlock(&mutex), 0);
    before = effort_now();
    assert_result(dmutex_destroy(&mutex), 0);
    side_text(the_server->side, "CONFIG SET min-replicas-to-write 0");
    assert_rested_since(before);
}

/* A program that gives its rights up: Linux does not poll more descriptors than the limit says. */
static void test_a_waiter_rests_when_the_limit_of_descriptors_is_below_those_in_use(void **state)
{
    struct rlimit usual, low;
    struct effort before;
    dmutex_t mutex;

    (void)state;
    make_fair(&mutex, "rests/limit", &kinds[0], 60000);
    assert_result(dmutex_lock(&mutex), 0);
    assert_return_code(getrlimit(RLIMIT_NOFILE, &usual), errno);
    low = usual;
    low.rlim_cur = 0;
    assert_return_code(setrlimit(RLIMIT_NOFILE, &low), errno);
    before = effort_now();
    assert_result(in_thread(timedlock_soon, &mutex), ETIMEDOUT);
    assert_rested_since(before);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_return_code(setrlimit(RLIMIT_NOFILE, &usual), errno);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_destroy_rests_while_the_server_refuses_the_release),
        cmocka_unit_test(test_a_waiter_rests_when_the_limit_of_descriptors_is_below_those_in_use),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, test_group_teardown);
}

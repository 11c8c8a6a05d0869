/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Children that live on when the parent, the owner, is gone: they own nothing of the parent's and keep nothing of it
 * alive. Left out under the thread sanitizer.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define LEASE 400
#define LONG_LEASE 60000
#define SLACK 1000
#define AT_ONCE 5000

static dmutex_t mutex, own; /* the parent's, and the child's own */

/* A family's reports to the test, in memory that all share. */
static struct family {
    pid_t child;
    int locked;   /* of the parent, by name's robust mutex */
    int answered; /* of the child: 1 + the number of the first wrong answer, 1: none */
    int may_end;
} * family;

static int begin_test(void **state)
{
    (void)state;
    family = mmap(NULL, sizeof *family, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(family, MAP_FAILED);
    family->locked = -1;
    return 0;
}

static int load(const int *place)
{
    return __atomic_load_n(place, __ATOMIC_ACQUIRE);
}

static void store(int *place, int value)
{
    __atomic_store_n(place, value, __ATOMIC_RELEASE);
}

static int end_test(void **state)
{
    (void)state;
    store(&family->may_end, 1);
    if (family->child > 0)
        wait_until(!proc_is_alive(family->child));
    munmap(family, sizeof *family);
    return 0;
}

/* The child: uses the library itself, and keeps its own mutex until asked to stop. */
static void live_on(void)
{
    const bool answers[] = {
        dmutex_unlock(&mutex) == EPERM,
        dmutex_trylock(&mutex) == EBUSY,
        dmutex_lock(&own) == 0,
    };
    int answered = 1;

    for (int i = 0; i < 3 && answered == 1; i++)
        answered = answers[i] ? 1 : i + 2;
    store(&family->answered, answered);
    for (int naps = 0; !load(&family->may_end) && naps < WAIT_LIMIT_MS; naps++)
        wait_nap();
    dmutex_unlock(&own);
    _exit(0);
}

/* The parent: locks, and leaves the child alone. */
static void found_family(void)
{
    pid_t child;

    store(&family->locked, dmutex_lock(&mutex));
    child = fork();
    if (child == 0)
        live_on();
    family->child = child;
    while (!load(&family->answered))
        wait_nap();
}

static pid_t start_family(const char *name, int lease_ms)
{
    pid_t parent;

    make_robust(&mutex, name, (unsigned)lease_ms);
    make_normal(&own, "orphan/own", LEASE);
    parent = keeper_fork();
    if (parent == 0) {
        found_family();
        if (lease_ms == LONG_LEASE)
            exit(0);
        pause();
    }
    wait_until(load(&family->answered) != 0);
    assert_result(load(&family->locked), 0);
    assert_int_equal(load(&family->answered), 1);
    return parent;
}

static void check_death(void)
{
    assert_result(dmutex_lock(&mutex), EOWNERDEAD);
    assert_kept();
    assert_result(dmutex_consistent(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_true(proc_is_alive(family->child));
    assert_true(is_locked(&own));
}

/* POSIX scenario 45: a child that renews its own hold does not renew the hold of the killed parent. */
static void test_the_lease_ends_when_the_parent_is_killed_and_a_child_lives_on(void **state)
{
    pid_t parent = start_family("orphan/killed", LEASE);

    (void)state;
    promise_within(LEASE + SLACK);
    assert_int_equal(kill(parent, SIGKILL), 0);
    keeper_reap(parent);
    check_death();
}

/* POSIX scenario 44, 45: a parent that exits, as a daemon's does, has died for the waiters. */
static void test_the_death_is_reported_at_once_when_the_parent_exits_and_a_child_lives_on(void **state)
{
    pid_t parent;

    (void)state;
    promise_within(AT_ONCE);
    parent = start_family("orphan/daemon", LONG_LEASE);
    assert_int_equal(keeper_reap(parent), 0);
    check_death();
}

static int64_t connections_so_far(void)
{
    const char *stats = side_text(the_server->side, "INFO stats");
    const char *line = strstr(stats, "total_connections_received:");

    assert_non_null(line);
    return strtoll(strchr(line, ':') + 1, NULL, 10);
}

/* Failure 21: no end of a child closes, or writes to, the connections of the parent. */
static void test_the_parents_connections_stay_when_children_end(void **state)
{
    int64_t commands, connections;

    (void)state;
    make_normal(&own, "orphan/own", LEASE);
    wait_until(!is_locked(&own));
    make_normal(&mutex, "orphan/stay", LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_renew_np(&mutex), 0); /* the server knows this script from now on */
    commands = client_commands();
    connections = connections_so_far();
    for (int i = 0; i < 10; i++) {
        pid_t pid = keeper_fork();

        if (pid == 0 && i % 2)
            exit(0);
        if (pid == 0)
            _exit(0);
        assert_int_equal(keeper_reap(pid), 0);
    }
    assert_result(dmutex_renew_np(&mutex), 0);
    assert_int_equal(client_commands(), commands + 1);
    assert_int_equal(connections_so_far(), connections);
    assert_result(dmutex_unlock(&mutex), 0);
}

#define ORPHAN_TEST(test) cmocka_unit_test_setup_teardown(test, begin_test, end_test)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ORPHAN_TEST(test_the_lease_ends_when_the_parent_is_killed_and_a_child_lives_on),
        ORPHAN_TEST(test_the_death_is_reported_at_once_when_the_parent_exits_and_a_child_lives_on),
        cmocka_unit_test(test_the_parents_connections_stay_when_children_end),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Mutexes on a store of registers, through the public functions. */
#include "../lib/testlib.h"

#include <stdlib.h>
#include <string.h>

#include "bed.h"

/*
 * Leases are short where a test waits for the end of one, and else so long that no lease ends in the test, even if
 * servers crash on a busy machine.  For these nobody waits until the data have been there for a lease.
 */
#define SHORT "lease=1000"
#define LONG "lease=60000"

static int idle_connections;

static int setup(void **state)
{
    (void)state;
    bed_begin();
    idle_connections = bed_count_connections();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    bed_end();
    return 0;
}

static struct actor *start_with(const char *name, const char *options)
{
    struct actor *actor = actor_start_at(strstr(options, LONG) ? bed_url_without_grace() : bed_url());

    actor_do(actor, "0", "init %s %s", name, options);
    return actor;
}

static struct actor *start_holder(const char *name, const char *options)
{
    struct actor *actor = start_with(name, options);

    actor_do(actor, "0", "lock %s", name);
    return actor;
}

/* Changes with each swap of the name. */
static const char *version_of(const char *name)
{
    char key[64];

    snprintf(key, sizeof key, "n/%s", name);
    return bed_version_of(key);
}

/* Sends a lock that has to wait, and returns once the waiter is in the queue. */
static void send_waiter(struct actor *actor, const char *name)
{
    char before[64];

    snprintf(before, sizeof before, "%s", version_of(name));
    actor_send(actor, "lock %s", name);
    wait_until(strcmp(version_of(name), before) != 0);
    assert_true(actor_is_silent(actor));
}

/* One process at a time holds a mutex, waiters get it in turn, and each hold has a higher token */
static void test_mutex_excludes_and_hands_on(void **state)
{
    struct actor *a = start_holder("hand", SHORT), *b = start_with("hand", SHORT), *c = start_with("hand", SHORT);
    long long tokens[3];

    (void)state;
    actor_do(b, "EBUSY", "trylock hand");
    tokens[0] = actor_value(a, "token hand");
    send_waiter(b, "hand");
    send_waiter(c, "hand");
    actor_do(a, "0", "unlock hand");
    actor_expect(b, "0");
    tokens[1] = actor_value(b, "token hand");
    assert_true(actor_is_silent(c));
    actor_do(b, "0", "unlock hand");
    actor_expect(c, "0");
    tokens[2] = actor_value(c, "token hand");
    assert_true(tokens[0] < tokens[1] && tokens[1] < tokens[2]);
    actor_do(c, "0", "unlock hand");
    actor_do(c, "EPERM", "unlock hand");
    actor_end(a);
    actor_end(b);
    actor_end(c);
}

/* Processes that count under the mutex count right */
static void test_mutex_guards_a_count(void **state)
{
    struct actor *actors[3];
    char path[64];

    (void)state;
    snprintf(path, sizeof path, "%s/count", bed_folder());
    actor_begin_count(path);
    for (int i = 0; i < 3; i++) {
        actors[i] = start_with("count", LONG);
        actor_send(actors[i], "count %s 200 count 2", path);
    }
    for (int i = 0; i < 3; i++) {
        assert_string_equal(actor_answer_of_count(actors[i], path), "0");
        actor_end(actors[i]);
    }
    assert_true(actor_counted(path) >= 1200);
}

/* A recursive mutex counts its levels, and an error-checking one tells a relock */
static void test_mutex_has_the_kinds_of_posix(void **state)
{
    struct actor *a = start_with("recursive", "recursive " LONG), *b = start_with("recursive", LONG);

    (void)state;
    actor_do(a, "0", "lock recursive");
    actor_do(a, "0", "lock recursive");
    actor_do(a, "0", "trylock recursive");
    actor_do(a, "0", "unlock recursive");
    actor_do(a, "0", "unlock recursive");
    actor_do(b, "EBUSY", "trylock recursive");
    actor_do(a, "0", "unlock recursive");
    actor_do(b, "0", "lock recursive");
    actor_do(b, "0", "init errorcheck errorcheck " LONG);
    actor_do(b, "0", "lock errorcheck");
    actor_do(b, "EDEADLK", "lock errorcheck");
    actor_do(a, "EPERM", "unlock errorcheck");
    actor_do(b, "0", "unlock errorcheck");
    actor_end(a);
    actor_end(b);
}

/* A wait ends at its deadline, and then the mutex goes to others */
static void test_timed_lock_ends_at_its_deadline(void **state)
{
    struct actor *a = start_holder("timed", LONG), *b = start_with("timed", LONG), *c = start_with("timed", LONG);

    (void)state;
    actor_do(b, "ETIMEDOUT", "timedlock timed 50");
    actor_do(b, "ETIMEDOUT", "clocklock timed -1 MONOTONIC");
    actor_do(a, "0", "unlock timed");
    actor_do(c, "0", "clocklock timed 20000 MONOTONIC");
    actor_do(c, "0", "unlock timed");
    actor_end(a);
    actor_end(b);
    actor_end(c);
}

/* A holder that is killed is taken for dead when its lease has ended, and the next one hears of it */
static void test_robust_mutex_tells_of_a_death(void **state)
{
    struct actor *a = start_holder("robust", "robust " SHORT), *b = start_with("robust", "robust " SHORT), *c;
    long long token = actor_value(a, "token robust");

    (void)state;
    send_waiter(b, "robust");
    actor_kill(a);
    actor_expect(b, "EOWNERDEAD");
    assert_true(actor_value(b, "token robust") > token);
    actor_do(b, "0", "consistent robust");
    actor_do(b, "0", "unlock robust");
    actor_do(b, "0", "lock robust");
    c = start_with("robust", "robust " SHORT);
    actor_kill(b);
    actor_do(c, "EOWNERDEAD", "lock robust");
    actor_do(c, "0", "unlock robust");
    actor_do(c, "ENOTRECOVERABLE", "lock robust");
    actor_end(a);
    actor_end(b);
    actor_end(c);
}

/* A waiter that is killed is passed over */
static void test_dead_waiter_is_passed_over(void **state)
{
    struct actor *a = start_holder("passed", LONG), *b = start_with("passed", SHORT), *c = start_with("passed", LONG);

    (void)state;
    send_waiter(b, "passed");
    send_waiter(c, "passed");
    actor_kill(b);
    actor_do(a, "0", "unlock passed");
    actor_expect(c, "0");
    actor_do(c, "0", "unlock passed");
    actor_end(a);
    actor_end(b);
    actor_end(c);
}

/* A holder that was stopped for longer than its lease is told that it has lost the mutex */
static void test_stopped_holder_is_told_of_its_loss(void **state)
{
    struct actor *a = start_holder("stopped", SHORT), *b = start_with("stopped", SHORT);
    long long token = actor_value(a, "token stopped");

    (void)state;
    actor_stop(a);
    actor_do(b, "0", "lock stopped");
    assert_true(actor_value(b, "token stopped") > token);
    actor_cont(a);
    wait_until(actor_losses(a) == 1);
    actor_do(a, "EPERM", "unlock stopped");
    actor_do(a, "EBUSY", "trylock stopped");
    actor_do(b, "0", "unlock stopped");
    actor_do(a, "0", "lock stopped");
    actor_do(a, "0", "unlock stopped");
    actor_end(a);
    actor_end(b);
}

/* A hold that is broken by force is lost, and its holder is told long before its lease ends */
static void test_broken_holder_is_told(void **state)
{
    struct actor *a = start_holder("broken", LONG), *b = start_with("broken", LONG);

    (void)state;
    actor_do(b, "0", "forceunlock broken");
    actor_do(b, "0", "lock broken");
    wait_until(actor_losses(a) == 1);
    actor_do(a, "EPERM", "unlock broken");
    actor_do(b, "0", "unlock broken");
    actor_end(a);
    actor_end(b);
}

/* A forked child is another owner, with a connection of its own, and does not disturb its parent's hold */
static void test_forked_child_is_another_owner(void **state)
{
    struct actor *a;

    (void)state;
    if (IS_THREAD_SANITIZED)
        return; /* the forked child starts threads */
    a = start_holder("forked", LONG);
    actor_do(a, "EBUSY", "in-child trylock forked");
    actor_do(a, "EPERM", "in-child unlock forked");
    actor_do(a, "0", "in-child-exit lock forked/other");
    actor_do(a, "0", "in-vfork-exec");
    actor_do(a, "0", "renew forked");
    actor_do(a, "0", "unlock forked");
    assert_int_equal(actor_losses(a), 0);
    actor_end(a);
}

/* A process that exits inside gives the mutex back at once, as a death; a thread that ends inside, too */
static void test_exit_gives_back(void **state)
{
    struct actor *a = start_holder("exit", "robust " LONG), *b = start_with("exit", "robust " LONG);

    (void)state;
    send_waiter(b, "exit");
    actor_send(a, "exit 0");
    assert_int_equal(actor_await(a), 0);
    actor_expect(b, "EOWNERDEAD");
    actor_do(b, "0", "consistent exit");
    actor_do(b, "0", "unlock exit");
    actor_do(b, "0", "in-thread lock exit");
    actor_do(b, "EOWNERDEAD", "lock exit");
    actor_do(b, "0", "consistent exit");
    actor_do(b, "0", "unlock exit");
    actor_end(b);
}

/* Holds and waiters outlive a crash of the server, which forgets nothing: whoever holds goes on, and can unlock */
static void test_holds_outlive_a_crash_of_the_server(void **state)
{
    struct actor *a = start_holder("crash", LONG), *b = start_with("crash", LONG);
    long long token = actor_value(a, "token crash");

    (void)state;
    send_waiter(b, "crash");
    bed_crash();
    actor_do(a, "0", "renew crash");
    assert_true(actor_value(a, "token crash") == token);
    assert_true(actor_is_silent(b));
    actor_do(a, "0", "unlock crash");
    actor_expect(b, "0");
    assert_true(actor_value(b, "token crash") > token);
    actor_do(b, "0", "unlock crash");
    assert_int_equal(actor_losses(a), 0);
    actor_end(a);
    actor_end(b);
}

/* A third of the lease is longer than command_timeout, and than anybody waits */
static void test_renewal_is_confirmed_at_once(void **state)
{
    struct actor *a = actor_start_at(bed_url_without_grace());

    (void)state;
    actor_do(a, "0", "init renewed lease=3600000");
    actor_do(a, "0", "lock renewed");
    actor_do(a, "0", "renew renewed");
    actor_do(a, "0", "renew renewed");
    actor_do(a, "0", "unlock renewed");
    actor_end(a);
}

/* Each process has a few connections for all its locks, and its sessions are gone when it has ended */
static void test_processes_leave_nothing(void **state)
{
    int sessions = bed_count_sessions();
    struct actor *a, *b;

    (void)state;
    wait_until(bed_count_connections() == idle_connections); /* the server closes the last test's when it comes to it */
    a = start_holder("budget", LONG);
    b = start_with("budget", LONG);
    actor_do(b, "EBUSY", "trylock budget");
    assert_int_equal(bed_count_connections() - idle_connections, 2 * bed_connections_each);
    actor_do(a, "0", "unlock budget");
    actor_end(a);
    actor_end(b);
    assert_int_equal(bed_count_sessions(), sessions);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutex_excludes_and_hands_on),
        cmocka_unit_test(test_mutex_guards_a_count),
        cmocka_unit_test(test_mutex_has_the_kinds_of_posix),
        cmocka_unit_test(test_timed_lock_ends_at_its_deadline),
        cmocka_unit_test(test_robust_mutex_tells_of_a_death),
        cmocka_unit_test(test_dead_waiter_is_passed_over),
        cmocka_unit_test(test_stopped_holder_is_told_of_its_loss),
        cmocka_unit_test(test_broken_holder_is_told),
        cmocka_unit_test(test_forked_child_is_another_owner),
        cmocka_unit_test(test_exit_gives_back),
        cmocka_unit_test(test_holds_outlive_a_crash_of_the_server),
        cmocka_unit_test(test_renewal_is_confirmed_at_once),
        cmocka_unit_test(test_processes_leave_nothing),
    };

    test_begin(argc, argv);
    if (!bed_is_possible())
        return 0;
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Conditions on a store of registers, through the public functions. */
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

static int setup(void **state)
{
    (void)state;
    bed_begin();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    bed_end();
    return 0;
}

/* ---- what a test does --------------------------------------------------------------------- */

/* An actor with the mutex GROUP/m; the condition GROUP/c comes with its first use. */
static struct actor *start_with(const char *group, const char *options)
{
    struct actor *actor = actor_start_at(strstr(options, LONG) ? bed_url_without_grace() : bed_url());

    actor_do(actor, "0", "init %s/m %s", group, options);
    return actor;
}

/* Changes with each swap of the mutex. */
static const char *version_of(const char *group)
{
    char key[64];

    snprintf(key, sizeof key, "n/%s/m", group);
    return bed_version_of(key);
}

/* Another actor, which sleeps when the function returns. */
static struct actor *start_waiter(const char *group, const char *options)
{
    struct actor *actor = start_with(group, options);
    char before[64];

    actor_do(actor, "0", "lock %s/m", group);
    snprintf(before, sizeof before, "%s", version_of(group));
    actor_send(actor, "wait %s/c %s/m", group, group);
    wait_until(strcmp(version_of(group), before) != 0);
    return actor;
}

/* The wait has ended well, so the actor has the mutex. */
static void expect_woken(struct actor *actor, const char *group)
{
    actor_expect(actor, "0");
    actor_do(actor, "0", "unlock %s/m", group);
}

/* ---- tests -------------------------------------------------------------------------------- */

/* A signal wakes one waiter, who has the mutex again; one without a waiter is not kept */
static void test_signal_wakes_one_waiter(void **state)
{
    struct actor *a = start_waiter("one", LONG), *b = start_waiter("one", LONG), *c = start_with("one", LONG);

    (void)state;
    actor_do(c, "0", "lock one/m");
    actor_do(c, "0", "signal one/c");
    assert_true(actor_is_silent(a) && actor_is_silent(b));
    actor_do(c, "0", "unlock one/m");
    actor_expect(a, "0");
    actor_do(c, "EBUSY", "trylock one/m");
    actor_do(a, "0", "unlock one/m");
    assert_true(actor_is_silent(b));
    actor_do(c, "0", "signal one/c");
    expect_woken(b, "one");
    actor_do(c, "0", "signal one/c");
    actor_do(c, "0", "lock one/m");
    actor_do(c, "ETIMEDOUT", "timedwait one/c one/m 50");
    actor_do(c, "0", "unlock one/m");
    actor_end(a);
    actor_end(b);
    actor_end(c);
}

/* A broadcast wakes all, one after the other */
static void test_broadcast_wakes_all(void **state)
{
    struct actor *waiters[4], *c = start_with("all", LONG);

    (void)state;
    for (int i = 0; i < 4; i++)
        waiters[i] = start_waiter("all", LONG);
    actor_do(c, "0", "broadcast all/c");
    for (int i = 0; i < 4; i++)
        expect_woken(waiters[i], "all");
    for (int i = 0; i < 4; i++)
        actor_end(waiters[i]);
    actor_end(c);
}

/* The one waiter whom a signal has woken is killed: the signal goes to the next */
static void test_signal_outlives_its_receiver(void **state)
{
    struct actor *a = start_waiter("next", SHORT), *b = start_waiter("next", LONG), *c = start_with("next", LONG);

    (void)state;
    actor_do(c, "0", "lock next/m");
    actor_do(c, "0", "signal next/c");
    actor_kill(a);
    actor_do(c, "0", "unlock next/m");
    expect_woken(b, "next");
    actor_end(b);
    actor_end(c);
}

/* The holder dies while others sleep: who is woken hears of it */
static void test_woken_waiter_hears_of_a_death(void **state)
{
    struct actor *a = start_waiter("death", "robust " LONG), *b = start_with("death", "robust " SHORT);

    (void)state;
    actor_do(b, "0", "lock death/m");
    actor_do(b, "0", "signal death/c");
    actor_kill(b);
    actor_expect(a, "EOWNERDEAD");
    actor_do(a, "0", "consistent death/m");
    actor_do(a, "0", "unlock death/m");
    actor_end(a);
}

/* A condition is waited on with one mutex at a time; the other one stays locked */
static void test_wait_refuses_another_mutex(void **state)
{
    struct actor *a = start_waiter("bound", LONG), *b = start_with("bound", LONG);

    (void)state;
    actor_do(b, "0", "init bound/other " LONG);
    actor_do(b, "0", "lock bound/other");
    actor_do(b, "EINVAL", "wait bound/c bound/other");
    actor_do(b, "0", "signal bound/c");
    expect_woken(a, "bound");
    actor_do(b, "ETIMEDOUT", "timedwait bound/c bound/other 50");
    actor_do(b, "0", "unlock bound/other");
    actor_end(a);
    actor_end(b);
}

/* Sleepers outlive broken connections and a crash of the server, which forgets nothing */
static void test_sleepers_outlive_a_crash_of_the_server(void **state)
{
    struct actor *a = start_waiter("crash", LONG), *b = start_waiter("crash", LONG), *c = start_with("crash", LONG);

    (void)state;
    bed_cut();
    actor_do(c, "0", "signal crash/c");
    expect_woken(a, "crash");
    bed_crash();
    actor_do(c, "0", "signal crash/c");
    expect_woken(b, "crash");
    actor_end(a);
    actor_end(b);
    actor_end(c);
}

/* The data are those of an older backup: whoever sleeps wakes up without a signal */
static void test_sleepers_wake_up_when_the_data_are_others(void **state)
{
    struct actor *a = start_waiter("backup", SHORT);

    (void)state;
    bed_change_data();
    expect_woken(a, "backup");
    actor_end(a);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signal_wakes_one_waiter),
        cmocka_unit_test(test_broadcast_wakes_all),
        cmocka_unit_test(test_signal_outlives_its_receiver),
        cmocka_unit_test(test_woken_waiter_hears_of_a_death),
        cmocka_unit_test(test_wait_refuses_another_mutex),
        cmocka_unit_test(test_sleepers_outlive_a_crash_of_the_server),
        cmocka_unit_test(test_sleepers_wake_up_when_the_data_are_others),
    };

    test_begin(argc, argv);
    if (!bed_is_possible())
        return 0;
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Thousands of holds on a slow server: the renewals do not wait for each other until each hold's time is over. */
#include <stdlib.h>

#include "../lib/testlib.h"

#define HOLDS 2500
#define LEASE 6000
#define UNDER_WAY 16 /* batches, as in process/keep/pump.c */

static struct proxy *proxy;
static dmutex_t holds[HOLDS];
static int losses;

static void note_lost(const char *name, uint64_t token, void *user)
{
    (void)name;
    (void)token;
    (void)user;
    __atomic_add_fetch(&losses, 1, __ATOMIC_RELAXED);
}

static int begin_group(void **state)
{
    char url[160];

    the_server = server_start();
    proxy = proxy_start(the_server);
    snprintf(url, sizeof url, "%s&command_timeout=20000", proxy_url(proxy));
    assert_result(dmutex_configure_np(url), 0);
    assert_result(dmutex_setlost_np(note_lost, NULL), 0);
    *state = the_server;
    return 0;
}

static int end_group(void **state)
{
    proxy_end(proxy);
    return test_group_teardown(state);
}

static void lock_all(int lease_ms)
{
    for (int i = 0; i < HOLDS; i++) {
        char name[32];

        snprintf(name, sizeof name, "many/%d", i);
        make_normal(&holds[i], name, (unsigned)lease_ms);
        assert_result(dmutex_lock(&holds[i]), 0);
    }
}

static void unlock_all(void)
{
    for (int i = 0; i < HOLDS; i++)
        dmutex_unlock(&holds[i]);
}

/*
 * True if no more than the renewals in progress are sent while all holds are due and no answer comes.  False means
 * nothing: the machine is so busy that the first hold is over already, or will be soon.
 */
static bool waits_for_answers(int lease_ms)
{
    int64_t before, sent;

    lock_all(lease_ms);
    proxy_hold(proxy, PROXY_TO_CLIENT, PROXY_COMMANDS);
    before = client_commands(); /* after the last answer: no more than UNDER_WAY follow */
    wait_until(remaining_of(&holds[HOLDS - 1]) <= lease_ms * 46 / 100); /* due, with a third of the lease gone */
    let_pass(200);
    sent = client_commands() - before;
    if (remaining_of(&holds[0]) <= lease_ms / 6)
        return false;
    assert_true(sent <= UNDER_WAY + 4);
    return true;
}

/*
 * Attack C14: while no answer comes, only a few batches are sent, although all holds are due.  The others are sent as
 * answers come.
 */
static void test_renewals_wait_for_answers_when_thousands_are_due(void **state)
{
    int lease_ms = LEASE;

    (void)state;
    while (!waits_for_answers(lease_ms)) {
        proxy_pass(proxy);
        unlock_all();
        lease_ms *= 2;
        __atomic_store_n(&losses, 0, __ATOMIC_RELAXED);
    }
    proxy_pass(proxy);
    let_pass(lease_ms / 2); /* a hold that was not renewed is over by now */
    assert_int_equal(__atomic_load_n(&losses, __ATOMIC_RELAXED), 0);
    unlock_all();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_renewals_wait_for_answers_when_thousands_are_due),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, end_group);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Thousands of holds on a slow server: their renewals do not wait behind each other until each one's time is over. */
#include <stdlib.h>

#include "../lib/testlib.h"

#define HOLDS 2500
#define LEASE 6000
#define UNDER_WAY 16 /* batches, as runtime/schedule.c has it */

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

/*
 * Attack C14: while no answer comes, no more than some batches are sent, although all holds are due.  The others are
 * sent as answers come.
 */
static void test_renewals_wait_for_answers_when_thousands_are_due(void **state)
{
    int64_t before;

    (void)state;
    for (int i = 0; i < HOLDS; i++) {
        char name[32];

        snprintf(name, sizeof name, "many/%d", i);
        make_normal(&holds[i], name, LEASE);
        assert_result(dmutex_lock(&holds[i]), 0);
    }
    proxy_hold(proxy, PROXY_TO_CLIENT, PROXY_COMMANDS);
    before = side_client_commands(the_server->side);
    wait_until(side_client_commands(the_server->side) >= before + UNDER_WAY);
    let_pass(LEASE / 3 + 200); /* all are due by now, and none is lost yet */
    assert_true(side_client_commands(the_server->side) <= before + UNDER_WAY + 4);
    proxy_pass(proxy);
    let_pass(LEASE);
    assert_int_equal(__atomic_load_n(&losses, __ATOMIC_RELAXED), 0);
    for (int i = 0; i < HOLDS; i++)
        assert_result(dmutex_unlock(&holds[i]), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_renewals_wait_for_answers_when_thousands_are_due),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, end_group);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TLS: what a user gets of rediss:// and tls=yes, and the sentence about each mistake, which says what to do.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/testlib.h"
#include "../lib/tls.h"

static int begin_group(void **state)
{
    tls_begin();
    return test_group_setup(state);
}

static int end_group(void **state)
{
    tls_end();
    return test_group_teardown(state);
}

/* ---- what works -------------------------------------------------------------------------- */

/* An acquisition each; a handoff; a wait on a condition, and its signal. */
static void use_locks(const char *url)
{
    struct actor *a = actor_start_at(url), *b = actor_start_at(url);

    actor_do(a, "0", "lock tls/x");
    actor_send(b, "lock tls/x");
    wait_until(actor_value(a, "waiters tls/x") == 1);
    actor_do(a, "0", "unlock tls/x");
    actor_expect(b, "0");
    actor_send(a, "lock tls/x");
    actor_send(b, "wait tls/c tls/x");
    actor_expect(a, "0");
    actor_do(a, "0", "signal tls/c");
    actor_do(a, "0", "unlock tls/x");
    actor_expect(b, "0");
    actor_do(b, "0", "unlock tls/x");
    actor_end(a);
    actor_end(b);
}

/* Each server that is installed; the tests below use the usual one. */
static void test_locks_and_conditions_work_when_the_server_has_tls(void **state)
{
    static const char *const programs[] = { "redis-server", "valkey-server" };
    const char *usual = getenv("DMUTEX_TEST_SERVER");
    char *kept = usual ? strdup(usual) : NULL;
    int used = 0;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tls_server *tls;

        command_run("command -v %s", programs[i]);
        if (ran.status != 0)
            continue;
        setenv("DMUTEX_TEST_SERVER", programs[i], 1);
        tls = tls_server_start("server", "no", NULL);
        use_locks(tls->url);
        tls_server_end(tls);
        used++;
    }
    if (kept)
        setenv("DMUTEX_TEST_SERVER", kept, 1);
    free(kept);
    assert_true(used > 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_locks_and_conditions_work_when_the_server_has_tls),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, end_group);
}

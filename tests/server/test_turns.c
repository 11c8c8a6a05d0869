/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns at a connection: when a call has returned, others find what it did; and no call misses what it waits for. */
#include "../lib/testlib.h"

#define TURNS 10000

/* Two processes take turns.  Each learns of the other's unlock through a pipe, which is faster than the server. */
static void test_trylock_succeeds_when_told_of_an_unlock_by_a_pipe(void **state)
{
    struct actor *actors[] = { actor_start(the_server), actor_start(the_server) };

    (void)state;
    for (int i = 0; i < 2; i++)
        actor_do(actors[i], "0", "init turns/told");
    for (int i = 0; i < 2 * TURNS; i++) {
        actor_do(actors[i % 2], "0", "trylock turns/told");
        actor_do(actors[i % 2], "0", "unlock turns/told");
    }
    for (int i = 0; i < 2; i++)
        actor_end(actors[i]);
}

/* An unlock without an answer returns 0 in the end, and is done as soon as the server answers. */
static void test_unlock_is_pending_when_the_server_does_not_answer(void **state)
{
    struct proxy *proxy = proxy_start(the_server);
    struct actor *actor = actor_start_at(proxy_url(proxy));
    dmutex_t mutex;

    (void)state;
    make_normal(&mutex, "turns/pending", 0);
    actor_do(actor, "0", "init turns/pending lease=60000");
    actor_do(actor, "0", "lock turns/pending");
    proxy_hold(proxy, PROXY_TO_SERVER, PROXY_COMMANDS);
    actor_do(actor, "0", "unlock turns/pending");
    assert_true(is_locked(&mutex));
    actor_do(actor, "EPERM", "unlock turns/pending");
    proxy_pass(proxy);
    wait_until(!is_locked(&mutex));
    actor_end(actor);
    proxy_end(proxy);
}

/*
 * A process's first call spins at the connection while other threads open it.  A thread that missed their call while
 * spinning would sleep forever; when a spin recorded no calls, this happened to one process in six.
 */
static void test_a_first_call_hears_that_the_connection_is_open(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        struct actor *actor = actor_start(the_server);

        actor_do(actor, "0", "init turns/first");
        actor_do(actor, "0", "lock turns/first");
        actor_do(actor, "0", "unlock turns/first");
        actor_end(actor);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trylock_succeeds_when_told_of_an_unlock_by_a_pipe),
        cmocka_unit_test(test_unlock_is_pending_when_the_server_does_not_answer),
        cmocka_unit_test(test_a_first_call_hears_that_the_connection_is_open),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

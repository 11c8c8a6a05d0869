/* SPDX-License-Identifier: BSD-2-Clause */
/* A signalled waiter reads its grant late, and the server, out of memory, refuses the waiter's question. */
#include <stdlib.h>
#include <string.h>

#include "../lib/testlib.h"

#define LEASE 500

static dmutex_t mutex;
static dcond_t cond = DCOND_INITIALIZER("refused/cond");

/* How often a command was refused for want of memory. */
static long count_refusals(void)
{
    const char *text = strstr(side_text(the_server->side, "INFO errorstats"), "errorstat_OOM:count=");

    return text ? strtol(strchr(text, '=') + 1, NULL, 10) : 0;
}

/*
 * The waiter's process stands still from before the grant until the lease is over. The first request afterwards, a poll
 * or the question after the message, is a matter of luck; a poll is not refused.
 */
static void refuse_for_a_while(struct actor *waiter)
{
    long before;

    actor_do(waiter, "0", "lock refused/mutex");
    actor_send(waiter, "wait refused/cond refused/mutex");
    wait_until(side_int(the_server->side, "ZCARD %s", key_of("cond", "refused/cond")) == 1);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dcond_signal(&cond), 0);
    actor_stop(waiter);
    assert_result(dmutex_unlock(&mutex), 0);
    wait_until(!is_locked(&mutex));
    before = count_refusals();
    side_text(the_server->side, "CONFIG SET maxmemory 1");
    actor_cont(waiter);
    wait_until(count_refusals() > before + 1 || !actor_is_silent(waiter));
    side_text(the_server->side, "CONFIG SET maxmemory 0");
    actor_expect(waiter, "0");
    actor_do(waiter, "0", "unlock refused/mutex");
}

/* Attack C11: the grant is given back, so the waiter's next question does not find its own death. */
static void test_wait_returns_0_when_a_late_grant_was_refused_for_a_while(void **state)
{
    struct actor *waiter = actor_start(the_server);

    (void)state;
    make_robust(&mutex, "refused/mutex", LEASE);
    actor_do(waiter, "0", "init refused/mutex robust lease=%d", LEASE);
    for (int i = 0; i < repetitions(5); i++)
        refuse_for_a_while(waiter);
    actor_end(waiter);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wait_returns_0_when_a_late_grant_was_refused_for_a_while),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

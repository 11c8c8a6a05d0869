/* SPDX-License-Identifier: BSD-2-Clause */
/* Owners that are stopped, broken by force, or informed of a loss as DMUTEX_ONLOST says. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "../lib/lines.h"
#include "../lib/testlib.h"

#define LONG_LEASE 60000
#define AT_ONCE 5000

static dmutex_t mutex;

/* ---- stopped ----------------------------------------------------------------------------- */

/* POSIX scenario 3, failure 20: an owner that was stopped for two leases knows the loss before any I/O. */
static void test_a_stopped_owner_knows_its_loss_when_it_goes_on(void **state)
{
    struct actor *a = actor_start_holder(the_server, "force/stopped", "lease=300");
    long long token = actor_value(a, "token force/stopped");

    (void)state;
    make_normal(&mutex, "force/stopped", 1000);
    actor_stop(a);
    assert_result(dmutex_lock(&mutex), 0);
    assert_true(token_of(&mutex) > (uint64_t)token);
    let_pass(300);
    actor_cont(a);
    assert_int_equal(actor_value(a, "remaining force/stopped"), 0);
    assert_int_equal(actor_value(a, "token force/stopped"), token);
    actor_do(a, "EPERM", "unlock force/stopped");
    wait_until(actor_losses(a) == 1);
    actor_do(a, "EBUSY", "trylock force/stopped");
    assert_true(remaining_of(&mutex) > 0);
    assert_result(dmutex_renew_np(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    actor_end(a);
}

/* POSIX scenario 3: the renewals of a stopped owner do not prolong the lease of the heir. */
static void test_a_stopped_owner_does_not_renew_for_another_when_it_goes_on(void **state)
{
    struct actor *a = actor_start_holder(the_server, "force/heir", "lease=300"), *b = actor_start(the_server);

    (void)state;
    make_normal(&mutex, "force/heir", 1000);
    actor_do(b, "0", "init force/heir lease=400");
    actor_stop(a);
    actor_do(b, "0", "lock force/heir");
    promise_within(400 + 1000);
    actor_kill(b);
    actor_cont(a);
    assert_result(dmutex_lock(&mutex), 0);
    assert_kept();
    assert_result(dmutex_unlock(&mutex), 0);
    actor_end(a);
    actor_end(b);
}

/* Failure 20: a lock with an answer that took longer than the lease is not believed but asked for again. */
static void test_lock_asks_again_when_the_answer_is_older_than_the_lease(void **state)
{
    struct proxy *proxy = proxy_start(the_server);
    struct actor *a = actor_start_at(proxy_url(proxy));
    int lease_ms = late_stretched_ms(300);

    (void)state;
    make_normal(&mutex, "force/slow", 1000);
    /* the lease ends before the actor gives the answer up, after two seconds, and asks again by a new connection */
    actor_do(a, "0", "init force/slow lease=%d", lease_ms < 1000 ? lease_ms : 1000);
    actor_do(a, "0", "trylock force/warm");
    actor_do(a, "0", "unlock force/warm");
    proxy_break(proxy, PROXY_HOLD_REPLY, PROXY_COMMANDS, "lock:slow", 1);
    actor_send(a, "lock force/slow");
    wait_until(proxy_hits(proxy) == 1);
    wait_until(!is_locked(&mutex));
    assert_result(dmutex_lock(&mutex), 0);
    proxy_pass(proxy);
    wait_until(waiters_of(&mutex) == 1);
    assert_true(actor_is_silent(a));
    assert_result(dmutex_unlock(&mutex), 0);
    actor_expect(a, "0");
    assert_true(actor_value(a, "remaining force/slow") > 0);
    actor_do(a, "0", "unlock force/slow");
    actor_end(a);
    proxy_end(proxy);
}

/* ---- force ------------------------------------------------------------------------------- */

/* An owner with an inbox learns of it at once, the next owner by EOWNERDEAD. */
static void test_an_owner_learns_of_a_break_by_force_at_once(void **state)
{
    struct actor *a = actor_start(the_server);
    long long token;

    (void)state;
    make_robust(&mutex, "force/told", LONG_LEASE);
    actor_do(a, "0", "init force/told robust lease=%d", LONG_LEASE);
    actor_open_inbox(a);
    actor_do(a, "0", "lock force/told");
    token = actor_value(a, "token force/told");
    promise_within(AT_ONCE);
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    wait_until(actor_losses(a) == 1);
    assert_kept();
    actor_do(a, "EPERM", "unlock force/told");
    assert_result(dmutex_lock(&mutex), EOWNERDEAD);
    assert_true(token_of(&mutex) > (uint64_t)token);
    assert_result(dmutex_consistent(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    actor_end(a);
}

/* An owner without an inbox learns of the loss by the next renewal. */
static void test_an_owner_learns_from_its_renewal_when_it_has_no_inbox(void **state)
{
    struct actor *a = actor_start_holder(the_server, "force/renewal", "lease=600");

    (void)state;
    make_normal(&mutex, "force/renewal", 1000);
    promise_within(600 / 3 + 1000);
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    wait_until(actor_losses(a) == 1);
    assert_kept();
    assert_int_equal(actor_value(a, "remaining force/renewal"), 0);
    actor_do(a, "EPERM", "unlock force/renewal");
    actor_end(a);
}

/* A waiter has the lock that was broken, and the breaker need not hold the lock. */
static void test_a_waiter_owns_at_once_when_the_lock_is_broken(void **state)
{
    struct actor *a = actor_start_holder(the_server, "force/waiter", "robust lease=60000");
    struct actor *b = actor_start(the_server);

    (void)state;
    make_robust(&mutex, "force/waiter", LONG_LEASE);
    actor_do(b, "0", "init force/waiter robust lease=60000");
    actor_send(b, "lock force/waiter");
    wait_until(waiters_of(&mutex) == 1);
    promise_within(AT_ONCE);
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    actor_expect(b, "EOWNERDEAD");
    assert_kept();
    actor_do(b, "0", "consistent force/waiter");
    actor_do(b, "0", "unlock force/waiter");
    actor_end(b);
    actor_send(a, "unlock force/waiter"); /* robust: the server's answer is awaited */
    actor_expect(a, "EPERM");
    wait_until(actor_losses(a) == 1);
    actor_end(a);
}

/* One's own hold, or a thread's of this process: lost at once. A free lock: nothing happens. */
static void test_force_breaks_ones_own_hold_and_nothing_when_free(void **state)
{
    (void)state;
    make_normal(&mutex, "force/own", LONG_LEASE);
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    assert_int_equal(remaining_of(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), EPERM);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(in_thread(dmutex_forceunlock_np, &mutex), 0);
    assert_int_equal(remaining_of(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), EPERM);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
}

/* ---- DMUTEX_ONLOST ----------------------------------------------------------------------- */

/* An actor under DMUTEX_ONLOST loses the hold; the wait status of the actor's end. */
static int end_of_loser(const char *on_lost)
{
    struct actor *a = actor_start_with(the_server, on_lost, NULL);

    make_normal(&mutex, "force/onlost", 1000);
    actor_do(a, "0", "init force/onlost lease=300");
    actor_do(a, "0", "lock force/onlost");
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    return actor_await(a);
}

/* DMUTEX_ONLOST=abort and =signal:NAME end a process that does not catch the signal. */
static void test_a_loss_ends_the_process_when_onlost_says_so(void **state)
{
    int status;

    (void)state;
    status = end_of_loser("DMUTEX_ONLOST=abort");
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    status = end_of_loser("DMUTEX_ONLOST=signal:USR1");
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
    status = end_of_loser("DMUTEX_ONLOST=signal:SIGTERM");
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

/* DMUTEX_ONLOST=log, the default, and an unreadable value: the loss is logged, life goes on. */
static void test_a_loss_is_logged_when_onlost_is_log(void **state)
{
    static const char *const values[] = { "DMUTEX_ONLOST=log", "DMUTEX_ONLOST=signal:NOSUCH",
                                          "DMUTEX_ONLOST=whatever" };

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char log[128];
        struct actor *a;

        snprintf(log, sizeof log, "DMUTEX_LOG=warn:%s/onlost%d", the_server->folder, (int)i);
        a = actor_start_with(the_server, log, values[i], NULL);
        make_normal(&mutex, "force/onlost", 1000);
        actor_do(a, "0", "init force/onlost lease=300");
        actor_do(a, "0", "lock force/onlost");
        assert_result(dmutex_forceunlock_np(&mutex), 0);
        wait_until(lines_with(strchr(log, ':') + 1, "force/onlost"));
        if (i > 0)
            assert_true(lines_with(strchr(log, ':') + 1, "DMUTEX_ONLOST"));
        actor_do(a, "EPERM", "unlock force/onlost");
        actor_do(a, "0", "lock force/onlost");
        actor_do(a, "0", "unlock force/onlost");
        actor_end(a);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stopped_owner_knows_its_loss_when_it_goes_on),
        cmocka_unit_test(test_a_stopped_owner_does_not_renew_for_another_when_it_goes_on),
        cmocka_unit_test(test_lock_asks_again_when_the_answer_is_older_than_the_lease),
        cmocka_unit_test(test_an_owner_learns_of_a_break_by_force_at_once),
        cmocka_unit_test(test_an_owner_learns_from_its_renewal_when_it_has_no_inbox),
        cmocka_unit_test(test_a_waiter_owns_at_once_when_the_lock_is_broken),
        cmocka_unit_test(test_force_breaks_ones_own_hold_and_nothing_when_free),
        cmocka_unit_test(test_a_loss_ends_the_process_when_onlost_says_so),
        cmocka_unit_test(test_a_loss_is_logged_when_onlost_is_log),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A server that is restarted, frozen, full or forgetful, under locks and waiters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/testlib.h"

#define LONG_LEASE 60000
#define AT_ONCE 8000

static dmutex_t mutex;

/* An actor with calls that give up after half a second. */
static struct actor *start_impatient(const char *environment)
{
    char url[192];

    snprintf(url, sizeof url, "DMUTEX_URL=%s&command_timeout=500&connect_timeout=500", the_server->url);
    return actor_start_with(the_server, url, environment, NULL);
}

/* Undoes the test's changes to the server, also when the test has failed. */
static int mend_server(void **state)
{
    (void)state;
    if (!the_server->pid)
        server_restart(the_server);
    server_cont(the_server);
    side_text(the_server->side, "CONFIG SET maxmemory 0");
    return 0;
}

/* ---- restart ----------------------------------------------------------------------------- */

/* POSIX scenario 50: an owner gets the lock back from a server that has forgotten all, with the same token. */
static void test_the_owner_holds_on_when_the_server_was_restarted(void **state)
{
    struct actor *a = actor_start(the_server);
    long long token;

    (void)state;
    make_normal(&mutex, "fault/restart", 0);
    actor_do(a, "0", "init fault/restart lease=3000");
    actor_do(a, "0", "lock fault/restart");
    token = actor_value(a, "token fault/restart");
    server_kill(the_server);
    server_restart(the_server);
    wait_until(side_int(the_server->side, "EXISTS %s", key_of("lock", "fault/restart")) == 1);
    assert_result(dmutex_trylock(&mutex), EBUSY);
    assert_int_equal(actor_value(a, "token fault/restart"), token);
    actor_do(a, "0", "unlock fault/restart");
    assert_result(dmutex_lock(&mutex), 0);
    assert_true(token_of(&mutex) > (uint64_t)token);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_int_equal(actor_losses(a), 0);
    actor_end(a);
}

/* POSIX scenario 50: where another came first, the former owner learns of the loss. */
static void test_the_owner_learns_of_its_loss_when_another_came_first_after_a_restart(void **state)
{
    struct actor *a = actor_start(the_server);

    (void)state;
    make_normal(&mutex, "fault/first", LONG_LEASE);
    actor_do(a, "0", "init fault/first lease=900");
    actor_do(a, "0", "lock fault/first");
    actor_stop(a);
    server_kill(the_server);
    server_restart(the_server);
    assert_result(dmutex_lock(&mutex), 0);
    actor_cont(a);
    wait_until(actor_losses(a) == 1);
    actor_do(a, "EPERM", "unlock fault/first");
    assert_int_equal(actor_value(a, "islocked fault/first"), 1);
    assert_true(remaining_of(&mutex) > 0);
    assert_result(dmutex_renew_np(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    actor_end(a);
}

/* Failure 2: waiters come back to a restarted server, and one after the other owns. */
static void test_waiters_own_when_the_server_was_restarted(void **state)
{
    struct actor *waiters[3];

    (void)state;
    make_normal(&mutex, "fault/waiters", LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    for (int i = 0; i < 3; i++) {
        waiters[i] = actor_start(the_server);
        actor_do(waiters[i], "0", "init fault/waiters lease=%d", LONG_LEASE);
        actor_send(waiters[i], "lock fault/waiters");
        wait_until(waiters_of(&mutex) == i + 1);
    }
    server_kill(the_server);
    server_restart(the_server);
    promise_within(AT_ONCE);
    wait_until(waiters_of(&mutex) + is_locked(&mutex) == 4 || waiters_of(&mutex) == 2);
    dmutex_unlock(&mutex); /* 0, or EPERM when a waiter came first */
    for (int served = 0; served < 3;) {
        for (int i = 0; i < 3; i++) {
            if (waiters[i] && !actor_is_silent(waiters[i])) {
                actor_expect(waiters[i], "0");
                actor_do(waiters[i], "0", "unlock fault/waiters");
                actor_end(waiters[i]);
                waiters[i] = NULL;
                served++;
            }
        }
        wait_nap();
        assert_kept();
    }
}

/* Tokens keep rising across a restart, in a process that has seen them and in one that has not. */
static void test_tokens_rise_when_the_server_was_restarted(void **state)
{
    uint64_t token;

    (void)state;
    make_normal(&mutex, "fault/tokens", 0);
    for (int i = 0; i < 3; i++) {
        struct actor *fresh = actor_start(the_server);

        assert_result(dmutex_lock(&mutex), 0);
        token = token_of(&mutex);
        assert_result(dmutex_unlock(&mutex), 0);
        wait_until(!is_locked(&mutex));
        server_kill(the_server);
        server_restart(the_server);
        actor_do(fresh, "0", "lock fault/tokens");
        assert_true((uint64_t)actor_value(fresh, "token fault/tokens") > token);
        token = (uint64_t)actor_value(fresh, "token fault/tokens");
        actor_do(fresh, "0", "unlock fault/tokens");
        wait_until(!is_locked(&mutex));
        assert_result(dmutex_lock(&mutex), 0);
        assert_true(token_of(&mutex) > token);
        assert_result(dmutex_unlock(&mutex), 0);
        actor_end(fresh);
    }
}

/* Locks that are taken while there is no server are had when the server is there again. */
static void test_lock_owns_when_the_server_is_started_during_the_wait(void **state)
{
    struct actor *a = actor_start(the_server);
    struct errand errand;

    (void)state;
    make_normal(&mutex, "fault/meanwhile", 0);
    server_kill(the_server);
    errand_begin(&errand, dmutex_lock, &mutex);
    actor_send(a, "lock fault/other");
    assert_result(in_thread(timedlock_soon, &mutex), ETIMEDOUT);
    assert_false(errand_is_over(&errand));
    assert_true(actor_is_silent(a));
    server_restart(the_server);
    promise_within(AT_ONCE);
    assert_result(errand_join(&errand), 0);
    actor_expect(a, "0");
    assert_kept();
    actor_do(a, "0", "unlock fault/other");
    actor_end(a);
}

/* ---- DMUTEX_ONDOWN ----------------------------------------------------------------------- */

/* DMUTEX_ONDOWN=fail: no server, no waiting: also for a waiter in the queue. */
static void test_lock_says_enolck_when_ondown_is_fail(void **state)
{
    struct actor *a = start_impatient("DMUTEX_ONDOWN=fail"), *b = start_impatient("DMUTEX_ONDOWN=fail");

    (void)state;
    make_normal(&mutex, "fault/ondown", LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    actor_do(b, "0", "init fault/ondown lease=600");
    actor_send(b, "lock fault/ondown");
    wait_until(waiters_of(&mutex) == 1);
    server_kill(the_server);
    actor_do(a, "ENOLCK", "lock fault/down");
    actor_assert_words(a, "lock server cannot be used");
    actor_expect(b, "ENOLCK");
    actor_assert_words(b, "lock server");
    server_restart(the_server);
    actor_do(a, "0", "lock fault/down");
    actor_do(a, "0", "unlock fault/down");
    dmutex_unlock(&mutex);
    actor_end(a);
    actor_end(b);
}

/* ---- frozen ------------------------------------------------------------------------------ */

/* POSIX scenario 51: a frozen server does not hold up a timed lock, and the late grant is undone.
 */
static void test_timedlock_ends_at_its_deadline_when_the_server_is_frozen(void **state)
{
    static const int spans_ms[] = { 150, 20, -1000 };
    struct server *clock = server_start(); /* keys here end while the other server stands still */

    (void)state;
    make_normal(&mutex, "fault/frozen", LONG_LEASE);
    for (int i = 0; i < 3; i++) {
        struct timespec until = wait_time_in_ms(CLOCK_MONOTONIC, spans_ms[i]);

        server_stop(the_server);
        side_set_bound(clock->side, "bound", 150 + 1000);
        assert_result(dmutex_clocklock(&mutex, CLOCK_MONOTONIC, &until), ETIMEDOUT);
        assert_true(wait_is_reached(CLOCK_MONOTONIC, &until));
        assert_false(side_is_control_over(clock->side, "bound"));
        assert_result(dmutex_unlock(&mutex), EPERM);
        server_cont(the_server);
        promise_within(AT_ONCE);
        wait_until(!is_locked(&mutex));
        assert_kept();
    }
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    server_end(clock);
}

/* Failure 10: a server that is frozen for longer than command_timeout has the lock done once. */
static void test_lock_owns_once_when_the_server_was_frozen_for_long(void **state)
{
    struct server *clock = server_start();
    struct actor *a = start_impatient("A=b");

    (void)state;
    make_normal(&mutex, "fault/thawed", 0);
    actor_do(a, "0", "lock fault/thawed");
    actor_do(a, "0", "unlock fault/thawed");
    server_stop(the_server);
    actor_send(a, "lock fault/thawed");
    side_set_control(clock->side, "thaw", 1200); /* some command_timeouts */
    side_await_control(clock->side, "thaw");
    server_cont(the_server);
    actor_expect(a, "0");
    assert_int_equal(actor_value(a, "holdcount fault/thawed"), 1);
    actor_do(a, "0", "renew fault/thawed");
    promise_within(AT_ONCE);
    actor_do(a, "0", "unlock fault/thawed");
    wait_until(!is_locked(&mutex));
    assert_kept();
    actor_end(a);
    server_end(clock);
}

/* If the server is frozen, an unlock is over for the caller, and done when the server continues. */
static void test_unlock_is_done_when_the_server_goes_on(void **state)
{
    (void)state;
    make_normal(&mutex, "fault/unlock", LONG_LEASE);
    for (int i = 0; i < 2; i++) {
        assert_result(dmutex_lock(&mutex), 0);
        server_stop(the_server);
        assert_result(dmutex_unlock(&mutex), 0);
        assert_result(dmutex_unlock(&mutex), EPERM);
        server_cont(the_server);
        promise_within(AT_ONCE);
        wait_until(!is_locked(&mutex));
        assert_kept();
    }
}

/* ---- errors of the server ---------------------------------------------------------------- */

/* POSIX scenario 50: every call sends the scripts again to a server that has forgotten them. */
static void test_calls_succeed_when_the_scripts_are_forgotten_all_the_time(void **state)
{
    struct actor *a = actor_start(the_server);

    (void)state;
    make_robust(&mutex, "fault/scripts", 1000);
    actor_do(a, "0", "init fault/scripts robust lease=1000");
    for (int i = 0; i < 3; i++) {
        side_text(the_server->side, "SCRIPT FLUSH");
        assert_result(dmutex_lock(&mutex), 0);
        side_text(the_server->side, "SCRIPT FLUSH");
        actor_send(a, "lock fault/scripts");
        wait_until(waiters_of(&mutex) == 1);
        side_text(the_server->side, "SCRIPT FLUSH"); /* renewals and polls meet the fault */
        let_pass(1400);
        assert_true(remaining_of(&mutex) > 0);
        side_text(the_server->side, "SCRIPT FLUSH");
        assert_result(dmutex_renew_np(&mutex), 0);
        side_text(the_server->side, "SCRIPT FLUSH");
        assert_result(dmutex_unlock(&mutex), 0);
        actor_expect(a, "0");
        side_text(the_server->side, "SCRIPT FLUSH");
        assert_result(dmutex_forceunlock_np(&mutex), 0);
        side_text(the_server->side, "SCRIPT FLUSH");
        assert_result(dmutex_lock(&mutex), EOWNERDEAD);
        side_text(the_server->side, "SCRIPT FLUSH");
        assert_result(dmutex_consistent(&mutex), 0);
        assert_result(dmutex_unlock(&mutex), 0);
        wait_until(actor_losses(a) == i + 1);
        actor_do(a, "EPERM", "unlock fault/scripts");
    }
    actor_end(a);
}

/* Out of memory: EAGAIN, nothing held; a holder renews and unlocks, a waiter is served. */
static void test_lock_says_eagain_when_the_server_is_out_of_memory(void **state)
{
    dmutex_t held, dead;
    struct errand waiter;

    (void)state;
    make_robust(&dead, "fault/dead", LONG_LEASE);
    assert_result(in_thread(dmutex_lock, &dead), 0);
    assert_result(dmutex_lock(&dead), EOWNERDEAD);
    make_fair(&held, "fault/held", &kinds[0], 1000); /* the waiter waits at the server */
    make_normal(&mutex, "fault/oom", 300);
    assert_result(dmutex_lock(&held), 0);
    errand_begin(&waiter, dmutex_lock, &held);
    wait_until(waiters_of(&held) == 1);
    side_set_control(the_server->side, "leases", 2500);
    side_text(the_server->side, "CONFIG SET maxmemory 1");
    for (int i = 0; i < WAY_COUNT; i++) {
        assert_result(ways_to_lock[i].lock(&mutex), EAGAIN);
        assert_non_null(strstr(dmutex_strerror_np(), "memory"));
    }
    side_await_control(the_server->side, "leases");
    assert_true(remaining_of(&held) > 0);
    assert_result(dmutex_renew_np(&held), 0);
    assert_true(is_locked(&held));
    assert_result(dmutex_unlock(&held), 0);
    assert_result(errand_join(&waiter), 0);
    assert_result(dmutex_consistent(&dead), 0);
    assert_result(dmutex_unlock(&dead), 0);
    assert_result(dmutex_forceunlock_np(&dead), 0);
    side_text(the_server->side, "CONFIG SET maxmemory 0");
    assert_false(is_locked(&mutex));
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
}

#define FAULT_TEST(test) cmocka_unit_test_teardown(test, mend_server)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        FAULT_TEST(test_the_owner_holds_on_when_the_server_was_restarted),
        FAULT_TEST(test_the_owner_learns_of_its_loss_when_another_came_first_after_a_restart),
        FAULT_TEST(test_waiters_own_when_the_server_was_restarted),
        FAULT_TEST(test_tokens_rise_when_the_server_was_restarted),
        FAULT_TEST(test_lock_owns_when_the_server_is_started_during_the_wait),
        FAULT_TEST(test_lock_says_enolck_when_ondown_is_fail),
        FAULT_TEST(test_timedlock_ends_at_its_deadline_when_the_server_is_frozen),
        FAULT_TEST(test_lock_owns_once_when_the_server_was_frozen_for_long),
        FAULT_TEST(test_unlock_is_done_when_the_server_goes_on),
        FAULT_TEST(test_calls_succeed_when_the_scripts_are_forgotten_all_the_time),
        FAULT_TEST(test_lock_says_eagain_when_the_server_is_out_of_memory),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

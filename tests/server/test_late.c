/* SPDX-License-Identifier: BSD-2-Clause */
/* Late but not too late, and too late: renewals, cancels, releases. */
#include <stdlib.h>

#include "../lib/testlib.h"

#define LONG_LEASE 60000
#define AT_ONCE 5000
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static dmutex_t mutex;

static int64_t lease_left(const char *name)
{
    return side_int(the_server->side, "PTTL %s", key_of("lock", name));
}

/* ---- renewals ---------------------------------------------------------------------------- */

/* POSIX scenario 52: a process that was stopped over a renewal renews when going on. */
static void test_a_hold_goes_on_when_its_renewal_is_late(void **state)
{
    struct actor *a = actor_start(the_server);
    long long token;

    (void)state;
    make_normal(&mutex, "late/renewal", 3000);
    actor_do(a, "0", "init late/renewal lease=3000");
    actor_do(a, "0", "lock late/renewal");
    token = actor_value(a, "token late/renewal");
    actor_stop(a);
    let_pass(1300); /* a renewal was due at 1000, the hold is certain until 2400 */
    assert_within(lease_left("late/renewal"), 1, 1700);
    actor_cont(a);
    wait_until(lease_left("late/renewal") > 2000);
    assert_int_equal(actor_losses(a), 0);
    assert_int_equal(actor_value(a, "token late/renewal"), token);
    assert_result(dmutex_trylock(&mutex), EBUSY);
    actor_do(a, "0", "unlock late/renewal");
    actor_end(a);
}

/*
 * POSIX scenario 52: stopped for longer than the hold was certain it is too late, though the server
 * keeps the lock still: the hold is lost, and given back as a death instead of being renewed.
 */
static void test_a_hold_is_given_back_when_its_renewal_is_too_late(void **state)
{
    struct actor *a = actor_start(the_server);

    (void)state;
    make_robust(&mutex, "late/too-late", LONG_LEASE);
    actor_do(a, "0", "init late/too-late robust lease=20000 maxhold=1500");
    actor_do(a, "0", "lock late/too-late");
    actor_stop(a);
    side_text(the_server->side, "PING"); /* a renewal on the way is done */
    side_int(the_server->side, "PEXPIRE %s 20000", key_of("lock", "late/too-late"));
    let_pass(1700); /* the certain time is over, the server's lease is not */
    assert_true(lease_left("late/too-late") > 10000);
    promise_within(AT_ONCE);
    actor_cont(a);
    wait_until(actor_losses(a) == 1);
    actor_do(a, "0 0", "remaining late/too-late");
    assert_result(dmutex_lock(&mutex), EOWNERDEAD);
    assert_kept();
    actor_do(a, "EPERM", "unlock late/too-late");
    actor_do(a, "EBUSY", "trylock late/too-late");
    assert_true(remaining_of(&mutex) > 0);
    assert_result(dmutex_consistent(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_int_equal(actor_losses(a), 1);
    actor_end(a);
}

/* An owner on a server that is no longer the master learns of it before another could own. */
static void test_a_loss_is_reported_in_time_when_the_server_becomes_a_replica(void **state)
{
    struct actor *a = actor_start(the_server);

    (void)state;
    make_normal(&mutex, "late/replica", LONG_LEASE);
    actor_do(a, "0", "init late/replica lease=4000");
    actor_do(a, "0", "lock late/replica");
    side_text(the_server->side, "REPLICAOF 127.0.0.1 1");
    wait_until(actor_losses(a) == 1);
    assert_true(lease_left("late/replica") > 0);
    actor_do(a, "EPERM", "unlock late/replica");
    side_text(the_server->side, "REPLICAOF NO ONE");
    actor_do(a, "0", "lock late/replica");
    actor_do(a, "0", "unlock late/replica");
    actor_end(a);
}

/* ---- releases ---------------------------------------------------------------------------- */

/* An unlock that a replica has refused is done when there is a master again. */
static void test_unlock_is_done_later_when_a_replica_refuses_it(void **state)
{
    static const char *const kinds_of_mutex[] = { "", " robust" };

    (void)state;
    for (size_t i = 0; i < COUNT(kinds_of_mutex); i++) {
        struct actor *a = actor_start(the_server);

        make_mutex(&mutex, "late/release", &kinds[4 * i], LONG_LEASE);
        actor_do(a, "0", "init late/release lease=%d%s", LONG_LEASE, kinds_of_mutex[i]);
        actor_do(a, "0", "lock late/release");
        side_text(the_server->side, "REPLICAOF 127.0.0.1 1");
        actor_do(a, "0", "unlock late/release");
        actor_do(a, "EPERM", "unlock late/release");
        side_text(the_server->side, "REPLICAOF NO ONE");
        promise_within(AT_ONCE);
        assert_result(dmutex_lock(&mutex), 0); /* no death, either */
        assert_kept();
        assert_result(dmutex_unlock(&mutex), 0);
        assert_int_equal(actor_losses(a), 0);
        actor_end(a);
    }
}

/* Destroy awaits a release that is pending, because the unlock had no answer: the mutex is free then. */
static void test_destroy_awaits_a_pending_release(void **state)
{
    struct proxy *proxy = proxy_start(the_server);
    struct actor *a = actor_start_at(proxy_url(proxy));

    (void)state;
    make_normal(&mutex, "late/destroy", LONG_LEASE);
    actor_do(a, "0", "init late/destroy lease=%d", LONG_LEASE);
    actor_do(a, "0", "lock late/destroy");
    proxy_hold(proxy, PROXY_TO_SERVER, PROXY_ALL);
    actor_do(a, "0", "unlock late/destroy");
    assert_true(is_locked(&mutex));
    proxy_pass(proxy);
    actor_do(a, "0", "destroy late/destroy");
    assert_false(is_locked(&mutex));
    actor_end(a);
    proxy_end(proxy);
}

/* ---- cancels ----------------------------------------------------------------------------- */

/* Failure 17: a wait that ran out without an answer leaves the queue when there is a network. */
static void test_the_queue_is_left_later_when_a_timeout_is_not_answered(void **state)
{
    struct proxy *proxy = proxy_start(the_server);
    struct actor *a = actor_start_at(proxy_url(proxy));

    (void)state;
    make_normal(&mutex, "late/cancel", LONG_LEASE);
    actor_do(a, "0", "init late/cancel lease=%d", LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    for (int way = 0; way < 2; way++) {
        actor_send(a, "timedlock late/cancel 500");
        wait_until(waiters_of(&mutex) == 1);
        if (way == 0) {
            proxy_hold(proxy, PROXY_BOTH_WAYS, PROXY_ALL);
        } else {
            proxy_refuse(proxy);
            proxy_cut(proxy);
        }
        actor_expect(a, "ETIMEDOUT");
        assert_int_equal(waiters_of(&mutex), 1);
        promise_within(AT_ONCE);
        proxy_pass(proxy);
        wait_until(waiters_of(&mutex) == 0);
        assert_kept();
        assert_int_equal(
            side_int(the_server->side, "EXISTS %s %s", key_of("queue", "late/cancel"), key_of("waiter", "late/cancel")),
            0);
    }
    assert_result(dmutex_unlock(&mutex), 0);
    wait_until(!is_locked(&mutex));
    actor_end(a);
    proxy_end(proxy);
}

/* Undoes the test's changes to the server, also when the test has failed. */
static int mend_server(void **state)
{
    (void)state;
    side_text(the_server->side, "REPLICAOF NO ONE");
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_hold_goes_on_when_its_renewal_is_late),
        cmocka_unit_test(test_a_hold_is_given_back_when_its_renewal_is_too_late),
        cmocka_unit_test_teardown(test_a_loss_is_reported_in_time_when_the_server_becomes_a_replica, mend_server),
        cmocka_unit_test_teardown(test_unlock_is_done_later_when_a_replica_refuses_it, mend_server),
        cmocka_unit_test(test_destroy_awaits_a_pending_release),
        cmocka_unit_test(test_the_queue_is_left_later_when_a_timeout_is_not_answered),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

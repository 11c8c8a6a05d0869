/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conditions on a server that is restarted, frozen, full, forgetful or not writable: a failed wait has changed nothing,
 * and every other wait returns owning the mutex.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define CROWD 100

static struct server *watch; /* keys here end while the other server stands still */

static void promise_by_watch(int ms)
{
    side_set_bound(watch->side, "bound", ms);
}

static void assert_kept_by_watch(void)
{
    assert_false(side_is_control_over(watch->side, "bound"));
}

static void let_pass_by_watch(int ms)
{
    side_set_control(watch->side, "time", ms);
    side_await_control(watch->side, "time");
}

static int begin_group(void **state)
{
    watch = server_start();
    return test_group_setup(state);
}

static int end_group(void **state)
{
    server_end(watch);
    return test_group_teardown(state);
}

/* Undoes the test's changes to the server, also when the test has failed. */
static int mend_server(void **state)
{
    (void)state;
    if (!the_server->pid)
        server_restart(the_server);
    server_cont(the_server);
    side_text(the_server->side, "CONFIG SET maxmemory 0");
    side_text(the_server->side, "REPLICAOF NO ONE");
    return 0;
}

/* An actor that knows both; calls that may fail do so after half a second. */
static struct actor *start(unsigned lease_ms, const char *environment)
{
    struct actor *actor;
    char url[192];

    snprintf(url, sizeof url, "DMUTEX_URL=%s&command_timeout=500&connect_timeout=500", the_server->url);
    actor = actor_start_with(the_server, url, environment, NULL);
    actor_do(actor, "0", "init %s lease=%u", mutex_name, lease_ms);
    return actor;
}

/* The actor locks, and waits at the return; ms: for this long, 0: forever. */
static void begin_wait_for(struct actor *actor, int ms)
{
    int64_t before = on_condition();

    if (ms == 0) {
        begin_wait(actor);
        return;
    }
    actor_do(actor, "0", "lock %s", mutex_name);
    actor_send(actor, "timedwait %s %s %d", cond_name, mutex_name, ms);
    wait_until(on_condition() == before + 1);
}

/* As assert_back(), and nobody else waits. */
static void assert_back_alone(struct actor *actor, const char *answer)
{
    assert_back(actor, answer);
    assert_int_equal(on_condition() + in_queue(), 0);
}

/* ---- errors of the server ---------------------------------------------------------------- */

static void forget_scripts(void)
{
    side_text(the_server->side, "SCRIPT FLUSH");
}

/* Failure B12: every call sends the scripts again to a server that has forgotten them. */
static void test_conditions_work_when_the_scripts_are_forgotten_all_the_time(void **state)
{
    struct actor *actor;

    (void)state;
    make_both("scripts", &normal, SHORT_LEASE);
    actor = start(SHORT_LEASE, "A=b");
    for (int i = 0; i < 3; i++) {
        actor_do(actor, "0", "lock %s", mutex_name);
        forget_scripts();
        actor_send(actor, "wait %s %s", cond_name, mutex_name);
        wait_until(on_condition() == 1);
        forget_scripts();
        let_pass_by_watch(SHORT_LEASE); /* polls meet the fault */
        assert_int_equal(on_condition(), 1);
        forget_scripts();
        assert_result(i ? dcond_signal(&cond) : dcond_broadcast(&cond), 0);
        assert_back_alone(actor, "0");
        actor_do(actor, "0", "lock %s", mutex_name);
        actor_send(actor, "timedwait %s %s 200", cond_name, mutex_name);
        wait_until(on_condition() == 1 || !actor_is_silent(actor));
        forget_scripts();
        assert_back_alone(actor, "ETIMEDOUT");
    }
    actor_end(actor);
}

/* Out of memory: EAGAIN, the mutex owned as before, and nobody enqueued. */
static void test_wait_says_eagain_when_the_server_is_out_of_memory(void **state)
{
    struct timespec soon = wait_time_in_ms(CLOCK_REALTIME, 20);
    uint64_t token;

    (void)state;
    make_both("oom", &normal, LONG_LEASE);
    make_recursive(&mutex, mutex_name, LONG_LEASE);
    for (int i = 0; i < 3; i++)
        assert_result(dmutex_lock(&mutex), 0);
    token = token_of(&mutex);
    side_text(the_server->side, "CONFIG SET maxmemory 1");
    assert_result(dcond_wait(&cond, &mutex), EAGAIN);
    assert_non_null(strstr(dmutex_strerror_np(), "memory"));
    assert_result(dcond_timedwait(&cond, &mutex, &soon), EAGAIN);
    assert_int_equal(holdcount_of(&mutex), 3);
    assert_true(token_of(&mutex) == token);
    assert_true(remaining_of(&mutex) > 0);
    assert_result(dmutex_renew_np(&mutex), 0);
    assert_int_equal(on_condition(), 0);
    side_text(the_server->side, "CONFIG SET maxmemory 0");
    assert_result(dcond_timedwait(&cond, &mutex, &soon), ETIMEDOUT);
    assert_int_equal(holdcount_of(&mutex), 3);
    for (int i = 0; i < 3; i++)
        assert_result(dmutex_unlock(&mutex), 0);
    wait_until(!is_locked(&mutex));
}

/* A present waiter is signalled, or leaves at the deadline, although the server is out of memory. */
static void test_waiters_come_back_when_the_server_is_out_of_memory(void **state)
{
    struct actor *actor;

    (void)state;
    make_both("full", &normal, LONG_LEASE);
    actor = start(LONG_LEASE, "A=b");
    for (int ms = 0; ms <= 300; ms += 300) {
        begin_wait_for(actor, ms);
        side_text(the_server->side, "CONFIG SET maxmemory 1");
        if (!ms)
            assert_result(dcond_signal(&cond), 0);
        actor_expect(actor, ms ? "ETIMEDOUT" : "0");
        actor_do(actor, "0", "unlock %s", mutex_name);
        side_text(the_server->side, "CONFIG SET maxmemory 0");
    }
    actor_end(actor);
}

/* Failure B15: the wait outlasts a server that has become a replica; a signal reports its failure. */
static void test_wait_goes_on_when_the_server_is_a_replica_for_a_while(void **state)
{
    struct actor *waiter, *caller;

    (void)state;
    make_both("replica", &normal, LONG_LEASE);
    waiter = start(LONG_LEASE, "A=b");
    caller = start(LONG_LEASE, "A=b");
    actor_do(caller, "0", "signal %s", cond_name);
    actor_do(waiter, "0", "lock %s", mutex_name);
    side_text(the_server->side, "REPLICAOF 127.0.0.1 1");
    actor_send(waiter, "wait %s %s", cond_name, mutex_name);
    promise_by_watch(2 * (500 + 1000));
    actor_do(caller, "ENOLCK", "signal %s", cond_name);
    actor_do(caller, "ENOLCK", "broadcast %s", cond_name);
    assert_kept_by_watch();
    assert_true(actor_is_silent(waiter));
    assert_int_equal(on_condition(), 0);
    promise_by_watch(AT_ONCE);
    side_text(the_server->side, "REPLICAOF NO ONE");
    wait_until(on_condition() == 1);
    actor_do(caller, "0", "signal %s", cond_name);
    assert_back_alone(waiter, "0");
    assert_kept_by_watch();
    begin_wait_for(waiter, 300);
    side_text(the_server->side, "REPLICAOF 127.0.0.1 1");
    let_pass_by_watch(1000); /* the deadline, and more */
    assert_true(actor_is_silent(waiter));
    promise_by_watch(AT_ONCE);
    side_text(the_server->side, "REPLICAOF NO ONE");
    assert_back_alone(waiter, "ETIMEDOUT");
    assert_kept_by_watch();
    actor_end(waiter);
    actor_end(caller);
}

/* ---- frozen ------------------------------------------------------------------------------ */

/*
 * Failure 51: the deadline passes while the server is frozen. The wait ends when the server continues, because the
 * waiter must own the mutex. DMUTEX_ONDOWN=fail changes nothing: a thread that gave the mutex up comes back.
 */
static void test_timedwait_owns_when_the_server_was_frozen_over_its_deadline(void **state)
{
    static const char *const environments[] = { "A=b", "DMUTEX_ONDOWN=fail" };

    (void)state;
    make_both("frozen", &normal, LONG_LEASE);
    for (int i = 0; i < 2; i++) {
        struct actor *actor = start(LONG_LEASE, environments[i]);
        int span_ms = late_stretched_ms(300); /* the server must be stopped earlier */

        begin_wait_for(actor, span_ms);
        server_stop(the_server);
        let_pass_by_watch(span_ms + 3 * 500); /* and some command_timeouts */
        assert_true(actor_is_silent(actor));
        promise_by_watch(AT_ONCE);
        server_cont(the_server);
        assert_back_alone(actor, "ETIMEDOUT");
        assert_kept_by_watch();
        actor_end(actor);
    }
}

/* A wait that begins while the server is frozen waits once when the server continues. */
static void test_wait_waits_once_when_the_server_was_frozen(void **state)
{
    struct actor *actor;

    (void)state;
    make_both("thawed", &normal, LONG_LEASE);
    actor = start(LONG_LEASE, "A=b");
    for (int ms = 0; ms <= 200; ms += 200) {
        actor_do(actor, "0", "lock %s", mutex_name);
        server_stop(the_server);
        if (ms)
            actor_send(actor, "timedwait %s %s %d", cond_name, mutex_name, ms);
        else
            actor_send(actor, "wait %s %s", cond_name, mutex_name);
        let_pass_by_watch(1200);
        assert_true(actor_is_silent(actor));
        promise_by_watch(AT_ONCE);
        server_cont(the_server);
        if (!ms) {
            wait_until(on_condition() == 1);
            assert_result(dcond_signal(&cond), 0);
            assert_back_alone(actor, "0");
        } else {
            assert_back_alone(actor, "ETIMEDOUT");
        }
        assert_kept_by_watch();
    }
    actor_end(actor);
}

/*
 * DMUTEX_ONDOWN=fail: the wait gives up after command_timeout; the server's later work is taken back, and eats no
 * signal.
 */
static void test_wait_says_enolck_when_the_server_is_frozen_and_ondown_is_fail(void **state)
{
    struct actor *actor, *other;

    (void)state;
    make_both("fail", &normal, LONG_LEASE);
    actor = start(LONG_LEASE, "DMUTEX_ONDOWN=fail");
    other = start(LONG_LEASE, "A=b");
    actor_do(actor, "0", "lock %s", mutex_name);
    server_stop(the_server);
    promise_by_watch(500 + 2000);
    actor_do(actor, "ENOLCK", "wait %s %s", cond_name, mutex_name);
    assert_kept_by_watch();
    promise_by_watch(AT_ONCE);
    server_cont(the_server);
    actor_value(actor, "islocked %s", mutex_name); /* old bytes do not arrive after this request */
    wait_until(on_condition() == 0);
    actor_send(actor, "unlock %s", mutex_name); /* EPERM: the hold was given back for the wait */
    actor_answer(actor);
    wait_until(!is_locked(&mutex));
    assert_kept_by_watch();
    begin_wait(other);
    assert_result(dcond_signal(&cond), 0);
    assert_back_alone(other, "0");
    actor_end(actor);
    actor_end(other);
}

/* Nobody knows when the release arrives that the objects' last hold waits for. */
static void test_both_can_be_destroyed_when_the_unlock_has_no_answer(void **state)
{
    struct timespec until;
    dmutexattr_t shared;
    dmutex_t anonymous;
    dcond_t private;

    (void)state;
    make_both("after", &normal, LONG_LEASE);
    assert_result(dmutexattr_init(&shared), 0);
    assert_result(dmutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED), 0);
    assert_result(dmutex_init(&anonymous, &shared), 0);
    assert_result(dcond_init(&private, NULL), 0);
    assert_result(dmutex_lock(&anonymous), 0);
    until = wait_time_in_ms(CLOCK_REALTIME, 20);
    assert_result(dcond_timedwait(&private, &anonymous, &until), ETIMEDOUT);
    server_stop(the_server);
    assert_result(dmutex_unlock(&anonymous), 0);
    assert_result(dcond_destroy(&private), 0);
    assert_result(dmutex_destroy(&anonymous), 0);
    server_cont(the_server);
    assert_result(dmutex_lock(&mutex), 0); /* the release, which went first, has been answered */
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutexattr_destroy(&shared), 0);
}

/* ---- the hold is lost before ------------------------------------------------------------- */

/*
 * POSIX scenario 31: a thread that has lost the hold, knowingly or not, waits for nothing and disturbs no other
 * process.
 */
static void test_wait_says_eperm_when_the_hold_was_lost_before(void **state)
{
    struct actor *owner;
    long long token;

    (void)state;
    make_both("lost", &normal, LONG_LEASE);
    owner = start(LONG_LEASE, "A=b");
    for (int knows = 0; knows < 2; knows++) {
        struct actor *actor = start(LONG_LEASE, "A=b");

        if (knows)
            actor_open_inbox(actor);
        actor_do(actor, "0", "lock %s", mutex_name);
        assert_result(dmutex_forceunlock_np(&mutex), 0);
        actor_do(owner, "0", "lock %s", mutex_name);
        token = actor_value(owner, "token %s", mutex_name);
        if (knows)
            wait_until(actor_value(actor, "remaining %s", mutex_name) == 0);
        actor_do(actor, "EPERM", "wait %s %s", cond_name, mutex_name);
        actor_do(actor, "EPERM", "timedwait %s %s 20", cond_name, mutex_name);
        assert_int_equal(on_condition() + in_queue(), 0);
        assert_int_equal(side_int(the_server->side, "EXISTS %s", key_of("sleeper", cond_name)), 0);
        actor_do(actor, "EPERM", "unlock %s", mutex_name);
        actor_do(owner, "0", "renew %s", mutex_name);
        assert_int_equal(actor_value(owner, "token %s", mutex_name), token);
        actor_do(owner, "0", "unlock %s", mutex_name);
        actor_end(actor);
    }
    actor_end(owner);
}

/* EAGAIN would mean an unchanged hold; the hold ended during the wait for the answer. */
static void test_wait_says_eperm_when_its_hold_ended_before_the_refusal(void **state)
{
    struct actor *actor;

    (void)state;
    make_both("refused", &normal, SHORT_LEASE);
    actor = actor_start(the_server);
    actor_do(actor, "0", "init %s lease=%u", mutex_name, SHORT_LEASE);
    actor_open_inbox(actor);
    actor_do(actor, "0", "lock %s", mutex_name);
    side_text(the_server->side, "CONFIG SET maxmemory 1");
    server_stop(the_server);
    actor_send(actor, "wait %s %s", cond_name, mutex_name);
    let_pass_by_watch(SHORT_LEASE);
    server_cont(the_server);
    actor_expect(actor, "EPERM");
    side_text(the_server->side, "CONFIG SET maxmemory 0");
    actor_do(actor, "EPERM", "unlock %s", mutex_name);
    actor_end(actor);
}

/* The same for a process that was stopped for longer than the lease. */
static void test_wait_says_eperm_when_its_process_was_stopped_for_long(void **state)
{
    struct actor *actor;

    (void)state;
    make_both("stopped", &normal, SHORT_LEASE);
    actor = start(SHORT_LEASE, "A=b");
    actor_do(actor, "0", "lock %s", mutex_name);
    actor_stop(actor);
    assert_result(dmutex_lock(&mutex), 0);
    actor_cont(actor);
    actor_do(actor, "EPERM", "wait %s %s", cond_name, mutex_name);
    assert_int_equal(on_condition(), 0);
    assert_result(dmutex_renew_np(&mutex), 0);
    actor_do(actor, "EPERM", "unlock %s", mutex_name);
    assert_result(dmutex_unlock(&mutex), 0);
    actor_end(actor);
}

/* ---- restart ----------------------------------------------------------------------------- */

/*
 * A crowd waits, or was signalled while the mutex was owned, and the server is killed and restarted: with the data the
 * waiters continue to wait, without the data each returns.
 */
static void restart_under_a_crowd(struct server *server, bool has_data, bool is_signalled)
{
    struct actor *caller = actor_start(server);
    struct crowd crowd;

    crowd_begin(&crowd, server, "restart/m", "restart/c", LONG_LEASE);
    crowd_gather(&crowd, CROWD);
    actor_do(caller, "0", "init restart/m lease=%d", LONG_LEASE);
    actor_do(caller, "0", "lock restart/m");
    if (is_signalled)
        actor_do(caller, "0", "broadcast restart/c");
    server_kill(server);
    server_restart(server);
    promise_by_watch(2 * AT_ONCE);
    actor_send(caller, "unlock restart/m"); /* without data EPERM, if another came first */
    assert_true(strcmp(actor_answer(caller), "0") == 0 || !has_data);
    if (has_data && !is_signalled) {
        wait_until(side_int(server->side, "EXISTS %s", key_of("lock", "restart/m")) == 0);
        assert_int_equal(crowd_on_condition(&crowd), CROWD);
        assert_int_equal(crowd_back(&crowd), 0);
        actor_do(caller, "0", "broadcast restart/c");
    }
    crowd_await_return(&crowd);
    assert_kept_by_watch();
    crowd_end(&crowd);
    actor_end(caller);
}

/* Failure B7: without data everybody comes back, at worst without a signal. */
static void test_a_crowd_comes_back_when_the_server_was_restarted_empty(void **state)
{
    (void)state;
    restart_under_a_crowd(the_server, false, false);
    restart_under_a_crowd(the_server, false, true);
}

/* Failure B8: with the data no waiter is forgotten, and no signal. */
static void test_a_crowd_goes_on_waiting_when_the_server_was_restarted_with_its_data(void **state)
{
    struct server *server = server_start_with(false, "--appendonly", "yes", "--appendfsync", "always", NULL);

    (void)state;
    restart_under_a_crowd(server, true, false);
    restart_under_a_crowd(server, true, true);
    server_end(server);
}

/* All keys are deleted, and no connection ends: each waiter finds out by a poll and comes back. */
static void test_a_crowd_comes_back_when_all_keys_are_deleted(void **state)
{
    struct crowd crowd;

    (void)state;
    make_both("flush", &normal, SHORT_LEASE);
    crowd_begin(&crowd, the_server, mutex_name, cond_name, SHORT_LEASE);
    crowd_gather(&crowd, CROWD);
    promise_by_watch(AT_ONCE);
    side_text(the_server->side, "FLUSHALL");
    crowd_await_return(&crowd);
    assert_kept_by_watch();
    crowd_end(&crowd);
}

#define STATE_TEST(test) cmocka_unit_test_teardown(test, mend_server)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        STATE_TEST(test_conditions_work_when_the_scripts_are_forgotten_all_the_time),
        STATE_TEST(test_wait_says_eagain_when_the_server_is_out_of_memory),
        STATE_TEST(test_waiters_come_back_when_the_server_is_out_of_memory),
        STATE_TEST(test_wait_goes_on_when_the_server_is_a_replica_for_a_while),
        STATE_TEST(test_timedwait_owns_when_the_server_was_frozen_over_its_deadline),
        STATE_TEST(test_wait_waits_once_when_the_server_was_frozen),
        STATE_TEST(test_wait_says_enolck_when_the_server_is_frozen_and_ondown_is_fail),
        STATE_TEST(test_both_can_be_destroyed_when_the_unlock_has_no_answer),
        STATE_TEST(test_wait_says_eperm_when_the_hold_was_lost_before),
        STATE_TEST(test_wait_says_eperm_when_its_hold_ended_before_the_refusal),
        STATE_TEST(test_wait_says_eperm_when_its_process_was_stopped_for_long),
        STATE_TEST(test_a_crowd_comes_back_when_the_server_was_restarted_empty),
        STATE_TEST(test_a_crowd_goes_on_waiting_when_the_server_was_restarted_with_its_data),
        STATE_TEST(test_a_crowd_comes_back_when_all_keys_are_deleted),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, end_group);
}

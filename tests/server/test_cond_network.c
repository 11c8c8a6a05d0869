/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conditions in a bad network: each request is done once, no wake-up is lost, and each returning waiter owns the mutex.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define ROUNDS 20

static struct proxy *proxy;
static struct actor *actor; /* connected through the proxy */
static struct actor *other; /* not */

static const enum proxy_fault faults[] = { PROXY_SWALLOW_REPLY,   PROXY_SWALLOW_AND_CUT, PROXY_CUT_MID_REPLY,
                                           PROXY_SWALLOW_COMMAND, PROXY_CUT_COMMAND,     PROXY_CUT_MID_COMMAND };
#define FAULTS ((int)(sizeof faults / sizeof faults[0]))

static bool is_run(enum proxy_fault fault)
{
    return fault == PROXY_SWALLOW_REPLY || fault == PROXY_SWALLOW_AND_CUT || fault == PROXY_CUT_MID_REPLY;
}

/* Starts an actor with a new proxy, with open connections and loaded scripts. */
static int begin_test(void **state)
{
    char url[160];

    (void)state;
    proxy = proxy_start(the_server);
    snprintf(url, sizeof url, "%s&command_timeout=500&connect_timeout=500", proxy_url(proxy));
    actor = actor_start_at(url);
    other = actor_start(the_server);
    actor_open_inbox(actor);
    actor_do(actor, "0", "lock net/warm");
    actor_do(actor, "ETIMEDOUT", "timedwait net/warm net/warm 20");
    actor_do(actor, "0", "signal net/warm");
    actor_do(actor, "0", "unlock net/warm");
    return 0;
}

static int end_test(void **state)
{
    (void)state;
    proxy_pass(proxy);
    actor_end(actor);
    actor_end(other);
    proxy_end(proxy);
    return 0;
}

/* A mutex and a condition of this test, known to all.  All mutexes here have a lease so long that no poll helps. */
static void make_known(const char *word)
{
    make_both(word, &normal, LONG_LEASE);
    actor_do(actor, "0", "init %s lease=%d", mutex_name, LONG_LEASE);
    actor_do(other, "0", "init %s lease=%d", mutex_name, LONG_LEASE);
}

/* The fault happens to the actor's next `times` commands about the condition. */
static void break_next(enum proxy_fault fault, int times)
{
    proxy_break(proxy, fault, PROXY_COMMANDS, cond_name + strlen("pair/"), times);
}

/* The number of the newest request that the server has heard from the only waiter; 0: no waiter. */
static int request_of_waiter(void)
{
    const char *said = side_text(the_server->side, "HVALS %s", key_of("sleeper", cond_name));
    int request, lease_ms, is_robust;

    while (said) {
        if (sscanf(said, "%d %d %d ", &request, &lease_ms, &is_robust) == 3 && lease_ms == LONG_LEASE)
            return request;
        said = strchr(said, '\n') ? strchr(said, '\n') + 1 : NULL;
    }
    return 0;
}

/* ---- waiting ----------------------------------------------------------------------------- */

/* A wait with a lost command or reply waits once; a signal wakes the waiter, and is not had twice. */
static void test_wait_waits_once_when_its_command_or_reply_is_lost(void **state)
{
    (void)state;
    make_known("once");
    for (int i = 0; i < FAULTS; i++) {
        promise_within(AT_ONCE);
        actor_do(actor, "0", "lock %s", mutex_name);
        break_next(faults[i], 1);
        actor_send(actor, "wait %s %s", cond_name, mutex_name);
        wait_until(request_of_waiter() == 2);
        assert_int_equal(proxy_hits(proxy), 1);
        assert_int_equal(on_condition(), 1);
        proxy_pass(proxy);
        begin_wait(other);
        assert_int_equal(on_condition(), 2);
        assert_result(dcond_signal(&cond), 0);
        assert_back(actor, "0");
        assert_true(actor_is_silent(other));
        assert_int_equal(on_condition(), 1);
        assert_result(dcond_signal(&cond), 0);
        assert_back(other, "0");
        assert_int_equal(on_condition() + in_queue(), 0);
        assert_kept();
    }
}

/*
 * POSIX scenario 24: a signal wakes a waiter that has not yet heard the answer to the wait; the repeated wait is not
 * enqueued again.
 */
static void test_a_signal_wakes_when_it_comes_before_the_reply_to_the_wait(void **state)
{
    (void)state;
    make_known("early");
    for (int i = 0; i < FAULTS; i++) {
        enum proxy_fault fault = is_run(faults[i]) ? faults[i] : PROXY_HOLD_REPLY;

        for (int is_owned = 0; is_owned < 2; is_owned++) {
            promise_within(AT_ONCE);
            actor_do(actor, "0", "lock %s", mutex_name);
            break_next(fault, 1);
            actor_send(actor, "wait %s %s", cond_name, mutex_name);
            wait_until(on_condition() == 1);
            if (is_owned)
                assert_result(dmutex_lock(&mutex), 0);
            assert_result(dcond_signal(&cond), 0);
            assert_int_equal(on_condition(), 0);
            if (is_owned)
                assert_result(dmutex_unlock(&mutex), 0);
            assert_back(actor, "0");
            proxy_pass(proxy);
            assert_int_equal(on_condition() + in_queue(), 0);
            assert_kept();
        }
    }
}

/* ---- signalling -------------------------------------------------------------------------- */

#define WAITERS 3

static int wait_once(dmutex_t *guard)
{
    int result;

    if (dmutex_lock(guard))
        return ENOLCK;
    result = dcond_wait(&cond, guard);
    return dmutex_unlock(guard) ? ENOLCK : result;
}

static void begin_waits(struct errand *waiters)
{
    for (int i = 0; i < WAITERS; i++) {
        errand_begin(&waiters[i], wait_once, &mutex);
        wait_until(on_condition() == i + 1);
    }
    assert_result(dmutex_lock(&mutex), 0); /* so that the woken waiter is seen in the queue */
}

static void end_waits(struct errand *waiters)
{
    assert_result(dmutex_unlock(&mutex), 0);
    for (int i = 0; i < WAITERS; i++)
        assert_result(errand_join(&waiters[i]), 0);
}

/* Repeats the call until done: ENOLCK asks for a repeat. */
static void tell(const char *word)
{
    for (;;) {
        const char *answer;

        actor_send(actor, "%s %s", word, cond_name);
        answer = actor_answer(actor);
        if (strcmp(answer, "ENOLCK") != 0) {
            assert_string_equal(answer, "0");
            return;
        }
    }
}

/*
 * A signal with a lost command or reply wakes one waiter, or two if the first signal was done and then repeated: never
 * none.
 */
static void test_signal_wakes_when_its_command_or_reply_is_lost(void **state)
{
    struct errand waiters[WAITERS];

    (void)state;
    make_known("signal");
    for (int i = 0; i < FAULTS; i++) {
        begin_waits(waiters);
        promise_within(AT_ONCE);
        break_next(faults[i], 1);
        tell("signal");
        assert_int_equal(proxy_hits(proxy), 1);
        assert_kept();
        proxy_pass(proxy);
        assert_within(in_queue(), 1, is_run(faults[i]) ? 2 : 1);
        assert_int_equal(on_condition() + in_queue(), WAITERS);
        tell("broadcast");
        end_waits(waiters);
    }
}

/* A broadcast in the same trouble wakes all. */
static void test_broadcast_wakes_all_when_its_command_or_reply_is_lost(void **state)
{
    struct errand waiters[WAITERS];

    (void)state;
    make_known("all");
    for (int i = 0; i < FAULTS; i++) {
        begin_waits(waiters);
        promise_within(AT_ONCE);
        break_next(faults[i], 1);
        tell("broadcast");
        assert_int_equal(proxy_hits(proxy), 1);
        assert_kept();
        proxy_pass(proxy);
        assert_int_equal(in_queue(), WAITERS);
        assert_int_equal(on_condition(), 0);
        end_waits(waiters);
    }
}

/* Without a network a signal says so within command_timeout, and wakes nobody later. */
static void test_signal_says_enolck_when_there_is_no_network(void **state)
{
    (void)state;
    make_known("down");
    begin_wait(other);
    proxy_refuse(proxy);
    proxy_cut(proxy);
    promise_within(500 + 1000);
    actor_do(actor, "ENOLCK", "signal %s", cond_name);
    actor_do(actor, "ENOLCK", "broadcast %s", cond_name);
    assert_kept();
    proxy_pass(proxy);
    assert_int_equal(on_condition(), 1);
    tell("signal");
    assert_back(other, "0");
}

/* ---- leaving ----------------------------------------------------------------------------- */

/* The actor comes back at the deadline, whatever happened to the cancel. */
static void assert_timed_out(struct actor *who)
{
    actor_expect(who, "ETIMEDOUT");
    assert_owns(who);
}

/* A timed wait that meets the fault at its end; false: the fault came too late. */
static bool leaves_in_trouble(enum proxy_fault fault)
{
    actor_do(actor, "0", "lock %s", mutex_name);
    actor_send(actor, "timedwait %s %s 300", cond_name, mutex_name);
    wait_until(on_condition() == 1 || !actor_is_silent(actor));
    break_next(fault, 1);
    assert_timed_out(actor);
    return proxy_hits(proxy) == 1;
}

/* A deadline with a lost command or reply ends the wait once; nothing is left that eats signals. */
static void test_timedwait_leaves_once_when_its_command_or_reply_is_lost(void **state)
{
    (void)state;
    make_known("leave");
    for (int i = 0; i < FAULTS; i++) {
        promise_within(AT_ONCE);
        while (!leaves_in_trouble(faults[i]))
            ;
        proxy_pass(proxy);
        assert_int_equal(on_condition() + in_queue(), 0);
        begin_wait(other);
        assert_result(dcond_signal(&cond), 0);
        assert_back(other, "0");
        assert_kept();
    }
}

/* A signal comes before the deadline, and the messages of the signal do not arrive; false: the signal came too late. */
static bool is_signalled_unheard(enum proxy_fault fault)
{
    bool is_signalled;

    actor_do(actor, "0", "lock %s", mutex_name);
    actor_send(actor, "timedwait %s %s 300", cond_name, mutex_name);
    wait_until(on_condition() == 1 || !actor_is_silent(actor));
    assert_result(dmutex_lock(&mutex), 0);
    proxy_hold(proxy, PROXY_TO_CLIENT, PROXY_INBOX);
    if (fault != PROXY_NONE)
        break_next(fault, 1);
    assert_result(dcond_signal(&cond), 0);
    is_signalled = strstr(side_text(the_server->side, "HVALS %s", key_of("waiter", mutex_name)), "@") != NULL;
    side_set_control(the_server->side, "left", 300 + 500);
    side_await_control(the_server->side, "left");
    assert_result(dmutex_unlock(&mutex), 0);
    return is_signalled;
}

/* A signal that came before the deadline is returned, although the waiter only learns of it by the cancel. */
static void test_timedwait_says_0_when_a_signal_came_that_it_did_not_hear(void **state)
{
    static const enum proxy_fault some[] = { PROXY_NONE, PROXY_SWALLOW_AND_CUT, PROXY_CUT_COMMAND };

    (void)state;
    make_known("unheard");
    actor_do(actor, "0", "init %s lease=%d", mutex_name, 3 * SHORT_LEASE); /* the waiter does not hear the grant */
    for (int i = 0; i < 3; i++) {
        while (!is_signalled_unheard(some[i])) {
            proxy_pass(proxy);
            assert_timed_out(actor);
        }
        promise_within(AT_ONCE);
        assert_back(actor, "0");
        assert_kept();
        assert_int_equal(on_condition() + in_queue(), 0);
        proxy_pass(proxy);
    }
}

/* The deadline comes while there is no network: the wait ends when the network is back, owning the mutex. */
static void test_timedwait_owns_when_the_network_is_back_after_its_deadline(void **state)
{
    (void)state;
    make_known("late");
    for (int way = 0; way < 2; way++) {
        actor_do(actor, "0", "lock %s", mutex_name);
        actor_send(actor, "timedwait %s %s 200", cond_name, mutex_name);
        wait_until(on_condition() == 1);
        if (way == 0) {
            proxy_hold(proxy, PROXY_BOTH_WAYS, PROXY_ALL);
        } else {
            proxy_refuse(proxy);
            proxy_cut(proxy);
        }
        side_set_control(the_server->side, "time", 1200); /* the deadline, and a command_timeout */
        side_await_control(the_server->side, "time");
        assert_true(actor_is_silent(actor));
        promise_within(AT_ONCE);
        proxy_pass(proxy);
        assert_timed_out(actor);
        assert_kept();
    }
}

/* ---- messages ---------------------------------------------------------------------------- */

/* Failure B21: a waiter with lost messages finds out by polls. */
static void test_a_signal_wakes_when_its_messages_are_lost(void **state)
{
    static const char *const messages[] = { "signalled", "granted", "" };

    (void)state;
    make_known("message");
    actor_do(actor, "0", "init %s lease=%d", mutex_name, SHORT_LEASE);
    for (int i = 0; i < 3; i++) {
        begin_wait(actor);
        promise_within(AT_ONCE);
        proxy_break(proxy, PROXY_SWALLOW_REPLY, PROXY_INBOX, messages[i], 2);
        assert_result(dmutex_lock(&mutex), 0);
        assert_result(dcond_signal(&cond), 0);
        assert_result(dmutex_unlock(&mutex), 0);
        assert_back(actor, "0");
        assert_true(proxy_hits(proxy) >= 1);
        assert_kept();
        proxy_pass(proxy);
    }
}

/* Failure B17: the inbox is killed just before a signal: one of the two waiters hears the signal all the same. */
static void test_a_signal_wakes_when_the_inboxes_are_killed(void **state)
{
    (void)state;
    make_known("inbox");
    for (int i = 0; i < repetitions(ROUNDS); i++) {
        struct actor *woken;

        begin_wait(actor);
        begin_wait(other);
        promise_within(AT_ONCE);
        side_int(the_server->side, "CLIENT KILL TYPE pubsub");
        assert_result(dcond_signal(&cond), 0);
        wait_until(!actor_is_silent(actor) || !actor_is_silent(other));
        assert_kept();
        woken = actor_is_silent(actor) ? other : actor;
        assert_back(woken, "0");
        assert_int_equal(on_condition(), 1);
        assert_result(dcond_signal(&cond), 0);
        assert_back(woken == actor ? other : actor, "0");
    }
}

/* ---- all together ------------------------------------------------------------------------ */

/* Connections that are cut anywhere, all the time, but not before any use: no turn is lost, none is taken twice. */
static void test_turns_go_on_when_connections_are_cut_all_the_time(void **state)
{
    struct actor *second = actor_start_at(proxy_url(proxy));
    int turns = repetitions(150);
    char file[64];

    (void)state;
    make_known("turns");
    snprintf(file, sizeof file, "%s/turns", the_server->folder);
    actor_begin_count(file);
    actor_do(second, "0", "init %s lease=%d", mutex_name, LONG_LEASE);
    actor_send(actor, "turns %s %d %s %s 0", file, turns, cond_name, mutex_name);
    actor_send(second, "turns %s %d %s %s 1", file, turns, cond_name, mutex_name);
    storm_while_counting(proxy, actor, second, file);
    actor_expect(actor, "0");
    actor_expect(second, "0");
    assert_int_equal(actor_counted(file), 2 * turns);
    actor_end(second);
}

#define NET_TEST(test) cmocka_unit_test_setup_teardown(test, begin_test, end_test)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        NET_TEST(test_wait_waits_once_when_its_command_or_reply_is_lost),
        NET_TEST(test_a_signal_wakes_when_it_comes_before_the_reply_to_the_wait),
        NET_TEST(test_signal_wakes_when_its_command_or_reply_is_lost),
        NET_TEST(test_broadcast_wakes_all_when_its_command_or_reply_is_lost),
        NET_TEST(test_signal_says_enolck_when_there_is_no_network),
        NET_TEST(test_timedwait_leaves_once_when_its_command_or_reply_is_lost),
        NET_TEST(test_timedwait_says_0_when_a_signal_came_that_it_did_not_hear),
        NET_TEST(test_timedwait_owns_when_the_network_is_back_after_its_deadline),
        NET_TEST(test_a_signal_wakes_when_its_messages_are_lost),
        NET_TEST(test_a_signal_wakes_when_the_inboxes_are_killed),
        NET_TEST(test_turns_go_on_when_connections_are_cut_all_the_time),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

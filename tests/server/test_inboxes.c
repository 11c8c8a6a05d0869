/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that come late, not at all or twice, and missing inboxes: a waiter gets the lock all the same, at once or by
 * the next poll, never by the end of a lease.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/lines.h"
#include "../lib/testlib.h"

#define LONG_LEASE 60000 /* no poll within the time of a test */
#define LEASE 900        /* a poll every 300 ms at most */
#define AT_ONCE 5000
#define BY_POLL (LEASE / 3 + 1000)

static dmutex_t mutex;
/* The test's thread holds `name`. */
static void hold(const char *name)
{
    make_normal(&mutex, name, LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
}

/* An actor, connected through the proxy, that alone waits for `name`. Its inbox may still be on the way. */
static struct actor *start_waiter(const char *name, int lease_ms)
{
    struct actor *waiter = actor_start_at(proxy_url(the_proxy));

    actor_do(waiter, "0", "init %s lease=%d", name, lease_ms);
    actor_send(waiter, "lock %s", name);
    wait_until(waiters_of(&mutex) == 1);
    return waiter;
}

static void expect_lock_and_end(struct actor *waiter, const char *name)
{
    actor_expect(waiter, "0");
    assert_kept();
    actor_do(waiter, "0", "unlock %s", name);
    proxy_pass(the_proxy);
    actor_end(waiter);
    wait_until(!is_locked(&mutex));
}

/* Failure 1: an unlock between the first "busy" and the subscription is not missed. */
static void test_a_waiter_owns_when_the_unlock_comes_before_its_subscription(void **state)
{
    struct actor *waiter = actor_start_at(proxy_url(the_proxy));

    (void)state;
    hold("inbox/gap");
    actor_do(waiter, "0", "init inbox/gap lease=%d", LONG_LEASE);
    proxy_break(the_proxy, PROXY_HOLD_REPLY, PROXY_INBOX, "SUBSCRIBE", 1);
    actor_send(waiter, "lock inbox/gap");
    wait_until(proxy_hits(the_proxy) == 1);
    assert_result(dmutex_unlock(&mutex), 0);
    promise_within(AT_ONCE);
    proxy_pass(the_proxy);
    expect_lock_and_end(waiter, "inbox/gap");
}

/* Failure 2: an inbox that the server has closed is opened again, and missed messages are asked for. */
static void test_a_waiter_owns_when_its_inbox_was_closed_and_the_unlock_missed(void **state)
{
    struct actor *waiter;

    (void)state;
    hold("inbox/closed");
    waiter = start_waiter("inbox/closed", LONG_LEASE);
    wait_until(side_count_channels(the_server->side) == 2);
    proxy_refuse(the_proxy); /* the new inbox does not come up before the unlock */
    side_text(the_server->side, "CLIENT KILL TYPE pubsub");
    wait_until(side_count_channels(the_server->side) < 2);
    assert_result(dmutex_unlock(&mutex), 0);
    promise_within(AT_ONCE);
    proxy_pass(the_proxy);
    expect_lock_and_end(waiter, "inbox/closed");
}

/* Failure 2: a waiter whose inbox is back before the unlock gets its message as usual. */
static void test_a_waiter_gets_the_message_when_its_inbox_was_closed_before(void **state)
{
    struct actor *waiter;

    (void)state;
    hold("inbox/again");
    waiter = start_waiter("inbox/again", LONG_LEASE);
    wait_until(side_count_channels(the_server->side) == 2);
    for (int i = 0; i < 5; i++) {
        side_text(the_server->side, "CLIENT KILL TYPE pubsub");
        wait_until(side_count_channels(the_server->side) == 2);
    }
    promise_within(AT_ONCE);
    assert_result(dmutex_unlock(&mutex), 0);
    expect_lock_and_end(waiter, "inbox/again");
}

/*
 * Closed, and open again, before the waiter has read that the waiter is in the queue: missed messages are asked for.
 * The server takes no connection in between, so that there is no inbox to grant to.  The test's process holds another
 * mutex, so that the inbox of that process surely comes back too.
 */
static void test_a_waiter_owns_when_its_inbox_was_closed_before_it_knew_its_place(void **state)
{
    struct actor *waiter;
    dmutex_t other;

    (void)state;
    hold("inbox/warm");
    waiter = start_waiter("inbox/warm", LONG_LEASE);
    assert_result(dmutex_unlock(&mutex), 0);
    actor_expect(waiter, "0");
    actor_do(waiter, "0", "unlock inbox/warm");

    make_normal(&other, "inbox/other", LONG_LEASE);
    assert_result(dmutex_lock(&other), 0);
    hold("inbox/place");
    actor_do(waiter, "0", "init inbox/place lease=%d", LONG_LEASE);
    proxy_break(the_proxy, PROXY_HOLD_REPLY, PROXY_COMMANDS, "lock:place", 1);
    actor_send(waiter, "lock inbox/place");
    wait_until(proxy_hits(the_proxy) == 1);
    wait_until(side_count_channels(the_server->side) == 2);
    side_text(the_server->side, "CONFIG SET maxclients 1");
    side_text(the_server->side, "CLIENT KILL TYPE pubsub");
    wait_until(side_count_channels(the_server->side) == 0);
    assert_result(dmutex_unlock(&mutex), 0);
    wait_until(!is_locked(&mutex));
    side_text(the_server->side, "CONFIG SET maxclients 10000");
    wait_until(side_count_channels(the_server->side) == 2);
    promise_within(AT_ONCE);
    proxy_pass(the_proxy);
    expect_lock_and_end(waiter, "inbox/place");
    assert_result(dmutex_unlock(&other), 0);
}

/* Progress with all messages lost: the next poll finds the grant. */
static void test_a_waiter_owns_by_its_poll_when_the_message_is_lost(void **state)
{
    struct actor *waiter;

    (void)state;
    hold("inbox/lost");
    waiter = start_waiter("inbox/lost", LEASE);
    proxy_break(the_proxy, PROXY_SWALLOW_REPLY, PROXY_INBOX, "granted", 100);
    promise_within(BY_POLL);
    assert_result(dmutex_unlock(&mutex), 0);
    expect_lock_and_end(waiter, "inbox/lost");
}

/* Failure 2: the same when the inbox is a black hole that is never closed. */
static void test_a_waiter_owns_by_its_poll_when_its_inbox_is_a_black_hole(void **state)
{
    struct actor *waiter;

    (void)state;
    hold("inbox/hole");
    waiter = start_waiter("inbox/hole", LEASE);
    proxy_hold(the_proxy, PROXY_BOTH_WAYS, PROXY_INBOX);
    promise_within(BY_POLL);
    assert_result(dmutex_unlock(&mutex), 0);
    expect_lock_and_end(waiter, "inbox/hole");
}

/* A subscription that is never confirmed, although commands are answered: the waiter asks, and the log says why. */
static void test_a_waiter_owns_by_asking_when_its_subscription_is_never_confirmed(void **state)
{
    char url[160], log[160];
    struct actor *waiter;
    int64_t asked;

    (void)state;
    snprintf(url, sizeof url, "DMUTEX_URL=%s&connect_timeout=%d", proxy_url(the_proxy), LEASE / 3);
    snprintf(log, sizeof log, "DMUTEX_LOG=warn:%s", server_file(the_server, "unconfirmed"));
    hold("inbox/unconfirmed");
    proxy_break(the_proxy, PROXY_SWALLOW_REPLY, PROXY_INBOX, "SUBSCRIBE", INT_MAX);
    waiter = actor_start_with(the_server, url, log, NULL);
    actor_do(waiter, "0", "init inbox/unconfirmed lease=%d", LONG_LEASE);
    asked = side_calls(the_server->side, "evalsha");
    actor_send(waiter, "lock inbox/unconfirmed");
    wait_until(lines_with(server_file(the_server, "unconfirmed"), "was opened for messages, but") > 0);
    wait_until(side_calls(the_server->side, "evalsha") > asked + 2);
    assert_true(actor_is_silent(waiter));
    promise_within(AT_ONCE);
    assert_result(dmutex_unlock(&mutex), 0);
    expect_lock_and_end(waiter, "inbox/unconfirmed");
}

/* Failure 2: a message is on the way when the connection breaks in the middle of the message. */
static void test_a_waiter_owns_when_the_connection_breaks_in_the_message(void **state)
{
    static const enum proxy_fault faults[] = { PROXY_SWALLOW_AND_CUT, PROXY_CUT_MID_REPLY };

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct actor *waiter;

        hold("inbox/broken");
        waiter = start_waiter("inbox/broken", LONG_LEASE);
        proxy_break(the_proxy, faults[i], PROXY_INBOX, "granted", 1);
        promise_within(AT_ONCE);
        assert_result(dmutex_unlock(&mutex), 0);
        expect_lock_and_end(waiter, "inbox/broken");
    }
}

/* A message of an old grant that comes late does not make a second owner. */
static void test_a_late_message_is_not_believed_when_its_grant_is_over(void **state)
{
    struct actor *waiter;

    (void)state;
    hold("inbox/late");
    waiter = start_waiter("inbox/late", LEASE);
    proxy_hold(the_proxy, PROXY_BOTH_WAYS, PROXY_ALL);
    assert_result(dmutex_unlock(&mutex), 0); /* granted; neither message nor polls get through */
    wait_until(waiters_of(&mutex) == 0);
    wait_until(!is_locked(&mutex));
    assert_result(dmutex_lock(&mutex), 0);
    proxy_pass(the_proxy); /* the message of the old grant arrives */
    wait_until(waiters_of(&mutex) == 1);
    assert_true(actor_is_silent(waiter));
    assert_true(remaining_of(&mutex) > 0);
    assert_result(dmutex_renew_np(&mutex), 0);
    promise_within(AT_ONCE);
    assert_result(dmutex_unlock(&mutex), 0);
    expect_lock_and_end(waiter, "inbox/late");
}

/* A grant for a lock call that has timed out is given back at once. */
static void test_a_grant_is_given_back_when_its_waiter_has_left(void **state)
{
    struct actor *waiter = actor_start_at(proxy_url(the_proxy));

    (void)state;
    hold("inbox/left");
    actor_do(waiter, "0", "init inbox/left lease=%d", LONG_LEASE);
    actor_send(waiter, "timedlock inbox/left 1000");
    wait_until(waiters_of(&mutex) == 1);
    proxy_hold(the_proxy, PROXY_TO_SERVER, PROXY_COMMANDS); /* the waiter's cancel does not get through */
    actor_expect(waiter, "ETIMEDOUT");
    assert_result(dmutex_unlock(&mutex), 0);
    assert_true(is_locked(&mutex)); /* granted to a waiter that has left */
    promise_within(AT_ONCE);
    proxy_pass(the_proxy);
    wait_until(!is_locked(&mutex));
    assert_kept();
    actor_end(waiter);
}

/* To the inbox of the first in the queue: a grant of the newest request, by a server `run`. */
static void publish_grant(const char *run)
{
    const char *first = first_waiter_at(the_server->side, "inbox/named");
    char uuid[40], message[160];
    unsigned long long attempt, request;

    assert_int_equal(sscanf(first, "%39[^:]:%*u:%llu %llu", uuid, &attempt, &request), 3);
    snprintf(message, sizeof message, "granted %llu %llu 1700000000000000 %d 0%s", attempt, request, LONG_LEASE, run);
    assert_int_equal(side_int(the_server->side, "PUBLISH dmutex:inbox:%s %s", uuid, message), 1);
}

/*
 * A server passes messages on to the replicas, and does not count the listeners there. So a grant is believed only if
 * the grant names the server that the inbox is connected to: the name of another server, or no name, makes the waiter
 * ask.
 */
static void test_a_grant_is_a_hint_when_it_is_not_of_the_server_that_the_inbox_hears(void **state)
{
    static const char *const others[] = { " 0123456789abcdef", " 0000000000000000", "" };
    struct actor *waiter;
    char run[40];
    int64_t asked;

    (void)state;
    hold("inbox/named");
    waiter = start_waiter("inbox/named", LONG_LEASE);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        asked = side_calls(the_server->side, "evalsha");
        publish_grant(others[i]);
        wait_until(side_calls(the_server->side, "evalsha") > asked);
        wait_until(waiters_of(&mutex) == 1);
        assert_true(actor_is_silent(waiter));
    }
    snprintf(run, sizeof run, " %.16s", strstr(side_text(the_server->side, "INFO server"), "run_id:") + 7);
    publish_grant(run); /* so the earlier grants were refused only because of their last word */
    actor_expect(waiter, "0");
    assert_result(dmutex_unlock(&mutex), 0);
    actor_end(waiter);
}

/* Many handoffs through a network that loses half of the messages: all get through. */
static void test_every_handoff_succeeds_when_messages_are_lost_now_and_then(void **state)
{
    struct actor *waiter = actor_start_at(proxy_url(the_proxy));
    char file[64];

    (void)state;
    snprintf(file, sizeof file, "%s/handoffs", the_server->folder);
    actor_do(waiter, "0", "init inbox/many lease=200");
    actor_send(waiter, "count %s 30 inbox/many 2", file);
    make_normal(&mutex, "inbox/many", LONG_LEASE);
    while (actor_is_silent(waiter)) {
        proxy_break(the_proxy, PROXY_SWALLOW_REPLY, PROXY_INBOX, "granted", 1);
        assert_result(dmutex_lock(&mutex), 0);
        assert_result(dmutex_unlock(&mutex), 0);
    }
    actor_expect(waiter, "0");
    assert_int_equal(actor_counted(file), 60);
    actor_end(waiter);
}

#define INBOX_TEST(test) cmocka_unit_test_setup_teardown(test, test_proxy_setup, test_proxy_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        INBOX_TEST(test_a_waiter_owns_when_the_unlock_comes_before_its_subscription),
        INBOX_TEST(test_a_waiter_owns_when_its_inbox_was_closed_and_the_unlock_missed),
        INBOX_TEST(test_a_waiter_gets_the_message_when_its_inbox_was_closed_before),
        INBOX_TEST(test_a_waiter_owns_when_its_inbox_was_closed_before_it_knew_its_place),
        INBOX_TEST(test_a_waiter_owns_by_its_poll_when_the_message_is_lost),
        INBOX_TEST(test_a_waiter_owns_by_its_poll_when_its_inbox_is_a_black_hole),
        INBOX_TEST(test_a_waiter_owns_by_asking_when_its_subscription_is_never_confirmed),
        INBOX_TEST(test_a_waiter_owns_when_the_connection_breaks_in_the_message),
        INBOX_TEST(test_a_late_message_is_not_believed_when_its_grant_is_over),
        INBOX_TEST(test_a_grant_is_given_back_when_its_waiter_has_left),
        INBOX_TEST(test_a_grant_is_a_hint_when_it_is_not_of_the_server_that_the_inbox_hears),
        INBOX_TEST(test_every_handoff_succeeds_when_messages_are_lost_now_and_then),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

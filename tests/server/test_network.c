/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network that loses commands and replies, cuts connections and keeps bytes back: each request is done once, nothing
 * is left locked, and no process waits for a lease.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/testlib.h"

#define LONG_LEASE 60000 /* of all mutexes here: no test is saved by a lease's end */
#define AT_ONCE 8000

static dmutex_t mutex;
static struct proxy *proxy;
static struct actor *actor; /* connected through the proxy */

/* Starts an actor with a new proxy, with open connections and loaded scripts. */
static int begin_test(void **state)
{
    char url[160];

    (void)state;
    proxy = proxy_start(the_server);
    snprintf(url, sizeof url, "%s&command_timeout=500&connect_timeout=500", proxy_url(proxy));
    actor = actor_start_at(url);
    actor_open_inbox(actor);
    return 0;
}

static int end_test(void **state)
{
    (void)state;
    proxy_pass(proxy);
    actor_end(actor);
    proxy_end(proxy);
    return 0;
}

static const struct kind kind_of[] = {
    { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, "" },
    { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, " robust" },
};

static void make_both(const char *name, const struct kind *kind)
{
    make_mutex(&mutex, name, kind, LONG_LEASE);
    actor_do(actor, "0", "init %s%s lease=%d", name, kind->words, LONG_LEASE);
}

/* For tests in which each lock and unlock of the actor is a request. */
static void make_both_fair(const char *name, const struct kind *kind)
{
    make_fair(&mutex, name, kind, LONG_LEASE);
    actor_do(actor, "0", "init %s%s lease=%d fair", name, kind->words, LONG_LEASE);
}

static void assert_nothing_lost(void)
{
    actor_send(actor, "lost");
    assert_memory_equal(actor_answer(actor), "0 ", 2);
}

static const enum proxy_fault faults[] = { PROXY_SWALLOW_REPLY,   PROXY_SWALLOW_AND_CUT, PROXY_CUT_MID_REPLY,
                                           PROXY_SWALLOW_COMMAND, PROXY_CUT_COMMAND,     PROXY_CUT_MID_COMMAND };
#define FAULTS ((int)(sizeof faults / sizeof faults[0]))

/* ---- locking ----------------------------------------------------------------------------- */

/* POSIX scenario 12, failure 10: a lock with a lost command or reply is held once, not twice. */
static void test_lock_owns_once_when_its_command_or_reply_is_lost(void **state)
{
    (void)state;
    make_both("net/once", &kind_of[0]);
    for (int i = 0; i < FAULTS; i++) {
        promise_within(AT_ONCE);
        proxy_break(proxy, faults[i], PROXY_COMMANDS, "lock:once", 1);
        actor_do(actor, "0", "lock net/once");
        assert_int_equal(proxy_hits(proxy), 1);
        proxy_pass(proxy);
        assert_int_equal(actor_value(actor, "holdcount net/once"), 1);
        assert_string_equal(side_text(the_server->side, "HVALS %s", key_of("lock", "net/once")), "1");
        actor_do(actor, "0", "unlock net/once");
        wait_until(!is_locked(&mutex));
        assert_kept();
    }
    assert_nothing_lost();
}

/* Failure 10: a lock that has to wait is in the queue once. */
static void test_lock_waits_once_when_its_command_or_reply_is_lost(void **state)
{
    (void)state;
    make_both("net/queue", &kind_of[0]);
    for (int i = 0; i < FAULTS; i++) {
        assert_result(dmutex_lock(&mutex), 0);
        promise_within(AT_ONCE);
        proxy_break(proxy, faults[i], PROXY_COMMANDS, "lock:queue", 1);
        actor_send(actor, "lock net/queue");
        wait_until(proxy_hits(proxy) == 1);
        wait_until(waiters_of(&mutex) == 1);
        proxy_pass(proxy);
        assert_result(dmutex_unlock(&mutex), 0);
        actor_expect(actor, "0");
        assert_kept();
        assert_int_equal(waiters_of(&mutex), 0);
        actor_do(actor, "0", "unlock net/queue");
    }
}

/* A try whose command or reply is lost either owns or does not: no lock is left over. */
static void test_trylock_leaves_nothing_when_its_command_or_reply_is_lost(void **state)
{
    (void)state;
    make_both("net/try", &kind_of[0]);
    for (int i = 0; i < FAULTS; i++) {
        const char *answer;

        promise_within(AT_ONCE);
        proxy_break(proxy, faults[i], PROXY_COMMANDS, "lock:try", 1);
        actor_send(actor, "trylock net/try");
        answer = actor_answer(actor);
        assert_true(strcmp(answer, "0") == 0 || strcmp(answer, "ENOLCK") == 0);
        if (strcmp(answer, "0") == 0)
            actor_do(actor, "0", "unlock net/try");
        proxy_pass(proxy);
        wait_until(!is_locked(&mutex));
        assert_kept();
    }
}

/* I4: a refusal that follows an unanswered request leaves no lock. */
static void test_lock_leaves_nothing_when_it_is_refused_after_a_lost_reply(void **state)
{
    (void)state;
    make_both("net/refused", &kind_of[0]);
    proxy_break(proxy, PROXY_SWALLOW_REPLY, PROXY_COMMANDS, "lock:refused", 1);
    actor_send(actor, "lock net/refused");
    wait_until(proxy_hits(proxy) == 1);
    assert_true(is_locked(&mutex));
    side_text(the_server->side, "CONFIG SET maxmemory 1");
    actor_expect(actor, "EAGAIN");
    side_text(the_server->side, "CONFIG SET maxmemory 0");
    promise_within(AT_ONCE);
    wait_until(!is_locked(&mutex));
    assert_kept();
}

/* ---- unlocking --------------------------------------------------------------------------- */

/* POSIX scenario 13, failure 11: an unlock is done once, for any loss, and the waiter owns. */
static void test_unlock_releases_once_when_its_command_or_reply_is_lost(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        make_both(k ? "net/unlock1" : "net/unlock0", &kind_of[k]);
        for (int i = 0; i < FAULTS; i++) {
            const char *name = k ? "net/unlock1" : "net/unlock0";
            struct errand waiter;

            actor_do(actor, "0", "lock %s", name);
            errand_begin(&waiter, dmutex_lock, &mutex);
            wait_until(waiters_of(&mutex) == 1);
            promise_within(AT_ONCE);
            proxy_break(proxy, faults[i], PROXY_COMMANDS, "lock:unlock", 1);
            actor_do(actor, "0", "unlock %s", name);
            assert_result(errand_join(&waiter), 0); /* the owner's thread ends: a death to the next owner */
            assert_kept();
            proxy_pass(proxy);
            if (kind_of[k].robust) {
                assert_result(dmutex_lock(&mutex), EOWNERDEAD);
                assert_result(dmutex_consistent(&mutex), 0);
                assert_result(dmutex_unlock(&mutex), 0);
            }
        }
    }
    assert_nothing_lost();
}

/* One's own unlock that got lost does not block one's next lock. */
static void test_lock_owns_again_when_the_unlock_before_got_lost(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        const char *name = k ? "net/anew1" : "net/anew0";

        make_both_fair(name, &kind_of[k]);
        for (int i = 0; i < FAULTS; i++) {
            long long token;

            actor_do(actor, "0", "lock %s", name);
            token = actor_value(actor, "token %s", name);
            promise_within(AT_ONCE);
            proxy_break(proxy, faults[i], PROXY_COMMANDS, "lock:anew", 1);
            actor_do(actor, "0", "unlock %s", name);
            actor_do(actor, "0", "lock %s", name); /* 0: no death was made up */
            assert_kept();
            proxy_pass(proxy);
            assert_true(actor_value(actor, "token %s", name) > token);
            actor_do(actor, "0", "renew %s", name);
            actor_do(actor, "0", "unlock %s", name);
            wait_until(!is_locked(&mutex));
        }
    }
    assert_nothing_lost();
}

/* A release with a script that the server does not know is sent as text. */
static void test_unlock_releases_when_the_server_has_forgotten_the_scripts(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        make_both(k ? "net/noscript1" : "net/noscript0", &kind_of[k]);
        actor_do(actor, "0", "lock net/noscript%d", k);
        side_text(the_server->side, "SCRIPT FLUSH");
        promise_within(AT_ONCE);
        actor_do(actor, "0", "unlock net/noscript%d", k);
        wait_until(!is_locked(&mutex));
        assert_kept();
    }
}

/* An unlock without a network is over for the caller; the release comes when there is a network. */
static void test_unlock_releases_later_when_there_is_no_network(void **state)
{
    (void)state;
    make_both("net/later", &kind_of[0]);
    for (int way = 0; way < 2; way++) {
        actor_do(actor, "0", "lock net/later");
        if (way == 0) {
            proxy_hold(proxy, PROXY_BOTH_WAYS, PROXY_ALL);
        } else {
            proxy_refuse(proxy);
            proxy_cut(proxy);
        }
        actor_do(actor, "0", "unlock net/later");
        actor_do(actor, "EPERM", "unlock net/later");
        assert_true(is_locked(&mutex));
        promise_within(AT_ONCE);
        proxy_pass(proxy);
        wait_until(!is_locked(&mutex));
        assert_kept();
    }
    assert_nothing_lost();
}

/* ---- no network -------------------------------------------------------------------------- */

/* Failure 19: a timed lock keeps the deadline without a network, and a late grant is undone. */
static void test_timedlock_ends_at_its_deadline_when_there_is_no_network(void **state)
{
    (void)state;
    make_both_fair("net/timed", &kind_of[0]);
    for (int i = 0; i < 3; i++) {
        proxy_hold(proxy, i == 2 ? PROXY_TO_CLIENT : PROXY_BOTH_WAYS, PROXY_ALL);
        promise_within(200 + 1000);
        actor_do(actor, "ETIMEDOUT", "%s net/timed 200", i == 1 ? "clocklock" : "timedlock");
        assert_kept();
        actor_send(actor, "strerror");
        assert_non_null(strchr(actor_answer(actor), ' '));
        promise_within(AT_ONCE);
        proxy_pass(proxy);
        wait_until(!is_locked(&mutex));
        actor_do(actor, "0", "lock net/timed");
        actor_do(actor, "0", "unlock net/timed");
        assert_kept();
    }
}

/* Failure 19: the same during a wait in the queue: the late grant stays with no process for long. */
static void test_timedlock_leaves_the_queue_when_the_network_goes_while_it_waits(void **state)
{
    (void)state;
    make_both("net/waits", &kind_of[0]);
    assert_result(dmutex_lock(&mutex), 0);
    actor_send(actor, "timedlock net/waits 300");
    wait_until(waiters_of(&mutex) == 1);
    proxy_hold(proxy, PROXY_BOTH_WAYS, PROXY_ALL);
    promise_within(300 + 1000);
    assert_result(dmutex_unlock(&mutex), 0); /* granted, and the message does not arrive */
    actor_expect(actor, "ETIMEDOUT");
    assert_kept();
    promise_within(AT_ONCE);
    proxy_pass(proxy);
    wait_until(!is_locked(&mutex));
    assert_kept();
}

/* A try answers within command_timeout, and a late grant is undone. */
static void test_trylock_says_enolck_when_there_is_no_network(void **state)
{
    (void)state;
    make_both("net/no-try", &kind_of[0]);
    proxy_hold(proxy, PROXY_BOTH_WAYS, PROXY_ALL);
    promise_within(500 + 1000);
    actor_do(actor, "ENOLCK", "trylock net/no-try");
    assert_kept();
    proxy_pass(proxy);
    proxy_refuse(proxy);
    proxy_cut(proxy);
    promise_within(500 + 1000);
    actor_do(actor, "ENOLCK", "trylock net/no-try");
    actor_do(actor, "ENOLCK", "islocked net/no-try");
    assert_kept();
    promise_within(AT_ONCE);
    proxy_pass(proxy);
    wait_until(!is_locked(&mutex));
    assert_kept();
}

/* A lock keeps trying as a blocked mutex does, and owns when the network is back. */
static void test_lock_owns_when_the_network_is_back(void **state)
{
    (void)state;
    make_both("net/back", &kind_of[0]);
    for (int way = 0; way < 2; way++) {
        if (way == 0) {
            proxy_hold(proxy, PROXY_BOTH_WAYS, PROXY_ALL);
        } else {
            proxy_refuse(proxy);
            proxy_cut(proxy);
        }
        actor_send(actor, "lock net/back");
        promise_within(1200); /* some command_timeouts */
        side_await_control(the_server->side, "bound");
        assert_true(actor_is_silent(actor));
        promise_within(AT_ONCE);
        proxy_pass(proxy);
        actor_expect(actor, "0");
        assert_kept();
        actor_do(actor, "0", "unlock net/back");
        wait_until(!is_locked(&mutex));
    }
}

/* A server that accepts connections and says nothing does not keep a first call beyond a deadline that is near. */
static void test_a_near_deadline_is_kept_when_the_server_has_never_answered(void **state)
{
    struct actor *first;
    char url[160];

    (void)state;
    snprintf(url, sizeof url, "%s&command_timeout=%d&connect_timeout=%d", proxy_url(proxy), 4 * WAIT_LIMIT_MS,
             4 * WAIT_LIMIT_MS);
    proxy_hold(proxy, PROXY_BOTH_WAYS, PROXY_ALL);
    first = actor_start_at(url);
    actor_do(first, "ETIMEDOUT", "timedlock net/near 10");
    proxy_pass(proxy);
    actor_do(first, "0", "lock net/near");
    actor_do(first, "0", "unlock net/near");
    actor_end(first);
}

/* ---- old bytes --------------------------------------------------------------------------- */

/* Bytes of a connection that was given up do not make a ghost hold later. */
static void test_no_lock_comes_back_when_old_bytes_arrive_late(void **state)
{
    (void)state;
    make_both("net/ghost", &kind_of[0]);
    for (int i = 0; i < repetitions(5); i++) {
        int accepted = proxy_accepted(proxy);

        proxy_hold(proxy, PROXY_TO_SERVER, PROXY_COMMANDS);
        actor_do(actor, "ETIMEDOUT", "timedlock net/ghost 50");
        wait_until(proxy_accepted(proxy) > accepted); /* gave the connection up: a new connection */
        proxy_pass(proxy);
        actor_do(actor, "0", "lock net/ghost");
        actor_do(actor, "0", "unlock net/ghost");
        wait_until(!is_locked(&mutex));
        assert_result(dmutex_trylock(&mutex), 0);
        assert_result(dmutex_unlock(&mutex), 0);
    }
    assert_nothing_lost();
}

/* ---- granted and lost before the answer -------------------------------------------------- */

static bool owns(const char *id)
{
    const char *hold = side_text(the_server->side, "HGET %s hold", key_of("state", "net/twice"));

    return hold && strncmp(hold, id, strlen(id)) == 0;
}

static bool waits(const char *id)
{
    return strncmp(first_waiter_at(the_server->side, "net/twice"), id, strlen(id)) == 0 ||
           side_text(the_server->side, "ZSCORE %s %s", key_of("queue", "net/twice"), id) != NULL;
}

/* The actor has tried to connect again and again: the actor has heard by now of all earlier messages. */
static void await_refusals(void)
{
    int accepted = proxy_accepted(proxy);

    wait_until(proxy_accepted(proxy) >= accepted + 4);
}

/* An attempt is asked for as "<id> <lease>", and given back as "<id>" or by another's lock as "<id without uuid>:0". */
static void assert_given_back_and_not_asked_for(const char *id)
{
    const char *log = side_text(the_server->side, "SLOWLOG GET 100000");
    char asked[100], released[120], named[100];

    snprintf(asked, sizeof asked, "\n%s %d ", id, LONG_LEASE);
    snprintf(released, sizeof released, "\n%s\n0\ndmutex:inbox:", id);
    snprintf(named, sizeof named, "\n%s:0\n", strchr(id, ':') + 1);
    assert_null(strstr(log, asked));
    assert_true(strstr(log, released) || strstr(log, named));
}

/*
 * I4: granted by a message while the waiter's thread asks on a broken connection, and broken by force before the
 * connection is back. The thread first waits for the connection to learn the owner, and then finds the loss: a question
 * after the release would put the attempt into the queue again.
 */
static void test_lock_is_not_asked_for_again_when_it_was_lost_before_the_answer(void **state)
{
    char id[80];

    (void)state;
    make_both("net/twice", &kind_of[0]);
    assert_result(dmutex_lock(&mutex), 0);
    proxy_break(proxy, PROXY_SWALLOW_AND_CUT, PROXY_COMMANDS, "lock:twice", 1);
    proxy_refuse(proxy);
    actor_do(actor, "0", "start lock net/twice");
    wait_until(proxy_hits(proxy) == 1);
    await_refusals();
    wait_until(sscanf(first_waiter_at(the_server->side, "net/twice"), "%79s", id) == 1);
    assert_result(dmutex_unlock(&mutex), 0);
    wait_until(owns(id));
    assert_result(dmutex_forceunlock_np(&mutex), 0);
    assert_result(dmutex_lock(&mutex), 0);
    await_refusals();
    actor_send(actor, "lock net/twice"); /* the request names the holds that the process has given back */
    await_refusals();
    side_text(the_server->side, "CONFIG SET slowlog-max-len 100000 slowlog-log-slower-than 0");
    promise_within(AT_ONCE);
    proxy_pass(proxy);
    wait_until(waiters_of(&mutex) == 2 && !waits(id));
    assert_result(dmutex_unlock(&mutex), 0);
    actor_expect(actor, "0");
    actor_do(actor, "0", "unlock net/twice");
    actor_do(actor, "0", "join"); /* the hold ends with the thread */
    wait_until(!is_locked(&mutex));
    assert_kept();
    side_text(the_server->side, "CONFIG SET slowlog-log-slower-than -1");
    assert_given_back_and_not_asked_for(id);
}

/* ---- all together ------------------------------------------------------------------------ */

/* Connections that are cut anywhere, all the time, but not before any use: the count is exact and nothing is left. */
static void test_the_count_is_exact_when_connections_are_cut_all_the_time(void **state)
{
    struct actor *second = actor_start_at(proxy_url(proxy));
    char file[64];

    (void)state;
    snprintf(file, sizeof file, "%s/count", the_server->folder);
    make_normal(&mutex, "net/count", 0);
    actor_begin_count(file);
    actor_send(actor, "count %s %d net/count 2", file, repetitions(100));
    actor_send(second, "count %s %d net/count 2", file, repetitions(100));
    storm_while_counting(proxy, actor, second, file);
    actor_expect(actor, "0");
    actor_expect(second, "0");
    assert_int_equal(actor_counted(file), 4 * repetitions(100));
    wait_until(!is_locked(&mutex));
    actor_end(second);
    assert_nothing_lost();
}

#define NET_TEST(test) cmocka_unit_test_setup_teardown(test, begin_test, end_test)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        NET_TEST(test_lock_owns_once_when_its_command_or_reply_is_lost),
        NET_TEST(test_lock_waits_once_when_its_command_or_reply_is_lost),
        NET_TEST(test_trylock_leaves_nothing_when_its_command_or_reply_is_lost),
        NET_TEST(test_lock_leaves_nothing_when_it_is_refused_after_a_lost_reply),
        NET_TEST(test_unlock_releases_once_when_its_command_or_reply_is_lost),
        NET_TEST(test_lock_owns_again_when_the_unlock_before_got_lost),
        NET_TEST(test_unlock_releases_when_the_server_has_forgotten_the_scripts),
        NET_TEST(test_unlock_releases_later_when_there_is_no_network),
        NET_TEST(test_timedlock_ends_at_its_deadline_when_there_is_no_network),
        NET_TEST(test_timedlock_leaves_the_queue_when_the_network_goes_while_it_waits),
        NET_TEST(test_trylock_says_enolck_when_there_is_no_network),
        NET_TEST(test_lock_owns_when_the_network_is_back),
        NET_TEST(test_a_near_deadline_is_kept_when_the_server_has_never_answered),
        NET_TEST(test_no_lock_comes_back_when_old_bytes_arrive_late),
        NET_TEST(test_lock_is_not_asked_for_again_when_it_was_lost_before_the_answer),
        NET_TEST(test_the_count_is_exact_when_connections_are_cut_all_the_time),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

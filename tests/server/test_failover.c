/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The address leads to another server, and no connection ends: master and replica have swapped roles, or an operator
 * has redirected the address. A process's commands and inbox move there together, and a server's answers are believed
 * only while it is the server that was greeted.
 */
#include <string.h>

#include "../lib/testlib.h"

#define LONG_LEASE 60000 /* no poll and no renewal within the time of a test */
#define LEASE 10000

static struct server *first, *second;
static struct proxy *proxy;

static void follow(struct server *replica, const struct server *master)
{
    side_text(replica->side, "REPLICAOF 127.0.0.1 %d", master->port);
    wait_until(side_info_says(replica->side, "master_link_status:up"));
}

/* Two masters; the address leads to the first. */
static int begin_test(void **state)
{
    (void)state;
    first = server_start_with(true, "--repl-diskless-sync-delay", "0", NULL);
    second = server_start_with(true, "--repl-diskless-sync-delay", "0", NULL);
    proxy = proxy_start(first);
    return 0;
}

static int end_test(void **state)
{
    (void)state;
    proxy_end(proxy);
    server_end(first);
    server_end(second);
    return 0;
}

/* All data are there; open connections stay open. */
static void fail_over(struct server *from, struct server *to)
{
    side_text(from->side, "FAILOVER");
    wait_until(side_info_says(from->side, "role:slave") && side_info_says(to->side, "role:master"));
    wait_until(side_info_says(from->side, "master_link_status:up"));
    proxy_lead_new_to(proxy, to);
}

static int subscribers(const struct server *server)
{
    return side_count_channels(server->side);
}

/* Connections for commands, but for the test's own. */
static int clients(const struct server *server)
{
    const char *list = side_text(server->side, "CLIENT LIST TYPE normal");
    int lines = -1;

    for (const char *at = list; (at = strstr(at, "id=")); at++)
        lines += at == list || at[-1] == '\n';
    return lines;
}

static struct actor *start_at_address(const char *options)
{
    char url[160];
    const char *plain = proxy_url(proxy);

    snprintf(url, sizeof url, "%.*s%s", (int)strcspn(plain, "?"), plain, options);
    return actor_start_at(url);
}

static int64_t waiters_on(const struct server *server, const char *name)
{
    return waiters_at(server->side, name);
}

/* An actor that waits for `name`, which another actor holds; both at the address. */
static struct actor *start_waiter(const char *name, struct actor **ret_holder, const char *options)
{
    struct actor *holder = start_at_address(options), *waiter = start_at_address(options);

    actor_do(holder, "0", "init %s lease=%d", name, LONG_LEASE);
    actor_do(waiter, "0", "init %s lease=%d", name, LONG_LEASE);
    actor_do(holder, "0", "lock %s", name);
    actor_send(waiter, "lock %s", name);
    wait_until(waiters_on(first, name) == 1);
    *ret_holder = holder;
    return waiter;
}

/* ---- one server for both ----------------------------------------------------------------- */

/*
 * No process sends anything: the holder's lease is long, and the waiter's next poll is far away. But a waiter depends
 * on the server's messages, so the server is asked for its role each second.
 */
static void test_a_waiter_goes_along_when_the_server_fails_over_and_no_connection_ends(void **state)
{
    struct actor *holder, *waiter;

    (void)state;
    follow(second, first);
    waiter = start_waiter("fail/over", &holder, "?grace=off");
    fail_over(first, second);
    wait_until(subscribers(second) == 1 && subscribers(first) == 0);
    actor_do(holder, "0", "unlock fail/over");
    actor_expect(waiter, "0");
    fail_over(second, first); /* and back; both have been elsewhere */
    actor_do(waiter, "0", "unlock fail/over");
    actor_do(holder, "0", "lock fail/over");
    assert_int_equal(side_int(first->side, "EXISTS %s", key_of("lock", "fail/over")), 1);
    actor_end(waiter);
    actor_end(holder);
}

/* The same while a new server grants nothing: the holder comes along, and keeps the token. */
static void test_a_holder_and_a_waiter_go_along_when_the_server_gives_grace(void **state)
{
    struct actor *holder, *waiter;
    long long token;

    (void)state;
    server_make_old(first);
    follow(second, first);
    waiter = start_waiter("fail/grace", &holder, "");
    token = actor_value(holder, "token fail/grace");
    fail_over(first, second);
    wait_until(subscribers(second) == 1 && subscribers(first) == 0);
    wait_until(waiters_on(second, "fail/grace") == 1);
    actor_do(holder, "0", "renew fail/grace");
    assert_true(actor_value(holder, "token fail/grace") == token);
    assert_true(actor_is_silent(waiter));
    actor_kill(waiter);
    actor_end(waiter);
    actor_end(holder);
}

/* The address leads to another master: a reopened inbox takes the commands along. */
static void test_the_commands_follow_when_the_inbox_finds_another_server(void **state)
{
    struct actor *holder, *waiter;

    (void)state;
    waiter = start_waiter("fail/inbox", &holder, "?grace=off");
    actor_kill(holder);
    actor_end(holder);
    proxy_lead_new_to(proxy, second);
    side_text(first->side, "CLIENT KILL TYPE pubsub");
    wait_until(subscribers(second) == 1 && clients(second) == 1);
    wait_until(clients(first) == 0);
    actor_expect(waiter, "0"); /* the other server knows of no holder */
    actor_end(waiter);
}

/* And the other way round. */
static void test_the_inbox_follows_when_the_commands_find_another_server(void **state)
{
    struct actor *holder, *waiter;

    (void)state;
    waiter = start_waiter("fail/commands", &holder, "?grace=off");
    actor_kill(holder);
    actor_end(holder);
    proxy_lead_new_to(proxy, second);
    side_text(first->side, "CLIENT KILL TYPE normal SKIPME yes");
    wait_until(subscribers(second) == 1 && clients(second) == 1);
    wait_until(subscribers(first) == 0);
    actor_expect(waiter, "0");
    actor_end(waiter);
}

/* ---- there and back again ---------------------------------------------------------------- */

/*
 * The first is the master again, with the data of the second, which has lost a hold, as a lagging replica does. No
 * client has used the second.
 */
static void lose_hold_there_and_back(const char *name)
{
    follow(second, first);
    side_text(first->side, "REPLICAOF 127.0.0.1 %d", second->port);
    side_text(second->side, "REPLICAOF NO ONE");
    side_text(second->side, "DEL %s %s", key_of("lock", name), key_of("state", name));
    wait_until(side_info_says(first->side, "master_link_status:up")); /* the stream may still lag */
    wait_until(side_int(first->side, "EXISTS %s", key_of("lock", name)) == 0);
    side_text(second->side, "REPLICAOF 127.0.0.1 %d", first->port);
    side_text(first->side, "REPLICAOF NO ONE");
}

/* The run id is unchanged, and the server is another all the same. */
static void test_a_server_gives_grace_when_it_is_the_master_again(void **state)
{
    struct actor *owner = start_at_address(""), *other;

    (void)state;
    server_make_old(first);
    actor_do(owner, "0", "init fail/back lease=%d", LONG_LEASE);
    actor_do(owner, "0", "lock fail/back");
    lose_hold_there_and_back("fail/back");
    other = start_at_address("");
    actor_do(other, "0", "init fail/back lease=%d", LONG_LEASE);
    actor_do(other, "EBUSY", "trylock fail/back");
    assert_true(actor_value(owner, "remaining fail/back") > 0);
    actor_do(owner, "0", "renew fail/back");
    actor_do(owner, "0", "unlock fail/back");
    actor_end(other);
    actor_end(owner);
}

static bool is_past(const struct server *server, int64_t s)
{
    return side_int(server->side, "EVAL %s 0", "return tonumber(redis.call('TIME')[1])") > s;
}

static void let_a_second_pass(void)
{
    int64_t now_s = side_int(first->side, "EVAL %s 0", "return tonumber(redis.call('TIME')[1])");

    wait_until(is_past(first, now_s + 1));
}

/*
 * A client that is idle all that time, on a connection that stays. Its next request comes more than a second after its
 * last, and waits until the server has said that it is the same.
 */
static struct actor *start_idle(const char *name, struct actor *owner)
{
    struct actor *idle = start_at_address("");

    server_make_old(first);
    actor_do(idle, "0", "init %s lease=%d", name, LONG_LEASE);
    actor_do(idle, "0", "lock %s", name);
    actor_do(idle, "0", "unlock %s", name);
    actor_do(owner, "0", "init %s lease=%d", name, LONG_LEASE);
    actor_do(owner, "0", "lock %s", name);
    lose_hold_there_and_back(name);
    let_a_second_pass();
    return idle;
}

static void test_an_idle_client_does_not_own_when_its_server_is_the_master_again(void **state)
{
    struct actor *owner = start_at_address(""), *idle = start_idle("fail/idle", owner);

    (void)state;
    actor_do(idle, "EBUSY", "trylock fail/idle");
    assert_true(actor_value(owner, "remaining fail/idle") > 0);
    actor_end(idle);
    actor_end(owner);
}

static void test_an_idle_client_waits_for_the_grace_when_its_server_is_the_master_again(void **state)
{
    struct actor *owner = start_at_address(""), *idle = start_idle("fail/waits", owner);

    (void)state;
    actor_send(idle, "lock fail/waits");
    wait_until(waiters_on(first, "fail/waits") == 1);
    actor_do(owner, "0", "renew fail/waits");
    assert_true(actor_is_silent(idle));
    actor_kill(idle);
    actor_end(idle);
    actor_end(owner);
}

/*
 * A client is stopped with the server's answer in its socket, and continues when the server is the master again. The
 * answer is older than command_timeout: another check is needed, or a new connection.
 */
static void go_on_with_an_old_answer(const char *name, bool is_known)
{
    struct actor *owner = start_at_address(""), *asleep = start_at_address("?command_timeout=800");
    int64_t asked_ms;

    server_make_old(first);
    actor_do(asleep, "0", "init %s lease=%d", name, LONG_LEASE);
    if (is_known) {
        actor_do(asleep, "0", "lock %s", name);
        actor_do(asleep, "0", "unlock %s", name);
    }
    actor_do(owner, "0", "init %s lease=%d", name, LONG_LEASE);
    actor_do(owner, "0", "lock %s", name);
    let_a_second_pass();
    server_stop(first);
    actor_send(asleep, "lock %s", name);
    asked_ms = wait_now_ms();
    wait_until(wait_now_ms() > asked_ms + 200); /* the question is in the server's socket, or the test shows less */
    actor_stop(asleep);
    server_cont(first);
    lose_hold_there_and_back(name);
    wait_until(wait_now_ms() > asked_ms + 2000);
    actor_cont(asleep);
    wait_until(waiters_on(first, name) == 1);
    actor_do(owner, "0", "renew %s", name);
    assert_true(actor_is_silent(asleep));
    actor_kill(asleep);
    actor_end(asleep);
    actor_end(owner);
}

static void test_a_client_waits_for_the_grace_when_it_was_stopped_after_its_look(void **state)
{
    (void)state;
    go_on_with_an_old_answer("fail/look", true);
}

static void test_a_client_waits_for_the_grace_when_it_was_stopped_in_its_greeting(void **state)
{
    (void)state;
    go_on_with_an_old_answer("fail/greeting", false);
}

/*
 * The first replica makes a master draw a new id for the data, and the server stays the master: no grace, no client is
 * disturbed.
 */
static void test_a_server_gives_no_grace_when_its_first_replica_comes(void **state)
{
    struct actor *early = start_at_address(""), *late;

    (void)state;
    server_make_old(first);
    actor_do(early, "0", "init fail/first lease=%d", LONG_LEASE);
    actor_do(early, "0", "lock fail/first");
    follow(second, first);
    actor_do(early, "0", "unlock fail/first");
    late = start_at_address("");
    actor_do(late, "0", "init fail/first lease=%d", LONG_LEASE);
    actor_do(late, "0", "lock fail/first");
    actor_do(late, "0", "unlock fail/first");
    actor_end(late);
    actor_end(early);
}

#define FAILOVER_TEST(test) cmocka_unit_test_setup_teardown(test, begin_test, end_test)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        FAILOVER_TEST(test_a_waiter_goes_along_when_the_server_fails_over_and_no_connection_ends),
        FAILOVER_TEST(test_a_holder_and_a_waiter_go_along_when_the_server_gives_grace),
        FAILOVER_TEST(test_the_commands_follow_when_the_inbox_finds_another_server),
        FAILOVER_TEST(test_the_inbox_follows_when_the_commands_find_another_server),
        FAILOVER_TEST(test_a_server_gives_grace_when_it_is_the_master_again),
        FAILOVER_TEST(test_an_idle_client_does_not_own_when_its_server_is_the_master_again),
        FAILOVER_TEST(test_an_idle_client_waits_for_the_grace_when_its_server_is_the_master_again),
        FAILOVER_TEST(test_a_client_waits_for_the_grace_when_it_was_stopped_after_its_look),
        FAILOVER_TEST(test_a_client_waits_for_the_grace_when_it_was_stopped_in_its_greeting),
        FAILOVER_TEST(test_a_server_gives_no_grace_when_its_first_replica_comes),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

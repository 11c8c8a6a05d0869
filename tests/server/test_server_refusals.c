/* SPDX-License-Identifier: BSD-2-Clause */
/* A server that an operator must fix, and programs that are not servers: refused with a reason, and nothing held. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define LONG_LEASE 60000
#define AT_ONCE 8000

static dmutex_t mutex;

static pid_t impostor; /* listens in the server's place; 0: none */

static void end_impostor(void)
{
    kill(impostor, SIGKILL);
    keeper_reap(impostor);
    impostor = 0;
}

/* Removes the test's replacement of the server, also when the test has failed. */
static int mend_server(void **state)
{
    (void)state;
    if (impostor)
        end_impostor();
    if (!the_server->pid)
        server_restart(the_server);
    return 0;
}

/* ---- refusals ---------------------------------------------------------------------------- */

/* All ways to lock are refused, with these words in the sentence, and nothing is held. */
static void check_refused(struct actor *actor, const char *name, const char *words)
{
    static const char *const ways[] = {
        "lock", "trylock", "timedlock", "clocklock", "islocked", "health", "forceunlock"
    };

    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        promise_within(AT_ONCE); /* lock does not wait, and timedlock not for the deadline */
        actor_do(actor, "ENOLCK", "%s %s %d", ways[i], name, LONG_LEASE);
        assert_kept();
        actor_assert_words(actor, words);
    }
    assert_int_equal(actor_value(actor, "holdcount %s", name), 0);
}

/* A right that is taken away refuses each call at once, and costs no hold. */
static void test_calls_say_enolck_when_a_right_is_taken_away(void **state)
{
    struct server *server = server_start();
    struct actor *a = actor_start(server);

    (void)state;
    actor_do(a, "0", "init fault/held lease=%d", LONG_LEASE);
    actor_do(a, "0", "lock fault/held");
    actor_do(a, "0", "init fault/given lease=%d", LONG_LEASE);
    actor_do(a, "0", "lock fault/given");
    side_text(server->side, "ACL SETUSER default -eval -evalsha");
    check_refused(a, "fault/refused", "NOPERM");
    actor_do(a, "ENOLCK", "renew fault/held");
    actor_assert_words(a, "NOPERM");
    assert_true(actor_value(a, "remaining fault/held") > 0);
    actor_do(a, "0", "unlock fault/given");
    side_text(server->side, "ACL SETUSER default +eval +evalsha");
    assert_int_equal(side_int(server->side, "EXISTS %s", key_of("lock", "fault/refused")), 0);
    promise_within(AT_ONCE);
    actor_do(a, "0", "lock fault/given");
    assert_kept();
    actor_do(a, "0", "unlock fault/given");
    actor_do(a, "0", "renew fault/held");
    actor_do(a, "0", "unlock fault/held");
    actor_do(a, "0", "lock fault/refused");
    actor_do(a, "0", "unlock fault/refused");
    actor_end(a);
    check_keys(server->side);
    server_end(server);
}

/* A foreign key where one of ours should be is not changed; other names are not affected. */
static void test_calls_say_enolck_when_a_key_is_not_ours(void **state)
{
    static const char *const kinds_of_keys[] = { "lock", "state" };
    struct actor *a = actor_start(the_server);

    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *key = key_of(kinds_of_keys[i], "fault/foreign");

        side_text(the_server->side, "SET %s precious", key);
        check_refused(a, "fault/foreign", "foreign, or a key beside it, is not the library's");
        actor_do(a, "0", "lock fault/other");
        actor_do(a, "0", "unlock fault/other");
        assert_string_equal(side_text(the_server->side, "GET %s", key), "precious");
        side_text(the_server->side, "DEL %s", key);
        actor_do(a, "0", "lock fault/foreign");
        actor_do(a, "0", "unlock fault/foreign");
        wait_until(!side_count_keys(the_server->side, "*:lock:foreign"));
    }
    actor_end(a);
}

/* A hold whose key is suddenly foreign is lost and reported, and the name is not touched. */
static void test_a_hold_is_lost_when_its_key_is_not_ours(void **state)
{
    struct actor *a = actor_start(the_server);

    (void)state;
    actor_do(a, "0", "init fault/taken lease=600");
    actor_do(a, "0", "lock fault/taken");
    side_text(the_server->side, "SET %s precious", key_of("lock", "fault/taken"));
    wait_until(actor_losses(a) == 1);
    actor_do(a, "EPERM", "unlock fault/taken");
    side_text(the_server->side, "DEL %s", key_of("lock", "fault/taken"));
    actor_do(a, "0", "lock fault/taken");
    actor_do(a, "0", "unlock fault/taken");
    actor_end(a);
}

/* A key in the way of 0.1.0's probe hinders no client: each client uses its own keys. */
static void test_lock_is_acquired_when_a_key_of_the_probe_is_not_ours(void **state)
{
    struct server *server = server_start();
    struct actor *a;

    (void)state;
    side_text(server->side, "SET dmutex:{probe}:state x");
    side_text(server->side, "SET dmutex:{probe}:queue x");
    a = actor_start(server);
    actor_do(a, "0", "trylock fault/probe");
    actor_do(a, "0", "unlock fault/probe");
    actor_end(a);
    assert_int_equal(side_count_keys(server->side, "*probe.*"), 0);
    server_end(server);
}

/* The mark has the same name for all; a sentence names the key that is in the way, and the remedy. */
static void test_calls_name_the_key_when_the_mark_is_not_ours(void **state)
{
    struct server *server = server_start();
    struct actor *a;
    char url[160];

    (void)state;
    side_text(server->side, "SET dmutex:server x");
    snprintf(url, sizeof url, "DMUTEX_URL=unix://%s?command_timeout=300", server->path);
    a = actor_start_with(server, url, NULL);
    actor_do(a, "ENOLCK", "trylock fault/mark");
    actor_assert_words(a, "the key dmutex:server is not the library's");
    actor_end(a);
    server_end(server);
}

/* R7: a server without room says so before it reads anything; this is no answer to the password. */
static void test_calls_name_maxclients_when_the_server_has_no_room(void **state)
{
    struct server *server = server_start_with(true, NULL);
    const char *const begins[] = { "unix://:opensesame@", "redis://:opensesame@127.0.0.1:" };

    (void)state;
    assert_string_equal(side_text(server->side, "CONFIG SET requirepass opensesame maxclients 1"), "OK");
    for (int i = 0; i < 2; i++) {
        char url[200], port[8];
        struct actor *a;

        snprintf(port, sizeof port, "%d", server->port);
        snprintf(url, sizeof url, "DMUTEX_URL=%s%s?grace=off&command_timeout=300", begins[i], i ? port : server->path);
        a = actor_start_with(server, url, NULL);
        actor_do(a, "ENOLCK", "trylock fault/room");
        actor_assert_words(a, "has as many clients as its maxclients allows");
        actor_end(a);
    }
    server_end(server);
}

/* A wrong password is reported, but not in plain text, and a lock waits until the password is right. */
static void test_lock_waits_when_the_password_is_wrong(void **state)
{
    struct server *server = server_start();
    struct actor *waiter, *asker, *failing;
    char url[160];

    (void)state;
    snprintf(url, sizeof url, "DMUTEX_URL=unix://:opensesame@%s?grace=off&command_timeout=300", server->path);
    side_text(server->side, "CONFIG SET requirepass othersecret");
    waiter = actor_start_with(server, url, NULL);
    asker = actor_start_with(server, url, NULL);
    failing = actor_start_with(server, url, "DMUTEX_ONDOWN=fail", NULL);
    actor_send(waiter, "lock fault/password");
    actor_do(asker, "ENOLCK", "trylock fault/password");
    actor_assert_words(asker, "password or user is refused: WRONGPASS");
    actor_send(asker, "strerror");
    assert_null(strstr(actor_answer(asker), "opensesame"));
    actor_do(asker, "ETIMEDOUT", "timedlock fault/password 50");
    actor_assert_words(asker, "WRONGPASS");
    actor_do(failing, "ENOLCK", "lock fault/password");
    actor_assert_words(failing, "WRONGPASS");
    assert_true(actor_is_silent(waiter));
    side_text(server->side, "CONFIG SET requirepass opensesame");
    promise_within(AT_ONCE);
    actor_expect(waiter, "0");
    assert_kept();
    actor_do(waiter, "0", "unlock fault/password");
    actor_end(waiter);
    actor_end(asker);
    actor_end(failing);
    server_end(server);
}

/*
 * A server that does not know AUTH quotes the arguments in the answer: the password is in no sentence and no line of
 * the log.
 */
static void test_the_password_is_hidden_when_the_server_quotes_it(void **state)
{
    struct server *server = server_start_with(false, "--rename-command", "AUTH", "", NULL);
    struct actor *a;
    char url[160], log[160];

    (void)state;
    assert_false(side_try(server->side, "AUTH me opensesame"));
    assert_non_null(strstr(side_error(server->side), "opensesame")); /* the server does quote the arguments */
    snprintf(url, sizeof url, "DMUTEX_URL=unix://me:opensesame@%s?grace=off&command_timeout=300", server->path);
    snprintf(log, sizeof log, "DMUTEX_LOG=debug:%s/quoted", server->folder);
    a = actor_start_with(server, url, log, NULL);
    actor_do(a, "ENOLCK", "trylock fault/quoted");
    actor_assert_words(a, "password or user is refused: ERR");
    actor_send(a, "strerror");
    assert_null(strstr(actor_answer(a), "opensesame"));
    command_run("grep refused %s/quoted && ! grep opensesame %s/quoted", server->folder, server->folder);
    assert_status(0);
    actor_end(a);
    server_end(server);
}

/* A node of a Cluster would serve some names, and send the library elsewhere for others; a sentinel serves none. */
static void test_lock_waits_when_the_server_is_of_another_topology(void **state)
{
    struct server *node;
    struct server *sentinel = server_start_by_file("", "--sentinel");
    struct actor *actor;
    char url[64], bus[16];

    (void)state;
    snprintf(bus, sizeof bus, "%d", server_free_port());
    node = server_start_with(true, "--cluster-enabled", "yes", "--cluster-port", bus, NULL);
    actor = actor_start(node);
    actor_do(actor, "ETIMEDOUT", "timedlock r/cluster 300");
    actor_assert_words(actor, "the server is a node of a Cluster: write redis+cluster:// instead of redis://");
    actor_end(actor);
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", sentinel->port);
    actor = actor_start_at(url);
    actor_do(actor, "ETIMEDOUT", "timedlock r/sentinel 300");
    actor_assert_words(actor, "(ROLE says sentinel): sentinels are named by redis+sentinel://host1,host2/master-name");
    actor_end(actor);
    server_end(node);
    server_end(sentinel);
}

/* A database that does not exist is reported. */
static void test_lock_says_which_when_the_database_does_not_exist(void **state)
{
    char url[160];
    struct actor *a;

    (void)state;
    snprintf(url, sizeof url, "DMUTEX_URL=%s&command_timeout=300&db=99", the_server->url);
    a = actor_start_with(the_server, url, "DMUTEX_ONDOWN=fail", NULL);
    actor_do(a, "ENOLCK", "lock fault/db");
    actor_assert_words(a, "database cannot be selected");
    actor_do(a, "ENOLCK", "trylock fault/db");
    actor_do(a, "ETIMEDOUT", "timedlock fault/db 50");
    actor_assert_words(a, "database cannot be selected");
    actor_end(a);
    assert_string_equal(side_text(the_server->side, "KEYS *fault*:db"), "");
}

/* Names in another database are other mutexes; waiting works there as well. */
static void test_names_are_apart_when_the_databases_differ(void **state)
{
    struct actor *a, *b;
    char url[160];

    (void)state;
    snprintf(url, sizeof url, "%s&db=3", the_server->url);
    a = actor_start_at(url);
    b = actor_start_at(url);
    make_normal(&mutex, "fault/apart", LONG_LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    actor_do(a, "0", "init fault/apart lease=%d", LONG_LEASE);
    actor_do(a, "0", "lock fault/apart");
    actor_do(b, "EBUSY", "trylock fault/apart");
    actor_send(b, "lock fault/apart");
    side_text(the_server->side, "SELECT 3");
    wait_until(waiters_at(the_server->side, "fault/apart") == 1);
    side_text(the_server->side, "SELECT 0");
    assert_int_equal(waiters_of(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    wait_until(!is_locked(&mutex));
    assert_true(actor_is_silent(b));
    actor_do(a, "0", "unlock fault/apart");
    actor_expect(b, "0");
    assert_false(is_locked(&mutex));
    actor_do(b, "0", "unlock fault/apart");
    actor_end(a);
    actor_end(b);
}

/* ---- no server of ours: test_impostors.c has the many kinds ---------------------------------- */

/* A number instead of a script's answer is no success for any call, nor a broken lock. */
static void test_calls_say_enolck_when_scripts_answer_a_number(void **state)
{
    struct server *server =
        server_start_with(false, "--rename-command", "EVALSHA", "", "--rename-command", "TOUCH", "EVALSHA", NULL);
    struct actor *a = actor_start(server);

    (void)state;
    check_refused(a, "fault/number", "not one of ours");
    actor_do(a, "EPERM", "unlock fault/number");
    actor_end(a);
    assert_string_equal(side_keys(server->side), "");
    server_end(server);
}

/* A process that listens in a server's place and answers each connection once, with these bytes. */
static void begin_impostor(const struct server *server, const char *bytes, bool is_closing)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", server->path);
    unlink(server->path);
    assert_return_code(bind(listener, (struct sockaddr *)&address, sizeof address), errno);
    assert_return_code(listen(listener, 16), errno);
    impostor = keeper_fork();
    while (impostor == 0) {
        int connection = accept(listener, NULL, NULL);
        char asked[4096];

        if (read(connection, asked, sizeof asked) > 0)
            send(connection, bytes, strlen(bytes), MSG_NOSIGNAL);
        if (is_closing)
            close(connection);
    }
    close(listener);
}

/* A program that is no server, or a very strange server, is as none: a lock waits until there is a server. */
static void test_lock_waits_when_the_server_is_none(void **state)
{
    static const struct {
        const char *bytes;
        bool is_closing;
    } impostors[] = {
        { "HTTP/1.1 400 Bad Request\r\n\r\n", true },
        { "", false },
    };
    char url[160];

    (void)state;
    snprintf(url, sizeof url, "%s&command_timeout=200&connect_timeout=200", the_server->url);
    for (size_t i = 0; i < sizeof impostors / sizeof impostors[0]; i++) {
        struct actor *waiter = actor_start_at(url), *asker = actor_start_at(url);

        server_kill(the_server);
        begin_impostor(the_server, impostors[i].bytes, impostors[i].is_closing);
        actor_send(waiter, "lock fault/impostor");
        actor_do(asker, "ENOLCK", "trylock fault/impostor");
        actor_assert_words(asker, the_server->path);
        actor_do(asker, "ETIMEDOUT", "timedlock fault/impostor 100");
        actor_do(asker, "ENOLCK", "islocked fault/impostor");
        assert_true(actor_is_silent(waiter));
        end_impostor();
        server_restart(the_server);
        promise_within(AT_ONCE);
        actor_expect(waiter, "0");
        assert_kept();
        assert_int_equal(side_int(the_server->side, "EXISTS %s", key_of("lock", "fault/impostor")), 1);
        actor_do(waiter, "0", "unlock fault/impostor");
        actor_end(waiter);
        actor_end(asker);
    }
}

#define REFUSAL_TEST(test) cmocka_unit_test_teardown(test, mend_server)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        REFUSAL_TEST(test_calls_say_enolck_when_a_right_is_taken_away),
        REFUSAL_TEST(test_calls_say_enolck_when_a_key_is_not_ours),
        REFUSAL_TEST(test_a_hold_is_lost_when_its_key_is_not_ours),
        REFUSAL_TEST(test_lock_is_acquired_when_a_key_of_the_probe_is_not_ours),
        REFUSAL_TEST(test_calls_name_the_key_when_the_mark_is_not_ours),
        REFUSAL_TEST(test_calls_name_maxclients_when_the_server_has_no_room),
        REFUSAL_TEST(test_lock_waits_when_the_password_is_wrong),
        REFUSAL_TEST(test_the_password_is_hidden_when_the_server_quotes_it),
        REFUSAL_TEST(test_lock_waits_when_the_server_is_of_another_topology),
        REFUSAL_TEST(test_lock_says_which_when_the_database_does_not_exist),
        REFUSAL_TEST(test_names_are_apart_when_the_databases_differ),
        REFUSAL_TEST(test_calls_say_enolck_when_scripts_answer_a_number),
        REFUSAL_TEST(test_lock_waits_when_the_server_is_none),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

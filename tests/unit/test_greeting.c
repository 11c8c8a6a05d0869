/* SPDX-License-Identifier: BSD-2-Clause */
/* stores/redis/node/greeting: the commands on a new connection, and the servers that are not accepted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "link/reader.h"
#include "stores/redis/node/greeting.h"
#include "stores/redis/wire/reply.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define RUN_A "aaaaaaaaaaaaaaaa0000"
#define RUN_B "bbbbbbbbbbbbbbbb0000"
#define OK "+OK\r\n"
#define MASTER "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"

static struct dm_url *url;
static struct dm_greeting greeting;
static char reason[DM_REASON_ROOM];

static void begin(const char *text, const char *inbox)
{
    dm_url_free(url);
    url = dm_url_parse(text, reason);
    assert_non_null(url);
    greeting = (struct dm_greeting){ .url = url,
                                     .role = inbox ? DM_GREETS_FOR_INBOX : DM_GREETS_FOR_COMMANDS,
                                     .inbox = inbox };
    dm_greeting_begin(&greeting);
    reason[0] = '\0';
}

static int end(void **state)
{
    (void)state;
    dm_url_free(url);
    url = NULL;
    return 0;
}

/* Asserts that the round's commands contain these words, in order; "" ends the list. */
static void assert_round(const char *const *words)
{
    struct dm_command round = dm_greeting_round(&greeting);
    const char *at = round.bytes;

    for (; **words; words++) {
        at = at ? strstr(at, *words) : NULL;
        if (!at)
            fail_msg("\"%s\" is missing", *words);
    }
    free(round.bytes);
}

static bool take(const char *bytes)
{
    struct dm_reader reader;
    redisReply *reply;
    bool is_good;

    assert_true(dm_reader_begin(&reader));
    assert_true(dm_reader_feed(&reader, bytes, strlen(bytes)));
    assert_true(dm_reader_next(&reader, &reply));
    assert_non_null(reply);
    is_good = dm_greeting_take(&greeting, reply, reason);
    dm_reply_free(reply);
    dm_reader_end(&reader);
    return is_good;
}

static bool take_info(const char *run_id, const char *policy)
{
    char info[200], bytes[260];
    int length =
        snprintf(info, sizeof info, "# Server\r\nrun_id:%s\r\n# Memory\r\nmaxmemory_policy:%s\r\n", run_id, policy);

    snprintf(bytes, sizeof bytes, "$%d\r\n%s\r\n", length, info);
    return take(bytes);
}

/* Takes a whole first round for a connection for commands, without any error. */
static void greet(int id, const char *run_id)
{
    char bytes[32];
    struct dm_command round = dm_greeting_round(&greeting);

    free(round.bytes);
    snprintf(bytes, sizeof bytes, ":%d\r\n", id);
    assert_true(take(MASTER));
    assert_true(take(bytes));
    assert_true(take_info(run_id, "noeviction"));
    assert_true(take(":1000000\r\n"));
    assert_true(take(":900000\r\n"));
    assert_int_equal(greeting.step_count, 5); /* how many replies the link waits for */
    assert_int_equal(greeting.server.since_us, 900000);
}

/* Without a grace the greeting does not ask for the age: grace=off, or a local server that nobody was before. */
static void test_greeting_does_not_ask_since_when_where_there_is_no_grace(void **state)
{
    static const char *const urls[] = { "local:", "redis://h?grace=off" };

    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        struct dm_command round;

        begin(urls[i], NULL);
        round = dm_greeting_round(&greeting);
        assert_null(strstr(round.bytes, "dmutex:server"));
        free(round.bytes);
        assert_int_equal(greeting.server.since_us, 0);
    }
}

/* A server that does not reveal its age can be used, without grace. */
static void test_greeting_goes_on_without_grace_when_the_server_does_not_say(void **state)
{
    struct dm_command round;

    (void)state;
    begin("redis://h", NULL);
    round = dm_greeting_round(&greeting);
    free(round.bytes);
    assert_true(take(MASTER));
    assert_true(take(":1\r\n"));
    assert_true(take_info(RUN_A, "noeviction"));
    assert_true(take(":1000000\r\n"));
    assert_true(take(":0\r\n"));
    assert_int_equal(greeting.server.since_us, 0);
}

/* A connection for commands asks for role, connection number and INFO, probes the rights, and asks for the age. */
static void test_greeting_asks_for_role_and_rights_when_for_commands(void **state)
{
    (void)state;
    begin("redis://h", NULL);
    assert_round((const char *const[]){ "ROLE", "CLIENT", "ID", "INFO", "EVAL", "dmutex:{~probe.", "EVAL",
                                        "dmutex:server", "" });
}

/* The login comes first, and the database is selected before the scripts that need the database. */
static void test_greeting_logs_in_first_when_there_is_a_password(void **state)
{
    (void)state;
    begin("redis://me:s3cret@h/5?prefix=p", NULL);
    assert_round((const char *const[]){ "AUTH", "me", "s3cret", "ROLE", "SELECT", "5", "EVAL", "p:{~probe.", "" });
}

/* An inbox is subscribed on a master, and runs no script. */
static void test_greeting_subscribes_when_for_an_inbox(void **state)
{
    struct dm_command round;

    (void)state;
    begin("redis://:pw@h/5", "dmutex:inbox:x");
    round = dm_greeting_round(&greeting);
    assert_int_equal(greeting.step_count, 4);
    assert_non_null(strstr(round.bytes, "SUBSCRIBE"));
    assert_null(strstr(round.bytes, "EVAL"));
    free(round.bytes);
    assert_true(take(OK));
    assert_true(take(MASTER));
    assert_true(take_info(RUN_A, "noeviction"));
    assert_true(greeting.server.run == UINT64_C(0xaaaaaaaaaaaaaaaa));
    assert_true(take("*3\r\n$9\r\nsubscribe\r\n$14\r\ndmutex:inbox:x\r\n:1\r\n"));
}

/* The greeting of a first connection is one round, because there is no earlier connection to kill. */
static void test_greeting_is_over_after_a_round_when_it_is_the_first(void **state)
{
    (void)state;
    begin("redis://h", NULL);
    greet(11, RUN_A);
    assert_null(dm_greeting_round(&greeting).bytes);
    assert_int_equal(greeting.step_count, 0);
}

/* A connection that follows another connection to the same server first kills the earlier connection. */
static void test_greeting_kills_the_connection_before_when_it_follows_one(void **state)
{
    (void)state;
    begin("redis://h", NULL);
    greet(11, RUN_A);
    dm_greeting_begin(&greeting);
    greet(12, RUN_A);
    assert_round((const char *const[]){ "CLIENT", "KILL", "ID", "11", "" });
    assert_int_equal(greeting.step_count, 1);
    assert_true(take(":1\r\n"));
}

/* The kill is owed until the answer, over any number of broken connections. */
static void test_greeting_kills_the_oldest_when_the_kill_was_never_answered(void **state)
{
    (void)state;
    begin("redis://h", NULL);
    greet(11, RUN_A);
    dm_greeting_begin(&greeting);
    free(dm_greeting_round(&greeting).bytes);
    dm_greeting_begin(&greeting); /* broke before CLIENT ID was answered */
    greet(13, RUN_A);
    assert_round((const char *const[]){ "CLIENT", "KILL", "ID", "11", "" });
    dm_greeting_begin(&greeting); /* broke before CLIENT KILL was answered: 11 may still be heard */
    greet(14, RUN_A);
    assert_round((const char *const[]){ "CLIENT", "KILL", "ID", "11", "" });
}

/* On another server no connection is killed, because the number may belong to another client there. */
static void test_greeting_kills_nobody_when_the_server_is_another(void **state)
{
    (void)state;
    begin("redis://h", NULL);
    greet(11, RUN_A);
    dm_greeting_begin(&greeting);
    greet(12, RUN_B);
    assert_null(dm_greeting_round(&greeting).bytes);
}

/* Takes the replies of a first round in which INFO is not permitted. */
static void greet_without_info(int id)
{
    char bytes[32];

    free(dm_greeting_round(&greeting).bytes);
    snprintf(bytes, sizeof bytes, ":%d\r\n", id);
    assert_true(take(MASTER) && take(bytes));
    assert_true(take("-NOPERM no info\r\n"));
    assert_true(take(":1000000\r\n") && take(":0\r\n"));
}

/* Without run ids no connection is killed: the servers may be different, and the number another client's. */
static void test_greeting_kills_nobody_when_the_server_does_not_say_who_it_is(void **state)
{
    (void)state;
    begin("redis://h", NULL);
    greet_without_info(11);
    dm_greeting_begin(&greeting);
    greet_without_info(12);
    assert_null(dm_greeting_round(&greeting).bytes);
    assert_false(dm_server_is_same_run(&greeting.server, &greeting.server));
}

/* Writes the reply to INFO; the server was promoted if `second` is the earlier replication id. */
static void write_replication(const char *role, const char *run_id, const char *id, const char *second, char *ret_bytes)
{
    char info[300];
    int length =
        snprintf(info, sizeof info,
                 "# Server\r\nrun_id:%s\r\n# Replication\r\nrole:%s\r\nmaster_replid:%s\r\nmaster_replid2:%s\r\n",
                 run_id, role, id, second);

    snprintf(ret_bytes, 400, "$%d\r\n%s\r\n", length, info);
}

static enum dm_identified look_at(const char *bytes)
{
    struct dm_reader reader;
    redisReply *reply;
    enum dm_identified identified;

    assert_true(dm_reader_begin(&reader));
    assert_true(dm_reader_feed(&reader, bytes, strlen(bytes)));
    assert_true(dm_reader_next(&reader, &reply));
    identified = dm_greeting_take_identity(&greeting, reply, reason);
    dm_reply_free(reply);
    dm_reader_end(&reader);
    return identified;
}

#define ID_A "1111111111111111aaaa"
#define ID_B "2222222222222222aaaa"
#define NO_ID "00000000000000000000"

/* A master with another run id, or from another promotion, is another server; a master with a new replica is not. */
static void test_look_knows_the_server_when_it_is_what_it_was(void **state)
{
    char bytes[400];

    (void)state;
    begin("redis://h", NULL);
    free(dm_greeting_round(&greeting).bytes);
    assert_true(take(MASTER) && take(":11\r\n"));
    write_replication("master", RUN_A, ID_A, NO_ID, bytes);
    assert_true(take(bytes));
    assert_int_equal(look_at(bytes), DM_IDENTIFIED_SAME);
    write_replication("master", RUN_A, ID_B, NO_ID, bytes);
    assert_int_equal(look_at(bytes), DM_IDENTIFIED_SAME);
    write_replication("master", RUN_A, ID_B, ID_A, bytes);
    assert_int_equal(look_at(bytes), DM_IDENTIFIED_OTHER);
    write_replication("slave", RUN_A, ID_A, NO_ID, bytes);
    assert_int_equal(look_at(bytes), DM_IDENTIFIED_OTHER);
    assert_non_null(strstr(reason, "slave"));
    write_replication("master", RUN_B, ID_A, NO_ID, bytes);
    assert_int_equal(look_at(bytes), DM_IDENTIFIED_OTHER);
    assert_int_equal(look_at("-NOPERM no info\r\n"), DM_IDENTIFIED_OTHER);
    assert_int_equal(look_at(MASTER), DM_IDENTIFIED_OTHER);
    assert_int_equal(look_at("-BUSY Redis is busy running a script\r\n"), DM_IDENTIFIED_BUSY);
}

/* If INFO is not permitted, the check asks ROLE: a master is the same server, a replica or an error is not. */
static void test_look_asks_for_the_role_when_the_server_does_not_say_who_it_is(void **state)
{
    struct dm_command question;

    (void)state;
    begin("redis://h", NULL);
    greet_without_info(11);
    question = dm_greeting_identify(&greeting);
    assert_non_null(strstr(question.bytes, "ROLE"));
    dm_command_free(&question);
    assert_int_equal(look_at(MASTER), DM_IDENTIFIED_SAME);
    assert_int_equal(look_at("*1\r\n$5\r\nslave\r\n"), DM_IDENTIFIED_OTHER);
    assert_int_equal(look_at("-NOPERM no role\r\n"), DM_IDENTIFIED_OTHER);
}

/* A replica, a sentinel, an old server, or a peer that is no server at all, is refused. */
static void test_greeting_refuses_the_server_when_it_is_not_a_master(void **state)
{
    static const char *const roles[] = { "*1\r\n$5\r\nslave\r\n",
                                         "*1\r\n$8\r\nsentinel\r\n",
                                         "*0\r\n",
                                         "+master\r\n",
                                         ":1\r\n",
                                         "$-1\r\n",
                                         "*1\r\n$-1\r\n",
                                         "*1\r\n*0\r\n",
                                         "-ERR unknown command 'ROLE'\r\n",
                                         "-NOAUTH Authentication required.\r\n" };

    (void)state;
    for (size_t i = 0; i < COUNT(roles); i++) {
        begin("redis://h", NULL);
        free(dm_greeting_round(&greeting).bytes);
        assert_false(take(roles[i]));
        assert_non_null(strchr(reason, ' '));
    }
}

/* A person must correct the login or the rights; nobody else is told so. */
static void test_greeting_is_denied_when_login_or_rights_are_missing(void **state)
{
    static const struct {
        const char *url, *reply;
        bool is_denied;
    } replies[] = {
        { "redis://:secret@h", "-WRONGPASS invalid username-password pair\r\n", true },
        { "redis://:secret@h", "-ERR AUTH called without any password configured\r\n", true },
        { "redis://:secret@h", "-LOADING NOAUTH NOPERM\r\n", false },
        { "redis://:secret@h", "-ERR max number of clients reached\r\n", false },
        { "redis://h", "-NOAUTH Authentication required.\r\n", true },
        { "redis://h", "-NOPERM no role\r\n", true },
        { "redis://h", "-ERR NOPERM is a word of mine\r\n", false },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(replies); i++) {
        begin(replies[i].url, NULL);
        free(dm_greeting_round(&greeting).bytes);
        assert_false(take(replies[i].reply));
        assert_int_equal(greeting.is_denied, replies[i].is_denied);
    }
}

/* A server that may evict keys loses locks, and is refused without eviction=allow in the URL. */
static void test_greeting_refuses_the_server_when_it_may_evict(void **state)
{
    static const char *const policies[] = { "allkeys-lru", "volatile-lru", "volatile-ttl", "allkeys-random" };

    (void)state;
    for (size_t i = 0; i < COUNT(policies); i++) {
        begin("redis://h", NULL);
        free(dm_greeting_round(&greeting).bytes);
        assert_true(take(MASTER) && take(":11\r\n"));
        assert_false(take_info(RUN_A, policies[i]));
        assert_non_null(strstr(reason, "noeviction"));
        assert_non_null(strstr(reason, policies[i]));
        begin("redis://h?eviction=allow", NULL);
        free(dm_greeting_round(&greeting).bytes);
        assert_true(take(MASTER) && take(":11\r\n"));
        assert_true(take_info(RUN_A, policies[i]));
    }
}

/*
 * The version is reported before the scripts, which an old server cannot compile.  Redis 6 takes one section of INFO.
 */
static void test_greeting_refuses_the_server_when_it_is_too_old(void **state)
{
    static const char *const answers[] = { "-ERR syntax error\r\n", "$31\r\n# Server\r\nredis_version:6.2.5\r\n\r\n" };

    (void)state;
    for (size_t i = 0; i < COUNT(answers); i++) {
        begin("redis://h", NULL);
        free(dm_greeting_round(&greeting).bytes);
        assert_true(take(MASTER) && take(":11\r\n"));
        assert_false(take(answers[i]));
        assert_string_equal(reason, "the server is older than Redis 7.0: install Redis 7.0 or later, or Valkey");
    }
    begin("redis://h", NULL);
    free(dm_greeting_round(&greeting).bytes);
    assert_true(take(MASTER) && take(":11\r\n") && take("$32\r\n# Server\r\nredis_version:10.0.1\r\n\r\n"));
}

/* The greeting succeeds even if the server permits neither the connection's number nor INFO. */
static void test_greeting_goes_on_when_only_an_optional_command_is_refused(void **state)
{
    (void)state;
    begin("redis://h", NULL);
    free(dm_greeting_round(&greeting).bytes);
    assert_true(take(MASTER));
    assert_true(take("-NOPERM no client\r\n"));
    assert_true(take("-NOPERM no info\r\n"));
    assert_true(take(":1000000\r\n"));
    assert_null(dm_greeting_round(&greeting).bytes);
}

static void count_line(int level, const char *message, void *user)
{
    (void)message;
    *(int *)user += level == DMUTEX_LOG_WARN;
}

/* Greets a server that reveals its run id, but neither its age nor a connection number, and refuses CLIENT KILL. */
static void greet_in_vain(void)
{
    greeting.client_id = 11; /* as if CLIENT ID had been permitted */
    dm_greeting_begin(&greeting);
    free(dm_greeting_round(&greeting).bytes);
    assert_true(take(MASTER) && take("-NOPERM no client\r\n") && take_info(RUN_A, "noeviction"));
    assert_true(take(":1000000\r\n") && take("$-1\r\n"));
    assert_round((const char *const[]){ "CLIENT", "KILL", "ID", "11", "" });
    assert_true(take("-NOPERM no client\r\n"));
}

static void greet_a_nameless(void)
{
    dm_greeting_begin(&greeting);
    free(dm_greeting_round(&greeting).bytes);
    assert_true(take(MASTER) && take(":12\r\n") && take("-NOPERM no info\r\n"));
    assert_true(take(":1000000\r\n") && take(":900000\r\n"));
}

/* A command that is not permitted is a warning once, and not each time the connection comes back. */
static void test_greeting_warns_once_when_an_optional_command_is_refused_repeatedly(void **state)
{
    int warnings = 0;

    (void)state;
    dm_log_set(count_line, &warnings);
    begin("redis://h", NULL);
    greet(11, RUN_A);
    for (int i = 0; i < 3; i++)
        greet_in_vain();
    assert_int_equal(warnings, 3);
    for (int i = 0; i < 3; i++)
        greet_a_nameless();
    assert_int_equal(warnings, 4);
    dm_log_set(NULL, NULL);
}

/* Failure 24: a missing right refuses the server at once, and the reason names the command without the right. */
static void test_greeting_refuses_the_server_when_the_probe_fails(void **state)
{
    (void)state;
    begin("redis://h", NULL);
    free(dm_greeting_round(&greeting).bytes);
    assert_true(take(MASTER) && take(":11\r\n") && take_info(RUN_A, "noeviction"));
    assert_false(take("-NOPERM PUBLISH failed: NOPERM no channel\r\n"));
    assert_non_null(strstr(reason, "PUBLISH"));
}

/* A wrong password or database is named in the reason, and the password is never in the reason. */
static void test_greeting_says_why_when_the_login_is_refused(void **state)
{
    (void)state;
    begin("redis://me:s3cret@h/999", NULL);
    free(dm_greeting_round(&greeting).bytes);
    assert_false(take("-WRONGPASS invalid username-password pair\r\n"));
    assert_non_null(strstr(reason, "password"));
    assert_null(strstr(reason, "s3cret"));
    begin("redis://me:s3cret@h/999", NULL);
    free(dm_greeting_round(&greeting).bytes);
    assert_false(take("-ERR unknown command `AUTH`, with args beginning with: `me`, `s3cret`,\r\n"));
    assert_non_null(strstr(reason, "AUTH"));
    assert_null(strstr(reason, "s3cret"));
    begin("redis://me:s3cret@h/999", NULL);
    free(dm_greeting_round(&greeting).bytes);
    assert_false(take("-s3cret\r\n"));
    assert_null(strstr(reason, "s3cret"));
    begin("redis://me:s3cret@h/999", NULL);
    free(dm_greeting_round(&greeting).bytes);
    assert_false(take("-LOADING Redis is loading the dataset in memory\r\n"));
    assert_string_equal(reason, "the server is not ready: LOADING");
    begin("redis://h/999", NULL);
    free(dm_greeting_round(&greeting).bytes);
    assert_true(take(MASTER));
    assert_false(take("-ERR DB index is out of range\r\n"));
    assert_non_null(strstr(reason, "database"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greeting_asks_for_role_and_rights_when_for_commands),
        cmocka_unit_test(test_greeting_logs_in_first_when_there_is_a_password),
        cmocka_unit_test(test_greeting_does_not_ask_since_when_where_there_is_no_grace),
        cmocka_unit_test(test_greeting_goes_on_without_grace_when_the_server_does_not_say),
        cmocka_unit_test(test_greeting_subscribes_when_for_an_inbox),
        cmocka_unit_test(test_greeting_is_over_after_a_round_when_it_is_the_first),
        cmocka_unit_test(test_greeting_kills_the_connection_before_when_it_follows_one),
        cmocka_unit_test(test_greeting_kills_the_oldest_when_the_kill_was_never_answered),
        cmocka_unit_test(test_greeting_kills_nobody_when_the_server_is_another),
        cmocka_unit_test(test_greeting_kills_nobody_when_the_server_does_not_say_who_it_is),
        cmocka_unit_test(test_look_knows_the_server_when_it_is_what_it_was),
        cmocka_unit_test(test_look_asks_for_the_role_when_the_server_does_not_say_who_it_is),
        cmocka_unit_test(test_greeting_refuses_the_server_when_it_is_not_a_master),
        cmocka_unit_test(test_greeting_is_denied_when_login_or_rights_are_missing),
        cmocka_unit_test(test_greeting_refuses_the_server_when_it_may_evict),
        cmocka_unit_test(test_greeting_refuses_the_server_when_it_is_too_old),
        cmocka_unit_test(test_greeting_goes_on_when_only_an_optional_command_is_refused),
        cmocka_unit_test(test_greeting_warns_once_when_an_optional_command_is_refused_repeatedly),
        cmocka_unit_test(test_greeting_refuses_the_server_when_the_probe_fails),
        cmocka_unit_test(test_greeting_says_why_when_the_login_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, end);
}

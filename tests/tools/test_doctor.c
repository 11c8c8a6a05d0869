/* SPDX-License-Identifier: BSD-2-Clause */
/* dmutex doctor and dmutex acl: every fault of a server, a user or the network is named, and nothing else is. */
#include "tool.h"

#include "../lib/impostor.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const needed[] = {
    "+eval", "+evalsha", "+subscribe", "+publish", "+pubsub|numsub", "+role",   "+info",  "+client|id", "+client|kill",
    "+time", "+del",     "+exists",    "+pexpire", "+pttl",          "+hset",   "+hget",  "+hmget",     "+hlen",
    "+hdel", "+zadd",    "+zrem",      "+zrange",  "+zrank",         "+zscore", "+zcard",
};

#define NEEDED (sizeof needed / sizeof needed[0])

static const char *url_options = "";

/* Runs doctor as a user with the rights that `dmutex acl` prints, with these options and these changes. */
static void examine_as(const char *options, const char *changes)
{
    char line[2000];

    command_run("exec $dmutex acl %s app", options);
    assert_status(0);
    assert_int_equal(strncmp(ran.output, "ACL SETUSER app on >PASSWORD ", 29), 0);
    snprintf(line, sizeof line, "ACL SETUSER app reset on >secret %.*s %s", (int)strcspn(ran.output + 29, "\n"),
             ran.output + 29, changes);
    side_text(the_server->side, line);
    command_run("DMUTEX_URL='unix://app:secret@%s%s' exec $dmutex doctor", the_server->path, url_options);
}

static bool says_fail(void)
{
    return strncmp(ran.output, "fail ", 5) == 0 || strstr(ran.output, "\nfail ");
}

/* ---- rights ------------------------------------------------------------------------------ */

/* One table in the program, one line in each of the two pages. */
static void test_acl_prints_the_documented_line_when_asked(void **state)
{
    (void)state;
    command_run("sed -n '/ACL SETUSER app/,/zcard/p' \"$srcdir/doc/guide/servers.md\" | xargs >$F/page; "
                "$dmutex acl | sed 's/>PASSWORD/>secret/' >$F/printed; diff $F/page $F/printed");
    assert_status(0);
    command_run("test -s $F/page");
    assert_status(0);
}

static void test_acl_goes_by_the_url_when_a_server_is_configured(void **state)
{
    (void)state;
    command_run("DMUTEX_URL='redis://h/3?prefix=pp' exec $dmutex acl bob");
    assert_status(0);
    assert_output("ACL SETUSER bob on >PASSWORD resetkeys ~pp:* resetchannels &pp:inbox:* -@all +eval ");
    assert_output(" +select\n");
    assert_errors("ACL SAVE");
    assert_errors(": append resetdbs db=3, ");
    command_run("DMUTEX_URL='redis://h?wait=1' exec $dmutex acl");
    assert_output(" +wait ");
    command_run("DMUTEX_URL='redis://h/3' exec $dmutex acl --json");
    tool_check_json();
    assert_output("\"+zcard\",\"+select\"],\"database\":3}");
    command_run("unset DMUTEX_URL; exec $dmutex acl --ops");
    assert_status(0);
    assert_output(" +scan +pubsub|numpat +config|get\n");
    command_run("exec $dmutex acl --json 'a'");
    tool_check_json();
    command_run("exec $dmutex acl 'a b'");
    assert_status(64);
}

/* In a Cluster, messages use the channels of slots: other commands, and another pattern.  Nothing else differs. */
static void test_acl_prints_other_rights_for_messages_when_the_url_is_of_a_cluster(void **state)
{
    (void)state;
    command_run("DMUTEX_URL='redis+cluster://a,b?prefix=pp' exec $dmutex acl bob");
    assert_status(0);
    assert_output("ACL SETUSER bob on >PASSWORD resetkeys ~pp:* resetchannels &pp:{*}:inbox:* -@all +eval +evalsha "
                  "+ssubscribe +sunsubscribe +spublish +pubsub|shardnumsub +asking +cluster|slots +role ");
    command_run("for url in redis://a redis+cluster://a; do DMUTEX_URL=$url $dmutex acl --ops; done | tr ' ' '\\n' | "
                "grep -vE '^[&+](cluster|asking|(s?un)?s?subscribe|s?publish|pubsub|dmutex)' | sort | uniq -u");
    assert_status(0);
    assert_string_equal(ran.output, "");
    command_run("DMUTEX_URL=redis+cluster://a exec $dmutex acl --json");
    tool_check_json();
    assert_output("\"channels\":\"dmutex:{*}:inbox:*\",\"rights\":[\"+eval\",\"+evalsha\",\"+ssubscribe\",");
}

/* With the least rights nothing is missing.  If one right is taken away, doctor names this right, and no other. */
static void test_doctor_names_each_right_when_it_is_missing(void **state)
{
    char changes[60], words[80];

    (void)state;
    examine_as("", "");
    assert_status(0);
    assert_output("ok    rights       all that locks need\n");
    assert_output("for looking at locks the user lacks +scan, +pubsub|numpat, +config|get");
    for (size_t i = 0; i < NEEDED; i++) {
        snprintf(changes, sizeof changes, "-%s", needed[i] + 1);
        examine_as("", changes);
        assert_status(1);
        snprintf(words, sizeof words, " lacks %s\n", needed[i]);
        assert_output(words);
        assert_null(strstr(ran.output, "all that locks need"));
        assert_output("P0    no ");
    }
    examine_as("--ops", "");
    assert_status(0);
    assert_null(strstr(ran.output, " lacks "));
    assert_null(strstr(ran.output, "needs +"));
}

/* Without the option wait no program waits for replicas. */
static void test_doctor_names_the_right_to_wait_when_the_url_has_the_option(void **state)
{
    (void)state;
    examine_as("", "-wait");
    assert_status(0);
    url_options = "?wait=1";
    examine_as("", "-wait");
    url_options = "";
    assert_status(1);
    assert_output(" lacks +wait\n");
}

/* Keys and channels that doctor tries begin with the whole prefix, even with the longest, 64 letters. */
static void test_doctor_misses_nothing_when_the_prefix_is_long(void **state)
{
    char prefix[65], line[2000];

    (void)state;
    memset(prefix, 'p', 64);
    prefix[64] = '\0';
    command_run("DMUTEX_URL='redis://h?prefix=%s' exec $dmutex acl app", prefix);
    assert_status(0);
    snprintf(line, sizeof line, "ACL SETUSER app reset on >secret %.*s", (int)strcspn(ran.output + 29, "\n"),
             ran.output + 29);
    side_text(the_server->side, line);
    command_run("DMUTEX_URL='unix://app:secret@%s?prefix=%s' exec $dmutex doctor", the_server->path, prefix);
    assert_status(0);
    assert_output("ok    rights       all that locks need\n");
    assert_output("ok    messages ");
    assert_output("ok    grace ");
}

static void test_doctor_names_the_patterns_when_keys_or_channels_are_missing(void **state)
{
    (void)state;
    examine_as("", "resetkeys ~other:*");
    assert_status(1);
    assert_output("fail  rights       the user lacks ~dmutex:*, the keys of the prefix\n");
    examine_as("", "resetchannels &other:*");
    assert_status(1);
    assert_output("the user lacks &dmutex:inbox:*, the channels of the prefix\n");
    assert_null(strstr(strstr(ran.output, "the user lacks &") + 1, "the user lacks &"));
}

/* ---- the server -------------------------------------------------------------------------- */

static void test_doctor_finds_no_fault_when_there_is_none(void **state)
{
    static const char *const checks[] = { "server",     "version", "role",     "memory",   "persistence",
                                          "replicas",   "rights",  "messages", "patterns", "clock",
                                          "round trip", "grace",   "library" };

    (void)state;
    command_run("DMUTEX_URL='unix://%s' exec $dmutex doctor", the_server->path);
    assert_status(0);
    assert_false(says_fail());
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        assert_output(checks[i]);
    assert_output("P0    yes ");
    assert_output("P2    not known ");
    assert_output("P3    yes ");
    assert_output("P4    no ");
    command_run("exec $dmutex doctor --json");
    assert_status(0);
    tool_check_json();
    assert_output("{\"result\":\"");
    assert_output("\"promises\":{\"P0\":true,\"P1\":true,\"P2\":null,\"P3\":false,\"P4\":false}}");
}

/* Looking changes nothing. */
static void test_doctor_leaves_nothing_on_the_server(void **state)
{
    int channels = side_count_channels(the_server->side);
    char before[COMMAND_ROOM];

    (void)state;
    snprintf(before, sizeof before, "%s", side_keys(the_server->side));
    command_run("exec $dmutex doctor");
    assert_status(0);
    assert_string_equal(side_keys(the_server->side), before);
    examine_as("", "-hdel");
    assert_status(1);
    assert_string_equal(side_keys(the_server->side), before);
    wait_until(side_count_channels(the_server->side) == channels);
}

static void test_doctor_says_why_when_the_server_cannot_be_reached(void **state)
{
    (void)state;
    command_run("DMUTEX_URL='unix://'$F'/nobody?connect_timeout=50&command_timeout=50' exec $dmutex doctor");
    assert_status(69);
    assert_output("fail  server       ");
    assert_output("/nobody");
    command_run("DMUTEX_URL='unix://app:s3cret@%s?command_timeout=300' exec $dmutex doctor --json", the_server->path);
    assert_status(77);
    tool_check_json();
    assert_output("\"check\":\"login\",\"result\":\"fail\"");
    assert_output("the password or user is refused");
    assert_output("correct user and password");
    assert_null(strstr(ran.output, "s3cret"));
    server_stop(the_server);
    command_run("DMUTEX_URL=\"$DMUTEX_URL&connect_timeout=200&command_timeout=200\" exec $dmutex doctor");
    server_cont(the_server);
    assert_status(69);
    assert_true(says_fail());
    command_run("unset DMUTEX_URL; exec $dmutex doctor");
    assert_status(78);
}

static void test_doctor_fails_when_the_server_may_evict(void **state)
{
    (void)state;
    side_text(the_server->side, "CONFIG SET maxmemory-policy allkeys-lru");
    command_run("exec $dmutex doctor");
    assert_status(1);
    assert_output("fail  memory       maxmemory-policy is allkeys-lru");
    assert_output("-> set maxmemory-policy noeviction");
    assert_output("P0    no ");
    command_run("DMUTEX_URL=\"$DMUTEX_URL&eviction=allow\" exec $dmutex doctor");
    assert_status(0);
    assert_output("warn  memory ");
    assert_output("P0    no ");
    side_text(the_server->side, "CONFIG SET maxmemory-policy noeviction");
}

/* Runs doctor on a server whose maxmemory is this percentage of the memory in use. */
static void examine_with_memory(int percent)
{
    long long used = (long long)side_int(the_server->side, "EVAL %s 0",
                                         "return tonumber(redis.call('INFO', 'memory'):match('used_memory:(%d+)'))");

    side_text(the_server->side, "CONFIG SET maxmemory %lld", used * percent / 100);
    command_run("exec $dmutex doctor");
    side_text(the_server->side, "CONFIG SET maxmemory 0");
}

static void test_doctor_warns_when_memory_is_short(void **state)
{
    (void)state;
    examine_with_memory(105);
    assert_status(0);
    assert_output("warn  memory ");
    assert_output("of maxmemory are used; beyond 100 % no lock can be acquired\n");
}

/* No lock can be acquired now: status 1. */
static void test_doctor_fails_when_there_is_no_memory(void **state)
{
    (void)state;
    examine_with_memory(50);
    assert_status(1);
    assert_output("fail  memory ");
    assert_output("of maxmemory are used: no lock can be acquired\n");
    assert_output("-> raise maxmemory");
}

/* INFO does not show that there are too few replicas. */
static void test_doctor_fails_when_the_server_refuses_to_write(void **state)
{
    (void)state;
    side_text(the_server->side, "CONFIG SET min-replicas-to-write 1");
    command_run("exec $dmutex doctor");
    side_text(the_server->side, "CONFIG SET min-replicas-to-write 0");
    assert_status(1);
    assert_output("fail  writes       the server refuses to write, so no lock can be acquired: NOREPLICAS ");
    assert_output("-> remove the reason: with min-replicas-to-write");
}

static void test_doctor_says_that_power_failures_are_survived_when_each_write_is_synced(void **state)
{
    (void)state;
    side_text(the_server->side, "CONFIG SET appendonly yes appendfsync everysec");
    command_run("exec $dmutex doctor");
    assert_output("appendonly is yes, appendfsync is everysec");
    assert_output("P4    no ");
    side_text(the_server->side, "CONFIG SET appendfsync always");
    command_run("exec $dmutex doctor");
    assert_output("P4    yes ");
    examine_as("", "");
    assert_output("P4    not known ");
    side_text(the_server->side, "CONFIG SET appendonly no");
}

static void test_doctor_fails_when_the_server_is_a_replica(void **state)
{
    struct server *server = server_start();

    (void)state;
    side_text(server->side, "REPLICAOF 127.0.0.1 1");
    command_run("DMUTEX_URL='%s' exec $dmutex doctor", server->url);
    assert_status(1);
    assert_output("fail  role         the server is a replica of 127.0.0.1\n");
    assert_output("P0    no ");
    server_end(server);
}

static void test_doctor_reports_the_end_of_the_grace_when_a_server_is_new(void **state)
{
    struct server *server = server_start();

    (void)state;
    command_run("DMUTEX_URL='unix://%s' exec $dmutex doctor", server->path);
    assert_output("ok    grace        no program has used this server yet");
    command_run("DMUTEX_URL='unix://%s' exec $dmutex token t/x", server->path);
    assert_status(0);
    side_text(server->side, "HSET dmutex:server since %lld",
              (long long)side_int(server->side, "EVAL %s 0", "return redis.call('TIME')[1] * 1000000"));
    command_run("DMUTEX_URL='unix://%s' exec $dmutex doctor", server->path);
    assert_status(0);
    assert_output("warn  grace        the server has just started: a lease of 10 s is granted in ");
    command_run("DMUTEX_URL='unix://%s?grace=off' exec $dmutex doctor", server->path);
    assert_output("warn  grace        grace is off");
    assert_output("P3    no ");
    server_end(server);
}

/* ---- refusals ---------------------------------------------------------------------------- */

/* A server that wants a password answers every command with NOAUTH, which is not a missing right. */
static void test_doctor_asks_for_a_login_when_the_url_has_none(void **state)
{
    struct server *server = server_start();

    (void)state;
    side_text(server->side, "CONFIG SET requirepass s3cret");
    command_run("DMUTEX_URL='unix://%s?command_timeout=5000' exec $dmutex doctor", server->path);
    assert_status(77);
    assert_output("fail  login        ");
    assert_output("/s: the server wants a password, and the URL has none\n");
    assert_output("-> write redis://USER:PASSWORD@HOST; or keep the password in a file");
    assert_null(strstr(ran.output, "+info"));
    assert_null(strstr(ran.output, "P0 "));
    side_text(server->side, "ACL SETUSER default -ping");
    command_run("DMUTEX_URL='unix://:s3cret@%s' exec $dmutex doctor", server->path);
    assert_status(0);
    side_text(server->side, "ACL SETUSER default +ping");
    server_end(server);
}

/* The first answer of a full server says nothing about a password. */
static void test_doctor_blames_no_login_when_the_server_is_full(void **state)
{
    static const char *const logins[] = { "", "app:secret@" };
    struct server *server = server_start_with(true, "--maxclients", "1", NULL); /* its one client is the test */

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        command_run("DMUTEX_URL='redis://%s127.0.0.1:%d?command_timeout=2000' exec $dmutex doctor", logins[i],
                    server->port);
        assert_status(69);
        assert_output("fail  server       ");
        assert_output("max number of clients reached");
    }
    server_end(server);
}

/* A missing +select is a missing right like the others, not a wrong password. */
static void test_doctor_reports_the_database_when_it_cannot_be_selected(void **state)
{
    (void)state;
    url_options = "?db=2&command_timeout=1000";
    examine_as("", "");
    url_options = "";
    assert_status(1);
    assert_output("fail  rights       the user lacks +select, and the URL names database 2\n");
    assert_output("-> ACL SETUSER with the line that dmutex acl prints, then ACL SAVE or CONFIG REWRITE\n");
    command_run("DMUTEX_URL=\"$DMUTEX_URL&db=9999&command_timeout=1000\" exec $dmutex doctor");
    assert_status(1);
    assert_output("fail  database     database 9999 cannot be selected: ERR ");
    assert_output("-> name another database in the URL");
}

/* Runs doctor against the impostor. */
static void examine_impostor(const char *options)
{
    command_run("DMUTEX_URL='unix://%s?command_timeout=5000%s' exec $dmutex doctor", impostor_path(), options);
}

#define NO_DATABASE "-NOPERM No permissions to access database\r\n" /* as Valkey 9.1 says */

/*
 * Valkey 9.1 grants rights by database.  Without them every command with a key is refused, but no command is missing.
 */
static void test_doctor_names_the_database_when_the_user_has_no_right_to_it(void **state)
{
    (void)state;
    impostor_begin(the_server->folder);
    impostor_be(MANNER_LYING, NO_DATABASE, sizeof NO_DATABASE - 1);
    impostor_answer("PING", "+PONG\r\n");
    impostor_answer("INFO", "$44\r\n# Server\r\nredis_version:7.2.4\r\nrole:master\r\n\r\n");
    impostor_answer("PUBLISH", ":0\r\n");
    examine_impostor("");
    assert_status(1);
    assert_output("fail  rights       the user may not use database 0\n");
    assert_output("-> ACL SETUSER USER db=0, then ACL SAVE");
    assert_null(strstr(ran.output, "the user lacks +e"));
    assert_output("P0    no ");
    impostor_answer("SELECT", NO_DATABASE);
    examine_impostor("&db=2");
    impostor_end();
    assert_status(1);
    assert_output("fail  rights       the user may not use database 2\n");
}

static void test_doctor_promises_nothing_when_the_server_is_too_old(void **state)
{
    (void)state;
    impostor_begin(the_server->folder);
    impostor_be(MANNER_LYING, "+OK\r\n", 5);
    impostor_answer("PING", "+PONG\r\n");
    impostor_answer("INFO", "$44\r\n# Server\r\nredis_version:6.2.5\r\nrole:master\r\n\r\n");
    examine_impostor("");
    impostor_end();
    assert_status(1);
    assert_output("fail  version      Redis 6.2.5 is too old: no lock can be acquired\n");
    assert_output("-> install Redis 7.0 or later, or Valkey\n");
    assert_null(strstr(ran.output, "rights"));
    for (int i = 0; i < 5; i++) {
        char words[20];

        snprintf(words, sizeof words, "\nP%d    %s ", i, i == 2 ? "not known" : "no");
        assert_output(words);
    }
}

/* twemproxy 0.5 knows PING, and closes the connection at INFO, ROLE, SELECT and SUBSCRIBE. */
static void test_doctor_speaks_of_a_proxy_when_info_ends_the_connection(void **state)
{
    (void)state;
    impostor_begin(the_server->folder);
    impostor_be(MANNER_FLAPPING, "", 0);
    impostor_answer("PING", "+PONG\r\n");
    impostor_answer("INFO", "");
    examine_impostor("");
    impostor_end();
    assert_status(1);
    assert_output("fail  server       answers PING, but not INFO: ");
    assert_output("-> a proxy (");
    assert_null(strstr(ran.output, "+info"));
    assert_output("P0    no ");
}

/* ---- messages ---------------------------------------------------------------------------- */

static void test_doctor_warns_when_somebody_subscribes_by_a_pattern(void **state)
{
    struct side *spy = side_try_open(the_server->path);

    (void)state;
    side_text(spy, "PSUBSCRIBE dmutex:inbox:*");
    command_run("exec $dmutex doctor");
    assert_output("warn  patterns     1 subscriptions by a pattern");
    side_close(spy);
}

static void test_doctor_fails_when_messages_do_not_arrive(void **state)
{
    struct proxy *proxy = proxy_start(the_server);

    (void)state;
    proxy_break(proxy, PROXY_SWALLOW_REPLY, PROXY_INBOX, "are you there?", 1);
    command_run("DMUTEX_URL='%s&command_timeout=300' exec $dmutex doctor", proxy_url(proxy));
    assert_status(1);
    assert_output("fail  messages     a message to a subscribed channel does not arrive");
    assert_int_equal(proxy_hits(proxy), 1);
    proxy_end(proxy);
}

/* Output has colours on a terminal only. */
static void test_doctor_colours_nothing_when_it_is_no_terminal(void **state)
{
    (void)state;
    command_run("TERM=xterm exec $dmutex doctor");
    assert_null(strchr(ran.output, '\x1b'));
    command_run("command -v script >/dev/null || exit 77; TERM=xterm script -qec '$dmutex doctor' /dev/null");
    if (ran.status != 77)
        assert_output("\x1b[32mok");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_acl_prints_the_documented_line_when_asked),
        cmocka_unit_test(test_acl_goes_by_the_url_when_a_server_is_configured),
        cmocka_unit_test(test_acl_prints_other_rights_for_messages_when_the_url_is_of_a_cluster),
        cmocka_unit_test(test_doctor_names_each_right_when_it_is_missing),
        cmocka_unit_test(test_doctor_names_the_right_to_wait_when_the_url_has_the_option),
        cmocka_unit_test(test_doctor_misses_nothing_when_the_prefix_is_long),
        cmocka_unit_test(test_doctor_names_the_patterns_when_keys_or_channels_are_missing),
        cmocka_unit_test(test_doctor_finds_no_fault_when_there_is_none),
        cmocka_unit_test(test_doctor_leaves_nothing_on_the_server),
        cmocka_unit_test(test_doctor_says_why_when_the_server_cannot_be_reached),
        cmocka_unit_test(test_doctor_fails_when_the_server_may_evict),
        cmocka_unit_test(test_doctor_warns_when_memory_is_short),
        cmocka_unit_test(test_doctor_fails_when_there_is_no_memory),
        cmocka_unit_test(test_doctor_fails_when_the_server_refuses_to_write),
        cmocka_unit_test(test_doctor_says_that_power_failures_are_survived_when_each_write_is_synced),
        cmocka_unit_test(test_doctor_fails_when_the_server_is_a_replica),
        cmocka_unit_test(test_doctor_reports_the_end_of_the_grace_when_a_server_is_new),
        cmocka_unit_test(test_doctor_asks_for_a_login_when_the_url_has_none),
        cmocka_unit_test(test_doctor_blames_no_login_when_the_server_is_full),
        cmocka_unit_test(test_doctor_reports_the_database_when_it_cannot_be_selected),
        cmocka_unit_test(test_doctor_names_the_database_when_the_user_has_no_right_to_it),
        cmocka_unit_test(test_doctor_promises_nothing_when_the_server_is_too_old),
        cmocka_unit_test(test_doctor_speaks_of_a_proxy_when_info_ends_the_connection),
        cmocka_unit_test(test_doctor_warns_when_somebody_subscribes_by_a_pattern),
        cmocka_unit_test(test_doctor_fails_when_messages_do_not_arrive),
        cmocka_unit_test(test_doctor_colours_nothing_when_it_is_no_terminal),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, tool_setup, tool_teardown);
}

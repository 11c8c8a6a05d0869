/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server that grants nothing for a while: every call keeps its promises, and when the server is well again nothing is
 * lost and no failed call was done.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define LONG_LEASE 60000
#define AT_ONCE 8000

/* ---- states ------------------------------------------------------------------------------- */

/* A command that keeps the server busy for any time, sent by a separate process. */
static pid_t send_aside(const struct server *server, const char *format, const char *argument)
{
    pid_t pid = keeper_fork();

    if (pid == 0) {
        struct side *side = side_try_open(server->path);

        if (side)
            side_try(side, format, argument);
        _exit(0);
    }
    return pid;
}

static pid_t sent_aside;

static bool is_refusing(struct server *server, const char *error)
{
    return !side_try(server->side, "GET control:none") && strncmp(side_error(server->side), error, strlen(error)) == 0;
}

static void make_busy(struct server *server)
{
    side_text(server->side, "CONFIG SET busy-reply-threshold 1");
    sent_aside = send_aside(server, "EVAL %s 0", "while true do end");
    wait_until(is_refusing(server, "BUSY"));
}

static void end_busy(struct server *server)
{
    side_text(server->side, "SCRIPT KILL");
    keeper_reap(sent_aside);
}

/* Six thousand keys, each slow to load, until the server is configured to be fast. */
static void make_loading(struct server *server)
{
    static const char fill[] = "local text = string.rep('x', 2000) for i = 1, 6000 do "
                               "redis.call('SET', 'control:' .. i, text) end return 1";

    side_text(server->side, "EVAL %s 0", fill);
    side_text(server->side, "CONFIG SET rdbcompression no key-load-delay 2000 "
                            "loading-process-events-interval-bytes 1024");
    sent_aside = send_aside(server, "DEBUG %s", "RELOAD");
    wait_until(is_refusing(server, "LOADING"));
}

static void end_loading(struct server *server)
{
    assert_true(is_refusing(server, "LOADING"));
    side_text(server->side, "CONFIG SET key-load-delay 0");
    keeper_reap(sent_aside);
}

static void make_replica(struct server *server)
{
    side_text(server->side, "REPLICAOF 127.0.0.1 1");
}

static void make_cut_off_replica(struct server *server)
{
    side_text(server->side, "CONFIG SET replica-serve-stale-data no");
    make_replica(server);
}

static void end_replica(struct server *server)
{
    side_text(server->side, "REPLICAOF NO ONE");
}

static void make_alone(struct server *server)
{
    side_text(server->side, "CONFIG SET min-replicas-to-write 1");
}

static void end_alone(struct server *server)
{
    side_text(server->side, "CONFIG SET min-replicas-to-write 0");
}

/* A folder lies where the dump should go. */
static void make_unable_to_save(struct server *server)
{
    char dump[64];

    snprintf(dump, sizeof dump, "%s/dump.rdb", server->folder);
    assert_return_code(mkdir(dump, 0700), errno);
    side_text(server->side, "CONFIG SET save %s", "3600 1000000");
    side_text(server->side, "BGSAVE");
    wait_until(strstr(side_text(server->side, "INFO persistence"), "rdb_last_bgsave_status:err"));
    assert_return_code(rmdir(dump), errno);
}

static void end_unable_to_save(struct server *server)
{
    side_text(server->side, "CONFIG SET save %s", "");
}

/* Checks at a connection's start are met by ending the present connections. */
static void end_connections(struct server *server)
{
    side_text(server->side, "CLIENT KILL TYPE pubsub");
    side_text(server->side, "CLIENT KILL TYPE normal");
}

static void make_locked(struct server *server)
{
    side_text(server->side, "CONFIG SET requirepass secret");
    end_connections(server);
}

static void end_locked(struct server *server)
{
    side_text(server->side, "CONFIG SET requirepass %s", "");
}

static void make_forbidding(struct server *server)
{
    side_text(server->side, "ACL SETUSER default -zadd");
    end_connections(server);
}

static void end_forbidding(struct server *server)
{
    side_text(server->side, "ACL SETUSER default +zadd");
}

static void make_evicting(struct server *server)
{
    side_text(server->side, "CONFIG SET maxmemory-policy allkeys-lru");
    end_connections(server);
}

static void end_evicting(struct server *server)
{
    side_text(server->side, "CONFIG SET maxmemory-policy noeviction");
}

/* ---- the processes that meet the trouble ------------------------------------------------- */

/* A state in which the server grants nothing, and which the server will leave. */
struct trouble {
    void (*begin)(struct server *server);
    void (*end)(struct server *server);
    const char *sentence; /* the part of the sentence that says what to do */
    const char *error;    /* or this: the server's word on an earlier connection; NULL: none */
    bool is_readable;     /* read-only calls are answered, on an earlier connection */
};

/* The processes, with a separate server, for the sake of the other tests. */
struct party {
    struct server *server;
    struct actor *owner;     /* of held, given, robust and dead */
    struct actor *waiter;    /* for held */
    struct actor *newcomer;  /* for wanted, with all patience */
    struct actor *impatient; /* DMUTEX_ONDOWN=fail */
    long long token;         /* of held */
};

#define COMMAND_TIMEOUT_MS 200
#define PATIENCE_MS 1700 /* the default of 2 s would be noticed */

static struct actor *start_at(const struct server *server, const char *environment)
{
    char url[160];

    snprintf(url, sizeof url, "DMUTEX_URL=%s&command_timeout=%d", server->url, COMMAND_TIMEOUT_MS);
    return actor_start_with(server, url, environment, NULL);
}

static void begin_party(struct party *party)
{
    party->server = server_start();
    party->owner = start_at(party->server, "A=b");
    party->waiter = start_at(party->server, "A=b");
    party->newcomer = start_at(party->server, "A=b");
    party->impatient = start_at(party->server, "DMUTEX_ONDOWN=fail");
    actor_do(party->owner, "0", "init fault/dead robust lease=%d", LONG_LEASE);
    actor_do(party->owner, "0", "in-thread lock fault/dead");
    actor_do(party->owner, "EOWNERDEAD", "lock fault/dead");
    actor_do(party->owner, "0", "init fault/given lease=%d", LONG_LEASE);
    actor_do(party->owner, "0", "lock fault/given");
    actor_do(party->owner, "0", "init fault/robust robust lease=%d", LONG_LEASE);
    actor_do(party->owner, "0", "lock fault/robust");
    actor_do(party->owner, "0", "init fault/held lease=%d", LONG_LEASE);
    actor_do(party->owner, "0", "lock fault/held");
    party->token = actor_value(party->owner, "token fault/held");
    actor_do(party->waiter, "0", "init fault/held lease=%d", LONG_LEASE);
    actor_send(party->waiter, "lock fault/held");
    wait_until(waiters_at(party->server->side, "fault/held") == 1);
    for (int i = 0; i < 2; i++) {
        struct actor *warm = i ? party->impatient : party->newcomer;

        actor_do(warm, "0", "lock fault/warm");
        actor_do(warm, "0", "unlock fault/warm");
    }
}

static void end_party(struct party *party)
{
    actor_end(party->owner);
    actor_end(party->waiter);
    actor_end(party->newcomer);
    actor_end(party->impatient);
    check_keys(party->server->side);
    server_end(party->server);
}

/* The result of a call that ends within command_timeout. */
static void check_result(struct actor *actor, const char *result, const char *call)
{
    promise_within(COMMAND_TIMEOUT_MS + PATIENCE_MS);
    actor_do(actor, result, "%s", call);
    assert_kept();
}

/* The same with ENOLCK, and a sentence that says why. */
static void check_failure(struct actor *actor, const char *call, const struct trouble *trouble)
{
    const char *said;

    check_result(actor, "ENOLCK", call);
    actor_send(actor, "strerror");
    said = actor_answer(actor);
    if (!strstr(said, trouble->sentence) && !(trouble->error && strstr(said, trouble->error)))
        fail_msg("%s: \"%s\" does not tell of \"%s\"", call, said, trouble->sentence);
}

/* Each call keeps its promises when the server cannot be used. */
static void check_calls(struct party *party, const struct trouble *trouble)
{
    static const char *const readers[] = { "islocked fault/held", "health fault/held" };

    actor_send(party->newcomer, "lock fault/wanted");
    for (int i = 0; i < 2; i++) {
        if (trouble->is_readable)
            actor_value(party->impatient, "%s", readers[i]);
        else
            check_failure(party->impatient, readers[i], trouble);
    }
    check_failure(party->owner, "trylock fault/tried", trouble);
    check_result(party->owner, "ETIMEDOUT", "timedlock fault/timed 100");
    check_result(party->owner, "ETIMEDOUT", "clocklock fault/timed -100");
    check_failure(party->owner, "renew fault/held", trouble);
    check_failure(party->owner, "consistent fault/dead", trouble);
    check_failure(party->owner, "forceunlock fault/held", trouble);
    check_failure(party->impatient, "lock fault/failed", trouble);
    actor_do(party->owner, "0", "unlock fault/given");
    actor_do(party->owner, "EPERM", "unlock fault/given");
    check_result(party->owner, "0", "unlock fault/robust");
    actor_do(party->owner, "0", "destroy fault/tried");
    assert_true(actor_value(party->owner, "remaining fault/held") > 0);
    assert_true(actor_is_silent(party->newcomer));
    assert_true(actor_is_silent(party->waiter));
}

/* Sends a call until success: the first tries may meet a connection that is just being made. */
static void insist(struct actor *actor, const char *call)
{
    const char *answer;

    promise_within(AT_ONCE);
    do {
        actor_send(actor, "%s", call);
        answer = actor_answer(actor);
        assert_kept();
    } while (strcmp(answer, "ENOLCK") == 0);
    assert_string_equal(answer, "0");
}

static bool is_owned(const struct party *party, const char *name)
{
    return side_int(party->server->side, "EXISTS %s", key_of("lock", name)) == 1;
}

/* Nothing was lost by the trouble, and no failed call was done. */
static void check_nothing_changed(struct party *party)
{
    static const char *const failed[] = { "fault/tried", "fault/timed", "fault/failed" };
    static const char *const released[] = { "fault/given", "fault/robust", "fault/wanted" };

    promise_within(AT_ONCE);
    actor_expect(party->newcomer, "0");
    actor_do(party->newcomer, "0", "unlock fault/wanted");
    for (int i = 0; i < 3; i++)
        wait_until(!is_owned(party, released[i]));
    assert_kept();
    for (int i = 0; i < 3; i++)
        assert_false(is_owned(party, failed[i]));
    insist(party->owner, "renew fault/held");
    assert_int_equal(actor_value(party->owner, "token fault/held"), party->token);
    assert_true(actor_is_silent(party->waiter));
    promise_within(AT_ONCE);
    actor_do(party->owner, "0", "unlock fault/held");
    actor_expect(party->waiter, "0");
    assert_kept();
    actor_do(party->waiter, "0", "unlock fault/held");
    insist(party->owner, "consistent fault/dead");
    actor_do(party->owner, "0", "unlock fault/dead");
    assert_int_equal(actor_losses(party->owner), 0);
    for (int i = 0; i < 3; i++) {
        actor_do(party->newcomer, "0", "lock %s", failed[i]);
        actor_do(party->newcomer, "0", "unlock %s", failed[i]);
    }
    actor_do(party->newcomer, "0", "init fault/robust robust");
    actor_do(party->newcomer, "0", "lock fault/robust"); /* nobody died */
    actor_do(party->newcomer, "0", "unlock fault/robust");
}

/* True if the error was met at all: no other client of this server can have met the error. */
static bool has_said(struct server *server, const char *error)
{
    char line[64];

    snprintf(line, sizeof line, "errorstat_%s:", error ? error : "");
    return !error || strstr(side_text(server->side, "INFO errorstats"), line);
}

static void check_trouble(const struct trouble *trouble)
{
    struct party party;

    begin_party(&party);
    trouble->begin(party.server);
    check_calls(&party, trouble);
    trouble->end(party.server);
    check_nothing_changed(&party);
    assert_true(has_said(party.server, trouble->error));
    end_party(&party);
}

/* A server that is busy with a foreign script is waited for. */
static void test_calls_wait_when_the_server_is_busy(void **state)
{
    (void)state;
    check_trouble(&(struct trouble){ make_busy, end_busy, "BUSY", NULL, false });
}

/* A server that loads its data is waited for. */
static void test_calls_wait_when_the_server_is_loading(void **state)
{
    (void)state;
    check_trouble(&(struct trouble){ make_loading, end_loading, "LOADING", NULL, false });
}

/* A master that has become a replica is waited for until the server, or another at the address, is a master. */
static void test_calls_wait_when_the_server_is_a_replica(void **state)
{
    (void)state;
    check_trouble(&(struct trouble){ make_replica, end_replica, "not a master", "READONLY", true });
}

/* The same when the replica has lost the master and says nothing else. */
static void test_calls_wait_when_the_server_is_a_replica_without_master(void **state)
{
    (void)state;
    check_trouble(&(struct trouble){ make_cut_off_replica, end_replica, "not a master", "MASTERDOWN", false });
}

/* A master that may not write without replicas is waited for. */
static void test_calls_wait_when_the_server_misses_its_replicas(void **state)
{
    (void)state;
    check_trouble(&(struct trouble){ make_alone, end_alone, "NOREPLICAS", NULL, true });
}

/* A server that may not write after a failed save is waited for. */
static void test_calls_wait_when_the_server_cannot_save(void **state)
{
    (void)state;
    check_trouble(&(struct trouble){ make_unable_to_save, end_unable_to_save, "MISCONF", NULL, true });
}

/* A server that suddenly wants a password is waited for, and the sentence says so. */
static void test_calls_wait_when_the_server_wants_a_password(void **state)
{
    (void)state;
    check_trouble(&(struct trouble){ make_locked, end_locked, "NOAUTH", NULL, false });
}

/* A server that forbids one command to new connections is waited for; the sentence names the command. */
static void test_calls_wait_when_the_server_forbids_a_command(void **state)
{
    (void)state;
    check_trouble(&(struct trouble){ make_forbidding, end_forbidding, "ZADD", NULL, false });
}

/* A server that may evict locks is not used, and the sentence names the setting. */
static void test_calls_wait_when_the_server_may_evict(void **state)
{
    (void)state;
    check_trouble(&(struct trouble){ make_evicting, end_evicting, "maxmemory-policy", NULL, false });
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_wait_when_the_server_is_busy),
        cmocka_unit_test(test_calls_wait_when_the_server_is_loading),
        cmocka_unit_test(test_calls_wait_when_the_server_is_a_replica),
        cmocka_unit_test(test_calls_wait_when_the_server_is_a_replica_without_master),
        cmocka_unit_test(test_calls_wait_when_the_server_misses_its_replicas),
        cmocka_unit_test(test_calls_wait_when_the_server_cannot_save),
        cmocka_unit_test(test_calls_wait_when_the_server_wants_a_password),
        cmocka_unit_test(test_calls_wait_when_the_server_forbids_a_command),
        cmocka_unit_test(test_calls_wait_when_the_server_may_evict),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A quorum with one bad member: a stranger wrote its data, somebody holds a lock there alone, or it lies.  The other
 * two keep the names usable.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hold.h"
#include "core/quorum.h"
#include "trio.h"

#define TURNS 10

static uint64_t token_on(int server, const char *name)
{
    return strtoull(side_text(trio[server]->side, "HGET %s token", key_of("state", name)), NULL, 10);
}

/* In the servers' units; the token that a process gets is followed by a number of the process. */
static uint64_t told_token(struct actor *actor, const char *name)
{
    return (uint64_t)actor_value(actor, "token %s", name) >> DM_TOKEN_SHIFT;
}

static uint64_t furthest_token(const struct server *server)
{
    const char *seconds = side_text(server->side, "TIME");

    return strtoull(seconds, NULL, 10) * 1000000 - DM_TOKEN_EPOCH_US + DM_QUORUM_AHEAD_US + 2000000;
}

/* ---- tokens ------------------------------------------------------------------------------ */

/* Both processes hold in turns, with tokens that rise; those of the server `bad` are not to be seen elsewhere. */
static void check_tokens(const char *name, int bad)
{
    uint64_t token = 0;

    for (int i = 0; i < TURNS; i++) {
        struct actor *actor = i % 2 ? trio_holder : trio_waiter;
        uint64_t next;

        actor_do(actor, "0", "lock %s", name);
        next = told_token(actor, name);
        assert_true(next > token);
        token = next;
        actor_do(actor, "0", "unlock %s", name);
    }
    for (int i = 0; i < TRIO; i++) {
        if (i != bad)
            assert_true(token_on(i, name) <= furthest_token(trio[i]));
    }
}

/* H5: the token there cannot be followed by many others; the renewals must not carry it to the other servers. */
static void test_tokens_stay_below_the_limit_when_one_server_has_jumped(void **state)
{
    char name[16];

    (void)state;
    for (int bad = 0; bad < TRIO; bad++) {
        snprintf(name, sizeof name, "q/jump%d", bad);
        trio_init(name);
        assert_true(
            side_try(trio[bad]->side, "HSET %s token %" PRIu64, key_of("state", name), DM_TOKEN_LIMIT - 1 - TURNS / 2));
        check_tokens(name, bad);
        server_kill(trio[bad]);
        actor_do(trio_holder, "0", "lock %s", name);
        assert_true(told_token(trio_holder, name) <= furthest_token(trio[(bad + 1) % TRIO]));
        actor_do(trio_holder, "0", "unlock %s", name);
        server_restart(trio[bad]);
        server_reconnect(trio[bad]);
    }
}

/* ---- a lone holder ----------------------------------------------------------------------- */

static int queue_of(const char *name)
{
    for (int i = 0; i < TRIO; i++) {
        if (waiters_at(trio[i]->side, name) > 0)
            return i;
    }
    return -1;
}

/* Both processes have waited once: they have inboxes, and the name's queue is on the server that is returned. */
static int warm_up(const char *name)
{
    int home = -1;

    trio_init(name);
    actor_do(trio_waiter, "0", "lock %s", name);
    actor_send(trio_holder, "lock %s", name);
    wait_until((home = queue_of(name)) >= 0);
    actor_do(trio_waiter, "0", "unlock %s", name);
    actor_expect(trio_holder, "0");
    actor_send(trio_waiter, "lock %s", name);
    wait_until(queue_of(name) >= 0);
    actor_do(trio_holder, "0", "unlock %s", name);
    actor_expect(trio_waiter, "0");
    actor_do(trio_waiter, "0", "unlock %s", name);
    return home;
}

/* H8: for a third of the names this is the server where turns are taken. */
static void test_a_holder_of_one_server_alone_is_passed(void **state)
{
    (void)state;
    warm_up("q/lone");
    for (int i = 0; i < TRIO; i++) {
        struct actor *lone = actor_start_holder(trio[i], "q/lone", "");

        for (int j = 0; j < 2; j++) {
            actor_do(trio_waiter, "0", "lock q/lone");
            actor_do(trio_holder, "EBUSY", "trylock q/lone");
            actor_do(trio_waiter, "0", "unlock q/lone");
        }
        actor_do(lone, "0", "unlock q/lone");
        actor_end(lone);
    }
}

static void test_waiters_take_turns_when_one_server_has_another_holder(void **state)
{
    char path[64];

    (void)state;
    warm_up("q/beside");
    actor_do(trio_holder, "0", "init q/beside lease=1000 fair");
    actor_do(trio_waiter, "0", "init q/beside lease=1000 fair");
    snprintf(path, sizeof path, "%s/count", trio[0]->folder);
    for (int i = 0; i < TRIO; i++) {
        struct actor *lone = actor_start_holder(trio[i], "q/beside", "");

        actor_begin_count(path);
        actor_send(trio_holder, "count %s %d q/beside", path, TURNS);
        actor_send(trio_waiter, "count %s %d q/beside", path, TURNS);
        assert_string_equal(actor_answer_of_count(trio_holder, path), "0");
        assert_string_equal(actor_answer_of_count(trio_waiter, path), "0");
        assert_int_equal(actor_counted(path), 2 * TURNS);
        actor_end(lone);
    }
}

#define QUEUE_LIMIT 10000

/* Strangers fill the queue of a name that is held. */
static void fill_queue(int server, const char *name)
{
    static const char script[] = "redis.call('HSET', KEYS[2], 'wanted', 1)"
                                 " for i = 1, 10000 do redis.call('ZADD', KEYS[1], i, 'x:1:' .. i) end"
                                 " return redis.call('ZCARD', KEYS[1])";
    struct side *side = trio[server]->side;

    assert_int_equal(side_int(side, "EVAL %s 2 %s %s", script, key_of("queue", name), key_of("state", name)),
                     QUEUE_LIMIT);
}

/* The server where turns are taken has no room: the attempt waits at another. */
static void test_an_attempt_waits_elsewhere_when_the_queue_is_full(void **state)
{
    int home = warm_up("q/full");

    (void)state;
    actor_do(trio_holder, "0", "lock q/full");
    fill_queue(home, "q/full");
    actor_send(trio_waiter, "lock q/full");
    wait_until(trio_waiters("q/full") == 2);
    assert_true(actor_is_silent(trio_waiter));
    actor_do(trio_holder, "0", "unlock q/full");
    actor_expect(trio_waiter, "0");
    actor_do(trio_waiter, "0", "unlock q/full");
}

/* Where all queues are full, the call says so. */
static void test_an_attempt_is_refused_when_all_queues_are_full(void **state)
{
    (void)state;
    warm_up("q/all-full");
    actor_do(trio_holder, "0", "lock q/all-full");
    for (int i = 0; i < TRIO; i++)
        fill_queue(i, "q/all-full");
    actor_do(trio_waiter, "EAGAIN", "lock q/all-full");
    actor_do(trio_holder, "0", "unlock q/all-full");
}

/* ---- hints ------------------------------------------------------------------------------- */

#define HINTS 5000
#define ASKED_BY_A_HINT 4 /* a question and a release to the server, and once more each for a waiter that others pass */

/* As in stores/quorum/quorum.c: a few at once, then one per interval. */
static int64_t heeded_in(int64_t ms)
{
    return 8 + ms / 10 + 1;
}

/* The servers' own words about the attempt of the waiter, again and again; returns the milliseconds that this took. */
static int64_t hint_without_end(int server, const char *name, bool is_grant)
{
    int64_t begin_ms = wait_now_ms();
    char id[100], run[17], message[200];

    assert_int_equal(sscanf(first_waiter_at(trio[server]->side, name), "%99s", id), 1);
    snprintf(run, sizeof run, "%.16s", strstr(side_text(trio[server]->side, "INFO server"), "run_id:") + 7);
    if (is_grant)
        snprintf(message, sizeof message, "granted %s 1 1000000000000000 30000 0 %s", strrchr(id, ':') + 1, run);
    else
        snprintf(message, sizeof message, "ask %s", strrchr(id, ':') + 1);
    for (int i = 0; i < HINTS; i++)
        assert_int_equal(side_int(trio[server]->side, "PUBLISH dmutex:inbox:%b %s", id, strcspn(id, ":"), message), 1);
    return wait_now_ms() - begin_ms;
}

/* The member falsely says that the waiter has its turn, or must ask: the others are asked only from time to time. */
static void test_endless_hints_are_followed_now_and_then(void **state)
{
    int server, honest;

    (void)state;
    warm_up("q/hint");
    actor_do(trio_holder, "0", "lock q/hint");
    actor_send(trio_waiter, "lock q/hint");
    wait_until((server = queue_of("q/hint")) >= 0);
    honest = (server + 1) % TRIO;
    for (int is_grant = 0; is_grant < 2; is_grant++) {
        int64_t before = side_calls(trio[honest]->side, "evalsha");
        int64_t ms = hint_without_end(server, "q/hint", is_grant);

        assert_within(side_calls(trio[honest]->side, "evalsha") - before, 0, ASKED_BY_A_HINT * heeded_in(ms));
        assert_true(actor_is_silent(trio_waiter));
    }
    actor_do(trio_holder, "0", "unlock q/hint");
    actor_expect(trio_waiter, "0");
    actor_do(trio_waiter, "0", "unlock q/hint");
}

/* ---- lies -------------------------------------------------------------------------------- */

/* What the bad member answers to every script: answers that a good server might give to some script. */
static const struct impostor_bytes lies[] = {
    IMPOSTOR_BYTES("$43\r\nowned 4503599627370490 1 1780000000000000\r\n"),
    IMPOSTOR_BYTES("*5\r\n$4\r\nbusy\r\n:0\r\n:1780000000000000\r\n:0\r\n:0\r\n"),
    IMPOSTOR_BYTES(
        "*5\r\n$4\r\nbusy\r\n:99999999999\r\n:1780000000000000\r\n:99999999999\r\n:1\r\n"), /* an endless grace */
    IMPOSTOR_BYTES("*6\r\n$6\r\nqueued\r\n:1\r\n:0\r\n:5\r\n:1780000000000000\r\n:1\r\n"),
    IMPOSTOR_BYTES("*6\r\n$6\r\nqueued\r\n:9000\r\n:99999999999\r\n:5\r\n:1780000000000000\r\n:0\r\n"),
    IMPOSTOR_BYTES("*1\r\n$4\r\nfull\r\n"),
    IMPOSTOR_BYTES("*1\r\n$14\r\nnotrecoverable\r\n"),
    IMPOSTOR_BYTES("*1\r\n$8\r\nnotowner\r\n"),
    IMPOSTOR_BYTES("*2\r\n$8\r\nreleased\r\n:1\r\n"),
    IMPOSTOR_BYTES("*2\r\n:1780000000000000\r\n:0\r\n"),
    IMPOSTOR_BYTES("*2\r\n:1780000000000000\r\n:2\r\n"),
    IMPOSTOR_BYTES("-NOAUTH Authentication required.\r\n"),
    IMPOSTOR_BYTES("-OOM command not allowed when used memory > 'maxmemory'.\r\n"),
    IMPOSTOR_BYTES("-NOSCRIPT No matching script.\r\n"),
    IMPOSTOR_BYTES("-LOADING the dataset is in memory soon\r\n"),
    IMPOSTOR_BYTES("-DMSTATE not ours\r\n"),
    IMPOSTOR_BYTES("-NOPERM no permission\r\n"),
    IMPOSTOR_BYTES(""),
};

#define QUEUED_FOR_EVER lies[4]

/* The impostor replaces this one of the three. */
static const char *url_with_impostor(int home)
{
    static char url[256];
    int ports[TRIO] = { trio[0]->port, trio[1]->port, trio[2]->port };

    ports[home] = impostor_port();
    snprintf(url, sizeof url, "redis+quorum://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d?grace=off&" TIMES, ports[0],
             ports[1], ports[2]);
    return url;
}

/* Two processes compete, and then each call has the result that it has among honest servers. */
static void check_beside_a_liar(struct actor *const *actors, const char *path)
{
    actor_begin_count(path);
    for (int i = 0; i < 2; i++) {
        actor_do(actors[i], "0", "init q/lie lease=1000 fair");
        actor_send(actors[i], "count %s %d q/lie", path, TURNS / 2);
    }
    for (int i = 0; i < 2; i++)
        assert_string_equal(actor_answer_of_count(actors[i], path), "0");
    assert_int_equal(actor_counted(path), TURNS);
    actor_do(actors[0], "0", "lock q/lie");
    assert_true(told_token(actors[0], "q/lie") <= furthest_token(trio[0]));
    actor_do(actors[1], "EBUSY", "trylock q/lie");
    actor_do(actors[1], "ETIMEDOUT", "timedlock q/lie 50");
    actor_do(actors[0], "0", "unlock q/lie");
}

/* It is the server where turns are taken. */
static void test_calls_work_as_usual_when_a_member_lies(void **state)
{
    int home = warm_up("q/lie");
    char path[64];

    (void)state;
    impostor_begin(trio[0]->folder);
    snprintf(path, sizeof path, "%s/count", trio[0]->folder);
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct actor *actors[2];

        impostor_be(MANNER_LYING, lies[i].bytes, lies[i].length);
        for (int j = 0; j < 2; j++)
            actors[j] = actor_start_at(url_with_impostor(home));
        check_beside_a_liar(actors, path);
        for (int j = 0; j < 2; j++)
            actor_end(actors[j]);
    }
    impostor_end();
}

#define PASSED_LEASE 1500
#define LOOKS 3

static int64_t looks_at(int server)
{
    return side_calls(trio[server]->side, "evalsha");
}

/* Leases of the waiter, by the server's clock, in which that many looks are certain, even if the machine is late. */
static void promise_leases(int server, int leases)
{
    side_set_bound(trio[server]->side, "leases", leases * PASSED_LEASE);
}

static void assert_leases_kept(int server)
{
    assert_false(side_is_control_over(trio[server]->side, "leases"));
}

/*
 * The server where turns are taken says "queued" to the waiter, and never more.  That costs the waiter its place, and a
 * third of a lease: it looks at the others three times in a lease, and owns when they are free.
 */
static void test_a_waiter_owns_after_a_third_of_a_lease_when_a_member_passes_it_over(void **state)
{
    int home = warm_up("q/passed"), honest = (home + 1) % TRIO;
    struct actor *waiter;
    int64_t before;

    (void)state;
    impostor_begin(trio[0]->folder);
    impostor_be(MANNER_LYING, QUEUED_FOR_EVER.bytes, QUEUED_FOR_EVER.length);
    waiter = actor_start_at(url_with_impostor(home));
    actor_do(waiter, "0", "init q/passed lease=%d fair", PASSED_LEASE);
    actor_do(trio_holder, "0", "lock q/passed");
    actor_send(waiter, "lock q/passed");
    wait_until(impostor_said() > 0);
    promise_leases(honest, 2);
    before = looks_at(honest);
    wait_until(looks_at(honest) >= before + LOOKS);
    assert_leases_kept(honest);
    assert_true(actor_is_silent(waiter));
    promise_leases(honest, 1);
    actor_do(trio_holder, "0", "unlock q/passed");
    actor_expect(waiter, "0");
    assert_leases_kept(honest);
    actor_do(waiter, "0", "unlock q/passed");
    actor_end(waiter);
    impostor_end();
}

/* No call fails, so only the log can say it; it does so once, though each lock and each unlock is refused there. */
static void test_the_log_says_that_a_member_refuses(void **state)
{
    char url[280], log[160];
    struct actor *actor;

    (void)state;
    impostor_begin(trio[0]->folder);
    impostor_be(MANNER_LYING, "-ERR not today\r\n", 16);
    snprintf(url, sizeof url, "DMUTEX_URL=%s", url_with_impostor(0));
    snprintf(log, sizeof log, "DMUTEX_LOG=warn:%s", server_file(trio[0], "refusals"));
    actor = actor_start_with(trio[0], url, log, NULL);
    actor_do(actor, "0", "init q/refused lease=%d fair", LEASE);
    for (int i = 0; i < TURNS; i++) {
        actor_do(actor, "0", "lock q/refused");
        actor_do(actor, "0", "unlock q/refused");
    }
    wait_until(impostor_said() >= TURNS);
    impostor_end();
    actor_end(actor);
    command_run("test $(grep -c 'a server of the quorum refuses requests, 127.0.0.1:[0-9]*: ERR not today' %s) -eq 1",
                server_file(trio[0], "refusals"));
    assert_status(0);
}

/* ---- two names --------------------------------------------------------------------------- */

/* One vote of three is no majority, and two of three are one. */
static void test_a_server_has_one_vote_when_the_url_names_it_twice(void **state)
{
    char url[256];
    struct actor *actor;

    (void)state;
    snprintf(url, sizeof url, "redis+quorum://127.0.0.1:%d,localhost:%d,127.0.0.1:%d?grace=off&" TIMES, trio[0]->port,
             trio[0]->port, server_free_port());
    actor = actor_start_at(url);
    actor_do(actor, "ENOLCK", "trylock q/twice");
    actor_assert_words(actor, "is the same server as");
    actor_end(actor);
    snprintf(url, sizeof url, "redis+quorum://127.0.0.1:%d,localhost:%d,127.0.0.1:%d?grace=off&" TIMES, trio[0]->port,
             trio[0]->port, trio[1]->port);
    actor = actor_start_at(url);
    for (int i = 0; i < TURNS; i++) {
        actor_do(actor, "0", "lock q/twice");
        actor_do(actor, "0", "unlock q/twice");
    }
    actor_end(actor);
}

/* ---- silence ----------------------------------------------------------------------------- */

/* Nobody waits for an answer until then. */
#define LONG "command_timeout=3600000&connect_timeout=3600000"
#define HOUR 3600000

static const char *url_of_ports(const int ports[TRIO])
{
    static char url[256];

    snprintf(url, sizeof url, "redis+quorum://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d?grace=off&" LONG, ports[0],
             ports[1], ports[2]);
    return url;
}

/* It greets, and answers no script. */
static struct actor *start_beside_silence(int silent)
{
    int ports[TRIO] = { trio[0]->port, trio[1]->port, trio[2]->port };

    impostor_begin(trio[0]->folder);
    impostor_be(MANNER_LYING, "", 0);
    ports[silent] = impostor_port();
    return actor_start_at(url_of_ports(ports));
}

static void end_beside_silence(struct actor *actor)
{
    impostor_end();
    actor_end(actor);
}

/* A young process has reached two servers, of which one is silent, and then the third. */
static void test_a_server_is_asked_when_it_is_reached_in_the_middle_of_a_lock(void **state)
{
    struct proxy *proxy = proxy_start(trio[1]);
    struct actor *actor;
    int ports[TRIO] = { trio[0]->port };

    (void)state;
    assert_int_equal(sscanf(proxy_tcp_url(proxy), "redis://127.0.0.1:%d", &ports[1]), 1);
    proxy_hold(proxy, PROXY_BOTH_WAYS, PROXY_ALL);
    impostor_begin(trio[0]->folder);
    impostor_be(MANNER_LYING, "", 0);
    ports[2] = impostor_port();
    actor = actor_start_at(url_of_ports(ports));
    actor_do(actor, "0", "init q/late lease=%d fair", HOUR);
    actor_send(actor, "trylock q/late");
    wait_until(trio_has(0, "lock", "q/late"));
    proxy_pass(proxy);
    actor_expect(actor, "0");
    actor_do(actor, "0", "unlock q/late");
    end_beside_silence(actor);
    proxy_end(proxy);
}

/* One server is free, one is held by somebody else, one is silent. */
static void test_a_trylock_is_answered_when_a_member_is_silent(void **state)
{
    struct actor *lone = actor_start_holder(trio[1], "q/silent", ""), *actor = start_beside_silence(2);

    (void)state;
    actor_do(actor, "EBUSY", "trylock q/silent");
    end_beside_silence(actor);
    actor_do(lone, "0", "unlock q/silent");
    actor_end(lone);
}

/* The silent one is asked last, and would have all the time that is left. */
static void test_a_question_is_answered_when_a_member_is_silent(void **state)
{
    struct actor *actor = start_beside_silence(2);

    (void)state;
    actor_do(trio_holder, "0", "lock q/asked");
    actor_do(actor, "0 1", "islocked q/asked");
    actor_do(trio_holder, "0", "unlock q/asked");
    end_beside_silence(actor);
}

/* Both have just been in each other's way, so the next lock of each takes a turn at once. */
static void cross(struct actor *actor, const char *name)
{
    actor_do(trio_holder, "0", "lock %s", name);
    actor_send(actor, "lock %s", name);
    wait_until(trio_waiters(name) > 0);
    actor_do(trio_holder, "0", "unlock %s", name);
    actor_expect(actor, "0");
    actor_send(trio_holder, "lock %s", name);
    wait_until(trio_waiters(name) > 0);
    actor_do(actor, "0", "unlock %s", name);
    actor_expect(trio_holder, "0");
}

/* The name's turns are at the silent server; the waiter comes into the queue of another while the holder is inside. */
static void test_a_waiter_leaves_a_silent_server(void **state)
{
    int home = warm_up("q/leave");
    struct actor *actor;

    (void)state;
    actor_do(trio_holder, "0", "init q/leave lease=1000 fair");
    actor = start_beside_silence(home);
    actor_do(actor, "0", "init q/leave lease=1000 fair");
    cross(actor, "q/leave");
    actor_send(actor, "lock q/leave");
    wait_until(trio_waiters("q/leave") > 0);
    actor_do(trio_holder, "0", "unlock q/leave");
    actor_expect(actor, "0");
    actor_do(actor, "0", "unlock q/leave");
    end_beside_silence(actor);
}

/* All three, the second and the third through proxies. */
static struct actor *start_at_proxies(struct proxy *const proxies[2])
{
    int ports[TRIO] = { trio[0]->port };

    for (int i = 0; i < 2; i++)
        assert_int_equal(sscanf(proxy_tcp_url(proxies[i]), "redis://127.0.0.1:%d", &ports[i + 1]), 1);
    return actor_start_at(url_of_ports(ports));
}

/* A young process holds by two servers. One is silent when the token is asked for, and the third is reached then. */
static void test_a_token_is_given_when_the_third_server_is_reached_after_the_lock(void **state)
{
    struct proxy *proxies[2] = { proxy_start(trio[1]), proxy_start(trio[2]) };
    struct actor *actor;
    int64_t scripts;

    (void)state;
    proxy_hold(proxies[0], PROXY_BOTH_WAYS, PROXY_ALL);
    actor = start_at_proxies(proxies);
    actor_do(actor, "0", "init q/young lease=%d fair", HOUR);
    actor_do(actor, "0", "lock q/young");
    proxy_hold(proxies[1], PROXY_TO_CLIENT, PROXY_ALL);
    scripts = side_calls(trio[2]->side, "eval");
    actor_send(actor, "token q/young");
    wait_until(side_calls(trio[2]->side, "eval") > scripts);
    proxy_pass(proxies[0]);
    assert_int_equal(strncmp(actor_answer(actor), "0 ", 2), 0);
    actor_do(actor, "0", "unlock q/young");
    actor_end(actor);
    for (int i = 0; i < 2; i++)
        proxy_end(proxies[i]);
}

/* The queue is elsewhere as long as the process is not connected with the name's server. */
static void wait_in_queue(struct actor *actor, const char *name, int server)
{
    int queue;

    for (;;) {
        actor_send(actor, "timedlock %s 3000", name);
        wait_until((queue = queue_of(name)) >= 0);
        if (queue == server)
            return;
        actor_expect(actor, "ETIMEDOUT");
    }
}

/* The process had a place in the queue of the server. */
static void test_exit_does_not_wait_for_a_silent_server(void **state)
{
    int home = warm_up("q/exit"), ports[TRIO] = { trio[0]->port, trio[1]->port, trio[2]->port };
    struct proxy *proxy = proxy_start(trio[home]);
    struct actor *actor;

    (void)state;
    assert_int_equal(sscanf(proxy_tcp_url(proxy), "redis://127.0.0.1:%d", &ports[home]), 1);
    actor = actor_start_at(url_of_ports(ports));
    actor_do(actor, "0", "init q/exit lease=%d fair", LEASE);
    actor_do(trio_holder, "0", "lock q/exit");
    wait_in_queue(actor, "q/exit", home);
    proxy_hold(proxy, PROXY_TO_CLIENT, PROXY_ALL);
    actor_expect(actor, "ETIMEDOUT");
    actor_end(actor);
    actor_do(trio_holder, "0", "unlock q/exit");
    proxy_end(proxy);
}

/*
 * It refuses the attempt, too, but a server may have executed what it answers with an error.  So the release is
 * repeated, by a process that runs on after a twentieth of the lease, which is three minutes.
 */
static void test_exit_does_not_wait_for_a_server_that_refuses_each_release(void **state)
{
    int home = warm_up("q/end"), other = (home + 1) % TRIO,
        ports[TRIO] = { trio[0]->port, trio[1]->port, trio[2]->port };
    struct actor *actor;

    (void)state;
    impostor_begin(trio[0]->folder);
    impostor_be(MANNER_LYING, "-ERR not today\r\n", 16);
    ports[home] = impostor_port();
    actor = actor_start_at(url_of_ports(ports));
    actor_do(actor, "0", "init q/end lease=%d fair", HOUR);
    actor_do(trio_holder, "0", "lock q/end");
    actor_do(actor, "ETIMEDOUT", "timedlock q/end 50");
    side_set_control(trio[other]->side, "lease", LEASE);
    actor_end(actor);
    assert_false(side_is_control_over(trio[other]->side, "lease"));
    actor_do(trio_holder, "0", "unlock q/end");
    impostor_end();
}

/* The hold is at the first server and at the silent one, and the third knows nothing of it. */
static void test_an_unlock_does_not_wait_for_a_silent_server(void **state)
{
    struct proxy *proxies[2] = { proxy_start(trio[1]), proxy_start(trio[2]) };
    struct actor *actor;

    (void)state;
    actor = start_at_proxies(proxies);
    actor_do(actor, "0", "init q/two lease=%d fair", HOUR);
    proxy_hold(proxies[0], PROXY_BOTH_WAYS, PROXY_ALL);
    actor_do(actor, "0", "lock q/two");
    proxy_hold(proxies[1], PROXY_TO_CLIENT, PROXY_ALL);
    actor_do(actor, "0", "unlock q/two");
    actor_end(actor);
    for (int i = 0; i < 2; i++)
        proxy_end(proxies[i]);
}

/*
 * All servers know the death; one does not answer when the data are made consistent, nor when the mutex is destroyed.
 */
static void test_a_mutex_is_made_consistent_and_destroyed_when_a_member_is_silent(void **state)
{
    struct actor *actor = start_beside_silence(2);

    (void)state;
    actor_do(trio_holder, "0", "init q/mended lease=%d robust", LEASE);
    actor_do(trio_holder, "0", "in-thread lock q/mended");
    actor_do(actor, "0", "init q/mended lease=%d robust", LEASE);
    actor_do(actor, "EOWNERDEAD", "lock q/mended");
    actor_do(actor, "0", "consistent q/mended");
    actor_do(actor, "0", "unlock q/mended");
    actor_do(actor, "0", "destroy q/mended");
    end_beside_silence(actor);
}

/* ---- losses ------------------------------------------------------------------------------ */

/* As a break by force on this server alone would. */
static void tell_lost(int server, const char *name)
{
    const char *hold = side_text(trio[server]->side, "HGET %s hold", key_of("state", name));
    unsigned long long attempt;
    char uuid[40], message[40];

    assert_int_equal(sscanf(hold, "%39[^:]:%*u:%llu", uuid, &attempt), 2);
    snprintf(message, sizeof message, "lost %llu", attempt);
    assert_int_equal(side_int(trio[server]->side, "PUBLISH dmutex:inbox:%s %s", uuid, message), 1);
}

/* One server and the liar grant the lock; the third does, too, later for the process.  True if the hold stays. */
static bool stays(struct actor *actor, struct proxy *proxy, int liar)
{
    int64_t scripts;
    bool is_there;

    proxy_break(proxy, PROXY_HOLD_REPLY, PROXY_COMMANDS, "lock:quick", 1);
    actor_do(actor, "0", "lock q/quick");
    scripts = side_calls(trio[liar]->side, "evalsha");
    tell_lost(liar, "q/quick");
    wait_until(side_calls(trio[liar]->side, "evalsha") > scripts); /* the process has heard the message */
    proxy_pass(proxy);
    actor_send(actor, "unlock q/quick");
    is_there = strcmp(actor_answer(actor), "0") == 0;
    wait_until(trio_count("lock", "q/quick") == 0);
    return is_there;
}

/* Within 200 ms, so a busy machine may need some rounds. */
static void test_a_hold_stays_when_a_member_reports_a_loss_before_all_have_answered(void **state)
{
    int home = warm_up("q/quick"), slow = (home + 1) % TRIO, liar = (home + 2) % TRIO;
    int ports[TRIO] = { trio[0]->port, trio[1]->port, trio[2]->port };
    struct proxy *proxy = proxy_start(trio[slow]);
    struct actor *actor;

    (void)state;
    assert_int_equal(sscanf(proxy_tcp_url(proxy), "redis://127.0.0.1:%d", &ports[slow]), 1);
    actor = actor_start_at(url_of_ports(ports));
    actor_do(actor, "0", "init q/quick lease=%d fair", LEASE);
    cross(actor, "q/quick"); /* the process has inboxes */
    actor_do(trio_holder, "0", "unlock q/quick");
    wait_until(stays(actor, proxy, liar));
    actor_end(actor);
    proxy_end(proxy);
}

/* The silent one has an open question all the time; the hold is older than a moment. */
static void test_a_break_is_reported_when_a_member_is_silent(void **state)
{
    int home = warm_up("q/broken");
    struct actor *actor = start_beside_silence(home);

    (void)state;
    actor_do(actor, "0", "init q/broken lease=%d fair", LEASE);
    cross(actor, "q/broken");
    actor_do(trio_holder, "0", "unlock q/broken");
    actor_do(actor, "0", "lock q/broken");
    let_pass(300);
    actor_do(trio_holder, "0", "forceunlock q/broken");
    wait_until(trio_count("lock", "q/broken") == 0);
    actor_do(actor, "EPERM", "unlock q/broken");
    end_beside_silence(actor);
}

int main(int argc, char **argv)
{
#define USUAL(test) cmocka_unit_test_setup_teardown(test, trio_begin_test, trio_end_test)
    const struct CMUnitTest tests[] = {
        USUAL(test_tokens_stay_below_the_limit_when_one_server_has_jumped),
        USUAL(test_a_holder_of_one_server_alone_is_passed),
        USUAL(test_waiters_take_turns_when_one_server_has_another_holder),
        USUAL(test_an_attempt_waits_elsewhere_when_the_queue_is_full),
        USUAL(test_an_attempt_is_refused_when_all_queues_are_full),
        USUAL(test_endless_hints_are_followed_now_and_then),
        USUAL(test_calls_work_as_usual_when_a_member_lies),
        USUAL(test_a_waiter_owns_after_a_third_of_a_lease_when_a_member_passes_it_over),
        USUAL(test_the_log_says_that_a_member_refuses),
        USUAL(test_a_server_has_one_vote_when_the_url_names_it_twice),
        USUAL(test_a_server_is_asked_when_it_is_reached_in_the_middle_of_a_lock),
        USUAL(test_a_trylock_is_answered_when_a_member_is_silent),
        USUAL(test_a_question_is_answered_when_a_member_is_silent),
        USUAL(test_a_waiter_leaves_a_silent_server),
        USUAL(test_a_token_is_given_when_the_third_server_is_reached_after_the_lock),
        USUAL(test_exit_does_not_wait_for_a_silent_server),
        USUAL(test_exit_does_not_wait_for_a_server_that_refuses_each_release),
        USUAL(test_an_unlock_does_not_wait_for_a_silent_server),
        USUAL(test_a_mutex_is_made_consistent_and_destroyed_when_a_member_is_silent),
        USUAL(test_a_hold_stays_when_a_member_reports_a_loss_before_all_have_answered),
        USUAL(test_a_break_is_reported_when_a_member_is_silent),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, trio_begin_group, trio_end_group);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Sentinels and servers that only accept TLS: one option and one authority for both. */
#include <stdio.h>
#include <string.h>

#include "../lib/testlib.h"
#include "../lib/tls.h"

#define SENTINELS 3
#define TIMES "command_timeout=500&connect_timeout=500&switch=2000"

/* A master, a replica, and the sentinels' ports with TLS. */
static struct tls_server *data[2];
static struct server *sentinels[SENTINELS];
static int ports[SENTINELS];

static struct server *start_sentinel(int port)
{
    char lines[640];

    snprintf(lines, sizeof lines,
             "port 0\ntls-port %d\ntls-replication yes\ntls-auth-clients no\n"
             "tls-cert-file %s/server.crt\ntls-key-file %s/server.key\ntls-ca-cert-file %s/ca.crt\n"
             "sentinel monitor mymaster 127.0.0.1 %d 2\n"
             "sentinel down-after-milliseconds mymaster 2000\nsentinel failover-timeout mymaster 3000\n",
             port, tls_folder, tls_folder, tls_folder, data[0]->port);
    return server_start_by_file(lines, "--sentinel");
}

static int begin_group(void **state)
{
    char port[16];

    (void)state;
    tls_begin();
    data[0] = tls_server_start("server", "no", "--tls-replication", "yes", NULL);
    snprintf(port, sizeof port, "%d", data[0]->port);
    data[1] = tls_server_start("server", "no", "--tls-replication", "yes", NULL);
    side_text(data[1]->server->side, "REPLICAOF 127.0.0.1 %s", port);
    wait_until(side_says(data[1]->server->side, "master_link_status:up", "INFO"));
    for (int i = 0; i < SENTINELS; i++) {
        ports[i] = server_free_port();
        sentinels[i] = start_sentinel(ports[i]);
    }
    for (int i = 0; i < SENTINELS; i++)
        wait_until(side_says(sentinels[i]->side, "slaves=1,sentinels=3", "INFO"));
    return 0;
}

static int end_group(void **state)
{
    (void)state;
    for (int i = 0; i < SENTINELS; i++)
        server_end(sentinels[i]);
    for (int i = 0; i < 2; i++)
        tls_server_end(data[i]);
    tls_end();
    return 0;
}

static const char *url_of(const char *options)
{
    static char url[256];

    snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/mymaster?grace=off&" TIMES "%s",
             ports[0], ports[1], ports[2], options);
    return url;
}

static const char *trusting(const char *authority)
{
    static char options[96];

    snprintf(options, sizeof options, "&tls=yes&cacert=%s/%s.crt", tls_folder, authority);
    return options;
}

static bool is_on_port(int port)
{
    char text[16];

    snprintf(text, sizeof text, "%d", port);
    for (int i = 0; i < SENTINELS; i++) {
        if (!side_says(sentinels[i]->side, text, "SENTINEL get-master-addr-by-name mymaster"))
            return false;
    }
    return true;
}

static void test_a_hold_and_a_waiter_follow_when_all_speak_tls(void **state)
{
    struct actor *holder = actor_start_at(url_of(trusting("ca")));
    struct actor *waiter = actor_start_at(url_of(trusting("ca")));
    long long token;

    (void)state;
    actor_do(holder, "0", "init st/hold lease=30000");
    actor_do(waiter, "0", "init st/hold lease=30000");
    actor_do(holder, "0", "lock st/hold");
    token = actor_value(holder, "token st/hold");
    actor_send(waiter, "lock st/hold");
    wait_until(waiters_at(data[0]->server->side, "st/hold") == 1);
    wait_until(side_has_replicas(data[0]->server->side, key_of("written", "st/hold"), 1));
    server_kill(data[0]->server);
    wait_until(is_on_port(data[1]->port));
    assert_true(actor_value(holder, "token st/hold") == token);
    assert_int_equal(actor_losses(holder), 0);
    actor_do(holder, "0", "unlock st/hold");
    actor_expect(waiter, "0");
    assert_true(actor_value(waiter, "token st/hold") > token);
    actor_end(holder);
    actor_end(waiter);
}

/* A sentinel that nobody vouches for leads nowhere. */
static void test_a_lock_waits_when_nobody_vouches_for_the_sentinels(void **state)
{
    struct actor *actor = actor_start_at(url_of(trusting("other")));

    (void)state;
    actor_do(actor, "ETIMEDOUT", "timedlock st/strange 500");
    actor_assert_words(actor, "name the issuer's certificate by cacert");
    actor_end(actor);
}

static void test_a_lock_waits_when_the_sentinels_want_tls(void **state)
{
    struct actor *actor = actor_start_at(url_of(""));

    (void)state;
    actor_do(actor, "ETIMEDOUT", "timedlock st/plain 500");
    actor_assert_words(actor, "if the server wants TLS, write rediss:// or tls=yes");
    actor_end(actor);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_hold_and_a_waiter_follow_when_all_speak_tls),
        cmocka_unit_test(test_a_lock_waits_when_nobody_vouches_for_the_sentinels),
        cmocka_unit_test(test_a_lock_waits_when_the_sentinels_want_tls),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, end_group);
}

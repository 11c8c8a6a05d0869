/* SPDX-License-Identifier: BSD-2-Clause */
/* A node of a Cluster by TLS that sends clients to a stranger: no password goes there. */
#include <stdio.h>
#include <string.h>

#include "../lib/testlib.h"
#include "../lib/tls.h"

static struct tls_server *node;
static struct actor *actor;

/* The only node, of all slots, with a login in the URL. */
static int begin(void **state)
{
    char url[256], bus[16];

    (void)state;
    tls_begin();
    snprintf(bus, sizeof bus, "%d", server_free_port());
    node = tls_server_start("server", "no", "--cluster-enabled", "yes", "--cluster-port", bus, "--tls-cluster", "yes",
                            NULL);
    side_text(node->server->side, "CLUSTER ADDSLOTSRANGE 0 16383");
    wait_until(side_says(node->server->side, "cluster_state:ok", "CLUSTER INFO"));
    snprintf(url, sizeof url,
             "redis+cluster://default:secret@127.0.0.1:%d?tls=yes&cacert=%s/ca.crt&grace=off&connect_timeout=500&"
             "command_timeout=500&switch=1000",
             node->port, tls_folder);
    actor = actor_start_at(url);
    return 0;
}

static int end(void **state)
{
    (void)state;
    actor_end(actor);
    tls_server_end(node);
    tls_end();
    return 0;
}

/* From now on the node names that port as its own, by which a map or a redirect sends clients there. */
static void send_to(int port)
{
    side_text(node->server->side, "CONFIG SET cluster-announce-tls-port %d", port);
}

static bool has_login(const struct server *server)
{
    return side_says(server->side, "cmdstat_auth", "INFO commandstats");
}

static void test_a_lock_is_acquired_over_tls(void **state)
{
    (void)state;
    actor_do(actor, "0", "lock ct/x");
    actor_do(actor, "0", "unlock ct/x");
    assert_true(has_login(node->server));
}

/* Issued by another authority, and for another name: neither is the node that the map has named. */
static void test_no_password_goes_to_a_stranger_with_a_certificate(void **state)
{
    static const char *const certificates[] = { "strange", "named" };

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct tls_server *stranger = tls_server_start(certificates[i], "no", NULL);

        send_to(stranger->port);
        actor_do(actor, "ETIMEDOUT", "timedlock ct/x 1000");
        actor_assert_words(actor, i ? "the server's certificate is for" : "name the issuer's certificate by cacert");
        assert_false(has_login(stranger->server));
        tls_server_end(stranger);
    }
    send_to(node->port);
    actor_do(actor, "0", "lock ct/x");
    actor_do(actor, "0", "unlock ct/x");
}

/* A redirect does not lead out of TLS. */
static void test_no_password_goes_to_a_stranger_without_tls(void **state)
{
    struct server *stranger = server_start_with(true, NULL);

    (void)state;
    send_to(stranger->port);
    actor_do(actor, "ETIMEDOUT", "timedlock ct/x 1000");
    assert_false(has_login(stranger));
    server_end(stranger);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_lock_is_acquired_over_tls, begin, end),
        cmocka_unit_test_setup_teardown(test_no_password_goes_to_a_stranger_with_a_certificate, begin, end),
        cmocka_unit_test_setup_teardown(test_no_password_goes_to_a_stranger_without_tls, begin, end),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver of MariaDB writes to a connection that is gone: no signal reaches the program, with TLS either. */
#include "../lib/testlib.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "../lib/tls.h"
#include "asker.h"
#include "mariaserver.h"
#include "stores/mariadb/open.h"
#include "stores/mariadb/parts.h"

static struct mariaserver *server;
static char url[256];

/* Drivers keep their URLs. */
static struct dm_reg_driver *open_mariadb(const char *version, const struct dm_reg_place *place,
                                          const struct dm_reg_client *client, char ret_reason[DM_REASON_ROOM])
{
    struct dm_url *parsed = dm_url_parse(place->url, ret_reason);

    if (!parsed)
        fail_msg("%s", ret_reason);
    return dm_mariadb_open(version, parsed, client, ret_reason);
}

static void write_to_nobody(const char *to)
{
    struct asker *asker = asker_start(to, NULL);
    const struct dm_maria *maria = (const struct dm_maria *)(const void *)asker->driver;
    struct dm_reg_item item = { .key = "n/nobody" };

    assert_return_code(shutdown(mysql_get_socket(maria->connection), SHUT_WR), errno);
    asker_post(asker, &item, 1, false);
    asker_until(asker, asker->down == 1);
    assert_outcome(&asker->asked[0], DM_REG_UNKNOWN);
    asker_until(asker, asker->ready == 2);
    assert_return_code(shutdown(mysql_get_socket(maria->connection), SHUT_WR), errno);
    asker_end(asker); /* says goodbye */
}

/* By default the signal would end this program */
static void test_no_signal_comes_when_the_connection_is_gone(void **state)
{
    sigset_t pending;

    (void)state;
    assert_ptr_not_equal(signal(SIGPIPE, SIG_DFL), SIG_ERR);
    write_to_nobody(server->url);
    write_to_nobody(url);
    assert_return_code(sigpending(&pending), errno);
    assert_false(sigismember(&pending, SIGPIPE));
}

static int setup(void **state)
{
    char certificate[64], key[64];

    (void)state;
    tls_begin();
    snprintf(certificate, sizeof certificate, "%s/server.crt", tls_folder);
    snprintf(key, sizeof key, "%s/server.key", tls_folder);
    server = mariaserver_start();
    snprintf(url, sizeof url, "%s?tls=yes&cacert=%s/ca.crt", mariaserver_use_tls(server, certificate, key), tls_folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mariaserver_end(server);
    tls_end();
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_signal_comes_when_the_connection_is_gone),
    };

    if (!mariaserver_is_possible()) {
        puts("1..0 # SKIP no MariaDB is installed (package mariadb-server-core)");
        return 0;
    }
    test_begin(argc, argv);
    asker_driver = open_mariadb;
    return cmocka_run_group_tests(tests, setup, teardown);
}

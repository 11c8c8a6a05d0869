/* SPDX-License-Identifier: BSD-2-Clause */
/* The suite of drivers, on the driver of MariaDB. */
#include "../lib/testlib.h"
#include "config.h"
#include "driver.h"
#include "mariaserver.h"
#include "stores/mariadb/open.h"

static struct mariaserver *server;
static struct dm_url *url;

static struct dm_reg_driver *open_driver(void *user, const struct dm_reg_client *client)
{
    char reason[DM_REASON_ROOM];

    (void)user;
    return dm_mariadb_open(PACKAGE_VERSION, url, client, reason);
}

static void cut(void *user)
{
    (void)user;
    mariaserver_cut(server);
}

/* As after a backup was restored, for which all clients were disconnected. */
static void change_data(void *user)
{
    mariaserver_sql(server, "UPDATE locks.dmutex_epoch SET id = UNHEX(REPLACE(UUID(), '-', ''))");
    cut(user);
}

int main(int argc, char **argv)
{
    struct driver_bed bed = { .name = "mariadb", .open = open_driver, .cut = cut, .change_data = change_data };
    char text[256], reason[DM_REASON_ROOM];
    int failures;

    if (!mariaserver_is_possible()) {
        puts("1..0 # SKIP no MariaDB is installed (package mariadb-server-core)");
        return 0;
    }
    test_begin(argc, argv);
    server = mariaserver_start();
    snprintf(text, sizeof text, "%s&connect_timeout=%d&command_timeout=%d", server->url, WAIT_LIMIT_MS, WAIT_LIMIT_MS);
    url = dm_url_parse(text, reason);
    if (!url)
        fail_msg("%s", reason);
    failures = driver_suite(&bed);
    dm_url_free(url);
    mariaserver_end(server);
    return failures;
}

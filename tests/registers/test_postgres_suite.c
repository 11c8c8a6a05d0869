/* SPDX-License-Identifier: BSD-2-Clause */
/* The suite of drivers, on the driver of PostgreSQL. */
#include "../lib/testlib.h"
#include "config.h"
#include "driver.h"
#include "pgserver.h"
#include "stores/postgres/open.h"

static struct pgserver *server;
static const char *url;

static struct dm_reg_driver *open_driver(void *user, const struct dm_reg_client *client)
{
    struct dm_reg_place place = {
        .url = url, .prefix = "dmutex", .connect_timeout_ms = WAIT_LIMIT_MS, .command_timeout_ms = WAIT_LIMIT_MS
    };
    char reason[DM_REASON_ROOM];
    struct dm_reg_driver *driver = dm_postgres_open(PACKAGE_VERSION, &place, client, reason);

    (void)user;
    if (!driver)
        fail_msg("%s", reason);
    return driver;
}

static void cut(void *user)
{
    (void)user;
    pgserver_sql(server, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dmutex'");
}

/* As after a backup was restored, for which all clients were disconnected. */
static void change_data(void *user)
{
    pgserver_sql(server, "UPDATE dmutex.epoch SET id = gen_random_uuid()");
    cut(user);
}

int main(int argc, char **argv)
{
    struct driver_bed bed = { .name = "postgres", .open = open_driver, .cut = cut, .change_data = change_data };
    int failures;

    if (!pgserver_is_possible()) {
        puts("1..0 # SKIP no PostgreSQL is installed (package postgresql)");
        return 0;
    }
    test_begin(argc, argv);
    server = pgserver_start();
    url = server->url;
    failures = driver_suite(&bed);
    pgserver_end(server);
    return failures;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* fork() with a store on PostgreSQL: the child must not end the parent's session there. */
#include "../lib/testlib.h"
#include "config.h"
#include "forks.h"
#include "pgserver.h"
#include "process.h"
#include "stores/postgres/open.h"

static struct pgserver *server;

static struct dm_reg_driver *open_driver(void *user, const struct dm_reg_client *client,
                                         char ret_reason[DM_REASON_ROOM])
{
    const struct dm_reg_place place = {
        .url = server->url, .prefix = "dmutex", .connect_timeout_ms = WAIT_LIMIT_MS, .command_timeout_ms = WAIT_LIMIT_MS
    };

    (void)user;
    return dm_postgres_open(PACKAGE_VERSION, &place, client, ret_reason);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(forks_parent_goes_on, process_begin, process_end),
        cmocka_unit_test_setup_teardown(forks_child_closes_descriptors, process_begin, process_end),
    };
    int failures;

    if (!pgserver_is_possible()) {
        puts("1..0 # SKIP no PostgreSQL is installed (package postgresql)");
        return 0;
    }
    test_begin(argc, argv);
    server = pgserver_start();
    process_driver = open_driver;
    failures = cmocka_run_group_tests(tests, NULL, NULL);
    pgserver_end(server);
    return failures;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the tests of the driver of PostgreSQL: a server for the group, and what they look at. */
#ifndef TESTS_REGISTERS_POSTGRES_H
#define TESTS_REGISTERS_POSTGRES_H

#include "../lib/testlib.h"

#include "asker.h"
#include "pgserver.h"
#include "stores/postgres/parts.h"

static struct pgserver *server;

/* Each test has a name of its own, and begins where it is absent. */
static struct dm_reg_version absent;

/* The asker's own process on the server. */
static int backend_of(const struct asker *asker)
{
    return PQbackendPID(((struct dm_postgres *)asker->driver)->connection);
}

/* A connection that keeps the row of a key locked until it ends its transaction. */
static PGconn *lock_row(const char *key)
{
    PGconn *connection = pgserver_connect(server, "postgres");

    pgserver_sql_by(connection, "BEGIN; SELECT 1 FROM dmutex.registers WHERE name = '%s' FOR UPDATE", key);
    return connection;
}

static int start_server(void **state)
{
    (void)state;
    server = pgserver_start();
    asker_end(asker_start(server->url, NULL)); /* makes the tables */
    return 0;
}

static int end_server(void **state)
{
    (void)state;
    pgserver_end(server);
    return 0;
}

/* Runs the tests of a program; its last line. */
#define run_on_postgres(tests, argc, argv)                                       \
    do {                                                                         \
        if (!pgserver_is_possible()) {                                           \
            puts("1..0 # SKIP no PostgreSQL is installed (package postgresql)"); \
            return 0;                                                            \
        }                                                                        \
        test_begin(argc, argv);                                                  \
        asker_driver = dm_postgres_open;                                         \
        return cmocka_run_group_tests(tests, start_server, end_server);          \
    } while (0)

#endif

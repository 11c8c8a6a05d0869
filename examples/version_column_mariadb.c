/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The column of version_column.c in a table of MariaDB, and what is different there.  A transaction of MariaDB sees
 * what its first read has seen until it ends, however often it reads.  So a writer who comes late must end the
 * transaction before it reads again; and a writer who locks a mutex must lock it before the first read, or the mutex
 * protects an old row.
 *
 *     version_column_mariadb DATABASE
 *
 * Finds the server, the user and the password where mariadb(1) does, in the group [client] of ~/.my.cnf.  Makes a table
 * in the database, and drops it at the end.  The mutex is where DMUTEX_URL says, which may be another server.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <mysql.h>

#include <dmutex/dmutex.h>

#define ER_CHECKREAD 1020 /* since MariaDB 11.6.2: the row is newer than the transaction's first read */

static dmutex_t desk = DMUTEX_INITIALIZER("shop/desk");

/* ---- the row ----------------------------------------------------------------------------- */

struct item {
    int stock, version;
};

static void give_up(MYSQL *db)
{
    fprintf(stderr, "version_column_mariadb: %s\n", mysql_error(db));
    exit(1);
}

static MYSQL *connect_to(const char *database)
{
    MYSQL *db = mysql_init(NULL);

    mysql_options(db, MYSQL_READ_DEFAULT_GROUP, "client");
    if (!mysql_real_connect(db, NULL, NULL, NULL, database, 0, NULL, 0))
        give_up(db);
    return db;
}

static void run(MYSQL *db, const char *statement)
{
    if (mysql_query(db, statement) != 0)
        give_up(db);
}

static struct item look(MYSQL *db)
{
    MYSQL_RES *result;
    MYSQL_ROW row;
    struct item item;

    run(db, "SELECT stock, version FROM version_column_item");
    if (!(result = mysql_store_result(db)) || !(row = mysql_fetch_row(result)))
        give_up(db);
    item = (struct item){ atoi(row[0]), atoi(row[1]) };
    mysql_free_result(result);
    return item;
}

/* Sells one of the items that were seen.  False if another writer was quicker: nothing has changed. */
static bool sell(MYSQL *db, struct item seen)
{
    char statement[160];

    snprintf(statement, sizeof statement, "UPDATE version_column_item SET stock = %d, version = %d WHERE version = %d",
             seen.stock - 1, seen.version + 1, seen.version);
    if (mysql_query(db, statement) == 0)
        return mysql_affected_rows(db) == 1;
    if (mysql_errno(db) != ER_CHECKREAD)
        give_up(db);
    return false;
}

/* ---- the mutex --------------------------------------------------------------------------- */

static void lock_desk(void)
{
    if (dmutex_lock(&desk) == 0)
        return;
    fprintf(stderr, "version_column_mariadb: %s\n", dmutex_strerror_np());
    exit(1);
}

/* ---- the story --------------------------------------------------------------------------- */

static int failures;

static void expect(bool is_true, const char *sentence)
{
    printf("%s %s\n", is_true ? "yes:" : "NO: ", sentence);
    fflush(stdout);
    failures += !is_true;
}

static void tell_of_two_writers(MYSQL *first, MYSQL *second)
{
    struct item seen_by_first = look(first), seen_by_second = look(second);

    expect(sell(first, seen_by_first), "the first writer sells");
    expect(!sell(second, seen_by_second), "the second one is told that it comes late");
    expect(sell(second, look(second)) && look(first).stock == 8, "it reads again, and no sale is lost");
}

static void tell_of_transactions(MYSQL *first, MYSQL *second)
{
    struct item seen;

    run(second, "START TRANSACTION");
    seen = look(second);
    sell(first, look(first));
    expect(look(second).version == seen.version, "a transaction reads again, and sees the old row");
    expect(!sell(second, look(second)), "so it comes late each time");
    run(second, "ROLLBACK");
    run(second, "START TRANSACTION");
    expect(sell(second, look(second)), "the next transaction sees the new row, and sells");
    run(second, "COMMIT");
    expect(look(first).stock == 6, "and no sale is lost");
}

static void tell_of_mutex(MYSQL *first, MYSQL *second)
{
    struct item seen;

    run(second, "START TRANSACTION");
    seen = look(second);

    lock_desk();
    sell(first, look(first));
    dmutex_unlock(&desk);

    lock_desk();
    expect(look(second).version == seen.version, "a transaction that read before the lock still sees the old row");
    run(second, "ROLLBACK");
    run(second, "START TRANSACTION");
    expect(sell(second, look(second)), "one that begins after the lock sees the new row, and sells at once");
    run(second, "COMMIT");
    dmutex_unlock(&desk);
    expect(look(first).stock == 4, "and no sale is lost");
}

int main(int argc, char **argv)
{
    MYSQL *first, *second;

    if (argc != 2)
        return fprintf(stderr, "usage: version_column_mariadb DATABASE\n"), 2;
    first = connect_to(argv[1]);
    second = connect_to(argv[1]);
    run(first, "CREATE TABLE version_column_item (stock INT, version INT) ENGINE=InnoDB");
    run(first, "INSERT INTO version_column_item VALUES (10, 1)");
    tell_of_two_writers(first, second);
    tell_of_transactions(first, second);
    tell_of_mutex(first, second);
    run(first, "DROP TABLE version_column_item");
    mysql_close(second);
    mysql_close(first);
    return failures ? 1 : 0;
}

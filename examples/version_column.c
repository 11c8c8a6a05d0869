/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The optimistic lock, and where it ends: a column that counts the versions of a row.  A writer names the version that
 * it has read; if another writer was quicker, the statement changes no row, and the writer reads again.  That keeps the
 * row right without any lock.  But whatever a writer does outside the row before its statement, it has done in vain if
 * the statement comes late: here, printing a label for each item that is sold.
 *
 * Needs PostgreSQL to be installed, but not running: a private server keeps the row and, for the last part, the mutex.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libpq-fe.h>

#include <dmutex/dmutex.h>
#include <dmutex/testing.h>

enum { CLERKS = 4, SALES_OF_A_CLERK = 25, SALES = CLERKS * SALES_OF_A_CLERK };

static dmutex_t desk = DMUTEX_INITIALIZER("shop/desk");

/* What the clerks have done, in memory that they share. */
static struct {
    int labels;   /* printed */
    int too_late; /* statements that changed no row */
} * done;

/* ---- the row ----------------------------------------------------------------------------- */

struct item {
    int stock, version;
};

/* libpq does not know the library's own options, which come last. */
static PGconn *connect_to(const dmutex_test_server_t *server)
{
    char *url = strdup(dmutex_test_server_url(server));
    char *options = strstr(url, "&dmutex.");
    PGconn *db;

    if (options)
        *options = '\0';
    db = PQconnectdb(url);
    free(url);
    if (PQstatus(db) == CONNECTION_OK)
        return db;
    fprintf(stderr, "version_column: %s", PQerrorMessage(db));
    exit(1);
}

/* The result belongs to the caller. */
static PGresult *run(PGconn *db, const char *statement)
{
    PGresult *result = PQexec(db, statement);
    ExecStatusType status = PQresultStatus(result);

    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
        return result;
    fprintf(stderr, "version_column: %s", PQerrorMessage(db));
    exit(1);
}

static void fill(PGconn *db, int stock)
{
    char statement[80];

    snprintf(statement, sizeof statement, "UPDATE item SET stock = %d, version = 1", stock);
    PQclear(run(db, statement));
}

static struct item look(PGconn *db)
{
    PGresult *result = run(db, "SELECT stock, version FROM item");
    struct item item = { atoi(PQgetvalue(result, 0, 0)), atoi(PQgetvalue(result, 0, 1)) };

    PQclear(result);
    return item;
}

/* Sells one of the items that were seen, whatever others have done since. */
static void sell_blindly(PGconn *db, struct item seen)
{
    char statement[80];

    snprintf(statement, sizeof statement, "UPDATE item SET stock = %d", seen.stock - 1);
    PQclear(run(db, statement));
}

/* Sells one of the items that were seen.  False if another writer was quicker: nothing has changed. */
static bool sell(PGconn *db, struct item seen)
{
    char statement[160];
    PGresult *result;
    bool has_sold;

    snprintf(statement, sizeof statement, "UPDATE item SET stock = %d, version = %d WHERE version = %d", seen.stock - 1,
             seen.version + 1, seen.version);
    result = run(db, statement);
    has_sold = atoi(PQcmdTuples(result)) == 1;
    PQclear(result);
    return has_sold;
}

/* ---- the clerks -------------------------------------------------------------------------- */

static void print_label(void)
{
    __atomic_add_fetch(&done->labels, 1, __ATOMIC_RELAXED);
}

static void serve_customer(PGconn *db)
{
    for (;;) {
        struct item seen = look(db);

        print_label();
        if (sell(db, seen))
            return;
        __atomic_add_fetch(&done->too_late, 1, __ATOMIC_RELAXED);
    }
}

static int be_clerk(const dmutex_test_server_t *server, bool with_mutex)
{
    PGconn *db = connect_to(server);

    for (int i = 0; i < SALES_OF_A_CLERK; i++) {
        if (with_mutex && dmutex_lock(&desk) != 0)
            return fprintf(stderr, "version_column: %s\n", dmutex_strerror_np()), 1;
        serve_customer(db);
        if (with_mutex)
            dmutex_unlock(&desk);
    }
    PQfinish(db);
    return 0;
}

/* True if all clerks have sold what they should. */
static bool open_shop(const dmutex_test_server_t *server, bool with_mutex)
{
    bool is_well = true;
    int status;

    done->labels = done->too_late = 0;
    for (int i = 0; i < CLERKS; i++)
        if (fork() == 0)
            exit(be_clerk(server, with_mutex));
    while (wait(&status) > 0)
        is_well = is_well && status == 0;
    return is_well;
}

/* ---- the story --------------------------------------------------------------------------- */

static int failures;

static void expect(bool is_true, const char *sentence)
{
    printf("%s %s\n", is_true ? "yes:" : "NO: ", sentence);
    fflush(stdout);
    failures += !is_true;
}

static void tell_of_two_writers(const dmutex_test_server_t *server)
{
    PGconn *first = connect_to(server), *second = connect_to(server);
    struct item seen_by_first, seen_by_second;

    PQclear(run(first, "CREATE TABLE item (stock int, version int); INSERT INTO item VALUES (10, 1)"));
    seen_by_first = look(first);
    seen_by_second = look(second);
    sell_blindly(first, seen_by_first);
    sell_blindly(second, seen_by_second);
    expect(look(first).stock == 9, "without a version, one of two sales is lost");

    fill(first, 10);
    seen_by_first = look(first);
    seen_by_second = look(second);
    expect(sell(first, seen_by_first), "with a version, the first writer sells");
    expect(!sell(second, seen_by_second), "the second one is told that it comes late");
    expect(sell(second, look(second)) && look(first).stock == 8, "it reads again, and no sale is lost");
    PQfinish(first);
    PQfinish(second);
}

static void tell_of_labels(const dmutex_test_server_t *server)
{
    PGconn *db = connect_to(server);

    fill(db, SALES);
    expect(open_shop(server, false) && look(db).stock == 0, "four clerks at once: the stock is exact");
    printf("     but they printed %d labels for %d sales\n", done->labels, SALES);
    expect(done->labels == SALES + done->too_late, "each statement that came late left a label too many");

    fill(db, SALES);
    expect(open_shop(server, true) && look(db).stock == 0, "four clerks with the mutex: the stock is exact");
    expect(done->labels == SALES && done->too_late == 0, "and each sale has one label");
    PQfinish(db);
}

int main(void)
{
    dmutex_test_server_t *server;

    done = mmap(NULL, sizeof *done, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (done == MAP_FAILED)
        return 1;
    if (dmutex_test_server_start_postgres(&server) != 0)
        return fprintf(stderr, "version_column: %s\n", dmutex_strerror_np()), 1;
    tell_of_two_writers(server);
    tell_of_labels(server);
    dmutex_test_server_stop(server);
    return failures ? 1 : 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A private PostgreSQL, and the bare locks on it, by libpq's blocking calls and prepared statements.  Commits wait for
 * the disk, or, in the second store, do not.
 */
#include <libpq-fe.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "server.h"
#include "spawn/pgserver.h"
#include "store.h"

/* ---- connections ----------------------------------------------------------------- */

static const char *commits_of(const struct bench_server *server)
{
    return server->store == &bench_postgres_async ? "off" : "on";
}

static PGconn *try_to_connect(const struct bench_server *server)
{
    char info[256];

    snprintf(info, sizeof info, "host=%s user=postgres dbname=postgres options='-c synchronous_commit=%s'",
             server->directory, commits_of(server));
    return PQconnectdb(info);
}

static PGresult *checked(PGconn *connection, PGresult *result)
{
    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
        bench_die(PQerrorMessage(connection));
    return result;
}

static void ignore(void *user, const char *notice)
{
    (void)user, (void)notice;
}

static void execute(PGconn *connection, const char *sql)
{
    PQclear(checked(connection, PQexec(connection, sql)));
}

static PGconn *connect_to(const struct bench_server *server)
{
    PGconn *connection = try_to_connect(server);

    if (PQstatus(connection) != CONNECTION_OK)
        bench_die(PQerrorMessage(connection));
    PQsetErrorVerbosity(connection, PQERRORS_TERSE);
    PQsetNoticeProcessor(connection, ignore, NULL);
    return connection;
}

static double ask_number(PGconn *connection, const char *sql)
{
    PGresult *result = checked(connection, PQexec(connection, sql));
    double number = atof(PQgetvalue(result, 0, 0));

    PQclear(result);
    return number;
}

/* ---- bare locks ------------------------------------------------------------------ */

/* One row is the lock.  The value is as long as the library's usual one, and the table is made like the library's. */
struct row {
    PGconn *connection;
    char name[64], owner[16];
};

static const char make_table[] =
    "CREATE TABLE IF NOT EXISTS bare (name text PRIMARY KEY, value bytea NOT NULL DEFAULT decode(repeat('00', 300), "
    "'hex'), holder text, queue text[] NOT NULL DEFAULT '{}', taker text, until timestamptz NOT NULL DEFAULT "
    "'-infinity') WITH (fillfactor = 50)";
static const char make_row[] = "INSERT INTO bare (name) VALUES ($1) ON CONFLICT DO NOTHING";

/* $1 name, $2 owner. */
static const char update[] = "UPDATE bare SET value = decode(repeat('01', 300), 'hex'), taker = $2 WHERE name = $1";
static const char take[] =
    "UPDATE bare SET taker = $2, until = clock_timestamp() + interval '%u ms' WHERE name = $1 AND "
    "until < clock_timestamp()";
static const char leave[] = "UPDATE bare SET until = '-infinity' WHERE name = $1 AND taker = $2";
static const char line_up[] =
    "UPDATE bare SET queue = CASE WHEN holder IS NULL THEN queue ELSE queue || $2 END, holder "
    "= COALESCE(holder, $2) WHERE name = $1 RETURNING holder = $2";
static const char hand_on[] =
    "WITH given AS (UPDATE bare SET holder = queue[1], queue = queue[2:] WHERE name = $1 AND holder = $2 RETURNING "
    "holder) SELECT pg_notify('bare_' || holder, '') FROM given WHERE holder IS NOT NULL";
static const char advise[] = "SELECT pg_advisory_lock(hashtextextended($1, 0)), $2";
static const char cease[] = "SELECT pg_advisory_unlock(hashtextextended($1, 0)), $2";

static PGresult *run(struct row *row, const char *statement)
{
    const char *words[] = { row->name, row->owner };

    return checked(row->connection, PQexecPrepared(row->connection, statement, 2, words, NULL, NULL, 0));
}

static void prepare(PGconn *connection, const char *lock, const char *unlock)
{
    static const Oid texts[] = { 25, 25 };

    PQclear(checked(connection, PQprepare(connection, "lock", lock, 2, texts)));
    PQclear(checked(connection, PQprepare(connection, "unlock", unlock, 2, texts)));
}

static struct row *open_row(const struct bench_server *server, const char *name, int owner, const struct row *sibling,
                            const char *lock, const char *unlock)
{
    struct row *row = calloc(1, sizeof *row);

    if (!row)
        bench_die("no memory");
    snprintf(row->name, sizeof row->name, "%s", name);
    snprintf(row->owner, sizeof row->owner, "%d", owner);
    row->connection = sibling ? sibling->connection : connect_to(server);
    if (!sibling) {
        PQclear(PQexec(row->connection, make_table)); /* fails if somebody else makes it now, and then it is there */
        prepare(row->connection, lock, unlock);
    }
    PQclear(checked(row->connection,
                    PQexecParams(row->connection, make_row, 1, NULL, (const char *[]){ row->name }, NULL, NULL, 0)));
    return row;
}

static void *open_pair(const struct bench_server *server, const char *name, int owner, void *sibling)
{
    return open_row(server, name, owner, sibling, update, update);
}

static void *open_polled(const struct bench_server *server, const char *name, int owner, void *sibling)
{
    char text[256];

    snprintf(text, sizeof text, take, server->lease_ms);
    return open_row(server, name, owner, sibling, text, leave);
}

static void *open_advisory(const struct bench_server *server, const char *name, int owner, void *sibling)
{
    return open_row(server, name, owner, sibling, advise, cease);
}

static void *open_grant(const struct bench_server *server, const char *name, int owner, void *sibling)
{
    struct row *row = open_row(server, name, owner, sibling, line_up, hand_on);
    char listen[32];

    snprintf(listen, sizeof listen, "LISTEN bare_%s", row->owner);
    execute(row->connection, listen);
    return row;
}

static void lock_pair(void *row)
{
    PQclear(run(row, "lock"));
}

static void unlock(void *row)
{
    PQclear(run(row, "unlock"));
}

static bool take_row(struct row *row)
{
    PGresult *result = run(row, "lock");
    bool is_taken = strcmp(PQcmdTuples(result), "1") == 0;

    PQclear(result);
    return is_taken;
}

static void lock_polled(void *row)
{
    while (!take_row(row))
        bench_pause(0.001);
}

/* Three statements in one round trip. */
static void lock_session(void *lock)
{
    const struct row *row = lock;
    char text[256];

    snprintf(text, sizeof text,
             "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SELECT "
             "pg_advisory_lock(hashtextextended('%s', 0))",
             row->name);
    execute(row->connection, text);
}

static void await_notice(PGconn *connection)
{
    struct pollfd waited = { .fd = PQsocket(connection), .events = POLLIN };
    PGnotify *notice;

    while ((notice = PQnotifies(connection)) == NULL) {
        poll(&waited, 1, -1);
        if (!PQconsumeInput(connection))
            bench_die(PQerrorMessage(connection));
    }
    PQfreemem(notice);
}

static void lock_grant(void *lock)
{
    struct row *row = lock;
    PGresult *result = run(row, "lock");
    bool is_free = strcmp(PQgetvalue(result, 0, 0), "t") == 0;

    PQclear(result);
    if (!is_free)
        await_notice(row->connection);
}

/* ---- the server ------------------------------------------------------------------ */

/* Signals of the parent's death do not survive another user; SIGQUIT ends the server's other processes, too. */
static void serve(const struct bench_server *server, int core)
{
    char command[512], data[80], folder[96];
    struct dm_pgserver programs;

    if (dm_pgserver_find(&programs, server->directory) || dm_pgserver_become_user(&programs, server->directory))
        bench_die("PostgreSQL cannot run: are its programs installed, and is there a user postgres or nobody?");
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    bench_pin(0, core);
    snprintf(data, sizeof data, "%s/data", server->directory);
    snprintf(folder, sizeof folder, "unix_socket_directories=%s", server->directory);
    snprintf(command, sizeof command, "cd / && '%s' -D %s -A trust -U postgres -E UTF8 --no-locale >%s/log 2>&1",
             programs.initdb, data, server->directory);
    if (system(command) != 0 || chdir(server->directory) < 0 || !freopen("log", "a", stdout) || dup2(1, 2) < 0)
        bench_die("initdb has failed");
    execl(programs.postgres, programs.postgres, "-D", data, "-c", "listen_addresses=", "-c", folder, "-c",
          "max_connections=600", (char *)NULL);
}

static void await(const struct bench_server *server)
{
    PGconn *connection;

    while (PQstatus(connection = try_to_connect(server)) != CONNECTION_OK) {
        PQfinish(connection);
        if (waitpid(server->pid, NULL, WNOHANG) != 0)
            bench_die("PostgreSQL does not start");
        bench_pause(0.02);
    }
    PQfinish(connection);
}

static void write_url(struct bench_server *server)
{
    snprintf(server->url, sizeof server->url,
             "postgresql:///postgres?host=%s&user=postgres&options=-c%%20synchronous_commit%%3D%s&dmutex.grace=off",
             server->directory, commits_of(server));
}

static void write_version(const struct bench_server *server, char *buf, size_t size)
{
    PGconn *connection = connect_to(server);

    snprintf(buf, size, "PostgreSQL %s", PQparameterStatus(connection, "server_version"));
    PQfinish(connection);
}

/*
 * Transactions that have written or notified: each takes a number, and the next number is known at once.  The server's
 * own statistics come up to a second late.
 */
static void count(const struct bench_server *server, struct bench_counts *ret_counts)
{
    PGconn *connection = connect_to(server);

    ret_counts->commands = ask_number(connection, "SELECT pg_snapshot_xmax(pg_current_snapshot())");
    ret_counts->messages = ret_counts->server_us = NAN;
    PQfinish(connection);
}

/* A session counts what it has done when it ends, at the latest. */
static double rows_written(const struct bench_server *server)
{
    PGconn *connection = connect_to(server);
    double rows;

    while (ask_number(connection, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'") > 1)
        bench_pause(0.002);
    rows = ask_number(connection, "SELECT COALESCE(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) FROM pg_stat_user_tables "
                                  "WHERE relname IN ('registers', 'bare')");
    PQfinish(connection);
    return rows;
}

static double table_bytes(const struct bench_server *server)
{
    PGconn *connection = connect_to(server);
    double bytes = ask_number(connection, "SELECT pg_total_relation_size('dmutex.registers')");

    PQfinish(connection);
    return bytes;
}

#define STORE(own_name)                                                                                         \
    {                                                                                                           \
        .name = (own_name), .commands = "writing transactions",                                                 \
        .bare = { [BARE_PAIR] = { "two updates", open_pair, lock_pair, unlock },                                \
                  [BARE_POLL] = { "row lock", open_polled, lock_polled, unlock },                               \
                  [BARE_GRANT] = { "bare grant", open_grant, lock_grant, unlock },                              \
                  [BARE_ADVISORY] = { "advisory lock", open_advisory, lock_pair, unlock },                      \
                  [BARE_SESSION] = { "session lock", open_advisory, lock_session, unlock } },                   \
        .serve = serve, .await = await, .write_url = write_url, .write_version = write_version, .count = count, \
        .rows_written = rows_written, .table_bytes = table_bytes                                                \
    }

const struct bench_store bench_postgres = STORE("postgres");
const struct bench_store bench_postgres_async = STORE("postgres-async");

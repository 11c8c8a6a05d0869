/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What dmutex doctor says of PostgreSQL.  The driver connects as it does for a lock, so that what it refuses is told in
 * its own words; a plain connection asks what locks depend on.  Blocks.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/poll.h"
#include "base/units.h"
#include "config.h"
#include "registers/trial.h"
#include "stores/postgres/parts.h"

#define SNAPSHOT_OLD 10000 /* transactions, as in greeting.c */
#define CONNECTIONS_FEW 10 /* free ones */
#define TRIPS 9
#define TEXT_ROOM 512

struct examination {
    const struct dm_pg_report *report;
    struct dm_pg_settings settings;
    PGconn *connection;
    char reason[TEXT_ROOM];
};

static void find(struct examination *examination, int grade, const char *check, const char *advice, const char *format,
                 ...) __attribute__((format(printf, 5, 6)));

static void find(struct examination *examination, int grade, const char *check, const char *advice, const char *format,
                 ...)
{
    char text[TEXT_ROOM];
    va_list values;

    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    examination->report->find(examination->report->user, grade, check, text, advice);
}

/* ---- the connection ---------------------------------------------------------------------- */

/* False with the finding, and *ret_end for the caller. */
static bool connect(struct examination *examination, enum dm_pg_end *ret_end)
{
    struct dm_pg_connect *way = dm_pg_connect_begin(&examination->settings, 0);
    char reason[DM_REG_REASON_ROOM];
    bool is_crowded, is_final;
    struct pollfd polled;

    if (!way) {
        *ret_end = DM_PG_UNREACHABLE;
        find(examination, DM_PG_FAILS, "server", "", "out of memory");
        return false;
    }
    polled = (struct pollfd){ .fd = dm_pg_connect_fd(way), .events = POLLIN };
    while (!dm_pg_connect_take(way, &examination->connection))
        dm_poll(&polled, 1, DM_NS_PER_S);
    if (examination->connection && PQstatus(examination->connection) == CONNECTION_OK)
        return true;
    is_final = dm_pg_explain_connect(examination->connection, examination->settings.place, reason, &is_crowded);
    *ret_end = is_final ? DM_PG_NO_LOGIN : DM_PG_UNREACHABLE;
    find(examination, DM_PG_FAILS, is_final ? "login" : "server",
         is_final ? "" : "look at DMUTEX_URL or dmutex.conf, at the server, and at the network between", "%s", reason);
    return false;
}

static PGresult *ask(struct examination *examination, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* NULL with a finding. */
static PGresult *ask(struct examination *examination, const char *format, ...)
{
    char reason[DM_REG_REASON_ROOM], *statement;
    PGresult *result;
    va_list values;
    int length;

    va_start(values, format);
    length = vasprintf(&statement, format, values);
    va_end(values);
    if (length < 0)
        return NULL;
    result = PQexec(examination->connection, statement);
    free(statement);
    if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) > 0)
        return result;
    dm_pg_explain(result, examination->settings.schema, reason);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        find(examination, DM_PG_WARNS, "server", "", "a check is left out: %s", reason);
    PQclear(result);
    return NULL;
}

static bool is_on(const char *value)
{
    return strcmp(value, "on") == 0 || strcmp(value, "t") == 0;
}

/* ---- the driver -------------------------------------------------------------------------- */

static void pass_warning(void *user, const char *text)
{
    find(user, DM_PG_WARNS, "driver", "", "%s", text);
}

static bool try_driver(struct examination *examination, const struct dm_reg_place *place)
{
    struct dm_reg_trial trial = { .on_warning = pass_warning, .user = examination };
    const struct dm_reg_client client = dm_reg_trial_client(&trial);
    struct dm_reg_driver *driver = dm_postgres_open(PACKAGE_VERSION, place, &client, trial.reason);

    if (driver)
        dm_reg_trial_run(&trial, driver,
                         dm_clock_boot_ns() + (place->connect_timeout_ms + place->command_timeout_ms) * DM_NS_PER_MS);
    if (trial.is_ready)
        find(examination, DM_PG_OK, "tables", "", "the tables of the schema \"%s\" can be used",
             examination->settings.schema);
    else
        find(examination, DM_PG_FAILS, "tables", "", "%s",
             trial.reason[0] ? trial.reason : "the server does not answer in time");
    return trial.is_ready;
}

/* The driver would make missing tables, and a look must not. */
static bool look_at_tables(struct examination *examination, const struct dm_reg_place *place)
{
    PGresult *result;
    bool are_there, may_make;

    result = ask(examination,
                 "SELECT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = "
                 "c.relnamespace WHERE n.nspname = '%s' AND c.relname = 'registers'), "
                 "pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE'), "
                 "pg_catalog.pg_is_in_recovery()",
                 examination->settings.schema);
    if (!result)
        return false;
    are_there = is_on(PQgetvalue(result, 0, 0));
    may_make = is_on(PQgetvalue(result, 0, 1));
    if (is_on(PQgetvalue(result, 0, 2)))
        are_there = true; /* the driver has the sentence about a standby */
    PQclear(result);
    if (are_there)
        return try_driver(examination, place);
    find(examination, may_make ? DM_PG_OK : DM_PG_FAILS, "tables",
         may_make ? "" : "let an admin run what \"dmutex sql postgresql ROLE\" prints",
         may_make ? "there are none in the schema \"%s\" yet: the first lock makes them"
                  : "there are none in the schema \"%s\", and this role may not make them",
         examination->settings.schema);
    return may_make;
}

/* ---- what locks depend on ---------------------------------------------------------------- */

static const char facts_form[] =
    "SELECT pg_catalog.current_setting('server_version'), pg_catalog.current_setting('fsync'), "
    "pg_catalog.current_setting('synchronous_commit'), pg_catalog.current_setting('full_page_writes'), "
    "pg_catalog.current_setting('synchronous_standby_names'), (SELECT count(*) FROM pg_catalog.pg_stat_replication), "
    "pg_catalog.current_setting('max_connections')::int - "
    "pg_catalog.current_setting('superuser_reserved_connections')::int, "
    "(SELECT pg_catalog.sum(numbackends) FROM pg_catalog.pg_stat_database)::int, "
    "(SELECT datconnlimit FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()), "
    "(SELECT rolconnlimit FROM pg_catalog.pg_roles WHERE rolname = current_user), "
    "pg_catalog.current_setting('autovacuum'), "
    "(SELECT pg_catalog.bool_and(relpersistence = 'p') FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON "
    "n.oid = c.relnamespace WHERE n.nspname = '%s' AND c.relname IN ('registers', 'epoch')), "
    "(SELECT pg_catalog.bool_or(relrowsecurity OR relhasrules OR relhastriggers) FROM pg_catalog.pg_class c JOIN "
    "pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = '%s' AND c.relname IN "
    "('registers', 'epoch')), pg_catalog.pg_notification_queue_usage()::numeric(4,2)";

enum {
    FACT_VERSION,
    FACT_FSYNC,
    FACT_COMMIT,
    FACT_PAGES,
    FACT_STANDBY_NAMES,
    FACT_STANDBYS,
    FACT_CONNECTIONS,
    FACT_CONNECTED,
    FACT_DATABASE_LIMIT,
    FACT_ROLE_LIMIT,
    FACT_AUTOVACUUM,
    FACT_LOGGED,
    FACT_CHANGED,
    FACT_QUEUE
};

static void judge_durability(struct examination *examination, const PGresult *facts, struct dm_pg_facts *ret_facts)
{
    const char *commit = PQgetvalue(facts, 0, FACT_COMMIT);
    bool is_synced = is_on(PQgetvalue(facts, 0, FACT_FSYNC)) && is_on(PQgetvalue(facts, 0, FACT_PAGES));
    bool is_waited_for = strcmp(commit, "off") != 0;
    bool is_logged = PQgetisnull(facts, 0, FACT_LOGGED) || is_on(PQgetvalue(facts, 0, FACT_LOGGED));

    ret_facts->survives_crash = is_synced && is_waited_for && is_logged;
    if (!is_synced)
        find(examination, DM_PG_WARNS, "durability", "set fsync = on and full_page_writes = on",
             "fsync or full_page_writes is off: a crash may lose or spoil all data; locks then begin anew, after a "
             "lease");
    else if (!is_logged)
        find(examination, DM_PG_WARNS, "durability", "ALTER TABLE … SET LOGGED, for both tables",
             "the tables are unlogged: a crash empties them; locks then begin anew, after a lease");
    else if (!is_waited_for)
        find(examination, DM_PG_WARNS, "durability",
             "ALTER DATABASE … SET synchronous_commit = on; all processes must have the same setting",
             "synchronous_commit is off: a crash may lose the last locks; then a lease passes before new ones are "
             "granted");
    else
        find(examination, DM_PG_OK, "durability", "", "locks survive a crash: synchronous_commit is %s", commit);
}

static void judge_standbys(struct examination *examination, const PGresult *facts)
{
    const char *commit = PQgetvalue(facts, 0, FACT_COMMIT), *names = PQgetvalue(facts, 0, FACT_STANDBY_NAMES);
    int count = atoi(PQgetvalue(facts, 0, FACT_STANDBYS));
    bool is_waited_for = *names && strcmp(commit, "off") != 0 && strcmp(commit, "local") != 0;

    if (is_waited_for && count == 0)
        find(examination, DM_PG_WARNS, "standbys", "start the standby, or change synchronous_standby_names",
             "no standby is connected, and commits wait for one of synchronous_standby_names: locks wait, too");
    else if (is_waited_for)
        find(examination, DM_PG_OK, "standbys", "", "a promotion loses no lock: commits wait for standbys");
    else if (count)
        find(examination, DM_PG_WARNS, "standbys",
             "name them in synchronous_standby_names; in any case end the old primary before a promotion",
             "commits do not wait for the %d connected: a promotion may lose the last locks, and then a lease passes "
             "before new ones are granted",
             count);
    else
        find(examination, DM_PG_OK, "standbys", "", "none is connected");
}

static void judge_connections(struct examination *examination, const PGresult *facts)
{
    int most = atoi(PQgetvalue(facts, 0, FACT_CONNECTIONS)), used = atoi(PQgetvalue(facts, 0, FACT_CONNECTED));
    int of_database = atoi(PQgetvalue(facts, 0, FACT_DATABASE_LIMIT)),
        of_role = atoi(PQgetvalue(facts, 0, FACT_ROLE_LIMIT));
    char limits[80] = "";

    if (of_database >= 0)
        snprintf(limits, sizeof limits, "; the database's limit is %d", of_database);
    if (of_role >= 0)
        snprintf(limits + strlen(limits), sizeof limits - strlen(limits), "; the role's limit is %d", of_role);
    if (most - used < CONNECTIONS_FEW)
        find(examination, DM_PG_WARNS, "connections", "raise max_connections: each process that locks needs one",
             "%d of %d are in use%s", used, most, limits);
    else
        find(examination, DM_PG_OK, "connections", "", "%d of %d are in use%s; each process that locks needs one", used,
             most, limits);
}

static void judge_upkeep(struct examination *examination, const PGresult *facts)
{
    if (!is_on(PQgetvalue(facts, 0, FACT_AUTOVACUUM)))
        find(examination, DM_PG_WARNS, "upkeep", "set autovacuum = on",
             "autovacuum is off: the server stops when its transaction numbers are used up");
    if (!PQgetisnull(facts, 0, FACT_CHANGED) && is_on(PQgetvalue(facts, 0, FACT_CHANGED)))
        find(examination, DM_PG_WARNS, "upkeep", "drop them",
             "the tables have triggers, rules or row security, which may change or hide what locks write");
    if (strtod(PQgetvalue(facts, 0, FACT_QUEUE), NULL) > 0.5)
        find(examination, DM_PG_WARNS, "notices", "end the session that listens and stays in a transaction",
             "the server's queue of notices is more than half full: when it is full, waiters wake up late");
}

static void look_at_snapshots(struct examination *examination)
{
    PGresult *result = ask(examination, "SELECT COALESCE(pg_catalog.max(pg_catalog.age(backend_xmin)), 0) FROM "
                                        "pg_catalog.pg_stat_activity WHERE datname = pg_catalog.current_database()");

    if (!result)
        return;
    if (atoi(PQgetvalue(result, 0, 0)) >= SNAPSHOT_OLD)
        find(examination, DM_PG_WARNS, "snapshots", "end the session: pg_stat_activity.backend_xmin tells which",
             "a session keeps a snapshot that is %s transactions old, which makes locks slow",
             PQgetvalue(result, 0, 0));
    PQclear(result);
}

static int compare_times(const void *one, const void *other)
{
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;

    return (a > b) - (a < b);
}

static void measure(struct examination *examination)
{
    int64_t times[TRIPS];

    for (int i = 0; i < TRIPS; i++) {
        int64_t before_ns = dm_clock_boot_ns();

        PQclear(PQexec(examination->connection, "SELECT 1"));
        times[i] = dm_clock_boot_ns() - before_ns;
    }
    qsort(times, TRIPS, sizeof times[0], compare_times);
    find(examination, DM_PG_OK, "round trip", "", "%.2f ms", (double)times[TRIPS / 2] / 1e6);
}

static void look_at_facts(struct examination *examination, struct dm_pg_facts *ret_facts)
{
    PGresult *facts = ask(examination, facts_form, examination->settings.schema, examination->settings.schema);

    if (!facts)
        return;
    judge_durability(examination, facts, ret_facts);
    judge_standbys(examination, facts);
    judge_connections(examination, facts);
    judge_upkeep(examination, facts);
    PQclear(facts);
}

/* A pooler's answers are not believed: they may be another client's. */
static bool is_pooled(struct examination *examination)
{
    PGresult *result = ask(examination, "SELECT pg_catalog.pg_backend_pid()");
    bool is = result && atoi(PQgetvalue(result, 0, 0)) != PQbackendPID(examination->connection);

    PQclear(result);
    if (is)
        find(examination, DM_PG_FAILS, "server", "name PostgreSQL itself in the URL",
             "a pooler such as pgbouncer answers: it passes no notices on, and may mix up answers");
    return is;
}

__attribute__((visibility("default"))) enum dm_pg_end dm_postgres_examine(const char *version,
                                                                          const struct dm_reg_place *place,
                                                                          const struct dm_pg_report *report,
                                                                          struct dm_pg_facts *ret_facts)
{
    struct examination examination = { .report = report };
    enum dm_pg_end end = DM_PG_EXAMINED;

    if (strcmp(version, PACKAGE_VERSION) != 0) {
        find(&examination, DM_PG_FAILS, "module", "install packages of one version",
             "the module of PostgreSQL is of version %s, and dmutex of %.20s", PACKAGE_VERSION, version);
        return DM_PG_UNREACHABLE;
    }
    if (!dm_pg_settings_read(&examination.settings, place, examination.reason)) {
        find(&examination, DM_PG_FAILS, "url", "", "%s", examination.reason);
        return DM_PG_UNREACHABLE;
    }
    if (connect(&examination, &end)) {
        find(&examination, DM_PG_OK, "server", "", "%s answers%s: version %s", examination.settings.place,
             PQsslInUse(examination.connection) ? ", by TLS" : "",
             PQparameterStatus(examination.connection, "server_version"));
        if (!is_pooled(&examination)) {
            ret_facts->is_usable = look_at_tables(&examination, place);
            look_at_facts(&examination, ret_facts);
            look_at_snapshots(&examination);
            measure(&examination);
        }
    }
    PQfinish(examination.connection);
    dm_pg_settings_free(&examination.settings);
    return end;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a new connection needs before it can be used: which server and data these are, the tables, settings of the
 * session, and notices.
 *
 * Names of functions and operators are qualified in all statements of locks: the search_path belongs to the role.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/minmax.h"
#include "stores/postgres/parts.h"
#include "stores/postgres/schema.h"

#define VERSION_MIN 130000
#define STATEMENT_ROOM 896
#define RESERVED_MS 500    /* the longest that a process may keep a row from others */
#define SNAPSHOT_OLD 10000 /* transactions; from here on the cost of a swap is measurable */

/* Everything as text, in one row. */
static const char *text_at(const PGresult *result, int column)
{
    return PQgetisnull(result, 0, column) ? "" : PQgetvalue(result, 0, column);
}

/* A statement without parameters, whose results come as text. */
static bool ask(struct dm_postgres *postgres, struct dm_pg_exchange *exchange, const char *statement)
{
    exchange->items[exchange->count++] = NULL;
    if (PQsendQueryParams(postgres->connection, statement, 0, NULL, NULL, NULL, NULL, 0))
        return true;
    dm_pg_doom(postgres, false, "cannot send to PostgreSQL");
    return false;
}

/* The statement is a form of schema.h. */
static void ask_filled(struct dm_postgres *postgres, struct dm_pg_exchange *exchange, const char *form)
{
    char *statement = dm_pg_fill(form, postgres->settings.schema, "");

    if (statement)
        ask(postgres, exchange, statement);
    else
        dm_pg_doom(postgres, false, "out of memory");
    free(statement);
}

static struct dm_pg_exchange *begin(struct dm_postgres *postgres,
                                    void (*finish)(struct dm_postgres *, struct dm_pg_exchange *))
{
    struct dm_pg_exchange *exchange = dm_pg_exchange_new(finish);

    if (!exchange)
        dm_pg_doom(postgres, false, "out of memory");
    return exchange;
}

static bool has_failed(struct dm_postgres *postgres, const struct dm_pg_exchange *exchange, bool is_final)
{
    char reason[DM_REG_REASON_ROOM];

    if (!exchange->error)
        return false;
    dm_pg_explain(exchange->error, postgres->settings.schema, reason);
    dm_pg_doom(postgres, is_final && dm_pg_judge(exchange->error) != DM_PG_FAILED_NOW, "%s", reason);
    return true;
}

/* ---- notices ----------------------------------------------------------------------------- */

static void finish_listen(struct dm_postgres *postgres, struct dm_pg_exchange *exchange)
{
    if (!has_failed(postgres, exchange, true))
        postgres->is_greeted = true;
}

/* LISTEN takes the name as it is written, and would fold it without the quotes. */
static void listen_to_inbox(struct dm_postgres *postgres)
{
    struct dm_pg_exchange *exchange;
    char statement[STATEMENT_ROOM];

    if (!postgres->inbox[0]) {
        postgres->is_greeted = true;
        return;
    }
    exchange = begin(postgres, finish_listen);
    if (!exchange)
        return;
    snprintf(statement, sizeof statement, "LISTEN \"%s\"", postgres->channel);
    ask(postgres, exchange, statement);
    dm_pg_sync(postgres, exchange);
}

/* ---- which data -------------------------------------------------------------------------- */

static int hex_value(char digit)
{
    if (!isxdigit((unsigned char)digit))
        return -1;
    return isdigit((unsigned char)digit) ? digit - '0' : tolower((unsigned char)digit) - 'a' + 10;
}

/* False for a text that is no uuid. */
static bool read_uuid(const char *text, uint8_t ret_id[16])
{
    int count = 0;

    for (; *text; text++) {
        if (*text == '-')
            continue;
        if (count == 32 || hex_value(*text) < 0)
            return false;
        ret_id[count / 2] = (uint8_t)(ret_id[count / 2] << 4 | hex_value(*text));
        count++;
    }
    return count == 32;
}

/*
 * After a failover the new primary has a higher timeline.  A lower one is that of the old primary, which has come back
 * and does not know that it has been replaced.
 */
static bool is_replaced(struct dm_postgres *postgres, const char *data)
{
    if (strcmp(postgres->newest_data, data) == 0 && postgres->timeline < postgres->newest_timeline)
        return true;
    snprintf(postgres->newest_data, sizeof postgres->newest_data, "%s", data);
    postgres->newest_timeline = postgres->timeline;
    return false;
}

static void finish_epoch(struct dm_postgres *postgres, struct dm_pg_exchange *exchange);

static void ask_for_epoch(struct dm_postgres *postgres, bool may_draw)
{
    struct dm_pg_exchange *exchange = begin(postgres, finish_epoch);

    if (!exchange)
        return;
    if (may_draw)
        ask_filled(postgres, exchange, dm_pg_make_forms[DM_PG_MAKE_COUNT - 1]);
    ask_filled(postgres, exchange, "SELECT id FROM @.epoch");
    dm_pg_sync(postgres, exchange);
}

static void finish_epoch(struct dm_postgres *postgres, struct dm_pg_exchange *exchange)
{
    const PGresult *result;
    char data[60];
    const char *id;

    if (has_failed(postgres, exchange, true))
        return;
    result = exchange->results[exchange->count - 1];
    if (PQntuples(result) == 0 && exchange->count == 1) {
        ask_for_epoch(postgres, true);
        return;
    }
    id = PQntuples(result) == 1 ? text_at(result, 0) : "";
    if (!read_uuid(id, postgres->epoch)) {
        dm_pg_doom(postgres, true, "the table \"%s\".epoch has been changed: it must have one row, with a random uuid",
                   postgres->settings.schema);
        return;
    }
    snprintf(data, sizeof data, "%.36s %s", id, postgres->system);
    if (is_replaced(postgres, data)) {
        dm_pg_doom(
            postgres, false,
            "this PostgreSQL is an old primary that has been replaced (its timeline is %d, and %d is known): end "
            "it, or it will lock beside the new one",
            (int)postgres->timeline, (int)postgres->newest_timeline);
        return;
    }
    snprintf(postgres->identity, sizeof postgres->identity, "%s %08x%s%s", data, (unsigned)postgres->timeline,
             postgres->may_forget ? " " : "", postgres->may_forget ? postgres->recovered : "");
    listen_to_inbox(postgres);
}

/* ---- the session ------------------------------------------------------------------------- */

static void finish_settings(struct dm_postgres *postgres, struct dm_pg_exchange *exchange)
{
    has_failed(postgres, exchange, false);
}

/*
 * Whatever the role or the database has set, and only what this server knows.  A swap that waits for a row which
 * somebody keeps locked by hand holds up the swaps behind it, so it gives up before we give up the connection.
 */
static void set_up_session(struct dm_postgres *postgres)
{
    static const char form[] =
        "SELECT pg_catalog.set_config(s.name, w.value, false) FROM pg_catalog.pg_settings s JOIN "
        "(VALUES ('statement_timeout', '0'), "
        "('default_transaction_isolation', 'read committed'), "
        "('default_transaction_read_only', 'off'), ('default_transaction_deferrable', 'off'), "
        "('idle_session_timeout', '0'), ('transaction_timeout', '0'), ('jit', 'off'), "
        "('idle_in_transaction_session_timeout', '%u'), ('lock_timeout', '%u')) w(name, value) "
        "ON s.name OPERATOR(pg_catalog.=) w.name";
    struct dm_pg_exchange *exchange = begin(postgres, finish_settings);
    char statement[STATEMENT_ROOM];

    if (!exchange)
        return;
    snprintf(statement, sizeof statement, form,
             (unsigned)dm_min64(RESERVED_MS, postgres->settings.command_timeout_ms / 4),
             postgres->settings.command_timeout_ms / 2);
    ask(postgres, exchange, statement);
    dm_pg_sync(postgres, exchange);
}

/* ---- the tables -------------------------------------------------------------------------- */

/*
 * One row for each table that is there: its kind, whether a crash empties it, its columns, whether a name is unique,
 * and our rights.  A role that may not use the schema can still ask.
 */
static const char tables_form[] =
    "SELECT c.relname, c.relkind, c.relpersistence, "
    "(SELECT count(*) FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND NOT a.attisdropped AND "
    "(a.attname, a.atttypid) IN "
    "(('name', 17), ('version', 17), ('value', 17), ('written', 1184), ('timeline', 23))), "
    "EXISTS (SELECT FROM pg_catalog.pg_index i JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND "
    "a.attname = 'name' WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indimmediate AND "
    "i.indnkeyatts = 1 AND i.indkey[0] = a.attnum AND i.indpred IS NULL), "
    "pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT') AND "
    "(c.relname = 'epoch' OR pg_catalog.has_table_privilege(c.oid, 'INSERT') AND "
    "pg_catalog.has_table_privilege(c.oid, 'UPDATE') AND pg_catalog.has_table_privilege(c.oid, 'DELETE')) "
    "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = '%s' AND "
    "c.relname IN ('registers', 'epoch') ORDER BY c.relname DESC";

static void ask_for_tables(struct dm_postgres *postgres);

static void finish_making(struct dm_postgres *postgres, struct dm_pg_exchange *exchange)
{
    char reason[DM_REG_REASON_ROOM];

    if (!exchange->error) {
        ask_for_tables(postgres);
        return;
    }
    dm_pg_explain(exchange->error, postgres->settings.schema, reason);
    dm_pg_doom(postgres, dm_pg_judge(exchange->error) == DM_PG_FAILED,
               "there are no tables in the schema \"%s\": let an admin run what \"dmutex sql postgresql\" prints, "
               "because this role cannot make them (%.120s)",
               postgres->settings.schema, reason);
}

/*
 * One transaction.  Several processes may begin at once, and CREATE IF NOT EXISTS fails if another one commits first,
 * so they take turns.  The number is "dmutex".
 */
static void make_tables(struct dm_postgres *postgres)
{
    struct dm_pg_exchange *exchange = begin(postgres, finish_making);

    if (!exchange)
        return;
    postgres->has_made = true;
    ask(postgres, exchange, "SELECT pg_catalog.pg_advisory_xact_lock(110386840528248)");
    for (int i = 0; i < DM_PG_MAKE_COUNT; i++)
        ask_filled(postgres, exchange, dm_pg_make_forms[i]);
    dm_pg_sync(postgres, exchange);
}

/* A row of tables_form. */
static bool check_table(struct dm_postgres *postgres, const PGresult *result, int row)
{
    const char *name = PQgetvalue(result, row, 0), *schema = postgres->settings.schema;
    bool is_epoch = strcmp(name, "epoch") == 0;

    if (strcmp(PQgetvalue(result, row, 1), "r") != 0)
        dm_pg_doom(postgres, true, "\"%s\".%s must be a plain table", schema, name);
    else if (!is_epoch && atoi(PQgetvalue(result, row, 3)) != 5)
        dm_pg_doom(postgres, true,
                   "the columns of \"%s\".registers have been changed: \"dmutex sql postgresql\" prints what they "
                   "must be",
                   schema);
    else if (!is_epoch && strcmp(PQgetvalue(result, row, 4), "t") != 0)
        dm_pg_doom(postgres, true,
                   "the table \"%s\".registers has lost its primary key: ALTER TABLE … ADD PRIMARY KEY "
                   "(name)",
                   schema);
    else if (strcmp(PQgetvalue(result, row, 5), "t") != 0)
        dm_pg_doom(postgres, true,
                   "this role lacks rights on \"%s\".%s: an admin must grant what \"dmutex sql postgresql\" prints",
                   schema, name);
    return !postgres->is_doomed;
}

static void finish_tables(struct dm_postgres *postgres, struct dm_pg_exchange *exchange)
{
    const PGresult *result;
    bool may_lose = false;

    if (has_failed(postgres, exchange, true))
        return;
    result = exchange->results[0];
    if (PQntuples(result) < 2 && !postgres->has_made) {
        make_tables(postgres);
        return;
    }
    if (PQntuples(result) < 2) {
        dm_pg_doom(postgres, false, "the tables of the schema \"%s\" were dropped while they were made",
                   postgres->settings.schema);
        return;
    }
    for (int row = 0; row < PQntuples(result); row++) {
        may_lose |= strcmp(PQgetvalue(result, row, 2), "p") != 0;
        if (!check_table(postgres, result, row))
            return;
    }
    postgres->may_forget |= may_lose;
    ask_for_epoch(postgres, false);
}

static void ask_for_tables(struct dm_postgres *postgres)
{
    struct dm_pg_exchange *exchange = begin(postgres, finish_tables);
    char *statement = NULL;

    if (!exchange)
        return;
    if (asprintf(&statement, tables_form, postgres->settings.schema) >= 0)
        ask(postgres, exchange, statement);
    free(statement);
    dm_pg_sync(postgres, exchange);
}

/* ---- the server -------------------------------------------------------------------------- */

/*
 * The timeline of the WAL that is written now: that of the control file is older until the first checkpoint after a
 * promotion.  Statistics begin anew with each recovery from a crash, also where the server's process has survived it,
 * so their age tells whether unflushed commits can have been lost.
 *
 * The number of our server process comes first.  A pooler makes one up for its greeting, and nothing else gives the
 * pooler away: even a notice to oneself arrives through it, while those of others do not.  An answer that comes
 * through a pooler is not believed, because it may be another client's, and nothing else is sent before this is
 * known.
 */
static const char facts_statement[] =
    "SELECT pg_catalog.pg_backend_pid(), pg_catalog.current_setting('server_version_num'), "
    "pg_catalog.pg_is_in_recovery(), (SELECT system_identifier FROM pg_catalog.pg_control_system()), "
    "CASE WHEN pg_catalog.pg_is_in_recovery() THEN '' ELSE "
    "pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8) END, "
    "pg_catalog.current_setting('fsync'), pg_catalog.current_setting('synchronous_commit'), "
    "(SELECT (pg_catalog.date_part('epoch', stats_reset) * 1000000)::bigint FROM pg_catalog.pg_stat_bgwriter)";

static void finish_facts(struct dm_postgres *postgres, struct dm_pg_exchange *exchange)
{
    const PGresult *result;

    if (has_failed(postgres, exchange, false))
        return;
    result = exchange->results[0];
    if (atoi(text_at(result, 0)) != PQbackendPID(postgres->connection)) {
        dm_pg_doom(
            postgres, true,
            "a pooler such as pgbouncer is between this process and PostgreSQL: it passes no notices on, and may "
            "give us the answers of other clients; connect to PostgreSQL itself");
        return;
    }
    if (atoi(text_at(result, 1)) < VERSION_MIN) {
        dm_pg_doom(postgres, true, "PostgreSQL %d is too old: locks need 13 or later",
                   atoi(text_at(result, 1)) / 10000);
        return;
    }
    if (strcmp(text_at(result, 2), "f") != 0) {
        dm_pg_doom(postgres, false,
                   "this PostgreSQL is a standby, and locks must be written: name the primary, or all "
                   "servers, postgresql://HOST1,HOST2/DATABASE");
        return;
    }
    postgres->timeline = (int32_t)strtoul(text_at(result, 4), NULL, 16);
    postgres->commits_at_once = strcmp(text_at(result, 6), "off") == 0;
    postgres->may_forget = strcmp(text_at(result, 5), "off") == 0 || postgres->commits_at_once;
    snprintf(postgres->system, sizeof postgres->system, "%.20s", text_at(result, 3));
    snprintf(postgres->recovered, sizeof postgres->recovered, "%.20s", text_at(result, 7));
    set_up_session(postgres);
    ask_for_tables(postgres);
}

void dm_pg_greet(struct dm_postgres *postgres)
{
    struct dm_pg_exchange *exchange = begin(postgres, finish_facts);

    if (!exchange)
        return;
    ask(postgres, exchange, facts_statement);
    dm_pg_sync(postgres, exchange);
}

/* ---- old snapshots ----------------------------------------------------------------------- */

static const char snapshots_statement[] =
    "SELECT pid, pg_catalog.age(backend_xmin) FROM pg_catalog.pg_stat_activity WHERE backend_xmin IS NOT NULL AND "
    "(datname = pg_catalog.current_database() OR backend_type = 'walsender') UNION ALL "
    "SELECT NULL, pg_catalog.age(xmin) FROM pg_catalog.pg_replication_slots WHERE xmin IS NOT NULL UNION ALL "
    "SELECT NULL, pg_catalog.age(transaction) FROM pg_catalog.pg_prepared_xacts WHERE database = "
    "pg_catalog.current_database() ORDER BY 2 DESC LIMIT 1";

static void finish_snapshots(struct dm_postgres *postgres, struct dm_pg_exchange *exchange)
{
    char text[DM_REG_REASON_ROOM], who[64] = "a replication slot or a prepared transaction";
    const PGresult *result = exchange->results[0];

    if (exchange->error || PQntuples(result) != 1 || atoi(PQgetvalue(result, 0, 1)) < SNAPSHOT_OLD)
        return;
    if (!PQgetisnull(result, 0, 0))
        snprintf(who, sizeof who, "the session of process %.20s", PQgetvalue(result, 0, 0));
    snprintf(text, sizeof text,
             "locks on %.140s become slow: %s keeps a snapshot that is %.20s transactions old, and old versions of the "
             "rows cannot be removed until it ends",
             postgres->settings.place, who, PQgetvalue(result, 0, 1));
    postgres->client.on_warning(postgres->client.user, text);
}

void dm_pg_look_for_snapshots(struct dm_postgres *postgres)
{
    struct dm_pg_exchange *exchange = begin(postgres, finish_snapshots);

    postgres->looked_ns = dm_clock_boot_ns();
    if (!exchange)
        return;
    ask(postgres, exchange, snapshots_statement);
    dm_pg_sync(postgres, exchange);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a new connection needs before it can be used: settings of the session, which server this is, the tables,
 * rights, and which data these are.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/ident.h"
#include "base/minmax.h"
#include "stores/mariadb/parts.h"

#define PACKET_MIN ((size_t)256 * 1024)
#define AROUND_VALUES ((size_t)64 * 1024) /* of a group of swaps */
#define MARIADB_MIN 100500
#define MYSQL_MIN 50700

static struct dm_maria_exchange *begin(struct dm_maria *maria,
                                       void (*finish)(struct dm_maria *, struct dm_maria_exchange *))
{
    struct dm_maria_exchange *exchange = dm_maria_exchange_new(finish);

    if (!exchange)
        dm_maria_doom(maria, false, "out of memory");
    return exchange;
}

static bool has_failed(struct dm_maria *maria, const struct dm_maria_exchange *exchange, bool is_final)
{
    char reason[DM_REG_REASON_ROOM];

    if (!exchange->error)
        return false;
    dm_maria_explain(exchange->error, exchange->message, reason);
    dm_maria_doom(maria, is_final && dm_maria_judge(exchange->error) != DM_MARIA_FAILED_NOW, "%s", reason);
    return true;
}

/* The only row of a result; NULL: there is none. */
static MYSQL_ROW row_of(const struct dm_maria_exchange *exchange, int statement, unsigned columns)
{
    return statement < exchange->got ? dm_maria_row(exchange->results[statement], columns) : NULL;
}

static void add(struct dm_maria_exchange *exchange, const char *statement)
{
    dm_bytes_print(&exchange->text, "%s%s", exchange->text.size ? ";" : "", statement);
}

/* The statement is a form of schema.h. */
static void add_filled(struct dm_maria *maria, struct dm_maria_exchange *exchange, const char *form)
{
    char *statement = dm_maria_fill(form, maria->url->prefix, "");

    if (statement)
        add(exchange, statement);
    else
        dm_maria_doom(maria, false, "out of memory");
    free(statement);
}

/* ---- rights, and which data -------------------------------------------------------------- */

static void hex(const char *bytes, char ret_text[33])
{
    for (int i = 0; i < 16; i++)
        sprintf(ret_text + 2 * i, "%02x", (unsigned char)bytes[i]);
}

/* A row with 16 bytes. */
static bool read_id(const struct dm_maria_exchange *exchange, int statement, char ret_text[33])
{
    MYSQL_ROW row = row_of(exchange, statement, 1);

    if (!row || mysql_fetch_lengths(exchange->results[statement])[0] != 16)
        return false;
    hex(row[0], ret_text);
    return true;
}

/* Where a crash may lose swaps that were done, each start of the server is another identity. */
static void finish_ids(struct dm_maria *maria, struct dm_maria_exchange *exchange)
{
    int statement = exchange->skipped;
    char start[33] = "";

    if (has_failed(maria, exchange, true))
        return;
    if (!read_id(exchange, statement, maria->epoch)) {
        dm_maria_doom(maria, true, "the table %s_epoch has been changed: it must have one row, with 16 random bytes",
                      maria->url->prefix);
        return;
    }
    if (maria->may_forget && !read_id(exchange, statement + 1, start)) {
        dm_maria_doom(maria, true, "the table %s_start has been changed: an admin must drop it, and make it again",
                      maria->url->prefix);
        return;
    }
    snprintf(maria->identity, sizeof maria->identity, "%s %08x%s%s", maria->epoch, (unsigned)maria->server,
             *start ? " " : "", start);
    maria->is_greeted = true;
}

static void ask_for_ids(struct dm_maria *maria, bool may_draw)
{
    struct dm_maria_exchange *exchange = begin(maria, finish_ids);
    uint64_t random[2];

    if (!exchange)
        return;
    if (may_draw) {
        add_filled(maria, exchange, dm_maria_make_forms[DM_MARIA_MAKE_COUNT - 1]);
        exchange->skipped++;
    }
    if (maria->may_forget) {
        dm_ident_random(random, 2);
        dm_bytes_print(&exchange->text, "%sINSERT IGNORE INTO `%s_start` VALUES (1, x'%016" PRIx64 "%016" PRIx64 "')",
                       exchange->text.size ? ";" : "", maria->url->prefix, random[0], random[1]);
        exchange->skipped++;
    }
    add_filled(maria, exchange, "SELECT id FROM `@_epoch`");
    if (maria->may_forget)
        add_filled(maria, exchange, "SELECT id FROM `@_start`");
    dm_maria_send(maria, exchange);
}

static void finish_rights(struct dm_maria *maria, struct dm_maria_exchange *exchange)
{
    if (!has_failed(maria, exchange, true))
        ask_for_ids(maria, !row_of(exchange, 3, 1));
}

/* They change nothing, and need what locks need. */
static void ask_for_rights(struct dm_maria *maria)
{
    struct dm_maria_exchange *exchange = begin(maria, finish_rights);

    if (!exchange)
        return;
    add_filled(maria, exchange, "UPDATE `@_registers` SET server = 0 WHERE name = '' AND FALSE");
    add_filled(maria, exchange, "DELETE FROM `@_registers` WHERE name = '' AND FALSE");
    add_filled(
        maria, exchange,
        "INSERT INTO `@_registers` (name, version, value, written, server) SELECT name, version, value, written, "
        "server FROM `@_registers` WHERE name = '' AND FALSE");
    add_filled(maria, exchange, "SELECT id FROM `@_epoch`");
    dm_maria_send(maria, exchange);
}

/* ---- the tables -------------------------------------------------------------------------- */

static void ask_for_tables(struct dm_maria *maria);

static void finish_making(struct dm_maria *maria, struct dm_maria_exchange *exchange)
{
    char reason[DM_REG_REASON_ROOM];

    if (!exchange->error) {
        ask_for_tables(maria);
        return;
    }
    dm_maria_explain(exchange->error, exchange->message, reason);
    dm_maria_doom(
        maria, dm_maria_judge(exchange->error) == DM_MARIA_FAILED,
        "there are no tables %s_registers, %s_epoch and %s_start: let an admin run what \"dmutex sql mariadb\" "
        "prints, because this account cannot make them (%.120s)",
        maria->url->prefix, maria->url->prefix, maria->url->prefix, reason);
}

static void make_tables(struct dm_maria *maria)
{
    struct dm_maria_exchange *exchange = begin(maria, finish_making);

    if (!exchange)
        return;
    maria->has_made = true;
    for (int i = 0; i < DM_MARIA_MAKE_COUNT; i++)
        add_filled(maria, exchange, dm_maria_make_forms[i]);
    dm_maria_send(maria, exchange);
}

/* A row of tables_form: the name's end, the engine, and how many columns of registers are as they must be. */
static void check_table(struct dm_maria *maria, MYSQL_ROW row)
{
    const char *name = dm_maria_field(row, 0), *engine = dm_maria_field(row, 1);
    const char *end = strrchr(name, '_'), *wanted = end && strcmp(end, "_start") == 0 ? "MEMORY" : "InnoDB";

    if (strcmp(engine, wanted) != 0)
        dm_maria_doom(maria, true, "the table %s is of the engine %s, %s: ALTER TABLE `%s` ENGINE=%s", name,
                      *engine ? engine : "of a view",
                      strcmp(wanted, "MEMORY") == 0 ? "and must be empty after a start of the server"
                                                    : "which cannot keep locks over a crash, or swap rows",
                      name, wanted);
    else if (end && strcmp(end, "_registers") == 0 && atoi(dm_maria_field(row, 2)) != 5)
        dm_maria_doom(maria, true,
                      "the columns of %s have been changed: \"dmutex sql mariadb\" prints what they must be", name);
}

static void finish_tables(struct dm_maria *maria, struct dm_maria_exchange *exchange)
{
    MYSQL_RES *result;
    MYSQL_ROW row;
    int count = 0;

    if (has_failed(maria, exchange, false))
        return;
    result = exchange->results[exchange->skipped];
    while ((row = dm_maria_row(result, 3))) {
        count++;
        check_table(maria, row);
    }
    if (maria->is_doomed)
        return;
    if (count == 3)
        ask_for_rights(maria);
    else if (!maria->has_made)
        make_tables(maria);
    else
        dm_maria_doom(maria, true,
                      "this account may not see the tables %s_registers, %s_epoch and %s_start: an admin "
                      "must grant the account what \"dmutex sql mariadb\" prints",
                      maria->url->prefix, maria->url->prefix, maria->url->prefix);
}

/*
 * The name must be the whole primary key, and bytes.  information_schema takes names of different case for one, also
 * where these are two tables.
 */
static const char tables_form[] =
    "SELECT t.TABLE_NAME, t.ENGINE, (SELECT COUNT(*) FROM information_schema.COLUMNS c WHERE c.TABLE_SCHEMA = "
    "t.TABLE_SCHEMA AND c.TABLE_NAME = BINARY t.TABLE_NAME AND (c.COLUMN_NAME = 'name' AND c.DATA_TYPE = "
    "'varbinary' AND c.COLUMN_KEY = 'PRI' AND (SELECT COUNT(*) FROM information_schema.STATISTICS s WHERE "
    "s.TABLE_SCHEMA = t.TABLE_SCHEMA AND s.TABLE_NAME = BINARY t.TABLE_NAME AND s.INDEX_NAME = 'PRIMARY' AND "
    "s.SUB_PART IS NULL) = 1 OR c.COLUMN_NAME = 'version' AND c.DATA_TYPE = 'varbinary' OR c.COLUMN_NAME = 'value' "
    "AND c.DATA_TYPE IN ('mediumblob', 'longblob') OR c.COLUMN_NAME = 'written' AND c.DATA_TYPE = 'bigint' OR "
    "c.COLUMN_NAME = 'server' AND c.COLUMN_TYPE LIKE 'int%% unsigned')) FROM information_schema.TABLES t WHERE "
    "t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME IN ('%s_registers', '%s_epoch', '%s_start') AND "
    "(@@lower_case_table_names OR t.TABLE_NAME LIKE BINARY '%s%%')";

static void ask_for_tables(struct dm_maria *maria)
{
    struct dm_maria_exchange *exchange = begin(maria, finish_tables);

    if (!exchange)
        return;
    if (maria->is_galera) { /* a read is never older than what other nodes have committed */
        add(exchange, "SET SESSION wsrep_sync_wait = 1;");
        exchange->skipped++;
    }
    dm_bytes_print(&exchange->text, tables_form, maria->url->prefix, maria->url->prefix, maria->url->prefix,
                   maria->url->prefix);
    dm_maria_send(maria, exchange);
}

/* ---- facts ------------------------------------------------------------------------------- */

static const char facts_statement[] =
    "SELECT @@innodb_flush_log_at_trx_commit, @@log_bin, @@sync_binlog, @@max_allowed_packet, @@binlog_format";

enum { FLUSH, LOG, SYNC_LOG, PACKET, LOG_FORMAT, FACT_COUNT };

static bool check_facts(struct dm_maria *maria, MYSQL_ROW row)
{
    size_t packet = strtoul(dm_maria_field(row, PACKET), NULL, 10);

    if (packet < PACKET_MIN)
        dm_maria_doom(maria, true,
                      "max_allowed_packet is %zu bytes, and locks need 256K: SET GLOBAL max_allowed_packet", packet);
    else if (atoi(dm_maria_field(row, LOG)) && strcmp(dm_maria_field(row, LOG_FORMAT), "STATEMENT") == 0)
        dm_maria_doom(maria, true,
                      "binlog_format is STATEMENT, which cannot write what locks write: set it to MIXED or ROW");
    maria->driver.can.value_max = (packet - AROUND_VALUES) / 2;
    if (maria->driver.can.value_max > DM_MARIA_VALUE_MAX)
        maria->driver.can.value_max = DM_MARIA_VALUE_MAX;
    return !maria->is_doomed;
}

/* Swaps that are done are on the disk, in the log of InnoDB, and in the binary log if there is one. */
static bool may_forget(MYSQL_ROW row)
{
    return atoi(dm_maria_field(row, FLUSH)) != 1 ||
           (atoi(dm_maria_field(row, LOG)) && atoi(dm_maria_field(row, SYNC_LOG)) != 1);
}

static uint32_t number_for(const char *text)
{
    uint32_t number = UINT32_C(0x811c9dc5);

    for (; *text; text++)
        number = (number ^ (unsigned char)*text) * UINT32_C(0x01000193);
    return number;
}

/* A node of Galera has what the others have; of other servers each has data of its own. */
static void finish_facts(struct dm_maria *maria, struct dm_maria_exchange *exchange)
{
    MYSQL_ROW row = row_of(exchange, exchange->skipped, FACT_COUNT),
              server = row_of(exchange, exchange->skipped + 1, 2), cluster = row_of(exchange, exchange->skipped + 2, 2);

    if (has_failed(maria, exchange, false))
        return;
    if (!row) {
        dm_maria_doom(maria, false, "MariaDB does not tell its settings");
        return;
    }
    if (!check_facts(maria, row))
        return;
    maria->is_galera = cluster && dm_maria_field(cluster, 1)[0];
    maria->may_forget = may_forget(row) && !maria->is_galera;
    maria->server = number_for(maria->is_galera ? dm_maria_field(cluster, 1) : server ? dm_maria_field(server, 1) : "");
    ask_for_tables(maria);
}

/*
 * Whatever the account, init_connect or the server's file has set.  A swap that waits for a row which somebody keeps
 * locked by hand holds up the swaps behind it, so it gives up before we give up the connection.  A process that stops
 * with a row reserved is disconnected, by MariaDB.
 */
static void set_up_session(struct dm_maria *maria, struct dm_maria_exchange *exchange)
{
    unsigned wait_s = (unsigned)dm_max64(1, maria->url->command_timeout_ms / 2000);

    dm_bytes_print(
        &exchange->text,
        "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 1, completion_type = "
        "0, time_zone = '+00:00', sql_safe_updates = 0, sql_select_limit = 18446744073709551615, "
        "innodb_lock_wait_timeout = %u, lock_wait_timeout = %u, wait_timeout = 2147483;SET SESSION "
        "TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
        wait_s, wait_s);
    exchange->skipped = 2;
    if (!mariadb_connection(maria->connection))
        return;
    add(exchange,
        "SET SESSION max_statement_time = 0, idle_transaction_timeout = 1, idle_write_transaction_timeout = 0, "
        "idle_readonly_transaction_timeout = 0");
    exchange->skipped++;
}

void dm_maria_greet(struct dm_maria *maria)
{
    unsigned long version = mysql_get_server_version(maria->connection);
    struct dm_maria_exchange *exchange;

    if (version < (mariadb_connection(maria->connection) ? MARIADB_MIN : MYSQL_MIN)) {
        dm_maria_doom(maria, true, "%.60s is too old: locks need MariaDB 10.5 or MySQL 5.7, or later",
                      mysql_get_server_info(maria->connection));
        return;
    }
    exchange = begin(maria, finish_facts);
    if (!exchange)
        return;
    if (!mariadb_connection(maria->connection)) /* MySQL lets a process that is stopped keep its rows */
        maria->unreserved_ns = DM_NEVER;
    set_up_session(maria, exchange);
    add(exchange, facts_statement);
    add(exchange, "SHOW VARIABLES WHERE Variable_name IN ('server_uid', 'server_uuid')");
    add(exchange, "SHOW STATUS LIKE 'wsrep_cluster_state_uuid'");
    dm_maria_send(maria, exchange);
}

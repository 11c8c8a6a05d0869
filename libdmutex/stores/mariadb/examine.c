/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What dmutex doctor says of MariaDB.  The driver connects as it does for a lock, so that what it refuses is told in
 * its own words; a plain connection asks what locks depend on.  Blocks.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/poll.h"
#include "config.h"
#include "registers/trial.h"
#include "stores/mariadb/parts.h"

#define CONNECTIONS_FEW 10 /* free ones */
#define TRIPS 9
#define TEXT_ROOM 512

struct examination {
    const struct dm_maria_report *report;
    const struct dm_url *url;
    MYSQL *connection;
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
static bool connect_to(struct examination *examination, enum dm_maria_end *ret_end)
{
    struct dm_maria_connect *way = dm_maria_connect_begin(examination->url, 0);
    char reason[DM_REG_REASON_ROOM];
    bool is_open, is_crowded, is_final;
    struct pollfd polled;

    if (!way) {
        *ret_end = DM_MARIA_UNREACHABLE;
        find(examination, DM_MARIA_FAILS, "server", "", "this process cannot start a thread or open a descriptor");
        return false;
    }
    polled = (struct pollfd){ .fd = dm_maria_connect_fd(way), .events = POLLIN };
    while (!dm_maria_connect_take(way, &examination->connection, &is_open))
        dm_poll(&polled, 1, DM_NS_PER_S);
    if (is_open)
        return true;
    is_final = dm_maria_explain_connect(examination->connection, dm_maria_place(examination->url, 0).text, reason,
                                        &is_crowded);
    *ret_end = is_final ? DM_MARIA_NO_LOGIN : DM_MARIA_UNREACHABLE;
    find(examination, DM_MARIA_FAILS, is_final ? "login" : "server",
         is_final ? "" : "look at DMUTEX_URL or dmutex.conf, at the server, and at the network between", "%s", reason);
    return false;
}

static bool query(struct examination *examination, const char *statement, MYSQL_RES **ret_result)
{
    size_t left = DM_MARIA_LEFT;

    *ret_result = NULL;
    dm_maria_limit(examination->connection, &left);
    if (mysql_query(examination->connection, statement) == 0)
        *ret_result = mysql_store_result(examination->connection);
    dm_maria_limit(NULL, NULL);
    return *ret_result != NULL;
}

/* The first row, valid as long as *ret_result, which the caller frees.  NULL: there is none with so many columns. */
static MYSQL_ROW ask(struct examination *examination, MYSQL_RES **ret_result, unsigned columns, const char *statement)
{
    if (!query(examination, statement, ret_result))
        find(examination, DM_MARIA_WARNS, "server", "", "a check is left out: %.200s",
             mysql_error(examination->connection));
    return dm_maria_row(*ret_result, columns);
}

/* ---- the driver -------------------------------------------------------------------------- */

static void pass_warning(void *user, const char *text)
{
    find(user, DM_MARIA_WARNS, "driver", "", "%s", text);
}

static bool try_driver(struct examination *examination)
{
    struct dm_reg_trial trial = { .on_warning = pass_warning, .user = examination };
    const struct dm_reg_client client = dm_reg_trial_client(&trial);
    const struct dm_url *url = examination->url;
    struct dm_reg_driver *driver = dm_mariadb_open(PACKAGE_VERSION, url, &client, trial.reason);

    if (driver)
        dm_reg_trial_run(&trial, driver,
                         dm_clock_boot_ns() + (url->connect_timeout_ms + url->command_timeout_ms) * DM_NS_PER_MS);
    if (trial.is_ready)
        find(examination, DM_MARIA_OK, "tables", "", "the tables %s_registers, %s_epoch and %s_start can be used",
             url->prefix, url->prefix, url->prefix);
    else
        find(examination, DM_MARIA_FAILS, "tables", "", "%s",
             trial.reason[0] ? trial.reason : "the server does not answer in time");
    return trial.is_ready;
}

/* The driver would make missing tables, and a look must not. */
static bool look_at_tables(struct examination *examination)
{
    char statement[TEXT_ROOM];
    MYSQL_RES *result;
    MYSQL_ROW row;
    bool are_there;

    snprintf(statement, sizeof statement,
             "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN "
             "('%s_registers', '%s_epoch', '%s_start') AND (@@lower_case_table_names OR TABLE_NAME LIKE BINARY '%s%%')",
             examination->url->prefix, examination->url->prefix, examination->url->prefix, examination->url->prefix);
    row = ask(examination, &result, 1, statement);
    are_there = row && atoi(dm_maria_field(row, 0)) == 3;
    mysql_free_result(result);
    if (are_there)
        return try_driver(examination);
    find(examination, DM_MARIA_WARNS, "tables", "let an admin run what \"dmutex sql mariadb\" prints",
         "this account sees none with the prefix %s: the first lock makes them, if the account may",
         examination->url->prefix);
    return true;
}

/* ---- what locks depend on ---------------------------------------------------------------- */

static const char facts_statement[] =
    "SELECT @@innodb_flush_log_at_trx_commit, @@log_bin, @@sync_binlog, @@innodb_doublewrite, @@max_connections, "
    "@@max_user_connections";

enum { FLUSH, LOG, SYNC_LOG, DOUBLE, CONNECTIONS, USER_CONNECTIONS, FACT_COUNT };

static bool is_off(const char *value)
{
    return strcmp(value, "0") == 0 || strcmp(value, "OFF") == 0;
}

static void judge_durability(struct examination *examination, MYSQL_ROW row, struct dm_maria_facts *ret_facts)
{
    bool is_flushed = atoi(dm_maria_field(row, FLUSH)) == 1;
    bool is_logged = is_off(dm_maria_field(row, LOG)) || atoi(dm_maria_field(row, SYNC_LOG)) == 1;

    ret_facts->survives_crash = is_flushed && is_logged && !is_off(dm_maria_field(row, DOUBLE));
    if (is_off(dm_maria_field(row, DOUBLE)))
        find(examination, DM_MARIA_WARNS, "durability", "set innodb_doublewrite = ON",
             "innodb_doublewrite is off: a power failure may spoil the data");
    else if (!is_flushed || !is_logged)
        find(examination, DM_MARIA_WARNS, "durability",
             "set innodb_flush_log_at_trx_commit = 1, and with a binary log sync_binlog = 1",
             "%s: a power failure may lose the last locks; so each start of the server lets a lease pass before new "
             "ones "
             "are granted",
             is_flushed ? "sync_binlog is not 1" : "innodb_flush_log_at_trx_commit is not 1");
    else
        find(examination, DM_MARIA_OK, "durability", "", "locks survive a crash and a power failure");
}

static int status_of(struct examination *examination, const char *name)
{
    char statement[96];
    MYSQL_RES *result;
    MYSQL_ROW row;
    int value;

    snprintf(statement, sizeof statement, "SHOW STATUS LIKE '%s'", name);
    row = ask(examination, &result, 2, statement);
    value = row ? atoi(dm_maria_field(row, 1)) : -1;
    mysql_free_result(result);
    return value;
}

static void judge_connections(struct examination *examination, MYSQL_ROW row)
{
    int most = atoi(dm_maria_field(row, CONNECTIONS)), used = status_of(examination, "Threads_connected");
    int of_user = atoi(dm_maria_field(row, USER_CONNECTIONS));
    char limit[64] = "";

    if (of_user)
        snprintf(limit, sizeof limit, "; of one account %d", of_user);
    if (most - used < CONNECTIONS_FEW)
        find(examination, DM_MARIA_WARNS, "connections", "raise max_connections: each process that locks needs one",
             "%d of %d are in use%s", used, most, limit);
    else
        find(examination, DM_MARIA_OK, "connections", "", "%d of %d are in use%s; each process that locks needs one",
             used, most, limit);
}

/* MySQL has no such status. */
static void judge_replicas(struct examination *examination)
{
    int count = status_of(examination, "Slaves_connected");

    if (count > 0)
        find(examination, DM_MARIA_WARNS, "replicas", "end the old primary before another server takes its place",
             "commits do not wait for the %d connected to have them: a failover may lose the last locks, and then a "
             "lease "
             "passes before new ones are granted",
             count);
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
        MYSQL_RES *result;

        if (!query(examination, "SELECT 1", &result))
            return;
        mysql_free_result(result);
        times[i] = dm_clock_boot_ns() - before_ns;
    }
    qsort(times, TRIPS, sizeof times[0], compare_times);
    find(examination, DM_MARIA_OK, "round trip", "", "%.2f ms", (double)times[TRIPS / 2] / 1e6);
}

static void look_at_facts(struct examination *examination, struct dm_maria_facts *ret_facts)
{
    MYSQL_RES *result;
    MYSQL_ROW row = ask(examination, &result, FACT_COUNT, facts_statement);

    if (row) {
        judge_durability(examination, row, ret_facts);
        judge_connections(examination, row);
        judge_replicas(examination);
    }
    mysql_free_result(result);
}

__attribute__((visibility("default"))) enum dm_maria_end dm_mariadb_examine(const char *version,
                                                                            const struct dm_url *url,
                                                                            const struct dm_maria_report *report,
                                                                            struct dm_maria_facts *ret_facts)
{
    struct examination examination = { .report = report, .url = url };
    enum dm_maria_end end = DM_MARIA_EXAMINED;

    if (strcmp(version, PACKAGE_VERSION) != 0) {
        find(&examination, DM_MARIA_FAILS, "module", "install packages of one version",
             "the module of MariaDB is of version %s, and dmutex of %.20s", PACKAGE_VERSION, version);
        return DM_MARIA_UNREACHABLE;
    }
    if (connect_to(&examination, &end)) {
        find(&examination, DM_MARIA_OK, "server", "", "MariaDB at %s answers%s: version %s",
             dm_maria_place(url, 0).text, url->has_tls ? ", by TLS" : "",
             mysql_get_server_info(examination.connection));
        ret_facts->is_usable = look_at_tables(&examination);
        look_at_facts(&examination, ret_facts);
        measure(&examination);
        find(&examination, DM_MARIA_OK, "wake-ups", "",
             "the server sends no notices: who waits for a lock looks at it again and again");
    }
    if (examination.connection)
        mysql_close(examination.connection);
    return end;
}

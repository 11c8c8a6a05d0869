/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver of MariaDB on a real server: faults, settings of others, rights, tables that are not ours, crashes. */
#include "../lib/testlib.h"

#include <stdlib.h>
#include <string.h>

#include "asker.h"
#include "mariaserver.h"
#include "stores/mariadb/open.h"
#include "stores/mariadb/parts.h"

static struct mariaserver *server;
static const struct dm_reg_version absent;

/* Drivers keep their URLs. */
static struct dm_reg_driver *open_mariadb(const char *version, const struct dm_reg_place *place,
                                          const struct dm_reg_client *client, char ret_reason[DM_REASON_ROOM])
{
    struct dm_url *url = dm_url_parse(place->url, ret_reason);

    if (!url)
        fail_msg("%s", ret_reason);
    url->command_timeout_ms = place->command_timeout_ms;
    return dm_mariadb_open(version, url, client, ret_reason);
}

static struct dm_maria *maria_of(const struct asker *asker)
{
    return (struct dm_maria *)(void *)asker->driver;
}

static unsigned long session_of(const struct asker *asker)
{
    return mysql_thread_id(maria_of(asker)->connection);
}

/* The URL of an account, and of a database. */
static const char *url_of(const char *account, const char *database)
{
    static char text[160];

    snprintf(text, sizeof text, "mariadb://%s@/%s?socket=%s/socket", account, database, server->folder);
    return text;
}

static void drop_tables(void)
{
    mariaserver_sql(server, "DROP TABLE IF EXISTS locks.dmutex_registers, locks.dmutex_epoch, locks.dmutex_start");
}

/* The reason, of which waiting or a person is the remedy. */
static void assert_down(const char *url, const char *reason, bool is_final)
{
    struct asker *asker = asker_open(url, "dmutex", 0);

    assert_non_null(asker->driver);
    asker->driver->ops->want(asker->driver);
    asker_until(asker, asker->down || asker->ready);
    if (!strstr(asker->reason, reason))
        fail_msg("\"%s\" is not in: %s", reason, asker->reason);
    assert_int_equal(asker->is_final, is_final);
    asker_end(asker);
}

/* A connection that keeps the row of a key locked until it ends. */
static MYSQL *lock_row(const char *key)
{
    MYSQL *connection = mariaserver_connect(server);

    mariaserver_sql_by(connection, "BEGIN");
    mariaserver_sql_by(connection, "SELECT 1 FROM locks.dmutex_registers WHERE name = '%s' FOR UPDATE", key);
    return connection;
}

/* INNODB_TRX would show for ever what it first showed, as long as it is asked more often than every 0.1 s. */
static bool has_waiter(void)
{
    return atoi(mariaserver_sql(server,
                                "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME "
                                "= 'Innodb_row_lock_current_waits'")) > 0;
}

static void post_swap(struct asker *asker, const char *key, const struct dm_reg_version *version, const char *text)
{
    struct dm_reg_item item = { .key = key, .version = *version };

    item.value = asker_value(asker, text, &item.size);
    asker_post(asker, &item, 1, true);
}

/* ---- connections ------------------------------------------------------------------------- */

/* A connection that ends is found, although nothing was asked */
static void test_end_of_an_idle_connection_is_found(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);

    (void)state;
    mariaserver_cut(server);
    asker_until(asker, asker->down == 1);
    asker_until(asker, asker->ready == 2);
    asker_end(asker);
}

/* Whatever others have set for all sessions, ours works */
static void test_settings_of_others_do_not_matter(void **state)
{
    struct dm_reg_version version = absent;
    struct asker *asker;

    (void)state;
    mariaserver_sql(server,
                    "SET GLOBAL sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES,TRADITIONAL', GLOBAL autocommit = 0, GLOBAL "
                    "tx_isolation = 'SERIALIZABLE', GLOBAL time_zone = '-07:00', GLOBAL completion_type = 2, "
                    "GLOBAL sql_safe_updates = 1, GLOBAL sql_select_limit = 0, GLOBAL wait_timeout = 1, GLOBAL "
                    "innodb_snapshot_isolation = 1");
    asker = asker_start(server->url, NULL);
    assert_outcome(asker_swap(asker, "n/settings", &version, "one"), DM_REG_DONE);
    assert_outcome(asker_swap(asker, "n/settings", &version, "two"), DM_REG_DONE);
    assert_outcome(asker_read(asker, "n/settings", NULL), DM_REG_DONE);
    assert_string_equal(asker->asked[0].value, "two");
    assert_true(asker->asked[0].reply.age_ms >= 0);
    asker_end(asker);
    mariaserver_restart(server, NULL);
}

/* ---- swaps that fail --------------------------------------------------------------------- */

/* A row that somebody keeps locked: the swap is refused in time, and a warning tells */
static void test_row_that_is_locked_by_hand_holds_up_nobody_for_ever(void **state)
{
    struct asker *asker = asker_open(server->url, "dmutex", 4000);
    struct dm_reg_version version = absent, other = absent;
    MYSQL *connection;

    (void)state;
    asker->driver->ops->want(asker->driver);
    asker_until(asker, asker->ready);
    assert_outcome(asker_swap(asker, "n/locked", &version, "x"), DM_REG_DONE);
    connection = lock_row("n/locked");
    assert_outcome(asker_swap(asker, "n/locked", &version, "y"), DM_REG_CONFLICT);
    assert_non_null(strstr(asker->warning, "another session of MariaDB keeps a row"));
    assert_outcome(asker_swap(asker, "n/unlocked", &other, "y"), DM_REG_DONE);
    mysql_close(connection);
    assert_outcome(asker_swap(asker, "n/locked", &version, "y"), DM_REG_DONE);
    asker_end(asker);
}

/* KILL QUERY ends a swap that has not taken effect */
static void test_swap_that_is_killed_is_a_conflict(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    struct dm_reg_version version = absent;
    MYSQL *connection;

    (void)state;
    assert_outcome(asker_swap(asker, "n/killed", &version, "x"), DM_REG_DONE);
    connection = lock_row("n/killed");
    post_swap(asker, "n/killed", &version, "y");
    wait_until(has_waiter());
    mariaserver_sql(server, "KILL QUERY %lu", session_of(asker));
    asker_until(asker, asker->answered == 1);
    assert_outcome(&asker->asked[0], DM_REG_CONFLICT);
    mysql_close(connection);
    assert_outcome(asker_swap(asker, "n/killed", &version, "y"), DM_REG_DONE);
    asker_end(asker);
}

/* One of many cannot be written: the others take effect, each for itself */
static void test_failure_of_one_swap_is_its_own(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    struct dm_reg_item items[3] = { { .key = "n/one" }, { .key = "n/two" }, { .key = "n/three" } };

    (void)state;
    mariaserver_sql(server,
                    "CREATE TRIGGER locks.refuse BEFORE INSERT ON locks.dmutex_registers FOR EACH ROW IF NEW.name "
                    "= 'n/two' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not this one'; END IF");
    for (int i = 0; i < 3; i++)
        items[i].value = asker_value(asker, "x", &items[i].size);
    post_swap(asker, "n/before", &absent, "x"); /* so that the three go together */
    asker_until(asker, asker->answered == 1);
    asker_post(asker, items, 3, true);
    asker_until(asker, asker->answered == 3);
    assert_outcome(&asker->asked[0], DM_REG_DONE);
    assert_outcome(&asker->asked[1], DM_REG_REFUSED);
    assert_non_null(strstr(asker->asked[1].reason, "not this one"));
    assert_outcome(&asker->asked[2], DM_REG_DONE);
    mariaserver_sql(server, "DROP TRIGGER locks.refuse");
    asker_end(asker);
}

/* A row that was written by hand is refused, and not repaired */
static void test_foreign_row_is_refused(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);

    (void)state;
    mariaserver_sql(server, "INSERT INTO locks.dmutex_registers VALUES ('n/hand', 'short', 'x', 0, 0)");
    assert_outcome(asker_read(asker, "n/hand", NULL), DM_REG_REFUSED);
    assert_non_null(strstr(asker->asked[0].reason, "changed by hand"));
    asker_end(asker);
}

/* ---- reservations ------------------------------------------------------------------------ */

/* Nobody comes between a refusal and the next swap: the others wait, and are refused */
static bool reserve_and_swap(void)
{
    static const struct dm_reg_version never = { "not there" };
    struct asker *one = asker_start(server->url, NULL), *two = asker_start(server->url, NULL);
    struct dm_reg_version version = absent;
    struct dm_reg_item item = { .key = "n/reserved", .reserves = true, .version = never };
    bool is_in_time;

    mariaserver_sql(server, "DELETE FROM locks.dmutex_registers WHERE name = 'n/reserved'");
    assert_outcome(asker_swap(two, item.key, &version, "first"), DM_REG_DONE);
    item.value = asker_value(one, "refused", &item.size);
    asker_post(one, &item, 1, true);
    asker_until(one, one->answered == 1);
    assert_outcome(&one->asked[0], DM_REG_CONFLICT);
    assert_true(one->asked[0].reply.is_reserved);
    assert_string_equal(one->asked[0].value, "first");
    post_swap(two, item.key, &version, "late");
    asker_until(two, one->down || two->answered || has_waiter());
    post_swap(one, item.key, &version, "second");
    one->driver->ops->let_go(one->driver);
    asker_until(one, one->answered == 1);
    asker_until(two, two->answered == 1);
    is_in_time = one->asked[0].reply.outcome != DM_REG_UNKNOWN;
    if (is_in_time) {
        assert_outcome(&one->asked[0], DM_REG_DONE);
        assert_outcome(&two->asked[0], DM_REG_CONFLICT);
        assert_string_equal(two->asked[0].value, "second");
    }
    asker_end(one);
    asker_end(two);
    return is_in_time;
}

static void test_reserved_row_waits_for_our_next_swap(void **state)
{
    (void)state;
    wait_until(reserve_and_swap());
}

/* The server ends the connection of a process that is stopped with a row reserved */
static void test_process_that_is_stopped_keeps_no_row(void **state)
{
    struct asker *one = asker_start(server->url, NULL), *two = asker_start(server->url, NULL);
    struct dm_reg_item item = { .key = "n/stopped", .reserves = true };
    struct dm_reg_version version = absent;

    (void)state;
    assert_outcome(asker_swap(two, item.key, &version, "first"), DM_REG_DONE);
    asker_post(one, &item, 1, false);
    asker_until(one, one->answered == 1);
    assert_true(one->asked[0].reply.is_reserved);
    assert_outcome(asker_swap(two, item.key, &version, "second"), DM_REG_DONE);
    asker_until(one, one->down == 1);
    asker_end(one);
    asker_end(two);
}

/* ---- servers and data -------------------------------------------------------------------- */

/* SIGKILL with a swap under way: nobody knows, nothing else is lost, and the data are the same */
static void test_crash_in_the_middle_of_a_swap_leaves_old_or_new(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    struct dm_reg_version version = absent;
    char identity[DM_REG_IDENTITY_ROOM];
    MYSQL *connection;

    (void)state;
    memcpy(identity, asker->identity, sizeof identity);
    assert_outcome(asker_swap(asker, "n/crash", &version, "old"), DM_REG_DONE);
    connection = lock_row("n/crash");
    post_swap(asker, "n/crash", &version, "new");
    wait_until(has_waiter());
    mariaserver_kill(server);
    asker_until(asker, asker->answered == 1);
    assert_outcome(&asker->asked[0], DM_REG_UNKNOWN);
    mysql_close(connection);
    mariaserver_restart(server, NULL);
    asker_until(asker, asker->is_up);
    assert_string_equal(asker->identity, identity);
    assert_outcome(asker_read(asker, "n/crash", NULL), DM_REG_DONE);
    assert_string_equal(asker->asked[0].value, "old");
    assert_outcome(asker_swap(asker, "n/crash", &version, "new"), DM_REG_DONE);
    asker_end(asker);
}

/* Where a power failure may lose what was done, each start of the server is another identity */
static void test_start_of_a_server_that_may_forget_is_another_identity(void **state)
{
    static const char *const options[] = { "--innodb-flush-log-at-trx-commit=2", NULL };
    struct asker *asker;
    char identity[DM_REG_IDENTITY_ROOM];

    (void)state;
    mariaserver_restart(server, options);
    asker = asker_start(server->url, NULL);
    memcpy(identity, asker->identity, sizeof identity);
    mariaserver_cut(server);
    asker_until(asker, asker->ready == 2);
    assert_string_equal(asker->identity, identity);
    mariaserver_restart(server, options);
    asker_until(asker, asker->ready == 3);
    assert_string_not_equal(asker->identity, identity);
    asker_end(asker);
    mariaserver_restart(server, NULL);
}

/* A binary log of statements could not have what locks write */
static void test_log_of_statements_is_refused(void **state)
{
    static const char *const options[] = { "--log-bin", "--binlog-format=STATEMENT", NULL };

    (void)state;
    mariaserver_restart(server, options);
    assert_down(server->url, "binlog_format is STATEMENT", true);
    mariaserver_restart(server, NULL);
}

/* The driver finds out that the tables have been emptied, or are others, when it swaps */
static void test_data_that_are_replaced_are_found(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    struct dm_reg_version version = absent;
    char identity[DM_REG_IDENTITY_ROOM];

    (void)state;
    memcpy(identity, asker->identity, sizeof identity);
    assert_outcome(asker_swap(asker, "n/data", &version, "x"), DM_REG_DONE);
    mariaserver_sql(server, "UPDATE locks.dmutex_epoch SET id = UNHEX(REPLACE(UUID(), '-', ''))");
    post_swap(asker, "n/data", &version, "y");
    asker_until(asker, asker->answered == 1);
    assert_outcome(&asker->asked[0], DM_REG_UNKNOWN);
    asker_until(asker, asker->ready == 2);
    assert_string_not_equal(asker->identity, identity);
    drop_tables();
    post_swap(asker, "n/data", &version, "y");
    asker_until(asker, asker->answered == 1);
    assert_outcome(&asker->asked[0], DM_REG_UNKNOWN);
    asker_until(asker, asker->ready == 3);
    assert_outcome(asker_read(asker, "n/data", NULL), DM_REG_DONE);
    assert_int_equal(asker->asked[0].reply.size, 0);
    asker_end(asker);
}

/* ---- refusals ---------------------------------------------------------------------------- */

static void test_login_and_rights_are_told(void **state)
{
    (void)state;
    drop_tables();
    mariaserver_sql(server, "CREATE USER app@localhost IDENTIFIED BY 'secret'");
    assert_down(url_of("app", "locks"), "check user and password", true);
    assert_down(url_of("app:wrong", "locks"), "check user and password", true);
    assert_down(url_of("root", "nowhere"), "name a database that exists", true);
    assert_down(url_of("app:secret", "locks"), "\"dmutex sql mariadb\"", true);
    mariaserver_sql(server, "GRANT SELECT ON locks.* TO app@localhost");
    assert_down(url_of("app:secret", "locks"), "there are no tables dmutex_registers, dmutex_epoch and dmutex_start",
                true);
    asker_end(asker_start(server->url, NULL)); /* makes them */
    assert_down(url_of("app:secret", "locks"), "an admin must grant the account", true);
    mariaserver_sql(server, "GRANT INSERT, UPDATE, DELETE ON locks.dmutex_registers TO app@localhost");
    asker_end(asker_start(url_of("app:secret", "locks"), NULL));
    mariaserver_sql(server, "SET GLOBAL read_only = 1");
    assert_down(url_of("app:secret", "locks"), "this server is read-only", false);
    mariaserver_sql(server, "SET GLOBAL read_only = 0");
    mariaserver_sql(server, "DROP USER app@localhost");
}

/* While a driver runs, too */
static void test_server_that_becomes_read_only_is_left(void **state)
{
    struct asker *asker;
    struct dm_reg_version version = absent;

    (void)state;
    asker_end(asker_start(server->url, NULL));
    mariaserver_sql(server, "CREATE USER app@localhost");
    mariaserver_sql(server, "GRANT ALL ON locks.* TO app@localhost");
    asker = asker_start(url_of("app", "locks"), NULL);
    mariaserver_sql(server, "SET GLOBAL read_only = 1");
    post_swap(asker, "n/read", &version, "x");
    asker_until(asker, asker->answered == 1);
    assert_outcome(&asker->asked[0], DM_REG_UNKNOWN);
    asker_until(asker, asker->down == 1);
    assert_non_null(strstr(asker->reason, "this server is read-only"));
    mariaserver_sql(server, "SET GLOBAL read_only = 0");
    asker_until(asker, asker->ready == 2);
    assert_outcome(asker_swap(asker, "n/read", &version, "x"), DM_REG_DONE);
    asker_end(asker);
    mariaserver_sql(server, "DROP USER app@localhost");
}

static void test_tables_that_cannot_keep_locks_are_refused(void **state)
{
    static const char *const engines[] = { "MyISAM", "Aria", "MEMORY" };

    (void)state;
    for (int i = 0; i < 2; i++) {
        drop_tables();
        asker_end(asker_start(server->url, NULL));
        mariaserver_sql(server, "ALTER TABLE locks.dmutex_registers ENGINE=%s", engines[i]);
        assert_down(server->url, "ALTER TABLE `dmutex_registers` ENGINE=InnoDB", true);
    }
    drop_tables();
    asker_end(asker_start(server->url, NULL));
    mariaserver_sql(server, "ALTER TABLE locks.dmutex_start ENGINE=InnoDB");
    assert_down(server->url, "ALTER TABLE `dmutex_start` ENGINE=MEMORY", true);
    drop_tables();
    asker_end(asker_start(server->url, NULL));
    mariaserver_sql(server, "ALTER TABLE locks.dmutex_registers MODIFY name VARCHAR(250) NOT NULL");
    assert_down(server->url, "the columns of dmutex_registers have been changed", true);
    drop_tables();
    asker_end(asker_start(server->url, NULL));
    mariaserver_sql(server, "DELETE FROM locks.dmutex_epoch");
    asker_end(asker_start(server->url, NULL)); /* draws another one */
}

/* Prefixes of different case are two, although information_schema takes their tables for the same */
static void test_prefixes_differ_by_case(void **state)
{
    static const char *const prefixes[] = { "Case", "case", "Case" };
    char url[160];

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct dm_reg_version version = absent;
        struct asker *asker;

        snprintf(url, sizeof url, "%s&prefix=%s", server->url, prefixes[i]);
        asker = asker_start(url, NULL);
        assert_outcome(asker_swap(asker, "n/case", &version, "x"), i < 2 ? DM_REG_DONE : DM_REG_CONFLICT);
        asker_end(asker);
    }
    mariaserver_sql(server, "DROP TABLE locks.Case_registers, locks.Case_epoch, locks.Case_start");
    mariaserver_sql(server, "DROP TABLE locks.case_registers, locks.case_epoch, locks.case_start");
}

/* A server without free connections is asked again, and its sentence says what to raise */
static void test_full_server_is_told(void **state)
{
    struct asker *asker;

    (void)state;
    mariaserver_sql(server, "CREATE USER app@localhost WITH MAX_USER_CONNECTIONS 1");
    mariaserver_sql(server, "GRANT ALL ON locks.* TO app@localhost");
    asker = asker_start(url_of("app", "locks"), NULL);
    assert_down(url_of("app", "locks"), "each process that locks needs one connection", false);
    asker_end(asker);
    mariaserver_sql(server, "DROP USER app@localhost");
}

static int start_server(void **state)
{
    (void)state;
    server = mariaserver_start();
    return 0;
}

static int end_server(void **state)
{
    (void)state;
    mariaserver_end(server);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_end_of_an_idle_connection_is_found),
        cmocka_unit_test(test_settings_of_others_do_not_matter),
        cmocka_unit_test(test_row_that_is_locked_by_hand_holds_up_nobody_for_ever),
        cmocka_unit_test(test_swap_that_is_killed_is_a_conflict),
        cmocka_unit_test(test_failure_of_one_swap_is_its_own),
        cmocka_unit_test(test_foreign_row_is_refused),
        cmocka_unit_test(test_reserved_row_waits_for_our_next_swap),
        cmocka_unit_test(test_process_that_is_stopped_keeps_no_row),
        cmocka_unit_test(test_crash_in_the_middle_of_a_swap_leaves_old_or_new),
        cmocka_unit_test(test_start_of_a_server_that_may_forget_is_another_identity),
        cmocka_unit_test(test_log_of_statements_is_refused),
        cmocka_unit_test(test_data_that_are_replaced_are_found),
        cmocka_unit_test(test_login_and_rights_are_told),
        cmocka_unit_test(test_server_that_becomes_read_only_is_left),
        cmocka_unit_test(test_tables_that_cannot_keep_locks_are_refused),
        cmocka_unit_test(test_prefixes_differ_by_case),
        cmocka_unit_test(test_full_server_is_told),
    };

    if (!mariaserver_is_possible()) {
        puts("1..0 # SKIP no MariaDB is installed (package mariadb-server-core)");
        return 0;
    }
    test_begin(argc, argv);
    asker_driver = open_mariadb;
    return cmocka_run_group_tests(tests, start_server, end_server);
}

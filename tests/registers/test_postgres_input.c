/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver of PostgreSQL refuses what it cannot use, and says what to do; what users and admins set is harmless. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/units.h"
#include "postgres.h"

/* ---- rights and servers ------------------------------------------------------------------ */

/* Waits for the sentence with which a URL or role is refused. */
static void assert_refused(const char *role, const char *prefix, const char *sentence, bool is_final)
{
    struct asker *asker;
    char url[160];

    snprintf(url, sizeof url, "%s&user=%s", server->url, role);
    asker = asker_open(url, prefix, 0);
    assert_non_null(asker->driver);
    asker->driver->ops->want(asker->driver);
    asker_until(asker, asker->down);
    if (!strstr(asker->reason, sentence))
        fail_msg("no \"%s\" in: %s", sentence, asker->reason);
    assert_int_equal(asker->is_final, is_final);
    assert_int_equal(asker->ready, 0);
    asker_end(asker);
}

/* What is missing is said, and what to do */
static void test_missing_rights_are_named(void **state)
{
    (void)state;
    pgserver_sql(server,
                 "CREATE ROLE plain LOGIN; CREATE ROLE full_house LOGIN CONNECTION LIMIT 0; CREATE ROLE secret1 "
                 "LOGIN PASSWORD 'x'; CREATE ROLE outcast");
    assert_refused("plain", "dmutex", "dmutex sql postgresql", true);
    assert_refused("plain", "other", "dmutex sql postgresql", true);
    assert_refused("plain&dbname=nowhere", "dmutex", "postgresql://HOST/DATABASE", true);
    assert_refused("full_house", "dmutex", "CONNECTION LIMIT", false);
    assert_refused("outcast", "dmutex", "not permitted to log in", true);
    pgserver_sql(server,
                 "GRANT USAGE ON SCHEMA dmutex TO plain; GRANT SELECT, INSERT, UPDATE ON dmutex.registers TO plain; "
                 "GRANT SELECT ON dmutex.epoch TO plain");
    assert_refused("plain", "dmutex", "lacks rights", true);
    pgserver_sql(server, "GRANT DELETE ON dmutex.registers TO plain");
}

/* A password that does not fit */
static void test_wrong_password_is_final(void **state)
{
    char line[128], path[64];
    FILE *file;

    (void)state;
    snprintf(path, sizeof path, "%s/data/pg_hba.conf", server->folder);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("local all secret1 scram-sha-256\nlocal all all trust\nlocal replication all trust\n", file);
    fclose(file);
    pgserver_sql(server, "SELECT pg_reload_conf()");
    wait_until(
        strcmp(pgserver_sql(server, "SELECT count(*) FROM pg_hba_file_rules WHERE auth_method = 'scram-sha-256'"),
               "1") == 0);
    snprintf(line, sizeof line, "secret1&password=n0t_this");
    assert_refused(line, "dmutex", "PGPASSFILE", true);
    assert_refused("secret1", "dmutex", "PGPASSFILE", true);
}

static void write_file(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void write_file(const char *path, const char *format, ...)
{
    FILE *file = fopen(path, "w");
    va_list values;

    assert_non_null(file);
    assert_return_code(fchmod(fileno(file), 0600), errno);
    va_start(values, format);
    vfprintf(file, format, values);
    va_end(values);
    fclose(file);
}

/* Service files and password files are libpq's, and are read for each connection */
static void test_service_and_password_come_from_files(void **state)
{
    char service[64], password[64];
    struct asker *asker;

    (void)state;
    snprintf(service, sizeof service, "%s/service", server->folder);
    snprintf(password, sizeof password, "%s/pass", server->folder);
    pgserver_sql(server, "GRANT plain TO secret1");
    write_file(service, "[locks]\nhost=%s\nuser=secret1\ndbname=postgres\n", server->folder);
    write_file(password, "*:*:*:secret1:y\n");
    setenv("PGSERVICEFILE", service, 1);
    setenv("PGPASSFILE", password, 1);
    asker = asker_open("postgresql://?service=locks", "dmutex", 0);
    asker->driver->ops->want(asker->driver);
    asker_until(asker, asker->down && asker->is_final);
    write_file(password, "*:*:*:secret1:x\n");
    asker_until(asker, asker->ready);
    unsetenv("PGSERVICEFILE");
    unsetenv("PGPASSFILE");
    asker_end(asker);
}

/* A host that takes connections and says nothing delays the others by one connect_timeout */
static void test_silent_host_is_passed_over(void **state)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char silent[32], url[160];
    struct asker *asker;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    (void)state;
    keeper_make_folder(silent, sizeof silent);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/.s.PGSQL.5432", silent);
    assert_return_code(bind(fd, (struct sockaddr *)&address, sizeof address), errno);
    assert_return_code(listen(fd, 5), errno);
    snprintf(url, sizeof url, "postgresql:///postgres?host=%s,%s&user=postgres&connect_timeout=1", silent,
             server->folder);
    asker = asker_start(url, NULL);
    assert_int_equal(asker->down, 1);
    assert_non_null(strstr(asker->reason, "in time"));
    asker_end(asker);
    close(fd);
    keeper_remove_folder(silent);
}

/* What a role or a database sets does not matter */
static void test_settings_of_the_role_are_harmless(void **state)
{
    static const char *const settings[] = {
        "default_transaction_isolation = 'serializable'",
        "default_transaction_read_only = on",
        "default_transaction_deferrable = on",
        "statement_timeout = '100ms'",
        "lock_timeout = '1ms'",
        "idle_session_timeout = '2s'",
        "bytea_output = 'escape'",
        "search_path = evil, pg_catalog",
        "\"TimeZone\" = 'Asia/Kathmandu'",
        "client_encoding = 'LATIN1'",
        "extra_float_digits = -15",
        "standard_conforming_strings = off",
    };
    struct asker *asker, *other = asker_start(server->url, NULL);
    struct dm_reg_version version = absent;
    struct dm_reg_item item = { .key = "n/odd" };
    PGconn *control;
    char url[128];
    int backend;

    (void)state;
    pgserver_sql(server,
                 "CREATE ROLE odd LOGIN; GRANT plain TO odd; CREATE SCHEMA evil; GRANT USAGE ON SCHEMA evil TO odd; "
                 "CREATE FUNCTION evil.never(bytea, bytea) RETURNS boolean LANGUAGE sql AS 'SELECT false'; CREATE "
                 "OPERATOR evil.= (LEFTARG = bytea, RIGHTARG = bytea, FUNCTION = evil.never); CREATE FUNCTION "
                 "evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$SELECT '1970-01-01'::timestamptz$$");
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        pgserver_sql(server, "ALTER ROLE odd SET %s", settings[i]);
    snprintf(url, sizeof url, "%s&user=odd", server->url);
    asker = asker_start(url, "odd");
    assert_string_equal(asker->identity, other->identity);
    assert_outcome(asker_swap_and_tell(asker, "n/odd", &version, "x", "odd", "told"), DM_REG_DONE);
    asker_until(asker, asker->tells == 1);
    assert_outcome(asker_swap(other, "n/odd", &version, "y"), DM_REG_DONE);
    assert_outcome(asker_swap(asker, "n/odd", &absent, "z"), DM_REG_CONFLICT);
    assert_string_equal(asker->asked[0].value, "y");
    assert_true(asker->asked[0].reply.age_ms >= 0 && asker->asked[0].reply.age_ms < WAIT_LIMIT_MS);

    /* longer than statement_timeout and lock_timeout */
    control = lock_row("n/odd");
    item.version = asker->asked[0].reply.version;
    item.value = asker_value(asker, "waited", &item.size);
    asker_post(asker, &item, 1, true);
    asker_until(asker, strcmp(pgserver_sql(server,
                                           "SELECT count(*) FROM pg_stat_activity WHERE pid = %d AND wait_event_type = "
                                           "'Lock' AND query_start < clock_timestamp() - interval '200 ms'",
                                           backend_of(asker)),
                              "1") == 0);
    pgserver_sql_by(control, "COMMIT");
    PQfinish(control);
    asker_until(asker, asker->answered == 1);
    assert_outcome(&asker->asked[0], DM_REG_DONE);

    backend = backend_of(asker);
    control = pgserver_connect(server, "odd"); /* ends by the timeout that the asker has turned off */
    wait_until(!PQconsumeInput(control));
    assert_outcome(asker_read(asker, "n/odd", NULL), DM_REG_DONE);
    assert_int_equal(backend_of(asker), backend);
    PQfinish(control);
    asker_end(asker);
    asker_end(other);
}

/* A role can lock in the tables that an admin has made, and needs no other right; --restored draws another epoch */
static void test_statements_for_an_admin_are_enough(void **state)
{
    struct asker *asker;
    char url[160], identity[DM_REG_IDENTITY_ROOM];
    struct dm_reg_version version = absent;

    (void)state;
    pgserver_sql(server, "CREATE ROLE \"Odd \"\"role\"\"\" LOGIN");
    command_run("exec tools/dmutex sql --prefix by.admin-1 postgresql 'Odd \"role\"'");
    assert_status(0);
    pgserver_sql(server, "%s", ran.output);
    pgserver_sql(server, "%s", ran.output);
    snprintf(url, sizeof url, "%s&user=Odd%%20%%22role%%22", server->url);
    asker = asker_open(url, "by.admin-1", 0);
    asker->driver->ops->want(asker->driver);
    asker_until(asker, asker->ready);
    assert_outcome(asker_swap(asker, "n/a", &version, "x"), DM_REG_DONE);
    assert_outcome(asker_delete(asker, "n/a", &version), DM_REG_DONE);
    snprintf(identity, sizeof identity, "%s", asker->identity);

    command_run("exec tools/dmutex sql --prefix by.admin-1 --restored postgresql");
    assert_status(0);
    pgserver_sql(server, "%s", ran.output);
    assert_outcome(asker_read(asker, "n/a", NULL), DM_REG_UNKNOWN);
    asker_until(asker, asker->ready == 2);
    assert_string_not_equal(asker->identity, identity);
    asker_end(asker);
    command_run("exec tools/dmutex sql");
    assert_status(64);
    command_run("exec tools/dmutex sql --prefix 'a;b' postgresql");
    assert_status(64);
}

/* Several processes that are the first make the tables together */
static void test_tables_are_made_by_whoever_comes_first(void **state)
{
    struct asker *askers[4];

    (void)state;
    for (int i = 0; i < 4; i++) {
        askers[i] = asker_open(server->url, "first.Use-1_", 0);
        askers[i]->driver->ops->want(askers[i]->driver);
    }
    for (int turns = 0; turns < 100; turns++) {
        for (int i = 0; i < 4; i++)
            asker_turn(askers[i]);
    }
    for (int i = 0; i < 4; i++) {
        asker_until(askers[i], askers[i]->ready);
        assert_string_equal(askers[i]->identity, askers[0]->identity);
        assert_int_equal(askers[i]->down, 0);
    }
    for (int i = 0; i < 4; i++)
        asker_end(askers[i]);
}

/* Tables that were dropped are made again, and are other data; what is not ours is refused */
static void test_tables_changed_by_hand(void **state)
{
    struct asker *asker = asker_open(server->url, "hand", 0);
    char identity[DM_REG_IDENTITY_ROOM];
    struct dm_reg_version version = absent;

    (void)state;
    asker->driver->ops->want(asker->driver);
    asker_until(asker, asker->ready);
    snprintf(identity, sizeof identity, "%s", asker->identity);
    assert_outcome(asker_swap(asker, "n/hand", &version, "x"), DM_REG_DONE);
    pgserver_sql(server, "UPDATE hand.registers SET version = 'short'");
    assert_outcome(asker_read(asker, "n/hand", NULL), DM_REG_REFUSED);
    assert_non_null(strstr(asker->asked[0].reason, "by hand"));
    assert_outcome(asker_swap(asker, "n/hand", &version, "y"), DM_REG_REFUSED);
    pgserver_sql(server, "DROP SCHEMA hand CASCADE");
    assert_outcome(asker_swap(asker, "n/hand", &version, "y"), DM_REG_UNKNOWN);
    asker_until(asker, asker->ready == 2);
    assert_string_not_equal(asker->identity, identity);
    assert_outcome(asker_swap(asker, "n/hand", &(struct dm_reg_version){ 0 }, "y"), DM_REG_DONE);
    pgserver_sql(server, "TRUNCATE hand.epoch");
    assert_outcome(asker_read(asker, "n/hand", NULL), DM_REG_UNKNOWN);
    asker_until(asker, asker->ready == 3);
    asker_end(asker);

    pgserver_sql(server, "ALTER TABLE hand.registers DROP CONSTRAINT registers_pkey");
    assert_refused("postgres", "hand", "primary key", true);
    pgserver_sql(server,
                 "ALTER TABLE hand.registers ADD PRIMARY KEY (name); ALTER TABLE hand.registers ALTER value TYPE text "
                 "USING ''");
    assert_refused("postgres", "hand", "columns", true);
    pgserver_sql(server, "DROP TABLE hand.registers; CREATE VIEW hand.registers AS SELECT 1 AS name");
    assert_refused("postgres", "hand", "plain table", true);
    pgserver_sql(server, "DROP SCHEMA hand CASCADE");
}

/* An old snapshot, for instance of a backup, is told */
static void test_old_snapshot_is_told(void **state)
{
    struct asker *asker = asker_start(server->url, NULL);
    PGconn *other = pgserver_connect(server, "postgres");
    char process[32];

    (void)state;
    pgserver_sql_by(other, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
    pgserver_sql(server, "DO $$BEGIN FOR i IN 1..10010 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END$$");
    ((struct dm_postgres *)asker->driver)->looked_ns -= 60 * DM_NS_PER_S;
    asker_until(asker, asker->warning[0]);
    snprintf(process, sizeof process, "process %d", PQbackendPID(other));
    assert_non_null(strstr(asker->warning, process));
    PQfinish(other);
    asker_end(asker);
}

/* Through a pooler nothing is asked but who answers */
static void test_pooler_is_refused(void **state)
{
    static const char *const modes[] = { "transaction", "session" };

    (void)state;
    for (int i = 0; i < 2 && pgbouncer_is_possible(); i++) {
        const char *url;
        pid_t pid = pgbouncer_start(server, modes[i], &url);
        struct asker *asker = asker_open(url, "dmutex", 0);

        asker->driver->ops->want(asker->driver);
        asker_until(asker, asker->down);
        assert_non_null(strstr(asker->reason, "pooler"));
        assert_true(asker->is_final);
        assert_int_equal(asker->ready, 0);
        asker_end(asker);
        kill(pid, SIGTERM);
        keeper_reap(pid);
    }
}

/* ---- URLs -------------------------------------------------------------------------------- */

static const char *reason_of(const char *url)
{
    static char reason[DM_REG_REASON_ROOM];
    struct asker *asker = asker_open(url, "dmutex", 0);

    assert_null(asker->driver);
    snprintf(reason, sizeof reason, "%s", asker->reason);
    asker_end(asker);
    return reason;
}

/* A URL that libpq does not take is refused without a word of it that may be secret */
static void test_bad_url_is_refused_without_its_secrets(void **state)
{
    (void)state;
    assert_non_null(strstr(reason_of("postgresql://u:hush@h/db?prefix=x"), "\"prefix\""));
    assert_null(strstr(reason_of("postgresql://u:hush@h/db?prefix=x"), "hush"));
    assert_null(strstr(reason_of("postgresql://u:hu%sh@h/db"), "hu%"));
    assert_null(strstr(reason_of("postgresql://u:hush@h/db?hush2"), "hush2="));
    assert_null(strstr(reason_of("postgresql://u:hush"), "hush"));
    assert_non_null(strstr(reason_of("postgresql://h/db?replication=database"), "replication"));
}

/* The place is said without user and password */
static void test_place_has_no_secrets(void **state)
{
    static const char *const wanted[][2] = {
        { "postgresql://u:hush@h1:99,h2/db", "PostgreSQL at h1:99/db" },
        { "postgres://", "PostgreSQL at the usual place" },
        { "postgres://?host=/tmp/x", "PostgreSQL at /tmp/x" },
        { "postgres://?service=locks", "PostgreSQL, service locks" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        struct asker *asker = asker_open(wanted[i][0], "dmutex", 0);
        char place[300];

        assert_non_null(asker->driver);
        asker->driver->ops->place(asker->driver, place, sizeof place);
        assert_string_equal(place, wanted[i][1]);
        asker_end(asker);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing_rights_are_named),
        cmocka_unit_test(test_wrong_password_is_final),
        cmocka_unit_test(test_service_and_password_come_from_files),
        cmocka_unit_test(test_silent_host_is_passed_over),
        cmocka_unit_test(test_settings_of_the_role_are_harmless),
        cmocka_unit_test(test_statements_for_an_admin_are_enough),
        cmocka_unit_test(test_tables_are_made_by_whoever_comes_first),
        cmocka_unit_test(test_tables_changed_by_hand),
        cmocka_unit_test(test_old_snapshot_is_told),
        cmocka_unit_test(test_pooler_is_refused),
        cmocka_unit_test(test_bad_url_is_refused_without_its_secrets),
        cmocka_unit_test(test_place_has_no_secrets),
    };

    run_on_postgres(tests, argc, argv);
}

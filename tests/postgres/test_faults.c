/* SPDX-License-Identifier: BSD-2-Clause */
/* What goes wrong with a database: each fault has a sentence with what to do, and nothing is lost. */
#include "../tools/tool.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "../lib/folder.h"
#include "../registers/pgserver.h"

#define NOBODY 65534

static struct pgserver *server;

static int setup(void **state)
{
    (void)state;
    server = pgserver_start();
    keeper_make_folder(folder, sizeof folder);
    tool_use(folder, server->url);
    command_run("exec $dmutex run --lease 1000 first true");
    assert_status(0);
    pgserver_sql(server, "CREATE ROLE app LOGIN");
    return 0;
}

static int teardown(void **state)
{
    pgserver_end(server);
    return folder_teardown(state);
}

/* Asserts that a lock fails with this status, and that its sentence contains these words. */
static void assert_fails(const char *options, int status, const char *words)
{
    command_run("DMUTEX_URL='%s%s' exec $dmutex run -w 5 --lease 1000 fault true", server->url, options);
    assert_status(status);
    assert_errors(words);
}

static void assert_locks(const char *options)
{
    command_run("DMUTEX_URL='%s%s' exec $dmutex run -w 20 --lease 1000 fault true", server->url, options);
    assert_status(0);
}

/* A role that cannot log in is told so, and asks once */
static void test_wrong_password_is_told(void **state)
{
    char rules[128];

    (void)state;
    snprintf(rules, sizeof rules, "%s/data/pg_hba.conf", server->folder);
    command_run("sed -i '1i local all locked scram-sha-256' %s", rules);
    pgserver_sql(server, "SELECT pg_reload_conf()");
    pgserver_sql(server, "CREATE ROLE locked LOGIN PASSWORD 'right'");
    assert_fails("&user=locked&password=wrong", 77, "check user and password in the URL");
    assert_null(strstr(ran.errors, "wrong"));
    assert_fails("&user=locked", 77, "check user and password in the URL");
    assert_fails("&user=nobody_of_that_name", 77, "check user and password in the URL");
    pgserver_sql(server, "GRANT USAGE ON SCHEMA dmutex TO locked; GRANT ALL ON ALL TABLES IN SCHEMA dmutex TO locked");
    assert_locks("&user=locked&password=right");
}

/* What an admin must do is said, and is enough */
static void test_missing_tables_and_rights_are_told(void **state)
{
    (void)state;
    assert_fails("&user=app&dmutex.prefix=other", 77, "let an admin run what \"dmutex sql postgresql\" prints");
    assert_fails("&user=app", 77, "an admin must grant what \"dmutex sql postgresql\" prints");
    command_run("exec $dmutex sql postgresql app");
    pgserver_sql(server, "%s", ran.output);
    assert_locks("&user=app");
    pgserver_sql(server, "REVOKE UPDATE ON dmutex.registers FROM app");
    assert_fails("&user=app", 77, "an admin must grant what \"dmutex sql postgresql\" prints");
    pgserver_sql(server, "GRANT UPDATE ON dmutex.registers TO app");
    assert_locks("&user=app");
}

/* A database that is not there, and a server that is not */
static void test_wrong_place_is_told(void **state)
{
    (void)state;
    command_run("DMUTEX_URL='postgresql:///nothing?host=%s&user=postgres' exec $dmutex run -w 5 fault true",
                server->folder);
    assert_status(77);
    assert_errors("name the database in the URL, postgresql://HOST/DATABASE");
    command_run("DMUTEX_URL='postgresql:///x?host=/nowhere&user=postgres' exec $dmutex run -w 1 fault true");
    assert_status(69);
    assert_errors("cannot reach PostgreSQL at /nowhere");
    assert_errors("failed: No such file or directory");
    command_run("DMUTEX_URL=postgresql://127.0.0.1:1/x exec $dmutex run -w 1 fault true");
    assert_status(69);
    assert_errors("failed: Connection refused");
}

/* A standby cannot keep locks */
static void test_standby_is_refused(void **state)
{
    struct pgserver *standby = pgserver_start_standby(server);

    (void)state;
    command_run("DMUTEX_URL='%s' exec $dmutex run -w 1 fault true", standby->url);
    assert_status(69);
    assert_errors("standby");
    pgserver_end(standby);
}

/* A process that gets no connection says what to raise, and locks when there is one */
static void test_limit_of_connections_is_told(void **state)
{
    char url[160];
    struct actor *holder;

    (void)state;
    pgserver_sql(server, "ALTER ROLE app CONNECTION LIMIT 1");
    snprintf(url, sizeof url, "%s&user=app", server->url);
    holder = actor_start_at(url);
    actor_do(holder, "0", "init limit lease=3000");
    actor_do(holder, "0", "lock limit");
    assert_fails("&user=app", 69, "CONNECTION LIMIT; each process that locks needs one connection");
    actor_do(holder, "0", "unlock limit");
    actor_end(holder);
    assert_locks("&user=app");
    pgserver_sql(server, "ALTER ROLE app CONNECTION LIMIT -1");
}

/* A value that is not ours is refused, named, and not overwritten; with the right one the lock goes on */
static void test_changed_row_is_refused(void **state)
{
    (void)state;
    assert_locks("");
    pgserver_sql(server, "CREATE TABLE saved AS SELECT * FROM dmutex.registers WHERE name = 'n/fault'");
    pgserver_sql(server, "UPDATE dmutex.registers SET value = 'by hand' WHERE name = 'n/fault'");
    assert_fails("", 69, "the value of n/fault is not ours");
    assert_string_equal(pgserver_sql(server, "SELECT value = 'by hand' FROM dmutex.registers WHERE name = 'n/fault'"),
                        "t");
    /* As a later version may write it: the first letter says the form. */
    pgserver_sql(server, "UPDATE dmutex.registers r SET value = overlay(s.value placing 'N' from 1) FROM saved s "
                         "WHERE r.name = s.name");
    assert_fails("", 69, "was written by another version of libdmutex");
    pgserver_sql(server, "UPDATE dmutex.registers r SET value = s.value FROM saved s WHERE r.name = s.name");
    assert_locks("");
    pgserver_sql(server, "DROP TABLE saved");
}

/* What an admin has put on the tables is named, and tried again now and then, not all the time */
static void test_triggers_and_row_security_are_told(void **state)
{
    (void)state;
    assert_locks("");
    pgserver_sql(server, "CREATE SEQUENCE tried; CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS "
                         "$$BEGIN PERFORM nextval('tried'); RETURN NULL; END$$; CREATE TRIGGER keep BEFORE UPDATE ON "
                         "dmutex.registers FOR EACH ROW EXECUTE FUNCTION keep()");
    assert_fails("", 69, "a trigger or row security of the table \"dmutex\".registers keeps rows from being written");
    pgserver_sql(server, "DROP TRIGGER keep ON dmutex.registers; CREATE TRIGGER keep BEFORE INSERT ON "
                         "dmutex.registers FOR EACH ROW EXECUTE FUNCTION keep()");
    assert_fails("", 69, "a trigger or row security of the table \"dmutex\".registers keeps rows from being written");
    assert_within(atoi(pgserver_sql(server, "SELECT last_value FROM tried")), 4, 1000);
    pgserver_sql(server, "DROP TRIGGER keep ON dmutex.registers");
    pgserver_sql(server, "CREATE RULE keep AS ON UPDATE TO dmutex.registers DO INSTEAD NOTHING");
    assert_fails("", 69, "INSERT or UPDATE rules");
    pgserver_sql(server, "DROP RULE keep ON dmutex.registers");
    command_run("exec $dmutex sql postgresql app");
    pgserver_sql(server, "%s", ran.output);
    pgserver_sql(server, "ALTER TABLE dmutex.registers ENABLE ROW LEVEL SECURITY");
    assert_fails("&user=app", 69, "without row security");
    assert_locks(""); /* its owner sees all */
    pgserver_sql(server, "ALTER TABLE dmutex.registers DISABLE ROW LEVEL SECURITY");
    assert_locks("&user=app");
}

/* A clock that was set back makes ages negative, so the dead are found by watching */
static void test_dead_holder_is_found_when_the_clock_is_set_back(void **state)
{
    struct actor *holder = actor_start_at(server->url);

    (void)state;
    actor_do(holder, "0", "init fault lease=1000");
    actor_do(holder, "0", "lock fault");
    actor_kill(holder);
    pgserver_sql(server, "UPDATE dmutex.registers SET written = written + interval '1 day'");
    assert_locks("");
}

/* An admin who cancels statements and ends sessions costs time, and no lock is lost or given twice */
static void test_cancelled_statements_lose_nothing(void **state)
{
    struct actor *actors[2];
    char path[64];

    (void)state;
    snprintf(path, sizeof path, "%s/count", folder);
    actor_begin_count(path);
    for (int i = 0; i < 2; i++) {
        actors[i] = actor_start_at(server->url);
        actor_send(actors[i], "count %s 150 cancel 1", path);
    }
    for (int i = 0; i < 100; i++)
        pgserver_sql(server, "SELECT count(%s(pid)) FROM pg_stat_activity WHERE application_name = 'dmutex'",
                     i % 25 == 24 ? "pg_terminate_backend" : "pg_cancel_backend");
    for (int i = 0; i < 2; i++) {
        assert_string_equal(actor_answer_of_count(actors[i], path), "0");
        actor_end(actors[i]);
    }
    assert_true(actor_counted(path) >= 300);
}

/* ---- a server that is killed in the middle of a swap --------------------------------------- */

static struct actor *start_without_grace(const char *name)
{
    char url[160];
    struct actor *actor;

    snprintf(url, sizeof url, "%s&dmutex.grace=off", server->url);
    actor = actor_start_at(url);
    actor_do(actor, "0", "init %s lease=60000", name);
    return actor;
}

/* A session of ours, or of one backend, that waits for this; 0: none. */
static pid_t find_waiting(const char *what, int backend)
{
    return atoi(pgserver_sql(server,
                             "SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE wait_event = '%s' AND "
                             "CASE %d WHEN 0 THEN application_name = 'dmutex' ELSE pid = %d END",
                             what, backend, backend));
}

/* True once commits are durable, and answered no more: they wait for a standby that does not exist. */
static bool are_answers_held(PGconn *probe)
{
    PGresult *result;

    PQconsumeInput(probe);
    if (!PQisBusy(probe)) {
        while ((result = PQgetResult(probe)))
            PQclear(result);
        PQsendQuery(probe, "INSERT INTO probes VALUES (1)");
    }
    return find_waiting("SyncRep", PQbackendPID(probe)) > 0;
}

static void reload(const char *statement)
{
    pgserver_sql(server, "%s", statement);
    pgserver_sql(server, "SELECT pg_reload_conf()");
}

/* The swap of the call is executed and never answered, or never executed. */
static void call_and_kill(struct actor *actor, const char *call, bool is_executed)
{
    PGconn *other = pgserver_connect(server, "postgres");
    char before[64];
    pid_t backend;

    snprintf(before, sizeof before, "%s",
             pgserver_sql(server, "SELECT encode(version, 'hex') FROM dmutex.registers WHERE name = 'n/mid'"));
    if (is_executed) {
        reload("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
        wait_until(are_answers_held(other));
    } else {
        pgserver_sql_by(other, "BEGIN");
        pgserver_sql_by(other, "SELECT FROM dmutex.registers WHERE name = 'n/mid' FOR UPDATE");
    }
    actor_send(actor, "%s mid", call);
    wait_until((backend = find_waiting(is_executed ? "SyncRep" : "transactionid", 0)) > 0);
    actor_stop(actor);
    kill(backend, SIGKILL);
    pgserver_await(server);
    if (is_executed)
        reload("ALTER SYSTEM RESET synchronous_standby_names");
    PQfinish(other);
    assert_int_equal(
        strcmp(pgserver_sql(server, "SELECT encode(version, 'hex') FROM dmutex.registers WHERE name = 'n/mid'"),
               before) != 0,
        is_executed);
    actor_cont(actor);
    actor_expect(actor, "0");
}

/* The process cannot know whether the swap was executed; in both cases each call does what it says */
static void test_server_killed_in_mid_swap_loses_nothing(void **state)
{
    struct actor *actor = start_without_grace("mid"), *other = start_without_grace("mid");

    (void)state;
    pgserver_sql(server, "CREATE TABLE probes (number int)");
    actor_do(actor, "0", "lock mid");
    actor_do(actor, "0", "unlock mid");
    for (int is_executed = 0; is_executed < 2; is_executed++) {
        long long token;

        call_and_kill(actor, "lock", is_executed);
        token = actor_value(actor, "token mid");
        actor_do(other, "EBUSY", "trylock mid");
        call_and_kill(actor, "unlock", is_executed);
        actor_do(other, "0", "lock mid");
        assert_true(actor_value(other, "token mid") > token);
        actor_do(other, "0", "unlock mid");
    }
    assert_int_equal(actor_losses(actor), 0);
    actor_end(actor);
    actor_end(other);
}

/* What is held when its row is changed is given back as soon as the row is right again */
static void test_unlock_waits_for_a_row_that_was_changed(void **state)
{
    struct actor *actor = start_without_grace("row"), *other = start_without_grace("row");

    (void)state;
    actor_do(actor, "0", "lock row");
    pgserver_sql(server, "CREATE TABLE right_ones AS SELECT * FROM dmutex.registers WHERE name = 'n/row'");
    pgserver_sql(server, "UPDATE dmutex.registers SET value = 'by hand', version = decode(repeat('ab', 24), 'hex') "
                         "WHERE name = 'n/row'");
    actor_do(actor, "0", "unlock row");
    pgserver_sql(server, "UPDATE dmutex.registers r SET value = o.value, version = o.version FROM right_ones o "
                         "WHERE r.name = o.name");
    actor_do(other, "0", "lock row");
    actor_do(other, "0", "unlock row");
    assert_int_equal(actor_losses(actor), 0);
    actor_end(actor);
    actor_end(other);
}

/* No room for another row: the lock fails and says so, what is held can be unlocked, and then locks go on */
static void test_full_disk_is_told(void **state)
{
    struct actor *holder;
    char path[64], options[64];
    struct stat owner;

    (void)state;
    snprintf(path, sizeof path, "%s/small", server->folder);
    assert_return_code(mkdir(path, 0700), errno);
    assert_return_code(stat(server->folder, &owner), errno);
    snprintf(options, sizeof options, "size=512k,mode=700,uid=%u", (unsigned)owner.st_uid);
    if (mount("tmpfs", path, "tmpfs", 0, options) < 0)
        return; /* not in this container */
    pgserver_sql(server, "CREATE TABLESPACE small LOCATION '%s'", path);
    pgserver_sql(server, "ALTER TABLE dmutex.registers SET TABLESPACE small");
    holder = actor_start_at(server->url);
    actor_do(holder, "0", "init held/on lease=3000");
    actor_do(holder, "0", "lock held/on");
    command_run("cat /dev/zero >%s/filler 2>/dev/null; for i in $(seq 400); do "
                "$dmutex run -w 2 --lease 1000 full/$(printf %%0150d $i) true || exit; done",
                path);
    assert_status(69);
    assert_errors("the server's disk is full");
    actor_do(holder, "0", "unlock held/on");
    command_run("rm %s/filler", path);
    assert_locks("");
    actor_end(holder);
    pgserver_sql(server, "ALTER TABLE dmutex.registers SET TABLESPACE pg_default");
    pgserver_sql(server, "DROP TABLESPACE small");
    assert_return_code(umount(path), errno);
}

/*
 * libpq obeys the caller's variables and files, such as PGHOST and ~/.pg_service.conf, also in a program with more
 * rights than its caller: it would take the program's locks, and password, to a server of the caller's choice.
 */
static void test_program_with_more_rights_is_refused(void **state)
{
    char *own = program_path, copy[128];
    struct statvfs system;
    struct actor *actor;

    (void)state;
    assert_return_code(statvfs(folder, &system), errno);
    if (system.f_flag & ST_NOSUID)
        return; /* there are no such programs here */
    snprintf(copy, sizeof copy, "%s/rights", folder);
    command_run("chmod 755 %s && cp '%s' %s && chown %d %s && chmod 4755 %s", folder, own, copy, NOBODY, copy, copy);
    assert_status(0);
    program_path = copy;
    actor = actor_start_at(server->url);
    program_path = own;
    actor_do(actor, "0", "configure %s", server->url); /* DMUTEX_URL is the caller's, too */
    actor_do(actor, "EINVAL", "trylock more/rights");
    actor_send(actor, "strerror");
    if (!strstr(actor_answer(actor), "more rights than its caller"))
        fail_msg("no sentence about rights");
    actor_end(actor);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_password_is_told),
        cmocka_unit_test(test_missing_tables_and_rights_are_told),
        cmocka_unit_test(test_wrong_place_is_told),
        cmocka_unit_test(test_standby_is_refused),
        cmocka_unit_test(test_limit_of_connections_is_told),
        cmocka_unit_test(test_changed_row_is_refused),
        cmocka_unit_test(test_triggers_and_row_security_are_told),
        cmocka_unit_test(test_dead_holder_is_found_when_the_clock_is_set_back),
        cmocka_unit_test(test_cancelled_statements_lose_nothing),
        cmocka_unit_test(test_server_killed_in_mid_swap_loses_nothing),
        cmocka_unit_test(test_unlock_waits_for_a_row_that_was_changed),
        cmocka_unit_test(test_full_disk_is_told),
        cmocka_unit_test(test_program_with_more_rights_is_refused),
    };

    test_begin(argc, argv);
    if (!pgserver_is_possible()) {
        puts("1..0 # SKIP no PostgreSQL is installed (package postgresql)");
        return 0;
    }
    return cmocka_run_group_tests(tests, setup, teardown);
}

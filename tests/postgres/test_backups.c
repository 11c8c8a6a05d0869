/* SPDX-License-Identifier: BSD-2-Clause */
/* Backups are restored while a lock is held, as the guide says: its holder keeps it, and nobody else gets it. */
#include "../tools/tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/command.h"
#include "../registers/pgserver.h"

/* No lease ends in a test. */
#define LEASE "lease=60000"

static struct pgserver *server;
static struct actor *holder, *other;
static char *restored; /* the statements that draw a new epoch */

static int setup(void **state)
{
    char path[128];

    (void)state;
    test_build_path(path, sizeof path, "tools/dmutex");
    command_run("exec %s sql --restored postgresql", path);
    assert_status(0);
    restored = strdup(ran.output);
    server = pgserver_start();
    holder = actor_start_at(server->url);
    other = actor_start_at(server->url);
    actor_do(holder, "0", "init held " LEASE);
    actor_do(other, "0", "init held " LEASE);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    actor_end(holder);
    actor_end(other);
    pgserver_end(server);
    free(restored);
    return 0;
}

/* In the backup, another process than now holds the mutex.  The first lock on new tables need not wait for a lease. */
static struct actor *hold_before(void)
{
    char url[160];
    struct actor *early;

    snprintf(url, sizeof url, "%s&dmutex.grace=off", server->url);
    early = actor_start_at(url);
    actor_do(early, "0", "init held " LEASE);
    actor_do(early, "0", "lock held");
    return early;
}

static long long hold_now(struct actor *early)
{
    actor_do(early, "0", "unlock held");
    actor_end(early);
    actor_do(holder, "0", "lock held");
    return actor_value(holder, "token held");
}

/* The holder of now still holds, its hold excludes others, and the next one has a higher token. */
static void assert_held(long long token)
{
    actor_do(holder, "0", "renew held");
    assert_true(actor_value(holder, "token held") == token);
    actor_do(other, "EBUSY", "trylock held");
    actor_send(other, "lock held");
    actor_do(holder, "0", "renew held");
    assert_true(actor_is_silent(other));
    actor_do(holder, "0", "unlock held");
    actor_expect(other, "0");
    assert_true(actor_value(other, "token held") > token);
    actor_do(other, "0", "unlock held");
    assert_int_equal(actor_losses(holder), 0);
}

/* By pg_dump and pg_restore, while programs run */
static void test_hold_outlives_the_restoration_of_a_dump(void **state)
{
    struct actor *early = hold_before();
    long long token;

    (void)state;
    pgserver_dump(server);
    token = hold_now(early);
    wait_until(pgserver_restore(server, restored));
    assert_held(token);
}

/* The archive has all that was written so far. */
static void archive_all(void)
{
    char segment[32];

    snprintf(segment, sizeof segment, "%s", pgserver_sql(server, "SELECT pg_walfile_name(pg_switch_wal())"));
    wait_until(
        strcmp(pgserver_sql(server, "SELECT coalesce(last_archived_wal, '') >= '%s' FROM pg_stat_archiver", segment),
               "t") == 0);
}

/* From a copy and the archive, to a moment before the lock that the holder has */
static void test_hold_outlives_a_recovery_to_a_point_in_time(void **state)
{
    struct actor *early;
    long long token;

    (void)state;
    pgserver_shell(server, "mkdir archive");
    pgserver_sql(server, "ALTER SYSTEM SET archive_mode = on");
    pgserver_sql(server, "ALTER SYSTEM SET archive_command = 'cp %%p ../archive/%%f'");
    pgserver_shutdown(server);
    pgserver_restart(server);
    early = hold_before();
    pgserver_shell(server, "pg_basebackup -D copy -h \"$PWD\" -U postgres -c fast -N");
    pgserver_sql(server, "SELECT pg_create_restore_point('early')");
    token = hold_now(early);
    archive_all();
    pgserver_crash(server);
    pgserver_shell(server, "rm -r data && mv copy data && touch data/recovery.signal && printf '%s\\n' "
                           "\"restore_command = 'cp ../archive/%f %p'\" \"recovery_target_name = 'early'\" "
                           "\"recovery_target_action = 'promote'\" >>data/postgresql.auto.conf");
    pgserver_restart(server);
    wait_until(strcmp(pgserver_sql(server, "SELECT pg_is_in_recovery()"), "f") == 0);
    pgserver_sql(server, "%s", restored);
    assert_held(token);
}

/* By a copy of the disk, whose server calls itself the same: the new epoch is drawn before programs can connect */
static void test_hold_outlives_an_older_copy_of_the_disk(void **state)
{
    struct actor *early = hold_before();
    char path[64];
    long long token;
    FILE *file;

    (void)state;
    pgserver_shutdown(server);
    pgserver_shell(server, "cp -a data copy");
    pgserver_restart(server);
    token = hold_now(early);
    pgserver_crash(server);
    snprintf(path, sizeof path, "%s/restored", server->folder);
    file = fopen(path, "we");
    assert_non_null(file);
    fputs(restored, file);
    fclose(file);
    pgserver_shell(server, "rm -r data && mv copy data && postgres --single -D data postgres <restored");
    pgserver_restart(server);
    assert_held(token);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hold_outlives_the_restoration_of_a_dump),
        cmocka_unit_test(test_hold_outlives_a_recovery_to_a_point_in_time),
        cmocka_unit_test(test_hold_outlives_an_older_copy_of_the_disk),
    };

    test_begin(argc, argv);
    if (!pgserver_is_possible()) {
        puts("1..0 # SKIP no PostgreSQL is installed (package postgresql)");
        return 0;
    }
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Backups are restored while locks are held, as the guide says: no lock is given away. */
#include "../tools/tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/command.h"
#include "../registers/pgserver.h"

/*
 * No lease ends in a test.  A restored name is in doubt for as long, and so is every name at first.  A renewal may take
 * a third, which must be less than command_timeout, 5 s.
 */
#define LEASE "lease=12000"

static struct pgserver *server;
static struct actor *holder, *early, *other;
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
    early = actor_start_at(server->url);
    other = actor_start_at(server->url);
    actor_do(holder, "0", "init held " LEASE);
    actor_do(early, "0", "init held " LEASE);
    actor_do(other, "0", "init held " LEASE);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    actor_end(holder);
    actor_end(early);
    actor_end(other);
    pgserver_end(server);
    free(restored);
    return 0;
}

/* In the backup, another process than now holds the mutex. */
static void hold_before(void)
{
    actor_do(early, "0", "lock held");
}

static long long hold_now(void)
{
    actor_do(early, "0", "unlock held");
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
    long long token;

    (void)state;
    hold_before();
    pgserver_dump(server);
    token = hold_now();
    wait_until(pgserver_restore(server, restored));
    assert_held(token);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hold_outlives_the_restoration_of_a_dump),
    };

    test_begin(argc, argv);
    if (!pgserver_is_possible()) {
        puts("1..0 # SKIP no PostgreSQL is installed (package postgresql)");
        return 0;
    }
    return cmocka_run_group_tests(tests, setup, teardown);
}

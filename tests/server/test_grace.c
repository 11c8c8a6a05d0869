/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Promise P3: a server that has replaced another, or has lost the data, grants nothing of its own accord for one lease,
 * and the holders come back with their tokens. Unlike those of all other tests, the actors here use a URL without
 * grace=off.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../lib/testlib.h"

#define LEASE 10000
#define SHORT_LEASE 400
#define LONG_LEASE 60000

static struct actor *start(void)
{
    char url[112];

    snprintf(url, sizeof url, "unix://%s", the_server->path);
    return actor_start_at(url);
}

static struct actor *start_without_grace(void)
{
    return actor_start_at(the_server->url);
}

static void restart_empty(void)
{
    server_kill(the_server);
    server_restart(the_server);
}

/* Clients that come now find a server that is old. */
static void end_grace(void)
{
    server_make_old(the_server);
    side_text(the_server->side, "CLIENT KILL TYPE normal SKIPME yes");
}

static struct actor *start_holder(struct actor *(*begin)(void), const char *name, int lease_ms)
{
    struct actor *holder = begin();

    actor_do(holder, "0", "init %s lease=%d", name, lease_ms);
    actor_do(holder, "0", "lock %s", name);
    return holder;
}

/* ---- a server that was restarted --------------------------------------------------------- */

/*
 * An owner that was stopped when the server came back is the owner all the same, though another process asks first. A
 * lock that the owner gives back goes to no process in the grace: another message of the owner might have given the
 * lock back before.
 */
static void test_the_owner_comes_back_when_an_empty_server_was_asked_by_another_first(void **state)
{
    struct actor *a, *b;

    (void)state;
    server_make_old(the_server);
    a = start_holder(start, "grace/empty", LEASE);
    actor_stop(a);
    restart_empty();
    b = start();
    actor_do(b, "0", "init grace/empty lease=%d", LEASE);
    actor_do(b, "EBUSY", "trylock grace/empty");
    actor_send(b, "lock grace/empty");
    wait_until(waiters_at(the_server->side, "grace/empty") == 1);
    assert_int_equal(side_int(the_server->side, "EXISTS %s", key_of("lock", "grace/empty")), 0);
    actor_cont(a);
    wait_until(side_int(the_server->side, "EXISTS %s", key_of("lock", "grace/empty")) == 1);
    assert_true(actor_is_silent(b));
    actor_do(a, "0", "unlock grace/empty");
    actor_do(a, "EBUSY", "trylock grace/empty");
    assert_true(actor_is_silent(b));
    end_grace();
    actor_expect(b, "0");
    actor_do(b, "0", "unlock grace/empty");
    actor_end(a);
    actor_end(b);
}

/* The result of the test above is the grace's doing: without the grace, there are two owners. */
static void test_another_owns_at_once_when_an_empty_server_has_no_grace(void **state)
{
    struct actor *a = start_holder(start_without_grace, "grace/without", LEASE), *b;

    (void)state;
    actor_stop(a);
    restart_empty();
    b = start_without_grace();
    actor_do(b, "0", "init grace/without lease=%d", LEASE);
    actor_do(b, "0", "trylock grace/without");
    actor_cont(a);
    actor_do(b, "0", "unlock grace/without");
    actor_end(a);
    actor_end(b);
}

/* A lease after the start a server grants as ever: no earlier holder can be left. */
static void test_a_waiter_owns_when_the_grace_is_over(void **state)
{
    struct actor *a;

    (void)state;
    restart_empty();
    a = start();
    actor_do(a, "0", "init grace/over lease=%d", LONG_LEASE);
    actor_do(a, "EBUSY", "trylock grace/over");
    actor_do(a, "0", "init grace/soon lease=%d", SHORT_LEASE);
    actor_do(a, "0", "lock grace/soon");
    actor_do(a, "EBUSY", "trylock grace/over");
    actor_do(a, "0", "unlock grace/soon");
    actor_end(a);
}

/* The mark is the server's, not a client's: a later client knows as much. */
static void test_the_grace_is_the_same_for_all_who_come(void **state)
{
    int64_t born;

    (void)state;
    restart_empty();
    actor_end(start_holder(start, "grace/first", 100));
    born = side_int(the_server->side, "HGET dmutex:server since");
    actor_end(start_holder(start, "grace/second", 100));
    assert_int_equal(side_int(the_server->side, "HGET dmutex:server since"), born);
}

/* The server's uptime is in whole seconds of its clock. */
static void test_a_server_is_no_older_than_its_start_when_a_second_ends_just_then(void **state)
{
    struct timespec began;

    (void)state;
    do
        clock_gettime(CLOCK_REALTIME, &began);
    while (began.tv_nsec < 900000000);
    restart_empty();
    wait_until(strstr(side_text(the_server->side, "INFO server"), "uptime_in_seconds:1"));
    actor_end(start_holder(start, "grace/second", 100));
    assert_true(side_int(the_server->side, "HGET dmutex:server since") >=
                (int64_t)began.tv_sec * 1000000 + began.tv_nsec / 1000);
}

/* A condition's waiter that is signalled in the grace gets the mutex when the grace is over. */
static void test_a_signal_does_not_grant_in_the_grace(void **state)
{
    struct actor *a, *b;

    (void)state;
    server_make_old(the_server);
    a = start_holder(start, "grace/mutex", SHORT_LEASE * 4);
    actor_send(a, "wait grace/cond grace/mutex");
    wait_until(side_int(the_server->side, "ZCARD dmutex:{grace}:cond:cond") == 1);
    side_text(the_server->side, "HSET dmutex:server mark other");
    side_text(the_server->side, "CLIENT KILL TYPE normal SKIPME yes");
    b = start();
    actor_do(b, "0", "signal grace/cond");
    wait_until(side_int(the_server->side, "ZCARD dmutex:{grace}:cond:cond") == 0);
    assert_int_equal(side_int(the_server->side, "EXISTS %s", key_of("lock", "grace/mutex")), 0);
    actor_expect(a, "0");
    actor_do(a, "0", "unlock grace/mutex");
    actor_end(a);
    actor_end(b);
}

/* The call that gives the hold up has begun when the new server comes, which does not know the hold. */
static struct actor *start_leaver(const char *call)
{
    struct actor *leaver;

    server_make_old(the_server);
    leaver = start();
    actor_do(leaver, "0", "init grace/left robust lease=%d", LONG_LEASE);
    actor_do(leaver, "0", "lock grace/left");
    server_kill(the_server);
    actor_send(leaver, "%s", call);
    server_restart(the_server);
    return leaver;
}

/* The unlock awaits the answer, and "not the owner" would be EPERM. */
static void test_a_robust_mutex_is_unlocked_at_an_empty_server(void **state)
{
    struct actor *a = start_leaver("unlock grace/left");

    (void)state;
    actor_expect(a, "0");
    assert_int_equal(side_int(the_server->side, "EXISTS %s", key_of("lock", "grace/left")), 0);
    actor_end(a);
}

static void test_a_wait_gives_its_mutex_up_at_an_empty_server(void **state)
{
    struct actor *a = start_leaver("wait grace/cond grace/left"), *b;

    (void)state;
    wait_until(side_int(the_server->side, "ZCARD dmutex:{grace}:cond:cond") == 1);
    assert_int_equal(side_int(the_server->side, "EXISTS %s", key_of("lock", "grace/left")), 0);
    end_grace();
    b = start();
    actor_do(b, "0", "signal grace/cond");
    actor_expect(a, "0");
    actor_do(a, "0", "unlock grace/left");
    actor_end(a);
    actor_end(b);
}

/* ---- a replica that was promoted --------------------------------------------------------- */

static struct server *start_replica(void)
{
    char port[12];

    snprintf(port, sizeof port, "%d", the_server->port);
    return server_start_with(true, "--replicaof", "127.0.0.1", port, NULL);
}

static bool is_in_step(struct server *replica, const char *name)
{
    return side_int(replica->side, "EXISTS %s", key_of("lock", name)) == 1;
}

/* Cuts the replica off from the master: if it were stopped, it would read what is on the way when it continues. */
static void stand_alone(struct server *replica)
{
    side_text(replica->side, "REPLICAOF NO ONE");
}

/* The replica, which is cut off, replaces the master, at the master's address. */
static void promote(struct server *replica)
{
    server_kill(the_server);
    assert_return_code(rename(replica->path, the_server->path), errno);
}

/* An owner unknown to the replica comes back, before the owner that the replica believes in. */
static void test_the_newest_owner_comes_back_when_the_replica_lagged(void **state)
{
    struct server *first = the_server, *master, *replica = NULL;
    struct actor *a, *b, *c;

    (void)state;
    the_server = master = server_start_with(true, NULL);
    server_make_old(the_server);
    replica = start_replica();
    a = start_holder(start, "grace/behind", LEASE);
    wait_until(is_in_step(replica, "grace/behind"));
    stand_alone(replica);
    actor_do(a, "0", "unlock grace/behind");
    b = start_holder(start, "grace/behind", LEASE);
    actor_stop(b);
    promote(replica);
    c = start();
    actor_do(c, "0", "init grace/behind lease=%d", LEASE);
    actor_send(c, "lock grace/behind");
    wait_until(waiters_at(replica->side, "grace/behind") == 1);
    actor_cont(b);
    actor_do(b, "0", "unlock grace/behind");
    the_server = replica;
    end_grace();
    actor_expect(c, "0");
    actor_do(c, "0", "unlock grace/behind");
    actor_end(a);
    actor_end(b);
    actor_end(c);
    server_end(replica);
    server_end(master);
    the_server = first;
}

#define SLEEPERS "ZCARD dmutex:{grace}:cond:cond"

/* The waiter waits on, unless the deadline was too soon. */
static bool has_fallen_asleep(struct actor *waiter, struct server *replica, const char *call)
{
    actor_send(waiter, "%s", call);
    wait_until(side_int(replica->side, SLEEPERS) == 1);
    stand_alone(replica);
    return side_int(the_server->side, SLEEPERS) == 1;
}

/* Waits, and returns after the replica has seen the waiter asleep for the last time. */
static void wait_unseen(struct actor *waiter, struct server *replica, const char *call, const char *result)
{
    struct actor *signaller = start();

    while (!has_fallen_asleep(waiter, replica, call)) {
        actor_expect(waiter, result);
        side_text(replica->side, "REPLICAOF 127.0.0.1 %d", the_server->port);
        wait_until(side_int(replica->side, SLEEPERS) == 0);
    }
    if (strcmp(result, "0") == 0)
        actor_do(signaller, "0", "signal grace/cond");
    actor_expect(waiter, result);
    actor_end(signaller);
}

/* A waiter that came back with the mutex, and gave the mutex back, is nowhere, though the replica had it asleep. */
static void assert_wakes_up_behind(const char *call, const char *result, bool is_renewed)
{
    struct server *first = the_server, *master, *replica;
    struct actor *a;

    the_server = master = server_start_with(true, "--repl-diskless-sync-delay", "0", NULL);
    server_make_old(the_server);
    replica = start_replica();
    a = start();
    actor_do(a, "0", "init grace/behind robust lease=%d", LEASE); /* so the unlock awaits the answer */
    actor_do(a, "0", "lock grace/behind");
    wait_until(is_in_step(replica, "grace/behind"));
    wait_unseen(a, replica, call, result);
    promote(replica);
    if (is_renewed)
        actor_do(a, "0", "renew grace/behind");
    actor_do(a, "0", "unlock grace/behind");
    assert_int_equal(side_int(replica->side, "EXISTS %s", key_of("lock", "grace/behind")), 0);
    assert_int_equal(side_int(replica->side, SLEEPERS), 0);
    actor_end(a);
    server_end(replica);
    server_end(master);
    the_server = first;
}

static void test_a_signalled_waiter_wakes_when_the_replica_lagged(void **state)
{
    (void)state;
    assert_wakes_up_behind("wait grace/cond grace/behind", "0", true);
}

static void test_a_waiter_that_timed_out_wakes_when_the_replica_lagged(void **state)
{
    (void)state;
    assert_wakes_up_behind("timedwait grace/cond grace/behind 1000", "ETIMEDOUT", false);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_owner_comes_back_when_an_empty_server_was_asked_by_another_first),
        cmocka_unit_test(test_another_owns_at_once_when_an_empty_server_has_no_grace),
        cmocka_unit_test(test_a_waiter_owns_when_the_grace_is_over),
        cmocka_unit_test(test_the_grace_is_the_same_for_all_who_come),
        cmocka_unit_test(test_a_server_is_no_older_than_its_start_when_a_second_ends_just_then),
        cmocka_unit_test(test_a_signal_does_not_grant_in_the_grace),
        cmocka_unit_test(test_a_robust_mutex_is_unlocked_at_an_empty_server),
        cmocka_unit_test(test_a_wait_gives_its_mutex_up_at_an_empty_server),
        cmocka_unit_test(test_the_newest_owner_comes_back_when_the_replica_lagged),
        cmocka_unit_test(test_a_signalled_waiter_wakes_when_the_replica_lagged),
        cmocka_unit_test(test_a_waiter_that_timed_out_wakes_when_the_replica_lagged),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait=N: a hold is believed once N replicas have the hold, so a replica that is promoted has each believed hold.  A
 * master with two replicas, no sentinels.
 */
#include <pthread.h>
#include <string.h>

#include "../lib/testlib.h"

#define REPLICAS_HERE 2
#define TIMES "grace=off&command_timeout=500&connect_timeout=500"
#define WANTS_MORE "replicas have confirmed, and wait=2 wants more: start the missing replicas"

static struct server *master, *replicas[REPLICAS_HERE];
static struct actor *actor, *other;

static bool is_linked(struct server *replica)
{
    return side_says(replica->side, "master_link_status:up", "INFO replication");
}

static void follow(struct server *replica)
{
    side_text(replica->side, "REPLICAOF 127.0.0.1 %d", master->port);
    wait_until(is_linked(replica));
}

static void part(struct server *replica)
{
    side_text(replica->side, "REPLICAOF NO ONE");
}

static int begin_group(void **state)
{
    (void)state;
    master = server_start_with(true, "--repl-diskless-sync-delay", "0", NULL);
    for (int i = 0; i < REPLICAS_HERE; i++) {
        replicas[i] = server_start_with(true, "--repl-diskless-sync-delay", "0", NULL);
        follow(replicas[i]);
    }
    return 0;
}

static int end_group(void **state)
{
    (void)state;
    for (int i = 0; i < REPLICAS_HERE; i++)
        server_end(replicas[i]);
    server_end(master);
    return 0;
}

static struct actor *start(int wait)
{
    char url[160];

    snprintf(url, sizeof url, "redis://127.0.0.1:%d?wait=%d&" TIMES, master->port, wait);
    return actor_start_at(url);
}

static int begin_test(void **state)
{
    (void)state;
    actor = start(2);
    other = start(2);
    return 0;
}

/* Whatever a failed test has left. */
static void mend(struct server *replica)
{
    if (!replica->pid)
        server_restart(replica);
    server_cont(replica);
    if (!is_linked(replica))
        follow(replica);
}

static int end_test(void **state)
{
    (void)state;
    for (int i = 0; i < REPLICAS_HERE; i++)
        mend(replicas[i]);
    actor_end(actor);
    actor_end(other);
    return 0;
}

static bool is_on(const struct server *server, const char *kind, const char *name)
{
    return side_int(server->side, "EXISTS %s", key_of(kind, name)) == 1;
}

/* The store's token of the hold that the server has; -1: none. */
static int64_t token_on(const struct server *server, const char *name)
{
    return is_on(server, "lock", name) ? side_int(server->side, "HGET %s token", key_of("state", name)) : -1;
}

/* ---- confirmed holds --------------------------------------------------------------------- */

static void test_all_replicas_have_the_hold_when_lock_returns(void **state)
{
    (void)state;
    for (int i = 0; i < repetitions(100); i++) {
        int64_t token;

        actor_do(actor, "0", "lock r/all");
        token = token_on(replicas[0], "r/all");
        assert_true(token > 0);
        assert_true(token == token_on(replicas[1], "r/all"));
        assert_true(token == token_on(master, "r/all"));
        actor_do(actor, "0", "unlock r/all");
    }
}

/* Locks, and promotes a replica at once.  Returns the hold's token there. */
static int64_t lock_and_promote(struct actor *by, struct server *replica, const char *name)
{
    int64_t token;

    actor_do(by, "0", "lock %s", name);
    part(replica);
    token = token_on(replica, name);
    follow(replica);
    actor_do(by, "0", "unlock %s", name);
    return token;
}

static void test_a_promoted_replica_has_each_believed_hold(void **state)
{
    int64_t last = 0;

    (void)state;
    for (int i = 0; i < repetitions(10); i++) {
        int64_t token = lock_and_promote(actor, replicas[i % REPLICAS_HERE], "r/promoted");

        assert_true(token > last);
        last = token;
    }
}

/* The control: a replica that is cut off, and a lock that does not ask for replicas. */
static void test_a_promoted_replica_lacks_a_hold_without_wait(void **state)
{
    struct actor *hasty = start(0);

    (void)state;
    part(replicas[0]);
    actor_do(hasty, "0", "lock r/hasty");
    assert_true(token_on(master, "r/hasty") > 0);
    assert_true(token_on(replicas[0], "r/hasty") == -1);
    actor_do(hasty, "0", "unlock r/hasty");
    follow(replicas[0]);
    actor_end(hasty);
}

/* ---- missing replicas -------------------------------------------------------------------- */

static void check_refused_and_clean(const char *name)
{
    actor_do(actor, "ETIMEDOUT", "timedlock %s 300", name);
    actor_assert_words(actor, WANTS_MORE);
    wait_until(!is_on(master, "lock", name));
    assert_int_equal(waiters_at(master->side, name), 0);
}

static void check_had(const char *name)
{
    actor_do(actor, "0", "lock %s", name);
    actor_do(actor, "0", "unlock %s", name);
}

static void test_a_lock_waits_for_a_stopped_replica(void **state)
{
    (void)state;
    check_had("r/stopped");
    server_stop(replicas[1]);
    check_refused_and_clean("r/stopped");
    actor_do(actor, "ENOLCK", "trylock r/stopped");
    actor_send(actor, "lock r/stopped");
    wait_until(is_on(master, "lock", "r/stopped"));
    server_cont(replicas[1]);
    actor_expect(actor, "0");
    actor_do(actor, "0", "unlock r/stopped");
}

static void test_a_lock_waits_for_a_killed_replica(void **state)
{
    (void)state;
    check_had("r/killed");
    server_kill(replicas[1]);
    check_refused_and_clean("r/killed");
    server_restart(replicas[1]);
    follow(replicas[1]);
    check_had("r/killed");
}

/* A waiter that gives up has no place in the queue any more, even if nobody confirms it. */
static void test_no_waiter_is_left_when_a_replica_is_stopped(void **state)
{
    struct actor *holder = start(0);

    (void)state;
    check_had("r/waiter");
    actor_do(holder, "0", "lock r/waiter");
    server_stop(replicas[1]);
    actor_do(actor, "ETIMEDOUT", "timedlock r/waiter 300");
    wait_until(waiters_at(master->side, "r/waiter") == 0);
    server_cont(replicas[1]);
    actor_do(holder, "0", "unlock r/waiter");
    check_had("r/waiter");
    actor_end(holder);
}

/*
 * The master renews the hold, and nobody believes the master.  An error needs no replica: a master that does not know
 * the script is sent the text.
 */
static void test_a_hold_is_lost_when_its_renewals_are_not_confirmed(void **state)
{
    int64_t renewals;

    (void)state;
    actor_do(actor, "0", "init r/renewals lease=1500");
    actor_do(actor, "0", "lock r/renewals");
    side_text(master->side, "SCRIPT FLUSH");
    server_stop(replicas[0]);
    renewals = side_calls(master->side, "pexpire");
    wait_until(actor_losses(actor) == 1);
    assert_true(side_calls(master->side, "pexpire") > renewals);
    server_cont(replicas[0]);
    actor_do(actor, "EPERM", "unlock r/renewals");
    check_had("r/renewals");
}

/* The grant was written by the connection of the holder before: the waiter asks by its own. */
static void test_a_waiter_believes_its_own_confirmed_question_alone(void **state)
{
    int64_t granted, questions;

    (void)state;
    check_had("r/message");
    actor_do(other, "0", "lock r/message");
    actor_send(actor, "lock r/message");
    wait_until(waiters_at(master->side, "r/message") == 1);
    granted = side_int(master->side, "HGET %s token", key_of("state", "r/message"));
    server_stop(replicas[1]);
    actor_send(other, "unlock r/message");
    wait_until(side_int(master->side, "HGET %s token", key_of("state", "r/message")) > granted);
    questions = side_calls(master->side, "wait");
    wait_until(side_calls(master->side, "wait") > questions + 5);
    assert_true(actor_is_silent(actor));
    server_cont(replicas[1]);
    actor_expect(other, "0");
    actor_expect(actor, "0");
    actor_do(actor, "0", "unlock r/message");
}

/* ---- costs ------------------------------------------------------------------------------- */

#define THREADS 16
#define TURNS 50

static dmutex_t mutexes[THREADS];

static void *lock_many(void *user)
{
    dmutex_t *mutex = user;
    int result = 0;

    for (int i = 0; i < TURNS && !result; i++) {
        result = dmutex_lock(mutex);
        if (!result)
            result = dmutex_unlock(mutex);
    }
    return result ? mutex : NULL;
}

/*
 * One WAIT covers all commands sent in the meantime.  Must be the last test: the test's own process uses the library.
 */
static void test_threads_share_a_wait(void **state)
{
    int64_t waits, commands;
    pthread_t threads[THREADS];
    char url[160], name[16];

    (void)state;
    snprintf(url, sizeof url, "redis://127.0.0.1:%d?wait=2&" TIMES, master->port);
    assert_result(dmutex_configure_np(url), 0);
    for (int i = 0; i < THREADS; i++) {
        snprintf(name, sizeof name, "r/share%d", i);
        make_fair(&mutexes[i], name, &kinds[0], 0);
    }
    assert_null(lock_many(&mutexes[0])); /* scripts are loaded */
    waits = side_calls(master->side, "wait");
    commands = side_calls(master->side, "evalsha");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, lock_many, &mutexes[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    waits = side_calls(master->side, "wait") - waits;
    commands = side_calls(master->side, "evalsha") - commands;
    print_message("# %lld commands, %lld WAIT\n", (long long)commands, (long long)waits);
    assert_true(commands >= 2 * THREADS * TURNS);
    assert_true(waits > 0);
    assert_true(waits < commands / 3);
}

/* ---- rights ------------------------------------------------------------------------------ */

/* No replica is asked, so nothing is believed; and a master that refuses at once is not asked without a pause. */
static void test_a_lock_waits_when_wait_is_forbidden(void **state)
{
    int64_t refused;

    (void)state;
    check_had("r/acl");
    side_text(master->side, "ACL SETUSER default -wait");
    actor_do(actor, "ETIMEDOUT", "timedlock r/acl 1000");
    actor_assert_words(actor, "WAIT is refused: NOPERM");
    refused =
        side_int(master->side, "EVAL %s 0",
                 "return tonumber(redis.call('INFO', 'commandstats'):match('cmdstat_wait:.-rejected_calls=(%d+)'))");
    side_text(master->side, "ACL SETUSER default +wait");
    print_message("# %lld questions in a second\n", (long long)refused);
    assert_within(refused, 1, 200);
    check_had("r/acl");
}

#define test(name) cmocka_unit_test_setup_teardown(name, begin_test, end_test)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        test(test_all_replicas_have_the_hold_when_lock_returns),
        test(test_a_promoted_replica_has_each_believed_hold),
        test(test_a_promoted_replica_lacks_a_hold_without_wait),
        test(test_a_lock_waits_for_a_stopped_replica),
        test(test_a_lock_waits_for_a_killed_replica),
        test(test_no_waiter_is_left_when_a_replica_is_stopped),
        test(test_a_hold_is_lost_when_its_renewals_are_not_confirmed),
        test(test_a_waiter_believes_its_own_confirmed_question_alone),
        test(test_a_lock_waits_when_wait_is_forbidden),
        test(test_threads_share_a_wait),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, begin_group, end_group);
}

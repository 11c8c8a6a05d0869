/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A group of Sentinel: holders and waiters follow the master over failovers, switches and resurrections, and nobody
 * else owns in between.
 */
#include <string.h>

#include "../lib/testlib.h"

/* An old master may be believed for this long; commands are given up earlier. */
#define SWITCH 2000
#define TIMES "command_timeout=500&connect_timeout=500&switch=2000"

#define LEASE 30000

/* Tokens count from 2020 on: lua/_numbers.lua. */
#define EPOCH_US INT64_C(1577836800000000)

static struct actor *holder, *waiter;

static int begin_test(void **state)
{
    (void)state;
    holder = actor_start_at(sentinels_url(the_sentinels, "?grace=off&" TIMES));
    waiter = actor_start_at(sentinels_url(the_sentinels, "?grace=off&" TIMES));
    return 0;
}

static int end_test(void **state)
{
    (void)state;
    actor_end(holder);
    actor_end(waiter);
    return 0;
}

/* As the second sentinel says: a test kills the first. */
static struct server *master(void)
{
    struct server *server = the_sentinels->data[sentinels_master(the_sentinels, 1)];

    server_reconnect(server);
    return server;
}

static bool is_on(const struct server *server, const char *kind, const char *name)
{
    return side_says(server->side, "1", "EXISTS %s", key_of(kind, name));
}

static bool is_replica(struct server *server)
{
    server_reconnect(server);
    return side_says(server->side, "role:slave", "INFO") && side_says(server->side, "link_status:up", "INFO");
}

/* The sentinels may have promoted this server again. */
static bool is_in_group(struct server *server)
{
    return server == master() || is_replica(server);
}

/* Back into the group: for the next test. */
static void resurrect(struct server *server)
{
    server_restart(server);
    wait_until(is_in_group(server));
}

/* The holder holds and the waiter waits. */
static void begin_queue(const char *name)
{
    actor_do(holder, "0", "init %s lease=%d", name, LEASE);
    actor_do(waiter, "0", "init %s lease=%d", name, LEASE);
    actor_do(holder, "0", "lock %s", name);
    actor_send(waiter, "lock %s", name);
    wait_until(waiters_at(master()->side, name) == 1);
    wait_until(side_has_replicas(master()->side, key_of("written", name), 2));
}

/* The holder's hold is the same as before, and goes to the waiter. */
static void end_queue(const char *name, long long token)
{
    wait_until(is_on(master(), "lock", name));
    assert_true(actor_value(holder, "token %s", name) == token);
    assert_int_equal(actor_losses(holder), 0);
    assert_true(actor_is_silent(waiter));
    actor_do(holder, "0", "unlock %s", name);
    actor_expect(waiter, "0");
    assert_true(actor_value(waiter, "token %s", name) > token);
    actor_do(waiter, "0", "unlock %s", name);
}

static void test_the_master_is_found_by_its_sentinels(void **state)
{
    (void)state;
    actor_do(holder, "0", "lock s/found");
    assert_true(is_on(master(), "lock", "s/found"));
    actor_do(waiter, "EBUSY", "trylock s/found");
    actor_do(holder, "0", "unlock s/found");
}

static void test_a_hold_and_a_waiter_follow_when_the_master_is_killed(void **state)
{
    int before = sentinels_master(the_sentinels, 0);
    long long epoch = sentinels_epoch(the_sentinels);
    long long token;

    (void)state;
    begin_queue("s/killed");
    token = actor_value(holder, "token s/killed");
    server_kill(the_sentinels->data[before]);
    sentinels_await_switch(the_sentinels, epoch);
    end_queue("s/killed", token);
    resurrect(the_sentinels->data[before]);
}

/* The former master stays a writable master for a while: clients that ask the sentinels leave that master at once. */
static void test_a_hold_and_a_waiter_follow_when_an_operator_switches(void **state)
{
    struct server *before = master();
    long long token;

    (void)state;
    begin_queue("s/switch");
    token = actor_value(holder, "token s/switch");
    sentinels_switch(the_sentinels);
    end_queue("s/switch", token);
    wait_until(is_in_group(before));
}

/* A stopped master answers nobody, and when it continues it is a master for clients that do not ask the sentinels. */
static void test_a_stopped_master_is_not_used_again(void **state)
{
    int before = sentinels_master(the_sentinels, 0);
    long long epoch = sentinels_epoch(the_sentinels);
    struct server *old = the_sentinels->data[before];
    long long token;

    (void)state;
    begin_queue("s/stopped");
    token = actor_value(holder, "token s/stopped");
    server_stop(old);
    sentinels_await_switch(the_sentinels, epoch);
    wait_until(is_on(master(), "lock", "s/stopped"));
    server_cont(old);
    end_queue("s/stopped", token);
    wait_until(is_in_group(old));
    assert_false(is_on(old, "lock", "s/stopped"));
}

/* The old master starts again, and is a master until the sentinels demote that server: nobody goes there. */
static void test_nobody_goes_to_a_resurrected_master(void **state)
{
    int before = sentinels_master(the_sentinels, 0);
    long long epoch = sentinels_epoch(the_sentinels);
    struct actor *late;

    (void)state;
    actor_do(holder, "0", "init s/resurrected lease=%d", LEASE);
    actor_do(holder, "0", "lock s/resurrected");
    server_kill(the_sentinels->data[before]);
    sentinels_await_switch(the_sentinels, epoch);
    server_restart(the_sentinels->data[before]);
    late = actor_start_at(sentinels_url(the_sentinels, "?grace=off&" TIMES));
    wait_until(is_on(master(), "lock", "s/resurrected"));
    actor_do(late, "EBUSY", "trylock s/resurrected");
    actor_do(holder, "0", "unlock s/resurrected");
    actor_do(late, "0", "lock s/resurrected");
    actor_do(late, "0", "unlock s/resurrected");
    actor_end(late);
    wait_until(is_in_group(the_sentinels->data[before]));
}

/* By the server's clock: the time of the grant, which the token contains; and since when the server has existed. */
static long long granted_us(struct actor *actor, const char *name)
{
    return (actor_value(actor, "token %s", name) >> 12) + EPOCH_US;
}

/* The sentinels may have closed the connection, as they do with all connections of a new master. */
static long long since_us(struct server *server)
{
    server_reconnect(server);
    return side_int(server->side, "HGET dmutex:server since");
}

/* The master dies with the holder: the next owner comes a lease and a switch after the promotion, and not earlier. */
static void test_a_new_master_grants_nothing_for_a_lease_and_a_switch(void **state)
{
    int before = sentinels_master(the_sentinels, 0), after;
    long long epoch = sentinels_epoch(the_sentinels);
    int64_t told_ms;

    (void)state;
    actor_end(holder);
    actor_end(waiter);
    holder = actor_start_at(sentinels_url(the_sentinels, "?" TIMES));
    waiter = actor_start_at(sentinels_url(the_sentinels, "?" TIMES));
    actor_do(holder, "0", "init s/grace lease=1000");
    actor_do(waiter, "0", "init s/grace lease=1000");
    actor_do(holder, "0", "lock s/grace");
    actor_send(waiter, "lock s/grace");
    wait_until(waiters_at(master()->side, "s/grace") == 1);
    server_kill(the_sentinels->data[before]);
    actor_kill(holder);
    actor_end(holder);
    after = sentinels_await_switch(the_sentinels, epoch);
    told_ms = wait_now_ms();
    server_reconnect(the_sentinels->data[after]);
    actor_expect(waiter, "0");
    print_message("# the next holder %lld ms behind announcement, lease and switch\n",
                  (long long)(wait_now_ms() - told_ms - 1000 - SWITCH));
    assert_true(granted_us(waiter, "s/grace") >= since_us(the_sentinels->data[after]) + (1000 + SWITCH) * 1000);
    actor_do(waiter, "0", "unlock s/grace");
    holder = actor_start_at(sentinels_url(the_sentinels, "?grace=off&" TIMES));
    resurrect(the_sentinels->data[before]);
}

static bool has_config(const struct server *server, const char *epoch)
{
    return side_says(server->side, epoch, "HGET dmutex:server config");
}

/* A process without holds opens a connection only for a call; the previous word counts for a second. */
static bool has_config_after_use(const struct server *server, const char *epoch, struct actor *actor, const char *name)
{
    actor_send(actor, "timedlock %s 100", name);
    if (strcmp(actor_answer(actor), "0") == 0)
        actor_do(actor, "0", "unlock %s", name);
    return has_config(server, epoch);
}

/* An actor of a group whose only sentinel knows of failovers, the newest to this server. */
static struct actor *start_behind_failovers(const struct server *server, struct server **ret_sentinel)
{
    char lines[200], url[160];

    snprintf(lines, sizeof lines, "sentinel monitor mymaster 127.0.0.1 %d 1\nsentinel config-epoch mymaster 4\n",
             server->port);
    *ret_sentinel = server_start_by_file(lines, "--sentinel");
    snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d/mymaster?" TIMES, (*ret_sentinel)->port);
    return actor_start_at(url);
}

/*
 * Replaced, and promoted again before the sentinels made it a replica: run id and replication id have not changed, and
 * only the sentinels' epoch shows that there was another master.
 */
static void test_a_master_that_is_promoted_again_grants_nothing_at_first(void **state)
{
    struct server *server = server_start_with(true, NULL), *sentinel;
    struct actor *actor;

    (void)state;
    server_make_old(server);
    actor = start_behind_failovers(server, &sentinel);
    actor_do(actor, "0", "init s/again lease=1000");
    actor_do(actor, "0", "lock s/again");
    actor_do(actor, "0", "unlock s/again");
    assert_true(has_config(server, "5")); /* the epoch and one */

    server_kill(sentinel);
    command_run("sed -i 's/config-epoch mymaster 4/config-epoch mymaster 8/' %s/conf", sentinel->folder);
    server_restart(sentinel);
    wait_until(has_config_after_use(server, "9", actor, "s/again"));
    side_set_control(server->side, "early", 1000 + SWITCH - 500);
    actor_do(actor, "EBUSY", "trylock s/again");
    actor_do(actor, "0", "lock s/again");
    assert_true(side_is_control_over(server->side, "early"));
    actor_end(actor);
    server_end(sentinel);
    server_end(server);
}

static void wait_for_uptime(const struct server *server, int seconds)
{
    char words[40];

    snprintf(words, sizeof words, "uptime_in_seconds:%d", seconds);
    wait_until(side_says(server->side, words, "INFO server"));
}

/*
 * A killed master that is started again, without data, and promoted before the sentinels have made it a replica: it has
 * no mark, and was no replica, and has been up for longer than the grace.
 */
static void test_a_master_that_comes_back_empty_grants_nothing_at_first(void **state)
{
    struct server *server = server_start_with(true, NULL), *sentinel;
    struct actor *actor;

    (void)state;
    wait_for_uptime(server, (100 + SWITCH) / 1000 + 2); /* an uptime is rounded down to seconds */
    actor = start_behind_failovers(server, &sentinel);
    actor_do(actor, "0", "init s/empty lease=100");
    side_set_control(server->side, "early", 100 + SWITCH - 500);
    actor_do(actor, "EBUSY", "trylock s/empty");
    actor_do(actor, "0", "lock s/empty");
    assert_true(side_is_control_over(server->side, "early"));
    actor_do(actor, "0", "unlock s/empty");
    actor_end(actor);
    server_end(sentinel);
    server_end(server);
}

/* Sentinels that the URL does not list are learned, and asked. */
static void test_sentinels_are_learned_from_the_first(void **state)
{
    struct actor *learner;
    char url[160];

    (void)state;
    snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d/mymaster?grace=off&" TIMES,
             the_sentinels->sentinel[0]->port);
    learner = actor_start_at(url);
    actor_do(learner, "0", "lock s/learned");
    wait_until(side_says(the_sentinels->sentinel[1]->side, "id=", "CLIENT LIST TYPE pubsub"));
    server_kill(the_sentinels->sentinel[0]);
    actor_do(learner, "0", "unlock s/learned");
    side_set_control(master()->side, "word", SWITCH);
    side_await_control(master()->side, "word"); /* of the first only: it no longer counts */
    actor_do(learner, "0", "lock s/learned");
    actor_do(learner, "0", "unlock s/learned");
    actor_end(learner);
    server_restart(the_sentinels->sentinel[0]);
}

/* A forked child asks by itself. */
static void test_a_child_of_fork_finds_the_master(void **state)
{
    (void)state;
    if (IS_THREAD_SANITIZED)
        return; /* the forked child starts threads */
    actor_do(holder, "0", "lock s/fork");
    actor_do(holder, "EBUSY", "in-child trylock s/fork");
    actor_do(holder, "0", "unlock s/fork");
    actor_do(holder, "0", "in-child lock s/fork");
}

#define test(name) cmocka_unit_test_setup_teardown(name, begin_test, end_test)

/* ---- sentinels that come and go ---------------------------------------------------------- */

#define STRANGERS 4 /* more than the three that are there */

static bool do_all_know(int others)
{
    char wanted[32];

    snprintf(wanted, sizeof wanted, "sentinels=%d", 1 + others);
    for (int i = 0; i < SENTINELS; i++) {
        if (!side_says(the_sentinels->sentinel[i]->side, wanted, "INFO sentinel"))
            return false;
    }
    return true;
}

/* As a sentinel says that it is there: the others keep it in their lists until SENTINEL RESET. */
static void announce_stranger(int number)
{
    side_text(master()->side, "PUBLISH __sentinel__:hello 127.0.0.1,%d,%040d,0,mymaster,127.0.0.1,%d,%lld",
              server_free_port(), number, master()->port, sentinels_epoch(the_sentinels));
}

/* For example, sentinels that were restarted with other ids, so that each list also counts the old ones. */
static void test_dead_sentinels_are_forgotten_when_the_lists_are_reset(void **state)
{
    struct actor *late;

    (void)state;
    for (int i = 0; i < STRANGERS; i++)
        announce_stranger(i);
    wait_until(do_all_know(SENTINELS - 1 + STRANGERS));
    late = actor_start_at(sentinels_url(the_sentinels, "?grace=off&" TIMES));
    actor_do(late, "ETIMEDOUT", "timedlock s/dead 1000");
    actor_assert_words(late, "3 of 7 sentinels have answered recently, and 4 must agree");
    actor_send(late, "lock s/dead");
    for (int i = 0; i < SENTINELS; i++)
        side_text(the_sentinels->sentinel[i]->side, "SENTINEL RESET mymaster");
    actor_expect(late, "0");
    actor_do(late, "0", "unlock s/dead");
    wait_until(do_all_know(SENTINELS - 1));
    actor_end(late);
}

/* A learned sentinel keeps its id in its file, and comes back elsewhere. */
static void test_a_learned_sentinel_is_followed_when_its_address_changes(void **state)
{
    struct server **sentinels = the_sentinels->sentinel, *moved;
    struct actor *learner;
    char url[160], lines[300];

    (void)state;
    snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d/mymaster?grace=off&" TIMES, sentinels[1]->port);
    snprintf(lines, sizeof lines, "sentinel myid %s\nsentinel monitor mymaster 127.0.0.1 %d 2\n",
             side_text(sentinels[2]->side, "SENTINEL MYID"), master()->port);
    learner = actor_start_at(url);
    actor_do(learner, "0", "lock s/moved");
    server_kill(sentinels[2]);
    moved = server_start_by_file(lines, "--sentinel");
    wait_until(side_says(moved->side, "id=", "CLIENT LIST TYPE pubsub"));
    actor_do(learner, "0", "unlock s/moved");
    server_kill(sentinels[0]);
    side_set_control(master()->side, "word", SWITCH);
    side_await_control(master()->side, "word"); /* of the sentinel that is gone: it no longer counts */
    actor_do(learner, "0", "lock s/moved");
    actor_do(learner, "0", "unlock s/moved");
    actor_end(learner);
    server_end(moved);
    server_restart(sentinels[0]);
    server_restart(sentinels[2]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        test(test_the_master_is_found_by_its_sentinels),
        test(test_a_child_of_fork_finds_the_master),
        test(test_a_hold_and_a_waiter_follow_when_the_master_is_killed),
        test(test_a_hold_and_a_waiter_follow_when_an_operator_switches),
        test(test_a_stopped_master_is_not_used_again),
        test(test_nobody_goes_to_a_resurrected_master),
        test(test_a_new_master_grants_nothing_for_a_lease_and_a_switch),
        test(test_a_master_that_is_promoted_again_grants_nothing_at_first),
        test(test_a_master_that_comes_back_empty_grants_nothing_at_first),
        test(test_sentinels_are_learned_from_the_first),
        test(test_dead_sentinels_are_forgotten_when_the_lists_are_reset),
        test(test_a_learned_sentinel_is_followed_when_its_address_changes),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, sentinels_group_setup, sentinels_group_teardown);
}

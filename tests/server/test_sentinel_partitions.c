/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A group of Sentinel on three hosts whose network is partitioned: a holder without a majority has lost the hold before
 * another owns, and everything works when the network is whole again.  Everything uses IPv6.
 *
 *     host 0   the initial master, a sentinel, an actor
 *     host 1   two replicas, an actor
 *     host 2   two sentinels
 */
#include <stdlib.h>
#include <string.h>

#include "../lib/hosts.h"
#include "../lib/testlib.h"

#define TIMES "command_timeout=500&connect_timeout=500&switch=1000"

#define LEASE 5000       /* five times `switch` */
#define LONG_LEASE 60000 /* longer than any cut of a test */

static const int data_hosts[] = { 0, 1, 1 }, sentinel_hosts[] = { 0, 2, 2 };

static struct sentinels group;
static struct actor *actors[2]; /* one on each of the first two hosts */

static int begin_group(void **state)
{
    (void)state;
    sentinels_start_on(&group, "", data_hosts, sentinel_hosts);
    for (int i = 0; i < 2; i++) {
        hosts_enter(i);
        actors[i] = actor_start_at(sentinels_url(&group, "?grace=off&" TIMES));
    }
    return 0;
}

static int end_group(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        actor_end(actors[i]);
    sentinels_end(&group);
    return 0;
}

/* As a sentinel says that no test cuts off from the majority. */
static int master(void)
{
    return sentinels_master(&group, 1);
}

static struct side *side_of_master(void)
{
    server_reconnect(group.data[master()]);
    return group.data[master()]->side;
}

static bool follows(int number)
{
    server_reconnect(group.data[number]);
    return side_says(group.data[number]->side, "role:slave", "INFO") &&
           side_says(group.data[number]->side, "link_status:up", "INFO");
}

static void init_both(const char *name, int lease)
{
    for (int i = 0; i < 2; i++)
        actor_do(actors[i], "0", "init %s lease=%d", name, lease);
}

/* The actor of the master's host holds, the other waits, and the replicas know both. */
static long long begin_queue(int holder, const char *name)
{
    actor_do(actors[holder], "0", "lock %s", name);
    actor_send(actors[1 - holder], "lock %s", name);
    wait_until(waiters_at(side_of_master(), name) == 1);
    wait_until(side_has_replicas(side_of_master(), key_of("written", name), 2));
    return actor_value(actors[holder], "token %s", name);
}

/* The sentinels' last word counts for a while. */
static bool is_without_majority(struct actor *actor)
{
    actor_send(actor, "timedlock p/other 500");
    if (strcmp(actor_answer(actor), "0") == 0) {
        actor_do(actor, "0", "unlock p/other");
        return false;
    }
    actor_assert_words(actor, "the sentinel [fd77::");
    actor_assert_words(actor, "1 of 3 sentinels have answered recently, and 2 must agree");
    return true;
}

/* All are one group again. */
static void join(int host, int former_master)
{
    hosts_join(host);
    wait_until(former_master == master() || follows(former_master));
}

static void test_a_holder_that_is_cut_off_with_its_master_has_lost_when_another_owns(void **state)
{
    int before = master(), holder = data_hosts[before];
    long long epoch = sentinels_epoch(&group), token;

    (void)state;
    init_both("p/lost", LEASE);
    token = begin_queue(holder, "p/lost");
    hosts_cut(holder);
    actor_expect(actors[1 - holder], "0");
    assert_int_equal(actor_losses(actors[holder]), 1);
    assert_true(actor_value(actors[1 - holder], "token p/lost") > token);
    token = actor_value(actors[1 - holder], "token p/lost");
    assert_true(is_without_majority(actors[holder]));
    join(holder, before);
    sentinels_await_switch(&group, epoch);
    actor_do(actors[holder], "EPERM", "unlock p/lost");
    actor_send(actors[holder], "lock p/lost");
    wait_until(waiters_at(side_of_master(), "p/lost") == 1);
    actor_do(actors[1 - holder], "0", "unlock p/lost");
    actor_expect(actors[holder], "0");
    assert_true(actor_value(actors[holder], "token p/lost") > token);
    actor_do(actors[holder], "0", "unlock p/lost");
}

/* Nobody is promoted: the sentinels reach no replica. */
static void test_a_hold_goes_on_when_the_majority_of_the_sentinels_was_cut_off(void **state)
{
    long long epoch = sentinels_epoch(&group), token;
    int holder = data_hosts[master()];

    (void)state;
    init_both("p/kept", LONG_LEASE);
    token = begin_queue(holder, "p/kept");
    hosts_cut(2);
    wait_until(is_without_majority(actors[holder]));
    hosts_join(2);
    actor_do(actors[holder], "0", "lock p/other");
    assert_int_equal(actor_losses(actors[holder]), 0);
    assert_true(actor_value(actors[holder], "token p/kept") == token);
    assert_true(actor_is_silent(actors[1 - holder]));
    actor_do(actors[holder], "0", "unlock p/kept");
    actor_expect(actors[1 - holder], "0");
    assert_true(actor_value(actors[1 - holder], "token p/kept") > token);
    actor_do(actors[1 - holder], "0", "unlock p/kept");
    actor_do(actors[holder], "0", "unlock p/other");
    assert_true(sentinels_epoch(&group) == epoch);
}

/* True if since then both other sentinels have told this one what they know. */
static bool has_heard_others(int sentinel, int64_t since_ms)
{
    static const char name[] = "last-hello-message\n";
    const char *text = side_text(group.sentinel[sentinel]->side, "SENTINEL SENTINELS mymaster");
    int64_t now_ms = wait_now_ms();
    int count = 0;

    while ((text = strstr(text, name))) {
        text += strlen(name);
        count += now_ms - atoll(text) > since_ms;
    }
    return count == SENTINELS - 1;
}

static bool is_promoted(int sentinel, long long epoch)
{
    return sentinels_epoch_by(&group, sentinel) > epoch && sentinels_master(&group, sentinel) >= 0;
}

static void order_failover(int sentinel)
{
    wait_until(side_try(group.sentinel[sentinel]->side, "SENTINEL FAILOVER mymaster"));
}

/*
 * Promotes by hand, on both sides of a partition: each side takes the next number of a promotion.  The first order
 * comes before the sentinel misses the master, and the second when its sentinel has missed the replica that is cut off,
 * so that each finds a replica on its own side.
 */
static void promote_twice(long long epoch)
{
    order_failover(0);
    wait_until(side_says(group.sentinel[1]->side, "s_down", "SENTINEL REPLICAS mymaster"));
    order_failover(1);
    for (int i = 0; i < SENTINELS; i++)
        wait_until(is_promoted(i, epoch));
    assert_int_equal(data_hosts[sentinels_master(&group, 0)], 0);
    assert_int_equal(data_hosts[master()], 1);
}

/* The sentinels never agree, and the library goes by their majority. */
static void test_a_hold_goes_on_when_two_promotions_have_one_number(void **state)
{
    long long epoch, token;
    int64_t joined_ms;

    (void)state;
    do
        sentinels_switch(&group);
    while (data_hosts[master()] == 0);
    epoch = sentinels_epoch(&group);
    init_both("p/two", LONG_LEASE);
    token = begin_queue(1, "p/two");
    hosts_cut(0);
    promote_twice(epoch);
    hosts_join(0);
    joined_ms = wait_now_ms();
    wait_until(has_heard_others(0, joined_ms));
    assert_true(sentinels_are_parted(&group));
    assert_int_equal(actor_losses(actors[1]), 0);
    assert_true(actor_is_silent(actors[0]));
    actor_do(actors[1], "0", "unlock p/two");
    actor_expect(actors[0], "0");
    assert_true(actor_value(actors[0], "token p/two") > token);
    actor_do(actors[0], "0", "unlock p/two");
    wait_until(sentinels_order_failover(&group));
    sentinels_await_switch(&group, epoch + 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_hold_goes_on_when_the_majority_of_the_sentinels_was_cut_off),
        cmocka_unit_test(test_a_holder_that_is_cut_off_with_its_master_has_lost_when_another_owns),
        cmocka_unit_test(test_a_hold_goes_on_when_two_promotions_have_one_number),
    };

    test_begin(argc, argv);
    if (!hosts_begin()) {
        printf("1..0 # SKIP hosts need network namespaces and ip(8), package iproute2\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, begin_group, end_group);
}

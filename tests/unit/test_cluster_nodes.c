/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stores/redis/cluster/cluster: which node a request goes to, after redirects.  There is no server: nothing is ever
 * answered.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stores/redis/cluster/parts.h"

#define KEY "dmutex:{group}:lock:leaf"
#define OTHER "dmutex:{group}:lock:other" /* of the same slot */

static struct dm_url *url;
static struct dm_cluster cluster;
static struct dm_cluster ended[20]; /* the clusters of earlier tests, for the leak sanitizer */
static int ended_count;
static struct dm_args args;
static char reason[DM_REASON_ROOM];

static void no_news(void *user)
{
    (void)user;
}

static void no_inbox_news(void *user, struct dm_cluster_node *node)
{
    (void)user;
    (void)node;
}

static int begin(void **state)
{
    static const struct dm_cluster_hooks hooks = {
        .on_ready = no_news, .on_inbox = no_inbox_news, .on_map = no_news, .on_change = no_news
    };

    (void)state;
    url = dm_url_parse("redis+cluster://127.0.0.1:1", reason);
    return url && dm_cluster_init(&cluster, url, &hooks) && dm_args_init(&args, 4, 0) == 0 ? 0 : -1;
}

/* The links stay, as in the library: another thread might be about to use one. */
static int end(void **state)
{
    (void)state;
    dm_cluster_end(&cluster);
    ended[ended_count++] = cluster;
    dm_args_free(&args);
    return 0;
}

/* The node that a script call with this first key goes to. */
static struct dm_cluster_node *node_for(const char *key)
{
    args.count = 0;
    dm_args_text(&args, "EVALSHA");
    dm_args_text(&args, "");
    dm_args_text(&args, "1");
    dm_args_text(&args, key);
    return dm_cluster_of_args(&cluster, &args);
}

/* A redirect of the slot of KEY, to a port. */
static bool redirect(const struct dm_cluster_node *from, const char *word, const char *key, int port)
{
    char error[64];

    snprintf(error, sizeof error, "%s %u 127.0.0.1:%d", word, dm_slot_of(KEY, strlen(KEY)), port);
    return dm_cluster_redirect(&cluster, from, key, strlen(key), error);
}

/* The first node of the slot. */
static struct dm_cluster_node *first_node(void)
{
    const struct dm_cluster_node nobody = { .cluster = &cluster,
                                            .base = { .place = { .host = "127.0.0.1", .port = "2" } } };

    assert_null(node_for(KEY));
    assert_true(redirect(&nobody, "MOVED", KEY, 2));
    return node_for(KEY);
}

static void test_the_slot_goes_to_another_node_when_it_has_moved(void **state)
{
    struct dm_cluster_node *first = first_node();

    (void)state;
    assert_string_equal(first->base.place.port, "2");
    assert_int_equal(first->slots, 1);
    assert_true(redirect(first, "MOVED", KEY, 3));
    assert_string_equal(node_for(KEY)->base.place.port, "3");
    assert_ptr_equal(node_for(OTHER), node_for(KEY));
    assert_null(node_for("dmutex:{another}:lock:leaf"));
    assert_false(dm_cluster_is_serving(first));
    assert_true(redirect(first, "MOVED", KEY, 2));
    assert_ptr_equal(node_for(KEY), first); /* not added a second time */
    assert_int_equal(dm_cluster_count(&cluster), 2);
}

/*
 * One request goes ahead of its slot: the keys may come back, and the slot set out once more.  Another name of the slot
 * has not moved, and would seem to be free on the other node.
 */
static void test_one_request_goes_ahead_when_it_was_sent_on(void **state)
{
    struct dm_cluster_node *first = first_node();

    (void)state;
    assert_true(redirect(first, "ASK", KEY, 3));
    assert_ptr_equal(node_for(OTHER), first);
    assert_false(args.is_asking);
    assert_string_equal(node_for(KEY)->base.place.port, "3");
    assert_true(args.is_asking);
    assert_ptr_equal(node_for(KEY), first);
    assert_false(args.is_asking);
}

/* The oldest notes go; a request without a note is sent on once more. */
static void test_notes_are_bounded_when_many_requests_are_sent_on(void **state)
{
    struct dm_cluster_node *first = first_node();
    char key[64];

    (void)state;
    for (int i = 0; i < 3 * DM_CLUSTER_AHEAD; i++) {
        snprintf(key, sizeof key, "dmutex:{group}:lock:%d", i);
        assert_true(redirect(first, "ASK", key, 3));
    }
    assert_int_equal(cluster.ahead_count, DM_CLUSTER_AHEAD);
    assert_ptr_equal(node_for("dmutex:{group}:lock:0"), first);
    assert_ptr_not_equal(node_for(key), first);
}

/* A node that keeps naming other addresses fills the cluster, and no more. */
static void test_nodes_are_bounded_when_redirects_keep_naming_others(void **state)
{
    struct dm_cluster_node *first = first_node();

    (void)state;
    for (int port = 3; port < 1000; port++)
        assert_true(redirect(first, "MOVED", KEY, port));
    assert_int_equal(dm_cluster_count(&cluster), DM_CLUSTER_MOST);
    assert_int_equal(atoi(node_for(KEY)->base.place.port), DM_CLUSTER_MOST + 1);
}

/* Long enough for requests to a node that no longer serves anything to have their answers. */
static void let_rest(void)
{
    for (unsigned i = 0; i < cluster.count; i++)
        cluster.nodes[i]->used_ns -= 2 * dm_cluster_rest_ns(&cluster);
}

/* Pods come and go, for months: a node without slots makes room, and no other. */
static void test_a_node_that_serves_nothing_makes_room(void **state)
{
    struct dm_cluster_node *first = first_node(), *ahead;

    (void)state;
    assert_true(redirect(first, "ASK", KEY, 3));
    ahead = cluster.nodes[1];
    for (int port = 4; port < 2000; port++) {
        let_rest();
        ahead->used_ns = dm_clock_boot_ns(); /* a request may be on the way to it */
        assert_true(redirect(first, "MOVED", KEY, port));
        assert_int_equal(atoi(node_for(OTHER)->base.place.port), port);
        assert_int_equal(node_for(OTHER)->slots, 1);
    }
    assert_int_equal(dm_cluster_count(&cluster), DM_CLUSTER_MOST);
    assert_string_equal(ahead->base.place.port, "3");
}

/* CLUSTER SLOTS of this many masters, at ports from `port` on, with a slot each. */
static bool take_masters(int count, int port)
{
    char *text = malloc((size_t)count * 100 + 100), *at = text;
    struct dm_reader reader;
    redisReply *reply = NULL;
    bool is_taken;

    at += sprintf(at, "*%d\r\n", count);
    for (int slot = 0; slot < count; slot++)
        at += sprintf(at, "*3\r\n:%d\r\n:%d\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n", slot, slot, port + slot);
    assert_true(dm_reader_begin(&reader));
    dm_reader_expect(&reader, &dm_slots_summary);
    assert_true(dm_reader_feed(&reader, text, (size_t)(at - text)) && dm_reader_next(&reader, &reply));
    assert_non_null(reply);
    is_taken = dm_cluster_take_map(&cluster, reply, "127.0.0.1");
    dm_reply_free(reply);
    dm_reader_end(&reader);
    free(text);
    return is_taken;
}

/* No Cluster has this many: a node lies, and the map of another one corrects it. */
static void test_a_map_of_too_many_masters_is_reported_and_corrected(void **state)
{
    (void)state;
    assert_true(take_masters(3, 10));
    assert_true(take_masters(DM_CLUSTER_MOST + 2, 100));
    assert_non_null(dm_cluster_of_slot(&cluster, 0));
    assert_null(dm_cluster_of_slot(&cluster, DM_CLUSTER_MOST - 3 + 1)); /* the first three places are old ones' */
    dm_cluster_reason(&cluster, reason);
    assert_non_null(strstr(reason, "the Cluster has more than 200 masters, or a node names masters"));
    for (int i = 0; i < 2; i++) { /* the first map takes the slots, the second finds the places that had them */
        let_rest();
        assert_true(take_masters(4, 1000));
    }
    for (unsigned slot = 0; slot < 4; slot++)
        assert_int_equal(atoi(dm_cluster_of_slot(&cluster, slot)->base.place.port), 1000 + slot);
    dm_cluster_reason(&cluster, reason);
    assert_null(strstr(reason, "more than"));
}

static void test_other_errors_are_no_redirects(void **state)
{
    const struct dm_cluster_node *first = first_node();

    (void)state;
    assert_false(redirect(first, "TRYAGAIN", KEY, 3));
    assert_false(dm_cluster_redirect(&cluster, first, KEY, strlen(KEY), "MOVED 99999 127.0.0.1:3"));
    assert_false(dm_cluster_redirect(&cluster, first, KEY, strlen(KEY), "CLUSTERDOWN The cluster is down"));
    assert_int_equal(dm_cluster_count(&cluster), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_slot_goes_to_another_node_when_it_has_moved),
        TEST(test_one_request_goes_ahead_when_it_was_sent_on),
        TEST(test_notes_are_bounded_when_many_requests_are_sent_on),
        TEST(test_nodes_are_bounded_when_redirects_keep_naming_others),
        TEST(test_a_node_that_serves_nothing_makes_room),
        TEST(test_a_map_of_too_many_masters_is_reported_and_corrected),
        TEST(test_other_errors_are_no_redirects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

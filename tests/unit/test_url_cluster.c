/* SPDX-License-Identifier: BSD-2-Clause */
/* store/url: a Cluster in a URL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "config.h"
#include "url_parse.h"

/* All parts of a redis+cluster:// URL are read. */
static void test_url_is_read_when_it_is_of_a_cluster(void **state)
{
    static const struct {
        const char *text, *first, *first_port, *last, *last_port, *user, *password;
        int count;
        unsigned switch_ms, wait;
    } good[] = {
        { "redis+cluster://a", "a", "6379", "a", "6379", NULL, NULL, 1, 2000, 0 },
        { "redis+cluster://a/", "a", "6379", "a", "6379", NULL, NULL, 1, 2000, 0 },
        { "redis+cluster://a:1,b,[::1]:3", "a", "1", "::1", "3", NULL, NULL, 3, 2000, 0 },
        { "redis+cluster://[::1],[fe80::1%25lo]", "::1", "6379", "fe80::1%lo", "6379", NULL, NULL, 2, 2000, 0 },
        { "redis+cluster://u:p,w@a,b?switch=9000&wait=2", "a", "6379", "b", "6379", "u", "p,w", 2, 9000, 2 },
        { "redis+cluster://:p%2F@a?switch=30&command_timeout=30", "a", "6379", "a", "6379", NULL, "p/", 1, 30, 0 },
        { "redis+cluster://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15", "1", "6379", "15", "6379", NULL, NULL, 15, 2000, 0 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        struct dm_url *url = parse(good[i].text);
        const struct dm_url_host *last = &url->hosts[url->host_count - 1];

        assert_int_equal(url->kind, DM_URL_CLUSTER);
        assert_int_equal(url->host_count, good[i].count);
        assert_string_equal(url->hosts[0].host, good[i].first);
        assert_string_equal(url->hosts[0].port, good[i].first_port);
        assert_string_equal(last->host, good[i].last);
        assert_string_equal(last->port, good[i].last_port);
        assert_same_text(url->user, good[i].user);
        assert_same_text(url->password, good[i].password);
        assert_int_equal(url->db, 0);
        assert_int_equal(url->switch_ms, good[i].switch_ms);
        assert_int_equal(url->wait, good[i].wait);
        assert_true(url->has_grace);
        dm_url_free(url);
    }
}

/* The URL of a node has the settings of the Cluster, and the address from a map or a redirect. */
static void test_url_of_a_node_has_the_settings_of_its_cluster(void **state)
{
    struct dm_url *list = parse("redis+cluster://u:p@a,b?switch=9000&wait=1&prefix=x&command_timeout=70&"
                                "connect_timeout=80&eviction=allow&grace=off");
    struct dm_url *node = dm_url_of_server(list, "::1", "7001");

    (void)state;
    assert_non_null(node);
    assert_int_equal(node->kind, DM_URL_TCP);
    assert_string_equal(node->host, "::1");
    assert_string_equal(node->port, "7001");
    assert_string_equal(node->user, "u");
    assert_string_equal(node->password, "p");
    assert_string_equal(node->prefix, "x");
    assert_int_equal(node->switch_ms, 9000);
    assert_int_equal(node->wait, 1);
    assert_int_equal(node->command_timeout_ms, 70);
    assert_int_equal(node->connect_timeout_ms, 80);
    assert_true(node->may_evict && !node->has_grace);
    assert_int_equal(node->host_count, 0);
    dm_url_free(node);
    dm_url_free(list);
}

/* The sentence of a Cluster names the first node, and no secret. */
static void test_url_of_a_cluster_is_described_by_its_first_node(void **state)
{
    struct dm_url *url = parse("redis+cluster://u:s3cret@a:7001,b");
    char text[DM_REASON_ROOM];

    (void)state;
    dm_url_describe(url, text, sizeof text);
    assert_string_equal(text, "the Cluster of a:7001");
    dm_url_free(url);
}

/* As other clients write a Cluster, and with mistakes: each sentence shows our form, or names the option. */
static void test_url_is_refused_when_a_cluster_cannot_be_as_written(void **state)
{
    static const char form[] = "redis+cluster://host1:6379,host2,host3";
    static const struct refusal odd[] = {
        { "redis-cluster://a,b", form },
        { "rediss-cluster://a,b", "host3?tls=yes" },
        { "rediss+cluster://a,b", "host3?tls=yes" },
        { "cluster://a,b", form },
        { "redis://a,b", form },
        { "redis://a,b/0", form },
        { "redis://a?addr=b", form },
        { "redis://a?redis_cluster=1", form },
        { "redis://a?cluster=redis", form },
        { "redis+cluster://a/0", "locks of a Cluster are in database 0" },
        { "redis+cluster://a/m", form },
        { "redis+cluster://a/m/0", form },
        { "redis+cluster://a?db=0", "the option db" },
        { "redis+cluster://", "the host is missing" },
        { "redis+cluster://?wait=1", "the host is missing" },
        { "redis+cluster://a,,b", "the host is missing" },
        { "redis+cluster://a,", "the host is missing" },
        { "redis+cluster://a:0", "1..65535" },
        { "redis+cluster://[::1", "[address]:port" },
        { "redis+cluster://::1", "the host is missing" },
        { "redis+cluster://a,a:6379", "a server twice" },
        { "redis+cluster://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", "more than 15" },
        { "redis+cluster://a?switch=1999", "shorter than command_timeout" },
        { "redis+cluster://a?command_timeout=2001", "shorter than command_timeout" },
        { "redis+cluster://a?switch=0", "switch" },
        { "redis+cluster://a?wait=100", "0..99" },
        { "redis+cluster://a?sentinel_user=me", "redis+sentinel:// alone" },
        { "redis://a?switch=5000", "redis+cluster:// alone" },
        { "unix:///s?switch=5000", "redis+cluster:// alone" },
    };

    (void)state;
    assert_refused(odd, COUNT(odd));
}

/* TLS is of all nodes. */
static void test_url_of_a_cluster_has_tls_when_asked_for(void **state)
{
    struct dm_url *url, *node;

    (void)state;
    if (!DM_HAVE_TLS)
        return;
    url = parse("redis+cluster://a,b?tls=yes&servername=all");
    node = dm_url_of_server(url, "a", "7001");
    assert_non_null(node);
    assert_true(node->has_tls && node->is_verified);
    assert_string_equal(node->servername, "all");
    dm_url_free(node);
    dm_url_free(url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_url_is_read_when_it_is_of_a_cluster),
        cmocka_unit_test(test_url_of_a_node_has_the_settings_of_its_cluster),
        cmocka_unit_test(test_url_of_a_cluster_is_described_by_its_first_node),
        cmocka_unit_test(test_url_is_refused_when_a_cluster_cannot_be_as_written),
        cmocka_unit_test(test_url_of_a_cluster_has_tls_when_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

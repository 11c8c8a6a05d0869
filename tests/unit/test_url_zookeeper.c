/* SPDX-License-Identifier: BSD-2-Clause */
/* config/url: the members of ZooKeeper in a URL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "config.h"
#include "url_parse.h"

/* All parts of a zookeeper:// URL are read */
static void test_url_is_read_when_it_is_of_zookeeper(void **state)
{
    static const struct {
        const char *text, *last, *last_port, *password, *prefix;
        int count;
        bool has_tls;
    } good[] = {
        { "zookeeper://a", "a", "2181", NULL, "dmutex", 1, false },
        { "zookeeper://a,b:1,[::1]:3/", "::1", "3", NULL, "dmutex", 3, false },
        { "ZOOKEEPER://u:p%2Fw@a,b/locks?command_timeout=7000", "b", "2181", "p/w", "locks", 2, false },
        { "zookeeper://a?prefix=x", "a", "2181", NULL, "x", 1, false },
#if DM_HAVE_TLS
        { "zookeepers://a/b", "a", "2181", NULL, "b", 1, true },
        { "zookeeper://a/b?tls=yes", "a", "2181", NULL, "b", 1, true },
#endif
    };

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        struct dm_url *url = parse(good[i].text);
        const struct dm_url_host *last = &url->hosts[url->host_count - 1];

        assert_int_equal(url->kind, DM_URL_ZOOKEEPER);
        assert_int_equal(url->host_count, good[i].count);
        assert_string_equal(last->host, good[i].last);
        assert_string_equal(last->port, good[i].last_port);
        assert_same_text(url->password, good[i].password);
        assert_string_equal(url->prefix, good[i].prefix);
        assert_int_equal(url->has_tls, good[i].has_tls);
        assert_int_equal(url->command_timeout_ms, strstr(good[i].text, "7000") ? 7000 : 5000);
        dm_url_free(url);
    }
}

static void test_url_of_zookeeper_is_described_by_its_first_member(void **state)
{
    struct dm_url *url = parse("zookeeper://u:s3cret@a:7001,b/x");
    char text[DM_REASON_ROOM];

    (void)state;
    dm_url_describe(url, text, sizeof text);
    assert_string_equal(text, "ZooKeeper at a:7001");
    dm_url_free(url);
}

/* What ZooKeeper does not have, and what is no prefix */
static void test_url_is_refused_when_zookeeper_cannot_be_as_written(void **state)
{
    static const struct refusal odd[] = {
        { "zookeeper://", "the host is missing" },
        { "zookeeper://a,,b", "the host is missing" },
        { "zookeeper://a,b,a:2181", "a server twice" },
        { "zookeeper://a/x y", "the path is a prefix of 1..64 letters" },
        { "zookeeper://a/x/y", "the path is a prefix of 1..64 letters" },
        { "zookeeper://a/..", "choose another path" },
        { "zookeepers://a?prefix=.", "choose another path" },
        { "zookeeper://a?wait=1", "not of redis+quorum://, etcd://" },
        { "zookeeper://a?eviction=allow", "not of etcd://" },
        { "zookeeper://a?switch=1", "switch" },
        { "zookeeper://a?db=1", "db" },
        { "zookeeper://a?sentinel_user=x", "sentinel" },
        { "zookeeper://a?cacert=/etc/passwd", "TLS" },
        { "zookeeper:a", "zookeepers://" },
        { "http://a:2181", "zookeepers://" },
    };

    (void)state;
    assert_refused(odd, COUNT(odd));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_url_is_read_when_it_is_of_zookeeper),
        cmocka_unit_test(test_url_of_zookeeper_is_described_by_its_first_member),
        cmocka_unit_test(test_url_is_refused_when_zookeeper_cannot_be_as_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

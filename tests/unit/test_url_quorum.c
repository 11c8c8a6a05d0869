/* SPDX-License-Identifier: BSD-2-Clause */
/* store/url: a quorum in a URL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "config.h"
#include "url_parse.h"

/* All parts of a redis+quorum:// URL are read, and each server has the settings. */
static void test_url_is_read_when_it_is_of_a_quorum(void **state)
{
    static const struct {
        const char *text, *last, *last_port, *password;
        int count;
        unsigned db;
    } good[] = {
        { "redis+quorum://a,b,c", "c", "6379", NULL, 3, 0 },
        { "redis+quorum://a,b,c/", "c", "6379", NULL, 3, 0 },
        { "redis+quorum://:p,w@a:1,b:2,[::1]:3/7?prefix=x", "::1", "3", "p,w", 3, 7 },
        { "redis+quorum://a,b,c,d,e", "e", "6379", NULL, 5, 0 },
        { "redis+quorum://1,2,3,4,5,6,7?grace=off", "7", "6379", NULL, 7, 0 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        struct dm_url *url = parse(good[i].text);
        const struct dm_url_host *last = &url->hosts[url->host_count - 1];
        struct dm_url *server = dm_url_of_server(url, last->host, last->port);

        assert_int_equal(url->kind, DM_URL_QUORUM);
        assert_int_equal(url->host_count, good[i].count);
        assert_string_equal(last->host, good[i].last);
        assert_string_equal(last->port, good[i].last_port);
        assert_int_equal(server->kind, DM_URL_TCP);
        assert_int_equal(server->db, good[i].db);
        assert_same_text(server->password, good[i].password);
        assert_string_equal(server->prefix, url->prefix);
        assert_int_equal(server->has_grace, url->has_grace);
        dm_url_free(server);
        dm_url_free(url);
    }
}

static void test_url_of_a_quorum_is_described_by_its_first_server(void **state)
{
    struct dm_url *url = parse("redis+quorum://u:s3cret@a:7001,b,c");
    char text[DM_REASON_ROOM];

    (void)state;
    dm_url_describe(url, text, sizeof text);
    assert_string_equal(text, "3 servers, a:7001 the first");
    dm_url_free(url);
}

/* An even number, or too few; and the form in the sentence for other spellings. */
static void test_url_is_refused_when_a_quorum_cannot_be_as_written(void **state)
{
    static const char form[] = "redis+quorum://host1:6379,host2,host3";
    static const struct refusal odd[] = {
        { "redis+quorum://a", "3, 5 or 7" },
        { "redis+quorum://a,b", "3, 5 or 7" },
        { "redis+quorum://a,b,c,d", "3, 5 or 7" },
        { "redis+quorum://1,2,3,4,5,6", form },
        { "redis+quorum://1,2,3,4,5,6,7,8,9", "3, 5 or 7" },
        { "redis+quorum://", "the host is missing" },
        { "redis+quorum://a,,b", "the host is missing" },
        { "redis+quorum://a,b,a:6379", "a server twice" },
        { "redis+quorum://a,b,c/x", "not a number" },
        { "redis+quorum://a,b,c?wait=1", "not of redis+quorum://" },
        { "redis+quorum://a,b,c?switch=5000", "switch" },
        { "rediss+quorum://a,b,c", "host3?tls=yes" },
        { "redis-quorum://a,b,c", form },
        { "redlock://a,b,c", form },
    };

    (void)state;
    assert_refused(odd, COUNT(odd));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_url_is_read_when_it_is_of_a_quorum),
        cmocka_unit_test(test_url_of_a_quorum_is_described_by_its_first_server),
        cmocka_unit_test(test_url_is_refused_when_a_quorum_cannot_be_as_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

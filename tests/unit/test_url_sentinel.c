/* SPDX-License-Identifier: BSD-2-Clause */
/* store/url: a group of Sentinel in a URL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "url_parse.h"

/* All parts of a redis+sentinel:// URL are read. */
static void test_url_is_read_when_it_is_of_sentinels(void **state)
{
    static const struct {
        const char *text, *first, *first_port, *last, *last_port, *master, *password;
        int count;
        unsigned db, switch_ms, wait;
    } good[] = {
        { "redis+sentinel://a/m", "a", "26379", "a", "26379", "m", NULL, 1, 0, 5000, 0 },
        { "redis+sentinel://a:1,b,[::1]:3/my.master/7", "a", "1", "::1", "3", "my.master", NULL, 3, 7, 5000, 0 },
        { "redis+sentinel://u:p,w@a,b/m?switch=9000&wait=2", "a", "26379", "b", "26379", "m", "p,w", 2, 0, 9000, 2 },
        { "redis+sentinel://a/m%2F1?switch=30&command_timeout=30", "a", "26379", "a", "26379", "m/1", NULL, 1, 0, 30,
          0 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        struct dm_url *url = parse(good[i].text);
        const struct dm_url_host *last = &url->hosts[url->host_count - 1];

        assert_int_equal(url->kind, DM_URL_SENTINEL);
        assert_int_equal(url->host_count, good[i].count);
        assert_string_equal(url->hosts[0].host, good[i].first);
        assert_string_equal(url->hosts[0].port, good[i].first_port);
        assert_string_equal(last->host, good[i].last);
        assert_string_equal(last->port, good[i].last_port);
        assert_string_equal(url->master, good[i].master);
        assert_same_text(url->password, good[i].password);
        assert_int_equal(url->db, good[i].db);
        assert_int_equal(url->switch_ms, good[i].switch_ms);
        assert_int_equal(url->wait, good[i].wait);
        dm_url_free(url);
    }
}

/* The login of the sentinels is their own: a user in the URL, and a password in a file. */
static void test_url_has_a_login_of_the_sentinels_when_given(void **state)
{
    char path[] = "/tmp/dmutex-url-XXXXXX", text[200];
    int fd = mkstemp(path);
    struct dm_url *url;

    (void)state;
    assert_int_equal(write(fd, "secret\n", 7), 7);
    close(fd);
    snprintf(text, sizeof text, "redis+sentinel://me:mine@a/m?sentinel_user=watch&sentinel_password_file=%s", path);
    url = parse(text);
    unlink(path);
    assert_string_equal(url->user, "me");
    assert_string_equal(url->password, "mine");
    assert_string_equal(url->sentinel_user, "watch");
    assert_string_equal(url->sentinel_password, "secret");
    dm_url_free(url);
}

/* As other clients write a group of sentinels, and with mistakes: each sentence shows our form, or names the option. */
static void test_url_is_refused_when_sentinels_cannot_be_as_written(void **state)
{
    static const char form[] = "redis+sentinel://host1:26379,host2,host3/master-name";
    static const struct refusal odd[] = {
        { "redis-sentinel://a,b/0?sentinelMasterId=m", form },
        { "rediss-sentinel://a/m", form },
        { "sentinel://a/m", form },
        { "redis://a?master_name=m&addr=b", form },
        { "redis://a,b/m", form },
        { "redis+sentinel://a", form },
        { "redis+sentinel://a/", form },
        { "redis+sentinel:///m", "the host is missing" },
        { "redis+sentinel://a,,b/m", "the host is missing" },
        { "redis+sentinel://a,a:26379/m", "a server twice" },
        { "redis+sentinel://a/m/x", "database" },
        { "redis+sentinel://a/m?switch=1999", "shorter than command_timeout" },
        { "redis+sentinel://a/m?switch=0", "switch" },
        { "redis+sentinel://a/m?wait=100", "0..99" },
        { "redis+sentinel://a/m?sentinel_user=", "sentinel_user" },
        { "redis+sentinel://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16/m", "more than 15" },
        { "redis://a?switch=5000", "of redis+sentinel://" },
        { "redis://a?sentinel_user=me", "redis+sentinel:// alone" },
    };

    (void)state;
    assert_refused(odd, COUNT(odd));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_url_is_read_when_it_is_of_sentinels),
        cmocka_unit_test(test_url_has_a_login_of_the_sentinels_when_given),
        cmocka_unit_test(test_url_is_refused_when_sentinels_cannot_be_as_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* config/url: a server of memcached in a URL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "config.h"
#include "url_parse.h"

static void test_url_is_read_when_it_is_of_memcached(void **state)
{
    static const struct {
        const char *text, *host, *port, *path, *prefix, *place;
    } good[] = {
        { "memcached://a?lossy=yes", "a", "11211", NULL, "dmutex", "memcached at a:11211" },
        { "MEMCACHED://[::1]:7?prefix=x&lossy=yes", "::1", "7", NULL, "x", "memcached at [::1]:7" },
        { "memcached:///run/m%20c?lossy=yes", NULL, NULL, "/run/m c", "dmutex", "memcached at /run/m c" },
    };
    char text[DM_REASON_ROOM];

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        struct dm_url *url = parse(good[i].text);

        assert_int_equal(url->kind, DM_URL_MEMCACHED);
        assert_same_text(url->host, good[i].host);
        assert_same_text(url->port, good[i].port);
        assert_same_text(url->path, good[i].path);
        assert_string_equal(url->prefix, good[i].prefix);
        dm_url_describe(url, text, sizeof text);
        assert_string_equal(text, good[i].place);
        dm_url_free(url);
    }
}

/* Without the word lossy, and what memcached does not have */
static void test_url_is_refused_when_memcached_cannot_be_as_written(void **state)
{
    static const struct refusal odd[] = {
        { "memcached://a", "write ?lossy=yes if two owners at a time would do no harm" },
        { "memcached://a?prefix=x", "write ?lossy=yes" },
        { "memcached://a?lossy=no", "the option lossy is not \"yes\"" },
        { "redis://a?lossy=yes", "of memcached:// alone" },
        { "etcd://a?lossy=yes", "of memcached:// alone" },
        { "memcached://?lossy=yes", "the host is missing" },
        { "memcached://a,b?lossy=yes", "a lock could have two owners" },
        { "memcached://u:p@a?lossy=yes", "memcached:// has no login" },
        { "memcached://a?lossy=yes&password_file=/dev/null", "" },
        { "memcached://a?lossy=yes&tls=yes", "neither TLS nor a login" },
        { "memcached://a/x?lossy=yes", "nothing comes after the host" },
        { "memcached://a?lossy=yes&wait=1", "memcached://" },
        { "memcached://a?lossy=yes&eviction=allow", "memcached://" },
        { "memcached://a?lossy=yes&switch=1", "switch" },
        { "memcached://a?lossy=yes&db=1", "db" },
        { "memcached:a", "memcached://" },
    };

    (void)state;
    assert_refused(odd, COUNT(odd));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_url_is_read_when_it_is_of_memcached),
        cmocka_unit_test(test_url_is_refused_when_memcached_cannot_be_as_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

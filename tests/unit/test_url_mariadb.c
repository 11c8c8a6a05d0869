/* SPDX-License-Identifier: BSD-2-Clause */
/* config/url: a database of MariaDB in a URL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "config.h"
#include "url_parse.h"

/* All parts of a mariadb:// URL are read */
static void test_url_is_read_when_it_is_of_mariadb(void **state)
{
    static const struct {
        const char *text, *last, *last_port, *user, *password, *database, *path;
        int count;
        bool has_tls;
    } good[] = {
        { "mariadb://a/d", "a", "3306", NULL, NULL, "d", NULL, 1, false },
        { "mysql://u:p%2Fw@a,b:1,[::1]:3/my%20data?command_timeout=7000", "::1", "3", "u", "p/w", "my data", NULL, 3,
          false },
        { "MariaDB://u@/d?socket=/run/s", NULL, NULL, "u", NULL, "d", "/run/s", 0, false },
        { "mariadb:///d?socket=/run/s", NULL, NULL, NULL, NULL, "d", "/run/s", 0, false },
#if DM_HAVE_TLS
        { "mariadb://a/d?tls=yes&verify=none", "a", "3306", NULL, NULL, "d", NULL, 1, true },
#endif
    };

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        struct dm_url *url = parse(good[i].text);

        assert_int_equal(url->kind, DM_URL_MARIADB);
        assert_int_equal(url->host_count, good[i].count);
        if (url->host_count) {
            assert_string_equal(url->hosts[url->host_count - 1].host, good[i].last);
            assert_string_equal(url->hosts[url->host_count - 1].port, good[i].last_port);
        }
        assert_same_text(url->user, good[i].user);
        assert_same_text(url->password, good[i].password);
        assert_string_equal(url->database, good[i].database);
        assert_same_text(url->path, good[i].path);
        assert_int_equal(url->has_tls, good[i].has_tls);
        assert_int_equal(url->command_timeout_ms, strstr(good[i].text, "7000") ? 7000 : 5000);
        dm_url_free(url);
    }
}

static void test_url_of_mariadb_is_described_by_its_first_server(void **state)
{
    struct dm_url *url = parse("mariadb://u:s3cret@a:7001,b/x");
    char text[DM_REASON_ROOM];

    (void)state;
    dm_url_describe(url, text, sizeof text);
    assert_string_equal(text, "MariaDB at a:7001");
    dm_url_free(url);
}

/* What MariaDB does not have, and what names no database */
static void test_url_is_refused_when_mariadb_cannot_be_as_written(void **state)
{
    static const struct refusal odd[] = {
        { "mariadb://a", "the database is missing" },
        { "mariadb://a/", "the database is missing" },
        { "mariadb://a/0123456789012345678901234567890123456789012345678901234567890123456789", "too long" },
        { "mariadb:///d", "the option socket" },
        { "mariadb://a/d?socket=/run/s", "not both" },
        { "mariadb://u@/d?socket=run/s", "an absolute path" },
        { "mariadb://a,,b/d", "the host is missing" },
        { "mariadb://a,a:3306/d", "a server twice" },
        { "mariadb://a/d?wait=1", "mariadb://" },
        { "mariadb://a/d?eviction=allow", "mariadb://" },
        { "mariadb://a/d?switch=1", "switch" },
        { "mariadb://a/d?db=1", "db" },
        { "mariadb://a/d?cacert=/etc/passwd", "TLS" },
        { "mariadb://a/d?prefix=0123456789012345678901234567890123456789012345678901234", "54 characters" },
        { "redis://a?socket=/run/s", "of mariadb:// alone" },
        { "mariadb:a", "mariadb://" },
#if DM_HAVE_TLS
        { "mariadb://a/d?tls=yes&servername=b", "remove the option servername" },
        { "mariadb:///d?socket=/run/s&tls=yes", "not of use" },
#endif
    };

    (void)state;
    assert_refused(odd, COUNT(odd));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_url_is_read_when_it_is_of_mariadb),
        cmocka_unit_test(test_url_of_mariadb_is_described_by_its_first_server),
        cmocka_unit_test(test_url_is_refused_when_mariadb_cannot_be_as_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* config/url_postgres: a URL of PostgreSQL, without our options, is left to libpq. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "config.h"
#include "url_parse.h"

/* Our options are taken off, wherever they stand, and all others stay as they are */
static void test_our_options_are_taken_off(void **state)
{
    static const struct {
        const char *text, *database, *prefix;
        unsigned timeout_ms;
    } good[] = {
        { "postgresql://", "postgresql://", "dmutex", 5000 },
        { "postgres://u:p%3F@h1,h2:99/db?sslmode=require", "postgres://u:p%3F@h1,h2:99/db?sslmode=require", "dmutex",
          5000 },
        { "postgresql://h?dmutex.prefix=Locks-1.a_", "postgresql://h", "Locks-1.a_", 5000 },
        { "postgresql://h?a=1&dmutex.command_timeout=100&b=2&dmutex.prefix=x", "postgresql://h?a=1&b=2", "x", 100 },
        { "postgresql://h?dmutex.prefix=x&a=dmutex.prefix=y", "postgresql://h?a=dmutex.prefix=y", "x", 5000 },
        { "postgresql:///db?host=/run/postgresql&service=s&", "postgresql:///db?host=/run/postgresql&service=s",
          "dmutex", 5000 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        struct dm_url *url = parse(good[i].text);

        assert_int_equal(url->kind, DM_URL_POSTGRES);
        assert_string_equal(url->database, good[i].database);
        assert_string_equal(url->prefix, good[i].prefix);
        assert_int_equal(url->command_timeout_ms, good[i].timeout_ms);
        dm_url_free(url);
    }
}

static void test_grace_is_on_unless_it_is_off(void **state)
{
    static const char *const texts[] = { "postgresql://h", "postgresql://h?dmutex.grace=on",
                                         "postgresql://h?dmutex.grace=off" };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct dm_url *url = parse(texts[i]);

        assert_string_equal(url->database, "postgresql://h");
        assert_int_equal(url->has_grace, i != 2);
        dm_url_free(url);
    }
}

/* A schema has no longer name, and no other letters; a misspelt option of ours is not left to libpq */
static void test_bad_option_is_refused(void **state)
{
    static const struct refusal odd[] = {
        { "postgresql://h?dmutex.prefix=", "63 letters" },
        { "postgresql://h?dmutex.prefix=a%41", "63 letters" },
        { "postgresql://h?dmutex.prefix=a\"b", "63 letters" },
        { "postgresql://h?dmutex.prefix=a123456789b123456789c123456789d123456789e123456789f123456789g123",
          "63 letters" },
        { "postgresql://h?dmutex.command_timeout=0", "milliseconds" },
        { "postgresql://h?dmutex.prefx=a", "our options are" },
        { "postgresql://h?dmutex.prefix", "63 letters" },
        { "postgresql://h?dmutex.grace=no", "\"on\" or \"off\"" },
        { " postgresql://h", "blank" },
        { "POSTGRESQL://h", "does not begin with" },
    };

    (void)state;
    assert_refused(odd, COUNT(odd));
}

/* The place is said without a login, also without one that lacks its @ */
static void test_place_has_no_login(void **state)
{
    static const char *const places[][2] = {
        { "postgresql://u:s3cret@h:1,h2/db?x=@y", "PostgreSQL at h:1" },
        { "postgresql://h", "PostgreSQL at h" },
        { "postgresql://u:s3cret", "PostgreSQL" },
        { "postgresql:///db", "PostgreSQL" },
    };
    char text[DM_REASON_ROOM];

    (void)state;
    for (size_t i = 0; i < COUNT(places); i++) {
        struct dm_url *url = parse(places[i][0]);

        dm_url_describe(url, text, sizeof text);
        assert_string_equal(text, places[i][1]);
        dm_url_free(url);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_our_options_are_taken_off),
        cmocka_unit_test(test_grace_is_on_unless_it_is_off),
        cmocka_unit_test(test_bad_option_is_refused),
        cmocka_unit_test(test_place_has_no_login),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

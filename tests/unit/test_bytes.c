/* SPDX-License-Identifier: BSD-2-Clause */
/* base/bytes: a growing block, and base64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"

/* What is added in pieces is there as one text, with a NUL after it, and can be taken off from the beginning */
static void test_bytes_grow_and_are_taken(void **state)
{
    struct dm_bytes bytes = { 0 };

    (void)state;
    for (int i = 0; i < 1000; i++)
        dm_bytes_print(&bytes, "%03d", i);
    dm_bytes_add(&bytes, "\0x", 2);
    assert_int_equal(bytes.size, 3002);
    assert_memory_equal(bytes.at + 2997, "999\0x", 6);
    dm_bytes_take(&bytes, 2997);
    assert_int_equal(bytes.size, 5);
    assert_string_equal(bytes.at, "999");
    assert_false(bytes.is_short);
    dm_bytes_free(&bytes);
    assert_null(bytes.at);
    dm_bytes_take(&bytes, 0);
}

/* The vectors of RFC 4648, and all bytes */
static void test_base64_is_that_of_the_rfc(void **state)
{
    static const struct {
        const char *plain, *coded;
    } rows[] = { { "", "" },
                 { "f", "Zg==" },
                 { "fo", "Zm8=" },
                 { "foo", "Zm9v" },
                 { "foob", "Zm9vYg==" },
                 { "fooba", "Zm9vYmE=" },
                 { "foobar", "Zm9vYmFy" } };
    struct dm_bytes bytes = { 0 };
    uint8_t all[256], back[256];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bytes.size = 0;
        dm_bytes_add_base64(&bytes, rows[i].plain, strlen(rows[i].plain));
        assert_string_equal(bytes.at, rows[i].coded);
        assert_int_equal(dm_base64_decode(bytes.at, bytes.size, back, sizeof back), strlen(rows[i].plain));
        assert_memory_equal(back, rows[i].plain, strlen(rows[i].plain));
    }
    for (int i = 0; i < 256; i++)
        all[i] = (uint8_t)i;
    bytes.size = 0;
    dm_bytes_add_base64(&bytes, all, sizeof all);
    assert_int_equal(dm_base64_decode(bytes.at, bytes.size, back, sizeof back), sizeof all);
    assert_memory_equal(back, all, sizeof all);
    dm_bytes_free(&bytes);
}

/* What is no base64 is refused, and so is what has no room */
static void test_base64_is_refused_when_it_is_none(void **state)
{
    static const char *const bad[] = { "Zg=", "Zg", "Z===", "====", "Zg==Zg==", "Zm 9", "Zm\n9", "Zm-_", "Zm9\xff" };
    uint8_t back[8];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(dm_base64_decode(bad[i], strlen(bad[i]), back, sizeof back), -1);
    assert_int_equal(dm_base64_decode("Zm9v", 4, back, 2), -1);
    assert_int_equal(dm_base64_decode("Zm\0v", 4, back, sizeof back), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_grow_and_are_taken),
        cmocka_unit_test(test_base64_is_that_of_the_rfc),
        cmocka_unit_test(test_base64_is_refused_when_it_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

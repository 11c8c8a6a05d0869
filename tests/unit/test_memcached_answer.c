/* SPDX-License-Identifier: BSD-2-Clause */
/* stores/memcached/answer: what memcached says, and what it never does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "random.h"
#include "stores/memcached/answer.h"

#define MOST 1000

static struct dm_memcached_answer answer;

static enum dm_memcached_code read_text(const char *text)
{
    dm_memcached_answer_read(text, strlen(text), MOST, &answer);
    return answer.code;
}

/* Each answer is read, as soon as it is whole, and nothing after it */
static void test_answers_are_read_when_they_are_whole(void **state)
{
    static const struct {
        const char *text;
        enum dm_memcached_code code;
        uint64_t cas;
        size_t size;
    } good[] = {
        { "VA 5 c12\r\nhe\r\no\r\n", DM_MEMCACHED_VALUE, 12, 5 },
        { "VA 0 c18446744073709551615\r\n\r\n", DM_MEMCACHED_VALUE, UINT64_MAX, 0 },
        { "VA 1\r\nx\r\n", DM_MEMCACHED_VALUE, 0, 1 },
        { "HD c7\r\n", DM_MEMCACHED_DONE, 7, 0 },
        { "HD\r\n", DM_MEMCACHED_DONE, 0, 0 },
        { "EN\r\n", DM_MEMCACHED_ABSENT, 0, 0 },
        { "NF c0\r\n", DM_MEMCACHED_ABSENT, 0, 0 },
        { "EX c0\r\n", DM_MEMCACHED_OTHER, 0, 0 },
        { "STORED\r\n", DM_MEMCACHED_DONE, 0, 0 },
        { "EXISTS\r\n", DM_MEMCACHED_OTHER, 0, 0 },
        { "NOT_STORED\r\n", DM_MEMCACHED_OTHER, 0, 0 },
        { "NOT_FOUND\r\n", DM_MEMCACHED_ABSENT, 0, 0 },
        { "SERVER_ERROR out of memory storing object\r\n", DM_MEMCACHED_REFUSED, 0, 0 },
        { "CLIENT_ERROR bad data chunk\r\n", DM_MEMCACHED_REFUSED, 0, 0 },
        { "ERROR\r\n", DM_MEMCACHED_REFUSED, 0, 0 },
        { "STAT evictions off\r\n", DM_MEMCACHED_TEXT, 0, 0 },
        { "END\r\n", DM_MEMCACHED_TEXT, 0, 0 },
        { "VERSION 1.6.18\r\n", DM_MEMCACHED_TEXT, 0, 0 },
    };
    char more[100];

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        size_t length = strlen(good[i].text);

        for (size_t part = 0; part < length; part++) {
            dm_memcached_answer_read(good[i].text, part, MOST, &answer);
            assert_int_equal(answer.code, DM_MEMCACHED_MORE);
        }
        snprintf(more, sizeof more, "%sHD c99\r\n", good[i].text);
        assert_int_equal(read_text(more), good[i].code);
        assert_int_equal(answer.length, length);
        assert_true(answer.cas == good[i].cas);
        assert_int_equal(answer.size, good[i].size);
    }
    assert_int_equal(read_text("VA 5 c12\r\nhe\r\no\r\n"), DM_MEMCACHED_VALUE);
    assert_memory_equal(answer.value, "he\r\no", 5);
}

/* Sizes that are negative, missing, too large or no numbers; values without an end; and what is no answer */
static void test_what_is_no_answer_is_refused(void **state)
{
    static const char *const bad[] = {
        "VA -1 c1\r\nx\r\n",
        "VA 1001 c1\r\n",
        "VA 99999999999999999999999999 c1\r\n",
        "VA 18446744073709551615 c1\r\n",
        "VA\r\n",
        "VA \r\n\r\n",
        "VA x\r\nx\r\n",
        "VA 1x\r\nx\r\n",
        "VA +1\r\nx\r\n",
        "VA 1 c1\r\nxyz\r\n",
        "VA 1 c1\r\nx\n\n",
        "\r\n",
        "\n",
        "HD\n",
        "HDX\r\n",
        "hd\r\n",
        " HD\r\n",
        "-ERR unknown command\r\n",
        "HTTP/1.1 400 Bad Request\r\n",
        "VALUE a 0 1\r\n",
        "SERVER_ERRORS\r\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (read_text(bad[i]) != DM_MEMCACHED_BAD)
            fail_msg("accepted: %s", bad[i]);
    }
    dm_memcached_answer_read("HD\0c1\r\n", 7, MOST, &answer);
    assert_int_equal(answer.code, DM_MEMCACHED_BAD);
}

/* CAS numbers that are none are not told, which is as good as none */
static void test_odd_cas_numbers_are_not_told(void **state)
{
    static const char *const odd[] = { "HD c\r\n", "HD c-1\r\n", "HD c1x\r\n", "HD c18446744073709551616\r\n" };

    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        assert_int_equal(read_text(odd[i]), DM_MEMCACHED_DONE);
        assert_true(answer.cas == 0);
    }
}

/* A line without an end is refused before it fills any memory; so is a value that is longer than any of ours */
static void test_endless_lines_are_refused(void **state)
{
    char line[DM_MEMCACHED_LINE_MOST + 2];

    (void)state;
    memset(line, 'x', sizeof line);
    dm_memcached_answer_read(line, DM_MEMCACHED_LINE_MOST - 1, MOST, &answer);
    assert_int_equal(answer.code, DM_MEMCACHED_MORE);
    dm_memcached_answer_read(line, DM_MEMCACHED_LINE_MOST, MOST, &answer);
    assert_int_equal(answer.code, DM_MEMCACHED_BAD);
    memcpy(line, "STAT ", 5);
    memcpy(line + DM_MEMCACHED_LINE_MOST - 2, "\r\n", 2);
    dm_memcached_answer_read(line, DM_MEMCACHED_LINE_MOST, MOST, &answer);
    assert_int_equal(answer.code, DM_MEMCACHED_TEXT);
    assert_int_equal(strlen(answer.line), DM_MEMCACHED_LINE_MOST - 2);
}

/* Arbitrary bytes, in memory that ends with them: for sanitizers */
static void test_changed_bytes_do_no_harm(void **state)
{
    static const char good[] = "VA 11 c123456789\r\nhello world\r\nHD c5\r\n";

    (void)state;
    for (int i = 0; i < rounds(20000); i++) {
        size_t size = random_below(sizeof good);
        char *copy = malloc(size ? size : 1);

        assert_non_null(copy);
        memcpy(copy, good, size);
        for (int j = 0; j < 2 && size; j++)
            copy[random_below((unsigned)size)] = (char)random_word();
        dm_memcached_answer_read(copy, size, MOST, &answer);
        if (answer.code != DM_MEMCACHED_MORE && answer.code != DM_MEMCACHED_BAD)
            assert_true(answer.length <= size);
        if (answer.value)
            assert_true(answer.size <= MOST);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_are_read_when_they_are_whole),
        cmocka_unit_test(test_what_is_no_answer_is_refused),
        cmocka_unit_test(test_odd_cas_numbers_are_not_told),
        cmocka_unit_test(test_endless_lines_are_refused),
        cmocka_unit_test(test_changed_bytes_do_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

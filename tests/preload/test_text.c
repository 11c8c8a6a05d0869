/* SPDX-License-Identifier: BSD-2-Clause */
/* preload/shared/text: texts in buffers, numbers, globs of paths, and lines to standard error. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/range.h"
#include "shared/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A text is always terminated, and notes when a part did not fit. */
static void test_a_text_is_cut_when_its_buffer_is_full(void **state)
{
    char buffer[9] = "--------";
    struct text text = text_in(buffer, 8);

    (void)state;
    assert_string_equal(buffer, "");
    text_add(&text, "abc");
    text_add_bytes(&text, "defg", 4);
    assert_string_equal(buffer, "abcdefg");
    assert_false(text.is_cut);
    text_add(&text, "");
    assert_false(text.is_cut);
    text_add(&text, "h");
    assert_true(text.is_cut);
    assert_string_equal(buffer, "abcdefg");
    assert_int_equal(text.length, 7);
}

/* Numbers are written up to the largest. */
static void test_a_number_is_written_in_decimal_and_hex(void **state)
{
    char buffer[100];
    struct text text = text_in(buffer, sizeof buffer);

    (void)state;
    text_add_number(&text, 0);
    text_add(&text, " ");
    text_add_number(&text, UINT64_MAX);
    text_add(&text, " ");
    text_add_hex(&text, 0);
    text_add(&text, " ");
    text_add_hex(&text, UINT64_MAX);
    assert_string_equal(buffer, "0 18446744073709551615 0x0 0xffffffffffffffff");
}

/* A number is read if the whole text is the number. */
static void test_a_number_is_read_when_it_is_all_of_the_text(void **state)
{
    static const struct {
        const char *text;
        uint64_t number;
    } good[] = { { "0", 0 },
                 { "0010", 10 },
                 { "0xfF", 255 },
                 { "0x0", 0 },
                 { "18446744073709551615", UINT64_MAX },
                 { "0xffffffffffffffff", UINT64_MAX } };
    static const char *const bad[] = { "",
                                       "0x",
                                       "-1",
                                       "+1",
                                       " 1",
                                       "1 ",
                                       "1a",
                                       "0xg",
                                       "0X1",
                                       "18446744073709551616",
                                       "0x10000000000000000",
                                       "99999999999999999999" };
    uint64_t number = 7;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        if (text_number(bad[i], &number))
            fail_msg("\"%s\" was taken", bad[i]);
    assert_int_equal(number, 7);
    for (size_t i = 0; i < COUNT(good); i++) {
        assert_true(text_number(good[i].text, &number));
        assert_int_equal(number, good[i].number);
    }
}

/* The basename is the last part of a path. */
static void test_a_basename_is_what_follows_the_last_slash(void **state)
{
    (void)state;
    assert_string_equal(text_basename("/a/b"), "b");
    assert_string_equal(text_basename("b"), "b");
    assert_string_equal(text_basename("/a/"), "");
}

/* In a glob, `*` and `?` match within one part of a path. */
static void test_a_glob_matches_as_of_paths(void **state)
{
    static const struct {
        const char *glob, *text;
        bool matches;
    } cases[] = {
        { "/run/a.lock", "/run/a.lock", true },
        { "/run/a.lock", "/run/a.lockx", false },
        { "/run/a.lock", "/run/a.loc", false },
        { "/run/*.lock", "/run/a.lock", true },
        { "/run/*.lock", "/run/.lock", true },
        { "/run/*.lock", "/run/a/b.lock", false },
        { "/run/*", "/run/a", true },
        { "/run/*", "/run/", true },
        { "/run/*", "/run/a/b", false },
        { "/run/*/b", "/run/a/b", true },
        { "/run/*/b", "/run/a/c/b", false },
        { "/run/?", "/run/a", true },
        { "/run/?", "/run/", false },
        { "/run?a", "/run/a", false },
        { "/*a*b*c", "/xaxbxc", true },
        { "/*a*b*c", "/xaxcxb", false },
        { "", "", true },
        { "*", "", true },
        { "*", "a", true },
        { "", "a", false },
        { "/a*", "/", false },
        { "/run/***a", "/run/a", true },
        { "/run/a*", "/run/ab/", false },
        { "/run/a*/", "/run/ab/", true },
        { "/run/[a]", "/run/a", false },
        { "/run/[a]", "/run/[a]", true },
        { "*a*b*c", "xxaxbxc", true },
        { "*a*b*c", "xxaxcxb", false },
        { "/*/a*/*.x", "/q/ab/c.x", true },
        { "/*/a*/*.x", "/q/b/a/c.x", false },
        { "*************************************x", "/var/lock/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false },
        { "*************************************x", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaay",
          false },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        if (text_matches(cases[i].glob, cases[i].text) != cases[i].matches)
            fail_msg("%s and %s", cases[i].glob, cases[i].text);
}

/* ---- to standard error ------------------------------------------------------------------- */

/* The line that text_say() writes, with the length; asserts that errno is not touched. */
static size_t said(char *line, size_t room, const char *one, const char *two)
{
    int ends[2], before = dup(STDERR_FILENO);
    ssize_t length;

    assert_return_code(pipe(ends), errno);
    dup2(ends[1], STDERR_FILENO);
    errno = EXDEV;
    text_say(one, two, NULL);
    dup2(before, STDERR_FILENO);
    assert_int_equal(errno, EXDEV);
    close(before);
    close(ends[1]);
    length = read(ends[0], line, room - 1);
    close(ends[0]);
    assert_true(length >= 0);
    line[length] = '\0';
    return (size_t)length;
}

/* A sentence is one line that begins with "dmutex: ". */
static void test_a_sentence_is_one_line(void **state)
{
    char line[2000];

    (void)state;
    said(line, sizeof line, "a mutex ", "is lost");
    assert_string_equal(line, "dmutex: a mutex is lost\n");
}

/* Text from elsewhere can neither make new lines nor give orders to a terminal. */
static void test_a_sentence_is_cleaned_when_it_has_controls(void **state)
{
    static const char *const pairs[][2] = {
        { "red\033[31m", "red?[31m" },
        { "two\nlines\r", "two?lines?" },
        { "\177\001\t", "???" },
        { "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\x92", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\x92" },
        { "\xc2\x9b"
          "31m",
          "??31m" },
        { "\x9b"
          "31m",
          "?31m" },
        { "\xc3", "?" },
        { "\xe2\x82", "??" },
        { "\xff\xc0\xaf", "???" },
        { "a\u061cb", "a??b" },
        { "\u200e\u200f", "??????" },
        { "\u2028\u2029\u202a\u202b\u202c\u202d\u202e", "?????????????????????" },
        { "\u2066\u2067\u2068\u2069", "????????????" },
        { "\u061b\u2010\u2027", "\u061b\u2010\u2027" },
        { "\u00ad\u200b\u202f\u2065\ufeff", "??????????????" },
    };
    char line[200], wanted[200];

    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        said(line, sizeof line, pairs[i][0], "");
        snprintf(wanted, sizeof wanted, "dmutex: %s\n", pairs[i][1]);
        assert_string_equal(line, wanted);
    }
}

/* A long sentence is cut, and still a line. */
static void test_a_sentence_is_cut_when_it_is_long(void **state)
{
    char line[2000], words[1500];

    (void)state;
    memset(words, 'w', sizeof words);
    words[sizeof words - 1] = '\0';
    assert_within(said(line, sizeof line, words, words), 1000, 1024);
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
}

/* Without standard error nothing happens, and errno is not touched. */
static void test_nothing_happens_when_nobody_listens(void **state)
{
    int before = dup(STDERR_FILENO);

    (void)state;
    close(STDERR_FILENO);
    errno = EXDEV;
    text_say("alone", NULL);
    assert_int_equal(errno, EXDEV);
    dup2(before, STDERR_FILENO);
    close(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_text_is_cut_when_its_buffer_is_full),
        cmocka_unit_test(test_a_number_is_written_in_decimal_and_hex),
        cmocka_unit_test(test_a_number_is_read_when_it_is_all_of_the_text),
        cmocka_unit_test(test_a_basename_is_what_follows_the_last_slash),
        cmocka_unit_test(test_a_glob_matches_as_of_paths),
        cmocka_unit_test(test_a_sentence_is_one_line),
        cmocka_unit_test(test_a_sentence_is_cleaned_when_it_has_controls),
        cmocka_unit_test(test_a_sentence_is_cut_when_it_is_long),
        cmocka_unit_test(test_nothing_happens_when_nobody_listens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

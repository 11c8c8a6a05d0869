/* SPDX-License-Identifier: BSD-2-Clause */
/* base/text: texts from outside are cleaned before people see the texts. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static void assert_cleaned(const char *text, const char *wanted)
{
    char room[200];

    snprintf(room, sizeof room, "%s", text);
    dm_text_clean(room);
    assert_string_equal(room, wanted);
}

/* An errno value always has a text. */
static void test_error_of_libc_is_told_in_english(void **state)
{
    (void)state;
    assert_string_equal(dm_text_error(ENOENT), "No such file or directory");
    assert_string_equal(dm_text_error(-1), "an unknown error");
}

/* Printable text of any language stays unchanged. */
static void test_clean_keeps_a_text_when_it_is_printable(void **state)
{
    (void)state;
    assert_cleaned("", "");
    assert_cleaned("plain ~ text!", "plain ~ text!");
    assert_cleaned("Zürich 東京 🔒", "Zürich 東京 🔒");
}

/* Control characters become '?': line ends would make a second line of a log, ESC would command a terminal. */
static void test_clean_removes_controls_when_a_text_has_any(void **state)
{
    (void)state;
    assert_cleaned("a\nb\rc\td", "a?b?c?d");
    assert_cleaned("\x1b[31mred\x1b]0;title\x07", "?[31mred?]0;title?");
    assert_cleaned("\x7f", "?");
    assert_cleaned("\xc2\x9b"
                   "31m",
                   "??31m"); /* the control CSI, as UTF-8 */
    assert_cleaned("\xe2\x80\xae"
                   "abc\xe2\x80\xa8",
                   "???abc???"); /* writing from right to left; a line separator */
}

/* Each mark of direction of Unicode becomes '?': ALM, LRM, RLM, the embeddings and overrides, the isolates. */
static void test_clean_removes_marks_of_direction_when_a_text_has_any(void **state)
{
    static const char *const marks[] = { "\u061c", "\u200e", "\u200f", "\u202a", "\u202b", "\u202c",
                                         "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069" };

    (void)state;
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        assert_cleaned(marks[i], strlen(marks[i]) == 2 ? "??" : "???");
}

/* Characters that take no room, and blanks that look like others, become '?': two texts must not look alike. */
static void test_clean_removes_invisible_characters_when_a_text_has_any(void **state)
{
    static const char *const unseen[] = { "\u00a0", "\u00ad", "\u034f", "\u115f",     "\u180e",    "\u2003", "\u200b",
                                          "\u200d", "\u202f", "\u2060", "\u3000",     "\u3164",    "\ufe0f", "\ufeff",
                                          "\uffa0", "\ufff8", "\u17b4", "\U0001d173", "\U000e0041" };

    (void)state;
    for (size_t i = 0; i < sizeof unseen / sizeof unseen[0]; i++) {
        static const char *const marks[] = { "", "", "??", "???", "????" };

        assert_cleaned(unseen[i], marks[strlen(unseen[i])]);
    }
}

/* Bytes outside UTF-8 become '?': cut, longer than needed, surrogates, beyond the last character. */
static void test_clean_removes_bytes_when_they_are_not_utf8(void **state)
{
    (void)state;
    assert_cleaned("\xff\xfe\x80", "???");
    assert_cleaned("caf\xc3", "caf?");
    assert_cleaned("\xe6\x9d", "??");
    assert_cleaned("\xc0\xaf\xe0\x80\xaf", "?????");
    assert_cleaned("\xed\xa0\x80", "???");
    assert_cleaned("\xf4\x90\x80\x80\xf5", "?????");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_of_libc_is_told_in_english),
        cmocka_unit_test(test_clean_keeps_a_text_when_it_is_printable),
        cmocka_unit_test(test_clean_removes_controls_when_a_text_has_any),
        cmocka_unit_test(test_clean_removes_marks_of_direction_when_a_text_has_any),
        cmocka_unit_test(test_clean_removes_invisible_characters_when_a_text_has_any),
        cmocka_unit_test(test_clean_removes_bytes_when_they_are_not_utf8),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* stores/etcd/json: what etcd says, and what is no JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "random.h"
#include "stores/etcd/json.h"

static const char answer[] =
    "{\"header\":{\"revision\":\"9223372036854775807\",\"raft_term\":\"2\"}, \"succeeded\" : true,\n"
    "\"responses\":[{\"response_range\":{\"kvs\":[{\"key\":\"YQ==\",\"value\":\"YmM=\"}],\"count\":\"1\"}},"
    "{\"response_txn\":{\"succeeded\":false}},{},[],\"text\",-12.5e3,null]}";

/* Members, elements, numbers in strings and out of them, and what is missing */
static void test_json_is_read(void **state)
{
    struct dm_json whole = dm_json_check(answer), element = dm_json_first(dm_json_get(whole, "responses"));
    struct dm_json kv = dm_json_first(dm_json_get(dm_json_get(element, "response_range"), "kvs"));
    size_t size = 0;
    int count = 1;

    (void)state;
    assert_non_null(whole.at);
    assert_true(dm_json_int64(dm_json_get(dm_json_get(whole, "header"), "revision")) == INT64_MAX);
    assert_true(dm_json_is_true(dm_json_get(whole, "succeeded")));
    assert_memory_equal(dm_json_raw(dm_json_get(kv, "value"), &size), "YmM=", 4);
    assert_int_equal(size, 4);
    assert_null(dm_json_next(kv).at);
    while ((element = dm_json_next(element)).at)
        count++;
    assert_int_equal(count, 7);
    assert_null(dm_json_get(whole, "succeede").at);
    assert_null(dm_json_get(whole, "raft_term").at);
    assert_null(dm_json_get(dm_json_get(whole, "nothing"), "more").at);
    assert_null(dm_json_first(dm_json_get(whole, "header")).at);
    assert_int_equal(dm_json_int64(dm_json_get(whole, "header")), 0);
    assert_false(dm_json_is_true(dm_json_get(whole, "header")));
    assert_null(dm_json_raw(dm_json_get(whole, "succeeded"), &size));
}

/* Escapes are resolved as far as they are ASCII, and a text that is too long is cut */
static void test_text_is_copied_as_far_as_there_is_room(void **state)
{
    struct dm_json text = dm_json_check("\"a\\\"b\\\\\\u0041\\n\\u00e9\\ud83dc\\/\"");
    char copy[32];

    (void)state;
    dm_json_text(text, copy, sizeof copy);
    assert_string_equal(copy, "a\"b\\A ??c/");
    dm_json_text(text, copy, 4);
    assert_string_equal(copy, "a\"b");
    dm_json_text(text, copy, 1);
    assert_string_equal(copy, "");
    dm_json_text(dm_json_check("12"), copy, sizeof copy);
    assert_string_equal(copy, "");
}

/* Numbers that are too long end at the largest */
static void test_long_numbers_are_no_others(void **state)
{
    (void)state;
    assert_true(dm_json_int64(dm_json_check("\"99999999999999999999999999999\"")) == INT64_MAX);
    assert_true(dm_json_int64(dm_json_check("-99999999999999999999999999999")) == INT64_MIN);
    assert_int_equal(dm_json_int64(dm_json_check("\"x\"")), 0);
    assert_int_equal(dm_json_int64(dm_json_check("\"\"")), 0);
}

/* Each beginning of an answer, and other things, are no JSON */
static void test_what_is_no_json_is_refused(void **state)
{
    static const char *const bad[] = { "",           " ",        "{",    "}",        "{\"a\"}", "{\"a\":}",
                                       "{\"a\":1,}", "{a:1}",    "[1,]", "[1 2]",    "\"",      "\"\\",
                                       "\"\\\"",     "\"a\nb\"", "nul",  "truetrue", "1 2",     "{} {}",
                                       "{\"a\" 1}",  "[}",       "{]",   "'a'",      "\xff" };
    char copy[sizeof answer];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (dm_json_check(bad[i]).at)
            fail_msg("%s", bad[i]);
    }
    for (size_t length = 0; length < sizeof answer - 1; length++) {
        memcpy(copy, answer, length);
        copy[length] = '\0';
        assert_null(dm_json_check(copy).at);
    }
}

/* Sixteen lists inside each other, and not more, however many there are: the stack is small */
static void test_depth_is_bounded(void **state)
{
    enum { MANY = 1000000 };
    char *text = malloc(MANY + 1);

    (void)state;
    assert_non_null(text);
    for (int depth = 1; depth <= 20; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = '\0';
        assert_int_equal(dm_json_check(text).at != NULL, depth <= 16);
    }
    memset(text, '[', MANY);
    text[MANY] = '\0';
    assert_null(dm_json_check(text).at);
    free(text);
}

/* Uses all that can be found in a text. */
static void walk(struct dm_json value, int depth)
{
    char text[8];
    size_t size;

    dm_json_text(value, text, sizeof text);
    dm_json_raw(value, &size);
    dm_json_int64(value);
    dm_json_is_true(value);
    if (depth > 6)
        return;
    walk(dm_json_get(value, "responses"), depth + 1);
    walk(dm_json_get(value, "response_range"), depth + 1);
    walk(dm_json_get(value, "kvs"), depth + 1);
    for (struct dm_json element = dm_json_first(value); element.at; element = dm_json_next(element))
        walk(element, depth + 1);
}

/* An answer with bytes that somebody has changed is no JSON, or one in which nothing fails: for sanitizers */
static void test_changed_bytes_do_no_harm(void **state)
{
    char *copy = malloc(sizeof answer);

    (void)state;
    assert_non_null(copy);
    for (int i = 0; i < rounds(20000); i++) {
        struct dm_json whole;

        memcpy(copy, answer, sizeof answer);
        for (int j = 0; j < 3; j++)
            copy[random_below(sizeof answer - 1)] = "{}[]\",:\\u0t"[random_below(11)];
        whole = dm_json_check(copy);
        if (whole.at)
            walk(whole, 0);
    }
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_is_read),
        cmocka_unit_test(test_text_is_copied_as_far_as_there_is_room),
        cmocka_unit_test(test_long_numbers_are_no_others),
        cmocka_unit_test(test_what_is_no_json_is_refused),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_changed_bytes_do_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

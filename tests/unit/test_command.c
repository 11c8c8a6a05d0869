/* SPDX-License-Identifier: BSD-2-Clause */
/* link/command: commands are bytes with lengths, so no argument can become another argument. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "link/command.h"
#include "random.h"

static void assert_bytes(const struct dm_args *args, const char *bytes, size_t length, int ahead)
{
    struct dm_command command = dm_args_format(args);

    assert_non_null(command.bytes);
    assert_int_equal(command.ahead, ahead);
    assert_int_equal(command.length, length);
    assert_memory_equal(command.bytes, bytes, length);
    dm_command_free(&command);
    assert_null(command.bytes);
}

/* Texts and numbers go out in order, each with a length. */
static void test_command_is_an_array_of_its_arguments_when_formatted(void **state)
{
    static const char bytes[] = "*3\r\n$4\r\nPING\r\n$0\r\n\r\n$2\r\n42\r\n";
    struct dm_args args;

    (void)state;
    assert_int_equal(dm_args_init(&args, 3, 1), 0);
    dm_args_text(&args, "PING");
    dm_args_text(&args, "");
    dm_args_number(&args, 42);
    assert_bytes(&args, bytes, sizeof bytes - 1, 0);
    dm_args_free(&args);
}

/* A command without effect comes first, and its reply is counted as one that nobody wants. */
static void test_command_comes_after_another_when_its_news_go_first(void **state)
{
    static const char plain[] = "*1\r\n$4\r\nPING\r\n";
    static const char behind_id[] = "*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n*1\r\n$4\r\nPING\r\n";
    static const char behind_asking[] = "*1\r\n$6\r\nASKING\r\n*1\r\n$4\r\nPING\r\n";
    struct dm_args args;

    (void)state;
    assert_int_equal(dm_args_init(&args, 1, 0), 0);
    dm_args_text(&args, "PING");
    assert_bytes(&args, plain, sizeof plain - 1, 0);
    args.is_news_first = true;
    assert_bytes(&args, behind_id, sizeof behind_id - 1, 1);
    args.is_asking = true; /* ASKING only applies to the next command */
    assert_bytes(&args, behind_asking, sizeof behind_asking - 1, 1);
    dm_args_free(&args);
}

/* Line ends and NULs inside an argument stay inside the argument. */
static void test_command_keeps_arguments_apart_when_they_look_like_commands(void **state)
{
    static const char evil[] = "x\r\n*1\r\n$8\r\nFLUSHALL\r\n\0y";
    static const char bytes[] = "*2\r\n$3\r\nGET\r\n$23\r\nx\r\n*1\r\n$8\r\nFLUSHALL\r\n\0y\r\n";
    struct dm_args args;

    (void)state;
    assert_int_equal(dm_args_init(&args, 2, 0), 0);
    dm_args_text(&args, "GET");
    dm_args_bytes(&args, evil, sizeof evil - 1);
    assert_bytes(&args, bytes, sizeof bytes - 1, 0);
    dm_args_free(&args);
}

/* The greatest number is written in full. */
static void test_command_writes_numbers_in_full_when_they_are_the_greatest(void **state)
{
    static const char bytes[] = "*2\r\n$20\r\n18446744073709551615\r\n$1\r\n0\r\n";
    struct dm_args args;

    (void)state;
    assert_int_equal(dm_args_init(&args, 2, 2), 0);
    dm_args_number(&args, UINT64_MAX);
    dm_args_number(&args, 0);
    assert_bytes(&args, bytes, sizeof bytes - 1, 0);
    dm_args_free(&args);
}

/* A command is whole with as many arguments as a batch of renewals, and more. */
static void test_command_is_whole_when_it_has_many_arguments(void **state)
{
    enum { MANY = 5000 };
    struct dm_args args;
    struct dm_command command;
    size_t at;

    (void)state;
    assert_int_equal(dm_args_init(&args, MANY, MANY), 0);
    for (unsigned i = 0; i < MANY; i++)
        dm_args_number(&args, i);
    command = dm_args_format(&args);
    assert_memory_equal(command.bytes, "*5000\r\n", 7);
    at = 7;
    for (int i = 0; i < MANY; i++) {
        char number[DM_ARG_DIGITS], expected[2 * DM_ARG_DIGITS];
        int digits = snprintf(number, sizeof number, "%d", i);
        int length = snprintf(expected, sizeof expected, "$%d\r\n%s\r\n", digits, number);

        assert_memory_equal(command.bytes + at, expected, (size_t)length);
        at += (size_t)length;
    }
    assert_int_equal(at, command.length);
    dm_command_free(&command);
    dm_args_free(&args);
}

/* Random bytes go out unchanged, delimited only by their length. */
static void test_command_can_be_read_back_when_its_arguments_are_random(void **state)
{
    int commands = rounds(5000);

    (void)state;
    while (commands-- > 0) {
        char text[64], head[32];
        unsigned length = random_below(60);
        struct dm_args args;
        struct dm_command command;
        int head_length = snprintf(head, sizeof head, "*1\r\n$%u\r\n", length);

        random_bytes(text, length, 'x');
        assert_int_equal(dm_args_init(&args, 1, 0), 0);
        dm_args_bytes(&args, text, length);
        command = dm_args_format(&args);
        assert_int_equal(command.length, (size_t)head_length + length + 2);
        assert_memory_equal(command.bytes, head, (size_t)head_length);
        assert_memory_equal(command.bytes + head_length, text, length);
        dm_command_free(&command);
        dm_args_free(&args);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command_is_an_array_of_its_arguments_when_formatted),
        cmocka_unit_test(test_command_comes_after_another_when_its_news_go_first),
        cmocka_unit_test(test_command_keeps_arguments_apart_when_they_look_like_commands),
        cmocka_unit_test(test_command_writes_numbers_in_full_when_they_are_the_greatest),
        cmocka_unit_test(test_command_is_whole_when_it_has_many_arguments),
        cmocka_unit_test(test_command_can_be_read_back_when_its_arguments_are_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

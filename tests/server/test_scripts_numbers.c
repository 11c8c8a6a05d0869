/* SPDX-License-Identifier: BSD-2-Clause */
/* The Lua scripts and the library have some numbers in common, and each side has them written down once. */
#include <stdlib.h>
#include <string.h>

#include "core/hold.h"
#include "scripts.h"
#include "store/store.h"
#include "stores/redis/wire/keys.h"

/* What the build reads as a constant, and what Lua reads so. */
#define CONSTANT "--@constant "
#define LOCAL "local       "

/* lua/_numbers.lua, as a text that Lua runs; to be freed. */
static char *read_numbers(void)
{
    const char *folder = getenv("srcdir");
    FILE *file = fopen(scripts_text("%s/libdmutex/stores/redis/lua/_numbers.lua", folder ? folder : "."), "r");
    size_t length;
    char *text;

    assert_non_null(file);
    text = calloc(1, 16384);
    assert_non_null(text);
    length = fread(text, 1, 16383, file);
    assert_true(feof(file) && length > 0);
    fclose(file);
    for (char *at = strstr(text, CONSTANT); at; at = strstr(at, CONSTANT))
        memcpy(at, LOCAL, strlen(LOCAL));
    return text;
}

/* A number that differs would be a token refused, a time off by years, or a waiter left out, and no error. */
static void test_a_number_is_the_same_when_scripts_and_library_know_it(void **state)
{
    static const struct {
        const char *name;
        long long value;
    } numbers[] = {
        { "epoch_us", DM_TOKEN_EPOCH_US },     { "epoch_s * 1000000", DM_TOKEN_EPOCH_US },
        { "token_limit", DM_TOKEN_LIMIT - 1 }, /* readable for the client */
        { "signal_limit", DM_SIGNAL_MOST },    { "longest_lease_ms", DM_LEASE_MAX_MS },
        { "mutex_keys", DM_KEY_COUNT },        { "condition_keys", DM_COND_KEY_COUNT },
    };
    char *text = read_numbers();

    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const char *script = scripts_text("%sreturn string.format('%%.0f', %s)", text, numbers[i].name);

        assert_string_equal(command("EVAL %s 0", script), scripts_text("%lld", numbers[i].value));
    }
    free(text);
}

/* The last token that a script reads is given, and the client takes it; no other token can follow. */
static void test_a_token_is_given_when_it_is_the_last_below_the_limit(void **state)
{
    struct who a = who("a");

    (void)state;
    a.seen = scripts_text("%lld", (long long)DM_TOKEN_LIMIT - 3);
    assert_string_equal(line_of(acquire(&a, TRY), 1), scripts_text("%lld", (long long)DM_TOKEN_LIMIT - 2));
    release(&a, UNLOCKED);
    a.attempt++;
    a.seen = scripts_text("%lld", (long long)DM_TOKEN_LIMIT - 2);
    assert_answer(acquire(&a, TRY), "error");
}

/* The time of a grant, as the server reports it, is the token and the time from which tokens count. */
static void test_a_token_has_the_time_of_its_grant(void **state)
{
    struct who a = who("a");
    long long token;

    (void)state;
    token = number_of(acquire(&a, TRY), 1);
    assert_int_equal(number_of(info("x"), 8) - token, DM_TOKEN_EPOCH_US);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(test_a_number_is_the_same_when_scripts_and_library_know_it),
        SCRIPT_TEST(test_a_token_is_given_when_it_is_the_last_below_the_limit),
        SCRIPT_TEST(test_a_token_has_the_time_of_its_grant),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, scripts_group_setup, scripts_group_teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Names as keys of a register store, and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "registers/keys.h"

static void assert_both_ways(const char *name, const char *key)
{
    char written[DM_REG_KEY_MAX + 1], read[DM_REG_NAME_ROOM];

    dm_reg_key_write(name, written);
    assert_string_equal(written, key);
    assert_true(dm_reg_key_read(key, read));
    assert_string_equal(read, name);
}

/* Mutexes and conditions, with and without a name. */
static void test_keys_are_read_as_they_were_written(void **state)
{
    (void)state;
    assert_both_ways("njobs/import", "n/jobs/import");
    assert_both_ways("njobs", "n/jobs");
    assert_both_ways("na b%c+\xc3\xa4", "n/a%20b%25c%2B%C3%A4");
    assert_both_ways("a~0123456789abcdef", "a/~0123456789abcdef");
    assert_both_ways("cjobs/done", "c/jobs/done");
    assert_both_ways("d~01 njobs", "d/~01%20njobs");
}

/* A key that we would have written otherwise may be anybody's. */
static void test_similar_keys_are_not_ours(void **state)
{
    static const char *const keys[] = { "",       "n",      "n/",     "njobs", "x/jobs",   "n/a%2",
                                        "n/a%2b", "n/a%41", "n/a%00", "n/a+b", "s/ab.1/2", "m" };
    char name[DM_REG_NAME_ROOM];

    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        assert_false(dm_reg_key_read(keys[i], name));
        assert_string_equal(name, "");
    }
}

/* Of a name whose escapes leave no room the key has the beginning; two such names have different keys. */
static void test_key_of_a_long_name_is_cut_and_differs(void **state)
{
    char one[DMUTEX_NAME_MAX_NP + 2] = "n", other[DMUTEX_NAME_MAX_NP + 2];
    char key[DM_REG_KEY_MAX + 1], other_key[DM_REG_KEY_MAX + 1], name[DM_REG_NAME_ROOM];

    (void)state;
    memset(one + 1, ' ', DMUTEX_NAME_MAX_NP);
    memcpy(other, one, sizeof one);
    other[DMUTEX_NAME_MAX_NP] = '!';
    dm_reg_key_write(one, key);
    dm_reg_key_write(other, other_key);
    assert_int_equal(strlen(key), DM_REG_KEY_MAX);
    assert_int_equal(strlen(other_key), DM_REG_KEY_MAX);
    assert_string_not_equal(key, other_key);
    assert_false(dm_reg_key_read(key, name));
    assert_memory_equal(name, one, strlen(name));
    assert_int_equal(strlen(name), 1 + (DM_REG_KEY_MAX - 36) / 3);
}

/* Each byte that a name may have comes back. */
static void test_all_bytes_come_back(void **state)
{
    char name[66] = "n", key[DM_REG_KEY_MAX + 1], read[DM_REG_NAME_ROOM];

    (void)state;
    for (int first = 1; first < 256; first += 64) {
        int length = 1;

        for (int byte = first; byte < first + 64 && byte < 256; byte++)
            name[length++] = (char)byte;
        name[length] = '\0';
        dm_reg_key_write(name, key);
        assert_true(dm_reg_key_read(key, read));
        assert_string_equal(read, name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_are_read_as_they_were_written),
        cmocka_unit_test(test_similar_keys_are_not_ours),
        cmocka_unit_test(test_key_of_a_long_name_is_cut_and_differs),
        cmocka_unit_test(test_all_bytes_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

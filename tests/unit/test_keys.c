/* SPDX-License-Identifier: BSD-2-Clause */
/* stores/redis/wire/keys: every name, of any bytes, has separate keys, all in one slot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "random.h"
#include "stores/redis/wire/keys.h"
#include "stores/redis/wire/slots.h"

#define NAME_MAX_BYTES 200

static const struct dm_naming one_server = { "dmutex", "dmutex:inbox:" };
static const struct dm_naming in_cluster = { "dmutex", NULL };

static void assert_keys(const char *name, int is_anonymous, const char *lock, const char *waiter)
{
    struct dm_place *keys = dm_keys_new(&one_server, name, is_anonymous);

    assert_non_null(keys);
    assert_string_equal(keys->text[DM_KEY_LOCK], lock);
    assert_string_equal(keys->text[DM_KEY_WAITER], waiter);
    free(keys);
}

/* The keys are as in doc/design/protocol.md. */
static void test_keys_are_as_documented_when_the_name_is_plain(void **state)
{
    struct dm_place *keys = dm_keys_new(&one_server, "billing/ledger", 0);

    (void)state;
    assert_string_equal(keys->text[DM_KEY_LOCK], "dmutex:{billing}:lock:ledger");
    assert_string_equal(keys->text[DM_KEY_STATE], "dmutex:{billing}:state:ledger");
    assert_string_equal(keys->text[DM_KEY_QUEUE], "dmutex:{billing}:queue:ledger");
    assert_string_equal(keys->text[DM_KEY_WAITER], "dmutex:{billing}:waiter:ledger");
    for (int key = 0; key < DM_KEY_COUNT; key++)
        assert_int_equal(keys->length[key], strlen(keys->text[key]));
    free(keys);
}

/* A name without '/' is a group with the empty leaf; the group ends at the first '/'. */
static void test_keys_split_the_name_at_its_first_slash(void **state)
{
    (void)state;
    assert_keys("jobs", 0, "dmutex:{jobs}:lock:", "dmutex:{jobs}:waiter:");
    assert_keys("a/b/c", 0, "dmutex:{a}:lock:b%2Fc", "dmutex:{a}:waiter:b%2Fc");
}

/* Braces, colons, line ends, blanks and bytes beyond ASCII are written as %XX. */
static void test_keys_encode_bytes_when_they_are_not_plain(void **state)
{
    (void)state;
    assert_keys("{x}", 0, "dmutex:{%7Bx%7D}:lock:", "dmutex:{%7Bx%7D}:waiter:");
    assert_keys("a:b/c d", 0, "dmutex:{a%3Ab}:lock:c%20d", "dmutex:{a%3Ab}:waiter:c%20d");
    assert_keys("n\r\n/%41", 0, "dmutex:{n%0D%0A}:lock:%2541", "dmutex:{n%0D%0A}:waiter:%2541");
    assert_keys("\xc3\xa9", 0, "dmutex:{%C3%A9}:lock:", "dmutex:{%C3%A9}:waiter:");
    assert_keys("~x", 0, "dmutex:{%7Ex}:lock:", "dmutex:{%7Ex}:waiter:");
}

/* No name has the keys of an anonymous mutex. */
static void test_keys_of_anonymous_mutexes_are_no_names_keys(void **state)
{
    (void)state;
    assert_keys("~0123abcd", 1, "dmutex:{~0123abcd}:lock:", "dmutex:{~0123abcd}:waiter:");
    assert_keys("~0123abcd", 0, "dmutex:{%7E0123abcd}:lock:", "dmutex:{%7E0123abcd}:waiter:");
}

/* The keys of the longest name fit, also if each byte takes three characters. */
static void test_keys_fit_when_the_name_is_the_longest(void **state)
{
    char name[NAME_MAX_BYTES + 1];
    struct dm_place *keys;

    (void)state;
    memset(name, '\n', sizeof name - 1);
    name[NAME_MAX_BYTES] = '\0';
    name[100] = '/';
    keys = dm_keys_new(&one_server, name, 0);
    assert_int_equal(keys->length[DM_KEY_WAITER], strlen("dmutex:{}:waiter:") + 3 * (NAME_MAX_BYTES - 1));
    free(keys);
}

/* ---- conditions -------------------------------------------------------------------------- */

static void assert_condition_keys(const char *id, const char *name, int is_anonymous, const char *cond,
                                  const char *sleeper)
{
    struct dm_place *keys = dm_keys_new_condition(&one_server, id, name, is_anonymous);

    assert_non_null(keys);
    assert_string_equal(keys->text[DM_KEY_COND], cond);
    assert_string_equal(keys->text[DM_KEY_SLEEPER], sleeper);
    for (int key = 0; key < DM_COND_KEY_COUNT; key++)
        assert_int_equal(keys->length[key], strlen(keys->text[key]));
    free(keys);
}

/* The keys of a named condition have separate kinds, as in doc/design/conditions.md. */
static void test_keys_of_a_condition_are_as_documented_when_it_has_a_name(void **state)
{
    (void)state;
    assert_condition_keys(NULL, "billing/filled", 0, "dmutex:{billing}:cond:filled", "dmutex:{billing}:sleeper:filled");
    assert_condition_keys(NULL, "jobs", 0, "dmutex:{jobs}:cond:", "dmutex:{jobs}:sleeper:");
    assert_condition_keys(NULL, "a/b/c{}", 0, "dmutex:{a}:cond:b%2Fc%7B%7D", "dmutex:{a}:sleeper:b%2Fc%7B%7D");
}

/* The keys of an anonymous condition have the id as leaf, in the mutex's group; the mutex's leaf does not matter. */
static void test_keys_of_a_condition_are_in_its_mutexes_group_when_it_is_anonymous(void **state)
{
    (void)state;
    assert_condition_keys("~12ab", "billing/ledger", 0, "dmutex:{billing}:cond:~12ab",
                          "dmutex:{billing}:sleeper:~12ab");
    assert_condition_keys("~12ab", "billing", 0, "dmutex:{billing}:cond:~12ab", "dmutex:{billing}:sleeper:~12ab");
    assert_condition_keys("~12ab", "a b", 0, "dmutex:{a%20b}:cond:~12ab", "dmutex:{a%20b}:sleeper:~12ab");
    assert_condition_keys("~12ab", "~34cd", 1, "dmutex:{~34cd}:cond:~12ab", "dmutex:{~34cd}:sleeper:~12ab");
}

/* No named condition has the keys of an anonymous condition, and no named mutex has an anonymous mutex's group. */
static void test_keys_of_anonymous_conditions_are_no_names_keys(void **state)
{
    (void)state;
    assert_condition_keys(NULL, "billing/~12ab", 0, "dmutex:{billing}:cond:%7E12ab",
                          "dmutex:{billing}:sleeper:%7E12ab");
    assert_condition_keys("~12ab", "~34cd", 0, "dmutex:{%7E34cd}:cond:~12ab", "dmutex:{%7E34cd}:sleeper:~12ab");
}

/* All keys of a condition and of the condition's mutex have the same tag, and so one slot. */
static void test_keys_of_a_condition_have_the_tag_of_its_mutex(void **state)
{
    static const char *const names[] = { "g/leaf", "g", "odd {}%/leaf", "~34cd" };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int is_anonymous = names[i][0] == '~';
        struct dm_place *mutex = dm_keys_new(&one_server, names[i], is_anonymous);
        struct dm_place *condition = dm_keys_new_condition(&one_server, "~1", names[i], is_anonymous);
        size_t tag = strcspn(mutex->text[DM_KEY_LOCK], "}") + 1;

        for (int key = 0; key < DM_COND_KEY_COUNT; key++)
            assert_memory_equal(condition->text[key], mutex->text[DM_KEY_LOCK], tag);
        free(mutex);
        free(condition);
    }
}

/* The condition's keys for the longest name fit, also if each byte takes three characters, with and without an id. */
static void test_keys_of_a_condition_fit_when_the_name_is_the_longest(void **state)
{
    static const char id[] = "~0123456789abcdef0123456789abcdef-1-4294967295";
    char name[NAME_MAX_BYTES + 1];
    struct dm_place *keys;

    (void)state;
    memset(name, '\n', sizeof name - 1);
    name[NAME_MAX_BYTES] = '\0';
    keys = dm_keys_new_condition(&one_server, id, name, 0);
    assert_int_equal(keys->length[DM_KEY_SLEEPER], strlen("dmutex:{}:sleeper:") + 3 * NAME_MAX_BYTES + strlen(id));
    free(keys);
    name[100] = '/';
    keys = dm_keys_new_condition(&one_server, NULL, name, 0);
    assert_int_equal(keys->length[DM_KEY_SLEEPER], strlen("dmutex:{}:sleeper:") + 3 * (NAME_MAX_BYTES - 1));
    free(keys);
}

/* ---- random names ------------------------------------------------------------------------ */

static int unhex(char digit)
{
    return digit <= '9' ? digit - '0' : digit - 'A' + 10;
}

static size_t decode(char *to, const char *from, const char *end)
{
    char *begin = to;

    while (from < end) {
        if (*from == '%') {
            *to++ = (char)(unhex(from[1]) * 16 + unhex(from[2]));
            from += 3;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
    return (size_t)(to - begin);
}

/* Reads the name back from a key: a key that can be read back belongs to one name only. */
static void read_back(char *name, const char *key)
{
    const char *group = strchr(key, '{') + 1, *group_end = strchr(key, '}');
    const char *leaf = strrchr(key, ':') + 1;
    size_t length = decode(name, group, group_end);

    if (*leaf) {
        name[length++] = '/';
        decode(name + length, leaf, leaf + strlen(leaf));
    }
}

/* Makes a name of random bytes, many from the characters of keys. */
static void random_name(char *name)
{
    static const char tricky[] = "%/:{}~27F.aA\n";
    unsigned length = 1 + random_below(random_below(10) ? 12 : NAME_MAX_BYTES);

    random_bytes(name, length, '\0');
    for (unsigned i = 0; i < length; i++) {
        if (random_below(3))
            name[i] = tricky[random_below(sizeof tricky - 1)];
    }
}

static bool has_empty_part(const char *name)
{
    const char *slash = strchr(name, '/');

    return slash && (slash == name || !slash[1]);
}

/* Asserts that the name can be read back from each key; frees the keys. */
static void assert_read_back(const char *name, struct dm_place *keys, int count)
{
    static const char plain[] = "{}:%._-"
                                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    char back[NAME_MAX_BYTES + 2];

    for (int key = 0; key < count; key++) {
        const char *text = keys->text[key];

        read_back(back, text);
        assert_string_equal(back, name);
        assert_ptr_equal(strchr(text, '{'), strrchr(text, '{'));
        assert_ptr_equal(strchr(text, '}'), strrchr(text, '}'));
        assert_int_equal(strspn(text, plain), keys->length[key]);
    }
    free(keys);
}

/* Injective: the name can be read back from each key, and each key has one tag only. */
static void test_keys_can_be_read_back_when_the_name_is_random(void **state)
{
    char name[NAME_MAX_BYTES + 1];
    int names = rounds(100000);

    (void)state;
    while (names-- > 0) {
        random_name(name);
        if (has_empty_part(name)) /* not a name */
            continue;
        assert_read_back(name, dm_keys_new(&one_server, name, 0), DM_KEY_COUNT);
        assert_read_back(name, dm_keys_new_condition(&one_server, NULL, name, 0), DM_COND_KEY_COUNT);
    }
}

/* All processes have one inbox each on one server, and the text of its beginning is not copied. */
static void test_keys_have_the_inbox_of_all_names_when_there_is_one_server(void **state)
{
    struct dm_place *mutex = dm_keys_new(&one_server, "billing/ledger", 0);
    struct dm_place *condition = dm_keys_new_condition(&one_server, "~1", "~0a", 1);

    (void)state;
    assert_ptr_equal(mutex->inbox, one_server.inbox);
    assert_ptr_equal(condition->inbox, one_server.inbox);
    assert_int_equal(mutex->slot, 0);
    free(mutex);
    free(condition);
}

static void assert_inbox(struct dm_place *place, const char *inbox, unsigned slot)
{
    assert_string_equal(place->inbox, inbox);
    assert_int_equal(place->slot, slot);
    assert_int_equal(dm_slot_of(place->inbox, strlen(place->inbox)), slot);
    for (int key = 0; key < DM_COND_KEY_COUNT; key++) {
        assert_int_equal(strlen(place->text[key]), place->length[key]);
        assert_int_equal(dm_slot_of(place->text[key], place->length[key]), slot);
    }
    free(place);
}

/* Keys and inboxes of a group are in one slot of a Cluster; 12182 is the slot of "foo" in the servers' own manual. */
static void test_keys_have_an_inbox_in_their_slot_when_there_is_a_cluster(void **state)
{
    char name[NAME_MAX_BYTES + 1], inbox[3 * NAME_MAX_BYTES + 20] = "dmutex:{";
    unsigned slot;

    (void)state;
    assert_inbox(dm_keys_new(&in_cluster, "foo/x", 0), "dmutex:{foo}:inbox:", 12182);
    assert_inbox(dm_keys_new_condition(&in_cluster, NULL, "foo/y", 0), "dmutex:{foo}:inbox:", 12182);
    assert_inbox(dm_keys_new_condition(&in_cluster, "~1", "foo/x", 0), "dmutex:{foo}:inbox:", 12182);
    slot = dm_slot_of("~0a", 3);
    assert_inbox(dm_keys_new(&in_cluster, "~0a", 1), "dmutex:{~0a}:inbox:", slot);
    assert_inbox(dm_keys_new_condition(&in_cluster, "~1", "~0a", 1), "dmutex:{~0a}:inbox:", slot);
    memset(name, '\xff', NAME_MAX_BYTES); /* the longest keys: each byte becomes three */
    name[NAME_MAX_BYTES] = '\0';
    for (int i = 0; i < NAME_MAX_BYTES; i++)
        strcat(inbox, "%FF");
    strcat(inbox, "}:inbox:");
    slot = dm_slot_of(inbox, strlen(inbox));
    assert_inbox(dm_keys_new(&in_cluster, name, 0), inbox, slot);
    assert_inbox(dm_keys_new_condition(&in_cluster, NULL, name, 0), inbox, slot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_are_as_documented_when_the_name_is_plain),
        cmocka_unit_test(test_keys_split_the_name_at_its_first_slash),
        cmocka_unit_test(test_keys_encode_bytes_when_they_are_not_plain),
        cmocka_unit_test(test_keys_of_anonymous_mutexes_are_no_names_keys),
        cmocka_unit_test(test_keys_fit_when_the_name_is_the_longest),
        cmocka_unit_test(test_keys_of_a_condition_are_as_documented_when_it_has_a_name),
        cmocka_unit_test(test_keys_of_a_condition_are_in_its_mutexes_group_when_it_is_anonymous),
        cmocka_unit_test(test_keys_of_anonymous_conditions_are_no_names_keys),
        cmocka_unit_test(test_keys_of_a_condition_have_the_tag_of_its_mutex),
        cmocka_unit_test(test_keys_of_a_condition_fit_when_the_name_is_the_longest),
        cmocka_unit_test(test_keys_can_be_read_back_when_the_name_is_random),
        cmocka_unit_test(test_keys_have_the_inbox_of_all_names_when_there_is_one_server),
        cmocka_unit_test(test_keys_have_an_inbox_in_their_slot_when_there_is_a_cluster),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

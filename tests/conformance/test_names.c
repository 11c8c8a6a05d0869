/* SPDX-License-Identifier: BSD-2-Clause */
/* Names: which names are possible, and that two different names are two mutexes. */
#include <string.h>

#include "../lib/testlib.h"

#define REPEAT_4(text) text text text text
#define REPEAT_50(text) REPEAT_4(REPEAT_4(text text text)) text text

/* Each name differs from every other, some by characters that an encoding could confuse. */
static const char *const names[] = {
    "a",
    "A",
    "b",
    "a/b",
    "a/B",
    "b/a",
    "a/a",
    "a/b/c",
    "a/b/",
    "a//b",
    "a:b",
    "a/:b",
    "a/b:c",
    "a}",
    "{a",
    "{a}",
    "{a}/b",
    "a}/b",
    "a/{b}",
    "a}:lock:b",
    "a}:state:b",
    "a/}:lock:b",
    "a%2Fb",
    "a%2fb",
    "a/%62",
    "%61",
    "a%3Ab",
    "a%7D",
    "a/b%2Fc",
    "%25%",
    "%0A",
    "%FF",
    "a%20b",
    "%",
    "%%",
    "a%",
    "a%/b",
    "%00",
    "%2525",
    "%25",
    "a b",
    "a ",
    " a",
    " ",
    "a\tb",
    "a\nb",
    "a\r\nb",
    "a\n",
    "\n",
    "\r",
    "a\\",
    "a\\nb",
    "\x01",
    "\x7f",
    "\x80",
    "\xff",
    "\xff\xfe",
    "a/\xff",
    "\xc3\xa4",
    "a\xcc\x88",
    "\xe4",
    "*",
    "a*",
    "?",
    "[a]",
    "a[b]",
    "'",
    "\"",
    "a\"b",
    "$(a)",
    "~",
    "~a",
    "a~",
    "#",
    "a#b",
    "..",
    ".",
    "a/.",
    "a/..",
    "-",
    "_",
    "a-b",
    "a_b",
    "a.b",
    "probe",
    "{probe}",
    "inbox",
    "n",
    "na",
    "lock",
    "lock:a",
    "a:lock",
    "a/lock",
    "state/a",
    "a/state",
    "\xef\xbb\xbf"
    "a",
    "00000000000000000000000000000000",
    "~00000000000000000000000000000000",
    REPEAT_50("abcd"),
    REPEAT_50("abcD"),
    REPEAT_50("\xff\xff\xff\xff"),
    REPEAT_50("%FF/"),
    "dmutex:{a}:lock:",
    "dmutex:{a}:lock:b",
};
#define NAMES (sizeof names / sizeof names[0])

/* Two different names never exclude each other: one thread has them all at once. */
static void test_names_are_different_mutexes_when_they_differ(void **state)
{
    dmutex_t mutexes[NAMES];

    (void)state;
    for (size_t i = 0; i < NAMES; i++) {
        assert_result(dmutex_init_np(&mutexes[i], names[i], NULL), 0);
        if (dmutex_trylock(&mutexes[i]) != 0)
            fail_msg("\"%s\" is taken for another name", names[i]);
    }
    assert_int_equal(side_count_keys(the_server->side, "dmutex:*}:lock:*"), (int)NAMES);
    for (size_t i = 0; i < NAMES; i++) {
        if (in_thread(dmutex_trylock, &mutexes[i]) != EBUSY)
            fail_msg("\"%s\" does not exclude itself", names[i]);
    }
    for (size_t i = 0; i < NAMES; i++)
        assert_result(dmutex_unlock(&mutexes[i]), 0);
}

/* The same name is the same mutex, in each of three ways to give it; getname returns it unchanged. */
static void test_name_is_one_mutex_when_given_in_different_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < NAMES; i++) {
        dmutex_t by_init, by_attr;
        dmutexattr_t attr;
        char room[DMUTEX_NAME_MAX_NP + 1];

        assert_result(dmutexattr_init(&attr), 0);
        assert_result(dmutexattr_setname_np(&attr, names[i]), 0);
        assert_result(dmutexattr_getname_np(&attr, room, sizeof room), 0);
        assert_string_equal(room, names[i]);
        assert_result(dmutex_init(&by_attr, &attr), 0);
        assert_result(dmutex_init_np(&by_init, names[i], NULL), 0);
        assert_result(dmutex_getname_np(&by_init, room, sizeof room), 0);
        assert_string_equal(room, names[i]);
        assert_result(dmutex_lock(&by_init), 0);
        assert_result(dmutex_trylock(&by_attr), EBUSY);
        assert_result(dmutex_unlock(&by_attr), 0); /* ownership is of thread and name */
        assert_result(dmutex_destroy(&by_attr), 0);
    }
}

/* The name of init_np() takes the place of the attributes' name. */
static void test_name_of_init_replaces_that_of_attr(void **state)
{
    dmutexattr_t attr;
    dmutex_t mutex;
    char room[16];

    (void)state;
    assert_result(dmutexattr_init(&attr), 0);
    assert_result(dmutexattr_setname_np(&attr, "names/attr"), 0);
    assert_result(dmutex_init_np(&mutex, "names/init", &attr), 0);
    assert_result(dmutex_getname_np(&mutex, room, sizeof room), 0);
    assert_string_equal(room, "names/init");
    assert_result(dmutexattr_getname_np(&attr, room, sizeof room), 0);
    assert_string_equal(room, "names/attr");
}

/* Text of 'x' of this length, up to 10 000. */
static const char *long_name(size_t length)
{
    static char text[10001];

    memset(text, 'x', length);
    text[length] = '\0';
    return text;
}

/* 0, 201 and 10 000 bytes, and an empty group or leaf, are EINVAL, and the object is unchanged. */
static void test_init_refuses_when_name_is_impossible(void **state)
{
    const size_t lengths[] = { 0, 201, 207, 208, 255, 256, 10000 };
    const char *const bad[] = { "/", "/a", "a/", "//", "/a/b" };
    dmutex_t mutex, before;

    (void)state;
    memset(&mutex, 0x5a, sizeof mutex);
    before = mutex;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        assert_result(dmutex_init_np(&mutex, long_name(lengths[i]), NULL), EINVAL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_result(dmutex_init_np(&mutex, bad[i], NULL), EINVAL);
    assert_memory_equal(&mutex, &before, sizeof mutex);
    for (size_t length = 1; length <= 200; length += 199)
        assert_result(dmutex_init_np(&mutex, long_name(length), NULL), 0);
}

/* A static initialiser with an impossible name: every use is EINVAL, the server is not asked. */
static void test_lock_refuses_when_initialiser_has_impossible_name(void **state)
{
    dmutex_t bad[] = { DMUTEX_INITIALIZER(""),
                       DMUTEX_ROBUST_INITIALIZER("/a"),
                       DMUTEX_RECURSIVE_INITIALIZER("a/"),
                       DMUTEX_ERRORCHECK_INITIALIZER("/"),
                       DMUTEX_INITIALIZER(REPEAT_50("abcd") "e"),
                       DMUTEX_INITIALIZER("cut") };
    int64_t before = client_commands();
    const struct timespec past = { 0, 0 };

    (void)state;
    /* A literal of 10 000 bytes: the compiler warns and fills all of the room, without a NUL. */
    memset(bad[5].dm_name, 'x', sizeof bad[5].dm_name);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char room[300];

        for (int w = 0; w < WAY_COUNT; w++)
            assert_result(ways_to_lock[w].lock(&bad[i]), EINVAL);
        assert_result(dmutex_timedlock(&bad[i], &past), EINVAL);
        assert_result(dmutex_unlock(&bad[i]), EINVAL);
        assert_result(dmutex_consistent(&bad[i]), EINVAL);
        assert_result(dmutex_getname_np(&bad[i], room, sizeof room), EINVAL);
        assert_result(dmutex_destroy(&bad[i]), EINVAL);
    }
    assert_int_equal(client_commands(), before);
}

/* A buffer without room for the name and the NUL is ERANGE, and untouched. */
static void test_getname_needs_room(void **state)
{
    dmutex_t mutex = DMUTEX_INITIALIZER("abc");
    char room[5] = "....";

    (void)state;
    for (size_t size = 0; size < 4; size++)
        assert_result(dmutex_getname_np(&mutex, room, size), ERANGE);
    assert_string_equal(room, "....");
    assert_result(dmutex_getname_np(&mutex, room, 4), 0);
    assert_string_equal(room, "abc");
}

/* A group's keys have the group in braces, and no other brace: all keys live in one slot of a cluster. */
static void test_keys_keep_one_group_together(void **state)
{
    dmutex_t mutex = DMUTEX_INITIALIZER("gr{o}up/le}af");

    (void)state;
    assert_result(dmutex_lock(&mutex), 0);
    assert_int_equal(side_int(the_server->side, "EXISTS dmutex:{gr%%7Bo%%7Dup}:lock:le%%7Daf"), 1);
    assert_int_equal(side_int(the_server->side, "EXISTS dmutex:{gr%%7Bo%%7Dup}:state:le%%7Daf"), 1);
    assert_result(dmutex_unlock(&mutex), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_different_mutexes_when_they_differ),
        cmocka_unit_test(test_name_is_one_mutex_when_given_in_different_ways),
        cmocka_unit_test(test_name_of_init_replaces_that_of_attr),
        cmocka_unit_test(test_init_refuses_when_name_is_impossible),
        cmocka_unit_test(test_lock_refuses_when_initialiser_has_impossible_name),
        cmocka_unit_test(test_getname_needs_room),
        cmocka_unit_test(test_keys_keep_one_group_together),
        cmocka_unit_test(test_nothing_is_left),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, test_group_setup, test_group_teardown);
}

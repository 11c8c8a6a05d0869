/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Lua scripts of conditions on a server that is in the way: keys of others, impossible numbers, missing rights, no
 * memory.
 */
#include <stdio.h>
#include <string.h>

#include "scripts.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* a waits on the condition, b owns the mutex. */
static struct who a, b;

static void begin(void)
{
    command("FLUSHALL");
    a = who("a");
    b = who("b");
    fall_asleep(&a);
    acquire(&b, TRY);
}

static const char *wait_by_b(void)
{
    struct who waiter = b;

    waiter.attempt = 2;
    return cond_wait(&waiter, 1);
}

static const char *wait_again(void)
{
    return cond_wait(&a, 1);
}

static const char *broadcast(void)
{
    return cond_signal("c", "x", 256, "");
}

static const char *cancel_by_a(void)
{
    return cond_cancel(&a);
}

/* Without the server's clock, which comes first. */
static const char *poll_by_a(void)
{
    return strchr(cond_poll(&a), '\n') + 1;
}

static const char *look(void)
{
    return cond_drop("c", "look");
}

static const char *delete (void)
{
    return cond_drop("c", "delete");
}

/* ---- keys of others ---------------------------------------------------------------------- */

static const struct {
    const char *kind, *leaf;
} keys[] = {
    { "lock", "x" }, { "state", "x" }, { "queue", "x" }, { "waiter", "x" }, { "cond", "c" }, { "sleeper", "c" }
};

enum { L = 1, S = 2, Q = 4, W = 8, C = 16, P = 32 }; /* one bit for each key */

/* Every script, with the key of a wrong type that must stop the script. */
static const struct {
    const char *(*call)(void);
    int stopped_by;
} calls[] = {
    { wait_by_b, S | Q | W | C | P },
    { wait_again, S | Q | W | C | P },
    { signal_one, L | S | Q | W | C | P },
    { broadcast, L | S | Q | W | C | P },
    { cancel_by_a, L | S | Q | W | C | P },
    { poll_by_a, L | S | Q | W | C | P },
    { look, C | P },
    { delete, C | P },
};

/* A key of the wrong type stops a script before the first write. */
static void test_scripts_change_nothing_when_a_key_is_of_a_wrong_type(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(keys); k++) {
        for (size_t i = 0; i < COUNT(calls); i++) {
            const char *before, *answer;

            begin();
            command("DEL %s", key(keys[k].kind, keys[k].leaf));
            command("SET %s junk", key(keys[k].kind, keys[k].leaf));
            before = dump();
            answer = calls[i].call();
            if (calls[i].stopped_by & 1 << k)
                assert_non_null(strstr(answer, "WRONGTYPE"));
            if (strcmp(line_of(answer, 0), "error") == 0)
                assert_string_equal(dump(), before);
        }
    }
}

/* The same for a release, of a waiting attempt and of a signalled attempt. */
static void test_a_release_changes_nothing_when_a_key_of_the_condition_is_of_a_wrong_type(void **state)
{
    (void)state;
    for (int signalled = 0; signalled <= 1; signalled++) {
        for (size_t k = 4; k < COUNT(keys); k++) {
            const char *before;

            begin();
            if (signalled)
                signal_one();
            command("DEL %s", key(keys[k].kind, keys[k].leaf));
            command("SET %s junk", key(keys[k].kind, keys[k].leaf));
            before = dump();
            assert_non_null(strstr(cond_release(&a, UNLOCKED), "WRONGTYPE"));
            assert_string_equal(dump(), before);
        }
    }
}

/* A foreign value in `state` is recognised, and not changed. */
static void test_scripts_change_nothing_when_the_state_is_not_ours(void **state)
{
    static const char *const junk[][2] = { { "token", "x" },    { "token", "4503599627370497" },
                                           { "health", "x" },   { "hold", "x" },
                                           { "hold", "b:1:1" }, { "arrival", "x" } };

    (void)state;
    for (size_t j = 0; j < COUNT(junk); j++) {
        for (size_t i = 0; i < COUNT(calls); i++) {
            const char *before, *answer;

            begin();
            command("HSET %s %s %s", key("state", "x"), junk[j][0], junk[j][1]);
            before = dump();
            answer = calls[i].call();
            if (!(calls[i].stopped_by & S))
                continue;
            assert_non_null(strstr(answer, "DMSTATE"));
            assert_string_equal(dump(), before);
        }
    }
}

/* An impossible token is refused, because the token would be the last of the name. */
static void test_scripts_change_nothing_when_the_caller_has_seen_too_much(void **state)
{
    static const char *const seen[] = {
        "4503599627370495", "4503599627370497", "1e400", "18446744073709551615", "-1", "x", ""
    };
    static const char *(*const asking[])(void) = { wait_by_b, wait_again, cancel_by_a, poll_by_a };

    (void)state;
    for (size_t j = 0; j < COUNT(seen); j++) {
        for (size_t i = 0; i < COUNT(asking); i++) {
            const char *before;

            begin();
            a.seen = b.seen = seen[j];
            before = dump();
            assert_non_null(strstr(asking[i](), "DMSTATE"));
            assert_string_equal(dump(), before);
        }
    }
}

/* The highest valid token is taken, and the next token is one above. */
static void test_a_waiter_comes_back_when_it_has_seen_the_highest_token(void **state)
{
    (void)state;
    begin();
    a.seen = "4503599627370493";
    assert_answer(signal_one(), "moved");
    assert_answer(release(&b, UNLOCKED), "released");
    assert_string_equal(line_of(cond_poll(&a), 2), "4503599627370494");
    assert_answer(cond_release(&a, UNLOCKED), "released");
}

/* Impossible entries of waiters are forgotten at their turn. */
static void test_a_waiter_is_forgotten_when_its_entry_is_not_ours(void **state)
{
    static const char *const junk[] = {
        "", "junk", "1 2 3", "1 60000 9 x 0 1 h p", "-1 -1 1 1 1 x", "1 60000 1 1 4503599627370497 1 h p"
    };

    (void)state;
    for (size_t j = 0; j < COUNT(junk); j++) {
        for (int most = 1; most <= 256; most += 255) {
            begin();
            command("ZADD %s 1 no-id 2 junk:1:1 3 lost:1:1", key("cond", "c"));
            command("HSET %s no-id 1 junk:1:1 %s", key("sleeper", "c"), junk[j]);
            assert_answer(cond_signal("c", "x", most, ""), "moved");
            assert_string_equal(command("ZRANGE %s 0 -1", key("queue", "x")), "a:1:2");
            assert_int_equal(size_of("cond", "c"), 0);
            assert_int_equal(size_of("sleeper", "c"), 2); /* mutex, arrival */
        }
    }
}

/* Such entries do not bind the condition to their mutex either. */
static void test_a_waiter_binds_nobody_when_its_entry_is_not_ours(void **state)
{
    struct who c = who("c");

    (void)state;
    begin();
    command("HSET %s a:1:2 junk", key("sleeper", "c"));
    c.leaf = "y";
    fall_asleep(&c);
    assert_string_equal(line_of(cond_signal("c", NULL, 1, ""), 1), "nt/y");
}

/* A newest number that is no number: no wait, no signal, and the mutex stays its owner's. */
static void test_a_condition_is_left_alone_when_its_numbers_are_not_ours(void **state)
{
    const char *before;

    (void)state;
    begin();
    command("HSET %s arrival x", key("sleeper", "c"));
    before = dump();
    assert_answer(wait_by_b(), "error");
    assert_answer(signal_one(), "error");
    assert_answer(broadcast(), "error");
    assert_string_equal(dump(), before);
}

/* ---- rights and memory ------------------------------------------------------------------- */

/* Without the right to the channel nobody is notified, but everything else happens. */
static void test_a_signal_moves_the_first_when_it_may_not_publish(void **state)
{
    struct inbox *inbox = inbox_open("a");

    (void)state;
    begin();
    become("resetchannels");
    assert_answer(signal_one(), "moved");
    assert_answer(wait_by_b(), "waiting");
    assert_string_equal(owner("x"), "");
    assert_string_equal(line_of(cond_poll(&a), 1), "owned");
    become_nobody_special();
    assert_string_equal(inbox_messages(inbox), "");
    inbox_close(inbox);
}

/* Out of memory no wait begins, and the mutex is still held; calls that end a wait succeed. */
static void test_only_a_wait_is_refused_when_the_server_is_out_of_memory(void **state)
{
    struct inbox *inbox = inbox_open("a");
    const char *before;

    (void)state;
    begin();
    command("CONFIG SET maxmemory 1");
    before = dump();
    assert_non_null(strstr(wait_by_b(), "OOM"));
    assert_string_equal(dump(), before);
    assert_string_equal(poll_by_a(), "waiting");
    assert_answer(signal_one(), "moved");
    assert_answer(cond_cancel(&a), "queued");
    assert_answer(release(&b, UNLOCKED), "released");
    assert_string_equal(owner("x"), "a:1");
    assert_answer(cond_release(&a, UNLOCKED), "released");
    assert_string_equal(cond_drop("c", "delete"), "1");
    command("CONFIG SET maxmemory 0");
    begin();
    command("CONFIG SET maxmemory 1");
    assert_answer(broadcast(), "moved");
    assert_int_equal(size_of("queue", "x"), 1);
    inbox_close(inbox);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(test_scripts_change_nothing_when_a_key_is_of_a_wrong_type),
        SCRIPT_TEST(test_a_release_changes_nothing_when_a_key_of_the_condition_is_of_a_wrong_type),
        SCRIPT_TEST(test_scripts_change_nothing_when_the_state_is_not_ours),
        SCRIPT_TEST(test_scripts_change_nothing_when_the_caller_has_seen_too_much),
        SCRIPT_TEST(test_a_waiter_comes_back_when_it_has_seen_the_highest_token),
        SCRIPT_TEST(test_a_waiter_is_forgotten_when_its_entry_is_not_ours),
        SCRIPT_TEST(test_a_waiter_binds_nobody_when_its_entry_is_not_ours),
        SCRIPT_TEST(test_a_condition_is_left_alone_when_its_numbers_are_not_ours),
        SCRIPT_TEST(test_a_signal_moves_the_first_when_it_may_not_publish),
        SCRIPT_TEST(test_only_a_wait_is_refused_when_the_server_is_out_of_memory),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, scripts_group_setup, scripts_group_teardown);
}

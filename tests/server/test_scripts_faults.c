/* SPDX-License-Identifier: BSD-2-Clause */
/* The Lua scripts on a server that is in the way: keys of others, missing rights, no memory. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "scripts.h"
#include "stores/redis/wire/scripts.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const kinds_of_key[] = { "lock", "state", "queue", "waiter" };

/* a owns, b waits, c comes. */
static struct who a, b, c;

static void begin(void)
{
    command("FLUSHALL");
    a = who("a");
    b = who("b");
    c = who("c");
    acquire(&a, TRY);
    acquire(&b, QUEUE);
}

static const char *try_by_c(void)
{
    return acquire(&c, TRY);
}

static const char *queue_by_c(void)
{
    return acquire(&c, QUEUE);
}

static const char *release_by_a(void)
{
    return release(&a, UNLOCKED);
}

static const char *die_by_a(void)
{
    return release(&a, DIED);
}

static const char *release_by_b(void)
{
    return release(&b, UNLOCKED);
}

static const char *cancel_by_a(void)
{
    return cancel(&a);
}

static const char *cancel_by_b(void)
{
    return cancel(&b);
}

static const char *consistent_by_a(void)
{
    return consistent(&a);
}

static const char *break_it(void)
{
    return force("x");
}

static const char *tell(void)
{
    return info("x");
}

static const char *clean(void)
{
    return drop("x", "clean");
}

static const char *delete (void)
{
    return drop("x", "delete");
}

/* Every script, with the key of a wrong type that must stop the script ('l', 's', 'q', 'w'). */
static const struct {
    const char *(*call)(void);
    const char *stopped_by;
} calls[] = {
    { try_by_c, "lsqw" },    { queue_by_c, "lsqw" }, { release_by_a, "sqw" }, { die_by_a, "sqw" },
    { release_by_b, "sqw" }, { cancel_by_a, "ls" },  { cancel_by_b, "sqw" },  { consistent_by_a, "s" },
    { break_it, "lsqw" },    { tell, "lsq" },        { clean, "lqw" },        { delete, "lqw" },
};

static void replace_by_text(const char *kind)
{
    command("DEL %s", key(kind, "x"));
    command("SET %s junk", key(kind, "x"));
}

/* A key of the wrong type stops a script before the first write. */
static void test_scripts_change_nothing_when_a_key_is_of_a_wrong_type(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(kinds_of_key); k++) {
        for (size_t i = 0; i < COUNT(calls); i++) {
            const char *before, *answer;
            bool is_error;

            begin();
            replace_by_text(kinds_of_key[k]);
            before = dump();
            answer = calls[i].call();
            is_error = strcmp(line_of(answer, 0), "error") == 0;
            if (strchr(calls[i].stopped_by, kinds_of_key[k][0]))
                assert_non_null(strstr(answer, "WRONGTYPE"));
            if (is_error)
                assert_string_equal(dump(), before);
        }
    }
}

/* The same when nobody holds or waits yet: a newcomer finds the key and stops. */
static void test_acquire_changes_nothing_when_a_newcomer_finds_a_wrong_type(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        const char *before;

        command("FLUSHALL");
        c = who("c");
        replace_by_text(kinds_of_key[k]);
        before = dump();
        assert_non_null(strstr(acquire(&c, TRY), "WRONGTYPE"));
        assert_non_null(strstr(acquire(&c, QUEUE), "WRONGTYPE"));
        assert_string_equal(dump(), before);
    }
}

/* One bad name of a batch has its own error, and the others their answers. */
static void test_a_batch_serves_the_others_when_one_name_is_of_a_wrong_type(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(kinds_of_key); k++) {
        struct who good = who("b");
        const char *answer;

        begin();
        good.leaf = "y";
        acquire(&good, TRY);
        replace_by_text(kinds_of_key[k]);
        answer = poll_both(&b, &good);
        assert_string_equal(line_of(answer, 1), "error");
        assert_non_null(strstr(answer, "WRONGTYPE"));
        assert_string_equal(line_of(answer, 3), "owned");
        answer = renew_both(&a, &good);
        assert_int_equal(number_of(answer, 1), k < 2 ? 0 : 2);
        assert_int_equal(number_of(answer, 2), 1);
        assert_string_equal(command("TYPE %s", key(kinds_of_key[k], "x")), "string");
    }
}

/* A foreign value in `state` is recognised, and not changed. */
static void test_scripts_change_nothing_when_the_state_is_not_ours(void **state)
{
    static const char *const junk[] = { "token x",    "token 1e400", "health x", "hold x",
                                        "hold a:1:1", "arrival x",   "cursor x" };

    (void)state;
    for (size_t j = 0; j < COUNT(junk); j++) {
        char field[16], value[16];

        sscanf(junk[j], "%15s %15s", field, value);
        for (size_t i = 0; i < COUNT(calls); i++) {
            const char *before;

            begin();
            command("HSET %s %s %s", key("state", "x"), field, value);
            before = dump();
            if (strcmp(line_of(calls[i].call(), 0), "error") == 0)
                assert_string_equal(dump(), before);
        }
        begin();
        command("HSET %s %s %s", key("state", "x"), field, value);
        assert_non_null(strstr(acquire(&c, TRY), "DMSTATE"));
    }
}

/* A held lock is not shown as free if only its `state` is lost: its owner is not known. */
static void test_a_lock_is_shown_as_held_when_its_state_is_lost(void **state)
{
    (void)state;
    begin();
    command("DEL %s", key("state", "x"));
    assert_string_equal(line_of(info("x"), 0), "?");
    assert_int_equal(number_of(info("x"), 1), 1);
    assert_true(number_of(info("x"), 2) > 0);
    command("DEL %s", key("lock", "x"));
    assert_string_equal(line_of(info("x"), 0), "");
}

/* I1: nor is the lock taken, or its lease changed. */
static void test_a_lock_is_not_taken_when_its_state_is_lost(void **state)
{
    (void)state;
    a = who("a");
    b = who("b");
    acquire(&a, TRY);
    command("PEXPIRE %s 5000", key("lock", "x"));
    command("DEL %s", key("state", "x"));
    assert_answer(acquire(&b, TRY), "busy");
    assert_answer(acquire(&b, QUEUE), "queued");
    assert_within(lifetime("lock", "x"), 1, 5000);
}

/* Impossible entries of waiters are dropped at their turn. */
static void test_a_waiter_is_dropped_when_its_entry_is_not_ours(void **state)
{
    static const char *const junk[] = { "", "junk", "1 2 3", "1 60000 9 x 0 1 h p", "-1 -1 1 1 1 x" };
    struct inbox *inbox = inbox_open("b");

    (void)state;
    for (size_t j = 0; j < COUNT(junk); j++) {
        begin();
        command("ZADD %s 1 no-id 2 junk:1:1 3 lost:1:1", key("queue", "x"));
        command("HSET %s no-id 1 junk:1:1 %s", key("waiter", "x"), junk[j]);
        assert_answer(release(&a, UNLOCKED), "released");
        assert_string_equal(line_of(info("x"), 0), "b:1");
        assert_memory_equal(inbox_messages(inbox), "granted 1 1 ", 12);
        assert_int_equal(number_of(info("x"), 5), 0);
    }
    inbox_close(inbox);
}

/* ---- rights ------------------------------------------------------------------------------ */

/* Without the right to the channel nobody is notified, but the lock is free. */
static void test_release_releases_when_it_may_not_publish(void **state)
{
    struct inbox *inbox = inbox_open("b");

    (void)state;
    begin();
    become("resetchannels");
    assert_answer(release(&a, UNLOCKED), "released");
    assert_string_equal(line_of(info("x"), 0), "");
    assert_int_equal(number_of(info("x"), 5), 1);
    assert_string_equal(line_of(poll_of(&b), 1), "owned");
    become_nobody_special();
    assert_string_equal(inbox_messages(inbox), "");
    inbox_close(inbox);
}

/* Without the right to NUMSUB no inbox is known to be there: the lock is free, and a poll takes the lock. */
static void test_release_releases_when_it_may_not_look_for_inboxes(void **state)
{
    struct inbox *inbox = inbox_open("b");

    (void)state;
    begin();
    become("-pubsub|numsub");
    assert_answer(release(&a, UNLOCKED), "released");
    assert_string_equal(line_of(info("x"), 0), "");
    assert_string_equal(line_of(poll_of(&b), 1), "owned");
    become_nobody_special();
    assert_string_equal(inbox_messages(inbox), "");
    inbox_close(inbox);
}

/* The probe finds every command that is not permitted, and names the command. */
static void test_the_probe_names_the_command_when_one_is_not_permitted(void **state)
{
    static const char *const used[] = { "hset",    "hmget",  "hget",  "hlen",   "zadd",    "zrange",
                                        "zrank",   "zscore", "zcard", "exists", "pexpire", "pttl",
                                        "publish", "hdel",   "zrem",  "del",    "time",    "pubsub|numsub" };

    (void)state;
    for (size_t i = 0; i < COUNT(used); i++) {
        char rules[32], named[32];
        const char *answer;
        size_t length;

        snprintf(rules, sizeof rules, "-%s", used[i]);
        become(rules);
        answer = probe();
        length = (size_t)snprintf(named, sizeof named, "%s", used[i]);
        for (size_t at = 0; at < length; at++)
            named[at] = named[at] == '|' ? ' ' : (char)toupper((unsigned char)named[at]);
        assert_answer(answer, "error");
        assert_non_null(strstr(answer, named));
        become_nobody_special();
    }
}

/* Failure 24: keys or channels that are not permitted are found, too. */
static void test_the_probe_fails_when_keys_or_channels_are_not_permitted(void **state)
{
    (void)state;
    become("resetkeys ~other:*");
    assert_answer(probe(), "error");
    become_nobody_special();
    become("resetchannels &other:*");
    assert_non_null(strstr(probe(), "PUBLISH"));
    become_nobody_special();
    become("resetkeys ~dmutex:* resetchannels &dmutex:*");
    assert_true(number_of(probe(), 0) > 0);
    become_nobody_special();
    assert_string_equal(command("KEYS *"), "");
}

/* The probe tries each command that any script calls. */
static void test_the_probe_tries_every_command_that_scripts_call(void **state)
{
    static const char *const scripts[] = { dm_lua_acquire,  dm_lua_cancel,    dm_lua_consistent,  dm_lua_drop,
                                           dm_lua_force,    dm_lua_info,      dm_lua_poll,        dm_lua_release,
                                           dm_lua_renew,    dm_lua_cond_wait, dm_lua_cond_signal, dm_lua_cond_cancel,
                                           dm_lua_cond_drop };

    (void)state;
    for (size_t i = 0; i < COUNT(scripts); i++) {
        const char *at = scripts[i];

        while ((at = strstr(at, "call('"))) {
            char word[32];

            at += strlen("call('");
            snprintf(word, sizeof word, "'%.*s'", (int)strcspn(at, "'"), at);
            if (!strstr(dm_lua_probe, word))
                fail_msg("%s is not probed", word);
        }
    }
}

/* ---- memory ------------------------------------------------------------------------------ */

/* Out of memory: nothing new begins, but all calls that end or keep a hold succeed. */
static void test_only_acquire_is_refused_when_the_server_is_out_of_memory(void **state)
{
    struct who d = who("d");

    (void)state;
    begin();
    command("CONFIG SET maxmemory 1");
    assert_non_null(strstr(acquire(&c, TRY), "OOM"));
    assert_non_null(strstr(acquire(&c, QUEUE), "OOM"));
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 2);
    assert_string_equal(line_of(poll_of(&b), 1), "queued");
    end_lease("x");
    assert_int_equal(number_of(renew(&a, 1, "1"), 1), 2);
    assert_answer(release(&a, DIED), "released");
    assert_string_equal(line_of(poll_of(&b), 1), "owned");
    assert_string_equal(consistent(&b), "1");
    assert_answer(cancel(&d), "left");
    assert_answer(force("x"), "broken");
    assert_string_equal(drop("x", "delete"), "1");
    assert_string_equal(command("KEYS *"), "");
    assert_true(number_of(probe(), 0) > 0);
}

/* Out of memory: a release still grants to the waiter and notifies it. */
static void test_release_grants_when_the_server_is_out_of_memory(void **state)
{
    struct inbox *inbox = inbox_open("b");

    (void)state;
    begin();
    command("CONFIG SET maxmemory 1");
    assert_answer(release(&a, UNLOCKED), "released");
    assert_memory_equal(inbox_messages(inbox), "granted 1 1 ", 12);
    assert_string_equal(line_of(info("x"), 0), "b:1");
    inbox_close(inbox);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SCRIPT_TEST(test_scripts_change_nothing_when_a_key_is_of_a_wrong_type),
        SCRIPT_TEST(test_acquire_changes_nothing_when_a_newcomer_finds_a_wrong_type),
        SCRIPT_TEST(test_a_batch_serves_the_others_when_one_name_is_of_a_wrong_type),
        SCRIPT_TEST(test_scripts_change_nothing_when_the_state_is_not_ours),
        SCRIPT_TEST(test_a_lock_is_shown_as_held_when_its_state_is_lost),
        SCRIPT_TEST(test_a_lock_is_not_taken_when_its_state_is_lost),
        SCRIPT_TEST(test_a_waiter_is_dropped_when_its_entry_is_not_ours),
        SCRIPT_TEST(test_release_releases_when_it_may_not_publish),
        SCRIPT_TEST(test_release_releases_when_it_may_not_look_for_inboxes),
        SCRIPT_TEST(test_the_probe_names_the_command_when_one_is_not_permitted),
        SCRIPT_TEST(test_the_probe_fails_when_keys_or_channels_are_not_permitted),
        SCRIPT_TEST(test_the_probe_tries_every_command_that_scripts_call),
        SCRIPT_TEST(test_only_acquire_is_refused_when_the_server_is_out_of_memory),
        SCRIPT_TEST(test_release_grants_when_the_server_is_out_of_memory),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, scripts_group_setup, scripts_group_teardown);
}

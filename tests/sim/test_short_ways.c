/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The usual cases of acquire, release and cond_signal are written out at the beginning of the scripts.  The scripts
 * without these beginnings lead to the same outcome: after each of many random calls the same attempt holds, by the
 * same token, the same attempts wait with the same words, and the same grants were told; and the same owners of marked
 * holds were told that the first waiter has come.
 *
 * A waiter alone is the same in `state` and in the queue.  The ways to the outcome may differ: the arrival number of an
 * attempt that never had to wait, and the message
 * "signalled" before a grant, are not compared, nor the word of an answer that says the same as none, nor the hint that
 * others wait for an unmarked hold.
 */
#include "../lib/testlib.h"

#include <stdlib.h>
#include <string.h>

#include "../unit/random.h"
#include "random_calls.h"
#include "scripting.h"
#include "stores/redis/wire/scripts.h"

/* One of the two servers. */
struct side {
    struct scripting *scripting;
    struct store store;
    struct bytes told; /* all messages "granted" and "wanted" since the keys were empty */
    int wanted;        /* messages "wanted" */
};

static struct side whole, cut_short;
static int64_t now_us = INT64_C(1700000000000000);
static bool is_mutated; /* the sides should differ */

/* Only the process "a" has an inbox. */
static int subscribers(void *user, struct text channel)
{
    (void)user;
    return channel.length > 0 && channel.bytes[channel.length - 1] == 'a';
}

static bool begins_with(struct text text, const char *word)
{
    return text.length > strlen(word) && memcmp(text.bytes, word, strlen(word)) == 0;
}

static int publish(void *user, struct text channel, struct text message)
{
    struct side *side = user;

    side->wanted += begins_with(message, "wanted");
    if (begins_with(message, "granted") || begins_with(message, "wanted")) {
        bytes_add(&side->told, channel.bytes, channel.length);
        bytes_add(&side->told, message.bytes, message.length);
        bytes_add(&side->told, "\n", 1);
    }
    return subscribers(user, channel);
}

/* Returns the reply in the wire's format, to be freed. */
static char *run(struct side *side, const char *script, const struct call *call)
{
    struct site site = {
        .store = &side->store, .now_us = now_us, .publish = publish, .subscribers = subscribers, .user = side
    };
    struct text words[WORDS_MAX];
    struct bytes reply = { 0 };
    char now[CALL_ROOM];
    int number = scripting_by_text((struct text){ script, strlen(script) });

    for (int i = 0; i < call->count; i++) {
        const char *word = call_say(call->words[i], now_us, now);

        words[i] = (struct text){ word, strlen(word) };
    }
    if (number >= 0)
        scripting_run(side->scripting, number, &site, words, call->keys, words + call->keys, call->count - call->keys,
                      &reply);
    else
        scripting_eval(side->scripting, script, &site, words, call->keys, words + call->keys, call->count - call->keys,
                       &reply);
    return reply.data;
}

/* What must be the same: everything except fields and lifetimes of keys that show the way taken. */
static const char outcome[] = "local out = { redis.call('EXISTS', KEYS[1]) }\n"
                              "for _, field in ipairs({ 'hold', 'token', 'health', 'depth', 'debt ' .. KEYS[5] }) do\n"
                              "  out[#out + 1] = redis.call('HGET', KEYS[2], field) or ''\n"
                              "end\n"
                              "local id, words = (redis.call('HGET', KEYS[2], 'wanted') or ''):match('^(%S+) (.*)$')\n"
                              "for _, q in ipairs({ 3, 5 }) do\n"
                              "  for _, id in ipairs(redis.call('ZRANGE', KEYS[q], 0, -1)) do\n"
                              "    out[#out + 1] = id .. ' ' .. redis.call('ZSCORE', KEYS[q], id)\n"
                              "    out[#out + 1] = redis.call('HGET', KEYS[q + 1], id) or ''\n"
                              "  end\n"
                              "  local alone = q == 3 and id\n"
                              "  if alone then\n"
                              "    out[#out + 1] = id .. ' ' .. words:match('^%d+ %d+ %d (%d+)')\n"
                              "    out[#out + 1] = words\n"
                              "  end\n"
                              "  out[#out + 1] = redis.call('HLEN', KEYS[q + 1]) + (alone and 1 or 0)\n"
                              "end\n"
                              "return out\n";

/* "Others wait" in the answer to the renewal of an unmarked hold is a hint: the last waiter may have left. */
static bool is_hint(const char *script, const struct call *call, const char *one, const char *other)
{
    size_t length = strlen(one);

    return script == dm_lua_renew && !strstr(call->words[2], " + ") && !strstr(call->words[2], " - ") &&
           length == strlen(other) && strncmp(one, other, length - 3) == 0 && strcspn(one + length - 3, "12") == 0 &&
           strcspn(other + length - 3, "12") == 0;
}

/* Adds the words of a reply to `words`, each followed by a space: of an array, or of one text with words. */
static void add_words(struct bytes *words, const char *reply)
{
    for (const char *line = reply; *line; line = strchr(line, '\n') + 1) {
        if (strchr("*$", line[0]) && line[1] >= '0' && line[1] <= '9')
            continue;
        line += line[0] == ':';
        bytes_add(words, line, strcspn(line, "\r"));
        bytes_add(words, " ", 1);
    }
}

/* A number more at the end, 0, says the same as none. */
static bool is_same_reply(const char *script, const struct call *call, const char *one, const char *other)
{
    struct bytes of_one = { 0 }, of_other = { 0 };
    bool is_same;

    if (is_hint(script, call, one, other))
        return true;
    add_words(&of_one, one);
    add_words(&of_other, other);
    if (of_one.length == of_other.length + 2 && memcmp(of_one.data + of_other.length, "0 ", 2) == 0)
        of_one.length = of_other.length;
    is_same = of_one.length == of_other.length && memcmp(of_one.data, of_other.data, of_one.length) == 0;
    free(of_one.data);
    free(of_other.data);
    return is_same;
}

static void add_keys(struct call *call)
{
    for (int i = 0; i < 6; i++)
        call_add(call, "%s", call_keys[i]);
    call->keys = 6;
}

/* Runs a call on both sides; true if reply, outcome and messages are the same. */
static bool are_alike(const char *script, const struct call *call)
{
    struct call look = { 0 };
    char *replies[2] = { run(&cut_short, script, call), run(&whole, script, call) };
    char *outcomes[2];
    bool is_same;

    add_keys(&look);
    outcomes[0] = run(&cut_short, outcome, &look);
    outcomes[1] = run(&whole, outcome, &look);
    is_same = is_same_reply(script, call, replies[0], replies[1]) && strcmp(outcomes[0], outcomes[1]) == 0 &&
              whole.told.length == cut_short.told.length &&
              (!whole.told.length || strcmp(whole.told.data, cut_short.told.data) == 0);
    if (!is_same && !is_mutated)
        print_message("without the short way:\n%s%s\nwith the short way:\n%s%s\n", replies[0], outcomes[0], replies[1],
                      outcomes[1]);
    for (int i = 0; i < 2; i++) {
        free(replies[i]);
        free(outcomes[i]);
    }
    return is_same;
}

static void begin_empty(void)
{
    store_clear(&whole.store);
    store_clear(&cut_short.store);
    whole.told.length = cut_short.told.length = 0;
}

/* Time passes: mostly little; sometimes enough for waiters to be silent or gone, or for leases to end. */
static void let_time_pass(void)
{
    now_us += 1 + (int64_t)random_below(1000);
    if (random_below(15) == 0)
        now_us += (int64_t)random_below(65000000) * 1000;
}

static bool is_random_call_alike(int number)
{
    struct call call = { 0 };
    const char *script, *name = call_make(&call, &script);
    bool is_same;

    if (number % 200 == 0)
        begin_empty();
    let_time_pass();
    is_same = are_alike(script, &call);
    for (int i = 0; !is_same && !is_mutated && i < call.count; i++)
        print_message("%s%s%s", i ? " " : name, i ? "" : ": ", call.words[i]);
    return is_same;
}

/* Random calls have the same outcome with the short ways and without. */
static void test_scripts_do_the_same_without_their_short_ways(void **state)
{
    int calls = rounds(20000);

    (void)state;
    for (int i = 0; i < calls; i++)
        assert_true(is_random_call_alike(i));
    assert_true(whole.wanted > calls / 2000); /* marked holds were among them */
}

/*
 * The comparison notices a change of each short way.  The last change shows after some 40 000 calls, too late for the
 * short run, which only checks that the script still has the line.
 */
static void test_scripts_differ_when_a_short_way_is_changed(void **state)
{
    static const struct mutation changes[] = {
        { "acquire", "token_text .. ' 0 ' .. now_text", "token_text .. ' 1 ' .. now_text" },
        { "acquire", "('queued %d %d '):format(waiting + 1, ttl)", "('queued %d %d '):format(waiting + 2, ttl)" },
        { "acquire", "call('HSET', state, 'wanted', first,", "call('HSET', state, 'wanted', first .. 'x'," },
        { "acquire", "if is_first and more_words ~= ''", "if false and more_words ~= ''" },
        { "acquire", "if is_first and more_words ~= ''", "if more_words ~= ''" },
        { "release", "call('DEL', lock)\n", "" },
        { "release", "call('ZRANGE', queue, '0', '1')", "call('ZRANGE', queue, '-1', '-1')" },
        { "release", "local wanted = (is_lone or is_last) and '0' or nil", "local wanted = is_last and '0' or nil" },
        { "cond_signal", "local is_free, signal, wanted = true, '@' .. queue .. ' ',",
          "local is_free, signal, wanted = true, ''," },
    };

    const size_t count = sizeof changes / sizeof changes[0], compared = count - (rounds(1) == 1);

    (void)state;
    is_mutated = true;
    for (size_t i = 0; i < count; i++) {
        const struct mutation mutations[] = { changes[i], { 0 } };
        struct scripting *kept = whole.scripting;
        int calls = 0;

        whole.scripting = scripting_new(mutations);
        while (i < compared && is_random_call_alike(calls))
            assert_true(calls++ < 400000);
        scripting_free(whole.scripting);
        whole.scripting = kept;
    }
    is_mutated = false;
}

static int group_setup(void **state)
{
    static const struct mutation cut[] = {
        { "acquire", "local is_usual = is_newest and", "local is_usual = false and" },
        { "release", "if is_mine and not how and (not wanted or wanted == '0') then", "if false then" },
        { "release", "if is_mine and not (how or health) then", "if false then" },
        { "cond_signal", "if most == '1' and upto == ''", "if false and most == '1' and upto == ''" },
        { 0 }
    };

    (void)state;
    whole.scripting = scripting_new(NULL);
    cut_short.scripting = scripting_new(cut);
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    begin_empty();
    scripting_free(whole.scripting);
    scripting_free(cut_short.scripting);
    free(whole.told.data);
    free(cut_short.told.data);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scripts_do_the_same_without_their_short_ways),
        cmocka_unit_test(test_scripts_differ_when_a_short_way_is_changed),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulated server against a real server: the same random commands and the same random calls of
 * the library's scripts give the same replies and leave the same keys.
 *
 * The clocks differ.  So a number of the size of a moment in microseconds is compared with the partner of earlier
 * comparisons, and numbers of the size of a lease need only be near each other.
 */
#include "../lib/testlib.h"

#include <ctype.h>
#include <glib.h>
#include <hiredis.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/random.h"
#include "random_calls.h"
#include "scripting.h"
#include "stores/redis/wire/scripts.h"

static redisContext *real;
static redisContext *real_inbox, *real_monitor;
static struct store store;
static struct scripting *scripting;
static bool is_mutated;                     /* the sides should differ */
static const char *poll_text = dm_lua_poll; /* the simulated side's script poll */
static int64_t sim_now_us = INT64_C(1700000000000000);

/* Both sides have one inbox, of "a", and a monitor that hears every channel. */
static int subscribers(void *user, struct text channel)
{
    (void)user;
    return channel.length > 0 && channel.bytes[channel.length - 1] == 'a';
}

static int publish(void *user, struct text channel, struct text message)
{
    (void)message;
    return subscribers(user, channel) + 1;
}

/* ---- moments of the two clocks ----------------------------------------------------------- */

#define MOMENT_LEAST 100000000000000LL /* tokens are smaller than moments by 50 years */
#define LEASE_LEAST 1000000LL

static long long paired[4096][2];
static int pairs;

static bool is_paired(long long in_real, long long in_sim)
{
    for (int i = 0; i < pairs; i++) {
        if (paired[i][0] == in_real || paired[i][1] == in_sim)
            return paired[i][0] == in_real && paired[i][1] == in_sim;
    }
    if (pairs == 4096)
        return false;
    paired[pairs][0] = in_real;
    paired[pairs++][1] = in_sim;
    return true;
}

static bool is_same_number(long long in_real, long long in_sim)
{
    if (in_real >= MOMENT_LEAST && in_sim >= MOMENT_LEAST)
        return is_paired(in_real, in_sim);
    if (in_real >= LEASE_LEAST && in_sim >= LEASE_LEAST)
        return llabs(in_real - in_sim) < LEASE_LEAST / 2;
    return in_real == in_sim;
}

/* True if two texts are the same; numbers are compared by is_same_number(). */
static bool is_same(const char *in_real, const char *in_sim)
{
    while (*in_real && *in_sim) {
        if (isdigit((unsigned char)*in_real) && isdigit((unsigned char)*in_sim)) {
            char *real_end, *sim_end;
            long long real_number = strtoll(in_real, &real_end, 10);

            if (!is_same_number(real_number, strtoll(in_sim, &sim_end, 10)))
                return false;
            in_real = real_end;
            in_sim = sim_end;
        } else if (*in_real++ != *in_sim++) {
            return false;
        }
    }
    return *in_real == *in_sim;
}

/* ---- replies as texts -------------------------------------------------------------------- */

/* Writes a reply as text; of an error only the first word, because the rest is for people. */
static void write_reply(FILE *out, const redisReply *reply)
{
    switch (reply->type) {
    case REDIS_REPLY_ARRAY:
        fputs("[", out);
        for (size_t i = 0; i < reply->elements; i++)
            write_reply(out, reply->element[i]);
        fputs("]", out);
        return;
    case REDIS_REPLY_INTEGER:
        fprintf(out, "%lld ", reply->integer);
        return;
    case REDIS_REPLY_NIL:
        fputs("nil ", out);
        return;
    case REDIS_REPLY_ERROR:
        fprintf(out, "error %.*s ", (int)strcspn(reply->str, " "), reply->str);
        return;
    default:
        fprintf(out, "\"%s\" ", reply->str);
    }
}

/* Returns the reply's text, to be freed; frees the reply. */
static char *text_of(redisReply *reply)
{
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    assert_non_null(reply);
    write_reply(out, reply);
    fclose(out);
    freeReplyObject(reply);
    return text;
}

/* ---- a call on both sides ---------------------------------------------------------------- */

static char *run_really(const char *script, const struct call *call)
{
    const char *words[WORDS_MAX + 3] = { "EVAL", script };
    char keys[12], now[CALL_ROOM];

    snprintf(keys, sizeof keys, "%d", call->keys);
    words[2] = keys;
    for (int i = 0; i < call->count; i++)
        words[i + 3] = call_say(call->words[i], g_get_real_time(), now);
    return text_of(redisCommandArgv(real, call->count + 3, words, NULL));
}

static char *run_simulated(const char *script, const struct call *call)
{
    struct site site = {
        .store = &store, .now_us = sim_now_us += 1000, .publish = publish, .subscribers = subscribers
    };
    struct text words[WORDS_MAX];
    struct bytes bytes = { 0 };
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;
    char now[CALL_ROOM];

    for (int i = 0; i < call->count; i++) {
        const char *word = call_say(call->words[i], sim_now_us, now);

        words[i] = (struct text){ word, strlen(word) };
    }
    scripting_eval(scripting, script == dm_lua_poll ? poll_text : script, &site, words, call->keys, words + call->keys,
                   call->count - call->keys, &bytes);
    redisReaderFeed(reader, bytes.data, bytes.length);
    assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
    redisReaderFree(reader);
    free(bytes.data);
    return text_of(reply);
}

static void show(const char *what, const struct call *call, const char *in_real, const char *in_sim)
{
    print_message("%s:", what);
    for (int i = 0; call && i < call->count; i++)
        print_message(" %s", call->words[i]);
    print_message("\n  real: %s\n  simulated: %s\n", in_real, in_sim);
}

static bool are_alike(const char *name, const char *script, const struct call *call)
{
    char *in_real = run_really(script, call), *in_sim = run_simulated(script, call);
    bool is_good = is_same(in_real, in_sim);

    if (!is_good && !is_mutated)
        show(name, call, in_real, in_sim);
    free(in_real);
    free(in_sim);
    return is_good;
}

static void run_both(const char *name, const char *script, const struct call *call)
{
    assert_true(are_alike(name, script, call));
}

/* ---- all keys on both sides -------------------------------------------------------------- */

static const char dump[] =
    "local out = {}\n"
    "for _, key in ipairs(KEYS) do\n"
    "  local hash = redis.pcall('HGETALL', key)\n"
    "  if hash.err then\n"
    "    hash = redis.call('ZRANGE', key, 0, -1)\n"
    "    for i = #hash, 1, -1 do table.insert(hash, i + 1, redis.call('ZSCORE', key, hash[i])) end\n"
    "    out[#out + 1] = hash\n"
    "  else\n"
    "    local all = {}\n"
    "    for i = 1, #hash, 2 do all[#all + 1] = hash[i] .. '=' .. hash[i + 1] end\n"
    "    for i = 1, #all do all[i] = all[i]:gsub('^(hold=%-%d) %d+', '%1') end\n" /* the ms of two clocks */
    "    table.sort(all)\n"
    "    out[#out + 1] = all\n"
    "  end\n"
    "  local left = redis.call('PTTL', key)\n"
    "  out[#out + 1] = left\n"
    "end\n"
    "return out\n";

static bool are_keys_alike(const char *const *keys, int count)
{
    struct call call = { 0 };

    for (int i = 0; i < count; i++)
        call_add(&call, "%s", keys[i]);
    call.keys = count;
    return are_alike("the keys", dump, &call);
}

/* ---- random commands --------------------------------------------------------------------- */

static const char pass_on[] = "return redis.call(unpack(ARGV))\n";
static const char pass_on_caught[] = "local r = redis.pcall(unpack(ARGV)) return { type(r), r }\n";

#define A_KEY ANY("{k}1", "{k}2", "{k}3", "{k}4")
#define A_NAME ANY("a", "b", "aa", "c", "d", "")
#define A_SCORE ANY("1", "2.5", "-3", "2", "1700000000123456", "0", "x", "7")
#define A_BOUND ANY("-inf", "+inf", "(2", "2", "(7", "0", "-3")
#define AN_INDEX ANY("0", "1", "-1", "15", "2", "-2", "-9")

static void make_command(struct call *call)
{
    const char *name = ANY("HSET", "HSET", "HGET", "HMGET", "HDEL", "HLEN", "HGETALL", "HEXISTS", "ZADD", "ZADD",
                           "ZADDNX", "ZREM", "ZCARD", "ZSCORE", "ZRANK", "ZRANGE", "BYSCORE", "LIMIT", "DEL", "EXISTS",
                           "PEXPIRE", "PTTL", "NUMSUB", "PUBLISH", "NONSENSE");
    const char *key = A_KEY;

    if (strcmp(name, "ZADDNX") == 0 || strcmp(name, "ZADD") == 0) {
        bool only_new = name[4];
        call_add(call, "ZADD"), call_add(call, "%s", key);
        if (only_new)
            call_add(call, "NX");
        call_add(call, "%s", A_SCORE), call_add(call, "%s", A_NAME);
    } else if (strcmp(name, "NUMSUB") == 0) {
        call_add(call, "PUBSUB"), call_add(call, "NUMSUB");
        for (unsigned i = random_below(3); i > 0; i--)
            call_add(call, "%s", ANY("d:inbox:a", "d:inbox:b"));
    } else if (strcmp(name, "PUBLISH") == 0) {
        call_add(call, "PUBLISH"), call_add(call, "%s", ANY("d:inbox:a", "d:inbox:b")), call_add(call, "told");
    } else if (strcmp(name, "BYSCORE") == 0 || strcmp(name, "LIMIT") == 0) {
        call_add(call, "ZRANGE"), call_add(call, "%s", key), call_add(call, "%s", A_BOUND),
            call_add(call, "%s", A_BOUND);
        call_add(call, "BYSCORE");
        if (name[0] == 'L')
            call_add(call, "LIMIT"), call_add(call, "0"), call_add(call, "%s", ANY("1", "2", "16"));
    } else if (strcmp(name, "ZRANGE") == 0) {
        call_add(call, "ZRANGE"), call_add(call, "%s", key), call_add(call, "%s", AN_INDEX),
            call_add(call, "%s", AN_INDEX);
    } else if (strcmp(name, "PEXPIRE") == 0) {
        call_add(call, "PEXPIRE"), call_add(call, "%s", key),
            call_add(call, "%s", ANY("60000000", "0", "-5", "99000000", "z"));
    } else if (strcmp(name, "HSET") == 0) {
        call_add(call, "HSET"), call_add(call, "%s", key), call_add(call, "%s", A_NAME), call_add(call, "%s", A_NAME);
    } else {
        call_add(call, "%s", name), call_add(call, "%s", key);
        if (strcmp(name, "HLEN") && strcmp(name, "HGETALL") && strcmp(name, "ZCARD") && strcmp(name, "PTTL"))
            call_add(call, "%s", A_NAME);
    }
}

/* Random commands get the same answers, and leave the same keys, on both sides. */
static void test_store_answers_as_the_server_when_commands_are_random(void **state)
{
    static const char *const keys[] = { "{k}1", "{k}2", "{k}3", "{k}4" };
    int calls = rounds(3000);

    (void)state;
    for (int i = 0; i < calls; i++) {
        struct call call = { 0 };

        make_command(&call);
        run_both("a command", random_below(2) ? pass_on : pass_on_caught, &call);
        if (i % 20 == 0)
            assert_true(are_keys_alike(keys, 4));
    }
}

/* ---- random calls of the library's scripts ----------------------------------------------- */

/* Ends the owner's lease on both sides at once. */
static void end_lease(void)
{
    struct call call = { 0 };

    call_add(&call, "DEL"), call_add(&call, "%s", call_keys[0]);
    run_both("end of the lease", pass_on, &call);
}

static void begin_empty(void)
{
    freeReplyObject(redisCommand(real, "FLUSHALL"));
    store_clear(&store);
    pairs = 0;
}

/* Makes a random call; true if reply and keys are the same on both sides. */
static bool is_random_call_alike(int number)
{
    struct call call = { 0 };
    const char *name, *text;

    if (number % 100 == 0)
        begin_empty();
    if (random_below(20) == 0)
        end_lease();
    name = call_make(&call, &text);
    return are_alike(name, text, &call) && are_keys_alike(call_keys, 6);
}

/* Random calls of the library's scripts get the same replies, and leave the same keys, on both sides. */
static void test_scripts_do_the_same_when_the_server_is_simulated(void **state)
{
    int wanted = rounds(3000);

    (void)state;
    for (int i = 0; i < wanted; i++)
        assert_true(is_random_call_alike(i));
}

/* The comparison above notices when the simulated side runs a script with a changed line. */
static void test_scripts_differ_when_a_line_of_one_is_changed(void **state)
{
    static const char old[] = "call('HDEL', waiter, id)\ncall('ZREM', queue, id)\n",
                      new[] = "call('HDEL', waiter, id)\n";
    int calls_alike = 0;
    char *text = strdup(dm_lua_poll), *at = strstr(text, old);

    (void)state;
    assert_non_null(at);
    memcpy(at, new, sizeof new - 1);
    memset(at + sizeof new - 1, ' ', sizeof old - sizeof new);
    is_mutated = true;
    poll_text = text;
    while (is_random_call_alike(calls_alike))
        assert_true(calls_alike++ < 20000);
    poll_text = dm_lua_poll;
    is_mutated = false;
    free(text);
}

static int group_setup(void **state)
{
    if (test_group_setup(state))
        return -1;
    real = redisConnectUnix(the_server->path);
    real_inbox = redisConnectUnix(the_server->path);
    freeReplyObject(redisCommand(real_inbox, "SUBSCRIBE d:inbox:a"));
    real_monitor = redisConnectUnix(the_server->path);
    freeReplyObject(redisCommand(real_monitor, "PSUBSCRIBE *"));
    scripting = scripting_new(NULL);
    return 0;
}

static int group_teardown(void **state)
{
    redisFree(real);
    redisFree(real_inbox);
    redisFree(real_monitor);
    scripting_free(scripting);
    store_clear(&store);
    return test_group_teardown(state);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store_answers_as_the_server_when_commands_are_random),
        cmocka_unit_test(test_scripts_do_the_same_when_the_server_is_simulated),
        cmocka_unit_test(test_scripts_differ_when_a_line_of_one_is_changed),
    };

    test_begin(argc, argv);
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}

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
#include "redis/scripts.h"
#include "scripting.h"

#define WORDS_MAX 64

static redisContext *real;
static redisContext *real_inbox, *real_monitor;
static struct store store;
static struct scripting *scripting;
static bool is_mutated;                     /* the sides are to differ */
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

/* Tells if two texts are the same, with numbers compared by is_same_number(). */
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

struct call {
    const char *words[WORDS_MAX]; /* keys, then arguments */
    int keys, count;
    char room[WORDS_MAX][96];
};

static void add(struct call *call, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));

static void add(struct call *call, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(call->room[call->count], sizeof call->room[0], format, arguments);
    va_end(arguments);
    call->words[call->count] = call->room[call->count];
    call->count++;
}

/* Stands for the server's clock among the words of a call. */
#define NOW "now"

static const char *say(const char *word, int64_t now_us, char room[24])
{
    if (strcmp(word, NOW) != 0)
        return word;
    snprintf(room, 24, "%" PRId64, now_us);
    return room;
}

static char *run_really(const char *script, const struct call *call)
{
    const char *words[WORDS_MAX + 3] = { "EVAL", script };
    char keys[12], now[24];

    snprintf(keys, sizeof keys, "%d", call->keys);
    words[2] = keys;
    for (int i = 0; i < call->count; i++)
        words[i + 3] = say(call->words[i], g_get_real_time(), now);
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
    char now[24];

    for (int i = 0; i < call->count; i++) {
        const char *word = say(call->words[i], sim_now_us, now);

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
        add(&call, "%s", keys[i]);
    call.keys = count;
    return are_alike("the keys", dump, &call);
}

/* ---- random commands --------------------------------------------------------------------- */

static const char pass_on[] = "return redis.call(unpack(ARGV))\n";
static const char pass_on_caught[] = "local r = redis.pcall(unpack(ARGV)) return { type(r), r }\n";

static const char *any_of(const char *const *words, unsigned count)
{
    return words[random_below(count)];
}

#define ANY(...) \
    any_of((const char *const[]){ __VA_ARGS__ }, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))
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
        add(call, "ZADD"), add(call, "%s", key);
        if (only_new)
            add(call, "NX");
        add(call, "%s", A_SCORE), add(call, "%s", A_NAME);
    } else if (strcmp(name, "NUMSUB") == 0) {
        add(call, "PUBSUB"), add(call, "NUMSUB");
        for (unsigned i = random_below(3); i > 0; i--)
            add(call, "%s", ANY("d:inbox:a", "d:inbox:b"));
    } else if (strcmp(name, "PUBLISH") == 0) {
        add(call, "PUBLISH"), add(call, "%s", ANY("d:inbox:a", "d:inbox:b")), add(call, "told");
    } else if (strcmp(name, "BYSCORE") == 0 || strcmp(name, "LIMIT") == 0) {
        add(call, "ZRANGE"), add(call, "%s", key), add(call, "%s", A_BOUND), add(call, "%s", A_BOUND);
        add(call, "BYSCORE");
        if (name[0] == 'L')
            add(call, "LIMIT"), add(call, "0"), add(call, "%s", ANY("1", "2", "16"));
    } else if (strcmp(name, "ZRANGE") == 0) {
        add(call, "ZRANGE"), add(call, "%s", key), add(call, "%s", AN_INDEX), add(call, "%s", AN_INDEX);
    } else if (strcmp(name, "PEXPIRE") == 0) {
        add(call, "PEXPIRE"), add(call, "%s", key), add(call, "%s", ANY("60000000", "0", "-5", "99000000", "z"));
    } else if (strcmp(name, "HSET") == 0) {
        add(call, "HSET"), add(call, "%s", key), add(call, "%s", A_NAME), add(call, "%s", A_NAME);
    } else {
        add(call, "%s", name), add(call, "%s", key);
        if (strcmp(name, "HLEN") && strcmp(name, "HGETALL") && strcmp(name, "ZCARD") && strcmp(name, "PTTL"))
            add(call, "%s", A_NAME);
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

static const char *const mutex_keys[] = { "d:{g}:lock:x", "d:{g}:state:x", "d:{g}:queue:x", "d:{g}:waiter:x" };
static const char *const all_keys[] = { "d:{g}:lock:x",   "d:{g}:state:x", "d:{g}:queue:x",
                                        "d:{g}:waiter:x", "d:{g}:cond:c",  "d:{g}:sleeper:c" };

/* An attempt of one of three processes; only the process "a" has an inbox. */
struct who {
    const char *uuid;
    unsigned thread, attempt;
};

static struct who somebody(void)
{
    return (struct who){ ANY("a", "b", "c"), 1 + random_below(2), 1 + random_below(3) };
}

static void add_keys(struct call *call, int count)
{
    for (int i = 0; i < count; i++)
        add(call, "%s", all_keys[i]);
    call->keys = count;
}

static void add_id(struct call *call, const struct who *who)
{
    add(call, "%s:%u:%u", who->uuid, who->thread, who->attempt);
}

static void add_hold(struct call *call, const struct who *who)
{
    add(call, "%s:%u:%u 60000000 label of %s", who->uuid, who->thread, who->attempt, who->uuid);
}

#define RUN "0123456789abcdef"

/* Adds the server's birth: long ago, or just now. */
static void add_born(struct call *call)
{
    add(call, "%s", ANY("0", "0", NOW));
}

static void call_acquire(struct call *call, const struct who *who)
{
    add_keys(call, 4);
    add(call, "%s:%u", who->uuid, who->thread);
    add_hold(call, who);
    add(call, "60000000"), add(call, "0"), add(call, "%u", 1 + random_below(3));
    add(call, "%u", random_below(2));
    add(call, "%s", ANY("try", "queue", "queue")), add(call, "%s", ""), add(call, "d:inbox:");
    add_born(call), add(call, RUN);
    if (random_below(4) == 0)
        add(call, "%u:%u:%u", 1 + random_below(2), 1 + random_below(4), random_below(2));
}

static void call_poll(struct call *call, const struct who *who)
{
    int keys = random_below(2) ? 6 : 4;

    add_keys(call, keys);
    add(call, "d:inbox:"), add(call, "label of %s", who->uuid), add_born(call), add(call, RUN);
    add_id(call, who);
    add(call, "%u", 1 + random_below(3)), add(call, "60000000"), add(call, "%u", random_below(2));
    add(call, "0"), add(call, "%d", keys);
}

static void call_cond_wait(struct call *call, const struct who *who)
{
    struct who next = { who->uuid, who->thread, 1 + random_below(4) };

    add_keys(call, 6);
    add_id(call, who);
    add(call, "%s", ANY("0", "0", "0", "2")), add_hold(call, &next), add(call, "60000000"), add(call, "0");
    add(call, "1"), add(call, "%u", random_below(2)), add(call, "ng/x"), add(call, "d:inbox:");
    add_born(call), add(call, RUN);
}

static void call_cond_cancel(struct call *call, const struct who *who)
{
    add_keys(call, 6);
    add_hold(call, who);
    add(call, "60000000"), add(call, "0"), add(call, "2"), add(call, "%u", random_below(2)), add(call, "d:inbox:");
    add_born(call), add(call, RUN);
}

static void call_cond_signal(struct call *call, const struct who *who)
{
    bool is_known = random_below(4);

    (void)who;
    add(call, "%s", all_keys[4]), add(call, "%s", all_keys[5]);
    for (int i = 0; is_known && i < 4; i++)
        add(call, "%s", mutex_keys[i]);
    call->keys = call->count;
    add(call, "%s", is_known ? "ng/x" : ""), add(call, "d:inbox:"), add(call, "%s", ANY("1", "256")),
        add(call, "%s", "");
    add_born(call), add(call, RUN);
}

static void call_release(struct call *call, const struct who *who)
{
    add_keys(call, random_below(2) ? 6 : 4);
    add_id(call, who);
    add(call, "%s", ANY("0", "0", "0", "1", "1", "2")), add(call, "d:inbox:");
    add_born(call), add(call, RUN);
}

static void call_renew(struct call *call, const struct who *who)
{
    add_keys(call, 4);
    add(call, "%s:%u", who->uuid, who->thread), add_hold(call, who), add(call, "60000000"), add(call, "1"),
        add(call, "5");
}

static void call_cancel(struct call *call, const struct who *who)
{
    add_keys(call, 4);
    add_id(call, who);
    add(call, "60000000"), add(call, "%u", random_below(2));
    add_born(call);
}

static void call_consistent(struct call *call, const struct who *who)
{
    add(call, "%s", mutex_keys[1]);
    call->keys = 1;
    add_id(call, who);
}

static void call_force(struct call *call, const struct who *who)
{
    (void)who;
    add_keys(call, 4);
    add(call, "d:inbox:"), add(call, RUN);
}

static void call_drop(struct call *call, const struct who *who)
{
    (void)who;
    add_keys(call, 4);
    add(call, "%s", ANY("clean", "clean", "delete"));
    add(call, "d:inbox:");
}

static void call_cond_drop(struct call *call, const struct who *who)
{
    (void)who;
    add(call, "%s", all_keys[4]), add(call, "%s", all_keys[5]);
    call->keys = 2;
    add(call, "%s", ANY("delete", "look"));
}

static void call_info(struct call *call, const struct who *who)
{
    add_keys(call, 3);
    add_id(call, who);
    add(call, "60000000");
    add_born(call);
}

static const struct {
    const char *name, *text;
    void (*make)(struct call *call, const struct who *who);
} calls[] = {
    { "acquire", dm_lua_acquire, call_acquire },
    { "acquire", dm_lua_acquire, call_acquire },
    { "release", dm_lua_release, call_release },
    { "release", dm_lua_release, call_release },
    { "poll", dm_lua_poll, call_poll },
    { "poll", dm_lua_poll, call_poll },
    { "cond_wait", dm_lua_cond_wait, call_cond_wait },
    { "cond_wait", dm_lua_cond_wait, call_cond_wait },
    { "cond_signal", dm_lua_cond_signal, call_cond_signal },
    { "cond_cancel", dm_lua_cond_cancel, call_cond_cancel },
    { "renew", dm_lua_renew, call_renew },
    { "cancel", dm_lua_cancel, call_cancel },
    { "consistent", dm_lua_consistent, call_consistent },
    { "force", dm_lua_force, call_force },
    { "drop", dm_lua_drop, call_drop },
    { "cond_drop", dm_lua_cond_drop, call_cond_drop },
    { "info", dm_lua_info, call_info },
};

/* Ends the owner's lease on both sides at once. */
static void end_lease(void)
{
    struct call call = { 0 };

    add(&call, "DEL"), add(&call, "%s", mutex_keys[0]);
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
    struct who who = somebody();
    unsigned which = random_below(sizeof calls / sizeof calls[0]);

    if (number % 100 == 0)
        begin_empty();
    if (random_below(20) == 0)
        end_lease();
    calls[which].make(&call, &who);
    return are_alike(calls[which].name, calls[which].text, &call) && are_keys_alike(all_keys, 6);
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
    static const char old[] = "own(k, s, winner, text(token))\nforget(k, winner.id)\n",
                      new[] = "own(k, s, winner, text(token))\n";
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

/* SPDX-License-Identifier: BSD-2-Clause */
#include "rights.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/attrs.h"
#include "base/ident.h"

#define NO_SHA "0000000000000000000000000000000000000000"
#define NO_CLIENT "9223372036854775807"

/* In the order of doc/guide/servers.md and dmutex(7); tests/tools/test_doctor compares them. */
const struct right rights[] = {
    { "+eval", { "EVAL", "return 1", "0" }, false, RIGHT_ANYWHERE },
    { "+evalsha", { "EVALSHA", NO_SHA, "0" }, false, RIGHT_ANYWHERE },
    { "+subscribe", { NULL }, false, RIGHT_OF_SERVER },
    { "+publish", { "PUBLISH", "%c", "" }, false, RIGHT_OF_SERVER },
    { "+pubsub|numsub", { "PUBSUB", "NUMSUB", "%c" }, false, RIGHT_OF_SERVER },
    { "+ssubscribe", { NULL }, false, RIGHT_OF_CLUSTER },
    { "+sunsubscribe", { "SUNSUBSCRIBE", "%c" }, false, RIGHT_OF_CLUSTER },
    { "+spublish", { "SPUBLISH", "%c", "" }, false, RIGHT_OF_CLUSTER },
    { "+pubsub|shardnumsub", { "PUBSUB", "SHARDNUMSUB", "%c" }, false, RIGHT_OF_CLUSTER },
    { "+asking", { "ASKING" }, false, RIGHT_OF_CLUSTER },
    { "+cluster|slots", { "CLUSTER", "SLOTS" }, false, RIGHT_OF_CLUSTER },
    { "+wait", { "WAIT", "0", "1" }, false, RIGHT_OF_REPLICAS },
    { "+role", { "ROLE" }, false, RIGHT_ANYWHERE },
    { "+info", { "INFO", "server" }, false, RIGHT_ANYWHERE },
    { "+client|id", { "CLIENT", "ID" }, false, RIGHT_ANYWHERE },
    { "+client|kill", { "CLIENT", "KILL", "ID", NO_CLIENT }, false, RIGHT_ANYWHERE },
    { "+time", { "TIME" }, false, RIGHT_ANYWHERE },
    { "+del", { "DEL", "%h" }, false, RIGHT_ANYWHERE },
    { "+exists", { "EXISTS", "%h" }, false, RIGHT_ANYWHERE },
    { "+pexpire", { "PEXPIRE", "%h", "1000" }, false, RIGHT_ANYWHERE },
    { "+pttl", { "PTTL", "%h" }, false, RIGHT_ANYWHERE },
    { "+hset", { "HSET", "%h", "a", "1" }, false, RIGHT_ANYWHERE },
    { "+hget", { "HGET", "%h", "a" }, false, RIGHT_ANYWHERE },
    { "+hmget", { "HMGET", "%h", "a" }, false, RIGHT_ANYWHERE },
    { "+hlen", { "HLEN", "%h" }, false, RIGHT_ANYWHERE },
    { "+hdel", { "HDEL", "%h", "a" }, false, RIGHT_ANYWHERE },
    { "+zadd", { "ZADD", "%z", "XX", "1", "a" }, false, RIGHT_ANYWHERE },
    { "+zrem", { "ZREM", "%z", "a" }, false, RIGHT_ANYWHERE },
    { "+zrange", { "ZRANGE", "%z", "0", "1" }, false, RIGHT_ANYWHERE },
    { "+zrank", { "ZRANK", "%z", "a" }, false, RIGHT_ANYWHERE },
    { "+zscore", { "ZSCORE", "%z", "a" }, false, RIGHT_ANYWHERE },
    { "+zcard", { "ZCARD", "%z" }, false, RIGHT_ANYWHERE },
    { "+scan", { "SCAN", "0", "COUNT", "1" }, true, RIGHT_ANYWHERE },
    { "+pubsub|numpat", { "PUBSUB", "NUMPAT" }, true, RIGHT_OF_SERVER },
    { "+cluster|info", { "CLUSTER", "INFO" }, true, RIGHT_OF_CLUSTER },
    { "+config|get", { "CONFIG", "GET", "appendfsync" }, true, RIGHT_ANYWHERE },
};
const size_t right_count = DM_COUNT(rights);

_Static_assert(DM_COUNT(rights) <= RIGHTS_MOST, "all rights can be missing");

bool right_is_of(const struct right *right, bool is_cluster, bool has_wait)
{
    switch (right->place) {
    case RIGHT_OF_SERVER:
        return !is_cluster;
    case RIGHT_OF_CLUSTER:
        return is_cluster;
    case RIGHT_OF_REPLICAS:
        return has_wait;
    default:
        return true;
    }
}

/* In a Cluster each group has its own inboxes, after the braces. */
void rights_channels(const char *prefix, bool is_cluster, char *ret_pattern, size_t room)
{
    snprintf(ret_pattern, room, "%.64s:%sinbox:*", prefix, is_cluster ? "{*}:" : "");
}

/* The probe's own names, random like those of the library's probe, so that no client's key is in the way. */
struct names {
    char hash[160], zset[160], channel[160];
};

static void draw(const struct dm_url *url, const char *tag, struct names *ret_names)
{
    const char *prefix = url->prefix;
    uint64_t number;

    dm_ident_random(&number, 1);
    if (*tag) {
        snprintf(ret_names->hash, sizeof ret_names->hash, "%.64s:{%s}:state:~probe.%016" PRIx64, prefix, tag, number);
        snprintf(ret_names->zset, sizeof ret_names->zset, "%.64s:{%s}:queue:~probe.%016" PRIx64, prefix, tag, number);
        snprintf(ret_names->channel, sizeof ret_names->channel, "%.64s:{%s}:inbox:probe", prefix, tag);
    } else {
        snprintf(ret_names->hash, sizeof ret_names->hash, "%.64s:{~probe.%016" PRIx64 "}:state", prefix, number);
        snprintf(ret_names->zset, sizeof ret_names->zset, "%.64s:{~probe.%016" PRIx64 "}:queue", prefix, number);
        snprintf(ret_names->channel, sizeof ret_names->channel, "%.64s:inbox:probe", prefix);
    }
}

static const char *fill(const char *word, const struct names *names)
{
    if (strcmp(word, "%h") == 0)
        return names->hash;
    if (strcmp(word, "%z") == 0)
        return names->zset;
    return strcmp(word, "%c") == 0 ? names->channel : word;
}

/*
 * Servers word this differently, but use the same code.  The words that count follow the last quoted name, which may
 * itself contain any words.  An unknown command is one that the server has renamed.
 */
enum refused rights_refused(const char *error)
{
    const char *quote = strrchr(error, '\''), *words = quote ? quote + 1 : error;

    if (strncmp(error, "ERR unknown command", 19) == 0)
        return REFUSED_COMMAND;
    if (strncmp(error, "NOPERM", 6) != 0)
        return REFUSED_NOTHING;
    if (strstr(words, "command"))
        return REFUSED_COMMAND;
    if (strstr(words, "database"))
        return REFUSED_DATABASE;
    if (strstr(words, "key"))
        return REFUSED_KEY;
    return strstr(words, "channel") ? REFUSED_CHANNEL : REFUSED_OTHERWISE;
}

static void note(struct rights_missing *missing, const struct right *right, const char *error)
{
    switch (rights_refused(error)) {
    case REFUSED_NOTHING:
        if (strcmp(right->rule, "+hset") == 0)
            snprintf(missing->write, sizeof missing->write, "%.*s", DM_REASON_ROOM - 1, error);
        return;
    case REFUSED_COMMAND:
        missing->rights[missing->count++] = right;
        return;
    case REFUSED_KEY:
        missing->misses_keys = true;
        return;
    case REFUSED_CHANNEL:
        missing->misses_channels = true;
        return;
    case REFUSED_DATABASE:
        missing->misses_database = true;
        return;
    case REFUSED_OTHERWISE:
        snprintf(missing->refusal, sizeof missing->refusal, "%.*s", DM_REASON_ROOM - 1, error);
        return;
    }
}

/* False without an answer; then the other rights cannot be tried either. */
static bool try_one(struct probe *probe, const struct right *right, const struct names *names,
                    struct rights_missing *missing)
{
    const char *words[DM_COUNT(right->words) + 1] = { NULL };
    redisReply *reply;

    for (size_t i = 0; i < DM_COUNT(right->words) && right->words[i]; i++)
        words[i] = fill(right->words[i], names);
    reply = probe_ask(probe, words, missing->reason);
    if (!reply)
        return false;
    if (reply->type == REDIS_REPLY_ERROR)
        note(missing, right, reply->str);
    dm_reply_free(reply);
    return true;
}

static bool is_missing(const struct rights_missing *missing, const char *rule)
{
    for (int i = 0; i < missing->count; i++)
        if (strcmp(missing->rights[i]->rule, rule) == 0)
            return true;
    return false;
}

/* HSET makes a key, so it is tried only if HDEL, tried after it, or DEL can remove the key. */
static void take_away(struct probe *probe, const struct names *names)
{
    static const char *const commands[] = { "DEL", "HDEL" };
    char reason[DM_REASON_ROOM];

    for (size_t i = 0; i < DM_COUNT(commands); i++) {
        const char *const words[] = { commands[i], names->hash, i ? "a" : NULL, NULL };
        redisReply *reply = probe_ask(probe, words, reason);

        if (reply)
            dm_reply_free(reply);
    }
}

void rights_try(struct probe *probe, const struct dm_url *url, const char *tag, struct rights_missing *ret_missing)
{
    struct rights_missing missing = { .count = 0 };
    struct names names;
    bool is_answered = true;

    draw(url, tag, &names);
    for (size_t i = 0; i < right_count && is_answered; i++) {
        bool is_hset = strcmp(rights[i].rule, "+hset") == 0;

        if (!rights[i].words[0] || !right_is_of(&rights[i], *tag, url->wait) ||
            (is_hset && is_missing(&missing, "+del")))
            continue;
        is_answered = try_one(probe, &rights[i], &names, &missing);
        if (is_hset)
            take_away(probe, &names);
    }
    if (is_answered)
        missing.reason[0] = '\0';
    *ret_missing = missing;
}

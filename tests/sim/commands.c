/* SPDX-License-Identifier: BSD-2-Clause */
#include "commands.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A command being run. */
struct run {
    lua_State *lua;
    const struct site *site;
    struct store *store;
    int count; /* with the command's name */
    const struct text *arguments;
};

static bool fail(struct run *run, const char *text)
{
    lua_pushstring(run->lua, text);
    return false;
}

static bool wrong_type(struct run *run)
{
    return fail(run, "WRONGTYPE Operation against a key holding the wrong kind of value");
}

static bool integer(struct run *run, int64_t number)
{
    lua_pushnumber(run->lua, (lua_Number)number);
    return true;
}

static bool nothing(struct run *run)
{
    lua_pushboolean(run->lua, 0);
    return true;
}

static bool bulk(struct run *run, const char *bytes, size_t length)
{
    lua_pushlstring(run->lua, bytes, length);
    return true;
}

static bool is_word(struct text text, const char *word)
{
    return text.length == strlen(word) && strncasecmp(text.bytes, word, text.length) == 0;
}

/* Looks up the key of argument 1; the key may be missing.  False if the key is of another kind. */
static bool look_up(struct run *run, enum store_kind kind, struct key **ret_key)
{
    *ret_key = store_find(run->store, run->arguments[1]);
    return !*ret_key || (*ret_key)->kind == kind;
}

/* ---- any key ----------------------------------------------------------------------------- */

static bool del(struct run *run)
{
    int count = 0;

    for (int i = 1; i < run->count; i++)
        count += store_delete(run->store, run->arguments[i]);
    return integer(run, count);
}

static bool exists(struct run *run)
{
    int count = 0;

    for (int i = 1; i < run->count; i++)
        count += store_find(run->store, run->arguments[i]) != NULL;
    return integer(run, count);
}

static bool is_integer(struct text text, int64_t *ret_number)
{
    char *end;

    *ret_number = strtoll(text.bytes, &end, 10);
    return text.length > 0 && end == text.bytes + text.length;
}

static bool pexpire(struct run *run)
{
    struct key *key = store_find(run->store, run->arguments[1]);
    int64_t ms;

    if (!is_integer(run->arguments[2], &ms))
        return fail(run, "ERR value is not an integer or out of range");
    if (!key)
        return integer(run, 0);
    if (ms <= 0)
        store_delete(run->store, run->arguments[1]);
    else
        key->expires_ms = run->store->now_ms + ms;
    return integer(run, 1);
}

static bool pttl(struct run *run)
{
    const struct key *key = store_find(run->store, run->arguments[1]);

    if (!key)
        return integer(run, -2);
    return integer(run, key->expires_ms < 0 ? -1 : key->expires_ms - run->store->now_ms);
}

/* ---- hashes ------------------------------------------------------------------------------ */

static bool hset(struct run *run)
{
    struct key *key;
    int added = 0;

    if (!look_up(run, KIND_HASH, &key))
        return wrong_type(run);
    key = store_make(run->store, run->arguments[1], KIND_HASH);
    for (int i = 2; i + 1 < run->count; i += 2)
        added += hash_set(key, run->arguments[i], run->arguments[i + 1]);
    return integer(run, added);
}

static bool push_value(struct run *run, const struct item *item)
{
    return item ? bulk(run, item->value, item->value_length) : nothing(run);
}

static bool hget(struct run *run)
{
    struct key *key;

    if (!look_up(run, KIND_HASH, &key))
        return wrong_type(run);
    return push_value(run, item_find(key, run->arguments[2]));
}

static bool hmget(struct run *run)
{
    struct key *key;

    if (!look_up(run, KIND_HASH, &key))
        return wrong_type(run);
    lua_createtable(run->lua, run->count - 2, 0);
    for (int i = 2; i < run->count; i++) {
        push_value(run, item_find(key, run->arguments[i]));
        lua_rawseti(run->lua, -2, i - 1);
    }
    return true;
}

static bool hgetall(struct run *run)
{
    struct key *key;

    if (!look_up(run, KIND_HASH, &key))
        return wrong_type(run);
    lua_newtable(run->lua);
    for (int i = 0; key && i < key->count; i++) {
        bulk(run, key->items[i].name, key->items[i].name_length);
        lua_rawseti(run->lua, -2, i * 2 + 1);
        push_value(run, &key->items[i]);
        lua_rawseti(run->lua, -2, i * 2 + 2);
    }
    return true;
}

static bool hexists(struct run *run)
{
    struct key *key;

    if (!look_up(run, KIND_HASH, &key))
        return wrong_type(run);
    return integer(run, item_find(key, run->arguments[2]) != NULL);
}

static bool count_items(struct run *run, enum store_kind kind)
{
    struct key *key;

    if (!look_up(run, kind, &key))
        return wrong_type(run);
    return integer(run, key ? key->count : 0);
}

static bool hlen(struct run *run)
{
    return count_items(run, KIND_HASH);
}

static bool remove_items(struct run *run, enum store_kind kind)
{
    struct key *key;
    int removed = 0;

    if (!look_up(run, kind, &key))
        return wrong_type(run);
    for (int i = 2; key && i < run->count; i++)
        removed += item_remove(key, run->arguments[i]);
    if (key)
        store_tidy(run->store, key);
    return integer(run, removed);
}

static bool hdel(struct run *run)
{
    return remove_items(run, KIND_HASH);
}

/* ---- sorted sets ------------------------------------------------------------------------- */

static bool zadd(struct run *run)
{
    bool only_new = is_word(run->arguments[2], "NX");
    int at = only_new ? 3 : 2;
    struct text member = run->arguments[at + 1];
    double score;
    char *end;
    struct key *key;

    score = strtod(run->arguments[at].bytes, &end);
    if (end == run->arguments[at].bytes || *end || isnan(score))
        return fail(run, "ERR value is not a valid float");
    if (!look_up(run, KIND_ZSET, &key))
        return wrong_type(run);
    if (only_new && item_find(key, member))
        return integer(run, 0);
    return integer(run, zset_add(store_make(run->store, run->arguments[1], KIND_ZSET), member, score));
}

static bool zcard(struct run *run)
{
    return count_items(run, KIND_ZSET);
}

static bool zrem(struct run *run)
{
    return remove_items(run, KIND_ZSET);
}

static bool zscore(struct run *run)
{
    const struct item *item;
    struct key *key;
    char score[40];

    if (!look_up(run, KIND_ZSET, &key))
        return wrong_type(run);
    item = item_find(key, run->arguments[2]);
    if (!item)
        return nothing(run);
    return bulk(run, score, (size_t)snprintf(score, sizeof score, "%.17g", item->score));
}

static bool zrank(struct run *run)
{
    const struct item *item;
    struct key *key;

    if (!look_up(run, KIND_ZSET, &key))
        return wrong_type(run);
    item = item_find(key, run->arguments[2]);
    return item ? integer(run, item - key->items) : nothing(run);
}

/* True if a score is within a bound: "12", "(12", "-inf". */
static bool is_within(struct text bound, double score, bool is_least)
{
    bool is_open = bound.bytes[0] == '(';
    double limit = strtod(bound.bytes + is_open, NULL);

    if (is_open && score == limit)
        return false;
    return is_least ? score >= limit : score <= limit;
}

static void push_members(struct run *run, const struct key *key, int first, int last)
{
    lua_newtable(run->lua);
    for (int i = first, at = 1; i <= last; i++, at++) {
        bulk(run, key->items[i].name, key->items[i].name_length);
        lua_rawseti(run->lua, -2, at);
    }
}

static bool range_by_score(struct run *run, const struct key *key)
{
    int count = key ? key->count : 0, first = 0, last = count - 1;
    int64_t offset = 0, most = count;

    if (run->count == 8 && (!is_integer(run->arguments[6], &offset) || !is_integer(run->arguments[7], &most)))
        return fail(run, "ERR value is not an integer or out of range");
    while (first < count && !is_within(run->arguments[2], key->items[first].score, true))
        first++;
    while (last >= first && !is_within(run->arguments[3], key->items[last].score, false))
        last--;
    first += (int)offset;
    if (most >= 0 && last - first + 1 > most)
        last = first + (int)most - 1;
    push_members(run, key, first, last);
    return true;
}

static bool zrange(struct run *run)
{
    int64_t first, last;
    struct key *key;
    int count;

    if (!look_up(run, KIND_ZSET, &key))
        return wrong_type(run);
    if (run->count >= 5 && is_word(run->arguments[4], "BYSCORE"))
        return range_by_score(run, key);
    if (!is_integer(run->arguments[2], &first) || !is_integer(run->arguments[3], &last))
        return fail(run, "ERR value is not an integer or out of range");
    count = key ? key->count : 0;
    first = first < 0 ? (first + count < 0 ? 0 : first + count) : first;
    last = last < 0 ? last + count : last >= count ? count - 1 : last;
    push_members(run, key, (int)(first < count ? first : count), (int)last);
    return true;
}

/* ---- the rest ---------------------------------------------------------------------------- */

static bool server_time(struct run *run)
{
    char part[24];

    lua_createtable(run->lua, 2, 0);
    bulk(run, part, (size_t)snprintf(part, sizeof part, "%lld", (long long)(run->site->now_us / 1000000)));
    lua_rawseti(run->lua, -2, 1);
    bulk(run, part, (size_t)snprintf(part, sizeof part, "%lld", (long long)(run->site->now_us % 1000000)));
    lua_rawseti(run->lua, -2, 2);
    return true;
}

static bool info(struct run *run)
{
    return bulk(run, run->site->info, strlen(run->site->info));
}

static bool publish(struct run *run)
{
    return integer(run, run->site->publish(run->site->user, run->arguments[1], run->arguments[2]));
}

/* NUMSUB and SHARDNUMSUB: each channel and the number of subscribers. */
static bool pubsub(struct run *run)
{
    if (!is_word(run->arguments[1], "NUMSUB") && !is_word(run->arguments[1], "SHARDNUMSUB"))
        return fail(run, "ERR Unknown subcommand or wrong number of arguments");
    lua_newtable(run->lua);
    for (int i = 2; i < run->count; i++) {
        bulk(run, run->arguments[i].bytes, run->arguments[i].length);
        lua_rawseti(run->lua, -2, 2 * i - 3);
        integer(run, run->site->subscribers(run->site->user, run->arguments[i]));
        lua_rawseti(run->lua, -2, 2 * i - 2);
    }
    return true;
}

/* keys: how many of the words after the name are keys. */
#define ALL COMMAND_ARGUMENTS_MAX

static const struct {
    const char *name;
    int least; /* arguments, with the name */
    int keys;
    bool (*run)(struct run *run);
} commands[] = {
    { "HSET", 4, 1, hset },       { "HMGET", 3, 1, hmget },      { "HGET", 3, 1, hget },
    { "HDEL", 3, 1, hdel },       { "HLEN", 2, 1, hlen },        { "HGETALL", 2, 1, hgetall },
    { "HEXISTS", 3, 1, hexists }, { "PTTL", 2, 1, pttl },        { "PEXPIRE", 3, 1, pexpire },
    { "ZCARD", 2, 1, zcard },     { "ZRANGE", 4, 1, zrange },    { "ZSCORE", 3, 1, zscore },
    { "ZRANK", 3, 1, zrank },     { "ZADD", 4, 1, zadd },        { "ZREM", 3, 1, zrem },
    { "DEL", 2, ALL, del },       { "EXISTS", 2, ALL, exists },  { "TIME", 1, 0, server_time },
    { "PUBLISH", 3, 0, publish }, { "SPUBLISH", 3, 0, publish }, { "PUBSUB", 2, 0, pubsub },
    { "INFO", 1, 0, info },
};

#undef ALL

/* A command on a key that the node may not serve ends a script in its middle. */
static bool is_refused(const struct run *run, int keys)
{
    const struct site *site = run->site;

    if (keys > run->count - 1)
        keys = run->count - 1;
    return keys > 0 && site->is_here && !site->is_here(site->user, run->arguments + 1, keys);
}

bool command_run(lua_State *lua, const struct site *site, int count, const struct text *arguments)
{
    struct run run = { .lua = lua, .site = site, .store = site->store, .count = count, .arguments = arguments };

    run.store->now_ms = site->now_us / 1000;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (!is_word(arguments[0], commands[i].name))
            continue;
        if (count < commands[i].least)
            return fail(&run, "ERR Wrong number of args calling Redis command from script");
        if (is_refused(&run, commands[i].keys))
            return fail(&run, "ERR Script attempted to access a non local key in a cluster node");
        return commands[i].run(&run);
    }
    return fail(&run, "ERR Unknown Redis command called from script");
}

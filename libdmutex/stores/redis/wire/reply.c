/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All readers accept any reply that hiredis can make, even from a server that is not Redis: they check types and
 * lengths before texts and elements.
 */
#include "stores/redis/wire/reply.h"

#include <string.h>

/*
 * The first word of an error decides, because servers change the rest.  Valkey has the same words.  READONLY and
 * MASTERDOWN mean "a replica", MOVED "a Cluster", NOAUTH "restarted with another password": the greeting of a new
 * connection shows which.
 */
static const struct {
    const char *prefix;
    enum dm_error_row row;
} rows[] = {
    { "NOSCRIPT", DM_ROW_SCRIPT },   { "LOADING", DM_ROW_RETRY },       { "BUSY", DM_ROW_RETRY },
    { "UNKILLABLE", DM_ROW_RETRY },  { "TRYAGAIN", DM_ROW_RETRY },      { "CLUSTERDOWN", DM_ROW_RETRY },
    { "NOREPLICAS", DM_ROW_RETRY },  { "MISCONF", DM_ROW_RETRY },       { "MASTERDOWN", DM_ROW_REDISCOVER },
    { "ASK", DM_ROW_RETRY },         { "READONLY", DM_ROW_REDISCOVER }, { "MOVED", DM_ROW_REDISCOVER },
    { "NOAUTH", DM_ROW_REDISCOVER }, { "OOM", DM_ROW_NO_MEMORY },       { "NOPERM", DM_ROW_REFUSED },
    { "WRONGTYPE", DM_ROW_REFUSED }, { "WRONGPASS", DM_ROW_REFUSED },   { "DMSTATE", DM_ROW_REFUSED },
};

/* Refuses by default: repeating a request that the server will refuse again would never end. */
enum dm_error_row dm_reply_row(const redisReply *reply)
{
    size_t word;

    if (reply->type != REDIS_REPLY_ERROR)
        return DM_ROW_NONE;
    word = strcspn(reply->str, " ");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strlen(rows[i].prefix) == word && memcmp(rows[i].prefix, reply->str, word) == 0)
            return rows[i].row;
    }
    return DM_ROW_REFUSED;
}

const char *dm_reply_code(const redisReply *reply, const char *const *codes, size_t count)
{
    size_t word = strcspn(reply->str, " ");

    for (size_t i = 0; i < count; i++) {
        if (strlen(codes[i]) == word && memcmp(codes[i], reply->str, word) == 0)
            return codes[i];
    }
    return NULL;
}

bool dm_reply_is_denial(const redisReply *reply)
{
    static const char *const denials[] = { "NOAUTH", "NOPERM", "WRONGPASS" };

    return reply->type == REDIS_REPLY_ERROR && dm_reply_code(reply, denials, sizeof denials / sizeof denials[0]);
}

const char *dm_reply_refusal(const redisReply *reply)
{
    static const char *const refusals[] = { "WRONGPASS", "NOPERM", "NOAUTH", "ERR" };
    const char *code = dm_reply_code(reply, refusals, sizeof refusals / sizeof refusals[0]);

    return code ? code : "an unknown answer";
}

/* 19 digits always fit into 64 bits.  Unlike strtoull(), refuses a sign, a blank and a hexadecimal digit. */
bool dm_reply_digits(const char *text, size_t length, uint64_t *ret_number)
{
    uint64_t number = 0;

    if (length == 0 || length > 19)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        number = number * 10 + (uint64_t)(text[i] - '0');
    }
    *ret_number = number;
    return true;
}

/* Finds word `index` of a text of words with one space between them.  False if there is none. */
static bool find_word(const redisReply *reply, size_t index, const char **ret_text, size_t *ret_length)
{
    const char *text = reply->str, *end = text + reply->len;

    for (; index > 0; index--) {
        text = memchr(text, ' ', (size_t)(end - text));
        if (!text)
            return false;
        text++;
    }
    end = memchr(text, ' ', (size_t)(end - text)) ?: end;
    *ret_text = text;
    *ret_length = (size_t)(end - text);
    return true;
}

#define HOST_MOST 255

bool dm_reply_is_host(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    }
    return length > 0 && length <= HOST_MOST;
}

/* Reads both types: scripts return numbers above 2^53 as texts, because Lua's numbers are not exact there. */
bool dm_reply_number(const redisReply *reply, size_t index, uint64_t *ret_number)
{
    const redisReply *element;
    const char *text;
    size_t length;

    if (reply->type == REDIS_REPLY_STRING)
        return find_word(reply, index, &text, &length) && dm_reply_digits(text, length, ret_number);
    if (reply->type != REDIS_REPLY_ARRAY || index >= reply->elements)
        return false;
    element = reply->element[index];
    if (element->type == REDIS_REPLY_STRING)
        return dm_reply_digits(element->str, (size_t)element->len, ret_number);
    if (element->type != REDIS_REPLY_INTEGER || element->integer < 0)
        return false;
    *ret_number = (uint64_t)element->integer;
    return true;
}

/* Compares the length, too, because a text of the server may contain a NUL. */
bool dm_reply_is(const redisReply *reply, const char *word)
{
    const redisReply *first;
    const char *text;
    size_t length;

    if (reply->type == REDIS_REPLY_STRING && find_word(reply, 0, &text, &length))
        return length == strlen(word) && memcmp(text, word, length) == 0;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0)
        return false;
    first = reply->element[0];
    return first->type == REDIS_REPLY_STRING && first->len == strlen(word) && memcmp(first->str, word, first->len) == 0;
}

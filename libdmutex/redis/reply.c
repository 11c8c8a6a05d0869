/* SPDX-License-Identifier: BSD-2-Clause */
#include "redis/reply.h"

#include <stdlib.h>
#include <string.h>

/* A renewal of 100 locks answers 101 elements; INFO is some kilobytes. */
#define ELEMENTS_MAX 1024
#define ELEMENTS_OF_REPLY_MAX 4096
#define BUFFERED_MAX (256 * 1024)

static const struct {
    const char *prefix;
    enum dm_error_row row;
} rows[] = {
    { "NOSCRIPT", DM_ROW_SCRIPT },     { "LOADING", DM_ROW_RETRY },    { "BUSY", DM_ROW_RETRY },
    { "UNKILLABLE", DM_ROW_RETRY },    { "TRYAGAIN", DM_ROW_RETRY },   { "CLUSTERDOWN", DM_ROW_RETRY },
    { "NOREPLICAS", DM_ROW_RETRY },    { "MISCONF", DM_ROW_RETRY },    { "MASTERDOWN", DM_ROW_REDISCOVER },
    { "READONLY", DM_ROW_REDISCOVER }, { "MOVED", DM_ROW_REDISCOVER }, { "NOAUTH", DM_ROW_REDISCOVER },
    { "OOM", DM_ROW_NO_MEMORY },       { "NOPERM", DM_ROW_REFUSED },   { "WRONGTYPE", DM_ROW_REFUSED },
    { "WRONGPASS", DM_ROW_REFUSED },   { "DMSTATE", DM_ROW_REFUSED },
};

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

bool dm_reply_number(const redisReply *reply, size_t index, uint64_t *ret_number)
{
    const redisReply *element;

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

bool dm_reply_is(const redisReply *reply, const char *word)
{
    const redisReply *first;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0)
        return false;
    first = reply->element[0];
    return first->type == REDIS_REPLY_STRING && first->len == strlen(word) && memcmp(first->str, word, first->len) == 0;
}

/* hiredis's own functions, except the function that would reserve as much room as a reply announces. */
static redisReplyObjectFunctions capped;

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

static void *(*create_array)(const redisReadTask *, element_count);

/* False if a reply would have more elements than any of ours, in one array or in all. */
static bool is_within_budget(struct dm_reply_budget *budget, element_count elements)
{
    if (elements > ELEMENTS_MAX)
        return false;
    if (budget && elements > 0)
        budget->elements += (size_t)elements;
    return !budget || budget->elements <= ELEMENTS_OF_REPLY_MAX;
}

static void *create_array_capped(const redisReadTask *task, element_count elements)
{
    return is_within_budget(task->privdata, elements) ? create_array(task, elements) : NULL;
}

/* Always the same values, so two threads may write them in any order. */
static void learn_functions(const redisReader *reader)
{
    __atomic_store_n(&create_array, reader->fn->createArray, __ATOMIC_RELAXED);
    capped = *reader->fn;
    capped.createArray = create_array_capped;
}

redisReader *dm_reply_reader_new(void)
{
    static bool is_learned;
    redisReader *reader = redisReaderCreate();

    if (!reader)
        return NULL;
    if (!__atomic_load_n(&is_learned, __ATOMIC_ACQUIRE)) {
        learn_functions(reader);
        __atomic_store_n(&is_learned, true, __ATOMIC_RELEASE);
    }
    reader->fn = &capped;
    return reader;
}

void dm_reply_reader_count(redisReader *reader, struct dm_reply_budget *budget)
{
    *budget = (struct dm_reply_budget){ 0 };
    reader->privdata = budget;
}

bool dm_reply_reader_feed(redisReader *reader, const char *bytes, size_t length)
{
    struct dm_reply_budget *budget = reader->privdata;

    budget->bytes += length;
    return budget->bytes <= BUFFERED_MAX && redisReaderFeed(reader, bytes, length) == REDIS_OK;
}

bool dm_reply_reader_next(redisReader *reader, void **ret_reply)
{
    struct dm_reply_budget *budget = reader->privdata;

    *ret_reply = NULL;
    if (redisReaderGetReply(reader, ret_reply) != REDIS_OK || !dm_reply_reader_is_sane(reader))
        return false;
    if (*ret_reply)
        *budget = (struct dm_reply_budget){ .bytes = reader->len - reader->pos };
    return true;
}

bool dm_reply_reader_is_sane(const redisReader *reader)
{
    return reader->len <= BUFFERED_MAX;
}

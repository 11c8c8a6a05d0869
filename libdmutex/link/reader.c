/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/reader.h"

#include <stdint.h>

/* A renewal of 100 locks answers 101 elements; INFO is some kilobytes. */
#define ELEMENTS_MAX 1024
#define ELEMENTS_OF_REPLY_MAX 4096
#define BUFFERED_MAX (256 * 1024)

/* hiredis's own functions, except the function that would reserve as much room as a reply announces. */
static redisReplyObjectFunctions capped;

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

/* hiredis' own, called by the capped one. */
static void *(*create_array)(const redisReadTask *, element_count);

/* False if a reply would have more elements than any of ours, in one array or in all. */
static bool is_within_limits(struct dm_reader *reader, element_count elements)
{
    if (elements > ELEMENTS_MAX)
        return false;
    if (elements > 0)
        reader->elements += (size_t)elements;
    return reader->elements <= ELEMENTS_OF_REPLY_MAX;
}

/* hiredis calls this before reserving the array: NULL ends the parsing with an error, and the session with it. */
static void *create_array_capped(const redisReadTask *task, element_count elements)
{
    return is_within_limits(task->privdata, elements) ? create_array(task, elements) : NULL;
}

/* Always the same values, so two threads may write them in any order. */
static void learn_functions(const redisReader *hiredis)
{
    __atomic_store_n(&create_array, hiredis->fn->createArray, __ATOMIC_RELAXED);
    capped = *hiredis->fn;
    capped.createArray = create_array_capped;
}

/* The table of functions is shared by all readers and has no lock: a flag, set last, says that the table is whole. */
bool dm_reader_begin(struct dm_reader *reader)
{
    static bool is_learned;
    redisReader *hiredis = redisReaderCreate();

    *reader = (struct dm_reader){ .hiredis = hiredis };
    if (!hiredis)
        return false;
    if (!__atomic_load_n(&is_learned, __ATOMIC_ACQUIRE)) {
        learn_functions(hiredis);
        __atomic_store_n(&is_learned, true, __ATOMIC_RELEASE);
    }
    hiredis->fn = &capped;
    hiredis->privdata = reader;
    return true;
}

/* Frees the half-parsed reply, too; whole replies are the caller's since dm_reader_next(). */
void dm_reader_end(struct dm_reader *reader)
{
    if (reader->hiredis)
        redisReaderFree(reader->hiredis);
    reader->hiredis = NULL;
}

/*
 * Counts the bytes of the present reply, not of the connection: a long-lived connection must not reach the limit by
 * age.
 */
bool dm_reader_feed(struct dm_reader *reader, const char *bytes, size_t length)
{
    reader->bytes += length;
    return reader->bytes <= BUFFERED_MAX && redisReaderFeed(reader->hiredis, bytes, length) == REDIS_OK;
}

/* A whole reply takes its bytes off the budget, and the rest of the buffer belongs to the reply behind. */
bool dm_reader_next(struct dm_reader *reader, redisReply **ret_reply)
{
    redisReader *hiredis = reader->hiredis;
    void *reply = NULL;
    bool is_good = redisReaderGetReply(hiredis, &reply) == REDIS_OK && hiredis->len <= BUFFERED_MAX;

    *ret_reply = reply;
    if (is_good && reply) {
        reader->bytes = hiredis->len - hiredis->pos;
        reader->elements = 0;
    }
    return is_good;
}

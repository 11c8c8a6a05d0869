/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/reader.h"

#include <stdint.h>

struct limits {
    size_t elements, elements_of_reply, bytes;
};

/* A renewal of 100 locks answers 101 elements; INFO is some kilobytes. */
static const struct limits usual = { 1024, 4096, 256 * 1024 };

/* A map has at most 16384 ranges, each with servers of 4 to 8 elements and some hundred bytes. */
static const struct limits of_map = { 16384, 16384 * 64, 16 * 1024 * 1024 };

/*
 * Arrays within arrays.  A map of slots has four levels, all other replies fewer.  From 1.0 on hiredis itself has no
 * limit: it frees a reply by recursion, and so the server could use up our stack.  With at most seven levels hiredis
 * also never needs more than its first nine tasks.
 */
#define LEVELS_MOST 7

/* hiredis's own functions, except the function that would reserve as much room as a reply announces. */
static redisReplyObjectFunctions capped;

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

/* hiredis' own, called by the capped one. */
static void *(*create_array)(const redisReadTask *, element_count);

static const struct limits *limits_of(const struct dm_reader *reader)
{
    return reader->is_map_next ? &of_map : &usual;
}

/* False if a reply would have more elements than any of ours, in one array or in all. */
static bool is_within_limits(struct dm_reader *reader, element_count elements)
{
    const struct limits *limits = limits_of(reader);

    if (elements > 0 && (size_t)elements > limits->elements)
        return false;
    if (elements > 0)
        reader->elements += (size_t)elements;
    return reader->elements <= limits->elements_of_reply;
}

/* Tasks are a stack: the parent of an array is the array around it. */
static bool is_too_deep(const redisReadTask *task)
{
    int levels = 1;

    while (levels <= LEVELS_MOST && (task = task->parent))
        levels++;
    return levels > LEVELS_MOST;
}

/* hiredis calls this before reserving the array: NULL ends the parsing with an error, and the session with it. */
static void *create_array_capped(const redisReadTask *task, element_count elements)
{
    if (is_too_deep(task) || !is_within_limits(task->privdata, elements))
        return NULL;
    return create_array(task, elements);
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

void dm_reader_expect(struct dm_reader *reader, bool is_map)
{
    reader->is_map_next = is_map;
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
    return reader->bytes <= limits_of(reader)->bytes && redisReaderFeed(reader->hiredis, bytes, length) == REDIS_OK;
}

/* A whole reply takes its bytes off the budget, and the rest of the buffer belongs to the reply behind. */
bool dm_reader_next(struct dm_reader *reader, redisReply **ret_reply)
{
    redisReader *hiredis = reader->hiredis;
    void *reply = NULL;
    bool is_good = redisReaderGetReply(hiredis, &reply) == REDIS_OK && hiredis->len <= limits_of(reader)->bytes;

    *ret_reply = reply;
    if (is_good && reply) {
        reader->bytes = hiredis->len - hiredis->pos;
        reader->elements = 0;
    }
    return is_good;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/reader.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/block.h"

struct limits {
    size_t elements, elements_of_reply, bytes;
};

/* The reply to a renewal of 100 locks has 101 elements; INFO has a few kilobytes. */
static const struct limits usual = { 1024, 4096, 256 * 1024 };

/*
 * A map has at most 16384 ranges, each with servers of 4 to 8 elements and about a hundred bytes: 4 MB with three
 * servers each.  This limits the work; the memory is limited by the summary.
 */
static const struct limits of_summary = { 16384, 16384 * 64, 16 * 1024 * 1024 };

/*
 * How deep arrays may be nested.  A map of slots has four levels, all other replies fewer. hiredis has no limit since
 * 1.0, and frees a reply recursively, so a server could exhaust our stack.  With at most seven levels hiredis also
 * never needs more than its first nine tasks.
 */
#define LEVELS_MOST 7

/* Longer arrays are made by hiredis. */
#define BLOCK_ELEMENTS_MOST 16

/* hiredis' functions, but with our own for making a reply; and those that keep nothing of a reply. */
static redisReplyObjectFunctions capped, summing;

#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

/* hiredis' function, called by ours. */
static void *(*create_array)(const redisReadTask *, element_count);
static void *(*create_string)(const redisReadTask *, char *, size_t);
static void *(*create_integer)(const redisReadTask *, long long);
static void *(*create_nil)(const redisReadTask *);

static const struct limits *limits_of(const struct dm_reader *reader)
{
    return reader->kind ? &of_summary : &usual;
}

/* False if a reply would have more elements than any that we can get, in one array or in total. */
static bool is_within_limits(struct dm_reader *reader, element_count elements)
{
    const struct limits *limits = limits_of(reader);

    if (elements > 0 && (size_t)elements > limits->elements)
        return false;
    if (elements > 0)
        reader->elements += (size_t)elements;
    return reader->elements <= limits->elements_of_reply;
}

/* Tasks form a stack: the parent of an array is the array around it. */
static bool is_too_deep(const redisReadTask *task)
{
    int levels = 1;

    while (levels <= LEVELS_MOST && (task = task->parent))
        levels++;
    return levels > LEVELS_MOST;
}

/* ---- replies without malloc() ------------------------------------------------------------ */

/*
 * A reply of the usual calls, in one block (base/block.h): a text, a number, or an array of these, as messages are.
 * What does not fit, or is nested deeper, is an object of hiredis; if it is an element, our reply contains it.
 */
struct block_reply {
    redisReply root; /* first: the block has the reply's address */
    size_t used;     /* of `room` */
    _Alignas(redisReply *) char room[DM_BLOCK_ROOM - sizeof(redisReply) - sizeof(size_t)];
};

_Static_assert(sizeof(struct block_reply) <= DM_BLOCK_ROOM, "a block is too small");

/* NULL: no room is left. */
static void *reserve(struct block_reply *reply, size_t size)
{
    size_t rounded = (size + sizeof(redisReply *) - 1) & ~(sizeof(redisReply *) - 1);
    char *at = reply->room + reply->used;

    if (size > sizeof reply->room || rounded > sizeof reply->room - reply->used)
        return NULL;
    reply->used += rounded;
    return at;
}

/* Begins a reply with `size` bytes of room at *ret_room.  NULL: it does not fit into a block. */
static struct block_reply *begin_reply(int type, size_t size, void *ret_room)
{
    struct block_reply *reply = size < sizeof reply->room ? dm_block_take(sizeof *reply) : NULL;

    if (!dm_block_is(reply)) {
        dm_block_give(reply);
        return NULL;
    }
    reply->root = (redisReply){ .type = type };
    reply->used = 0;
    *(void **)ret_room = reserve(reply, size);
    return reply;
}

/* Adds an element to a reply in a block.  NULL: hiredis must make it. */
static redisReply *add_element(const redisReadTask *task, size_t size, void *ret_room)
{
    struct block_reply *reply;
    redisReply *element;

    if (task->parent->parent || !dm_block_is(task->parent->obj))
        return NULL;
    reply = task->parent->obj;
    element = size <= DM_BLOCK_ROOM ? reserve(reply, sizeof *element + size) : NULL;
    if (!element)
        return NULL;
    *element = (redisReply){ .type = task->type };
    *(void **)ret_room = element + 1;
    reply->root.element[task->idx] = element;
    return element;
}

/* Makes a reply or element with `size` bytes of room at *ret_room. */
static redisReply *make(const redisReadTask *task, size_t size, void *ret_room)
{
    struct block_reply *reply;

    if (task->parent)
        return add_element(task, size, ret_room);
    reply = begin_reply(task->type, size, ret_room);
    return reply ? &reply->root : NULL;
}

/* The other types belong to a protocol version that we do not ask for. */
static bool is_text(int type)
{
    return type == REDIS_REPLY_STRING || type == REDIS_REPLY_STATUS || type == REDIS_REPLY_ERROR;
}

static void *create_text(const redisReadTask *task, char *text, size_t length)
{
    char *room;
    redisReply *reply = is_text(task->type) && length < DM_BLOCK_ROOM ? make(task, length + 1, &room) : NULL;

    if (!reply)
        return create_string(task, text, length);
    memcpy(room, text, length);
    room[length] = '\0';
    reply->str = room;
    reply->len = length;
    return reply;
}

static void *create_number(const redisReadTask *task, long long number)
{
    void *room;
    redisReply *reply = make(task, 0, &room);

    if (!reply)
        return create_integer(task, number);
    reply->integer = number;
    return reply;
}

static void *create_short_array(const redisReadTask *task, size_t elements)
{
    size_t size = elements * sizeof(redisReply *);
    redisReply **room;
    struct block_reply *reply = begin_reply(task->type, size, &room);

    if (!reply)
        return NULL;
    memset(room, 0, size);
    reply->root.elements = elements;
    reply->root.element = room;
    return reply;
}

/* hiredis calls this to make an array: NULL ends the parsing with an error, and so the session. */
static void *create_array_capped(const redisReadTask *task, element_count elements)
{
    void *reply = NULL;

    if (is_too_deep(task) || !is_within_limits(task->privdata, elements))
        return NULL;
    if (!task->parent && task->type == REDIS_REPLY_ARRAY && elements > 0 && (size_t)elements <= BLOCK_ELEMENTS_MOST)
        reply = create_short_array(task, (size_t)elements);
    return reply ? reply : create_array(task, elements);
}

void dm_reply_free(redisReply *reply)
{
    if (!dm_block_is(reply)) {
        if (reply && reply->type == DM_REPLY_SUMMARY)
            free(reply);
        else
            freeReplyObject(reply);
        return;
    }
    for (size_t i = 0; i < reply->elements; i++) {
        if (!dm_block_is(reply->element[i]))
            freeReplyObject(reply->element[i]);
    }
    dm_block_give(reply);
}

/* Called by hiredis to free a half-parsed reply. */
static void free_object(void *reply)
{
    dm_reply_free(reply);
}

/* ---- replies that are not kept ------------------------------------------------------------ */

/*
 * hiredis needs an object for each element while it reads the elements inside, and passes it to nobody else: the
 * summary stands for all of them.
 */
static void *show(const redisReadTask *task, const struct dm_element *element)
{
    const struct dm_reader *reader = task->privdata;
    struct dm_summary *summary = task->parent->obj;

    reader->kind->take(summary, task, element);
    return summary;
}

static void *sum_text(const redisReadTask *task, char *text, size_t length)
{
    if (!task->parent)
        return create_text(task, text, length);
    return show(task, &(struct dm_element){ .type = task->type, .text = text, .length = length });
}

static void *sum_number(const redisReadTask *task, long long number)
{
    if (!task->parent)
        return create_number(task, number);
    return show(task, &(struct dm_element){ .type = task->type, .number = number });
}

static void *sum_nothing(const redisReadTask *task)
{
    if (!task->parent)
        return create_nil(task);
    return show(task, &(struct dm_element){ .type = REDIS_REPLY_NIL });
}

static void *sum_array(const redisReadTask *task, element_count elements)
{
    struct dm_reader *reader = task->privdata;

    if (is_too_deep(task) || !is_within_limits(reader, elements))
        return NULL;
    if (!task->parent)
        return task->type == REDIS_REPLY_ARRAY ? reader->kind->begin() : NULL;
    return show(task, &(struct dm_element){ .type = task->type });
}

#if HIREDIS_MAJOR >= 1
static void *sum_double(const redisReadTask *task, double number, char *text, size_t length)
{
    (void)number;
    return task->parent ? sum_text(task, text, length) : NULL;
}

static void *sum_bool(const redisReadTask *task, int number)
{
    return task->parent ? sum_number(task, number) : NULL;
}
#endif

/* ---- the reader -------------------------------------------------------------------------- */

/* The values are always the same, so two threads may write them in any order. */
static void learn_functions(const redisReader *hiredis)
{
    __atomic_store_n(&create_array, hiredis->fn->createArray, __ATOMIC_RELAXED);
    __atomic_store_n(&create_string, hiredis->fn->createString, __ATOMIC_RELAXED);
    __atomic_store_n(&create_integer, hiredis->fn->createInteger, __ATOMIC_RELAXED);
    __atomic_store_n(&create_nil, hiredis->fn->createNil, __ATOMIC_RELAXED);
    capped = *hiredis->fn;
    capped.createArray = create_array_capped;
    capped.createString = create_text;
    capped.createInteger = create_number;
    capped.freeObject = free_object;
    summing = (redisReplyObjectFunctions)
    {
        .createString = sum_text, .createArray = sum_array, .createInteger = sum_number, .createNil = sum_nothing,
#if HIREDIS_MAJOR >= 1
        .createDouble = sum_double, .createBool = sum_bool,
#endif
        .freeObject = free_object,
    };
}

/* The table of functions is shared by all readers and has no lock: a flag, set last, says that it is complete. */
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

void dm_reader_expect(struct dm_reader *reader, const struct dm_summary_kind *kind)
{
    reader->kind = kind;
    reader->hiredis->fn = kind ? &summing : &capped;
}

/* Frees a half-parsed reply, too; complete ones belong to the caller of dm_reader_next(). */
void dm_reader_end(struct dm_reader *reader)
{
    if (reader->hiredis)
        redisReaderFree(reader->hiredis);
    reader->hiredis = NULL;
}

/*
 * Counts the bytes of the current reply, not of the connection: a long-lived connection must not reach the limit.
 * hiredis holds what is not parsed yet; of a long reply, only the incomplete element.
 */
bool dm_reader_feed(struct dm_reader *reader, const char *bytes, size_t length)
{
    reader->bytes += length;
    return reader->bytes <= limits_of(reader)->bytes && reader->hiredis->len + length <= usual.bytes &&
           redisReaderFeed(reader->hiredis, bytes, length) == REDIS_OK;
}

/* After a complete reply the count begins again: the rest of the buffer belongs to the next reply. */
bool dm_reader_next(struct dm_reader *reader, redisReply **ret_reply)
{
    redisReader *hiredis = reader->hiredis;
    void *reply = NULL;
    bool is_good = redisReaderGetReply(hiredis, &reply) == REDIS_OK;

    *ret_reply = reply;
    if (is_good && reply) {
        reader->bytes = hiredis->len - hiredis->pos;
        reader->elements = 0;
    }
    return is_good;
}

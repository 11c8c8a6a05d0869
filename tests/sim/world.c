/* SPDX-License-Identifier: BSD-2-Clause */
#include "world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct counters counters;

struct event {
    int64_t when_ns;
    uint64_t serial; /* of events at one moment, the first planned comes first */
    world_event what;
    void *object;
    uint64_t number;
};

/* Memory of a run; given out from the beginning of `memory`. */
struct chunk {
    struct chunk *next;
    size_t used, room;
    _Alignas(16) char memory[];
};

#define CHUNK_ROOM (256 * 1024)

static struct {
    int64_t now_ns;
    struct event *heap;
    int count, room;
    uint64_t last_serial;
    uint64_t chance[CHANCE_STREAMS];
    const uint8_t *bytes;
    size_t bytes_left;
    uint64_t hash;
    char breach[400];
    struct chunk *chunks;
    int64_t rate_ppm;
} world;

static bool has_reader;

/* ---- time -------------------------------------------------------------------------------- */

int64_t world_now(void)
{
    return world.now_ns;
}

static bool is_before(const struct event *a, const struct event *b)
{
    return a->when_ns != b->when_ns ? a->when_ns < b->when_ns : a->serial < b->serial;
}

static void swap(int a, int b)
{
    struct event event = world.heap[a];

    world.heap[a] = world.heap[b];
    world.heap[b] = event;
}

void world_at(int64_t when_ns, world_event what, void *object, uint64_t number)
{
    int at = world.count;

    if (world.count == world.room) {
        world.room = world.room ? world.room * 2 : 256;
        world.heap = realloc(world.heap, (size_t)world.room * sizeof *world.heap);
        if (!world.heap)
            abort();
    }
    if (when_ns < world.now_ns)
        when_ns = world.now_ns;
    world.heap[world.count++] = (struct event){ when_ns, ++world.last_serial, what, object, number };
    while (at > 0 && is_before(&world.heap[at], &world.heap[(at - 1) / 2])) {
        swap(at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
}

static void sink(int at)
{
    for (;;) {
        int least = at;

        for (int child = 2 * at + 1; child <= 2 * at + 2; child++) {
            if (child < world.count && is_before(&world.heap[child], &world.heap[least]))
                least = child;
        }
        if (least == at)
            return;
        swap(at, least);
        at = least;
    }
}

bool world_step(int64_t until_ns)
{
    struct event event;

    if (world.count == 0 || world.heap[0].when_ns > until_ns) {
        world.now_ns = until_ns;
        return false;
    }
    event = world.heap[0];
    world.heap[0] = world.heap[--world.count];
    sink(0);
    world.now_ns = event.when_ns;
    counters.events++;
    event.what(event.object, event.number);
    return true;
}

/* ---- chance ------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t word)
{
    word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
    return word ^ word >> 31;
}

static bool take_byte(uint64_t *ret_byte)
{
    if (world.bytes_left == 0)
        return false;
    world.bytes_left--;
    *ret_byte = *world.bytes++;
    return true;
}

uint64_t chance_word(enum chance which)
{
    uint64_t low, high;

    if (take_byte(&low) && take_byte(&high))
        return low | high << 8 | mix(low << 8 | high) << 16;
    world.chance[which] += UINT64_C(0x9e3779b97f4a7c15);
    return mix(world.chance[which]);
}

uint32_t chance_below(enum chance which, uint32_t limit)
{
    return (uint32_t)((chance_word(which) & 0xffffffff) % limit);
}

bool chance_one_in(enum chance which, uint32_t n)
{
    return chance_below(which, n) == 0;
}

int64_t chance_delay(enum chance which, int64_t usual, int64_t most)
{
    uint64_t word = chance_word(which);

    if ((word & 31) == 0)
        return (int64_t)((word >> 8) % (uint64_t)most);
    return usual / 2 + (int64_t)((word >> 8) % (uint64_t)usual);
}

void world_set_rate(int64_t ppm)
{
    world.rate_ppm = ppm;
}

int64_t world_rate(void)
{
    return world.rate_ppm;
}

/* ---- trace ------------------------------------------------------------------------------- */

static void hash_text(const char *text)
{
    for (; *text; text++)
        world.hash = (world.hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
}

void world_note(const char *format, ...)
{
    char line[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    hash_text(line);
    world.hash ^= (uint64_t)world.now_ns;
    if (has_reader)
        fprintf(stderr, "%12.6f %s\n", (double)world.now_ns / 1e6, line);
}

uint64_t world_hash(void)
{
    return world.hash;
}

void world_set_reader(bool is_there)
{
    has_reader = is_there;
}

void world_break(const char *format, ...)
{
    va_list arguments;

    if (world.breach[0])
        return;
    va_start(arguments, format);
    vsnprintf(world.breach, sizeof world.breach, format, arguments);
    va_end(arguments);
    world_note("BREACH %s", world.breach);
}

const char *world_breach(void)
{
    return world.breach;
}

/* ---- beginning and end ------------------------------------------------------------------- */

void world_begin(uint64_t seed, const uint8_t *bytes, size_t length)
{
    world.now_ns = 0;
    world.count = 0;
    world.last_serial = 0;
    world.bytes = bytes;
    world.bytes_left = length;
    world.hash = UINT64_C(14695981039346656037);
    world.breach[0] = '\0';
    world.rate_ppm = 0;
    for (int i = 0; i < CHANCE_STREAMS; i++)
        world.chance[i] = mix(seed * CHANCE_STREAMS + (uint64_t)i + 1);
    counters.runs++;
}

static struct chunk *new_chunk(size_t room)
{
    struct chunk *chunk = malloc(sizeof *chunk + room);

    if (!chunk)
        abort();
    chunk->used = 0;
    chunk->room = room;
    chunk->next = world.chunks;
    world.chunks = chunk;
    return chunk;
}

void *world_new(size_t size)
{
    struct chunk *chunk = world.chunks;
    char *memory;

    size = (size + 15) & ~(size_t)15;
    if (!chunk || chunk->room - chunk->used < size)
        chunk = new_chunk(size > CHUNK_ROOM ? size : CHUNK_ROOM);
    memory = chunk->memory + chunk->used;
    chunk->used += size;
    memset(memory, 0, size);
    return memory;
}

/* Keeps one chunk for the next run. */
void world_end(void)
{
    while (world.chunks && (world.chunks->next || world.chunks->room > CHUNK_ROOM)) {
        struct chunk *next = world.chunks->next;

        free(world.chunks);
        world.chunks = next;
    }
    if (world.chunks)
        world.chunks->used = 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A search through all states that can be reached from a first one.  States are plain bytes of one size, without
 * padding that differs.  Known states are remembered by hashes of 64 bits, among which two of a million are hardly ever
 * the same.
 */
#ifndef UNIT_SEARCH_H
#define UNIT_SEARCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SEARCH_ROOM (1u << 21)

struct search {
    size_t size; /* of a state */
    uint64_t *known;
    unsigned state_count;
    char *stack; /* states whose successors are still to be found */
    size_t stack_count, stack_room;
    bool is_found; /* for the caller */
};

static inline void search_end(struct search *search)
{
    free(search->known);
    free(search->stack);
    *search = (struct search){ 0 };
}

static inline void search_begin(struct search *search, size_t size)
{
    search_end(search);
    search->size = size;
    search->known = calloc(SEARCH_ROOM, sizeof *search->known);
    assert_non_null(search->known);
}

static inline uint64_t search_hash(const struct search *search, const void *state)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < search->size; i++)
        hash = (hash ^ ((const uint8_t *)state)[i]) * UINT64_C(0x100000001b3);
    hash = (hash ^ hash >> 29) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ? hash : 1;
}

/* A state can be reached.  True if it was not known. */
static inline bool search_reach(struct search *search, const void *state)
{
    uint64_t hash = search_hash(search, state);
    unsigned at = (unsigned)(hash >> 40) % SEARCH_ROOM;

    for (; search->known[at]; at = (at + 1) % SEARCH_ROOM) {
        if (search->known[at] == hash)
            return false;
    }
    assert_true(++search->state_count < SEARCH_ROOM / 4 * 3);
    search->known[at] = hash;
    if (search->stack_count == search->stack_room) {
        search->stack_room = search->stack_room ? 2 * search->stack_room : 1024;
        search->stack = realloc(search->stack, search->stack_room * search->size);
        assert_non_null(search->stack);
    }
    memcpy(search->stack + search->stack_count++ * search->size, state, search->size);
    return true;
}

/* Takes a state whose successors are still to be found.  False: there is none left. */
static inline bool search_next(struct search *search, void *ret_state)
{
    if (!search->stack_count)
        return false;
    memcpy(ret_state, search->stack + --search->stack_count * search->size, search->size);
    return true;
}

#endif

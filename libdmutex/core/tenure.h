/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A tenure: one hold at the store, as the threads of this process use it one after another.
 *
 * The word says which thread is inside.  While it is OPEN, threads enter and leave by one swap each, without the state
 * lock (process/claims/fast.h).  All other changes are made under the state lock, and begin with dm_tenure_close():
 * from then on the word is the caller's until dm_tenure_publish().
 *
 * Rules for the fast path:
 *
 * 1. The thread swaps first, then reads the clock, then the name, then counts.  A check before the swap proves nothing:
 *    between check and swap the hold may be lost, and another tenure be kept.
 *
 * 2. A lost tenure stays with the thread inside: its word and clock are not used for another hold before that thread
 *    has come by under the state lock.
 *
 * 3. A tenure is never freed.  A thread may read the table of tenures, pause, and then swap the word of a tenure that
 *    now serves another name: rule 1 detects this, and the thread leaves at once, or else puts the word back under the
 *    state lock.
 *
 * Pure: no clock, no lock.  Fields marked "atomic" are read by threads without the state lock.
 */
#ifndef DM_CORE_TENURE_H
#define DM_CORE_TENURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/hold.h"

/* The holds of one tenure are numbered from 0 to this; a hold's fencing token ends with its number. */
#define DM_TENURE_NUMBER_MAX ((1u << DM_TOKEN_SHIFT) - 1)

/* The bound while another process waits (I13): this many more holds, within this time. */
#define DM_TENURE_HOLDS_MORE 64u
#define DM_TENURE_NS_MORE (10 * DM_NS_PER_MS)

#define DM_TENURE_NEVER_KEPT UINT32_MAX

/* The two low bits of a word. */
enum {
    DM_TENURE_OPEN = 1, /* a thread may enter without the state lock if nobody is inside */
    DM_TENURE_LOOK = 2  /* the thread inside must leave under the state lock */
};
#define DM_TENURE_SHIFT 2

/* Names are compared in pieces of this size. */
#define DM_TENURE_WORD sizeof(uint64_t)

struct dm_tenure {
    uint64_t word;      /* atomic: serial of the thread inside << 2, and the two bits */
    int64_t until_ns;   /* atomic: threads may be inside until then; lowered while another process waits */
    uint32_t last;      /* atomic: the highest number that may be given; lowered while another process waits */
    uint32_t number;    /* atomic; written by the thread that enters */
    uint32_t depth;     /* atomic; written by the thread inside: how often it must unlock */
    uint32_t lease_ms;  /* as in the first object */
    int64_t left_ns;    /* atomic; written by the thread that leaves */
    const char *key;    /* of the name, for a thread inside; followed by zeros to the end of the name's last word */
    uint32_t name_size; /* of the name with its NUL, rounded up to whole words */
    uint32_t hash; /* atomic: of the key; checked before a swap, so that another name in the same place is left alone */

    /* Under the state lock. */
    struct dm_hold *hold;   /* the claim's; NULL: in the pool */
    struct dm_tenure *next; /* in the pool */
    uint32_t linger_ms;     /* the longest that an object has asked for */
    uint32_t kept_number;   /* the number of the hold after which the tenure was first kept */
    int64_t bound_ns;       /* the end of the bound, which `last` has, too; DM_NEVER: no other process waits */
} __attribute__((__aligned__(64)));

/* The size of a name with its NUL, rounded up to whole words. */
size_t dm_tenure_name_size(const char *name);

/* Starts a tenure for the hold of a claim: closed, with nobody inside. */
void dm_tenure_init(struct dm_tenure *tenure, struct dm_hold *hold, const char *key, uint32_t hash, uint32_t lease_ms);

/* Another process waits: starts the bound, unless it has begun. */
void dm_tenure_bound(struct dm_tenure *tenure, int64_t now_ns);

/* True if no more threads may enter: the numbers are used up, or the bound is reached. */
bool dm_tenure_is_over(const struct dm_tenure *tenure, int64_t now_ns);

/* ---- the word ---------------------------------------------------------------------------- */

/* Takes the word for a section under the state lock.  Returns the serial of the thread inside; 0: nobody. */
static inline uint64_t dm_tenure_close(struct dm_tenure *tenure)
{
    return __atomic_and_fetch(&tenure->word, ~(uint64_t)(DM_TENURE_OPEN | DM_TENURE_LOOK), __ATOMIC_ACQ_REL) >>
           DM_TENURE_SHIFT;
}

/*
 * The thread inside at this moment.  Reliable for the calling thread itself, and for any thread while the word is
 * closed.
 */
static inline uint64_t dm_tenure_inside(const struct dm_tenure *tenure)
{
    return __atomic_load_n(&tenure->word, __ATOMIC_ACQUIRE) >> DM_TENURE_SHIFT;
}

/* Sets the word of a closed tenure, and so may open it. */
static inline void dm_tenure_publish(struct dm_tenure *tenure, uint64_t thread, unsigned bits)
{
    __atomic_store_n(&tenure->word, thread << DM_TENURE_SHIFT | bits, __ATOMIC_RELEASE);
}

/* Atomic, because the loop thread reads the numbers while a thread is inside. */
static inline uint32_t dm_tenure_number(const struct dm_tenure *tenure)
{
    return __atomic_load_n(&tenure->number, __ATOMIC_RELAXED);
}

static inline uint32_t dm_tenure_depth(const struct dm_tenure *tenure)
{
    return __atomic_load_n(&tenure->depth, __ATOMIC_RELAXED);
}

static inline void dm_tenure_set_depth(struct dm_tenure *tenure, uint32_t depth)
{
    __atomic_store_n(&tenure->depth, depth, __ATOMIC_RELAXED);
}

#endif

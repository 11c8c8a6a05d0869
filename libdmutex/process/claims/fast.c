/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/claims/fast.h"

#include <stdlib.h>

#include "base/rank.h"

/* How many tenures are allocated at a time. */
#define POOL_STEP 16

/* Never freed; the list is for dm_fast_fork_child(). */
struct block {
    struct block *next;
    struct dm_tenure tenures[POOL_STEP];
};

struct dm_tenure *dm_fast_table[DM_FAST_PLACES];

/* Guarded by the state lock. */
static struct dm_tenure *pool;
static struct block *blocks;

/* FNV-1a */
uint32_t dm_fast_hash(const char *key)
{
    uint32_t hash = 2166136261u;

    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * 16777619u;
    return hash ? hash : 1;
}

static void fill_pool(void)
{
    struct block *fresh = aligned_alloc(_Alignof(struct block), sizeof *fresh);

    if (!fresh)
        return;
    memset(fresh, 0, sizeof *fresh);
    fresh->next = blocks;
    blocks = fresh;
    for (int i = 0; i < POOL_STEP; i++) {
        fresh->tenures[i].next = pool;
        pool = &fresh->tenures[i];
    }
}

struct dm_tenure *dm_fast_take(void)
{
    struct dm_tenure *tenure;

    dm_assert_held(DM_RANK_STATE);
    if (!pool)
        fill_pool();
    tenure = pool;
    if (tenure)
        pool = tenure->next;
    return tenure;
}

void dm_fast_return(struct dm_tenure *tenure)
{
    dm_assert_held(DM_RANK_STATE);
    dm_fast_hide(tenure);
    dm_tenure_publish(tenure, 0, 0);
    tenure->hold = NULL;
    tenure->next = pool;
    pool = tenure;
}

static struct dm_tenure **place_of(const struct dm_tenure *tenure)
{
    return &dm_fast_table[tenure->hash % DM_FAST_PLACES];
}

void dm_fast_show(struct dm_tenure *tenure)
{
    dm_assert_held(DM_RANK_STATE);
    __atomic_store_n(place_of(tenure), tenure, __ATOMIC_RELEASE);
}

void dm_fast_hide(struct dm_tenure *tenure)
{
    struct dm_tenure **place = place_of(tenure);

    dm_assert_held(DM_RANK_STATE);
    if (__atomic_load_n(place, __ATOMIC_RELAXED) == tenure)
        __atomic_store_n(place, NULL, __ATOMIC_RELEASE);
}

/*
 * A signal handler may have forked in the middle of dm_fast_lock(): the thread then finds a word that it cannot swap,
 * or a hold that is over.  No tenure is reused, because the thread could take the next use for its own.
 */
void dm_fast_fork_child(void)
{
    memset(dm_fast_table, 0, sizeof dm_fast_table);
    for (struct block *block = blocks; block; block = block->next) {
        for (int i = 0; i < POOL_STEP; i++) {
            struct dm_tenure *tenure = &block->tenures[i];

            tenure->hold = NULL;
            __atomic_store_n(&tenure->until_ns, 0, __ATOMIC_RELAXED);
            dm_tenure_publish(tenure, 0, 0);
        }
    }
    pool = NULL;
    blocks = NULL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What has come from links, on any thread, until the next turn: a list without a lock, and a bell for whoever polls.
 */
#include <pthread.h>

#include "base/descriptor.h"
#include "stores/redis/registers/parts.h"

/*
 * The thread in a turn looks at everything before it leaves.  The flag is set after the bell rings, so that no bell
 * rings for ever.
 */
void dm_rr_ring(struct dm_rr *rr)
{
    if (__atomic_load_n(&rr->worker, __ATOMIC_RELAXED) == (uintptr_t)pthread_self() ||
        __atomic_load_n(&rr->is_rung, __ATOMIC_SEQ_CST))
        return;
    dm_bell_ring(&rr->bell);
    __atomic_store_n(&rr->is_rung, true, __ATOMIC_SEQ_CST);
}

void dm_rr_push(struct dm_rr *rr, struct dm_rr_arrival *arrival)
{
    arrival->next = __atomic_load_n(&rr->arrivals, __ATOMIC_RELAXED);
    while (
        !__atomic_compare_exchange_n(&rr->arrivals, &arrival->next, arrival, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        continue;
    dm_rr_ring(rr);
}

/* All that has come, the oldest first. */
struct dm_rr_arrival *dm_rr_take_arrivals(struct dm_rr *rr)
{
    struct dm_rr_arrival *newest = __atomic_exchange_n(&rr->arrivals, NULL, __ATOMIC_SEQ_CST), *oldest = NULL;

    while (newest) {
        struct dm_rr_arrival *next = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

/* Clears the flag before it looks: whoever found the flag set has pushed before that. */
void dm_rr_begin_work(struct dm_rr *rr)
{
    __atomic_store_n(&rr->worker, (uintptr_t)pthread_self(), __ATOMIC_RELAXED);
    if (!__atomic_load_n(&rr->is_rung, __ATOMIC_SEQ_CST))
        return;
    dm_bell_answer(&rr->bell);
    __atomic_store_n(&rr->is_rung, false, __ATOMIC_SEQ_CST);
}

void dm_rr_end_work(struct dm_rr *rr)
{
    __atomic_store_n(&rr->worker, 0, __ATOMIC_RELAXED);
}

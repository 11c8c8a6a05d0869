/* SPDX-License-Identifier: BSD-2-Clause */
#include "chain.h"

#include <string.h>

static bool is_thread(const struct dm_seen_waiter *waiter, const dmutex_info_t *holder)
{
    return waiter->thread == holder->thread && strcmp(waiter->owner, holder->owner) == 0;
}

const struct seen *chain_next(const struct gathered *gathered, const struct seen *held)
{
    for (size_t i = 0; i < gathered->count; i++) {
        const struct seen *seen = &gathered->seen[i];

        for (int j = 0; j < seen->data.waiter_count && !seen_is_condition(seen); j++)
            if (held->data.info.shown.locked && is_thread(&seen->waiters[j], &held->data.info.shown))
                return seen;
    }
    return NULL;
}

/* Inserts a chain of one name before those with shorter waits.  If there is no room, the last one is dropped. */
static int insert(struct chain *chains, int count, int room, struct chain chain)
{
    int at = count;

    while (at > 0 && chains[at - 1].waiter->waited_ms < chain.waiter->waited_ms)
        at--;
    if (at == room)
        return count;
    count += count < room;
    memmove(&chains[at + 1], &chains[at], (size_t)(count - at - 1) * sizeof *chains);
    chains[at] = chain;
    return count;
}

static bool has_name(const struct chain *chain, const struct seen *name)
{
    for (int i = 0; i < chain->count; i++)
        if (chain->names[i] == name)
            return true;
    return false;
}

static void follow(const struct gathered *gathered, struct chain *chain)
{
    const struct seen *next = chain_next(gathered, chain->names[0]);

    while (next && chain->count < CHAIN_MOST && !has_name(chain, next)) {
        chain->names[chain->count++] = next;
        next = chain_next(gathered, next);
    }
    chain->is_circle = next && has_name(chain, next);
}

/*
 * Waiters on conditions are left out: they wait for a signal, which no known thread owes.  So are silent ones, which
 * may be dead.
 */
int chain_find(const struct gathered *gathered, struct chain *ret_chains, int room)
{
    int count = 0;

    for (size_t i = 0; i < gathered->count; i++) {
        const struct seen *seen = &gathered->seen[i];

        for (int j = 0; j < seen->data.waiter_count && !seen_is_condition(seen); j++)
            if (!seen_is_silent(&seen->waiters[j]))
                count = insert(ret_chains, count, room,
                               (struct chain){ .waiter = &seen->waiters[j], .names = { seen }, .count = 1 });
    }
    for (int i = 0; i < count; i++)
        follow(gathered, &ret_chains[i]);
    return count;
}

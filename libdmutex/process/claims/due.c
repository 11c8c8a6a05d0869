/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/claims/due.h"

#include "base/minmax.h"
#include "base/rank.h"
#include "process/claims/registry.h"

/*
 * Every order has room for all claims, taken when a claim is made.  So putting a claim into an order later cannot fail,
 * and no loss is missed for lack of memory.
 */
bool dm_due_reserve(struct dm_registry *registry, size_t claims)
{
    dm_assert_held(DM_RANK_STATE);
    for (enum dm_want want = 0; want < DM_DUE_WANTS; want++) {
        if (!dm_order_reserve(&registry->due[want], claims))
            return false;
    }
    return true;
}

/*
 * Called after each step of the claim's hold.  An order that does not change costs a comparison; taking out what is not
 * there costs nothing.
 */
int64_t dm_due_plan(struct dm_registry *registry, struct dm_claim *claim)
{
    int64_t next_ns = DM_NEVER;

    dm_assert_held(DM_RANK_STATE);
    for (enum dm_want want = 0; want < DM_DUE_WANTS; want++) {
        int64_t due_ns = dm_hold_due_ns(&claim->hold, want);

        if (due_ns != DM_NEVER)
            dm_order_put(&registry->due[want], &claim->due[want], due_ns);
        else
            dm_order_remove(&registry->due[want], &claim->due[want]);
        next_ns = dm_min64(next_ns, due_ns);
    }
    return next_ns;
}

void dm_due_remove(struct dm_registry *registry, struct dm_claim *claim)
{
    dm_assert_held(DM_RANK_STATE);
    for (enum dm_want want = 0; want < DM_DUE_WANTS; want++)
        dm_order_remove(&registry->due[want], &claim->due[want]);
}

/* A claim has its moments in an array indexed by want, so the want leads to the start of the array. */
static struct dm_claim *claim_of(struct dm_moment *moment, enum dm_want want)
{
    return (struct dm_claim *)((char *)(moment - want) - offsetof(struct dm_claim, due));
}

/*
 * An order may give too early a time, because not every change plans the claim again.  So the first claim is planned
 * again before it counts, and stays first or moves back.
 */
struct dm_claim *dm_due_first(struct dm_registry *registry, enum dm_want want, int64_t until_ns)
{
    const struct dm_order *order = &registry->due[want];
    struct dm_moment *first;

    dm_assert_held(DM_RANK_STATE);
    while ((first = dm_order_first(order)) != NULL && first->due_ns <= until_ns) {
        struct dm_claim *claim = claim_of(first, want);

        dm_due_plan(registry, claim);
        if (dm_order_first(order) == first && first->due_ns <= until_ns)
            return claim;
    }
    return NULL;
}

/* Plans nothing again: a time that is too early costs the loop one useless turn. */
int64_t dm_due_next_ns(const struct dm_registry *registry, enum dm_want want)
{
    const struct dm_moment *first = dm_order_first(&registry->due[want]);

    dm_assert_held(DM_RANK_STATE);
    return first ? first->due_ns : DM_NEVER;
}

bool dm_due_is_any(const struct dm_registry *registry, enum dm_want want)
{
    dm_assert_held(DM_RANK_STATE);
    return dm_order_first(&registry->due[want]) != NULL;
}

void dm_due_clear(struct dm_registry *registry)
{
    for (enum dm_want want = 0; want < DM_DUE_WANTS; want++)
        dm_order_clear(&registry->due[want]);
}

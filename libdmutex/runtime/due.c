/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtime/due.h"

#include "base/rank.h"
#include "runtime/registry.h"

bool dm_due_reserve(struct dm_registry *registry, size_t claims)
{
    for (int kind = 0; kind < DM_DUE_KINDS; kind++) {
        if (!dm_order_reserve(&registry->due[kind], claims))
            return false;
    }
    return true;
}

/* False if the kind does not concern the claim. */
static bool find_moment(const struct dm_claim *claim, enum dm_due_kind kind, int64_t *ret_due_ns)
{
    const struct dm_attempt *attempt = &claim->attempt;

    switch (kind) {
    case DM_DUE_END:
        *ret_due_ns = dm_attempt_end_ns(attempt);
        return attempt->phase == DM_HELD;
    case DM_DUE_RENEWAL:
        *ret_due_ns = attempt->renew_ns;
        return attempt->phase == DM_HELD;
    case DM_DUE_POLL:
        *ret_due_ns = attempt->poll_ns;
        return dm_attempt_is_waiting(attempt);
    case DM_DUE_RELEASE:
        *ret_due_ns = claim->owed_due_ns; /* DM_NEVER while the release is on its way */
        return claim->is_owed && !claim->is_loss_untold;
    default:
        *ret_due_ns = 0;
        return claim->is_loss_untold;
    }
}

void dm_due_plan(struct dm_registry *registry, struct dm_claim *claim)
{
    dm_assert_held(DM_RANK_STATE);
    for (int kind = 0; kind < DM_DUE_KINDS; kind++) {
        int64_t due_ns;

        if (find_moment(claim, kind, &due_ns))
            dm_order_put(&registry->due[kind], &claim->due[kind], due_ns);
        else
            dm_order_remove(&registry->due[kind], &claim->due[kind]);
    }
}

void dm_due_remove(struct dm_registry *registry, struct dm_claim *claim)
{
    for (int kind = 0; kind < DM_DUE_KINDS; kind++)
        dm_order_remove(&registry->due[kind], &claim->due[kind]);
}

static struct dm_claim *claim_of(struct dm_moment *moment, enum dm_due_kind kind)
{
    return (struct dm_claim *)((char *)(moment - kind) - offsetof(struct dm_claim, due));
}

struct dm_claim *dm_due_first(struct dm_registry *registry, enum dm_due_kind kind, int64_t until_ns)
{
    const struct dm_order *order = &registry->due[kind];
    struct dm_moment *first;

    dm_assert_held(DM_RANK_STATE);
    while ((first = dm_order_first(order)) != NULL && first->due_ns <= until_ns) {
        struct dm_claim *claim = claim_of(first, kind);

        dm_due_plan(registry, claim);
        if (dm_order_first(order) == first && first->due_ns <= until_ns)
            return claim;
    }
    return NULL;
}

int64_t dm_due_next_ns(const struct dm_registry *registry, enum dm_due_kind kind)
{
    const struct dm_moment *first = dm_order_first(&registry->due[kind]);

    return first ? first->due_ns : DM_NEVER;
}

bool dm_due_is_any(const struct dm_registry *registry, enum dm_due_kind kind)
{
    return dm_order_first(&registry->due[kind]) != NULL;
}

void dm_due_clear(struct dm_registry *registry)
{
    for (int kind = 0; kind < DM_DUE_KINDS; kind++)
        dm_order_clear(&registry->due[kind]);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/tenure.h"

#include <string.h>

#include "base/units.h"

size_t dm_tenure_name_size(const char *name)
{
    return (strlen(name) / DM_TENURE_WORD + 1) * DM_TENURE_WORD;
}

void dm_tenure_init(struct dm_tenure *tenure, struct dm_hold *hold, const char *key, uint32_t hash, uint32_t lease_ms)
{
    tenure->hold = hold;
    tenure->key = key;
    tenure->name_size = dm_tenure_name_size(key + 1);
    __atomic_store_n(&tenure->hash, hash, __ATOMIC_RELAXED);
    tenure->lease_ms = lease_ms;
    tenure->linger_ms = 0;
    tenure->kept_number = DM_TENURE_NEVER_KEPT;
    tenure->bound_ns = DM_NEVER;
    __atomic_store_n(&tenure->until_ns, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&tenure->last, DM_TENURE_NUMBER_MAX, __ATOMIC_RELAXED);
    __atomic_store_n(&tenure->number, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&tenure->left_ns, 0, __ATOMIC_RELAXED);
    dm_tenure_set_depth(tenure, 1);
}

void dm_tenure_bound(struct dm_tenure *tenure, int64_t now_ns)
{
    uint32_t more = dm_tenure_number(tenure) + DM_TENURE_HOLDS_MORE;

    if (tenure->bound_ns != DM_NEVER)
        return;
    tenure->bound_ns = now_ns + DM_TENURE_NS_MORE;
    if (more < DM_TENURE_NUMBER_MAX)
        __atomic_store_n(&tenure->last, more, __ATOMIC_RELAXED);
}

bool dm_tenure_is_over(const struct dm_tenure *tenure, int64_t now_ns)
{
    return dm_tenure_number(tenure) >= __atomic_load_n(&tenure->last, __ATOMIC_RELAXED) || now_ns >= tenure->bound_ns;
}

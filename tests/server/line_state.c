/* SPDX-License-Identifier: BSD-2-Clause */
#include "line_state.h"

#include <stdio.h>

#include "base/clock.h"
#include "process/life/runtime.h"

static void read_claim(const struct dm_claim *claim, struct line_state *ret_state)
{
    ret_state->has_claim = true;
    ret_state->phase = claim->hold.phase;
    ret_state->is_bounded = claim->tenure->bound_ns != DM_NEVER;
    ret_state->is_over = dm_tenure_is_over(claim->tenure, dm_clock_boot_ns());
}

struct line_state line_state_of(const char *name)
{
    struct line_state state = { .seats = 0 };
    struct dm_runtime *runtime = dm_runtime_peek();
    struct dm_name *record;
    char key[256];

    snprintf(key, sizeof key, "n%s", name);
    dm_state_lock();
    record = dm_registry_find(&runtime->registry, key);
    for (const struct dm_seat *seat = record ? record->line.first : NULL; seat; seat = seat->next)
        state.seats++;
    if (record) {
        state.is_starving = record->line.is_starving;
        if (record->line.tenure)
            read_claim(dm_claim_of(record->line.tenure), &state);
    }
    dm_state_unlock();
    return state;
}

int seats_of(const char *name)
{
    return line_state_of(name).seats;
}

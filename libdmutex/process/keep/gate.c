/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/keep/gate.h"

struct dm_mutex dm_gate = DM_MUTEX_INITIALIZER(DM_RANK_GATE);

/* The thread holds no lock of the library in the callback. */
void dm_gate_leave(void)
{
    dm_assert_held(DM_RANK_GATE);
    dm_mutex_unlock(&dm_gate);
}

void dm_gate_enter(void)
{
    dm_mutex_lock(&dm_gate);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An idle process closes its connection: at many stores each costs the server a process, and their number is limited.
 * Its sessions end before, so nobody finds them silent later.
 */
#include "base/minmax.h"
#include "base/units.h"
#include "registers/store_parts.h"

/* Without a question for so long, and without a claim, the process is idle. */
#define IDLE_NS (60 * DM_NS_PER_S)

void dm_registers_note_use(struct dm_registers *registers)
{
    dm_assert_held(DM_RANK_REGISTERS);
    registers->used_ns = dm_clock_boot_ns();
    registers->is_idle = false;
}

/* Attempts that wait or hold, releases that are owed, and whatever is under way. */
static bool has_work(const struct dm_registers *registers)
{
    if (registers->busy || registers->requests || registers->renewals || registers->sweep.is_under_way)
        return true;
    for (unsigned i = 0; i < DM_REG_BUCKETS; i++) {
        if (registers->attempts[i])
            return true;
    }
    return false;
}

static bool has_sessions(const struct dm_registers *registers)
{
    for (const struct dm_reg_own *own = registers->owns; own; own = own->next) {
        if (own->session.sent > 0 && own->session.phase != DM_REG_SESSION_OVER)
            return true;
    }
    return false;
}

int64_t dm_registers_run_rest(struct dm_registers *registers)
{
    int64_t now_ns = dm_clock_boot_ns(), idle_ns = registers->used_ns + IDLE_NS;

    if (!registers->is_ready)
        return DM_NEVER;
    if (now_ns < idle_ns)
        return idle_ns;
    if (registers->is_needed || has_work(registers))
        return now_ns + IDLE_NS;
    if (!registers->is_idle || has_sessions(registers)) {
        bool is_first = !registers->is_idle;

        registers->is_idle = true; /* the sessions end in the next turn */
        return is_first ? now_ns : now_ns + DM_NS_PER_S;
    }
    registers->driver->ops->rest(registers->driver);
    registers->is_connected = registers->is_ready = registers->is_inbox_open = registers->is_idle = false;
    registers->is_resting = true;
    registers->tells_change = true;
    return DM_NEVER;
}

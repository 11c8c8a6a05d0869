/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/claims/alarm.h"

#include "base/descriptor.h"
#include "base/poll.h"
#include "base/rank.h"
#include "process/claims/registry.h"

__thread bool dm_alarm_is_own;

/* Rings only for an earlier time: most steps of a claim plan a later one, and must not cost a context switch. */
void dm_alarm_set(struct dm_alarm *alarm, int64_t due_ns)
{
    dm_assert_held(DM_RANK_STATE);
    if (due_ns >= alarm->due_ns)
        return;
    alarm->due_ns = due_ns;
    dm_alarm_ring(alarm);
}

/* Called by the loop thread, which needs no bell: it checks due_ns again before it sleeps. */
void dm_alarm_reset(struct dm_alarm *alarm, int64_t due_ns)
{
    dm_assert_held(DM_RANK_STATE);
    alarm->due_ns = due_ns;
}

/* The bell is a counter, so a ring between the plan and the poll is not lost. */
void dm_alarm_ring(struct dm_alarm *alarm)
{
    if (!dm_alarm_is_own)
        dm_bell_ring(&alarm->bell);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wakes the loop thread when the pump is due, or at once.  The loop has one alarm for its lifetime
 * (process/keep/loop.h), which any thread may use.
 */
#ifndef DM_PROCESS_CLAIMS_ALARM_H
#define DM_PROCESS_CLAIMS_ALARM_H

#include <stdbool.h>
#include <stdint.h>

struct dm_alarm {
    int bell;       /* dm_alarm_ring() rings it */
    int64_t due_ns; /* when the pump runs next; guarded by dm_state_lock() */
};

/* True in the loop thread, which needs no waking: it plans again before it sleeps. */
extern __thread bool dm_alarm_is_own;

/* The pump must run at due_ns at the latest (DM_NEVER: no limit).  State lock held. */
void dm_alarm_set(struct dm_alarm *alarm, int64_t due_ns);

/* The next run of the pump was planned for due_ns; the loop thread.  State lock held. */
void dm_alarm_reset(struct dm_alarm *alarm, int64_t due_ns);

/* The connections have something new to say.  Any thread. */
void dm_alarm_ring(struct dm_alarm *alarm);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/calls/wait.h"

#include <pthread.h>

#include "base/rank.h"
#include "base/self.h"
#include "process/claims/ending.h"

/* How long a thread waits for the inbox before it tries to lock without it. */
#define INBOX_NS DM_NS_PER_S

/* The longest pause between tries while the server answers that it is not ready. */
#define PAUSE_MAX_NS (200 * DM_NS_PER_MS)

bool dm_wait_make_claim(struct dm_wait *wait)
{
    dm_assert_held(DM_RANK_STATE);
    wait->claim = dm_registry_claim(&wait->runtime->registry, wait->name, wait->target->lease_ms,
                                    wait->target->maxhold_ms, wait->target->is_robust);
    return wait->claim != NULL;
}

void dm_wait_rest(struct dm_wait *wait)
{
    struct dm_deadline until = dm_deadline_sooner(&wait->patience, wait->pause_ns);

    dm_self_sleep(dm_self_get(), &until);
    wait->pause_ns = wait->pause_ns * 2 < PAUSE_MAX_NS ? wait->pause_ns * 2 : PAUSE_MAX_NS;
}

enum dm_phase dm_wait_phase(struct dm_wait *wait)
{
    enum dm_phase phase;

    dm_ending_lock(wait->runtime);
    phase = wait->claim->hold.phase;
    dm_state_unlock();
    return phase;
}

void dm_wait_for_inbox(struct dm_wait *wait, const struct dm_name *name)
{
    struct dm_store *store = wait->runtime->store;
    struct dm_deadline until = dm_deadline_sooner(&wait->patience, INBOX_NS);

    dm_assert_held(DM_RANK_STATE);
    dm_state_unlock();
    if (!dm_store_await_able(store, name->place, DM_TELLS, &until))
        dm_store_reason(store, name->place, DM_TELLS, wait->reason);
    dm_ending_lock(wait->runtime);
}

void dm_wait_open_inbox(struct dm_wait *wait)
{
    struct dm_runtime *runtime = wait->runtime;
    struct dm_name *name = dm_registry_find(&runtime->registry, wait->target->key);

    dm_assert_held(DM_RANK_STATE);
    if (!name || dm_store_is_able(runtime->store, name->place, DM_TELLS))
        return;
    dm_registry_pin(name);
    dm_wait_for_inbox(wait, name);
    dm_registry_unpin(&runtime->registry, name);
}

bool dm_wait_is_server_gone(struct dm_wait *wait)
{
    if (wait->is_pledged || !wait->runtime->settings.fails_when_down || !wait->deadline.is_endless)
        return false;
    wait->looks_in_vain =
        dm_store_is_able(wait->runtime->store, wait->name->place, DM_ASKS) ? 0 : wait->looks_in_vain + 1;
    if (wait->looks_in_vain < 2)
        return false;
    dm_store_reason(wait->runtime->store, wait->name->place, DM_ASKS, wait->reason);
    return true;
}

bool dm_wait_sleep(struct dm_wait *wait, const struct dm_deadline *until)
{
    return dm_store_sleep(wait->runtime->store, wait->name->place, DM_TELLS, until, PTHREAD_CANCEL_DISABLE);
}

struct dm_deadline dm_wait_limit(const struct dm_wait *wait)
{
    if (wait->deadline.is_endless && wait->runtime->settings.fails_when_down)
        return dm_runtime_call_deadline(wait->runtime);
    return wait->deadline;
}

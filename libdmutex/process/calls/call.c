/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/calls/call.h"

#include "base/rank.h"
#include "process/claims/steps.h"

/*
 * The request has pins of its own: when the answer comes the claim may be gone, and its name with it, but not the keys
 * that the store is using.
 */
void dm_call_begin(struct dm_call *call, struct dm_runtime *runtime, struct dm_claim *claim, enum dm_op op,
                   struct dm_request request)
{
    dm_assert_held(DM_RANK_STATE);
    call->runtime = runtime;
    call->name = claim->name;
    call->condition = claim->condition;
    call->question = dm_step_question(claim, op, request);
    dm_registry_pin(call->name);
    if (call->condition)
        dm_registry_pin(call->condition);
    dm_state_unlock();
}

/* The caller looks the claim up again by its attempt, because any step may have freed it in the meantime. */
void dm_call_return(struct dm_call *call)
{
    struct dm_registry *registry = &call->runtime->registry;

    dm_state_lock();
    dm_registry_unpin(registry, call->name);
    if (call->condition)
        dm_registry_unpin(registry, call->condition);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/claims/ending.h"

#include "base/rank.h"
#include "base/self.h"
#include "process/claims/claim.h"
#include "process/claims/fast.h"
#include "process/claims/steps.h"

/* A line's hold may have gone to another thread, or to none, since the claim was this thread's. */
static void end_if_of(struct dm_runtime *runtime, struct dm_claim *claim, const struct dm_self *self,
                      enum dm_event_kind kind)
{
    dm_claim_sync(claim);
    if (claim->holder != self->serial) {
        dm_step_settle(runtime, claim);
        return;
    }
    dm_claim_take_back(claim);
    dm_step_kind(runtime, claim, kind);
}

/* The core gives each claim back: a hold as an owner's death, a place in a queue or on a condition silently. */
static void end_all_of(struct dm_runtime *runtime, struct dm_self *self, enum dm_event_kind kind)
{
    struct dm_claim *claim, *next;

    for (claim = self->claims; claim; claim = next) {
        next = claim->next_of_thread;
        end_if_of(runtime, claim, self, kind);
    }
    for (claim = dm_self_fast.has_entered ? runtime->registry.claims : NULL; claim; claim = next) {
        next = claim->next;
        if (claim->tenure)
            end_if_of(runtime, claim, self, kind);
    }
}

/*
 * Called in the last pass of the thread's destructors.  The claims outlive the thread until their releases are
 * confirmed, and point to no dm_self any more.
 */
void dm_ending_thread(struct dm_runtime *runtime, struct dm_self *self)
{
    dm_state_lock();
    end_all_of(runtime, self, DM_EV_THREAD_ENDS);
    dm_registry_part(self);
    dm_state_unlock();
}

void dm_ending_lock(struct dm_runtime *runtime)
{
    dm_state_lock();
    dm_ending_check(runtime);
}

/*
 * Each step of a waiting call passes here with the state lock, so that a thread of an ending process gives back what it
 * has and goes no further: a call that returned would return without the mutex.
 */
void dm_ending_check(struct dm_runtime *runtime)
{
    dm_assert_held(DM_RANK_STATE);
    if (!dm_self_must_park())
        return;
    end_all_of(runtime, dm_self_get(), DM_EV_PROCESS_ENDS);
    dm_state_unlock();
    dm_self_park();
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/keep/loss.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/own_signal.h"
#include "base/probe.h"
#include "process/claims/steps.h"
#include "process/keep/gate.h"

struct loss {
    uint64_t attempt;
    uint64_t token;
    char name[DMUTEX_NAME_MAX_NP + 1];
};

/* Copies name and token, because the record may be freed while the application's callback runs. */
static bool next_loss(struct dm_runtime *runtime, struct loss *ret_loss)
{
    const struct dm_claim *claim = dm_due_first(&runtime->registry, DM_WANTS_TELL, DM_NEVER);

    if (!claim)
        return false;
    ret_loss->attempt = claim->hold.serial;
    ret_loss->token = dm_claim_token(claim);
    snprintf(ret_loss->name, sizeof ret_loss->name, "%s", claim->name->key[0] == 'n' ? claim->name->key + 1 : "");
    return true;
}

/*
 * Releases the gate for the callback, which may fork, or use mutexes itself.  For the core the loss stays unreported
 * until the callback has returned, so that no other thread is granted the lock before that.
 */
static void tell(const struct dm_runtime *runtime, const struct loss *loss)
{
    dmutex_lost_fn lost;
    void *user;

    if (*loss->name)
        dm_log_error("the hold of \"%s\" with token %" PRIu64 " was lost", loss->name, loss->token);
    else
        dm_log_error("the hold of a mutex without a name with token %" PRIu64 " was lost", loss->token);
    DM_PROBE_LOST(loss->name, loss->token);
    dm_runtime_get_lost(&lost, &user);
    if (lost) {
        dm_gate_leave();
        lost(loss->name, loss->token, user);
        dm_gate_enter();
    }
    if (runtime->settings.on_lost == DM_LOST_ABORT)
        abort();
    if (runtime->settings.on_lost == DM_LOST_SIGNAL)
        dm_own_signal(runtime->settings.lost_signal);
}

/*
 * One after the other: a callback that takes long delays renewals, as dmutex_configure_np(3) says.  The claim is looked
 * up again, because its thread may have closed it during the callback.
 */
void dm_loss_tell_all(struct dm_runtime *runtime)
{
    struct loss loss;
    struct dm_claim *claim;

    dm_state_lock();
    while (next_loss(runtime, &loss)) {
        dm_state_unlock();
        tell(runtime, &loss);
        dm_state_lock();
        claim = dm_registry_attempt(&runtime->registry, loss.attempt);
        if (claim)
            dm_step_kind(runtime, claim, DM_EV_TOLD);
    }
    dm_state_unlock();
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/keep/inbox.h"

#include "process/claims/steps.h"

/* Borrows the message's answer: the step reads it before the message is freed. */
static struct dm_event event_of(const struct dm_message *message)
{
    static const enum dm_event_kind kinds[] = {
        [DM_MESSAGE_GRANTED] = DM_EV_GRANTED, [DM_MESSAGE_SIGNALLED] = DM_EV_SIGNALLED,
        [DM_MESSAGE_LOST] = DM_EV_TOLD_LOST,  [DM_MESSAGE_ASK] = DM_EV_TOLD_ASK,
        [DM_MESSAGE_WANTED] = DM_EV_WANTED,
    };

    return (struct dm_event){ .kind = kinds[message->kind], .request = message->request, .answer = &message->answer };
}

/* A message about an attempt that is over is ignored: its release is on the way. */
void dm_inbox_take(void *user, const struct dm_message *message)
{
    struct dm_runtime *runtime = user;
    struct dm_event event = event_of(message);
    struct dm_claim *claim;

    dm_state_lock();
    claim = dm_registry_attempt(&runtime->registry, message->attempt);
    if (claim)
        dm_step(runtime, claim, &event);
    dm_state_unlock();
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtime/inbox.h"

#include "base/log.h"
#include "runtime/steps.h"

/*
 * Believe a grant only if the inbox is connected to the server that made the grant.  A server passes messages on to its
 * replicas, and counts no receiver there: such a grant is a hint, like a grant that names no request, and the attempt
 * asks.
 */
static uint64_t request_of(const struct dm_message *message, const struct dm_server *server)
{
    return dm_server_is_same_run(server, &(struct dm_server){ .run = message->run }) ? message->request : 0;
}

static struct dm_event event_of(const struct dm_message *message, const struct dm_server *server)
{
    static const enum dm_event_kind kinds[] = {
        [DM_MESSAGE_GRANTED] = DM_EV_GRANTED,
        [DM_MESSAGE_SIGNALLED] = DM_EV_SIGNALLED,
        [DM_MESSAGE_LOST] = DM_EV_TOLD_LOST,
        [DM_MESSAGE_ASK] = DM_EV_TOLD_ASK,
    };

    return (struct dm_event){ .kind = kinds[message->kind],
                              .request = request_of(message, server),
                              .answer = &message->answer };
}

/* A message about an attempt that is over gets no answer: the release is on the way. */
void dm_inbox_take(void *user, const char *text, const struct dm_server *server)
{
    struct dm_runtime *runtime = user;
    struct dm_message message;
    struct dm_event event;
    struct dm_claim *claim;

    if (!dm_store_read_message(text, &message)) {
        dm_log_debug("a message of an unknown kind: %.60s", text);
        return;
    }
    event = event_of(&message, server);
    dm_state_lock();
    claim = dm_registry_attempt(&runtime->registry, message.attempt);
    if (claim)
        dm_step(runtime, claim, &event);
    dm_state_unlock();
}

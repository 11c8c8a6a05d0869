/* SPDX-License-Identifier: BSD-2-Clause */
#include "warm.h"

struct actor *start_warm(const char *name, unsigned lease_ms, const char *words)
{
    struct actor *actor = actor_start(the_server);

    actor_open_inbox(actor);
    actor_do(actor, "0", "init %s lease=%u%s%s", name, lease_ms, *words ? " " : "", words);
    return actor;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "warm.h"

#define BUSY_LEASE 60000

struct actor *start_warm(const char *name, unsigned lease_ms, const char *words)
{
    struct actor *actor = actor_start(the_server);
    dmutex_t busy;

    make_normal(&busy, "warm/busy", BUSY_LEASE);
    assert_result(dmutex_lock(&busy), 0);
    actor_do(actor, "ETIMEDOUT", "timedlock warm/busy 10");
    assert_result(dmutex_unlock(&busy), 0);
    wait_until(!is_locked(&busy));
    actor_do(actor, "0", "init %s lease=%u%s%s", name, lease_ms, *words ? " " : "", words);
    return actor;
}

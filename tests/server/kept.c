/* SPDX-License-Identifier: BSD-2-Clause */
#include "kept.h"

#include <stdio.h>
#include <string.h>

#define TOKEN_SHIFT 12

dmutex_t kept_mutex;
struct actor *keeper, *other;

void kept_use(struct actor *actor, const char *name)
{
    actor_do(actor, "0", "lock %s", name);
    actor_do(actor, "0", "unlock %s", name);
}

bool kept_is_marked(const char *name)
{
    const char *hold = side_text(the_server->side, "HGET %s hold", key_of("state", name));

    return hold && strstr(hold, " - ") != NULL;
}

bool kept_is_locked(const char *name)
{
    return side_int(the_server->side, "EXISTS %s", key_of("lock", name)) == 1;
}

void kept_keep(const char *name)
{
    kept_use(keeper, name);
    wait_until(kept_is_marked(name));
}

/* The keeper waits in a queue, which it does only with an inbox.  The server may be another than this process's own. */
static void open_inbox(void)
{
    actor_do(other, "0", "lock kept/inbox");
    actor_send(keeper, "lock kept/inbox");
    wait_until(waiters_at(the_server->side, "kept/inbox") == 1);
    actor_do(other, "0", "unlock kept/inbox");
    actor_expect(keeper, "0");
    actor_do(keeper, "0", "unlock kept/inbox");
    wait_until(!kept_is_locked("kept/inbox"));
}

/* Keeping begins when the inbox is open. */
void kept_begin(const char *url, const char *name, unsigned lease_ms)
{
    keeper = url ? actor_start_at(url) : actor_start(the_server);
    other = actor_start(the_server);
    make_normal(&kept_mutex, name, lease_ms);
    actor_do(keeper, "0", "init %s lease=%u linger=%d", name, lease_ms, LONG_LEASE);
    actor_do(other, "0", "init %s lease=%u", name, lease_ms);
    open_inbox();
    kept_keep(name);
}

void kept_end(void)
{
    actor_end(keeper);
    actor_end(other);
}

uint64_t kept_token(struct actor *actor, const char *name)
{
    long long token;

    actor_do(actor, "0", "lock %s", name);
    token = actor_value(actor, "token %s", name);
    actor_do(actor, "0", "unlock %s", name);
    return (uint64_t)token >> TOKEN_SHIFT;
}

void kept_take(const char *name, uint64_t after)
{
    promise_within(AT_ONCE);
    assert_true(kept_token(other, name) > after);
    assert_kept();
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "naming.h"

#include <string.h>

#define LEASE 60000

void check_named(struct actor *actor, const char *object, const char *name)
{
    dmutex_t mutex;

    make_normal(&mutex, name, LEASE);
    assert_result(dmutex_lock(&mutex), 0);
    actor_do(actor, "EBUSY", "trylock %s", object);
    assert_result(dmutex_unlock(&mutex), 0);
    actor_do(actor, "0", "lock %s", object);
    assert_result(dmutex_trylock(&mutex), EBUSY);
    actor_do(actor, "0", "unlock %s", object);
    assert_result(dmutex_lock(&mutex), 0);
    assert_result(dmutex_unlock(&mutex), 0);
    assert_result(dmutex_destroy(&mutex), 0);
}

void check_local(struct actor *actor, const char *object)
{
    int64_t before = client_commands();

    actor_do(actor, "0", "lock %s", object);
    actor_do(actor, "EBUSY", "trylock %s", object);
    actor_do(actor, "0", "unlock %s", object);
    assert_int_equal(client_commands(), before);
}

void hold_here(dmutex_t *mutex, const char *name)
{
    make_normal(mutex, name, LEASE);
    assert_result(dmutex_lock(mutex), 0);
}

void give_back_here(dmutex_t *mutex)
{
    assert_result(dmutex_unlock(mutex), 0);
    assert_result(dmutex_destroy(mutex), 0);
}

void check_waits(struct actor *actor, const char *name, const char *call)
{
    dmutex_t mutex;

    hold_here(&mutex, name);
    actor_send(actor, "%s", call);
    wait_until(waiters_of(&mutex) == 1);
    assert_true(actor_is_silent(actor));
    give_back_here(&mutex);
    actor_expect(actor, "0");
}

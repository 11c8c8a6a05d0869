/* SPDX-License-Identifier: BSD-2-Clause */
#include "pair.h"

#include <string.h>

dmutex_t mutex;
dcond_t cond;
char mutex_name[32], cond_name[32];

const struct kind normal = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_STALLED, "" };
const struct kind recursive = { PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_STALLED, "recursive" };
const struct kind robust = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, "robust" };

void make_both(const char *word, const struct kind *kind, unsigned lease_ms)
{
    snprintf(mutex_name, sizeof mutex_name, "pair/m-%s", word);
    snprintf(cond_name, sizeof cond_name, "pair/c-%s", word);
    make_mutex(&mutex, mutex_name, kind, lease_ms);
    assert_result(dcond_init_np(&cond, cond_name, NULL), 0);
}

struct actor *start_holder(const char *name, int lease_ms)
{
    struct actor *holder = actor_start(the_server);

    actor_do(holder, "0", "init %s robust lease=%d", name, lease_ms);
    actor_do(holder, "0", "lock %s", name);
    return holder;
}

struct actor *start_waiter(const char *name, int lease_ms, int place)
{
    struct actor *waiter = actor_start(the_server);

    actor_do(waiter, "0", "init %s robust lease=%d", name, lease_ms);
    actor_send(waiter, "lock %s", name);
    wait_until(waiters_of(&mutex) == place);
    return waiter;
}

struct actor *start_actor(const struct kind *kind, unsigned lease_ms)
{
    struct actor *actor = actor_start(the_server);

    actor_do(actor, "0", "init %s%s%s lease=%u", mutex_name, *kind->words ? " " : "", kind->words, lease_ms);
    return actor;
}

int64_t on_condition(void)
{
    return side_int(the_server->side, "ZCARD %s", key_of("cond", cond_name));
}

int64_t in_queue(void)
{
    return waiters_at(the_server->side, mutex_name);
}

void begin_wait(struct actor *actor)
{
    int64_t before = on_condition();

    actor_do(actor, "0", "lock %s", mutex_name);
    actor_send(actor, "wait %s %s", cond_name, mutex_name);
    wait_until(on_condition() == before + 1);
}

void assert_owns(struct actor *actor)
{
    assert_int_equal(actor_value(actor, "holdcount %s", mutex_name), 1);
    assert_result(dmutex_trylock(&mutex), EBUSY);
    actor_do(actor, "0", "renew %s", mutex_name);
    actor_do(actor, "0", "unlock %s", mutex_name);
    wait_until(!is_locked(&mutex));
}

void assert_back(struct actor *actor, const char *answer)
{
    actor_expect(actor, answer);
    if (strcmp(answer, "EOWNERDEAD") == 0)
        actor_do(actor, "0", "consistent %s", mutex_name);
    assert_owns(actor);
}

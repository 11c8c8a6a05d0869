/* SPDX-License-Identifier: BSD-2-Clause */
/* A mutex and a condition of one test, and other processes that hold, or wait with both. */
#ifndef TEST_PAIR_H
#define TEST_PAIR_H

#include "../lib/testlib.h"

#define LONG_LEASE 60000
#define SHORT_LEASE 900 /* a death is found out by polls */
#define AT_ONCE 8000

extern dmutex_t mutex;
extern dcond_t cond;
extern char mutex_name[32], cond_name[32];
extern const struct kind normal, recursive, robust;

/* Names both after the word; kind: as an actor's init takes the kind. */
void make_both(const char *word, const struct kind *kind, unsigned lease_ms);

/* A process that holds `name`, robust; and one that waits in lock of `mutex`, which has `name`, as the `place`-th. */
struct actor *start_holder(const char *name, int lease_ms);
struct actor *start_waiter(const char *name, int lease_ms, int place);

/* A process that knows the mutex and the condition. */
struct actor *start_actor(const struct kind *kind, unsigned lease_ms);

int64_t on_condition(void);
int64_t in_queue(void);

/* The actor locks, and waits at the return. */
void begin_wait(struct actor *actor);

/* The actor owns the mutex at its depth, no other process does, and the actor gives the mutex back. */
void assert_owns(struct actor *actor);

/* The actor has come back from the wait with this answer, and owns the mutex as above; made consistent, if need be. */
void assert_back(struct actor *actor, const char *answer);

#endif

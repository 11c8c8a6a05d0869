/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes that know one mutex: `keeper` keeps the lease after its last unlock, `other` does not.
 *
 *     kept_begin(NULL, "t/x", 60000);
 *     actor_do(other, "0", "lock t/x");      // the keeper is asked, and gives back
 *     actor_do(other, "0", "unlock t/x");
 *     kept_end();
 */
#ifndef TEST_KEPT_H
#define TEST_KEPT_H

#include "../lib/testlib.h"

#define LONG_LEASE 60000 /* no poll and no renewal within the time of a test */
#define SHORT_LEASE 900
#define AT_ONCE 8000

/* This process's object of the mutex, for questions; and the two processes. */
extern dmutex_t kept_mutex;
extern struct actor *keeper, *other;

/* The actor locks and unlocks. */
void kept_use(struct actor *actor, const char *name);

/* True if any process has the mutex, as the present server sees it. */
bool kept_is_locked(const char *name);

/* True if the server will notify the holder of waiters. */
bool kept_is_marked(const char *name);

/* The keeper's URL is of a proxy, or NULL; the keeper's linger time is the longest. */
void kept_begin(const char *url, const char *name, unsigned lease_ms);

/* The keeper has locked and unlocked, and its mark has arrived: the lease is kept, whatever was before. */
void kept_keep(const char *name);

void kept_end(void);

/* The keeper locks, and answers with the store's part of its token; the lease is kept then. */
uint64_t kept_token(struct actor *actor, const char *name);

/* The other process has the mutex now, with a later token, at once, and gives the mutex back. */
void kept_take(const char *name, uint64_t after);

#endif

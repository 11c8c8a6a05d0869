/* SPDX-License-Identifier: BSD-2-Clause */
/* Home-made locks, as programs write them, on a blocking connection: no waiting, no renewal, no token. */
#ifndef DM_BENCH_HOME_H
#define DM_BENCH_HOME_H

#include <hiredis.h>
#include <stdbool.h>

struct home {
    redisContext *context;
    char *lock_sha, *unlock_sha, *delete_sha; /* never freed: needed until the process ends */
    char name[64], owner[64], lease_ms[16];
};

void home_open(struct home *home, redisContext *context, const char *name, int owner, unsigned lease_ms);

/* The two classic scripts of a reentrant lock: hexists, hincrby, pexpire; hincrby, del, publish. */
void home_classic_lock(struct home *home);
void home_classic_unlock(struct home *home);

/* SET NX PX, and a script that compares and deletes. The first returns whether the lock was acquired. */
bool home_set(struct home *home);
void home_delete(struct home *home);

#endif

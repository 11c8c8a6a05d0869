/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks as programs make them at home, on a blocking connection: no waiting, no renewal, no token. */
#ifndef DM_BENCH_HOME_H
#define DM_BENCH_HOME_H

#include <hiredis.h>
#include <stdbool.h>

struct home {
    redisContext *context;
    char *lock_sha, *unlock_sha, *delete_sha; /* never freed: they live as long as the process */
    char name[64], owner[64], lease_ms[16];
};

/* With a lease of 10 s, which the caller may change. */
void home_open(struct home *home, redisContext *context, const char *name, int owner);

/* Two classic scripts of a reentrant lock: hexists, hincrby, pexpire; hincrby, del, publish. */
void home_classic_lock(struct home *home);
void home_classic_unlock(struct home *home);

/* SET NX PX, and a script that compares and deletes. The first returns whether the lock is had. */
bool home_set(struct home *home);
void home_delete(struct home *home);

#endif

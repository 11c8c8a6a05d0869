/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's own two scripts with its arguments, called over a bare blocking connection: the least that a lock and
 * an unlock can cost.
 */
#ifndef DM_BENCH_OWN_H
#define DM_BENCH_OWN_H

#include <hiredis.h>

/* One owner of one name. */
struct own {
    char keys[4][64];
    char owner[48], id[72];
    long attempt;
};

/* Loads the scripts into the server. */
void own_load(redisContext *context);

void own_init(struct own *own, const char *name, int thread);
void own_lock(struct own *own, redisContext *context);
void own_unlock(struct own *own, redisContext *context);

/* Sends a command in another way, to other servers, and returns a reply. */
typedef redisReply *(*own_command_fn)(void *user, int count, const char **words);

/* The same, with commands sent that way. */
void own_lock_by(struct own *own, own_command_fn command, void *user);
void own_unlock_by(struct own *own, own_command_fn command, void *user);

/* Tries a lock that another owner holds. */
void own_try_busy(struct own *own, redisContext *context);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#include "own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "server.h"
#include "stores/redis/wire/scripts.h"

void own_load(redisContext *context)
{
    free(bench_load(context, dm_lua_acquire));
    free(bench_load(context, dm_lua_release));
}

/* The server has been up for long; its run id, which grants contain (lua/_origin.lua). */
#define ORIGIN "0 0123456789abcdef"
#define LEASE "600000"

void own_init(struct own *own, const char *name, int thread)
{
    static const char *const kinds[] = { "lock", "state", "queue", "waiter" };

    own->attempt = 0;
    for (int i = 0; i < 4; i++)
        snprintf(own->keys[i], sizeof own->keys[i], "dmutex:{bench}:%s:%s", kinds[i], name);
    snprintf(own->owner, sizeof own->owner, "0123456789abcdef0123456789abcdef:%d", thread);
}

static redisReply *by_context(void *context, int count, const char **words)
{
    return bench_command(context, count, words);
}

static redisReply *acquire(struct own *own, own_command_fn command, void *user, const char *how)
{
    const char *words[] = {
        "EVALSHA", dm_sha_acquire,  "4", own->keys[0], own->keys[1],    own->keys[2], own->keys[3],     own->id,
        LEASE,     "1 " LEASE " 0", "0", how,          "dmutex:inbox:", ORIGIN,       "1234 host bench"
    };

    snprintf(own->id, sizeof own->id, "%s:%ld", own->owner, ++own->attempt);
    return command(user, BENCH_COUNT(words), words);
}

static void expect(redisReply *reply, const char *word)
{
    const char *said = reply->type == REDIS_REPLY_ARRAY ? reply->element[0]->str : reply->str;

    if (!said || strncmp(said, word, strlen(word)) != 0)
        bench_die("a script of the library does not answer as own.c expects");
    freeReplyObject(reply);
}

void own_lock_by(struct own *own, own_command_fn command, void *user)
{
    expect(acquire(own, command, user, "queue"), "owned");
}

void own_lock(struct own *own, redisContext *context)
{
    own_lock_by(own, by_context, context);
}

void own_try_busy(struct own *own, redisContext *context)
{
    expect(acquire(own, by_context, context, "try"), "busy");
}

void own_unlock_by(struct own *own, own_command_fn command, void *user)
{
    const char *words[] = { "EVALSHA",           dm_sha_release,  "4",          own->keys[0],
                            own->keys[1],        own->keys[2],    own->keys[3], own->id,
                            "-0 0 1 1 host own", "dmutex:inbox:", ORIGIN };

    expect(command(user, BENCH_COUNT(words), words), "released");
}

void own_unlock(struct own *own, redisContext *context)
{
    own_unlock_by(own, by_context, context);
}

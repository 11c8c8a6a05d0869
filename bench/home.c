/* SPDX-License-Identifier: BSD-2-Clause */
#include "home.h"

#include <stdio.h>

#include "bench.h"
#include "server.h"

static const char lock_script[] =
    "if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then "
    "redis.call('hincrby', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1]) return nil end "
    "return redis.call('pttl', KEYS[1])";
static const char unlock_script[] =
    "if redis.call('hincrby', KEYS[1], ARGV[2], -1) > 0 then redis.call('pexpire', KEYS[1], ARGV[1]) return 0 end "
    "redis.call('del', KEYS[1]) redis.call('publish', KEYS[2], '0') return 1";
static const char delete_script[] =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

void home_open(struct home *home, redisContext *context, const char *name, int owner, unsigned lease_ms)
{
    home->context = context;
    home->lock_sha = bench_load(context, lock_script);
    home->unlock_sha = bench_load(context, unlock_script);
    home->delete_sha = bench_load(context, delete_script);
    snprintf(home->name, sizeof home->name, "%s", name);
    snprintf(home->lease_ms, sizeof home->lease_ms, "%u", lease_ms);
    snprintf(home->owner, sizeof home->owner, "0123456789abcdef0123456789abcdef:%d", owner);
}

void home_classic_lock(struct home *home)
{
    bench_run(home->context, 6,
              (const char *[]){ "EVALSHA", home->lock_sha, "1", home->name, home->lease_ms, home->owner });
}

void home_classic_unlock(struct home *home)
{
    bench_run(home->context, 7,
              (const char *[]){ "EVALSHA", home->unlock_sha, "2", home->name, "channel", home->lease_ms, home->owner });
}

bool home_set(struct home *home)
{
    redisReply *reply =
        bench_command(home->context, 6, (const char *[]){ "SET", home->name, home->owner, "NX", "PX", home->lease_ms });
    bool is_set = reply->type == REDIS_REPLY_STATUS;

    freeReplyObject(reply);
    return is_set;
}

void home_delete(struct home *home)
{
    bench_run(home->context, 5, (const char *[]){ "EVALSHA", home->delete_sha, "1", home->name, home->owner });
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "grant.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "server.h"

/* KEYS: lock (hash), queue (list).  ARGV: owner, lease. */
static const char lock_script[] =
    "if redis.call('exists', KEYS[1]) == 0 then "
    "redis.call('hset', KEYS[1], ARGV[1], 1) redis.call('pexpire', KEYS[1], ARGV[2]) return 1 end "
    "redis.call('rpush', KEYS[2], ARGV[1]) return 0";
static const char unlock_script[] = "redis.call('del', KEYS[1]) "
                                    "local next = redis.call('lpop', KEYS[2]) if not next then return 0 end "
                                    "redis.call('hset', KEYS[1], next, 1) redis.call('pexpire', KEYS[1], ARGV[2]) "
                                    "redis.call('publish', 'inbox:' .. next, 'granted') return 1";

enum { SCRIPT_WORDS = 7 };

struct grant {
    redisContext *commands, *inbox;
    char *lock_sha, *unlock_sha;
    char owner[48], channel[64];
    sem_t granted;
};

static void *read_inbox(void *user)
{
    struct grant *grant = user;
    redisReply *reply;

    while (redisGetReply(grant->inbox, (void **)&reply) == REDIS_OK) {
        freeReplyObject(reply);
        sem_post(&grant->granted);
    }
    bench_die("the inbox has broken");
}

struct grant *grant_open(const struct bench_server *server, int owner)
{
    struct grant *grant = calloc(1, sizeof *grant);
    pthread_t reader;

    if (!grant)
        bench_die("no memory");
    grant->commands = bench_connect(server);
    grant->inbox = bench_connect(server);
    grant->lock_sha = bench_load(grant->commands, lock_script);
    grant->unlock_sha = bench_load(grant->commands, unlock_script);
    snprintf(grant->owner, sizeof grant->owner, "0123456789abcdef%016d:1", owner);
    snprintf(grant->channel, sizeof grant->channel, "inbox:%s", grant->owner);
    sem_init(&grant->granted, 0, 0);
    bench_run(grant->inbox, 2, (const char *[]){ "SUBSCRIBE", grant->channel });
    if (pthread_create(&reader, NULL, read_inbox, grant) != 0)
        bench_die("no thread");
    pthread_detach(reader);
    return grant;
}

static void send_script(struct grant *grant, const char *sha)
{
    const char *words[SCRIPT_WORDS] = { "EVALSHA", sha, "2", "bare:lock", "bare:queue", grant->owner, "10000" };
    int is_sent = 0;

    redisAppendCommandArgv(grant->commands, SCRIPT_WORDS, words, NULL);
    while (!is_sent) {
        if (redisBufferWrite(grant->commands, &is_sent) != REDIS_OK)
            bench_die("the server has gone");
    }
}

static long long read_number(struct grant *grant)
{
    redisReply *reply;
    long long number;

    if (redisGetReply(grant->commands, (void **)&reply) != REDIS_OK || reply->type != REDIS_REPLY_INTEGER)
        bench_die("the bare lock has failed");
    number = reply->integer;
    freeReplyObject(reply);
    return number;
}

void grant_lock(struct grant *grant)
{
    send_script(grant, grant->lock_sha);
    if (read_number(grant) == 1)
        return;
    while (sem_wait(&grant->granted) != 0)
        continue;
}

void grant_unlock(struct grant *grant)
{
    send_script(grant, grant->unlock_sha);
    read_number(grant);
}

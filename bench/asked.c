/* SPDX-License-Identifier: BSD-2-Clause */
#include "asked.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "server.h"

/* KEYS: lock, queue (list).  ARGV: owner, lease. */
static const char ask_script[] =
    "local owner = redis.call('get', KEYS[1]) "
    "if not owner then redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2]) return 1 end "
    "redis.call('rpush', KEYS[2], ARGV[1]) redis.call('publish', 'asked:' .. owner, 'wanted') return 0";
static const char give_script[] = "redis.call('del', KEYS[1]) "
                                  "local next = redis.call('lpop', KEYS[2]) if not next then return 0 end "
                                  "redis.call('set', KEYS[1], next, 'px', ARGV[2]) "
                                  "redis.call('publish', 'asked:' .. next, 'granted') return 1";

struct asked {
    redisContext *commands, *inbox;
    char *ask_sha, *give_sha;
    char owner[48], channel[64];
    sem_t granted;
    pthread_mutex_t mutex; /* guards the connection for commands, and what follows */
    bool is_kept, is_inside, is_wanted;
};

static long long call(struct asked *asked, const char *sha)
{
    redisReply *reply =
        redisCommand(asked->commands, "EVALSHA %s 2 asked:lock asked:queue %s 10000", sha, asked->owner);
    long long number;

    if (!reply || reply->type != REDIS_REPLY_INTEGER)
        bench_die("the bare lock has failed");
    number = reply->integer;
    freeReplyObject(reply);
    return number;
}

static void give(struct asked *asked)
{
    asked->is_kept = asked->is_wanted = false;
    call(asked, asked->give_sha);
}

static void take_wish(struct asked *asked)
{
    pthread_mutex_lock(&asked->mutex);
    if (asked->is_kept && !asked->is_inside)
        give(asked);
    else
        asked->is_wanted = true;
    pthread_mutex_unlock(&asked->mutex);
}

static void *read_inbox(void *user)
{
    struct asked *asked = user;
    redisReply *reply;

    while (redisGetReply(asked->inbox, (void **)&reply) == REDIS_OK) {
        if (strcmp(reply->element[2]->str, "granted") == 0)
            sem_post(&asked->granted);
        else
            take_wish(asked);
        freeReplyObject(reply);
    }
    bench_die("the inbox has broken");
}

void asked_clear(const struct bench_server *server)
{
    redisContext *context = bench_connect(server);

    bench_run(context, 3, (const char *[]){ "DEL", "asked:lock", "asked:queue" });
    redisFree(context);
}

struct asked *asked_open(const struct bench_server *server, int owner)
{
    struct asked *asked = calloc(1, sizeof *asked);
    pthread_t reader;

    if (!asked)
        bench_die("no memory");
    asked->commands = bench_connect(server);
    asked->inbox = bench_connect(server);
    asked->ask_sha = bench_load(asked->commands, ask_script);
    asked->give_sha = bench_load(asked->commands, give_script);
    snprintf(asked->owner, sizeof asked->owner, "0123456789abcdef%016d:1", owner);
    snprintf(asked->channel, sizeof asked->channel, "asked:%s", asked->owner);
    sem_init(&asked->granted, 0, 0);
    pthread_mutex_init(&asked->mutex, NULL);
    bench_run(asked->inbox, 2, (const char *[]){ "SUBSCRIBE", asked->channel });
    if (pthread_create(&reader, NULL, read_inbox, asked) != 0)
        bench_die("no thread");
    pthread_detach(reader);
    return asked;
}

void asked_lock(struct asked *asked)
{
    bool is_had;

    pthread_mutex_lock(&asked->mutex);
    is_had = asked->is_kept || call(asked, asked->ask_sha) == 1;
    asked->is_kept = asked->is_inside = is_had;
    pthread_mutex_unlock(&asked->mutex);
    if (is_had)
        return;
    while (sem_wait(&asked->granted) != 0)
        continue;
    pthread_mutex_lock(&asked->mutex);
    asked->is_kept = asked->is_inside = true;
    pthread_mutex_unlock(&asked->mutex);
}

void asked_unlock(struct asked *asked)
{
    pthread_mutex_lock(&asked->mutex);
    asked->is_inside = false;
    if (asked->is_wanted)
        give(asked);
    pthread_mutex_unlock(&asked->mutex);
}

void asked_leave(struct asked *asked)
{
    pthread_mutex_lock(&asked->mutex);
    if (asked->is_kept)
        give(asked);
    pthread_mutex_unlock(&asked->mutex);
}

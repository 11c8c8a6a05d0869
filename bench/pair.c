/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An uncontended lock and unlock, against bare synchronous hiredis loops on the same server:
 *
 *   own      the library's own two scripts with the same arguments
 *   classic  the commands of home-made reentrant locks: hexists/hincrby/pexpire, hincrby/del/publish
 */
#include <dmutex/dmutex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "own.h"

#define ROUNDS 9
#define PAIRS 2000

static const char classic_lock[] =
    "if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then "
    "redis.call('hincrby', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1]) return nil end "
    "return redis.call('pttl', KEYS[1])";
static const char classic_unlock[] =
    "if redis.call('hincrby', KEYS[1], ARGV[2], -1) > 0 then redis.call('pexpire', KEYS[1], ARGV[1]) return 0 end "
    "redis.call('del', KEYS[1]) redis.call('publish', KEYS[2], '0') return 1";

static double own_pairs(redisContext *context)
{
    struct own own;
    double start = bench_now();

    own_init(&own, "own", 1);
    for (int i = 0; i < PAIRS; i++) {
        own_lock(&own, context);
        own_unlock(&own, context);
    }
    return (bench_now() - start) / PAIRS;
}

static double classic_pairs(redisContext *context, const char *lock_sha, const char *unlock_sha)
{
    static const char owner[] = "0123456789abcdef0123456789abcdef:1";
    const char *lock[] = { "EVALSHA", lock_sha, "1", "classic", "10000", owner };
    const char *unlock[] = { "EVALSHA", unlock_sha, "2", "classic", "classic_channel", "10000", owner };
    double start = bench_now();

    for (int i = 0; i < PAIRS; i++) {
        bench_run(context, 6, lock);
        bench_run(context, 7, unlock);
    }
    return (bench_now() - start) / PAIRS;
}

static double library_pairs(dmutex_t *mutex)
{
    double start = bench_now();

    for (int i = 0; i < PAIRS; i++) {
        bench_must(dmutex_lock(mutex));
        bench_must(dmutex_unlock(mutex));
    }
    return (bench_now() - start) / PAIRS;
}

static void print(double library, double own, double classic, double scripts)
{
    printf("  %6.1f us   own scripts, bare %6.1f us   classic, bare %6.1f us   ratio %.2f own, %.2f classic"
           "   scripts called %.2f (2)\n",
           library * 1e6, own * 1e6, classic * 1e6, library / own, library / classic, scripts);
}

static void measure(void *server)
{
    static dmutex_t mutex = DMUTEX_INITIALIZER("bench/pair");
    double own[ROUNDS], classic[ROUNDS], library[ROUNDS], scripts = 0;
    redisContext *context = bench_connect(server);
    char *lock_sha = bench_load(context, classic_lock), *unlock_sha = bench_load(context, classic_unlock);

    own_load(context);
    library_pairs(&mutex);
    for (int round = 0; round < ROUNDS; round++) {
        own[round] = own_pairs(context);
        classic[round] = classic_pairs(context, lock_sha, unlock_sha);
        bench_stats_reset(context);
        library[round] = library_pairs(&mutex);
        scripts = bench_scripts_sent(context) / PAIRS;
    }
    print(bench_median(library, ROUNDS), bench_median(own, ROUNDS), bench_median(classic, ROUNDS), scripts);
    free(lock_sha);
    free(unlock_sha);
    redisFree(context);
}

int main(void)
{
    struct bench_server server = bench_server_start();

    printf("lock + unlock, uncontended\n"
           "budget: <= 0.95 of the two classic scripts on one core each, <= 1.10 placed by the kernel\n");
    for (const struct bench_place *place = bench_places(); place->name; place++) {
        bench_pin(server.pid, place->server_core);
        for (enum bench_way way = 0; way < BENCH_WAYS; way++) {
            printf("%s, %s\n", place->name, bench_way_names[way]);
            bench_server_use(&server, way);
            bench_apart(&server, place->client_core, measure, &server);
        }
    }
    bench_server_stop(&server);
    return 0;
}

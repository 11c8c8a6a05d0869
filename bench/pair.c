/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An uncontended lock and unlock, against bare synchronous hiredis loops on the same server:
 *
 *   own      the library's own two scripts with the same arguments
 *   classic  what home-made reentrant locks run: hexists/hincrby/pexpire, hincrby/del/publish
 */
#include <dmutex/dmutex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "redis/scripts.h"

#define ROUNDS 9
#define PAIRS 4000

static const char classic_lock[] =
    "if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then "
    "redis.call('hincrby', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1]) return nil end "
    "return redis.call('pttl', KEYS[1])";
static const char classic_unlock[] =
    "if redis.call('hincrby', KEYS[1], ARGV[2], -1) > 0 then redis.call('pexpire', KEYS[1], ARGV[1]) return 0 end "
    "redis.call('del', KEYS[1]) redis.call('publish', KEYS[2], '0') return 1";

static char *load(redisContext *context, const char *script)
{
    redisReply *reply = bench_command(context, 3, (const char *[]){ "SCRIPT", "LOAD", script });
    char *sha = strdup(reply->str);

    freeReplyObject(reply);
    return sha;
}

static void run(redisContext *context, int count, const char **words)
{
    freeReplyObject(bench_command(context, count, words));
}

static double own_pairs(redisContext *context)
{
    static const char owner[] = "0123456789abcdef0123456789abcdef:1";
    char id[64], hold[128];
    const char *lock[] = { "EVALSHA", dm_sha_acquire, "4", "dmutex:{bench}:lock:own", "dmutex:{bench}:state:own",
                           "dmutex:{bench}:queue:own", "dmutex:{bench}:waiter:own", owner, hold, "10000", "0", "1",
                           "0", "queue", "", "dmutex:inbox:" };
    const char *unlock[] = { "EVALSHA", dm_sha_release, "4", "dmutex:{bench}:lock:own", "dmutex:{bench}:state:own",
                             "dmutex:{bench}:queue:own", "dmutex:{bench}:waiter:own", id, "0", "dmutex:inbox:" };
    double start = bench_now();

    for (int i = 0; i < PAIRS; i++) {
        snprintf(id, sizeof id, "%s:%d", owner, i + 1);
        snprintf(hold, sizeof hold, "%s 10000 1234 host bench", id);
        run(context, 16, lock);
        run(context, 10, unlock);
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
        run(context, 6, lock);
        run(context, 7, unlock);
    }
    return (bench_now() - start) / PAIRS;
}

static double library_pairs(dmutex_t *mutex)
{
    double start = bench_now();

    for (int i = 0; i < PAIRS; i++) {
        if (dmutex_lock(mutex) || dmutex_unlock(mutex)) {
            fprintf(stderr, "bench: %s\n", dmutex_strerror_np());
            exit(1);
        }
    }
    return (bench_now() - start) / PAIRS;
}

static void measure(const struct bench_server *server, const char *sync)
{
    static dmutex_t mutex = DMUTEX_INITIALIZER("bench/pair");
    double own[ROUNDS], classic[ROUNDS], library[ROUNDS];
    redisContext *context = bench_connect(server);
    char *lock_sha = load(context, classic_lock), *unlock_sha = load(context, classic_unlock);
    double own_median, classic_median, library_median;

    free(load(context, dm_lua_acquire));
    free(load(context, dm_lua_release));
    library_pairs(&mutex);
    for (int round = 0; round < ROUNDS; round++) {
        own[round] = own_pairs(context);
        classic[round] = classic_pairs(context, lock_sha, unlock_sha);
        library[round] = library_pairs(&mutex);
    }
    own_median = bench_median(own, ROUNDS);
    classic_median = bench_median(classic, ROUNDS);
    library_median = bench_median(library, ROUNDS);
    printf("  %-8s %6.1f us   own scripts, bare %6.1f us   classic, bare %6.1f us   ratio %.2f own, %.2f classic\n",
           strcmp(sync, "1") == 0 ? "awaited" : "posted", library_median * 1e6, own_median * 1e6, classic_median * 1e6,
           library_median / own_median, library_median / classic_median);
    free(lock_sha);
    free(unlock_sha);
    redisFree(context);
}

/* Each in a process of its own: the setting is read once. */
static void measure_apart(const struct bench_server *server, const char *sync, int core)
{
    fflush(stdout);
    if (fork() == 0) {
        setenv("DMUTEX_URL", server->url, 1);
        setenv("DMUTEX_SYNC_UNLOCK", sync, 1);
        bench_pin(0, core);
        measure(server, sync);
        exit(0);
    }
    wait(NULL);
}

static void measure_placed(struct bench_server *server, const char *place, int server_core, int client_core)
{
    bench_pin(server->pid, server_core);
    printf("%s\n", place);
    measure_apart(server, "1", client_core);
    measure_apart(server, "0", client_core);
}

int main(void)
{
    struct bench_server server = bench_server_start();

    printf("lock + unlock, uncontended; unlock awaited (budget: 1.15 own; one core 1.35 classic) or posted (0.80 own,"
           " 1.00 classic)\n");
    if (bench_cores() > 1)
        measure_placed(&server, "server on one core, client on another", 0, 1);
    measure_placed(&server, "both on one core", 0, 0);
    bench_server_stop(&server);
    return 0;
}

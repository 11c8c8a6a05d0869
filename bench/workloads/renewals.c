/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that holds many locks: what keeping them costs the server, per renewal round, compared with one bare script
 * that sets the expiry of as many keys, 100 keys per call.
 */
#include <dmutex/dmutex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/held.h"
#include "bench/server.h"
#include "bench/store.h"
#include "bench/workload.h"

enum { LEASE_MS = 3000, ROUND_MS = LEASE_MS / 3, ROUNDS_MAX = 100, KEYS_A_CALL = 100 };

/* ---- bare ------------------------------------------------------------------------ */

static const char bare_script[] = "for i = 1, #KEYS do redis.call('pexpire', KEYS[i], ARGV[1]) end";

struct bare_keys {
    redisContext *context;
    char *sha;
    char names[KEYS_A_CALL][24];
    const char *words[3 + KEYS_A_CALL + 1];
};

static void open_bare(struct bare_keys *bare, redisContext *context)
{
    bare->context = context;
    bare->sha = bench_load(context, bare_script);
    bare->words[0] = "EVALSHA";
    bare->words[1] = bare->sha;
    bare->words[2] = "100";
    for (int i = 0; i < KEYS_A_CALL; i++) {
        snprintf(bare->names[i], sizeof bare->names[i], "bare:held-%d", i);
        bench_run(context, 3, (const char *[]){ "SET", bare->names[i], "owner" });
        bare->words[3 + i] = bare->names[i];
    }
    bare->words[3 + KEYS_A_CALL] = "600000";
}

/* The server's microseconds for as many keys. */
static double bare_round(struct bare_keys *bare, int count)
{
    double before = bench_stat(bare->context, "evalsha", "usec");

    for (int done = 0; done < count; done += KEYS_A_CALL)
        bench_run(bare->context, 3 + KEYS_A_CALL + 1, bare->words);
    return bench_stat(bare->context, "evalsha", "usec") - before;
}

/* ---- the library ----------------------------------------------------------------- */

struct round {
    double scripts, usec;
};

/* Each renewal of a lock is one PEXPIRE, and nothing else here is: so PEXPIREs count the rounds. */
static struct round library_round(redisContext *context, int count)
{
    double rounds;

    bench_stats_reset(context);
    bench_pause(ROUND_MS / 1e3);
    rounds = bench_stat(context, "pexpire", "calls") / count;
    return (struct round){ bench_scripts_sent(context) / rounds, bench_stat(context, "evalsha", "usec") / rounds };
}

static void compare(const struct bench_scene *scene, int count)
{
    redisContext *context = bench_connect(scene->server);
    double scripts[ROUNDS_MAX], usec[ROUNDS_MAX], bare_usec[ROUNDS_MAX];
    struct held held = held_take(count, LEASE_MS);
    static struct bare_keys bare;
    char when[32];

    open_bare(&bare, context);
    bench_pause(ROUND_MS / 1e3 * 1.5); /* the first round may still be as uneven as the locking was */
    for (int i = 0; i < scene->rounds; i++) {
        struct round round = library_round(context, count);

        scripts[i] = round.scripts;
        usec[i] = round.usec;
        bare_usec[i] = bare_round(&bare, count);
    }
    held_leave(&held);
    snprintf(when, sizeof when, "%d locks", count);
    report(&(struct figure){ when,
                             "script calls, a round",
                             "",
                             count,
                             bench_median(scripts, scene->rounds),
                             { { "100 keys a call", count / (double)KEYS_A_CALL } },
                             NULL });
    report(&(struct figure){ when,
                             "server, a lock and round",
                             "us",
                             count,
                             bench_median(usec, scene->rounds) / count,
                             { { "bare pexpire", bench_median(bare_usec, scene->rounds) / count } },
                             NULL });
    redisFree(context);
}

/* A session writes for all its locks at once. */
static void count_beats(const struct bench_scene *scene, int count)
{
    const struct bench_store *store = scene->server->store;
    struct held held = held_take(count, LEASE_MS);
    struct bench_counts before, after;
    double writes[ROUNDS_MAX];
    char when[32];

    for (int i = 0; i < scene->rounds; i++) {
        store->count(scene->server, &before);
        bench_pause(ROUND_MS / 1e3);
        store->count(scene->server, &after);
        writes[i] = after.commands - before.commands;
    }
    held_leave(&held);
    snprintf(when, sizeof when, "%d locks", count);
    report(
        &(struct figure){ when, store->commands, "", count, bench_median(writes, scene->rounds), { { 0 } }, "<= 1" });
}

static void measure_some(const struct bench_scene *scene)
{
    scene->server->store == &bench_redis ? compare(scene, 1000) : count_beats(scene, 1000);
}

static void measure_many(const struct bench_scene *scene)
{
    scene->server->store == &bench_redis ? compare(scene, 10000) : count_beats(scene, 10000);
}

static void run(const struct bench_scene *scene)
{
    bench_apart(scene, measure_some);
    bench_apart(scene, measure_many);
}

const struct workload workload_renewals = { "renewals", "the server's work for 1 000 and 10 000 held locks", run, false,
                                            ON_ALL };

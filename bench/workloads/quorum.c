/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A quorum of three servers next to one server: a pair that nobody else wants, and a handoff between two processes.
 *
 * All servers share the server's core of the place, so on two cores the ratios show three servers that work one after
 * the other. The library's scripts over bare connections, to three servers and to one, show the least that both can
 * cost. Servers reached through a relay that takes a millisecond show the cost of the round trips, compared with which
 * the servers' work is small.
 */
#include <stdio.h>

#include "bench/contest.h"
#include "bench/crowd.h"
#include "bench/distance.h"
#include "bench/own.h"
#include "bench/runner.h"
#include "bench/server.h"
#include "bench/store.h"
#include "bench/workload.h"

enum { SERVERS = 3, MAJORITY = 2, ROUNDS_MAX = 100 };

#define ROUND_TRIP_MS 1.0

/* Where the servers are: names for the figures, and the ports of the quorum's servers and of the single one. */
struct site {
    const char *pair, *handoff;
    int ports[SERVERS + 1];
};

static struct bench_server servers[SERVERS];

/* Bare connections to the servers. */
struct trio {
    redisContext *contexts[SERVERS];
    bool is_owed; /* the servers beyond the majority have a reply that we have not read */
};

static struct own own;

static redisReply *next_reply(redisContext *context)
{
    redisReply *reply = NULL;

    if (redisGetReply(context, (void **)&reply) != REDIS_OK || reply->type == REDIS_REPLY_ERROR)
        bench_die("a server of the quorum refuses");
    return reply;
}

static void send_to(redisContext *context, int count, const char **words)
{
    int is_sent = 0;

    redisAppendCommandArgv(context, count, words, NULL);
    while (!is_sent) {
        if (redisBufferWrite(context, &is_sent) != REDIS_OK)
            bench_die("a server of the quorum has gone");
    }
}

/* Asks all servers and waits for a majority; the other replies are read before the next question. */
static redisReply *ask_trio(void *user, int count, const char **words)
{
    struct trio *trio = user;
    redisReply *reply = NULL;

    for (int i = 0; i < SERVERS; i++)
        send_to(trio->contexts[i], count, words);
    for (int i = MAJORITY; trio->is_owed && i < SERVERS; i++)
        freeReplyObject(next_reply(trio->contexts[i]));
    trio->is_owed = true;
    for (int i = 0; i < MAJORITY; i++) {
        freeReplyObject(reply);
        reply = next_reply(trio->contexts[i]);
    }
    return reply;
}

static void trio_pair(void *trio)
{
    own_lock_by(&own, ask_trio, trio);
    own_unlock_by(&own, ask_trio, trio);
}

static void one_pair(void *context)
{
    own_lock(&own, context);
    own_unlock(&own, context);
}

static void compare_bare(const struct bench_scene *scene)
{
    static struct trio trio;
    redisContext *one = bench_connect(&servers[0]);
    const struct contender contenders[] = {
        { "own scripts on 3", trio_pair, &trio },
        { "own scripts on 1", one_pair, one },
        { NULL, NULL, NULL },
    };

    for (int i = 0; i < SERVERS; i++) {
        trio.contexts[i] = bench_connect(&servers[i]);
        own_load(trio.contexts[i]);
    }
    own_init(&own, "own", 1);
    contest_hold(&(struct contest){ scene, "bare 3", "lock + unlock", "us", contenders, NULL, 0, 0 });
}

static void compare_pairs(const struct bench_scene *scene, const struct bench_server *quorum,
                          const struct bench_server *one, const char *when)
{
    struct figure figure = { .when = when,
                             .name = "lock + unlock",
                             .unit = "us",
                             .budget = "<= 1.50 of one server",
                             .limits = { { .name = "one server" } } };

    runner_compare(scene, quorum->url, one->url, &figure);
}

static void compare_handoffs(const struct bench_scene *scene, const struct bench_server *quorum,
                             const struct bench_server *one, const char *when)
{
    static const struct crowd crowds[] = {
        { .name = "quorum of 3", .processes = 2, .threads = 1, .is_timed = true },
        { .name = "one server", .processes = 2, .threads = 1, .is_timed = true },
    };
    struct bench_server both[] = { *quorum, *one };
    double handoffs[2][ROUNDS_MAX], commands[2][ROUNDS_MAX];
    struct crowd_figures medians[2] = { { { 0 } } };
    int rounds = scene->rounds < ROUNDS_MAX ? scene->rounds : ROUNDS_MAX;

    for (int at = 0; at < rounds; at++) {
        for (int i = 0; i < 2; i++) {
            struct bench_scene here = *scene;
            struct crowd_figures figures;

            here.server = &both[i];
            figures = crowd_run(&here, &crowds[i]);
            handoffs[i][at] = figures.of[CROWD_P50_US];
            commands[i][at] = figures.of[CROWD_COMMANDS];
        }
    }
    for (int i = 0; i < 2; i++) {
        medians[i].of[CROWD_P50_US] = bench_median(handoffs[i], rounds);
        medians[i].of[CROWD_COMMANDS] = bench_median(commands[i], rounds);
    }
    crowd_report(crowds, 2, medians, CROWD_P50_US, when, 2, "<= 2.20 of one server");
    crowd_report(crowds, 2, medians, CROWD_COMMANDS, when, 2, NULL);
}

/* Commands are counted on the quorum's first server. */
static void compare(const struct bench_scene *scene, const struct site *site)
{
    struct bench_server quorum = servers[0], one = *scene->server;

    one.way = BENCH_TCP;
    snprintf(quorum.url, sizeof quorum.url, "redis+quorum://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d?grace=off",
             site->ports[0], site->ports[1], site->ports[2]);
    snprintf(one.url, sizeof one.url, "redis://127.0.0.1:%d?grace=off", site->ports[SERVERS]);
    compare_pairs(scene, &quorum, &one, site->pair);
    compare_handoffs(scene, &quorum, &one, site->handoff);
}

static void run(const struct bench_scene *scene)
{
    struct site near = { .pair = "quorum of 3", .handoff = "2 processes" };
    struct site far = { .pair = "3, 1 ms away", .handoff = "2, 1 ms away" };
    struct bench_scene of_bare = *scene;
    pid_t relay;

    for (int i = 0; i < SERVERS; i++) {
        servers[i] = bench_server_start(&bench_redis, scene->place->server_core);
        bench_server_use(&servers[i], BENCH_TCP);
        near.ports[i] = servers[i].port;
    }
    near.ports[SERVERS] = scene->server->port;
    compare(scene, &near);
    of_bare.server = &servers[0];
    bench_apart(&of_bare, compare_bare);
    relay = distance_begin(near.ports, SERVERS + 1, ROUND_TRIP_MS, far.ports);
    compare(scene, &far);
    bench_kill(relay);
    for (int i = 0; i < SERVERS; i++)
        bench_server_stop(&servers[i]);
}

const struct workload workload_quorum = { "quorum", "a pair and a handoff on three servers, against one", run, true,
                                          ON_REDIS };

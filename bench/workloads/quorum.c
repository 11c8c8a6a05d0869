/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A quorum of three servers beside one server: a pair that nobody else wants, and a handoff between two processes.
 *
 * All servers share the server's core of the place, so on two cores the ratios are of three servers' work one behind
 * the other: on three cores and more the kernel's choice shows what the round trips cost.
 */
#include <stdio.h>

#include "bench/crowd.h"
#include "bench/runner.h"
#include "bench/server.h"
#include "bench/workload.h"

enum { SERVERS = 3, ROUNDS_MAX = 100 };

static void compare_pairs(const struct bench_scene *scene, const char *url, const char *one)
{
    struct figure figure = { .when = "quorum of 3",
                             .name = "lock + unlock",
                             .unit = "us",
                             .budget = "<= 1.50 of one server",
                             .limits = { { .name = "one server" } } };

    runner_compare(scene, url, one, &figure);
}

static void compare_handoffs(const struct bench_scene *scene, const struct bench_scene *one)
{
    static const struct crowd crowds[] = {
        { .name = "quorum of 3", .processes = 2, .threads = 1, .is_timed = true },
        { .name = "one server", .processes = 2, .threads = 1, .is_timed = true },
    };
    const struct bench_scene *const scenes[] = { scene, one };
    double handoffs[2][ROUNDS_MAX], commands[2][ROUNDS_MAX];
    struct crowd_figures medians[2] = { { { 0 } } };
    int rounds = scene->rounds < ROUNDS_MAX ? scene->rounds : ROUNDS_MAX;

    for (int at = 0; at < rounds; at++) {
        for (int i = 0; i < 2; i++) {
            struct crowd_figures figures = crowd_run(scenes[i], &crowds[i]);

            handoffs[i][at] = figures.of[CROWD_P50_US];
            commands[i][at] = figures.of[CROWD_COMMANDS];
        }
    }
    for (int i = 0; i < 2; i++) {
        medians[i].of[CROWD_P50_US] = bench_median(handoffs[i], rounds);
        medians[i].of[CROWD_COMMANDS] = bench_median(commands[i], rounds);
    }
    crowd_report(crowds, 2, medians, CROWD_P50_US, "2 processes", 2, "<= 2.20 of one server");
    crowd_report(crowds, 2, medians, CROWD_COMMANDS, "first of 3", 2, NULL);
}

static void run(const struct bench_scene *scene)
{
    struct bench_server servers[SERVERS], one = *scene->server;
    struct bench_scene of_quorum = *scene, of_one = *scene;

    for (int i = 0; i < SERVERS; i++) {
        servers[i] = bench_server_start();
        bench_pin(servers[i].pid, scene->place->server_core);
    }
    bench_server_use(&one, BENCH_TCP);
    of_one.server = &one;
    snprintf(servers[0].url, sizeof servers[0].url, "redis+quorum://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d?grace=off",
             servers[0].port, servers[1].port, servers[2].port);
    of_quorum.server = &servers[0];
    compare_pairs(scene, servers[0].url, one.url);
    compare_handoffs(&of_quorum, &of_one);
    for (int i = 0; i < SERVERS; i++)
        bench_server_stop(&servers[i]);
}

const struct workload workload_quorum = { "quorum", "a pair and a handoff on three servers, against one", run, true };
